// The records of a transaction, without a client: what is on its way, what failed, and what that means.
#include "src/pipeline/output/sent_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "src/pipeline/output/codec_choice.h"

namespace lethe {
namespace {

using testing::HasSubstr;

using Kind = WriteFailure::Kind;
constexpr int64_t kOverhead = 10;

class SentRecordsTest : public testing::Test {
 protected:
  SentRecordsTest() { Begin(); }

  void Begin() {
    report_ = TransactionReport();
    sent_.Begin();
  }
  size_t Add(int32_t flow, const std::string& value, int64_t offset = 0) {
    OutputRecord record;
    record.target.flow = flow;
    record.value = value;
    record.of = {.partition = {flow, 0}, .offset = offset};
    return sent_.Add(record);
  }
  // The client took it.
  size_t Send(int32_t flow, size_t bytes) {
    const size_t number = Add(flow, std::string(bytes, 'x'));
    sent_.NoteTaken();
    return number;
  }

  TransactionReport report_;
  SentRecords sent_{report_};
};

TEST_F(SentRecordsTest, SizesAreThoseOnTheWire) {
  EXPECT_EQ(sent_.bytes(), 0);
  const std::vector<HeaderView> headers = {{"name", "value"}, {"null", std::nullopt}};
  OutputRecord record;
  record.key = "key";
  record.value = "the value";
  record.headers = headers;
  EXPECT_EQ(sent_.Add(record), 0u);
  EXPECT_EQ(sent_.bytes(), kOverhead + 3 + 9 + 4 + 5 + 4);
  EXPECT_EQ(Add(1, "12345"), 1u);
  EXPECT_EQ(sent_.bytes(), 2 * kOverhead + 25 + 5);
  EXPECT_EQ(sent_.SizeByFlow().at(0).bytes, kOverhead + 25);
  EXPECT_EQ(sent_.SizeByFlow().at(1).bytes, kOverhead + 5);
  Begin();
  EXPECT_EQ(sent_.bytes(), 0);
  EXPECT_TRUE(sent_.SizeByFlow().empty());
}

TEST_F(SentRecordsTest, RoomIsLookedForSixteenTimesInFourMegabytes) {
  int looks = 0;
  for (int i = 0; i < 4096; ++i) {
    Send(0, 1024 - kOverhead);
    if (sent_.IsRoomDue()) ++looks;
  }
  EXPECT_EQ(looks, 16);
  Send(0, 200'000);
  EXPECT_FALSE(sent_.IsRoomDue());
  Begin();
  Send(0, 200'000);
  EXPECT_FALSE(sent_.IsRoomDue());
  Send(0, 200'000);
  EXPECT_TRUE(sent_.IsRoomDue());
}

// The last ones have no answer: the first is large.
TEST_F(SentRecordsTest, ThereIsRoomWhileTheUnansweredHaveFourMegabytes) {
  EXPECT_TRUE(sent_.HasRoom(0));
  Send(0, SentRecords::kAheadBytes);
  Send(0, SentRecords::kAheadBytes / 2);
  Send(0, SentRecords::kAheadBytes / 2 - 2 * kOverhead);
  EXPECT_TRUE(sent_.HasRoom(0));
  EXPECT_TRUE(sent_.HasRoom(2));
  EXPECT_FALSE(sent_.HasRoom(3));
  EXPECT_FALSE(sent_.HasRoom(100));
}

// The client purges what follows a refused record.
TEST_F(SentRecordsTest, ARefusalCountsAndWhatIsPurgedBecauseOfItDoesNot) {
  Send(0, 1);
  const size_t refused = Send(0, 1);
  sent_.OnFailure(0, {Kind::kOther, "purged"});
  EXPECT_EQ(report_.failure, Failure::kTransient);
  EXPECT_EQ(report_.last_error, "purged");
  sent_.OnFailure(0, {Kind::kOther, "another"});
  EXPECT_EQ(report_.last_error, "purged") << "the first is the cause";
  sent_.OnFailure(refused, {Kind::kTooLarge, "too large"});
  sent_.OnFailure(0, {Kind::kOther, "purged"});
  EXPECT_EQ(report_.failure, Failure::kRefused);
  EXPECT_EQ(report_.last_error, "too large");
  ASSERT_EQ(report_.refusals.size(), 1u);
}

TEST_F(SentRecordsTest, ARefusalSaysWhichRecordAndWhy) {
  OutputRecord record;
  record.key = "key";
  record.value = "value";
  record.timestamp_ms = 1234;
  record.of = {.partition = {3, 7}, .offset = 42, .diverted = true};
  const size_t keyed = sent_.Add(record);
  record.key = std::nullopt;
  record.of.diverted = false;
  const size_t keyless = sent_.Add(record);

  sent_.OnFailure(keyed, {Kind::kInvalidSomehow, "invalid"});
  sent_.OnFailure(keyless, {Kind::kInvalidSomehow, "invalid"});
  sent_.OnFailure(keyed, {Kind::kInvalid, "timestamp"});
  sent_.FailLast({Kind::kTooLarge, "too large"});
  ASSERT_EQ(report_.refusals.size(), 4u);
  const Refusal& first = report_.refusals[0];
  EXPECT_EQ(first.place.partition, (TopicPartition{3, 7}));
  EXPECT_EQ(first.place.offset, 42);
  EXPECT_EQ(first.record.bytes, 8);
  EXPECT_EQ(first.record.timestamp_ms, 1234);
  EXPECT_TRUE(first.record.has_key && first.record.is_invalid && first.record.diverted);
  EXPECT_THAT(first.why, HasSubstr("timestamp"));
  const Refusal& second = report_.refusals[1];
  EXPECT_FALSE(second.record.has_key || second.record.diverted);
  EXPECT_THAT(second.why, HasSubstr("no key"));
  EXPECT_TRUE(report_.refusals[2].record.is_invalid);
  EXPECT_EQ(report_.refusals[2].why, "timestamp");
  EXPECT_FALSE(report_.refusals[3].record.is_invalid);
  EXPECT_EQ(report_.refusals[3].record.bytes, 5);
}

TEST_F(SentRecordsTest, AGoodRecordAmongInvalidOnesIsNoFailure) {
  Send(0, 1);
  EXPECT_FALSE(report_.refusals_are_named);
  sent_.OnFailure(0, {Kind::kGoodAmongInvalid, "good"});
  EXPECT_EQ(report_.failure, Failure::kNone);
  EXPECT_TRUE(report_.refusals.empty());
  EXPECT_TRUE(report_.refusals_are_named);
}

TEST_F(SentRecordsTest, FlowsAreBlamedForTheirTopicsWithTheRemedy) {
  for (int32_t flow = 0; flow < 5; ++flow) Send(flow, 1);
  sent_.OnFailure(0, {Kind::kOther, "away", "a"});
  sent_.OnFailure(1, {Kind::kMayNotWrite, "denied", "b"});
  sent_.OnFailure(2, {Kind::kNoPartition, "none", "c"});
  sent_.OnFailure(3, {Kind::kOfTopic, "unknown", "d"});
  EXPECT_EQ(report_.failure, Failure::kTransient);
  EXPECT_EQ(report_.last_error, "away");
  ASSERT_EQ(report_.to_blame.size(), 3u);
  EXPECT_THAT(report_.to_blame.at(1), HasSubstr("topic b: denied"));
  EXPECT_THAT(report_.to_blame.at(1), HasSubstr("grant"));
  EXPECT_THAT(report_.to_blame.at(2), HasSubstr("add partitions"));
  EXPECT_EQ(report_.to_blame.at(3), "topic d: unknown");
}

// A report that comes late, of a transaction that had more records.
TEST_F(SentRecordsTest, AFailureOfAnUnknownRecordBlamesNobody) {
  Send(0, 1);
  sent_.OnFailure(1, {Kind::kTooLarge, "too large"});
  EXPECT_EQ(report_.failure, Failure::kNone);
  sent_.OnFailure(1, {Kind::kMayNotWrite, "denied", "a"});
  EXPECT_EQ(report_.failure, Failure::kTransient);
  EXPECT_TRUE(report_.refusals.empty() && report_.to_blame.empty());
}

// A record that may be in the broker's log, and is not of the transaction, would stand for a later one.
TEST_F(SentRecordsTest, UnansweredRecordsNeedANewProducerUnlessOneWasRefused) {
  Send(0, 1);
  EXPECT_FALSE(sent_.NeedsNewProducer(false));
  EXPECT_TRUE(sent_.NeedsNewProducer(true));
  sent_.OnFailure(0, {Kind::kTooLarge, "too large"});
  EXPECT_FALSE(sent_.NeedsNewProducer(true));
  sent_.OnFailure(0, {.kind = Kind::kOther, .why = "lost", .may_be_written = true});
  sent_.OnFailure(0, {Kind::kOther, "and one that is not"});
  EXPECT_TRUE(sent_.NeedsNewProducer(false));
  Begin();
  EXPECT_FALSE(sent_.NeedsNewProducer(false));
}

TEST_F(SentRecordsTest, WhatHadNoAnswerAtTheEndIsNotAcknowledged) {
  for (int i = 0; i < 4; ++i) Send(0, 1000 - kOverhead);
  sent_.OnAnswer(0);
  EXPECT_EQ(sent_.acknowledged(), 4000);
  sent_.NoteEnd(3);
  EXPECT_EQ(sent_.acknowledged(), 1000);
  EXPECT_EQ(sent_.SizeByFlow().at(0).acknowledged, 1000);
  for (int i = 0; i < 3; ++i) sent_.OnAnswer(0);  // the abort answers all
  EXPECT_EQ(sent_.SizeByFlow().at(0).acknowledged, 1000);
  Begin();
  Send(0, 1000 - kOverhead);
  EXPECT_EQ(sent_.acknowledged(), 1000);
}

TEST_F(SentRecordsTest, AFlowWaitsWhileItsOwnRecordsHaveNoAnswer) {
  Send(0, 1000 - kOverhead);
  Send(1, 1000 - kOverhead);
  Send(1, 1000 - kOverhead);
  sent_.NoteWait(absl::Milliseconds(1));
  sent_.OnAnswer(0);
  sent_.OnAnswer(1);
  sent_.NoteWait(absl::Milliseconds(10));
  Add(0, "the client did not take it");
  sent_.NoteWait(absl::Milliseconds(100));
  sent_.NoteEnd(1);
  const auto sizes = sent_.SizeByFlow();
  EXPECT_EQ(sizes.at(0).waited, absl::Milliseconds(1));
  EXPECT_EQ(sizes.at(1).waited, absl::Milliseconds(111));
  EXPECT_EQ(sizes.at(0).acknowledged, sizes.at(0).bytes);
  EXPECT_EQ(sizes.at(1).acknowledged, 1000);
  // The new client answers nothing that the former one was given.
  sent_.ForgetAnswers();
  Begin();
  Send(1, 1000 - kOverhead);
  sent_.NoteWait(absl::Milliseconds(1));
  sent_.OnAnswer(1);
  sent_.NoteWait(absl::Milliseconds(10));
  EXPECT_EQ(sent_.SizeByFlow().at(1).waited, absl::Milliseconds(1));
}

class CodecChoiceTest : public testing::Test {
 protected:
  static TransactionReport Refused(bool is_invalid) {
    TransactionReport report;
    report.failure = Failure::kRefused;
    report.refusals = {{.place = {}, .record = {.is_invalid = is_invalid}, .why = ""}};
    return report;
  }

  DaemonOptions options_;
  CodecChoice choice_;
};

TEST_F(CodecChoiceTest, ARecordThatIsTooLargeIsTriedWithADenserOneFirst) {
  EXPECT_EQ(choice_.codec(), "lz4");
  TransactionReport report = Refused(/*is_invalid=*/false);
  EXPECT_TRUE(choice_.Change(options_, report));
  EXPECT_EQ(choice_.codec(), "zstd");
  EXPECT_EQ(report.failure, Failure::kTransient);
  report = Refused(/*is_invalid=*/false);
  EXPECT_FALSE(choice_.Change(options_, report));
  EXPECT_EQ(report.failure, Failure::kRefused);
}

TEST_F(CodecChoiceTest, StaysForOtherRefusals) {
  TransactionReport report = Refused(/*is_invalid=*/true);
  EXPECT_FALSE(choice_.Change(options_, report));
  EXPECT_EQ(choice_.codec(), "lz4");
  EXPECT_EQ(report.failure, Failure::kRefused);
}

TEST_F(CodecChoiceTest, TheUsersStays) {
  for (const char* name : {"compression.type", "compression.codec"}) {
    options_.process.properties = {{"linger.ms", "1"}, {name, "none"}};
    TransactionReport report = Refused(/*is_invalid=*/false);
    EXPECT_FALSE(choice_.Change(options_, report)) << name;
    EXPECT_EQ(report.failure, Failure::kRefused);
  }
}

}  // namespace
}  // namespace lethe
