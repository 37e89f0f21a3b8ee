// Random histories: a reader of a log judges in transactions, some of which fail, and is now and then
// rebuilt from the log. Whatever happens, what it lets through is held against a plain reading of the
// promise: no copy within the horizon passes, and nothing is dropped that is not a copy.
#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lethe/stage.h"
#include "src/reference/any_engine.h"
#include "tests/support/exact_filter.h"
#include "tests/support/seed.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

constexpr int64_t kHorizonMs = 5000;
constexpr int64_t kStartMs = 1'700'000'000'000;

struct Record {
  uint64_t id;
  int64_t time_ms;
  int64_t true_ms;  // when it was sent
};

absl::Time At(int64_t ms) { return ms == kNoStreamTime ? absl::InfinitePast() : absl::FromUnixMillis(ms); }

// Ids come again after short and long times; some timestamps are wild or missing.
std::vector<Record> RandomLog(std::mt19937_64& random, size_t size) {
  std::vector<Record> log;
  int64_t clock = kStartMs;
  const uint64_t recent = 1 + random() % 2000;
  for (size_t i = 0; i < size; ++i) {
    clock += static_cast<int64_t>(random() % 20);
    uint64_t id = i;
    if (random() % 3 == 0 && i > 0) id = log[i - 1 - random() % std::min<uint64_t>(i, recent)].id;
    int64_t time_ms = clock - static_cast<int64_t>(random() % 200);
    if (random() % 10 == 0) time_ms = static_cast<int64_t>(random() >> 1);
    if (random() % 10 == 0) time_ms = kNoStreamTime;
    log.push_back({id, time_ms, clock});
  }
  return log;
}

// Stream time at every record, by its definition.
std::vector<int64_t> StreamTimes(const std::vector<Record>& log) {
  std::vector<int64_t> times, last;
  int64_t now = kNoStreamTime;
  for (const Record& record : log) {
    if (record.time_ms != kNoStreamTime) last.push_back(record.time_ms);
    if (last.size() > 101) last.erase(last.begin());
    if (last.size() == 101) {
      std::vector<int64_t> sorted = last;
      std::nth_element(sorted.begin(), sorted.begin() + 50, sorted.end());
      now = std::max(now, std::min(sorted[50], int64_t{1} << 61));
    }
    times.push_back(now);
  }
  return times;
}

// How much later in stream time the record at `later` came. What came before the stream had a time is as old
// as its first time.
int64_t AgeMs(const std::vector<int64_t>& times, size_t earlier, size_t later) {
  if (times[later] == kNoStreamTime) return 0;
  const auto first = std::find_if(times.begin() + static_cast<ptrdiff_t>(earlier), times.end(),
                                  [](int64_t time_ms) { return time_ms != kNoStreamTime; });
  return times[later] - *first;
}

// What is ahead of stream time is judged by its own timestamp, and so, but for an eighth of the horizon, by
// the time that has gone by, if the timestamps of both are right.
bool MayBeNew(const Record& passed, const Record& later) {
  const auto is_wild = [](const Record& record) {
    return record.time_ms != kNoStreamTime && std::abs(record.time_ms - record.true_ms) > kHorizonMs;
  };
  return is_wild(passed) || is_wild(later) || later.true_ms - passed.true_ms > kHorizonMs - kHorizonMs / 8;
}

class Reader {
 public:
  Reader(std::mt19937_64& random, std::vector<Record> log, const StageOptions& options,
         const FilterFactory& new_filter)
      : random_(random), log_(std::move(log)) {
    stage_ = *DedupStage::Create(options, new_filter);
    partition_ = *stage_->Open("log");
    passed_.resize(log_.size());
  }

  // Reads the log to its end; passed() then says what came out.
  void Run() {
    while (committed_ < log_.size()) {
      if (random_() % 20 == 0) Rebuild();
      RunTransaction();
    }
  }

  const std::vector<bool>& passed() const { return passed_; }
  AuditStatus audit() const { return partition_->Status().audit; }

