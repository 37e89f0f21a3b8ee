// Restore with snapshots: the rules, each played as the schedule that breaks it otherwise.
#include "src/pipeline/snapshots/snapshots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "tests/support/flow.h"
#include "tests/support/kafka_client.h"
#include "tests/support/retrying_clients.h"
#include "tests/support/seed.h"
#include "tests/support/shared_broker.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class Folder {
 public:
  Folder() {
    std::string pattern = std::filesystem::temp_directory_path() / "lethe-snapshots-XXXXXX";
    top_ = mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(top_); }

  // Made by lethe.
  std::string path() const { return top_ + "/snapshots"; }
  std::vector<std::string> files() const {
    std::vector<std::string> files;
    if (!std::filesystem::exists(path())) return files;
    for (const auto& entry : std::filesystem::directory_iterator(path())) files.push_back(entry.path());
    return files;
  }
  Args args() const { return {"--snapshots-to=folder:" + path(), "--snapshots-every=1s"}; }

 private:
  std::string top_;
};

std::string MetadataField(const CommittedOffset& committed, const std::string& name) {
  for (absl::string_view word : absl::StrSplit(committed.metadata, ' ')) {
    if (absl::ConsumePrefix(&word, name + "=")) return std::string(word);
  }
  return "";
}

// Ids that were never sent, some at a time, until all partitions' commits name a snapshot other than before.
class Sender {
 public:
  Sender(Flow& flow, int partitions) : flow_(flow), partitions_(partitions) {}

  void Send(int per_partition) {
    std::vector<Record> records;
    for (int i = 0; i < per_partition; ++i) {
      for (int32_t p = 0; p < partitions_; ++p) records.push_back(WithId(absl::StrCat("n", sent_++), p));
    }
    flow_.Send(records);
  }
  testing::AssertionResult AwaitSnapshots(Daemon& daemon) {
    std::vector<std::string> before;
    for (const CommittedOffset& committed : flow_.Committed())
      before.push_back(MetadataField(committed, "s"));
    return daemon.Await([&] {
      Send(20);
      const std::vector<CommittedOffset> committed = flow_.Committed();
      for (size_t p = 0; p < before.size(); ++p) {
        const std::string now = MetadataField(committed[p], "s");
        if (now.empty() || now == before[p]) return false;
      }
      return true;
    });
  }
  int64_t sent() const { return sent_; }

 private:
  Flow& flow_;
  const int partitions_;
  int64_t sent_ = 0;
};

// Sends all that was sent again: nothing of it may come out a second time.
void SendAllAgain(Flow& flow) {
  std::vector<Record> again = flow.Input();
  for (Record& record : again) record.offset = -1;
  flow.Send(again);
}

