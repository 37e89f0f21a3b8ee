// The same log gives the same verdicts wherever transactions end: random logs, in random transactions and
// batches, live and replayed, against a plain reading of the promise.
//
// What is promised of a record in a dense stream, by the stream time that has passed since its id last
// passed: up to the horizon it is a duplicate; past the horizon, an eighth of it and the filter's slack it is
// unique. In between either (an eighth of the horizon is slack of compact filters, none that of an exact
// one; which record is ahead of stream time makes the eighth, see StageQuietTest). A replay cannot know which
// records passed: the horizon then begins with the last record that it read of the id. And whatever the
// stream is, the verdicts of an exact filter are the same wherever transactions and batches end.
#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lethe/stage.h"
#include "src/reference/any_engine.h"
#include "src/stage/stream_time.h"
#include "tests/support/exact_filter.h"
#include "tests/support/seed.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

constexpr int64_t kHorizonMs = 3'600'000;
constexpr int64_t kStartMs = 1'700'000'000'000;

struct Record {
  uint64_t id;
  int64_t time_ms;
};

absl::Time At(int64_t ms) { return ms == kNoStreamTime ? absl::InfinitePast() : absl::FromUnixMillis(ms); }

// Records `gap_ms` apart. Ids come again after times around the horizon, short ones, and long ones; some
// timestamps are wild or missing. With silences, if there are any, of up to two horizons.
std::vector<Record> RandomLog(std::mt19937_64& random, size_t size, int64_t gap_ms, bool has_silences) {
  std::vector<Record> log;
  int64_t clock = kStartMs;
  const auto horizon = static_cast<uint64_t>(kHorizonMs);
  const auto gap = static_cast<uint64_t>(gap_ms);
  std::deque<bool> wild;
  for (size_t i = 0; i < size; ++i) {
    clock += static_cast<int64_t>(random() % (2 * gap));
    if (has_silences && random() % 500 == 0) clock += static_cast<int64_t>(random() % (2 * horizon));
    uint64_t id = i;
    if (random() % 2 == 0 && i > 0)
      id = log[i - 1 - random() % std::min<uint64_t>(i, 5 + 2 * horizon / gap)].id;
    int64_t time_ms = clock - static_cast<int64_t>(random() % (4 * gap));
    if (random() % 10 == 0) {
      time_ms = kNoStreamTime;
    } else {
      // At most ten of any 21.
      const bool is_wild = random() % 10 == 0 && std::count(wild.begin(), wild.end(), true) < 10;
      if (is_wild) time_ms = static_cast<int64_t>(random() >> 1);
      wild.push_back(is_wild);
      if (wild.size() > 20) wild.pop_front();
    }
    log.push_back({id, time_ms});
  }
  return log;
}

// Stream time at every record; before it starts, its first value.
std::vector<int64_t> StreamTimes(const std::vector<Record>& log) {
  std::vector<int64_t> times;
  StreamTime clock = StreamTime::For(absl::Milliseconds(kHorizonMs));
  for (const Record& record : log) times.push_back(clock.Observe(record.time_ms));
  const auto first =
      std::find_if(times.begin(), times.end(), [](int64_t time_ms) { return time_ms != kNoStreamTime; });
  std::fill(times.begin(), first, first == times.end() ? 0 : *first);
  return times;
}

// How a log is read.
struct Reading {
  size_t most_in_transaction = 1;  // 0: judged outside of transactions
  size_t most_in_batch = 1;
  bool aborts = false;
  bool replays = false;
};

struct Read {
  std::vector<Verdict> verdicts;
  std::vector<size_t> replayed;  // for each record, how many before it the last replay read
};

class Reader {
 public:
  Reader(const std::vector<Record>& log, const StageOptions& options, const FilterFactory& new_filter)
      : log_(log), stage_(*DedupStage::Create(options, new_filter)), partition_(*stage_->Open("log")) {}

  Read Run(const Reading& reading, std::mt19937_64& random) {
    read_.verdicts.resize(log_.size());
    for (size_t next = 0; next < log_.size();) {
      if (reading.replays && random() % 4 == 0) Rebuild(next, random);
      const size_t most = std::max<size_t>(1, reading.most_in_transaction);
      const size_t end = std::min(log_.size(), next + 1 + random() % most);
      if (reading.most_in_transaction == 0) {
        Judge(*partition_, next, end, reading, random);
      } else {
        Transaction transaction = *partition_->Begin();
        Judge(transaction, next, end, reading, random);
        if (reading.aborts && random() % 3 == 0) continue;
        transaction.Commit();
      }
      read_.replayed.resize(end, replayed_);
      next = end;
    }
    return std::move(read_);
  }

