// Memory and CPU stay bounded: when the output stalls, under load, with many partitions, and when idle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "src/pipeline/clock/steady_time.h"
#include "tests/support/flow.h"
#include "tests/support/kafka_client.h"
#include "tests/support/shared_broker.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {
namespace {

using testing::HasSubstr;
using testing::Not;

// What a daemon of one lane may take in all, with --memory=64MiB: the filters, 32 MiB that are fetched ahead
// and what is on its way, 4 MiB of records that the output has not taken yet and the client's books of them,
// and some 30 MiB for the program itself.
constexpr int64_t kMostBytes = int64_t{256} << 20;
const Args kMemory = {"--memory=64MiB"};

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The most memory that it ever had.
int64_t PeakBytes(Daemon& daemon) {
  const std::string status = ReadFile(absl::StrCat("/proc/", daemon.process().pid(), "/status"));
  for (const absl::string_view line : absl::StrSplit(status, '\n')) {
    if (!absl::StartsWith(line, "VmHWM:")) continue;
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    int64_t kilobytes = 0;
    EXPECT_TRUE(absl::SimpleAtoi(words[1], &kilobytes));
    return kilobytes << 10;
  }
  ADD_FAILURE() << "no VmHWM in\n" << status;
  return 0;
}

// CPU time in user and system mode, from a file as /proc/PID/stat: fields 14 and 15 of proc(5), behind the
// name, which is in brackets.
absl::Duration CpuTimeIn(const std::string& stat) {
  const std::vector<std::string> fields = absl::StrSplit(stat.substr(stat.rfind(')') + 2), ' ');
  int64_t user = 0, system = 0;
  EXPECT_TRUE(fields.size() > 12 && absl::SimpleAtoi(fields[11], &user) &&
              absl::SimpleAtoi(fields[12], &system));
  return absl::Seconds(static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK)));
}

absl::Duration CpuTime(Daemon& daemon) {
  clockid_t clock;
  timespec used{};
  EXPECT_EQ(clock_getcpuclockid(daemon.process().pid(), &clock), 0);
  EXPECT_EQ(clock_gettime(clock, &used), 0);
  return absl::DurationFromTimespec(used);
}

// Of lethe's own threads, without those of librdkafka.
absl::Duration CpuTimeOfOwnThreads(Daemon& daemon) {
  absl::Duration sum;
  const std::string tasks = absl::StrCat("/proc/", daemon.process().pid(), "/task");
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    const std::string stat = ReadFile(task.path() / "stat");
    if (absl::StrContains(stat, "(lethe)")) sum += CpuTimeIn(stat);
  }
  return sum;
}

