// A restart from the log: a replay takes no more room than the run whose log it reads, whatever the share of
// copies in it, and knows what that run knew.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lethe/stage.h"
#include "src/engines/plan.h"
#include "src/reference/any_engine.h"
#include "tests/support/filter_testing.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

constexpr int64_t kHorizonMs = 3'600'000;
constexpr int64_t kStartMs = 1'700'000'000'000;
constexpr double kTarget = 1e-4;

struct Record {
  int64_t id;
  int64_t time_ms;
};

// Each id `copies` times, at random within `span_ms` of its first time; first times are even over `lasts_ms`.
std::vector<Record> MakeLog(std::mt19937_64& random, int64_t ids_in_horizon, int copies, int64_t lasts_ms,
                            int64_t span_ms) {
  const int64_t ids = ids_in_horizon * lasts_ms / kHorizonMs;
  std::vector<Record> log;
  for (int64_t id = 0; id < ids; ++id) {
    const int64_t first_ms = kStartMs + id * lasts_ms / ids;
    for (int copy = 0; copy < copies; ++copy) {
      const auto later = static_cast<int64_t>(random() % static_cast<uint64_t>(span_ms));
      const int64_t time_ms = copy == 0 ? first_ms : first_ms + later;
      if (time_ms < kStartMs + lasts_ms) log.push_back({id, time_ms});
    }
  }
  std::stable_sort(log.begin(), log.end(),
                   [](const Record& x, const Record& y) { return x.time_ms < y.time_ms; });
  return log;
}

class ReplayTest : public testing::TestWithParam<AnyEngine> {
 protected:
  StageOptions Options(int64_t memory_bytes) const {
    return {.horizon = absl::Milliseconds(kHorizonMs),
            .target_fpp = kTarget,
            .memory_limit_bytes = memory_bytes,
            .engine = GetParam().own,
            .audit_share = 0,
            .hash_seed = TestSeed()};
  }

  static int64_t ids_in_horizon() { return GetParam() == Engine::kCompact ? 60'000 : 15'000; }

