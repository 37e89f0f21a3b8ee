// Verdicts follow the events' own times: however fast they are read, and in what batches, copies within the
// horizon are found and fresh events pass; a few records whose times are weeks off change none.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lethe/stage.h"
#include "src/record/record_reader.h"
#include "src/stage/stream_time.h"
#include "tests/support/real_events_file.h"
#include "tests/support/seed.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

// An event, and whether it is left out of the stream in the comparison.
struct Timed {
  std::string id;
  absl::Time time;
  bool wild = false;
};

std::vector<Verdict> Judge(const std::vector<Timed>& stream, size_t per_call, absl::Duration horizon) {
  const auto stage = DedupStage::Create({.horizon = horizon, .target_fpp = 1e-9, .hash_seed = 7});
  EXPECT_OK(stage);
  const auto partition = (*stage)->Open("p");
  EXPECT_OK(partition);
  std::vector<Event> events;
  for (const Timed& timed : stream) {
    events.push_back({.id = (*partition)->Hash(timed.id), .time = timed.time});
  }
  std::vector<Verdict> verdicts(events.size());
  const absl::Span<const Event> all = events;
  for (size_t i = 0; i < all.size(); i += per_call) {
    const size_t count = std::min(per_call, all.size() - i);
    EXPECT_OK((*partition)->Judge(all.subspan(i, count), absl::MakeSpan(verdicts).subspan(i, count)));
  }
  return verdicts;
}

// By an exact set: what was passed within the horizon of stream time is a duplicate, what never was is
// unique. In between, in the rest of the window, a verdict may be either: how fast memory comes decides how
// it grows.
void ExpectRight(const std::vector<Timed>& stream, const std::vector<Verdict>& verdicts,
                 absl::Duration horizon) {
  std::unordered_map<std::string, int64_t> passed;  // by id: the stream time of its last passing
  StreamTime clock;
  int64_t begun = kNoStreamTime;
  int64_t free = 0;
  for (size_t i = 0; i < stream.size(); ++i) {
    const int64_t now = clock.Observe(absl::ToUnixMillis(stream[i].time));
    if (begun == kNoStreamTime) begun = now;
    const auto last = passed.find(stream[i].id);
    // What passed before time had begun to move gets older from then on.
    const bool known =
        last != passed.end() &&
        (now == kNoStreamTime || now - std::max(last->second, begun) <= absl::ToInt64Milliseconds(horizon));
    if (known) {
      ASSERT_EQ(verdicts[i], Verdict::kDuplicate) << "event " << i;
    } else if (last == passed.end()) {
      ASSERT_EQ(verdicts[i], Verdict::kUnique) << "event " << i;
    } else {
      ++free;
    }
    if (verdicts[i] == Verdict::kUnique) passed[stream[i].id] = now;
  }
  EXPECT_LT(free, static_cast<int64_t>(stream.size() / 20));
}