TEST(SnapshotsTest, Rule13ARestoreBeginsAtTheSnapshotThatTheCommitNames) {
  Flow flow({LETHE_PROGRAM, 2, {}, {}});
  const Folder folder;
  Sender sender(flow, 2);
  sender.Send(3000);
  {
    const auto daemon = flow.Start(folder.args());
    ASSERT_TRUE(sender.AwaitSnapshots(*daemon));
    EXPECT_GE(daemon->Metric("lethe_snapshots_total"), 2);
    EXPECT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_snapshot_offset") > 0; }));
    sender.Send(500);
    ASSERT_TRUE(daemon->Await(
        [&] { return daemon->Metric("lethe_records_total") >= static_cast<double>(sender.sent()); }));
  }  // killed
  struct stat about = {};
  ASSERT_EQ(stat(folder.path().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0700u);
  for (const std::string& file : folder.files()) {
    ASSERT_EQ(stat(file.c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777, 0600u) << file;
  }
  SendAllAgain(flow);
  const Finished finished = flow.RunToEnd(folder.args());
  ASSERT_TRUE(EndsWell(finished));
  EXPECT_TRUE(flow.ExactlyOnce());
  for (const int partition : {0, 1}) {
    EXPECT_THAT(finished.err, HasSubstr(absl::StrCat("-", partition, ": snapshot ")));
  }
  EXPECT_THAT(finished.err, Not(HasSubstr("is not used")));
  // 6,000 records and more were not read again.
  EXPECT_THAT(finished.err, Not(HasSubstr(absl::StrCat("after replaying ", sender.sent() / 2, " offsets"))));
}

// Instances that share a folder: what one of them has saved is another's.
TEST(SnapshotsTest, Rule15APartitionMovesToAnInstanceThatSharesTheFolder) {
  Flow flow({LETHE_PROGRAM, 2, {}, {}});
  const Folder folder;
  Sender sender(flow, 2);
  sender.Send(3000);
  {
    const auto daemon = flow.Start(folder.args() + Args{"--instance=one"});
    ASSERT_TRUE(sender.AwaitSnapshots(*daemon));
    ASSERT_TRUE(daemon->Await(
        [&] { return daemon->Metric("lethe_records_total") >= static_cast<double>(sender.sent()); }));
  }  // killed
  std::vector<std::string> named;
  for (const CommittedOffset& committed : flow.Committed()) named.push_back(MetadataField(committed, "s"));
  SendAllAgain(flow);
  const Finished finished = flow.RunToEnd(folder.args() + Args{"--instance=two"});
  ASSERT_TRUE(EndsWell(finished));
  for (const size_t p : {0u, 1u}) {
    const std::string loaded = absl::StrCat(flow.input(), "-", p, ": snapshot ", named[p], " is loaded");
    EXPECT_THAT(finished.err, HasSubstr(loaded));
  }
  EXPECT_TRUE(flow.ExactlyOnce());
}

TEST(SnapshotsTest, Rule15OnlyTheSnapshotThatCountsStays) {
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  const Folder folder;
  Sender sender(flow, 1);
  const auto daemon = flow.Start(folder.args());
  for (int round = 0; round < 3; ++round) ASSERT_TRUE(sender.AwaitSnapshots(*daemon));
  ASSERT_TRUE(daemon->Stop());
  const std::string named = MetadataField(flow.Committed()[0], "s");
  // The one that was named last, and perhaps one that no commit came to name.
  const std::vector<std::string> files = folder.files();
  EXPECT_LE(files.size(), 2u);
  int found = 0;
  for (const std::string& file : files) found += absl::StrContains(file, named) ? 1 : 0;
  EXPECT_EQ(found, 1) << named;
}

// Whatever the snapshot is like, what was passed is known.
class UnusableSnapshotTest : public testing::Test {
 protected:
  void SetUp() override {
    sender_.Send(500);
    {
      const auto daemon = flow_.Start(folder_.args());
      ASSERT_TRUE(sender_.AwaitSnapshots(*daemon));
      sender_.Send(100);
      ASSERT_TRUE(daemon->Await(
          [&] { return daemon->Metric("lethe_records_total") >= static_cast<double>(sender_.sent()); }));
    }
    const std::string named = MetadataField(flow_.Committed()[0], "s");
    for (const std::string& file : folder_.files()) {
      if (absl::StrContains(file, named)) snapshot_ = file;
    }
    ASSERT_NE(snapshot_, "");
  }
  void ExpectLogIsRead(const std::string& why, const Args& args = {}) {
    SendAllAgain(flow_);
    const Finished finished = flow_.RunToEnd(folder_.args() + args);
    ASSERT_TRUE(EndsWell(finished));
    EXPECT_THAT(finished.err, HasSubstr(why));
    EXPECT_TRUE(flow_.ExactlyOnce()) << finished.err;
  }

  Flow flow_{{LETHE_PROGRAM, 1, {}, {}}};
  Folder folder_;
  Sender sender_{flow_, 1};
  std::string snapshot_;
};

TEST_F(UnusableSnapshotTest, Rule15ADamagedOneIsReportedAndTheLogIsRead) {
  std::fstream file(snapshot_, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(5000);
  file.put('x').put('y').put('z');
  file.close();
  ExpectLogIsRead("the filter is rebuilt from the log");
}

TEST_F(UnusableSnapshotTest, Rule15OneThatIsCutIsReportedAndTheLogIsRead) {
  std::filesystem::resize_file(snapshot_, std::filesystem::file_size(snapshot_) / 2);
  ExpectLogIsRead("is cut");
}

TEST_F(UnusableSnapshotTest, Rule15OneThatIsGoneIsReportedAndTheLogIsRead) {
  std::filesystem::remove(snapshot_);
  ExpectLogIsRead("the filter is rebuilt from the log");
}

TEST_F(UnusableSnapshotTest, Rule15OneOfAnotherConfigurationIsReportedAndTheLogIsRead) {
  ExpectLogIsRead("its horizon is 30d, and not 30d1h", {"--horizon=721h"});
}

// Another log under the same name: the snapshot's record before F is not the one that is there.
// As an earlier version commits, which does not say what the last record before the offset is.
std::vector<CommittedOffset> WithoutRecordBefore(std::vector<CommittedOffset> committed) {
  for (CommittedOffset& each : committed) {
    const size_t begin = each.metadata.find(" b=");
    if (begin == std::string::npos) continue;
    each.metadata.erase(begin, each.metadata.find(' ', begin + 1) - begin);
  }
  return committed;
}

TEST_F(UnusableSnapshotTest, Rule3And15ARecreatedLogIsDetected) {
  const std::vector<CommittedOffset> committed = flow_.Committed();
  ASSERT_OK(SharedClient().DeleteTopic(flow_.input()));
  ASSERT_OK(SharedClient().CreateTopic(flow_.input(), 1));
  flow_.SendIds("other", 1, static_cast<int>(committed[0].offset) + 100);
  flow_.ResetGroup(committed);  // with its story, as a tool that copies groups would
  const Finished refused = flow_.RunToEnd(folder_.args());
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("this is not the record that lethe judged"));
  flow_.ResetGroup(WithoutRecordBefore(committed));
  const Finished finished = flow_.RunToEnd(folder_.args());
  ASSERT_TRUE(EndsWell(finished));
  EXPECT_THAT(finished.err, HasSubstr("the log is not the one"));
  // The filter is that of the new log, up to C: what comes again of it is known.
  const size_t before = flow_.OutputIds().size();
  flow_.SendIds("other", 1, 500);
  ASSERT_TRUE(EndsWell(flow_.RunToEnd(folder_.args())));
  EXPECT_EQ(flow_.OutputIds().size(), before);
}

// The same where the new log has nothing to compare with: from there on all was aborted, and only the end of
// the log comes.
TEST_F(UnusableSnapshotTest, Rule3And15ALogThatEndsWithoutTheRecordThatIsRememberedIsSeen) {
  const std::vector<CommittedOffset> committed = flow_.Committed();
  ASSERT_OK(SharedClient().DeleteTopic(flow_.input()));
  ASSERT_OK(SharedClient().CreateTopic(flow_.input(), 1));
  flow_.SendIds("other", 1, 200);
  std::vector<Record> aborted;
  for (int64_t i = 0; i < committed[0].offset; ++i) aborted.push_back(WithId(absl::StrCat("aborted", i)));
  const auto producer = TransactionalProducer::Start(SharedBroker().bootstrap(), UniqueName("aborting"));
  ASSERT_OK(producer);
  ASSERT_OK((*producer)->Begin());
  ASSERT_OK((*producer)->Produce(flow_.input(), aborted));
  ASSERT_OK((*producer)->Abort());
  ASSERT_EQ(flow_.Input().size(), 200u);  // and the abort is seen
  flow_.ResetGroup(WithoutRecordBefore(committed));
  const auto daemon = flow_.Start(folder_.args());
  ASSERT_TRUE(daemon->AwaitReady());
  EXPECT_THAT(daemon->Log(), HasSubstr("the log is not the one"));
  // It has read the new log from its start, and not only come to its end.
  flow_.SendIds("other", 1, 200);
  flow_.SendIds("new", 1, 1);
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") == 201; }));
  EXPECT_EQ(daemon->Metric("lethe_records_total", {"verdict=\"duplicate\""}), 200) << daemon->Log();
  EXPECT_TRUE(daemon->Stop());
  EXPECT_EQ(flow_.OutputIds().back(), "new1");
}

// An older version does not know of snapshots, and commits without naming one.
TEST_F(UnusableSnapshotTest, Rule6ACommitThatNamesNoneIsRestoredFromTheLog) {
  CommittedOffset committed = flow_.Committed()[0];
  committed.metadata = committed.metadata.substr(0, committed.metadata.find(" s="));
  flow_.ResetGroup({committed});
  SendAllAgain(flow_);
  const Finished finished = flow_.RunToEnd(folder_.args());
  ASSERT_TRUE(EndsWell(finished));
  EXPECT_THAT(finished.err, Not(HasSubstr("is loaded")));
  EXPECT_TRUE(flow_.ExactlyOnce());
}

// A disk that takes no more: the stream goes on, and so does what the last commit named.
TEST(SnapshotsTest, Rule15AFullDiskIsReportedAndTheStreamGoesOn) {
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  const Folder folder;
  Sender sender(flow, 1);
  {
    const auto daemon = flow.Start(folder.args());
    ASSERT_TRUE(sender.AwaitSnapshots(*daemon));
    // No file of the process may grow beyond this from now on.
    const rlimit small = {1000, RLIM_INFINITY};
    ASSERT_EQ(prlimit(daemon->process().pid(), RLIMIT_FSIZE, &small, nullptr), 0);
    ASSERT_TRUE(daemon->Await([&] {
      sender.Send(20);
      return daemon->Metric("lethe_snapshot_errors_total") >= 2;
    }));
    EXPECT_THAT(daemon->Log(), HasSubstr("File too large"));
    ASSERT_TRUE(daemon->Await(
        [&] { return daemon->Metric("lethe_records_total") >= static_cast<double>(sender.sent()); }));
    EXPECT_EQ(daemon->Get("/readyz").status, 200);
  }  // killed
  SendAllAgain(flow);
  const Finished finished = flow.RunToEnd(folder.args());
  ASSERT_TRUE(EndsWell(finished));
  EXPECT_THAT(finished.err, HasSubstr("is loaded"));
  EXPECT_TRUE(flow.ExactlyOnce());
}

TEST(SnapshotsTest, AFolderThatCannotBeIsRefusedWithTheRemedy) {
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  const Finished finished = flow.RunToEnd({"--snapshots-to=folder:/proc/nothing/here"});
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_THAT(finished.err, HasSubstr("set snapshots.to to another"));
}

// Kills and comings and goings while snapshots are taken all the time.
TEST(SnapshotsTest, Rules12And13And15UnderKillsWithTwoInstances) {
  RetryingClients clients(TestSeed());
  Flow flow({LETHE_PROGRAM, 4, {}, {}});
  const Folder one_folder, two_folder;
  const auto seen = [](Daemon& daemon) { return daemon.Metric("lethe_records_total"); };
  const auto flow_until = [&](Daemon& daemon, const std::function<bool()>& met) {
    return daemon.Await([&] {
      flow.Send(clients.Take(300));
      return met();
    });
  };
  const auto two = flow.Start(two_folder.args() + Args{"--instance=two"});
  for (int round = 0; round < 3; ++round) {
    const auto one = flow.Start(one_folder.args() + Args{"--instance=one", "--lanes=2"});
    ASSERT_TRUE(
        flow_until(*one, [&] { return seen(*one) > 0 && one->Metric("lethe_snapshots_total") >= 2; }));
    if (round == 1) {
      EXPECT_TRUE(one->Stop());
    }  // else killed
  }
  const double before = seen(*two);
  ASSERT_TRUE(flow_until(*two, [&] { return seen(*two) > before + 1000; }));
  EXPECT_TRUE(two->Stop());
  ASSERT_TRUE(EndsWell(flow.RunToEnd(one_folder.args())));
  EXPECT_TRUE(flow.ExactlyOnce());
}

// By their manifests: snapshots in a topic that a commit named are there, and those before them are marked as
// deleted.
struct Manifests {
  int64_t there = 0;
  int64_t deleted = 0;
};
Manifests ManifestsOf(const std::string& topic) {
  std::map<std::string, bool> is_there;
  const std::vector<Record> records = SharedClient().ReadAll(topic, Isolation::kReadUncommitted).value();
  for (const Record& record : records) {
    if (absl::EndsWith(*record.key, "/manifest")) is_there[*record.key] = record.value.has_value();
  }
  Manifests manifests;
  for (const auto& [key, there] : is_there) ++(there ? manifests.there : manifests.deleted);
  return manifests;
}

// An instance that has no disk, and never had the partition, takes it from the topic.
TEST(SnapshotTopicTest, Rule15And17APartitionMovesToAnInstanceThatNeverHadIt) {
  Flow flow({LETHE_PROGRAM, 2, {}, {}});
  const std::string topic = flow.input() + "-snapshots";
  const Args args = {"--snapshots-to=topic:" + topic, "--snapshots-every=1s"};
  Sender sender(flow, 2);
  sender.Send(3000);
  {
    const auto daemon = flow.Start(args + Args{"--instance=one"});
    // The second one makes the first a thing of the past.
    ASSERT_TRUE(sender.AwaitSnapshots(*daemon));
    ASSERT_TRUE(sender.AwaitSnapshots(*daemon));
    ASSERT_TRUE(daemon->Await([&] { return ManifestsOf(topic).deleted >= 2; }));
    EXPECT_EQ(daemon->Metric("lethe_snapshot_errors_total"), 0) << daemon->Log();
    ASSERT_TRUE(daemon->Await(
        [&] { return daemon->Metric("lethe_records_total") >= static_cast<double>(sender.sent()); }));
  }  // killed
  SendAllAgain(flow);
  const Finished finished = flow.RunToEnd(args + Args{"--instance=two"});
  ASSERT_TRUE(EndsWell(finished));
  for (const int partition : {0, 1}) {
    EXPECT_THAT(finished.err, HasSubstr(absl::StrCat("-", partition, ": snapshot ")));
  }
  EXPECT_THAT(finished.err, Not(HasSubstr("is not used")));
  EXPECT_TRUE(flow.ExactlyOnce());

  EXPECT_EQ(SharedClient().EndOffsets(topic, Isolation::kReadUncommitted)->size(), 2u);
  // One that counts, and perhaps one that no commit came to name, of each partition.
  EXPECT_LE(ManifestsOf(topic).there, 4);
}

TEST(SnapshotTopicTest, Rule15OneThatIsGoneIsReportedAndTheLogIsRead) {
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  const std::string topic = flow.input() + "-snapshots";
  const Args args = {"--snapshots-to=topic:" + topic, "--snapshots-every=1s"};
  // Not compacted, so that records can be deleted as retention would do it.
  ASSERT_OK(SharedClient().CreateTopic(topic, 1));
  Sender sender(flow, 1);
  sender.Send(500);
  {
    const auto daemon = flow.Start(args);
    ASSERT_TRUE(sender.AwaitSnapshots(*daemon));
    ASSERT_TRUE(daemon->Await(
        [&] { return daemon->Metric("lethe_records_total") >= static_cast<double>(sender.sent()); }));
  }
  const std::vector<int64_t> ends = *SharedClient().EndOffsets(topic, Isolation::kReadUncommitted);
  ASSERT_OK(SharedClient().DeleteRecords(topic, 0, ends[0]));
  SendAllAgain(flow);
  const Finished finished = flow.RunToEnd(args);
  ASSERT_TRUE(EndsWell(finished));
  EXPECT_THAT(finished.err, HasSubstr("the filter is rebuilt from the log"));
  EXPECT_TRUE(flow.ExactlyOnce());
}

// (The end of a transaction may have come to the group's offsets, and not yet to other topics: who read on
// only up to the last stable offset would not see what is there.)
TEST(SnapshotTopicTest, Rule17ASnapshotBehindAnOpenTransactionIsRead) {
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  const std::string topic = flow.input() + "-snapshots";
  const Args args = {"--snapshots-to=topic:" + topic, "--snapshots-every=1s"};
  ASSERT_OK(SharedClient().CreateTopic(topic, 1, {{"cleanup.policy", "compact"}}));
  const auto somebody =
      TransactionalProducer::Start(SharedBroker().bootstrap(), UniqueName("somebody")).value();
  ASSERT_OK(somebody->Begin());
  const Record open = WithId("open", 0);
  ASSERT_OK(somebody->Produce(topic, {&open, 1}));
  Sender sender(flow, 1);
  sender.Send(3000);
  {
    const auto daemon = flow.Start(args);
    ASSERT_TRUE(sender.AwaitSnapshots(*daemon));
    ASSERT_TRUE(daemon->Await(
        [&] { return daemon->Metric("lethe_records_total") >= static_cast<double>(sender.sent()); }));
  }  // killed
  const std::string named = MetadataField(flow.Committed()[0], "s");
  SendAllAgain(flow);
  const Finished finished = flow.RunToEnd(args);
  ASSERT_TRUE(EndsWell(finished));
  EXPECT_EQ(SharedClient().EndOffsets(topic, Isolation::kReadCommitted).value()[0], 0)
      << "the transaction has ended too early for this test";
  EXPECT_THAT(finished.err, HasSubstr(absl::StrCat("snapshot ", named, " is loaded")));
  EXPECT_OK(somebody->Abort());
  EXPECT_TRUE(flow.ExactlyOnce());
}

// What stays is not restored again when another instance comes or goes.
TEST(MembershipTest, Rule11CooperativePartitionsThatStayGoOn) {
  RetryingClients clients(TestSeed());
  Flow flow({LETHE_PROGRAM, 4, {}, {}});
  const Args args = {"--assignment=cooperative"};
  const auto seen = [](Daemon& daemon) { return daemon.Metric("lethe_records_total"); };
  const auto flow_until = [&](Daemon& daemon, const std::function<bool()>& met) {
    return daemon.Await([&] {
      flow.Send(clients.Take(300));
      return met();
    });
  };
  const auto one = flow.Start(args + Args{"--instance=one"});
  ASSERT_TRUE(flow_until(*one, [&] { return seen(*one) > 0; }));
  const auto two = flow.Start(args + Args{"--instance=two"});
  ASSERT_TRUE(flow_until(*two, [&] { return seen(*two) > 1000; }));
  // The group is in its next generation when all have joined, and a member hears of that with its assignment:
  // a commit in between names the old one and is refused, once for each rebalance at most. Nothing else is. A
  // member that joins costs two rebalances: one takes partitions from those that have them, one gives them to
  // it.
  const auto only_generations = [](const Daemon& daemon) {
    for (const absl::string_view line : absl::StrSplit(daemon.Log(), '\n')) {
      if (!absl::StrContains(line, "records aborted") || absl::StrContains(line, "(ILLEGAL_GENERATION)"))
        continue;
      return testing::AssertionFailure() << line;
    }
    return testing::AssertionSuccess();
  };
  EXPECT_LE(one->Metric("lethe_transactions_aborted_total"), 2) << one->Log();
  EXPECT_LE(two->Metric("lethe_transactions_aborted_total"), 1) << two->Log();
  const double before = seen(*one);
  EXPECT_TRUE(two->Stop());
  ASSERT_TRUE(flow_until(*one, [&] { return seen(*one) > before + 2000; }));
  // And one that leaves costs two.
  EXPECT_LE(one->Metric("lethe_transactions_aborted_total"), 4) << one->Log();
  EXPECT_TRUE(only_generations(*one));
  EXPECT_TRUE(only_generations(*two));
  // Each partition became ready once in the beginning, and two of them again when they came back: with eager
  // assignments all four would, twice.
  int ready = 0;
  for (const absl::string_view line : absl::StrSplit(one->Log(), '\n')) {
    ready += absl::StrContains(line, ": ready at offset") ? 1 : 0;
  }
  EXPECT_LE(ready, 2) << one->Log();
  EXPECT_TRUE(one->Stop());
  ASSERT_TRUE(EndsWell(flow.RunToEnd(args)));
  EXPECT_TRUE(flow.ExactlyOnce());
}

// The client is never given what must not be read, and refuses to let go of what it was not given.
TEST(MembershipTest, Rule11CooperativePartitionsThatMustNotBeReadMoveToo) {
  Flow flow({LETHE_PROGRAM, 4, {}, {}});
  for (int p = 0; p < 4; ++p) flow.SendIds(absl::StrCat("p", p, "-"), 1, 1000, p);
  ASSERT_TRUE(EndsWell(flow.RunToEnd()));
  for (int p = 0; p < 3; ++p) ASSERT_OK(SharedClient().DeleteRecords(flow.input(), p, 900));
  const Args args = {"--assignment=cooperative", "--on-short-history=fail"};
  const auto has = [](const Daemon& daemon) {
    return std::vector<std::string>(absl::StrSplit(daemon.Get("/metrics").body, "\nlethe_partition_failed{"))
               .size() -
           1;
  };
  const auto one = flow.Start(args + Args{"--instance=one"});
  ASSERT_TRUE(one->Await([&] { return has(*one) == 4; }));
  const auto two = flow.Start(args + Args{"--instance=two"});
  ASSERT_TRUE(two->Await([&] { return has(*one) == 2 && has(*two) == 2; })) << one->Log();
  flow.SendIds("new-", 1, 100, 3);
  EXPECT_TRUE(two->Await([&] { return flow.Committed()[3].offset == 1100; }));
  EXPECT_TRUE(one->Stop());
  EXPECT_TRUE(two->Await([&] { return has(*two) == 4; })) << two->Log();
  EXPECT_TRUE(two->Stop());
  EXPECT_EQ(flow.OutputIds().size(), 4100u);
}

// A restart is quicker than the group's patience: the other instance never sees the partitions move.
TEST(MembershipTest, ARestartOfAStaticMemberMovesNoPartition) {
  RetryingClients clients(TestSeed());
  Flow flow({LETHE_PROGRAM, 4, {}, {}});
  const Args args = {"--static-membership=true", "--kafka=session.timeout.ms=30000"};
  const auto seen = [](Daemon& daemon) { return daemon.Metric("lethe_records_total"); };
  const auto flow_until = [&](Daemon& daemon, const std::function<bool()>& met) {
    return daemon.Await([&] {
      flow.Send(clients.Take(300));
      return met();
    });
  };
  auto one = flow.Start(args + Args{"--instance=one", "--lanes=2"});
  const auto two = flow.Start(args + Args{"--instance=two"});
  ASSERT_TRUE(flow_until(*two, [&] { return seen(*one) > 0 && seen(*two) > 0; }));
  ASSERT_TRUE(one->AwaitReady());
  ASSERT_TRUE(two->AwaitReady());
  const auto ready_lines = [](const Daemon& daemon) {
    return std::vector<std::string>(absl::StrSplit(daemon.Log(), ": ready at offset")).size();
  };
  const size_t before = ready_lines(*two);
  one.reset();  // killed
  one = flow.Start(args + Args{"--instance=one", "--lanes=2"});
  ASSERT_TRUE(flow_until(*one, [&] { return seen(*one) > 0; }));
  EXPECT_EQ(ready_lines(*two), before) << two->Log();
  // Static members stay in the group when they have gone, so nobody else could finish this.
  EXPECT_TRUE(one->Await([&] { return static_cast<bool>(flow.ExactlyOnce()); }));
  EXPECT_TRUE(one->Stop());
  EXPECT_TRUE(two->Stop());
  EXPECT_TRUE(flow.ExactlyOnce());
}

void AssignAsTold(rd_kafka_t* member, rd_kafka_resp_err_t code, rd_kafka_topic_partition_list_t* partitions,
                  void*) {
  rd_kafka_assign(member, code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS ? partitions : nullptr);
}

// A member of the group that takes what it is given, and commits nothing. It follows a rebalance when it is
// polled.
Handle IdleMember(const Flow& flow, const std::string& name, const std::string& static_name = "") {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  char error[256];
  for (const auto& [key, value] :
       std::vector<std::pair<const char*, std::string>>{{"bootstrap.servers", SharedBroker().bootstrap()},
                                                        {"client.id", name},
                                                        {"group.id", flow.group()},
                                                        {"group.instance.id", static_name},
                                                        {"enable.auto.commit", "false"},
                                                        {"topic.metadata.refresh.interval.ms", "500"},
                                                        {"partition.assignment.strategy", "range"}}) {
    if (value.empty()) continue;
    if (rd_kafka_conf_set(conf, key, value.c_str(), error, sizeof error) != RD_KAFKA_CONF_OK)
      ADD_FAILURE() << error;
  }
  rd_kafka_conf_set_rebalance_cb(conf, AssignAsTold);
  Handle member(rd_kafka_new(RD_KAFKA_CONSUMER, conf, error, sizeof error));
  rd_kafka_poll_set_consumer(member.get());
  rd_kafka_topic_partition_list_t* topics = rd_kafka_topic_partition_list_new(1);
  rd_kafka_topic_partition_list_add(topics, flow.input().c_str(), RD_KAFKA_PARTITION_UA);
  rd_kafka_subscribe(member.get(), topics);
  rd_kafka_topic_partition_list_destroy(topics);
  return member;
}

void Poll(const Handle& member) {
  rd_kafka_message_t* message = rd_kafka_consumer_poll(member.get(), 50);
  if (message != nullptr) rd_kafka_message_destroy(message);
}

bool IsGiven(const Handle& member, const std::string& topic, int32_t partition) {
  rd_kafka_topic_partition_list_t* assigned = nullptr;
  if (rd_kafka_assignment(member.get(), &assigned) != RD_KAFKA_RESP_ERR_NO_ERROR) return false;
  const bool found = rd_kafka_topic_partition_list_find(assigned, topic.c_str(), partition) != nullptr;
  rd_kafka_topic_partition_list_destroy(assigned);
  return found;
}

// Once, it throws the other out in its turn: the client may have taken itself for another. Two that would do
// that for ever end, and say what to do.
TEST(MembershipTest, AStaticMemberWhoseNameIsTakenAgainAndAgainEndsAndSaysWhy) {
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  // Fences count as one row within a quarter of the session timeout.
  const auto daemon = flow.Start(
      {"--static-membership=true", "--kafka=heartbeat.interval.ms=200", "--kafka=session.timeout.ms=20000"});
  const auto is_taken = [&](const std::function<bool()>& noticed) {
    const Handle other = IdleMember(flow, "other", "test-0");
    return daemon->Await([&] { return Poll(other), noticed(); });
  };
  for (int round = 1; round <= 3; ++round) {
    flow.SendIds("a", round * 100, round * 100 + 99);
    ASSERT_TRUE(daemon->Await([&] { return flow.Committed()[0].offset >= 100 * round; })) << daemon->Log();
    ASSERT_TRUE(is_taken([&] {
      return std::vector<std::string>(absl::StrSplit(daemon->Log(), "recreating the consumer")).size() >
             static_cast<size_t>(round);
    })) << daemon->Log();
  }
  flow.SendIds("a", 400, 499);
  ASSERT_TRUE(daemon->Await([&] { return flow.Committed()[0].offset >= 400; })) << daemon->Log();
  ASSERT_TRUE(is_taken([&] { return !daemon->process().Running(); })) << daemon->Log();
  EXPECT_EQ(daemon->process().Wait(absl::Seconds(20)).value_or(-1), 1) << daemon->Log();
  EXPECT_THAT(daemon->Log(), HasSubstr("and stays"));
  EXPECT_TRUE(flow.ExactlyOnce());
}

// A rebalance ends when the last member has joined again. Who has asked to join is not heard before that, nor
// when it would leave.
TEST(MembershipTest, AStopInTheMiddleOfARebalanceEndsWell) {
  Flow flow({LETHE_PROGRAM, 2, {}, {}});
  const auto one = flow.Start({"--instance=one"});
  for (int p = 0; p < 2; ++p) flow.SendIds(absl::StrCat("p", p, "-"), 1, 100, p);
  ASSERT_TRUE(one->Await([&] { return one->Metric("lethe_records_total") == 200; }));
  const Handle idle = IdleMember(flow, "zzz");
  ASSERT_TRUE(WaitUntil([&] { return Poll(idle), IsGiven(idle, flow.input(), 1); }, absl::Minutes(1)));
  ASSERT_TRUE(one->AwaitReady());
  flow.SendIds("more-", 1, 100, 0);
  ASSERT_TRUE(one->Await([&] { return flow.Committed()[0].offset == 200; }));
  const auto two = flow.Start({"--instance=two"});  // and the idle one does not hear of it
  ASSERT_TRUE(one->Await([&] { return absl::StrContains(one->Get("/readyz").body, "waits for the group"); }));
  EXPECT_TRUE(one->Stop());
  EXPECT_THAT(one->Log(), HasSubstr("all committed"));
  EXPECT_TRUE(two->Stop());
}

// The group has a new partition, and nobody begins to read it. (Here one who has it does nothing with it;
// where brokers tell the member that assigns different things, nobody has it.)
TEST(MembershipTest, Rule19AnUnassignedPartitionMakesTheGroupRebalance) {
  Flow flow({LETHE_PROGRAM, 2, {}, {}});
  flow.SendIds("a", 1, 100, 0);
  const auto daemon = flow.Start();
  ASSERT_TRUE(daemon->AwaitReady());
  // By its name it comes behind lethe, so that the last partition is its.
  Handle idle = IdleMember(flow, "zzz");
  const auto poll = [&] { Poll(idle); };
  const auto has = [&](int32_t partition) { return IsGiven(idle, flow.input(), partition); };
  ASSERT_TRUE(daemon->Await([&] { return poll(), has(1); }));
  ASSERT_OK(SharedClient().AddPartitions(flow.output(), 3));
  ASSERT_OK(SharedClient().AddPartitions(flow.input(), 3));
  ASSERT_TRUE(daemon->Await([&] { return poll(), has(2); }));
  flow.SendIds("b", 1, 100, 2);
  ASSERT_TRUE(daemon->Await([&] {
    poll();
    return absl::StrContains(daemon->Log(), "rejoining the group for a new assignment");
  }));
  EXPECT_THAT(daemon->Log(), HasSubstr("-2 has had no owner"));
  idle.reset();
  ASSERT_TRUE(daemon->Await([&] { return flow.Committed()[2].offset == 100; }));
  EXPECT_TRUE(daemon->Stop());
  EXPECT_TRUE(flow.ExactlyOnce());
}

// Nor does one who has nothing at all take that for good: so it is where a topic was recreated, and the
// member that assigns was told that it is still away.
TEST(MembershipTest, Rule19AnUnassignedInputMakesTheGroupRebalance) {
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  flow.SendIds("a", 1, 100);
  Handle idle = IdleMember(flow, "aaa");
  ASSERT_TRUE(WaitUntil([&] { return Poll(idle), IsGiven(idle, flow.input(), 0); }, absl::Minutes(1)));
  const auto daemon = flow.Start();
  ASSERT_TRUE(daemon->Await([&] {
    Poll(idle);
    return absl::StrContains(daemon->Log(), "-0 has had no owner");
  })) << daemon->Log();
  idle.reset();
  ASSERT_TRUE(daemon->Await([&] { return flow.Committed()[0].offset == 100; }));
  EXPECT_TRUE(daemon->Stop());
  EXPECT_TRUE(flow.ExactlyOnce());
}

// With a snapshot the log need only reach back to that.
TEST(RestoreTest, Rule13ASnapshotNeedsNoHistory) {
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  const Folder folder;
  Sender sender(flow, 1);
  sender.Send(1000);
  {
    const auto daemon = flow.Start(folder.args());
    ASSERT_TRUE(sender.AwaitSnapshots(*daemon));
  }
  ASSERT_OK(SharedClient().DeleteRecords(flow.input(), 0, 900));
  flow.SendIds("n", 0, 999);
  const Finished finished = flow.RunToEnd(folder.args() + Args{"--on-short-history=fail"});
  EXPECT_TRUE(EndsWell(finished));
  std::vector<std::string> ids = flow.OutputIds();
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), ids.size());
}

