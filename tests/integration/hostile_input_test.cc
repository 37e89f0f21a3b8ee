// Records that stop or blind a consumer, and what lethe says while it makes no progress.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "connectors/kafka/connector.h"
#include "src/pipeline/daemon/daemon.h"
#include "src/pipeline/report/remarks.h"
#include "tests/support/flow.h"
#include "tests/support/kafka_client.h"
#include "tests/support/shared_broker.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {
namespace {

using testing::HasSubstr;

// A daemon in this process, which calls a lane stalled after a second.
class ImpatientDaemon {
 public:
  explicit ImpatientDaemon(const Flow& flow, std::vector<Property> properties = {}) {
    DaemonOptions options;
    options.process.brokers = SharedBroker().bootstrap();
    options.input = flow.input();
    options.output = flow.output();
    options.process.group = flow.group();
    options.process.instance = flow.group();
    options.record.id = *IdSpec::Parse("json:/id");
    options.stage.memory_limit_bytes = 1 << 20;
    options.process.stall_patience = absl::Seconds(1);
    options.process.properties = std::move(properties);
    daemon_ = lethe::Daemon::Create(std::make_unique<kafka::KafkaConnector>(), options).value();
    thread_ = std::thread([this] { status_ = daemon_->Run(); });
  }
  ~ImpatientDaemon() {
    daemon_->Stop();
    thread_.join();
    EXPECT_OK(status_);
  }

  DaemonReport Report() const { return daemon_->Report(); }
  std::string NotReady() const { return absl::StrJoin(Report().not_ready, "\n"); }
  int64_t Committed() const {
    const DaemonReport report = Report();
    if (report.lanes.empty() || report.lanes[0].partitions.empty()) return -1;
    return report.lanes[0].partitions[0].log.committed;
  }

