// Snapshots in a topic: loads that take long, stops in the middle, and what nobody needs any more.
#include "src/pipeline/snapshots/snapshot_topic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "connectors/kafka/snapshots/snapshot_log.h"
#include "lethe/snapshot.h"
#include "lethe/stage.h"
#include "src/pipeline/clock/steady_time.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/snapshots/snapshots.h"
#include "tests/support/flow.h"
#include "tests/support/kafka_client.h"
#include "tests/support/shared_broker.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {
namespace {

using testing::HasSubstr;
using testing::Not;

// Keys that have a value: what compaction would leave.
std::set<std::string> KeysOf(const std::string& topic) {
  std::set<std::string> keys;
  const std::vector<Record> records = SharedClient().ReadAll(topic, Isolation::kReadUncommitted).value();
  for (const Record& record : records) {
    if (record.value) {
      keys.insert(*record.key);
    } else {
      keys.erase(*record.key);
    }
  }
  return keys;
}

bool AnyIsOf(const std::set<std::string>& keys, const std::string& snapshot) {
  return std::any_of(keys.begin(), keys.end(),
                     [&](const std::string& key) { return absl::StrContains(key, "/" + snapshot + "/"); });
}

// One partition whose snapshots go to a topic, every second.
class SnapshotsInTopicTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(SharedClient().CreateTopic(topic_, 1, {{"cleanup.policy", "compact"}})); }

  void Send(int records) {
    flow_.SendIds("n", static_cast<int>(sent_), static_cast<int>(sent_) + records - 1);
    sent_ += records;
  }
  bool AllIsCommitted() { return flow_.Committed()[0].offset == sent_; }
  std::string Named() {
    const std::string story = flow_.Committed()[0].metadata;
    for (absl::string_view word : absl::StrSplit(story, ' ')) {
      if (absl::ConsumePrefix(&word, "s=")) return std::string(word);
    }
    return "";
  }
  testing::AssertionResult AwaitAnotherNamed(Daemon& daemon) {
    const std::string before = Named();
    return daemon.Await([&] {
      Send(20);
      const std::string now = Named();
      return !now.empty() && now != before;
    });
  }
  // Of snapshots that no commit names, or of parts of them.
  std::set<std::string> Unnamed() {
    const std::string named = "/" + Named() + "/";
    std::set<std::string> keys = KeysOf(topic_);
    std::erase_if(keys, [&](const std::string& key) { return absl::StrContains(key, named); });
    return keys;
  }
  // The partition has gone quiet, and the last snapshot was done after its last commit.
  testing::AssertionResult AwaitUnnamed(Daemon& daemon) {
    return daemon.Await([&] {
      if (!AllIsCommitted()) return false;
      const auto done = [&] {
        const std::set<std::string> keys = Unnamed();
        return std::any_of(keys.begin(), keys.end(),
                           [](const std::string& key) { return absl::EndsWith(key, "/manifest"); });
      };
      if (WaitUntil(done, absl::Milliseconds(300))) return true;
      Send(20);
      return false;
    });
  }

  // A commit names a snapshot that takes ten seconds and more to load with slow_: 600 KB lie before it.
  void LeaveOneThatLoadsSlowly() {
    for (int i = 0; i < 200; ++i) {
      Record other;
      other.key = absl::StrCat("somebody else's ", i);
      other.value = std::string(3000, 'x');
      other.timestamp_ms = absl::ToUnixMillis(absl::Now() + absl::Minutes(30));
      other.partition = 0;
      ASSERT_OK(SharedClient().Produce(topic_, {&other, 1}));
    }
    Send(3000);
    const auto daemon = flow_.Start(args_);
    ASSERT_TRUE(AwaitAnotherNamed(*daemon));
    ASSERT_TRUE(daemon->Await([&] { return AllIsCommitted(); }));
  }  // killed
  void ExpectAllOnce() {
    flow_.SendIds("n", 0, 999);
    const Finished finished = flow_.RunToEnd(args_);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_THAT(finished.err, HasSubstr("is loaded"));
    EXPECT_TRUE(flow_.ExactlyOnce());
  }

  Flow flow_{{LETHE_PROGRAM, 1, {}, {}}};
  const std::string topic_ = flow_.input() + "-snapshots";
  const Args args_ = {"--snapshots-to=topic:" + topic_, "--snapshots-every=1s"};
  const SlowReading slow_reading_{50'000};
  const Args slow_ = args_ + slow_reading_.args();
  int64_t sent_ = 0;
};