  // For the default engine as much as `plan` says. An exact set or a table keeps what was replayed until the
  // horizon has passed since its last copy: twice what the run needs does for that, with some for its steps.
  int64_t MemoryFor(const std::vector<Record>& log) const {
    if (GetParam() == Engine::kCompact) {
      const absl::StatusOr<Plan> plan =
          MakePlan({.rate = static_cast<double>(ids_in_horizon()) * 1000 / kHorizonMs,
                    .horizon = absl::Milliseconds(kHorizonMs),
                    .target_fpp = kTarget});
      EXPECT_OK(plan);
      return plan->memory_bytes;
    }
    auto stage = *CreateStage(GetParam(), Options(int64_t{64} << 20));
    auto partition = *stage->Open("measured");
    int64_t most = 0;
    for (size_t first = 0; first < log.size(); first += 20'000) {
      const size_t size = std::min<size_t>(20'000, log.size() - first);
      Judge(*partition, log, first, size);
      most = std::max(most, stage->memory().used_bytes());
    }
    return most * 5 / 2;
  }

  static std::vector<Event> Events(const Partition& partition, const std::vector<Record>& log, size_t first,
                                   size_t size) {
    std::vector<Event> events;
    for (size_t i = first; i < first + size; ++i) {
      events.push_back({.id = partition.Hash(absl::StrCat("id-", log[i].id)),
                        .time = absl::FromUnixMillis(log[i].time_ms)});
    }
    return events;
  }

  static std::vector<Verdict> Judge(Partition& partition, const std::vector<Record>& log, size_t first,
                                    size_t size) {
    std::vector<Verdict> verdicts(size);
    EXPECT_OK(partition.Judge(Events(partition, log, first, size), absl::MakeSpan(verdicts)));
    return verdicts;
  }
};

INSTANTIATE_TEST_SUITE_P(Engines, ReplayTest,
                         testing::Values<AnyEngine>(Engine::kExact, Engine::kCompact, Engine::kPublished),
                         [](const auto& tested) { return std::string(EngineName(tested.param)); });

// The live run passes each id once. The restarted one reads the last horizon again; then copies come of what
// is within the horizon, and new ids.
TEST_P(ReplayTest, CopiesTakeNoRoom) {
  std::mt19937_64 random(TestSeed());
  for (const int64_t horizons : {1, 3}) {
    for (const int copies : {1, 3, 12, 100}) {
      // In a stream of one horizon copies come until its end; a longer one is in equilibrium.
      const int64_t lasts_ms = horizons * kHorizonMs - 1000;
      const int64_t span_ms = horizons == 1 ? kHorizonMs : kHorizonMs / 10;
      if (horizons > 1 && copies == 100) continue;
      SCOPED_TRACE(absl::StrCat(copies, " records an id in ", horizons, " horizons"));
      const std::vector<Record> log = MakeLog(random, ids_in_horizon(), copies, lasts_ms, span_ms);
      const int64_t memory_bytes = MemoryFor(log);

      auto stage = *CreateStage(GetParam(), Options(memory_bytes));
      auto live = *stage->Open("live");
      Judge(*live, log, 0, log.size());
      ASSERT_EQ(live->Status().filter.limit_hits, 0);
      const absl::Time now = live->stream_time();
      live.reset();

      auto restarted = *stage->Open("restarted");
      const int64_t from_ms = absl::ToUnixMillis(now) - kHorizonMs - 60'000;
      const auto from =
          std::find_if(log.begin(), log.end(), [&](const Record& r) { return r.time_ms > from_ms; });
      const absl::Time start = from == log.begin() ? absl::InfinitePast() : absl::FromUnixMillis(from_ms);
      ASSERT_OK(restarted->StartAt(start));
      const auto first = static_cast<size_t>(from - log.begin());
      ASSERT_OK(restarted->Replay(Events(*restarted, log, first, log.size() - first)));
      EXPECT_EQ(restarted->Status().filter.limit_hits, 0);

      std::unordered_map<int64_t, int64_t> passed_ms;  // by id: no id lasts longer than the horizon
      for (const Record& record : log) passed_ms.emplace(record.id, record.time_ms);
      std::vector<Record> probes;
      for (const auto& [id, time_ms] : passed_ms) {
        if (time_ms > absl::ToUnixMillis(now) - kHorizonMs) probes.push_back({id, absl::ToUnixMillis(now)});
      }
      ASSERT_GT(probes.size(), static_cast<size_t>(ids_in_horizon() / 2));
      const std::vector<Verdict> copied = Judge(*restarted, probes, 0, probes.size());
      EXPECT_EQ(std::count(copied.begin(), copied.end(), Verdict::kUnique), 0);

      // In a transaction that is aborted: it changes nothing. At the target 10 are to be expected at most,
      // and above 35 comes by chance less than once in a million runs.
      constexpr int64_t kFresh = 100'000;
      std::vector<Record> fresh;
      for (int64_t i = 0; i < kFresh; ++i) fresh.push_back({-1 - i, absl::ToUnixMillis(now)});
      Transaction transaction = *restarted->Begin();
      std::vector<Verdict> verdicts(kFresh);
      EXPECT_OK(transaction.Judge(Events(*restarted, fresh, 0, fresh.size()), absl::MakeSpan(verdicts)));
      EXPECT_LE(std::count(verdicts.begin(), verdicts.end(), Verdict::kDuplicate), 35);
      transaction.Abort();

      // As time goes on, the ids of the replay do not make it hit its limit either.
      std::vector<Record> later;
      for (int64_t i = 0; i < ids_in_horizon(); ++i) {
        later.push_back({1'000'000 + i, absl::ToUnixMillis(now) + i * kHorizonMs / ids_in_horizon()});
      }
      Judge(*restarted, later, 0, later.size());
      EXPECT_EQ(restarted->Status().filter.limit_hits, 0);
    }
  }
}

}  // namespace
}  // namespace lethe