 private:
  std::unique_ptr<lethe::Daemon> daemon_;
  absl::Status status_;
  std::thread thread_;
};

bool Await(const std::function<bool()>& condition) { return WaitUntil(condition, absl::Seconds(30)); }

TEST(ProgressTest, Rule22ALaneThatCannotFetchIsNotReadyAndNamesThePlace) {
  Flow flow({LETHE_PROGRAM, 1, {{"max.message.bytes", "4000000"}}, {}});
  flow.SendIds("a", 1, 10);
  // Larger than what the client takes from a connection.
  const ImpatientDaemon daemon(flow, {{"message.max.bytes", "900000"},
                                      {"receive.message.max.bytes", "1000000"},
                                      {"fetch.max.bytes", "900000"},
                                      {"fetch.message.max.bytes", "900000"}});
  ASSERT_TRUE(Await([&] { return daemon.Committed() == 10 && daemon.NotReady().empty(); }));
  Record large = WithId("large");
  large.value->append(2'000'000, ' ');
  flow.Send({{large}});
  ASSERT_TRUE(Await([&] { return absl::StrContains(daemon.NotReady(), "no progress"); }));
  EXPECT_THAT(daemon.NotReady(), HasSubstr(absl::StrCat(flow.input(), "-0 stands at offset 10")));
}

// Behind the high watermark, but not readable: a transaction of the producer is open for as long as it likes.
TEST(ProgressTest, Rule22ALaneThatWaitsForAnOpenTransactionOfTheInputIsReady) {
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  const ImpatientDaemon daemon(flow);
  flow.SendIds("a", 1, 10);
  ASSERT_TRUE(Await([&] { return daemon.Committed() == 10 && daemon.NotReady().empty(); }));
  auto producer = TransactionalProducer::Start(SharedBroker().bootstrap(), flow.input());
  ASSERT_OK(producer);
  ASSERT_OK((*producer)->Begin());
  ASSERT_OK((*producer)->Produce(flow.input(), {{WithId("open", 0)}}));
  flow.SendIds("b", 1, 10);
  // It is told, for longer than a lane that stands for another reason would be ready.
  ASSERT_TRUE(Await([&] {
    const std::vector<std::string> remarks = Remarks(daemon.Report());
    EXPECT_EQ(daemon.NotReady(), "");
    return remarks.size() == 1 &&
           absl::StrContains(remarks[0], absl::StrCat(flow.input(), "-0 waits at offset 10 since "));
  }));
  EXPECT_GT(daemon.Report().lanes[0].partitions[0].log.lag(), 0);
  EXPECT_EQ(daemon.Committed(), 10);
  ASSERT_OK((*producer)->Commit());
  ASSERT_TRUE(Await([&] { return daemon.Committed() >= 21 && Remarks(daemon.Report()).empty(); }));
}

// Zeros, which compress to nothing; the topic has the broker compress them.
Record Bulky(size_t bytes, int32_t partition = 0) {
  Record record = WithId(absl::StrCat("bulky ", bytes), partition);
  record.value->append(bytes, ' ');
  return record;
}

// The client takes no batch that decompresses to more.
const Args kSmallClient = {"--kafka=message.max.bytes=400000", "--kafka=receive.message.max.bytes=500000",
                           "--kafka=fetch.max.bytes=400000", "--kafka=fetch.message.max.bytes=400000"};

TEST(UnreadableTest, Rule23ABatchThatCannotBeReadHoldsItsPartitionAloneOrIsPassedOver) {
  Flow flow({LETHE_PROGRAM, 2, {{"compression.type", "zstd"}, {"max.message.bytes", "4000000"}}, {}});
  flow.SendIds("a", 1, 10);
  // Two records of one batch.
  flow.Send({{Bulky(300'000), Bulky(300'000)}});
  flow.SendIds("b", 1, 10);
  {
    const auto daemon = flow.Start(kSmallClient);
    ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_partition_failed") == 1; }))
        << daemon->Log();
    flow.SendIds("c", 1, 10, 1);
    ASSERT_TRUE(daemon->Await([&] { return flow.Committed()[1].offset == 10; })) << daemon->Log();
    const HttpAnswer ready = daemon->Get("/readyz");
    EXPECT_EQ(ready.status, 503);
    EXPECT_THAT(ready.body, HasSubstr(absl::StrCat(flow.input(), "-0 offset 10")));
    EXPECT_EQ(flow.Committed()[0].offset, 10);
    EXPECT_TRUE(daemon->Stop());
  }
  const Args drop = kSmallClient + Args{"--on-unreadable=drop"};
  {
    const auto daemon = flow.Start(drop);
    ASSERT_TRUE(daemon->Await([&] { return flow.Committed()[0].offset == 22; })) << daemon->Log();
    EXPECT_TRUE(daemon->Await(
        [&] { return daemon->Metric("lethe_records_total", {"verdict=\"unreadable\""}) == 2; }));
    EXPECT_EQ(daemon->Metric("lethe_record_actions_total", {"action=\"dropped\""}), 2);
    EXPECT_EQ(daemon->Get("/readyz").status, 200);
    EXPECT_TRUE(daemon->Stop());
  }
  EXPECT_EQ(flow.OutputIds().size(), 30u);
  // A restart reads past it, too, whatever the policy says now, and knows what came behind it.
  flow.SendIds("b", 1, 10);
  EXPECT_EQ(flow.RunToEnd(kSmallClient).exit_code, 0);
  EXPECT_EQ(flow.OutputIds().size(), 30u);
  EXPECT_EQ(flow.Committed()[0].offset, 32);
}

// What a process has of memory, in MiB.
struct MemoryOf {
  explicit MemoryOf(pid_t pid) {
    std::ifstream status(absl::StrCat("/proc/", pid, "/status"));
    for (std::string line; std::getline(status, line);) {
      int64_t kib = 0;
      if (std::sscanf(line.c_str(), "VmHWM: %" SCNd64, &kib) == 1) peak_mib = kib >> 10;
      if (std::sscanf(line.c_str(), "VmRSS: %" SCNd64, &kib) == 1) now_mib = kib >> 10;
    }
    EXPECT_GT(now_mib, 0) << "no VmRSS of process " << pid;
    EXPECT_GE(peak_mib, now_mib);
  }