  AuditStatus audit() const { return partition_->Status().audit; }
  PartitionStatus status() const { return partition_->Status(); }

 private:
  template <typename Judging>
  void Judge(Judging& judging, size_t next, size_t end, const Reading& reading, std::mt19937_64& random) {
    while (next < end) {
      const size_t size = std::min(end - next, 1 + random() % reading.most_in_batch);
      ASSERT_OK(judging.Judge(Events(next, size), absl::MakeSpan(read_.verdicts).subspan(next, size)));
      next += size;
    }
  }

  void Rebuild(size_t committed, std::mt19937_64& random) {
    partition_ = *stage_->Open("log");
    for (size_t first = 0; first < committed;) {
      const size_t size = std::min(committed - first, 1 + random() % 3000);
      ASSERT_OK(partition_->Replay(Events(first, size)));
      first += size;
    }
    replayed_ = committed;
  }

  std::vector<Event> Events(size_t first, size_t size) const {
    std::vector<Event> events;
    for (size_t i = first; i < first + size; ++i) {
      events.push_back({.id = partition_->Hash(absl::StrCat(log_[i].id)), .time = At(log_[i].time_ms)});
    }
    return events;
  }

  const std::vector<Record>& log_;
  std::unique_ptr<DedupStage> stage_;
  std::unique_ptr<Partition> partition_;
  Read read_;
  size_t replayed_ = 0;
};

struct Filters {
  std::string name;
  FilterFactory factory;
  int64_t slack_ms;  // past the horizon, for which an id may still be known
  int rounds = 8;
};

void PrintTo(const Filters& filters, std::ostream* out) { *out << filters.name; }

class StageCommitsTest : public testing::TestWithParam<std::tuple<Filters, bool>> {
 protected:
  const Filters& filters() const { return std::get<0>(GetParam()); }
  bool renews() const { return std::get<1>(GetParam()); }
  StageOptions Options(int shards) const {
    // At this target no false positive is to be expected in a million runs.
    return {.horizon = absl::Milliseconds(kHorizonMs),
            .target_fpp = 1e-12,
            .renew = renews(),
            .shards = shards,
            .audit_share = 1};
  }
};

INSTANTIATE_TEST_SUITE_P(
    Filters, StageCommitsTest,
    testing::Combine(testing::Values(Filters{"Exact", ExactFilter::Factory(), 0},
                                     Filters{"Compact",
                                             [](const FilterOptions& options) { return NewFilter(options); },
                                             kHorizonMs / 8},
                                     // Its intervals may be as long as the horizon.
                                     Filters{"Published",
                                             [](const FilterOptions& options) {
                                               return NewFilter(AnyEngine(Engine::kPublished), options);
                                             },
                                             // A generation may span a transaction, two and a half
                                             // horizons of a log.
                                             3 * kHorizonMs, 2}),
                     testing::Bool()),
    [](const auto& tested) {
      return absl::StrCat(std::get<0>(tested.param).name, std::get<1>(tested.param) ? "Renewing" : "");
    });

// The first record that has another verdict than the promise allows, in words.
std::optional<std::string> FirstWrong(const std::vector<Record>& log, const Read& read, int64_t slack_ms,
                                      bool renews) {
  const std::vector<int64_t> times = StreamTimes(log);
  std::map<uint64_t, size_t> known;             // by id: from where it is remembered for the horizon
  std::map<uint64_t, std::vector<size_t>> all;  // by id: its records
  for (size_t i = 0; i < log.size(); ++i) {
    const bool passed = read.verdicts[i] == Verdict::kUnique;
    const auto before = known.find(log[i].id);
    const auto wrong = [&](absl::string_view what) {
      return absl::StrCat(what, ": record ", i, ", id ", log[i].id, ", ", times[i] - times[before->second],
                          " ms of stream time after record ", before->second);
    };
    if (before == known.end()) {
      if (!passed) return absl::StrCat("lost: record ", i, ", the first of id ", log[i].id);
    } else {
      if (passed && times[i] - times[before->second] <= kHorizonMs) {
        return wrong("passed twice");
      }
      // What a replay has read may have passed.
      const std::vector<size_t>& records = all[log[i].id];
      const auto live = std::lower_bound(records.begin(), records.end(), read.replayed[i]);
      const size_t last = std::max(before->second, live == records.begin() ? 0 : *(live - 1));
      if (!passed && times[i] - times[last] > kHorizonMs + kHorizonMs / 8 + slack_ms)
        return wrong("dropped after its horizon");
    }
    if (passed || renews) known[log[i].id] = i;
    all[log[i].id].push_back(i);
  }
  return std::nullopt;
}