TEST(RestoreTest, Rule13UnreadDeletedRecordsAreLeftOutWhereTheUserSaysSo) {
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  flow.SendIds("a", 1, 200);
  ASSERT_TRUE(EndsWell(flow.RunToEnd()));
  flow.SendIds("b", 1, 100);
  ASSERT_OK(SharedClient().DeleteRecords(flow.input(), 0, 250));
  const Finished refused = flow.RunToEnd();
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("set on_unread_deleted to continue"));
  {
    const auto standing = flow.Start();
    EXPECT_TRUE(standing->Await([&] { return standing->Metric("lethe_partition_failed") == 1; }));
    EXPECT_TRUE(standing->Await([&] { return standing->Metric("lethe_lag_records") == 100; }));
  }
  const auto daemon = flow.Start({"--on-unread-deleted=continue"});
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") >= 50; }));
  EXPECT_EQ(daemon->Metric("lethe_unread_deleted_offsets_total"), 50);
  EXPECT_EQ(daemon->Metric("lethe_short_history"), 1);
  // It stands still while the log goes away under it.
  ASSERT_OK(daemon->process().Signal(SIGSTOP));
  flow.SendIds("c", 1, 100);
  ASSERT_OK(SharedClient().DeleteRecords(flow.input(), 0, 390));
  ASSERT_OK(daemon->process().Signal(SIGCONT));
  ASSERT_TRUE(daemon->Await([&] {
    flow.SendIds("d", 1, 10);
    return flow.Committed()[0].offset >= 400;
  }));
  EXPECT_TRUE(daemon->Stop());
  std::vector<std::string> ids = flow.OutputIds();
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).count("b51"), 1u);
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), ids.size());
}

