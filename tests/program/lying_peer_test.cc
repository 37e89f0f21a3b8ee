// A peer of `lethe reconcile` that speaks the protocol and lies: what it sends is refused, and it holds this
// side no longer than the timeout. Both ends in this process, over pipes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "src/cli/commands/reconcile_command.h"
#include "src/cli/reconcile/copy_intake.h"
#include "src/cli/reconcile/peer_process.h"
#include "src/cli/reconcile/reconcile_messages.h"
#include "src/cli/reconcile/reconcile_talk.h"
#include "src/pipeline/clock/steady_time.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

using Header = std::pair<absl::string_view, std::optional<absl::string_view>>;

constexpr absl::Duration kTimeout = absl::Milliseconds(300);
constexpr absl::Duration kLong = absl::Minutes(1);
constexpr int64_t kBegin = 1000;
constexpr int64_t kEnd = 2000;

std::string Record(absl::string_view id, int64_t time_ms, absl::Span<const Header> headers = {},
                   int32_t partition = 0) {
  std::string bytes;
  AppendRecord({{id, "value"}, headers, partition, 7, time_ms}, bytes);
  return bytes;
}

struct Written {
  std::string id;
  std::string source;
  std::vector<std::string> headers;  // their names
};

class LyingPeerTest : public testing::Test {
 protected:
  LyingPeerTest() {
    EXPECT_EQ(pipe(to_), 0);
    EXPECT_EQ(pipe(from_), 0);
  }
  ~LyingPeerTest() override {
    if (liar_.joinable()) liar_.join();
    for (const int file : {to_[0], to_[1], from_[0], from_[1]}) close(file);
  }

  // `lie` is the peer: it ends when it returns.
  void Start(const std::function<void(Reconciliation& peer)>& lie, absl::Duration timeout = kLong) {
    liar_ = std::thread([this, lie] {
      FileChannel channel(
          to_[0], from_[1], kLong, [this] { return !is_over_; }, [] { return std::string(); });
      auto peer = Reconciliation::Begin(channel, {.initiates = false, .subject = "key"});
      ASSERT_OK(peer);
      lie(*peer);
    });
    channel_.emplace(
        from_[0], to_[1], timeout, [] { return true; }, [] { return std::string(); });
    auto peers = Reconciliation::Begin(*channel_, {.initiates = true, .subject = "key"});
    ASSERT_OK(peers);
    peers_.emplace(*std::move(peers));
    talk_.emplace(*peers_, *channel_, interrupted_, timeout, /*shows=*/false);
  }
  static absl::Status Say(Reconciliation& peer, ReconcileWord word, absl::string_view payload) {
    const auto number = static_cast<uint64_t>(word);
    return peer.Send(
        absl::StrCat(absl::string_view(reinterpret_cast<const char*>(&number), sizeof number), payload));
  }

  // The peer announces `announced` records, sends these, and says that they were `count`. This side has the
  // id "here".
  absl::StatusOr<int64_t> Receive(const std::vector<std::string>& messages, uint64_t announced, int64_t count,
                                  int64_t pass = 0, int64_t passes = 1) {
    Start([=](Reconciliation& peer) {
      for (const std::string& message : messages) {
        if (!Say(peer, ReconcileWord::kRecords, message).ok()) return;
      }
      Say(peer, ReconcileWord::kEnd, Encode(std::vector<int64_t>{count})).IgnoreError();
    });
    const uint64_t here = peers_->Key("here");
    CopyTerms terms = {{.begin_ms = kBegin, .end_ms = kEnd}, pass, passes, announced, nullptr};
    terms.has = [here](uint64_t key) { return key == here; };
    const absl::StatusOr<IdSpec> id = IdSpec::Parse("key");
    RecordReader reader({*id});
    auto received =
        ReceiveCopies(*talk_, {"cluster", "orders", 2, 1}, terms, reader,
                      [&](const SurveyRecord& record, absl::string_view source) {
                        Written written = {std::string(*record.record.key), std::string(source), {}};
                        for (const Header& header : record.headers) {
                          written.headers.emplace_back(header.first);
                        }
                        written_.push_back(std::move(written));
                        return absl::OkStatus();
                      });
    is_over_ = true;
    return received;
  }
  void ExpectRefused(const std::vector<std::string>& messages, uint64_t announced, int64_t count) {
    const auto received = Receive(messages, announced, count);
    EXPECT_THAT(received.status(), StatusIs(absl::StatusCode::kDataLoss));
  }