// A service manager, to which the process says that it is alive, and when.
class WatchdogSocket {
 public:
  WatchdogSocket()
      : path_((std::filesystem::temp_directory_path() / absl::StrCat("lethe-watchdog-", getpid())).string()),
        socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  ~WatchdogSocket() {
    close(socket_);
    std::filesystem::remove(path_);
  }

  std::unique_ptr<Daemon> Start(Flow& flow, const Args& args, absl::Duration limit) {
    setenv("NOTIFY_SOCKET", path_.c_str(), 1);
    setenv("WATCHDOG_USEC", absl::StrCat(absl::ToInt64Microseconds(limit)).c_str(), 1);
    auto daemon = flow.Start(args);
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    last_ = SteadyNow();
    return daemon;
  }
  // To be called all the time.
  void Listen() {
    char datagram[512];
    ssize_t size = 0;
    while ((size = recv(socket_, datagram, sizeof datagram, MSG_DONTWAIT)) > 0) {
      if (absl::StrContains(absl::string_view(datagram, static_cast<size_t>(size)), "WATCHDOG=1"))
        last_ = SteadyNow();
    }
    longest_silence_ = std::max(longest_silence_, SteadyNow() - last_);
  }
  absl::Duration longest_silence() const { return longest_silence_; }

 private:
  const std::string path_;
  const int socket_;
  absl::Time last_;
  absl::Duration longest_silence_ = absl::ZeroDuration();
};

// (It was killed by its watchdog, and so was the next one, for ever.)
TEST_F(SnapshotsInTopicTest, ALoadThatTakesLongIsNoHangNorLeavesTheGroup) {
  LeaveOneThatLoadsSlowly();
  constexpr absl::Duration kLimit = absl::Seconds(8);
  WatchdogSocket watchdog;
  const absl::Time start = SteadyNow();
  const auto daemon = watchdog.Start(
      flow_, slow_ + Args{"--kafka=session.timeout.ms=8000", "--kafka=max.poll.interval.ms=8000"}, kLimit);
  ASSERT_TRUE(daemon->Await([&] {
    watchdog.Listen();
    return absl::StrContains(daemon->Log(), "is loaded");
  })) << daemon->Log();
  EXPECT_GT(SteadyNow() - start, kLimit + absl::Seconds(1)) << "too fast for this test";
  EXPECT_LT(watchdog.longest_silence(), kLimit);
  ASSERT_TRUE(daemon->AwaitReady());
  EXPECT_THAT(daemon->Log(), Not(HasSubstr("MAXPOLL")));
  EXPECT_TRUE(daemon->Stop()) << daemon->Log();
  ExpectAllOnce();
}

TEST_F(SnapshotsInTopicTest, AStopWhileOneIsLoadedEndsWell) {
  LeaveOneThatLoadsSlowly();
  const std::string named = Named();
  const auto daemon = flow_.Start(slow_);
  ASSERT_TRUE(daemon->Await([&] {
    return absl::StrContains(daemon->Get("/readyz").body,
                             absl::StrCat("the snapshot of ", flow_.input(), "-0 is being loaded"));
  })) << daemon->Log();
  const absl::Time start = SteadyNow();
  EXPECT_TRUE(daemon->Stop()) << daemon->Log();
  EXPECT_LT(SteadyNow() - start, absl::Seconds(3));
  EXPECT_THAT(daemon->Log(), HasSubstr("all committed, left the group"));
  EXPECT_THAT(daemon->Log(), Not(HasSubstr("is loaded"))) << "too fast for this test";
  EXPECT_THAT(daemon->Log(), Not(HasSubstr("is rebuilt from the log")));
  EXPECT_EQ(Named(), named);
  ExpectAllOnce();
}

// (Its keys are its own: compaction would keep it for ever.)
TEST_F(SnapshotsInTopicTest, OneThatNoCommitNamesIsGoneWhenTheProcessEnds) {
  Send(3000);
  const auto daemon = flow_.Start(args_);
  ASSERT_TRUE(AwaitAnotherNamed(*daemon));
  ASSERT_TRUE(AwaitUnnamed(*daemon));
  EXPECT_TRUE(daemon->Stop()) << daemon->Log();
  EXPECT_EQ(Unnamed(), std::set<std::string>{});
  EXPECT_TRUE(AnyIsOf(KeysOf(topic_), Named()));
  ExpectAllOnce();
}