constexpr Reading kReadings[] = {
    {.most_in_transaction = 0, .most_in_batch = 1},
    {.most_in_transaction = 0, .most_in_batch = 3000},
    {.most_in_transaction = 1},
    {.most_in_transaction = 50, .most_in_batch = 20},
    {.most_in_transaction = 1'000'000, .most_in_batch = 1},
    {.most_in_transaction = 1'000'000, .most_in_batch = 3000},
    {.most_in_transaction = 5000, .most_in_batch = 300, .aborts = true},
    {.most_in_transaction = 3000, .most_in_batch = 300, .aborts = true, .replays = true},
};

TEST_P(StageCommitsTest, VerdictsAreThePromisedOnesWhereverTransactionsEnd) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < filters().rounds; ++round) {
    // Every other one is dense and without silences: there all is judged by stream time. The others have
    // silences, from two hundred records in a horizon to one in two horizons.
    const bool is_dense = round % 2 == 0;
    const int64_t sparse_gap_ms = kHorizonMs / 200 + static_cast<int64_t>(round / 2) * kHorizonMs / 2;
    const std::vector<Record> log = is_dense ? RandomLog(random, 8000, kHorizonMs / 2000, false)
                                             : RandomLog(random, 4000, sparse_gap_ms, true);
    std::vector<Verdict> first;
    for (const Reading& reading : kReadings) {
      Reader reader(log, Options(1 << (random() % 5)), filters().factory);
      const Read read = reader.Run(reading, random);
      SCOPED_TRACE(
          absl::StrCat("round ", round, ", transactions of up to ", reading.most_in_transaction, " records"));
      // The published filter keeps a generation, whatever is in it, as long as copies of its ids come again.
      const bool is_kept = filters().slack_ms > kHorizonMs && (renews() || reading.replays);
      const int64_t slack_ms = is_kept ? INT64_MAX / 2 : filters().slack_ms;
      if (is_dense) {
        ASSERT_EQ(FirstWrong(log, read, slack_ms, renews()), std::nullopt);
      }
      ASSERT_EQ(reader.audit().false_drops, 0);
      ASSERT_EQ(reader.audit().missed, 0);
      if (!reading.replays) {
        ASSERT_EQ(reader.status().unique,
                  std::count(read.verdicts.begin(), read.verdicts.end(), Verdict::kUnique));
        ASSERT_EQ(reader.status().duplicates,
                  std::count(read.verdicts.begin(), read.verdicts.end(), Verdict::kDuplicate));
      }
      // A replay takes copies for events that have passed; with `renew` that makes no difference.
      if (reading.replays && !renews()) continue;
      // Without slack there is nothing to choose.
      if (filters().slack_ms > 0) continue;
      if (first.empty()) first = read.verdicts;
      ASSERT_TRUE(read.verdicts == first);
    }
  }
}

// A backlog of four hours: each event comes again after two, with a horizon of one.
TEST_P(StageCommitsTest, ABacklogLosesNoEventThatComesAgainAfterTheHorizon) {
  std::mt19937_64 random(TestSeed());
  std::vector<Record> log;
  for (uint64_t i = 0; i < 14'400; ++i) {
    const int64_t time_ms = kStartMs + static_cast<int64_t>(i) * 1000;
    log.push_back({i % 7200, time_ms});
  }
  for (const Reading& reading : kReadings) {
    Reader reader(log, Options(1), filters().factory);
    const Read read = reader.Run(reading, random);
    if (filters().slack_ms < kHorizonMs) {
      EXPECT_EQ(std::count(read.verdicts.begin(), read.verdicts.end(), Verdict::kDuplicate), 0)
          << "transactions of up to " << reading.most_in_transaction << " records";
    }
  }
}

}  // namespace
}  // namespace lethe