  int64_t peak_mib = 0;
  int64_t now_mib = 0;
};

// What the README says to plan for a lane beside the filters' memory.
constexpr int64_t kMibOfALane = 192;
constexpr int64_t kMibOfFilters = 16;

// Sends records a chunk at a time, has lethe read all of them, and returns its peak.
int64_t PeakMibAfter(Flow& flow, const std::vector<Record>& chunk, int chunks) {
  for (int i = 0; i < chunks; ++i) flow.Send(chunk);
  const auto all = static_cast<int64_t>(chunk.size()) * chunks;
  const auto daemon = flow.Start({absl::StrCat("--memory=", kMibOfFilters, "MiB")});
  EXPECT_TRUE(daemon->Await([&] { return flow.Committed()[0].offset == all; })) << daemon->Log();
  const int64_t peak = MemoryOf(daemon->process().pid()).peak_mib;
  std::cout << all << " records: " << peak << " MiB\n";
  EXPECT_TRUE(daemon->Stop());
  return peak;
}

TEST(MemoryTest, RecordsOfLargeHeadersAreBounded) {
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  Record record = WithId("a");
  record.value = "";
  record.headers = {{"large", std::string(5000, 'h')}};
  EXPECT_LT(PeakMibAfter(flow, std::vector<Record>(20'000, record), 5), kMibOfFilters + kMibOfALane);
}

// The broker packs a hundred of them into as many bytes.
TEST(MemoryTest, RecordsOfNothingAreBounded) {
  Flow flow({LETHE_PROGRAM, 1, {{"compression.type", "zstd"}}, {}});
  Record record = WithId("a");
  record.value = "";
  EXPECT_LT(PeakMibAfter(flow, std::vector<Record>(200'000, record), 8), kMibOfFilters + kMibOfALane);
}

// Batches of a few hundred bytes to some KB that unpack to 5 MB each.
struct Bombs {
  std::string codec;
  bool in_header = false;
  int light_before = 0;  // small records in front of them
  int64_t mib_more = 0;  // beside the usual
};

void PrintTo(const Bombs& bombs, std::ostream* out) {
  *out << bombs.codec << (bombs.in_header ? "InHeaders" : "") << (bombs.light_before > 0 ? "Behind" : "");
}

class BombTest : public testing::TestWithParam<Bombs> {};

TEST_P(BombTest, Rule23AFetchIsBoundedInWhatItBecomes) {
  constexpr int kPartitions = 4;
  constexpr int kBombs = 100;
  constexpr size_t kBytes = 5'000'000;
  const KafkaClient::Configs large = {{"max.message.bytes", "8000000"}};
  Flow flow({LETHE_PROGRAM, kPartitions, large, large});
  for (int32_t p = 0; p < kPartitions && GetParam().light_before > 0; ++p) {
    flow.SendIds(absl::StrCat("light", p, "-"), 1, GetParam().light_before, p);
  }
  auto producer =
      TransactionalProducer::Start(SharedBroker().bootstrap(), flow.input(),
                                   {{"compression.codec", GetParam().codec}, {"batch.num.messages", "1"}});
  ASSERT_OK(producer);
  ASSERT_OK((*producer)->Begin());
  for (int i = 0; i < kBombs; ++i) {
    Record bomb = WithId(absl::StrCat("bomb", i), i % kPartitions);
    if (GetParam().in_header) {
      bomb.headers = {{"large", std::string(kBytes, ' ')}};
    } else {
      bomb.value->append(kBytes, ' ');
    }
    const absl::Status produced = (*producer)->Produce(flow.input(), {{bomb}});
    ASSERT_OK(produced);
  }
  ASSERT_OK((*producer)->Commit());
  // A marker of the transaction is behind each partition's.
  const int64_t all = GetParam().light_before + kBombs / kPartitions + 1;
  const auto daemon = flow.Start({absl::StrCat("--memory=", kMibOfFilters, "MiB")});
  ASSERT_TRUE(daemon->Await([&] {
    const std::vector<CommittedOffset> committed = flow.Committed();
    return absl::c_all_of(committed, [&](const CommittedOffset& each) { return each.offset == all; });
  })) << daemon->Log();
  const int64_t peak = MemoryOf(daemon->process().pid()).peak_mib;
  std::cout << testing::PrintToString(GetParam()) << ": " << peak << " MiB\n";
  EXPECT_LT(peak, kMibOfFilters + kMibOfALane + GetParam().mib_more);
  // Counted after the commit.
  EXPECT_TRUE(daemon->Await([&] {
    return daemon->Metric("lethe_records_total", {"verdict=\"unique\""}) ==
           kPartitions * GetParam().light_before + kBombs;
  })) << daemon->Log();
  EXPECT_TRUE(daemon->Stop());
}

// zstd reaches 20,000 to 1, gzip 1,000, lz4 250, snappy 21.
INSTANTIATE_TEST_SUITE_P(Codecs, BombTest,
                         testing::Values(Bombs{"zstd"}, Bombs{"gzip"}, Bombs{"lz4"}, Bombs{"snappy"},
                                         Bombs{"zstd", true}, Bombs{"zstd", false, 20'000, 512},
                                         Bombs{"zstd", true, 20'000, 512}),
                         testing::PrintToStringParamName());

// gzip has no limit in the client. Each is a batch of 90 KB; one at a time is unpacked.
TEST(MemoryTest, BatchesThatUnpackToALotAreHeldOneAtATime) {
  constexpr int kBytes = 90'000'000;
  constexpr int kRecords = 3;
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  auto producer =
      TransactionalProducer::Start(SharedBroker().bootstrap(), flow.input(), {{"compression.codec", "gzip"}});
  ASSERT_OK(producer);
  ASSERT_OK((*producer)->Begin());
  for (int i = 0; i < kRecords; ++i) {
    const absl::Status produced =
        (*producer)->Produce(flow.input(), {{Bulky(kBytes + static_cast<size_t>(i))}});
    ASSERT_OK(produced);
  }
  ASSERT_OK((*producer)->Commit());
  const auto daemon =
      flow.Start({absl::StrCat("--memory=", kMibOfFilters, "MiB"), "--on-undeliverable=drop"});
  ASSERT_TRUE(daemon->Await([&] {
    return daemon->Metric("lethe_records_total", {"verdict=\"undeliverable\""}) == kRecords;
  })) << daemon->Log();
  constexpr int64_t kMibOfOne = kBytes >> 20;
  const auto peak = MemoryOf(daemon->process().pid()).peak_mib;
  std::cout << kRecords << " records: " << peak << " MiB\n";
  EXPECT_LT(peak, kMibOfFilters + kMibOfALane + 2 * kMibOfOne);
  EXPECT_TRUE(daemon->Await([&] { return MemoryOf(daemon->process().pid()).now_mib < kMibOfALane; }));
  EXPECT_TRUE(daemon->Stop());
}

TEST(RemarksTest, AWrongIdIsAnErrorOfCheckAndReportedAtRunTime) {
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  flow.SendIds("a", 1, 200);
  const Finished check = flow.RunCommand("check", {"--id=json:/nope"});
  EXPECT_EQ(check.exit_code, 2) << check.out << check.err;
  const auto daemon = flow.Start({"--id=json:/nope"});
  ASSERT_TRUE(daemon->Await([&] {
    return absl::StrContains(daemon->Get("/readyz").body, "200 of 200 records have no usable id");
  })) << daemon->Log();
  EXPECT_EQ(daemon->Get("/readyz").status, 200);
  EXPECT_THAT(daemon->Log(), HasSubstr("have no usable id at json:/nope"));
  EXPECT_TRUE(daemon->Stop());
}

TEST(RemarksTest, AFloodOfIdsIsReportedAsNoFault) {
  Flow flow({LETHE_PROGRAM, 2, {}, {}});
  flow.SendIds("few", 1, 100, 1);
  const auto daemon = flow.Start({"--memory=256KiB", "--engine=exact"});
  int sent = 0;
  ASSERT_TRUE(daemon->Await([&] {
    flow.SendIds("flood", sent + 1, sent + 5000);
    sent += 5000;
    return absl::StrContains(daemon->Get("/readyz").body, "the memory limit is reached");
  })) << daemon->Log();
  EXPECT_EQ(daemon->Get("/readyz").status, 200);
  EXPECT_THAT(daemon->Log(), HasSubstr("the memory limit is reached"));
  EXPECT_TRUE(daemon->Stop());
}

}  // namespace
}  // namespace lethe::test