  std::vector<Written> written_;
  std::optional<ReconcileTalk> talk_;
  std::optional<Reconciliation> peers_;
  std::atomic<bool> is_over_ = false;

 private:
  int to_[2];
  int from_[2];
  std::thread liar_;
  std::optional<FileChannel> channel_;
  std::atomic<bool> interrupted_ = false;
};

TEST_F(LyingPeerTest, AnHonestOneIsHeard) {
  const auto received =
      Receive({absl::StrCat(Record("a", kBegin), Record("b", kEnd - 1)), Record("c", 1500)}, 3, 3);
  EXPECT_THAT(received, IsOkAndHolds(3));
  ASSERT_EQ(written_.size(), 3u);
  EXPECT_EQ(written_[2].id, "c");
  EXPECT_EQ(written_[2].source, "cluster/orders/0/7");
}

TEST_F(LyingPeerTest, MoreRecordsThanAnnounced) {
  ExpectRefused({Record("a", 1500), absl::StrCat(Record("b", 1500), Record("c", 1500))}, 2, 3);
  EXPECT_EQ(written_.size(), 2u);
}

TEST_F(LyingPeerTest, RecordsWithNoneAnnounced) {
  ExpectRefused({Record("a", 1500)}, 0, 1);
  EXPECT_TRUE(written_.empty());
}

TEST_F(LyingPeerTest, RecordsBeforeTheWindow) { ExpectRefused({Record("a", kBegin - 1)}, 1, 1); }

TEST_F(LyingPeerTest, RecordsAfterTheWindow) { ExpectRefused({Record("a", kEnd)}, 1, 1); }

TEST_F(LyingPeerTest, RecordsWithoutAnId) { ExpectRefused({Record("", 1500)}, 1, 1); }

TEST_F(LyingPeerTest, AnIdThatIsHere) { ExpectRefused({Record("here", 1500)}, 1, 1); }

TEST_F(LyingPeerTest, AnIdTwice) { ExpectRefused({Record("a", 1500), Record("a", 1501)}, 2, 2); }

TEST_F(LyingPeerTest, APartitionThatItsTopicDoesNotHave) { ExpectRefused({Record("a", 1500, {}, 2)}, 1, 1); }

TEST_F(LyingPeerTest, AnotherCountThanItSent) { ExpectRefused({Record("a", 1500)}, 2, 2); }

// They would go on for ever.
TEST_F(LyingPeerTest, MessagesWithoutRecords) { ExpectRefused({"", ""}, 1, 0); }

// Of the ids of another pass this side knows nothing at that time.
TEST_F(LyingPeerTest, AnIdOfAnotherPass) {
  constexpr int64_t kPasses = 1000;
  const auto received = Receive({Record("a", 1500)}, 1, 1, 0, kPasses);
  const bool is_of_this_pass = peers_->Key("a") % kPasses == 0;  // once in a thousand runs
  EXPECT_EQ(received.ok(), is_of_this_pass) << received.status();
}

TEST_F(LyingPeerTest, HeadersThatSayWhereItWasCopiedFrom) {
  const std::vector<Header> headers = {
      {"lethe.copied_from", "x/y/0/1"}, {"trace", "t"}, {"lethe.copied_from", std::nullopt}};
  const auto received = Receive({Record("a", 1500, headers)}, 1, 1);
  ASSERT_OK(received);
  ASSERT_EQ(written_.size(), 1u);
  EXPECT_EQ(written_[0].headers, std::vector<std::string>{"trace"});
}