// Sends records of a kilobyte, with ids prefix + 0 ... count - 1, evenly to the partitions. What they say
// does not compress.
void SendKilobytes(Flow& flow, const std::string& prefix, int count, int partitions) {
  uint64_t noise = 1;
  for (int begin = 0; begin < count; begin += 20'000) {
    std::vector<Record> records;
    for (int i = begin; i < std::min(count, begin + 20'000); ++i) {
      std::string text;
      while (text.size() < 950) {
        noise = noise * 6364136223846793005 + 1442695040888963407;
        absl::StrAppend(&text, absl::Hex(noise));
      }
      records.push_back(WithId(absl::StrCat(prefix, i), i % partitions));
      records.back().value = absl::StrCat(R"({"id":")", prefix, i, R"(","text":")", text, R"("})");
    }
    flow.Send(records);
  }
}

testing::AssertionResult StaysBounded(Daemon& daemon) {
  const int64_t peak = PeakBytes(daemon);
  std::cout << "peak memory " << (peak >> 20) << " MiB\n";
  if (peak > 0 && peak < kMostBytes) return testing::AssertionSuccess();
  return testing::AssertionFailure() << peak << " bytes, the bound is " << kMostBytes;
}

// 280 MB at full speed.
TEST(LimitsTest, MemoryIsBoundedUnderLoad) {
  Flow flow({LETHE_PROGRAM, 4, {}, {}});
  SendKilobytes(flow, "a", 280'000, 4);
  const auto daemon = flow.Start(kMemory);
  ASSERT_TRUE(AwaitJudged(*daemon, 1));
  const double judged = daemon->Metric("lethe_records_total");
  const absl::Time begin = SteadyNow();
  ASSERT_TRUE(AwaitJudged(*daemon, 280'000));
  std::cout << (280'000 - judged) / 1000 / absl::ToDoubleSeconds(SteadyNow() - begin) << " MB/s\n";
  EXPECT_TRUE(StaysBounded(*daemon));
  EXPECT_TRUE(daemon->Stop());
}

TEST(LimitsTest, MemoryIsBoundedWithManyPartitions) {
  Flow flow({LETHE_PROGRAM, 64, {}, {}});
  SendKilobytes(flow, "a", 100'000, 64);
  const auto daemon = flow.Start(kMemory);
  ASSERT_TRUE(AwaitJudged(*daemon, 100'000));
  EXPECT_TRUE(StaysBounded(*daemon));
  EXPECT_LE(daemon->Metric("lethe_memory_used_bytes"), 64 << 20);
  EXPECT_TRUE(daemon->Stop());
}

// The filters of partitions that moved to another instance are kept for their return, but not while others
// want their memory.
TEST(LimitsTest, FiltersThatStayGetTheMemoryOfThoseWhosePartitionsMovedAway) {
  constexpr int kPartitions = 4;
  Flow flow({LETHE_PROGRAM, kPartitions, {}, {}});
  int sent = 0;
  const auto send = [&](int ids) {
    for (int p = 0; p < kPartitions; ++p) {
      flow.SendIds(absl::StrCat("p", p, "-"), sent + 1, sent + ids, p);
    }
    sent += ids;
  };
  constexpr int kLimit = 1 << 20;
  constexpr int kFilters = kLimit / 8 * 7;  // the rest is the audit's
  // Of an engine that grows by small steps, and so takes what there is.
  const auto with_name = [](const std::string& instance) {
    return Args{"--memory=1MiB", "--engine=exact", "--instance=" + instance,
                "--kafka=session.timeout.ms=30000"};  // nobody is thrown out for being slow
  };
  const auto one = flow.Start(with_name("one"));
  // All of them alike, so that they are of one size.
  while (one->Metric("lethe_filter_memory_limit_hits_total") == 0) {
    ASSERT_LT(sent, 50'000) << "the limit is too high to tell anything";
    send(1000);
    ASSERT_TRUE(AwaitJudged(*one, sent * kPartitions));
  }
  const auto two = flow.Start(with_name("two"));
  ASSERT_TRUE(two->AwaitReady()) << two->Log();
  std::string metrics;
  const auto owned = [&] { return MetricSum(metrics, "lethe_filter_memory_bytes", {}); };
  const auto used = [&] { return MetricSum(metrics, "lethe_memory_used_bytes", {}); };
  // By its name the second instance comes behind the first, so that the last two partitions go to it.
  ASSERT_TRUE(one->Await([&] {
    metrics = one->Get("/metrics").body;
    return MetricSum(metrics, "lethe_filter_memory_bytes", {"partition=\"0\""}) > 0 &&
           MetricSum(metrics, "lethe_filter_memory_bytes", {"partition=\"3\""}) == 0;
  })) << one->Log();
  const double kept = used() - owned();
  ASSERT_GT(kept, kLimit / 8);
  // More than there is beside what was kept.
  ASSERT_TRUE(one->Await([&] {
    send(500);
    metrics = one->Get("/metrics").body;
    return owned() > kFilters - kept && absl::StrContains(one->Log(), "dropped: others need the memory");
  })) << owned()
      << " of " << used() << ", and " << kept << " were kept\n"
      << one->Log();
  EXPECT_LE(used(), kLimit);
  EXPECT_TRUE(two->Stop());
  EXPECT_TRUE(one->Stop());
}

// 256 MiB of keys, each of them another, within the interval of one transaction.
TEST(LimitsTest, MemoryIsBoundedWithLargeCounterKeys) {
  constexpr int kRecords = 4096;
  constexpr size_t kKeyBytes = size_t{64} << 10;
  Flow flow({LETHE_PROGRAM, 4, {}, {}});
  const std::string counters = flow.input() + "-counters";
  ASSERT_OK(SharedClient().CreateTopic(counters, 4, {{"retention.ms", "-1"}}));
  for (int begin = 0; begin < kRecords; begin += 256) {
    std::vector<Record> records;
    for (int i = begin; i < begin + 256; ++i) {
      records.push_back(WithId(absl::StrCat(i), i % 4));
      records.back().value =
          absl::StrCat(R"({"id":")", i, R"(","n":1,"page":")", i, "-", std::string(kKeyBytes, 'p'), R"("})");
    }
    flow.Send(records);
  }
  const auto daemon = flow.Start({"--memory=64MiB", "--commit-interval=10s",
                                  "--counter=name=counter,key=json:/page,delta=json:/n,output=" + counters});
  ASSERT_TRUE(AwaitJudged(*daemon, kRecords));
  EXPECT_TRUE(StaysBounded(*daemon));
  // 16 MiB, and what a batch may add to them.
  EXPECT_GE(daemon->Metric("lethe_transactions_committed_total"), 256 / (16 + 5));
  EXPECT_EQ(daemon->Metric("lethe_transactions_aborted_total"), 0) << daemon->Log();
  EXPECT_TRUE(daemon->Stop());
  const std::vector<int64_t> ends = SharedClient().EndOffsets(counters, Isolation::kReadCommitted).value();
  EXPECT_GE(std::accumulate(ends.begin(), ends.end(), int64_t{0}), kRecords);
}

// Only what goes to the output is stuck; the input flows on, and lethe goes on fetching it.
TEST(LimitsTest, MemoryIsBoundedWhenTheOutputStandsStill) {
  const SharedWireToBroker wire = SharedWire();
  Flow flow({LETHE_PROGRAM, 4, {}, {}});
  SendKilobytes(flow, "a", 50'000, 4);
  const auto daemon = flow.Start({"--memory=64MiB", "--brokers=" + wire.bootstrap, "--commit-interval=10s"});
  // Between two transactions: one that is nearly full would be ended with little in the queue.
  ASSERT_TRUE(daemon->Await([&] {
    return absl::c_all_of(flow.Committed(),
                          [](const CommittedOffset& each) { return each.offset == 12'500; });
  })) << daemon->Log();
  const absl::Cleanup release = [&] { wire.proxy.SetStallingProducers(false); };
  wire.proxy.SetStallingProducers(true);
  SendKilobytes(flow, "b", 150'000, 4);
  // All that may wait for the output does.
  ASSERT_TRUE(daemon->Await(
      [&] { return daemon->Metric("lethe_client_queued_bytes", {"client=\"producer\""}) >= 3 << 20; }));
  const double judged = daemon->Metric("lethe_records_total");
  EXPECT_LT(judged, 200'000);
  EXPECT_TRUE(StaysBounded(*daemon));
  wire.proxy.SetStallingProducers(false);
  ASSERT_TRUE(AwaitJudged(*daemon, 200'000));
  EXPECT_TRUE(StaysBounded(*daemon));
  EXPECT_TRUE(daemon->Stop());
  EXPECT_TRUE(flow.ExactlyOnce());
}

// While it waits for the output, a lane does not poll: the client gives its partitions back in the end. When
// the output goes on, what was under way is aborted, and the lane joins again.
TEST(LimitsTest, AnOutputThatStandsStillBeyondThePollIntervalLosesNothing) {
  const SharedWireToBroker wire = SharedWire();
  Flow flow({LETHE_PROGRAM, 2, {}, {}});
  const auto daemon = flow.Start({"--brokers=" + wire.bootstrap, "--kafka=session.timeout.ms=3000",
                                  "--kafka=max.poll.interval.ms=3000"});
  flow.SendIds("a", 1, 1000, 0);
  ASSERT_TRUE(AwaitJudged(*daemon, 1000));
  const absl::Cleanup release = [&] { wire.proxy.SetStallingProducers(false); };
  wire.proxy.SetStallingProducers(true);
  flow.SendIds("b", 1, 1000, 1);
  ASSERT_TRUE(daemon->AwaitLog("maximum poll interval (3000ms) exceeded"));
  wire.proxy.SetStallingProducers(false);
  ASSERT_TRUE(daemon->Await([&] { return flow.Committed()[1].offset == 1000; })) << daemon->Log();
  flow.SendIds("b", 500, 1500, 1);
  ASSERT_TRUE(daemon->Await([&] { return flow.Committed()[1].offset == 2001; })) << daemon->Log();
  EXPECT_TRUE(daemon->Stop());
  EXPECT_TRUE(flow.ExactlyOnce());
}

// However long its interval, a transaction has at most 250,000 records.
TEST(LimitsTest, ATransactionThatNothingEndsIsCommitted) {
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  flow.SendIds("a", 1, 1'000'000);
  const auto daemon = flow.Start({"--commit-interval=10s"});
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") == 1'000'000; }));
  EXPECT_GE(daemon->Metric("lethe_transactions_committed_total"), 4);
  EXPECT_TRUE(daemon->Stop());
}

// Nor does a request to stop wait for the end of a long interval, when nothing more comes in.
TEST(LimitsTest, AStopIsSeenInTheMiddleOfALongInterval) {
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  // A drained stream with counters stays open for the interval.
  const std::string counts = UniqueName("counts");
  ASSERT_OK(SharedClient().CreateTopic(counts, 1));
  const auto daemon =
      flow.Start({"--commit-interval=10s", "--counter=name=ids,key=json:/id,output=" + counts});
  ASSERT_TRUE(daemon->AwaitReady());
  flow.SendIds("a", 1, 10);
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_batch_records_sum") == 10; }));
  EXPECT_EQ(daemon->Metric("lethe_transactions_committed_total"), 0);
  EXPECT_TRUE(daemon->Stop());
  EXPECT_EQ(flow.Committed()[0].offset, 10);
}

// Less than 1 % of a core over five seconds: with one partition, with many, and with two stages.
TEST(LimitsTest, AnIdleDaemonUsesHardlyAnyCpu) {
  Flow of_one({LETHE_PROGRAM, 1, {}, {}}), of_many({LETHE_PROGRAM, 64, {}, {}}),
      of_two_stages({LETHE_PROGRAM, 4, {}, {}});
  std::vector<std::unique_ptr<Daemon>> daemons;
  for (Flow* flow : {&of_one, &of_many, &of_two_stages}) {
    daemons.push_back(flow->Start(flow == &of_two_stages ? Args{"--scope=topic"} : Args{}));
    ASSERT_TRUE(daemons.back()->AwaitReady());
    flow->SendIds("a", 1, 100);
    ASSERT_TRUE(AwaitJudged(*daemons.back(), 100));
  }
  // For some seconds behind the last record they ask more often whether there are more.
  for (const auto& daemon : daemons) {
    EXPECT_TRUE(daemon->Await([&] {
      const absl::Duration used = CpuTime(*daemon);
      absl::SleepFor(absl::Seconds(1));
      return CpuTime(*daemon) - used < absl::Milliseconds(12);
    }));
  }
  std::vector<absl::Duration> before;
  for (const auto& daemon : daemons) before.push_back(CpuTime(*daemon));
  absl::SleepFor(absl::Seconds(5));
  for (size_t i = 0; i < daemons.size(); ++i) {
    const absl::Duration used = CpuTime(*daemons[i]) - before[i];
    std::cout << absl::FormatDuration(used) << " of CPU in 5 s\n";
    EXPECT_LT(used, absl::Milliseconds(50)) << "daemon " << i;
  }
  for (const auto& daemon : daemons) EXPECT_TRUE(daemon->Stop());
}

// Long before the session times out.
TEST(LimitsTest, ABrokerThatDoesNotAnswerIsNamed) {
  Flow flow({LETHE_PROGRAM, 2, {}, {}});
  const auto daemon = flow.Start({"--kafka=session.timeout.ms=45000"});
  ASSERT_TRUE(daemon->AwaitReady());
  {
    const absl::Cleanup go_on = [] { kill(SharedBroker().pid(), SIGCONT); };
    ASSERT_EQ(kill(SharedBroker().pid(), SIGSTOP), 0);
    EXPECT_TRUE(daemon->Await([&] {
      const HttpAnswer ready = daemon->Get("/readyz");
      return ready.status == 503 && absl::StrContains(ready.body, "have not told where logs end");
    })) << daemon->Get("/readyz").body;
    // Nor is it said that there is no lag.
    EXPECT_TRUE(std::isnan(daemon->Metric("lethe_lag_records")));
    const std::string status = daemon->Get("/status").body;
    EXPECT_THAT(status, HasSubstr(R"("lag_records":null)"));
    EXPECT_THAT(status, HasSubstr(R"("phase":"unknown")"));
    EXPECT_THAT(status, Not(HasSubstr(R"("phase":"active")")));
    EXPECT_THAT(status, Not(HasSubstr(R"("lag_records":0)")));
  }
  EXPECT_TRUE(daemon->AwaitReady());
  EXPECT_EQ(daemon->Metric("lethe_lag_records"), 0);
  flow.SendIds("a", 1, 100);
  EXPECT_TRUE(daemon->Await([&] { return static_cast<bool>(flow.ExactlyOnce()); }));
  EXPECT_TRUE(daemon->Stop());
}

// The last, since all others share this broker: it stands still in the middle of the stream.
TEST(LimitsTest, MemoryIsBoundedWhenTheBrokerStandsStill) {
  Flow flow({LETHE_PROGRAM, 4, {}, {}});
  SendKilobytes(flow, "a", 100'000, 4);
  const auto daemon = flow.Start(kMemory);
  ASSERT_TRUE(AwaitJudged(*daemon, 1));
  ASSERT_EQ(kill(SharedBroker().pid(), SIGSTOP), 0);
  absl::SleepFor(absl::Seconds(3));
  // A thread of librdkafka's producer wakes up every millisecond while what it has sent is not answered.
  const absl::Duration before = CpuTimeOfOwnThreads(*daemon);
  absl::SleepFor(absl::Seconds(2));
  const absl::Duration used = CpuTimeOfOwnThreads(*daemon) - before;
  EXPECT_TRUE(StaysBounded(*daemon));
  ASSERT_EQ(kill(SharedBroker().pid(), SIGCONT), 0);
  EXPECT_LT(used, absl::Milliseconds(50)) << "it spins while it waits";
  ASSERT_TRUE(AwaitJudged(*daemon, 100'000));
  EXPECT_TRUE(StaysBounded(*daemon));
  EXPECT_TRUE(daemon->Stop());
  EXPECT_TRUE(flow.ExactlyOnce());
}

}  // namespace
}  // namespace lethe::test