 private:
  // As a daemon that restarts: an empty filter, and the log up to the committed offset.
  void Rebuild() {
    partition_ = *stage_->Open("log");
    aborted_.clear();  // for ids older than the horizon the new filter may answer otherwise
    for (size_t first = 0; first < committed_;) {
      const size_t size = std::min(committed_ - first, 1 + random_() % 3000);
      ASSERT_OK(partition_->Replay(Events(first, size)));
      first += size;
    }
  }

  void RunTransaction() {
    Transaction transaction = *partition_->Begin();
    const bool fails = random_() % 3 == 0;
    size_t next = committed_;
    std::map<size_t, Verdict> verdicts;
    const size_t end = std::min(log_.size(), committed_ + 1 + random_() % 700);
    while (next < end) {
      const size_t size = std::min(end - next, 1 + random_() % 300);
      std::vector<Verdict> some(size);
      EXPECT_OK(transaction.Judge(Events(next, size), absl::MakeSpan(some)));
      for (size_t i = 0; i < size; ++i) verdicts[next + i] = some[i];
      next += size;
    }
    // Judging again gives the verdicts that were given before.
    for (const auto& [offset, verdict] : verdicts) {
      const auto before = aborted_.find(offset);
      if (before != aborted_.end()) {
        ASSERT_EQ(verdict, before->second) << "offset " << offset;
      }
    }
    if (fails) {
      transaction.Abort();
      aborted_ = std::move(verdicts);
      return;
    }
    transaction.Commit();
    aborted_.clear();
    for (const auto& [offset, verdict] : verdicts) passed_[offset] = verdict == Verdict::kUnique;
    committed_ = end;
  }

  std::vector<Event> Events(size_t first, size_t size) const {
    std::vector<Event> events;
    for (size_t i = first; i < first + size; ++i) {
      events.push_back({.id = partition_->Hash(absl::StrCat(log_[i].id)), .time = At(log_[i].time_ms)});
    }
    return events;
  }

  std::mt19937_64& random_;
  const std::vector<Record> log_;
  std::unique_ptr<DedupStage> stage_;
  std::unique_ptr<Partition> partition_;
  size_t committed_ = 0;
  std::vector<bool> passed_;
  std::map<size_t, Verdict> aborted_;  // by offset: what an aborted transaction said of it
};

struct Filters {
  std::string name;
  FilterFactory factory;
  int rounds = 30;
};

class StageLogTest : public testing::TestWithParam<Filters> {};

INSTANTIATE_TEST_SUITE_P(
    Filters, StageLogTest,
    testing::Values(Filters{"Exact", ExactFilter::Factory()},
                    Filters{"Compact", [](const FilterOptions& options) { return NewFilter(options); }},
                    Filters{"Published",
                            [](const FilterOptions& options) {
                              return NewFilter(AnyEngine(Engine::kPublished), options);
                            },
                            4}),
    [](const auto& tested) { return tested.param.name; });

TEST_P(StageLogTest, KeepsThePromiseThroughAbortsAndRebuilds) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < GetParam().rounds; ++round) {
    const std::vector<Record> log = RandomLog(random, 4000);
    const std::vector<int64_t> times = StreamTimes(log);
    // At this target the 120,000 records of a run, aborts and all, see a false positive once in 5,000,000
    // runs.
    const StageOptions options{.horizon = absl::Milliseconds(kHorizonMs),
                               .target_fpp = 1e-12,
                               .shards = 1 << (random() % 5),
                               .audit_share = 1};
    Reader reader(random, log, options, GetParam().factory);
    reader.Run();
    std::map<uint64_t, size_t> last_passed;
    for (size_t i = 0; i < log.size(); ++i) {
      const auto before = last_passed.find(log[i].id);
      if (before == last_passed.end()) {
        ASSERT_TRUE(reader.passed()[i]) << "lost: round " << round << ", offset " << i;
      } else if (AgeMs(times, before->second, i) <= kHorizonMs && !MayBeNew(log[before->second], log[i])) {
        ASSERT_FALSE(reader.passed()[i]) << "passed twice: round " << round << ", offset " << i;
      }
      if (reader.passed()[i]) last_passed[log[i].id] = i;
    }
    ASSERT_EQ(reader.audit().false_drops, 0);
    ASSERT_EQ(reader.audit().missed, 0);
  }
}

}  // namespace
}  // namespace lethe
