// From polled messages to verdicts, and what a replay makes of them, in milliseconds: the messages are real,
// from a broker in this process, and everything behind the verdict is looked at where it would be written.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "connectors/kafka/broker/embedded_broker.h"
#include "connectors/kafka/judge.h"
#include "connectors/kafka/replay.h"

namespace lethe::kafka {
namespace {

class VerdictsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { broker_ = EmbeddedBroker::Start().value().release(); }
  static void TearDownTestSuite() { delete broker_; }

  static DaemonOptions Options() {
    DaemonOptions options;
    options.brokers = broker_->bootstrap_servers();
    options.input = absl::StrCat("orders-", ++topics_made_);
    options.group = "judge";
    options.record.id = *IdSpec::Parse("json:/id");
    return options;
  }

  VerdictsTest() {
    EXPECT_TRUE(broker_->CreateTopic(options_.input, 1).ok());
    owned_.filter = *stage_->Open("orders-0");
    owned_.points.emplace(options_.stage.horizon, RestartPoint{});
    owned_.phase = Phase::kActive;
  }

  // Records of these values, as a consumer polls them.
  void Send(const std::vector<std::string>& values) {
    const ClientPtr producer = BaseConfig(options_).MakeProducer().value();
    for (const std::string& value : values) {
      ASSERT_EQ(
          rd_kafka_producev(producer.get(), RD_KAFKA_V_TOPIC(options_.input.c_str()), RD_KAFKA_V_PARTITION(0),
                            RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                            RD_KAFKA_V_VALUE(const_cast<char*>(value.data()), value.size()), RD_KAFKA_V_END),
          RD_KAFKA_RESP_ERR_NO_ERROR);
    }
    ASSERT_EQ(rd_kafka_flush(producer.get(), 10'000), RD_KAFKA_RESP_ERR_NO_ERROR);
    ClientConfig config = BaseConfig(options_);
    config.Set("group.id", options_.group);
    consumer_ = config.MakeConsumer().value();
    const PartitionListPtr list(rd_kafka_topic_partition_list_new(1));
    rd_kafka_topic_partition_list_add(list.get(), options_.input.c_str(), 0)->offset = 0;
    ASSERT_EQ(rd_kafka_assign(consumer_.get(), list.get()), RD_KAFKA_RESP_ERR_NO_ERROR);
    const absl::Time give_up = absl::Now() + absl::Seconds(30);
    while (messages_.size() < values.size() && absl::Now() < give_up) {
      MessagePtr message(rd_kafka_consumer_poll(consumer_.get(), 100));
      if (message != nullptr && message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        messages_.push_back(std::move(message));
      }
    }
    ASSERT_EQ(messages_.size(), values.size());
  }

  JudgedRun Judged(size_t begin = 0) {
    writer_.SetPolicies(options_.policies);
    if (!owned_.in_transaction()) owned_.transaction.emplace(*owned_.filter->Begin());
    return judge_.Run(owned_, absl::MakeConstSpan(messages_).subspan(begin));
  }

  // 'u', 'd' or 's' for each record; '-' without a usable id.
  static std::string Letters(const JudgedRun& run) {
    std::string letters;
    for (const JudgedRecord& record : run.records) {
      letters +=
          record.id_state == RecordFields::State::kPresent ? "uds"[static_cast<int>(record.verdict)] : '-';
    }
    return letters;
  }

  // The transaction with everything up to `next`, as Transactions ends it.
  void End(bool committed, int64_t next) {
    owned_.next = next;
    committed ? owned_.Committed() : owned_.RolledBack();
  }

  inline static EmbeddedBroker* broker_ = nullptr;
  inline static int topics_made_ = 0;
  DaemonOptions options_ = Options();
  Topics topics_;
  StopFlag stop_;
  WorkerState state_{0, stop_};
  std::unique_ptr<DedupStage> stage_ = *DedupStage::Create(options_.stage);
  OwnedPartition owned_;
  Source source_{options_, 0, {}};
  Output output_{options_, 0, stop_, state_.heartbeat, [](const std::string&) {}};
  RecordWriter writer_{options_, topics_, output_};
  RefusalSearch refusals_{{}};
  Warnings warnings_{options_, 0, 1};
  ClientPtr consumer_;  // of the messages
  Messages messages_;
  Judge judge_{options_, topics_, source_, writer_, refusals_, warnings_};
  Replay replay_{options_, state_, source_};
};

TEST_F(VerdictsTest, Rule1WhatWasNotCommittedIsNotRemembered) {
  Send({R"({"id":"a"})", R"({"id":"b"})", R"({"id":"a"})", R"({"id":"c"})"});
  EXPECT_EQ(Letters(Judged()), "uudu") << "the pending set knows the open transaction's ids";
  End(/*committed=*/false, 4);
  EXPECT_EQ(Letters(Judged()), "uudu") << "a write that failed made no copies";
  End(/*committed=*/true, 4);
  EXPECT_EQ(Letters(Judged()), "dddd");
}

TEST_F(VerdictsTest, Rule4AnUndeliverableRecordIsNoFirst) {
  Send({R"({"id":"a"})", R"({"id":"a"})", R"({"id":"a"})"});
  owned_.undeliverable[0] = {"too large"};
  const JudgedRun run = Judged();
  EXPECT_EQ(Letters(run), "uud") << "its copy passes, and the copy of that does not";
  EXPECT_EQ(writer_.DispositionOf(run.records[0], owned_.UndeliverableAt(0)).action, Action::kDrop);
}

TEST_F(VerdictsTest, Rule23ARecordWithoutAnIdStopsItsPartitionInFrontOfItByPolicyOnly) {
  Send({R"({"id":"a"})", R"({"no":"id"})", "broken", R"({"id":"a"})"});
  EXPECT_EQ(Letters(Judged()), "u--d");
  End(/*committed=*/false, 4);
  options_.policies.on_malformed = Action::kFail;
  EXPECT_EQ(Letters(Judged()), "u-");
  EXPECT_FALSE(owned_.stop_before_next.empty());
  End(/*committed=*/true, 2);
  EXPECT_EQ(owned_.phase, Phase::kFailed);
  EXPECT_EQ(owned_.committed, 2);
}

TEST_F(VerdictsTest, ReasonsAndOffsetsAreThoseOfTheirRecords) {
  Send({"broken", R"({"id":"a"})", R"({"no":"id"})"});
  const JudgedRun run = Judged();
  ASSERT_EQ(Letters(run), "-u-");
  for (size_t i = 0; i < run.records.size(); ++i) {
    EXPECT_EQ(run.records[i].message->offset, static_cast<int64_t>(i));
    EXPECT_EQ(run.records[i].reason.empty(), i == 1);
  }
  EXPECT_NE(run.records[0].reason, run.records[2].reason);
}

TEST_F(VerdictsTest, Rule13AReplaySuppressesWhatIsBeforeTheCommitAndRemembersIt) {
  Send({R"({"id":"a"})", R"({"id":"b"})", R"({"id":"b"})", R"({"id":"a"})", R"({"id":"c"})"});
  owned_.phase = Phase::kRestoring;
  owned_.committed = 2;
  const MessageRun rest = replay_.Restore(owned_, absl::MakeConstSpan(messages_));
  EXPECT_EQ(owned_.phase, Phase::kActive);
  EXPECT_EQ(owned_.counts.suppressed, 2);
  ASSERT_EQ(rest.size(), 3u);
  EXPECT_EQ(Letters(Judged(2)), "ddu");
}

TEST_F(VerdictsTest, Rule4AReplayDoesNotRememberWhatWasUndeliverable) {
  Send({R"({"id":"a"})", R"({"id":"a"})"});
  owned_.phase = Phase::kRestoring;
  owned_.committed = 1;
  owned_.passed_over = {0};
  replay_.Restore(owned_, absl::MakeConstSpan(messages_));
  EXPECT_EQ(Letters(Judged(1)), "u");
}

TEST_F(VerdictsTest, Rule3AnotherRecordThanTheFilterRemembersIsNotRecognized) {
  Send({R"({"id":"a"})", R"({"id":"b"})"});
  owned_.phase = Phase::kChecking;
  owned_.committed = owned_.filter_end = 1;
  owned_.mark = {0, MessageView(*messages_[0]).Hash()};
  EXPECT_FALSE(replay_.Recognizes(owned_, *messages_[1]));
  EXPECT_EQ(owned_.phase, Phase::kChecking);
  EXPECT_TRUE(replay_.Recognizes(owned_, *messages_[0]));
  EXPECT_EQ(owned_.phase, Phase::kActive);
}

TEST_F(VerdictsTest, Rule3APartitionStopsOnAnotherLogThanThatOfItsCommit) {
  Send({R"({"id":"a"})", R"({"id":"b"})", R"({"id":"c"})"});
  owned_.phase = Phase::kRestoring;
  owned_.committed = 2;
  owned_.to_compare = LogMark{1, MessageView(*messages_[0]).Hash()};
  EXPECT_TRUE(replay_.Restore(owned_, absl::MakeConstSpan(messages_)).empty());
  EXPECT_EQ(owned_.phase, Phase::kFailed);
  EXPECT_FALSE(owned_.problem.empty());
}

}  // namespace
}  // namespace lethe::kafka