// Signs of life without progress, or with more and more work to do.
TEST_F(LyingPeerTest, SignsOfLifeDoNotOutlastTheTimeout) {
  Start(
      [this](Reconciliation& peer) {
        for (int64_t i = 1; !is_over_; ++i) {
          const std::vector<int64_t> figures =
              i % 2 == 0 ? std::vector<int64_t>{0, 0} : std::vector<int64_t>{i, i + (int64_t{1} << 40)};
          if (!Say(peer, ReconcileWord::kAlive, Encode(figures)).ok()) return;
          absl::SleepFor(absl::Milliseconds(5));
        }
      },
      kTimeout);
  const absl::Time begin = SteadyNow();
  const absl::Status status = talk_->Receive({ReconcileWord::kReady}).status();
  is_over_ = true;
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_LT(SteadyNow() - begin, absl::Seconds(30));
}

// An honest peer that needs longer than the timeout, and gets on.
TEST_F(LyingPeerTest, ProgressOutlastsTheTimeout) {
  constexpr int64_t kSteps = 100;
  static constexpr absl::Duration kOfAStep = absl::Milliseconds(20);
  Start(
      [](Reconciliation& peer) {
        for (int64_t i = 1; i <= kSteps; ++i) {
          if (!Say(peer, ReconcileWord::kAlive, Encode(std::vector<int64_t>{i, kSteps})).ok()) return;
          absl::SleepFor(kOfAStep);
        }
        Say(peer, ReconcileWord::kReady, Encode(std::vector<int64_t>{5})).IgnoreError();
      },
      kOfAStep * kSteps * 3 / 4);
  std::vector<int64_t> whole_since(1);
  const absl::Status status = talk_->Receive(ReconcileWord::kReady, whole_since);
  EXPECT_OK(status);
  EXPECT_EQ(whole_since[0], 5);
}

// While this side writes: the peer takes nothing, and sends byte by byte.
TEST(FileChannelTest, BytesOneByOneDoNotOutlastTheTimeout) {
  for (const bool reads : {false, true}) {
    int to[2];
    int from[2];
    ASSERT_EQ(pipe(to), 0);
    ASSERT_EQ(pipe(from), 0);
    std::atomic<bool> is_over = false;
    std::thread trickle([&] {
      while (!is_over) {
        ASSERT_EQ(write(from[1], "x", 1), 1);
        absl::SleepFor(absl::Milliseconds(5));
      }
    });
    FileChannel channel(
        from[0], to[1], kTimeout, [] { return true; }, [] { return std::string(); });
    std::string room(1 << 20, '\0');
    const absl::Time begin = SteadyNow();
    const absl::Status status = reads ? channel.Read(room.data(), room.size()) : channel.Write(room);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded));
    EXPECT_LT(SteadyNow() - begin, absl::Seconds(30));
    is_over = true;
    trickle.join();
    for (const int file : {to[0], to[1], from[0], from[1]}) close(file);
  }
}

TEST_F(LyingPeerTest, ALongReasonIsCut) {
  Start([](Reconciliation& peer) {
    Say(peer, ReconcileWord::kFailed, std::string(1 << 20, 'x')).IgnoreError();
  });
  const absl::Status status = talk_->Receive({ReconcileWord::kReady}).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kAborted));
  EXPECT_LT(status.message().size(), 3000u);
}

// Nobody writes into a topic, or reads records of it, because the other side asks for it.
TEST(ServeTest, CopiesOnlyWhatItsOwnFlagAllows) {
  using Copy = ReconcileCommandOptions::Copy;
  const struct {
    std::optional<Copy> allowed;
    bool to_it;
    bool from_it;
  } cases[] = {{std::nullopt, false, false},
               {Copy::kNone, false, false},
               {Copy::kFromPeer, true, false},
               {Copy::kToPeer, false, true},
               {Copy::kBoth, true, true}};
  for (const auto& [allowed, to_it, from_it] : cases) {
    ReconcileCommandOptions options;
    options.serves = true;
    options.copy = allowed;
    for (const bool to : {false, true}) {
      for (const bool from : {false, true}) {
        const bool is_allowed = (!to || to_it) && (!from || from_it);
        EXPECT_EQ(CheckAllowed(options, {.to_peer = to, .from_peer = from}).ok(), is_allowed) << to << from;
      }
    }
  }
}

}  // namespace
}  // namespace lethe