// The group is at an offset before them until the first commit, also after an abort.
TEST(RestoreTest, Rule13AnAbortAfterUnreadDeletedRecordsIsReplayed) {
  Flow flow({LETHE_PROGRAM, 1, {}, {{"max.message.bytes", "2000"}}});
  flow.SendIds("a", 1, 200);
  ASSERT_TRUE(EndsWell(flow.RunToEnd()));
  flow.SendIds("b", 1, 50);
  flow.Send({{WithId(std::string(10'000, 'x'))}});
  flow.SendIds("c", 1, 50);
  ASSERT_OK(SharedClient().DeleteRecords(flow.input(), 0, 250));
  EXPECT_TRUE(EndsWell(flow.RunToEnd({"--on-unread-deleted=continue", "--kafka=compression.type=none"})));
  EXPECT_EQ(flow.Committed()[0].offset, 301);
  EXPECT_EQ(flow.OutputIds().size(), 250u);
}

// The filter that is replaced holds all the memory that there is for the one that takes its place.
TEST(RestoreTest, Rule13AFilterAtTheMemoryLimitIsRebuiltInItsOwnMemory) {
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  const auto daemon =
      flow.Start({"--on-unread-deleted=continue", "--memory=256KiB", "--kafka=fetch.message.max.bytes=1000"});
  flow.SendIds("a", 1, 10'000);
  int64_t end = 10'000;
  ASSERT_TRUE(daemon->Await([&] { return flow.Committed()[0].offset == end; }));
  const auto fails = [&] { return daemon->Metric("lethe_partition_failed") > 0; };
  const auto has_lost = [&] { return daemon->Metric("lethe_unread_deleted_offsets_total") > 0 || fails(); };
  // The broker may answer its last request after it was stopped, with all that is sent: then nothing is lost.
  for (int round = 0; !has_lost(); ++round) {
    ASSERT_OK(daemon->process().Signal(SIGSTOP));
    for (const char* batch : {"b", "c"}) flow.SendIds(absl::StrCat(batch, round, "-"), 1, 100);
    end += 200;
    ASSERT_OK(SharedClient().DeleteRecords(flow.input(), 0, end - 50));
    ASSERT_OK(daemon->process().Signal(SIGCONT));
    ASSERT_TRUE(daemon->Await([&] { return has_lost() || flow.Committed()[0].offset == end; }))
        << daemon->Get("/status").body;
  }
  flow.SendIds("d", 1, 150);
  EXPECT_TRUE(daemon->Await([&] { return flow.Committed()[0].offset == end + 150 || fails(); }));
  EXPECT_FALSE(fails()) << daemon->Log();
  EXPECT_TRUE(daemon->Stop());
  std::vector<std::string> expected;
  for (int i = 1; i <= 150; ++i) expected.push_back(absl::StrCat("d", i));
  std::vector<std::string> ids = flow.OutputIds();
  ids.erase(ids.begin(), ids.end() - std::min<std::ptrdiff_t>(150, std::ssize(ids)));
  EXPECT_EQ(ids, expected);
}

// A restore that takes its time says how much of it is left.
TEST(RestoreTest, ProgressIsShownEverywhere) {
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  Sender sender(flow, 1);
  for (int i = 0; i < 80; ++i) sender.Send(1000);
  ASSERT_TRUE(EndsWell(flow.RunToEnd()));
  const SlowReading slow_reading(200'000);  // of two million
  const auto slow = flow.Start(slow_reading.args());
  ASSERT_TRUE(slow->Await([&] {
    const double left = slow->Metric("lethe_restore_remaining_offsets");
    const double seconds = slow->Metric("lethe_restore_remaining_seconds");
    return left > 0 && left < 80'000 && seconds > 0 && seconds < 3600;
  }));
  EXPECT_THAT(slow->Get("/readyz").body, HasSubstr("offsets to go"));
  const std::string status = slow->Get("/status").body;
  const nlohmann::json partition = nlohmann::json::parse(status)["partitions"][0];
  EXPECT_EQ(partition["phase"], "restoring") << status;
  EXPECT_EQ(partition["restore"]["from_offset"], 0);
  EXPECT_EQ(partition["restore"]["to_offset"], 80'000);
  EXPECT_GT(partition["restore"]["at_offset"], 0);
  EXPECT_LT(partition["restore"]["at_offset"], 80'000);
  // Every five seconds.
  EXPECT_TRUE(slow->AwaitLog(absl::StrCat(flow.input(), "-0: restoring: offset ")));
  EXPECT_THAT(slow->Log(), HasSubstr(" of 80000, "));
  EXPECT_THAT(slow->Log(), HasSubstr(" left"));
}

}  // namespace
}  // namespace lethe::test