// A hundred times as fast and more: three days with bursts, a stop, and retries of all ages, read as they
// came, and again in one go.
TEST(VerdictTime, ABackfillIsJudgedAsTheDayWas) {
  std::mt19937_64 random(TestSeed());
  std::vector<Timed> live;
  absl::Time now = absl::FromUnixSeconds(1'700'000'000);
  for (int i = 0; i < 150'000; ++i) {
    now += absl::Milliseconds(i % 50'000 < 5000 ? 20 : static_cast<int64_t>(random() % 3500));
    if (i == 70'000) now += absl::Hours(9);
    const bool again = i > 0 && random() % 10 == 0;
    const uint64_t back = uint64_t{1} << (random() % 17);
    live.push_back({again ? live[live.size() - 1 - random() % std::min<size_t>(back, live.size())].id
                          : absl::StrCat("event ", i),
                    now - absl::Milliseconds(static_cast<int64_t>(random() % 3000))});
  }
  const absl::Duration horizon = absl::Hours(6);
  for (const size_t per_call : {size_t{1}, size_t{37}, size_t{100'000}}) {
    SCOPED_TRACE(absl::StrCat("in calls of ", per_call));
    const std::vector<Verdict> verdicts = Judge(live, per_call, horizon);
    EXPECT_GT(std::count(verdicts.begin(), verdicts.end(), Verdict::kDuplicate), 5000);
    ExpectRight(live, verdicts, horizon);
  }
}

std::vector<Timed> ReadEvents(const std::filesystem::path& path) {
  std::string lines;
  FILE* pipe = popen(absl::StrCat("gzip -dc '", path.string(), "'").c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  std::vector<char> buffer(1 << 16);
  for (size_t size; (size = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    lines.append(buffer.data(), size);
  }
  EXPECT_EQ(pclose(pipe), 0);
  RecordReader reader({.id = *IdSpec::Parse("value"), .time = *Field::Parse("json:/time")});
  const absl::Time day = absl::FromUnixSeconds(1'442'016'000);  // 2015-09-12
  std::vector<Timed> events;
  for (size_t begin = 0, end; (end = lines.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const RecordFields& fields = reader.Read({.value = lines.substr(begin, end - begin)});
    const bool wild = fields.time < day || fields.time >= day + absl::Hours(24);
    events.push_back({absl::StrCat(events.size()), fields.time, wild});
  }
  return events;
}

// With retries: soon after the event, and several horizons after it.
std::vector<Timed> WithRetries(const std::vector<Timed>& events, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::vector<size_t>> due(events.size());
  std::vector<Timed> stream;
  for (size_t i = 0; i < events.size(); ++i) {
    stream.push_back(events[i]);
    for (const size_t again : due[i]) {
      // A retry has the time at which it is sent.
      stream.push_back({events[again].id, events[i].time, events[again].wild || events[i].wild});
    }
    if (random() % 8 != 0) continue;
    const size_t later = i + 1 +
                         (random() % 4 == 0 ? events.size() / 4 + random() % (events.size() / 8)
                                            : random() % (events.size() / 80));
    if (later < events.size()) due[later].push_back(i);
  }
  return stream;
}

// The day's first records, 45 of them, have times that are days or weeks off, in the past and in the future.
// None of them makes the others' verdicts other than they would be without.
TEST(VerdictTime, WildRecordsChangeNoVerdict) {
  const uint64_t seed = TestSeed();
  std::vector<Timed> events = ReadEvents(test::FindRealEvents(LETHE_SOURCE_DIR).events);
  ASSERT_GT(events.size(), 2000u);
  ASSERT_EQ(std::count_if(events.begin(), events.end(), [](const Timed& e) { return e.wild; }), 45);
  for (const bool scattered : {false, true}) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << (scattered ? ", scattered" : ", as they came"));
    if (scattered) {
      // The same records at other places of the stream.
      std::mt19937_64 random(seed);
      for (size_t i = 0; i < 45; ++i) std::swap(events[i], events[random() % events.size()]);
    }
    const std::vector<Timed> with = WithRetries(events, seed);
    std::vector<Timed> without;
    std::copy_if(with.begin(), with.end(), std::back_inserter(without),
                 [](const Timed& e) { return !e.wild; });
    const absl::Duration horizon = absl::Hours(1);
    const std::vector<Verdict> of_with = Judge(with, 500, horizon);
    const std::vector<Verdict> of_without = Judge(without, 500, horizon);
    size_t at = 0;
    int64_t duplicates = 0;
    for (size_t i = 0; i < with.size(); ++i) {
      if (with[i].wild) continue;
      ASSERT_EQ(of_with[i], of_without[at++]) << "record " << i;
      duplicates += of_with[i] == Verdict::kDuplicate ? 1 : 0;
    }
    // Those that came soon are known; those that came hours later are not.
    EXPECT_GT(duplicates, static_cast<int64_t>(events.size() / 15));
    EXPECT_LT(duplicates, 4500);
  }
}

}  // namespace
}  // namespace lethe
