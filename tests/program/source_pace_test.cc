// Rule 20 without a broker: routers with a backlog, and the deduplicator behind them.
#include "src/pipeline/output/source_pace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "src/pipeline/clock/steady_time.h"
#include "src/pipeline/options/stage_options.h"
#include "tests/support/fake_cluster.h"
#include "tests/support/life.h"
#include "tests/support/seed.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

using test::FakeCluster;
using test::Life;

constexpr int64_t kMinute = 60'000;
constexpr int64_t kHour = 60 * kMinute;

struct Sent {
  int64_t sent_ms;
  int64_t time_ms;
  int id;
};

// Events, some of which come a second time, at most `latest_copy_ms` after the first.
struct Stream {
  int ids = 0;
  int copies = 0;
  int64_t span_ms = 0;
  int64_t latest_copy_ms = 0;
  bool copies_keep_time = false;  // they come later, with the timestamp of the first
};

class SourcePaceTest : public testing::Test {
 protected:
  explicit SourcePaceTest(int32_t partitions = 12) : partitions_(partitions) {
    options_.input = "orders";
    options_.output = "unique";
    options_.process.group = "lethe";
    options_.scope = Scope::kTopic;
    options_.process.commit_interval = absl::ZeroDuration();
    options_.record.id = *IdSpec::Parse("value");
    options_.stage.horizon = absl::Minutes(10);
    options_.stage.target_fpp = 1e-9;
    options_.stage.audit_share = 0;
    input_.output_partitions = routed_.output_partitions = partitions_;
    for (int32_t id = 0; id < partitions_; ++id) input_.logs[id];
  }

  // To the partitions by weight, up to now.
  void Send(const Stream& stream, const std::vector<int>& weights) {
    const int64_t begin = absl::ToUnixMillis(absl::Now()) - stream.span_ms - stream.latest_copy_ms;
    std::vector<Sent> events;
    for (int id = 0; id < stream.ids; ++id) {
      const int64_t time_ms = begin + stream.span_ms * id / stream.ids;
      events.push_back({time_ms, time_ms, next_id_ + id});
      if (id % std::max(stream.ids / std::max(stream.copies, 1), 1) != 0 || stream.copies == 0) continue;
      const auto later = 1 + static_cast<int64_t>(random_() % static_cast<uint64_t>(stream.latest_copy_ms));
      events.push_back({time_ms + later, stream.copies_keep_time ? time_ms : time_ms + later, next_id_ + id});
    }
    next_id_ += stream.ids;
    std::stable_sort(events.begin(), events.end(),
                     [](const Sent& a, const Sent& b) { return a.sent_ms < b.sent_ms; });
    std::discrete_distribution<int32_t> partition(weights.begin(), weights.end());
    for (const Sent& event : events) {
      input_.Append(partition(random_), {std::nullopt, absl::StrCat("id-", event.id), event.time_ms});
    }
  }
  std::vector<int> Evenly() const { return std::vector<int>(static_cast<size_t>(partitions_), 1); }

  DaemonOptions Routing() const {
    DaemonOptions routing = RoutingOptions(options_, options_.input);
    routing.half.routing->source_patience = patience_;
    return routing;
  }

  // A router of all partitions.
  std::unique_ptr<Life> Router() {
    auto life = std::make_unique<Life>(input_, Routing(), partitions_);
    for (int32_t id = 0; id < partitions_; ++id) life->Assign(id);
    return life;
  }

  // What a read_committed reader gets of the repartition topic since the last call.
  void TakeRouted() {
    for (; taken_ < input_.output.size(); ++taken_) {
      const FakeCluster::Written& written = input_.output[taken_];
      routed_.Append(written.partition, written.record);
    }
  }
  // Runs the deduplicator to the end of the repartition topic.
  void Judge() {
    TakeRouted();
    Life life(routed_, JudgingOptions(options_), partitions_);
    for (int32_t id = 0; id < partitions_; ++id) life.Assign(id);
    ASSERT_OK(life.Run());
  }
  // Records of the output beyond the first of each id; all ids are there.
  // But for those of `others`.
  int CopiesPassed(const std::set<std::string>& others = {}) const {
    std::set<std::string> seen;
    int copies = 0;
    for (const FakeCluster::Written& written : routed_.output) {
      const std::string& value = *written.record.value;
      copies += seen.insert(value).second || others.contains(value) ? 0 : 1;
    }
    EXPECT_EQ(static_cast<int>(seen.size()), next_id_);
    return copies;
  }
  // How much older than one before it a record of the repartition topic is, at most.
  int64_t Disorder() const {
    int64_t latest = 0;
    int64_t most = 0;
    for (const FakeCluster::Written& written : input_.output) {
      most = std::max(most, latest - written.record.timestamp_ms);
      latest = std::max(latest, written.record.timestamp_ms);
    }
    return most;
  }
  // As the brokers tell them.
  std::map<TopicPartition, int64_t> Ends() const {
    std::map<TopicPartition, int64_t> ends;
    for (const auto& [id, log] : input_.logs) ends[id] = log.end();
    return ends;
  }
  int64_t Lead() const { return absl::ToInt64Milliseconds(Routing().half.routing->lead); }