TEST_F(SnapshotsInTopicTest, LeftoversOfAKilledProcessAreDeletedByTheNextOwner) {
  Send(3000);
  {
    const auto daemon = flow_.Start(args_);
    ASSERT_TRUE(AwaitAnotherNamed(*daemon));
    ASSERT_TRUE(AwaitUnnamed(*daemon));
  }  // killed
  const std::set<std::string> left = Unnamed();
  ASSERT_FALSE(left.empty());
  // It was killed once more, while it wrote one; and this one is of a later owner.
  const auto chunk_of = [&](int64_t offset, absl::Time at) {
    const SnapshotId id = SnapshotId::New(offset, at);
    Record chunk;
    chunk.key = absl::StrCat(flow_.group(), "/", flow_.input(), "/0/", id.ToString(), "/0");
    chunk.value = "x";
    chunk.timestamp_ms = absl::ToUnixMillis(id.time());
    chunk.partition = 0;
    EXPECT_OK(SharedClient().Produce(topic_, {&chunk, 1}));
    return *chunk.key;
  };
  const std::string unfinished = chunk_of(sent_, absl::Now());
  const std::string of_later_owner = chunk_of(sent_ + 1'000'000, absl::Now() + absl::Minutes(10));
  Record others;
  others.key = absl::StrCat("other-", flow_.group(), "/", flow_.input(), "/0/0-0000000000000001/0");
  others.value = "x";
  others.partition = 0;
  ASSERT_OK(SharedClient().Produce(topic_, {&others, 1}));

  const auto daemon = flow_.Start(args_);
  ASSERT_TRUE(AwaitAnotherNamed(*daemon));
  EXPECT_TRUE(daemon->Await([&] {
    const std::set<std::string> keys = KeysOf(topic_);
    return !keys.contains(unfinished) &&
           std::none_of(left.begin(), left.end(), [&](const std::string& key) { return keys.contains(key); });
  })) << daemon->Log();
  EXPECT_TRUE(daemon->Stop());
  EXPECT_EQ(Unnamed(), (std::set<std::string>{of_later_owner, *others.key}));
  ExpectAllOnce();
}

// A store of its own, without a daemon.
class SnapshotTopicStoreTest : public testing::Test {
 protected:
  SnapshotTopicStoreTest() {
    options_.process.brokers = SharedBroker().bootstrap();
    options_.input = UniqueName("input");
    options_.process.group = options_.input + "-group";
    options_.record.id = *IdSpec::Parse("json:/id");
    options_.stage.horizon = absl::Hours(1);
    options_.process.snapshots.topic = options_.input + "-snapshots";
  }
  void SetUp() override {
    ASSERT_OK(
        SharedClient().CreateTopic(options_.process.snapshots.topic, 1, {{"cleanup.policy", "compact"}}));
    stage_ = DedupStage::Create(options_.stage).value();
    filter_ = stage_->Open("orders-0").value();
  }
  std::unique_ptr<LiveSnapshot> Image(SnapshotId id) {
    return filter_
        ->BeginSnapshot(
            {.topic = options_.input, .partition = 0, .id_fingerprint = options_.record.id.Fingerprint()},
            {.offset = id.offset, .end_offset = id.offset})
        .value();
  }

  DaemonOptions options_;
  std::unique_ptr<DedupStage> stage_;
  std::unique_ptr<Partition> filter_;
};

// It reads what an earlier owner has left, which may be much.
TEST_F(SnapshotTopicStoreTest, DropOlderEndsWithTheProgram) {
  const SnapshotId others = SnapshotId::New(1, absl::Now());
  Record record;
  record.key = "somebody else's";
  record.value = std::string(3000, 'x');
  record.timestamp_ms = absl::ToUnixMillis(others.time());
  record.partition = 0;
  for (int i = 0; i < 150; ++i) {
    ASSERT_OK(SharedClient().Produce(options_.process.snapshots.topic, {&record, 1}));
  }
  options_.process.properties = {{"queued.min.messages", "1"}, {"fetch.message.max.bytes", "3000"}};
  kafka::SnapshotProducer store_producer;
  const auto store = MakeSnapshotTopic(options_, kafka::OpenSnapshotLog(options_, store_producer).value(), 1);
  const SnapshotId own = SnapshotId::New(2, absl::Now() + absl::Seconds(1));
  ASSERT_OK(store->Write(0, own, *Image(own), [] { return true; }));
  absl::Duration took;
  absl::Status dropped;
  std::thread dropping([&] {
    const absl::Time start = SteadyNow();
    dropped = store->DropOlder(0, own, others, true);
    took = SteadyNow() - start;
  });
  store->Stop();
  dropping.join();
  EXPECT_THAT(dropped, StatusIs(absl::StatusCode::kCancelled));
  EXPECT_LT(took, absl::Seconds(2));
}

}  // namespace
}  // namespace lethe::test