  const uint64_t seed_ = TestSeed();
  std::mt19937_64 random_{seed_};
  int32_t partitions_;
  absl::Duration patience_ = absl::Minutes(1);  // with sources that stand still
  DaemonOptions options_;
  FakeCluster input_;
  FakeCluster routed_;
  size_t taken_ = 0;
  int next_id_ = 0;
};

TEST_F(SourcePaceTest, Rule20NoCopyPassesAfterABacklogOfManyHorizons) {
  Send({.ids = 60'000, .copies = 6'000, .span_ms = 24 * kHour, .latest_copy_ms = 59'000}, Evenly());
  ASSERT_OK(Router()->Run());
  EXPECT_LE(Disorder(), Lead());
  Judge();
  EXPECT_EQ(CopiesPassed(), 0);
}

TEST_F(SourcePaceTest, CopiesAsLateAsTheHorizonAreFound) {
  Send({.ids = 60'000, .copies = 6'000, .span_ms = 2 * kHour, .latest_copy_ms = 10 * kMinute}, Evenly());
  ASSERT_OK(Router()->Run());
  Judge();
  EXPECT_EQ(CopiesPassed(), 0);
}

// A source whose records are often late waits for the others all the same.
TEST_F(SourcePaceTest, CopiesWithTheTimestampOfTheFirstReleaseNothing) {
  constexpr int64_t kLate = 8 * kMinute;
  Send({.ids = 60'000,
        .copies = 20'000,
        .span_ms = 4 * kHour,
        .latest_copy_ms = kLate,
        .copies_keep_time = true},
       Evenly());
  ASSERT_OK(Router()->Run());
  EXPECT_LE(Disorder(), Lead() + kLate);
  Judge();
  EXPECT_EQ(CopiesPassed(), 0);
}

TEST_F(SourcePaceTest, ASparseSourceKeepsStepWithTheOthers) {
  std::vector<int> weights(12, 100);
  weights[3] = 10;
  weights[7] = 1;
  weights[11] = 0;
  Send({.ids = 60'000, .copies = 6'000, .span_ms = 24 * kHour, .latest_copy_ms = 59'000}, weights);
  ASSERT_OK(Router()->Run());
  EXPECT_LE(Disorder(), Lead());
  Judge();
  EXPECT_EQ(CopiesPassed(), 0);
}

TEST_F(SourcePaceTest, EveryPartitionGoesOnThroughKills) {
  Send({.ids = 30'000, .copies = 3'000, .span_ms = 12 * kHour, .latest_copy_ms = 59'000}, Evenly());
  for (int kill = 1; kill <= 8; ++kill) {
    const auto router = Router();
    router->on_look = [&] {
      if (router->looks == 40 * kill) router->state.fatal = absl::AbortedError("killed");
    };
    router->Run().IgnoreError();
    Judge();
  }
  ASSERT_OK(Router()->Run());
  EXPECT_LE(Disorder(), Lead());
  Judge();
  EXPECT_EQ(CopiesPassed(), 0);
}

TEST_F(SourcePaceTest, FailedTransactionsChangeNothing) {
  Send({.ids = 30'000, .copies = 3'000, .span_ms = 12 * kHour, .latest_copy_ms = 59'000}, Evenly());
  const auto router = Router();
  router->on_look = [&] {
    if (router->looks % 17 == 0 && router->looks < 500) router->sink.fail_commits = 1;
  };
  ASSERT_OK(router->Run());
  EXPECT_GT(router->sink.aborts, 5);
  EXPECT_LE(Disorder(), Lead());
  Judge();
  EXPECT_EQ(CopiesPassed(), 0);
}

// Of the past, ahead of its neighbours but not of the clock, ahead of the clock, and none.
TEST_F(SourcePaceTest, WrongTimestampsHoldNothingAndReleaseNothing) {
  Send({.ids = 30'000, .copies = 3'000, .span_ms = 12 * kHour, .latest_copy_ms = 59'000}, Evenly());
  const int64_t now = absl::ToUnixMillis(absl::Now());
  // In sparse partitions a copy may pass whose own timestamp, or that of the first, is wrong.
  std::set<std::string> wrong;
  for (auto& [id, log] : input_.logs) {
    for (test::FakeEntry& entry : log.entries) {
      int64_t& time = entry.record.timestamp_ms;
      const int64_t right = time;
      switch (random_() % 60) {
        case 0:
          time = -1;
          break;
        case 1:
          time = time / 1000;  // seconds
          break;
        case 2:
          time = now - static_cast<int64_t>(random_() % (6 * kHour));
          break;
        case 3:
          time = now + static_cast<int64_t>(random_() % (2 * kHour));
          break;
        default:
          break;
      }
      if (time != right) wrong.insert(*entry.record.value);
    }
  }
  ASSERT_OK(Router()->Run());
  Judge();
  EXPECT_EQ(CopiesPassed(wrong), 0);
}

TEST_F(SourcePaceTest, RecordsWithoutTimestampsAreRouted) {
  for (int i = 0; i < 3'000; ++i) {
    input_.Append(i % partitions_, {std::nullopt, absl::StrCat("id-", next_id_++), -1});
  }
  ASSERT_OK(Router()->Run());
  Judge();
  EXPECT_EQ(CopiesPassed(), 0);
}

TEST_F(SourcePaceTest, ASourceAddedLaterWithABacklogIsWaitedFor) {
  std::vector<int> weights(12, 1);
  weights[11] = 0;
  Send({.ids = 20'000, .copies = 2'000, .span_ms = 12 * kHour, .latest_copy_ms = 59'000}, weights);
  FakeCluster::Log later;
  std::swap(later, input_.logs[11]);
  // Copies of what the others have in their second half.
  for (int32_t id = 0; id < 11; ++id) {
    const FakeCluster::Log& log = input_.logs[id];
    for (size_t i = log.entries.size() / 2; i < log.entries.size(); i += 10) {
      later.entries.push_back(log.entries[i]);
      later.entries.back().record.timestamp_ms += 30'000;
    }
  }
  std::sort(later.entries.begin(), later.entries.end(),
            [](const auto& a, const auto& b) { return a.record.timestamp_ms < b.record.timestamp_ms; });
  auto router = std::make_unique<Life>(input_, Routing(), partitions_);
  for (int32_t id = 0; id < 11; ++id) router->Assign(id);
  size_t quarter = 0;
  for (int32_t id = 0; id < 11; ++id) quarter += input_.logs[id].entries.size() / 4;
  bool is_added = false;
  router->on_look = [&] {
    if (is_added || input_.output.size() < quarter) return;
    is_added = true;
    input_.logs[11] = later;
    router->Assign(11);
  };
  ASSERT_OK(router->Run());
  ASSERT_TRUE(is_added);
  Judge();
  EXPECT_EQ(CopiesPassed(), 0);
}

// Threads that run in turns.
class Turns {
 public:
  explicit Turns(int threads) : running_(static_cast<size_t>(threads), true) {}
  void Await(int me) {
    std::unique_lock<std::mutex> lock(mutex_);
    turned_.wait(lock, [&] { return turn_ == me; });
  }
  void Pass(int me, bool ends = false) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (ends) running_[static_cast<size_t>(me)] = false;
      for (size_t i = 1; i <= running_.size(); ++i) {
        const size_t next = (static_cast<size_t>(me) + i) % running_.size();
        if (!running_[next]) continue;
        turn_ = static_cast<int>(next);
        break;
      }
    }
    turned_.notify_all();
    if (!ends) Await(me);
  }

 private:
  std::mutex mutex_;
  std::condition_variable turned_;
  std::vector<bool> running_;
  int turn_ = 0;
};

// They know of each other what is committed.
TEST_F(SourcePaceTest, TwoInstancesWaitForEachOther) {
  std::vector<int> weights(12, 100);
  weights[2] = 1;
  Send({.ids = 60'000, .copies = 6'000, .span_ms = 24 * kHour, .latest_copy_ms = 59'000}, weights);
  Turns turns(2);
  const auto is_done = [&] {
    return std::all_of(input_.logs.begin(), input_.logs.end(), [&](const auto& log) {
      const auto committed = input_.committed.find(log.first);
      return committed != input_.committed.end() && committed->second.offset >= log.second.end();
    });
  };
  const auto run = [&](int me) {
    turns.Await(me);
    RoutedSources sources;
    sources.SetCount(0, partitions_);
    Life router(input_, Routing(), partitions_);
    router.flows.at(0).sources = &sources;
    for (int32_t id = me; id < partitions_; id += 2) router.Assign(id);
    router.source.on_idle = [&] {
      if (is_done()) router.stop.Request();
    };
    router.on_look = [&] {
      turns.Pass(me);
      // One is often behind with its news.
      if (me == 0 && router.looks % 7 != 0) return;
      SourceStates others;
      for (int32_t id = 1 - me; id < partitions_; id += 2) {
        const Position& committed = input_.committed[id];
        others.emplace_back(TopicPartition{0, id}, CommittedState(committed.offset, committed.metadata,
                                                                  input_.logs[id].end(), absl::Now()));
      }
      sources.Put(others, SteadyNow());
      sources.PutEnds(Ends(), SteadyNow());
    };
    EXPECT_OK(router.Run());
    turns.Pass(me, /*ends=*/true);
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  ASSERT_TRUE(is_done());
  EXPECT_LE(Disorder(), Lead());
  Judge();
  EXPECT_EQ(CopiesPassed(), 0);
}

// What the client knows of it may be older than what the other partitions have.
TEST_F(SourcePaceTest, APartitionIsAtItsEndByANewAnswerOfTheBrokersOnly) {
  std::vector<int> weights(12, 1);
  weights[3] = 0;
  Send({.ids = 12'000, .span_ms = 6 * kHour, .latest_copy_ms = 1}, weights);
  RoutedSources sources;
  const auto router = Router();
  router->flows.at(0).sources = &sources;
  size_t routed_before = 0;
  int idle_rounds = 0;
  router->source.on_idle = [&] {
    if (++idle_rounds == 20) routed_before = input_.output.size();
    if (idle_rounds >= 20) sources.PutEnds(Ends(), SteadyNow());
    if (idle_rounds > 20 && router->source.paused.empty() && input_.output.size() == 12'000)
      router->stop.Request();
  };
  ASSERT_OK(router->Run());
  EXPECT_EQ(routed_before, 0u);
  EXPECT_EQ(input_.output.size(), 12'000u);
}

// All was read in a transaction that failed, and some partitions went to another instance.
TEST_F(SourcePaceTest, APartitionThatIsReadAgainIsNotAtItsEnd) {
  options_.process.commit_interval = absl::Hours(1);
  Send({.ids = 12'000, .span_ms = 6 * kHour, .latest_copy_ms = 1}, Evenly());
  RoutedSources sources;
  sources.SetCount(0, partitions_);
  const auto router = Router();
  router->flows.at(0).sources = &sources;
  const auto is_all_read = [&] {
    return std::all_of(router->tasks.begin(), router->tasks.end(), [&](const auto& task) {
      return task.second->next() == input_.logs[task.first].end();
    });
  };
  int looks_since = -1;
  std::map<TopicPartition, int64_t> committed;
  router->sink.on_commit = [&] {
    if (looks_since >= 0 || !is_all_read()) return;
    router->sink.fail_commits = 1;
    for (const auto& [id, task] : router->tasks) committed[id] = task->committed();
    looks_since = 0;
  };
  router->on_look = [&] {
    sources.PutEnds(Ends(), SteadyNow());
    if (looks_since >= 0 && ++looks_since == 2) {
      for (int32_t id = 0; id < partitions_; id += 2) router->Revoke({id}, /*lost=*/false);
    }
    // Long enough for what is left to be routed.
    if (looks_since == 300) router->stop.Request();
  };
  router->source.on_idle = [] {};
  ASSERT_OK(router->Run());
  ASSERT_EQ(router->sink.aborts, 1);
  for (const auto& [id, task] : router->tasks) {
    EXPECT_LT(committed.at(id), input_.logs[id].end());
    EXPECT_EQ(task->next(), committed.at(id))
        << "partition " << id.partition << " ran ahead of those that are still to be routed";
  }
}

TEST_F(SourcePaceTest, OnePartitionOfAnInstanceThatIsAwayHoldsTheOthersForAWhileOnly) {
  patience_ = absl::Seconds(2);
  Send({.ids = 12'000, .span_ms = 6 * kHour, .latest_copy_ms = 1}, Evenly());
  RoutedSources sources;
  sources.SetCount(0, partitions_);
  const auto router = std::make_unique<Life>(input_, Routing(), partitions_);
  router->flows.at(0).sources = &sources;
  for (int32_t id = 1; id < partitions_; ++id) router->Assign(id);
  sources.SetAnswered(false);  // the brokers are away, perhaps
  size_t routed_before = 0;
  int idle_rounds = 0;
  router->source.on_idle = [&] {
    if (router->source.paused.empty()) return router->stop.Request();
    absl::SleepFor(absl::Milliseconds(5));
    if (sources.answered() || ++idle_rounds < 100) return;
    routed_before = input_.output.size();
    sources.SetAnswered(true);
  };
  std::vector<std::string> passed_over;
  router->on_look = [&] {
    sources.PutEnds(Ends(), SteadyNow());
    passed_over = router->worker.pace().PassedOver();
  };
  ASSERT_OK(router->Run());
  EXPECT_EQ(routed_before, 0u);  // its time is not known at all
  EXPECT_EQ(passed_over, std::vector<std::string>{"orders-0"});
  size_t sent = 0;
  for (int32_t id = 1; id < partitions_; ++id) sent += input_.logs[id].entries.size();
  EXPECT_EQ(input_.output.size(), sent);
  EXPECT_LE(Disorder(), Lead());
}

// As when an open transaction hides the first records of a partition. The others have so few records that
// they look again once in a while, whether they are ahead.
TEST_F(SourcePaceTest, OfATrickleNothingIsHeldForGoodByAPartitionOfWhichNothingIsKnown) {
  patience_ = absl::Seconds(2);
  options_.process.commit_interval = absl::Milliseconds(1);
  const int64_t now = absl::ToUnixMillis(absl::Now());
  for (int32_t id = 1; id < partitions_; ++id) {
    input_.Append(id, {std::nullopt, absl::StrCat("id-", id), now - id});
  }
  RoutedSources sources;
  sources.SetCount(0, partitions_);
  const auto router = Router();
  router->flows.at(0).sources = &sources;
  router->Revoke({0}, /*lost=*/false);
  router->source.on_idle = [] {};
  router->on_look = [&] {
    sources.PutEnds(Ends(), SteadyNow());
    if (input_.output.size() + 1 == static_cast<size_t>(partitions_)) router->stop.Request();
    absl::SleepFor(absl::Milliseconds(1));
  };
  ASSERT_OK(router->Run());
  EXPECT_EQ(router->worker.pace().PassedOver(), std::vector<std::string>{"orders-0"});
}

TEST_F(SourcePaceTest, AStoppedPartitionHoldsTheOthersForAWhileOnly) {
  patience_ = absl::Milliseconds(100);
  Send({.ids = 12'000, .span_ms = 6 * kHour, .latest_copy_ms = 1}, Evenly());
  const auto router = Router();
  bool has_failed = false;
  router->on_look = [&] {
    if (has_failed || input_.output.size() < 3'000) return;
    has_failed = true;
    router->worker.transactions().End(true);
    router->tasks.at({0, 5})->Fail("a policy");
    router->source.Unassign({{0, 5}});
  };
  router->source.on_idle = [&] {
    if (!router->worker.transactions().is_open() && router->source.paused.empty()) router->stop.Request();
  };
  ASSERT_OK(router->Run());
  EXPECT_EQ(router->worker.pace().PassedOver(), std::vector<std::string>{"orders-5"});
  for (const auto& [id, log] : input_.logs) {
    if (id != 5) {
      EXPECT_EQ(input_.committed[id].offset, log.end()) << id.partition;
    }
  }
}

TEST_F(SourcePaceTest, TheDeduplicatorNeedsNoMoreMemoryThanWithoutABacklog) {
  const Stream stream = {.ids = 60'000, .copies = 6'000, .span_ms = 4 * kHour, .latest_copy_ms = 59'000};
  Send(stream, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const auto most_ids = [&](FakeCluster& cluster) {
    Life life(cluster, JudgingOptions(options_), partitions_);
    for (int32_t id = 0; id < partitions_; ++id) life.Assign(id);
    int64_t most = 0;
    life.on_look = [&] { most = std::max(most, life.flows.at(0).stage->memory().used_bytes()); };
    EXPECT_OK(life.Run());
    return most;
  };
  ASSERT_OK(Router()->Run());
  TakeRouted();
  // Without a backlog the topic is in the order of time.
  FakeCluster in_order = routed_;
  for (auto& [id, log] : in_order.logs) {
    std::stable_sort(log.entries.begin(), log.entries.end(), [](const auto& a, const auto& b) {
      return a.record.timestamp_ms < b.record.timestamp_ms;
    });
  }
  const auto live = static_cast<double>(most_ids(in_order));
  EXPECT_LE(static_cast<double>(most_ids(routed_)), 1.1 * live);
}

}  // namespace
}  // namespace lethe
