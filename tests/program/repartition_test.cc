// Where a record is routed, and what it carries on the way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/pipeline/options/stage_options.h"
#include "src/pipeline/preflight/repartition_rules.h"
#include "src/pipeline/router.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

using testing::HasSubstr;
using testing::Not;

RecordFields WithId(absl::string_view id) {
  RecordFields fields;
  fields.id_state = RecordFields::State::kPresent;
  fields.id = id;
  return fields;
}

// Written down, since ids that are routed elsewhere by another version no longer meet their copies.
TEST(Repartition, TheWayOfAnIdNeverChanges) {
  const InputRecord record;
  std::string ways;
  for (int i = 0; i < 20; ++i) absl::StrAppend(&ways, Route(WithId(absl::StrCat("id-", i)), record, 12), " ");
  EXPECT_EQ(ways, "8 1 1 8 7 11 1 8 6 7 6 7 8 10 1 5 2 5 10 5 ");
}

TEST(Repartition, IdsAreSpreadEvenly) {
  const InputRecord record;
  std::map<int32_t, int> counts;
  for (int i = 0; i < 7000; ++i) ++counts[Route(WithId(absl::StrCat(i)), record, 7)];
  ASSERT_EQ(counts.size(), 7u);
  for (const auto& [partition, count] : counts) EXPECT_NEAR(count, 1000, 150) << partition;
}

TEST(Repartition, WithoutAnIdTheKeyDecidesAndWithoutAKeyThePartition) {
  InputRecord record;
  record.partition = 17;
  EXPECT_EQ(Route(RecordFields(), record, 5), 2);
  record.key = "k";
  EXPECT_EQ(Route(RecordFields(), record, 5), Route(WithId("k"), record, 5));
}

// A record without an id meets its policy in the second stage, and nothing is judged twice.
TEST(Repartition, TheFirstStageJudgesNothingAndTheSecondDoes) {
  DaemonOptions options;
  options.input = "orders";
  const DaemonOptions second = JudgingOptions(options);
  const InputRecord record;
  std::vector<HeaderView> none;
  EXPECT_FALSE(Router(SystemClock()).IsJudged(WithId("1")));
  EXPECT_TRUE(Judge(SystemClock()).IsJudged(WithId("1")));
  EXPECT_FALSE(Judge(SystemClock()).IsJudged(RecordFields()));
  EXPECT_EQ(Route(WithId("id-0"), record, 12), 8);
  // Written there by somebody else.
  EXPECT_EQ(OriginalOf(second, {3, 4}, none).topic, second.input);
  const auto from = RoutedFromHeaders({1, 2});
  std::vector<HeaderView> headers;
  for (const AddedHeader& header : from) headers.push_back({header.name, header.value});
  const Original original = OriginalOf(second, {3, 4}, headers);
  EXPECT_EQ(original.topic, "orders");
  EXPECT_EQ(original.place.partition, 1);
  EXPECT_EQ(original.place.offset, 2);
  EXPECT_TRUE(headers.empty());
}

TEST(Repartition, WithTheTopicGoesWhatWasRoutedToIt) {
  DaemonOptions options;
  options.process.group = "lethe-orders";
  options.input = "orders";
  options.output = "unique";
  options.process.brokers = "b:9092";
  CommitMetadata story;
  story.origin.offset = 7;
  story.restart.offset = 7;
  story.origin.partitions = 2;
  story.id_fingerprint = "5f0c3a9be1d2/2";
  story.horizon = absl::Seconds(1);
  const CommittedOffset none = {};
  const CommittedOffset begun = {7, story.ToString()};
  const CommittedOffset reset = {3, ""};
  EXPECT_FALSE(LostWithTopic(options, {none, none}));
  EXPECT_FALSE(LostWithTopic(options, {begun, none})) << "nothing was routed";
  EXPECT_FALSE(LostWithTopic(options, {reset, {9, "by another program"}}));
  for (const CommittedOffset& routed :
       {CommittedOffset{8, story.ToString()}, {0, "lethe/3 o=0"}, {0, "lethe/1 o=7"}}) {
    const auto lost = LostWithTopic(options, {reset, routed});
    ASSERT_TRUE(lost) << routed.metadata;
    EXPECT_EQ(lost->severity, Finding::Severity::kError);
    EXPECT_EQ(lost->where, "repartition topic lethe-orders-orders-repartition");
    EXPECT_THAT(lost->Text(), HasSubstr("is gone, and group lethe-orders-repartition has routed"));
    EXPECT_THAT(lost->remedy,
                HasSubstr("kafka-consumer-groups.sh --bootstrap-server b:9092 --group "
                          "lethe-orders-repartition --topic orders --reset-offsets --to-earliest"));
    EXPECT_THAT(lost->remedy, Not(HasSubstr("counted")));
  }
  options.counters = {{"counts", CounterMode::kDelta, {}, "counts"}};
  EXPECT_THAT(LostWithTopic(options, {{8, story.ToString()}})->remedy, HasSubstr("counted again"));
}

TEST(Repartition, ATopicWhoseJudgedOffsetsAreGoneIsAWarning) {
  DaemonOptions options;
  options.process.group = "lethe-orders";
  options.process.brokers = "b:9092";
  options.input = "orders";
  options.output = "orders-unique";
  CommitMetadata story;
  story.origin.offset = story.restart.offset = 7;
  story.origin.partitions = 2;
  story.id_fingerprint = "5f0c3a9be1d2/2";
  story.horizon = absl::Seconds(1);
  const CommittedOffset none = {};
  const CommittedOffset begun = {7, story.ToString()};
  const CommittedOffset routed = {8, story.ToString()};
  EXPECT_FALSE(LostInTopic(options, {begun, none}, {none, none})) << "nothing was routed";
  EXPECT_FALSE(LostInTopic(options, {begun, routed}, {begun, routed})) << "all is judged";
  // Some may have been committed again, where the new topic had grown beyond the offset of the former.
  const auto lost = LostInTopic(options, {begun, routed}, {none, routed});
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->severity, Finding::Severity::kWarning);
  EXPECT_THAT(lost->what, HasSubstr("no committed offset of 1 of 2 partitions"));
  EXPECT_THAT(lost->remedy,
              HasSubstr("kafka-consumer-groups.sh --bootstrap-server b:9092 --group "
                        "lethe-orders-repartition --topic orders --reset-offsets --to-earliest"));
}

TEST(Repartition, TheHeadersGoOnAndComeOff) {
  std::vector<HeaderView> headers;
  EXPECT_FALSE(TakeRoutedFrom(/*is_merged=*/false, headers));
  headers = {{"own", "1"}, {"null", std::nullopt}};
  EXPECT_FALSE(TakeRoutedFrom(/*is_merged=*/false, headers));
  // What a record brings along under the same names is its own.
  const auto first = RoutedFromHeaders({1, 2});
  const auto second = RoutedFromHeaders({3, 12'345'678'901});
  for (const AddedHeader& header : first) headers.push_back({header.name, header.value});
  for (const AddedHeader& header : second) headers.push_back({header.name, header.value});
  const auto from = TakeRoutedFrom(/*is_merged=*/false, headers);
  ASSERT_TRUE(from.has_value());
  EXPECT_EQ(from->partition, 3);
  EXPECT_EQ(from->offset, 12'345'678'901);
  EXPECT_EQ(headers.size(), 4u);
  EXPECT_EQ(TakeRoutedFrom(/*is_merged=*/false, headers)->partition, 1);
  EXPECT_EQ(headers.size(), 2u);

  std::vector<HeaderView> damaged = {{"lethe.routed.partition", "x"}, {"lethe.routed.offset", "1"}};
  EXPECT_FALSE(TakeRoutedFrom(/*is_merged=*/false, damaged));
  EXPECT_EQ(damaged.size(), 2u);
}

TEST(Repartition, OfMergedInputsTheNameGoesAlong) {
  DaemonOptions options;
  options.process.group = "lethe";
  options.input = "west";
  options.merged = {"west", "east"};
  options.output = "all";
  options.scope = Scope::kTopic;
  options.policies.on_unread_deleted = OnUnreadDeleted::kContinue;
  EXPECT_EQ(RepartitionTopic(options), "lethe-all-repartition");
  const DaemonOptions routing = RoutingOptions(options, "east");
  EXPECT_EQ(routing.policies.on_unread_deleted, OnUnreadDeleted::kContinue) << "the input is the router's";
  EXPECT_EQ(routing.input, "east");
  EXPECT_EQ(routing.output, "lethe-all-repartition");
  const DaemonOptions judging = JudgingOptions(options);
  EXPECT_EQ(judging.input, "lethe-all-repartition");
  EXPECT_EQ(judging.half.routed_from, options.merged);
  EXPECT_EQ(judging.origin(), "all") << "a list that grows changes no totals";
  std::vector<HeaderView> headers = {{"own", "1"}};
  const auto added = RoutedFromHeaders({1, 2, "east"});
  for (const AddedHeader& header : added) headers.push_back({header.name, header.value});
  const Original original = OriginalOf(judging, {3, 4}, headers);
  EXPECT_EQ(original.topic, "east");
  EXPECT_EQ(original.place.partition, 1);
  EXPECT_EQ(original.place.offset, 2);
  EXPECT_EQ(headers.size(), 1u);
  // Written there by somebody else.
  std::vector<HeaderView> foreign = {{"lethe.routed.partition", "1"}, {"lethe.routed.offset", "1"}};
  EXPECT_FALSE(TakeRoutedFrom(/*is_merged=*/true, foreign));
  EXPECT_EQ(foreign.size(), 2u);
}

// Whatever the input took is to fit, also when it is routed late, and to be as safe as it was there.
TEST(Repartition, ItsTopicAcceptsEveryRecordOfTheInput) {
  TopicFacts input{"orders", 4, {}, true};
  EXPECT_FALSE(RepartitionConfig(input).contains(TopicFacts::kDifference)) << "the brokers may not know it";
  input.config = {{TopicFacts::kDifference, "1000"}};
  EXPECT_EQ(RepartitionConfig(input).at(TopicFacts::kDifference), "9223372036854775807");
  EXPECT_FALSE(RepartitionConfig(input).contains(TopicFacts::kAfter));
  input.config = {{TopicFacts::kBefore, "1000"},
                  {TopicFacts::kAfter, "3600000"},
                  {"max.message.bytes", "1000"},
                  {"min.insync.replicas", "2"}};
  const auto config = RepartitionConfig(input);
  EXPECT_EQ(config.at(TopicFacts::kBefore), "9223372036854775807");
  EXPECT_EQ(config.at(TopicFacts::kAfter), "9223372036854775807");
  EXPECT_FALSE(config.contains(TopicFacts::kDifference));
  EXPECT_EQ(config.at("max.message.bytes"), "1256");
  EXPECT_EQ(config.at("min.insync.replicas"), "2");
  EXPECT_EQ(config.at("segment.bytes"), "52428800");
  input.config["max.message.bytes"] = "95000000";  // and a batch must fit into a segment
  EXPECT_EQ(RepartitionConfig(input).at("segment.bytes"), "95000256");
}

TEST(Repartition, TheStagesAreChained) {
  DaemonOptions options;
  options.input = "orders";
  options.output = "orders-unique";
  options.process.group = "group";
  options.start = Start::kLatest;
  options.divert = "orders-diverted";
  options.policies.on_duplicate = Action::kDivert;
  const DaemonOptions routing = RoutingOptions(options, "orders");
  const DaemonOptions judging = JudgingOptions(options);
  EXPECT_EQ(routing.input, "orders");
  EXPECT_EQ(routing.output, "group-orders-repartition");
  EXPECT_EQ(routing.process.group, "group-repartition");
  EXPECT_EQ(routing.start, Start::kLatest);
  EXPECT_EQ(routing.divert, "");  // it has no duplicates
  EXPECT_OK(Validate(routing.stage));
  EXPECT_EQ(judging.input, routing.output);
  EXPECT_EQ(judging.half.routed_from, std::vector<std::string>{"orders"});
  EXPECT_EQ(judging.output, "orders-unique");
  EXPECT_EQ(judging.start, Start::kEarliest);
}

TEST(Repartition, PartitionsAreOfTopicsThatKeepThemAndAllMustExist) {
  DaemonOptions options;
  options.input = "orders";
  options.output = "orders-unique";
  options.divert = "orders-diverted";
  options.counters.resize(2);
  options.counters[0].output = "deltas";
  options.counters[1].output = "totals";
  options.counters[1].mode = CounterMode::kTotal;
  std::map<std::string, int32_t> there = {
      {"orders-unique", 9}, {"orders-diverted", 8}, {"deltas", 1}, {"totals", 7}};
  const auto count = [&](const std::string& topic) -> absl::StatusOr<int32_t> {
    const auto found = there.find(topic);
    if (found == there.end()) return absl::NotFoundError(topic);
    return found->second;
  };
  EXPECT_EQ(LeastPartitions(options, count)->partitions, 7);
  EXPECT_EQ(LeastPartitions(options, count)->topic, "totals");
  for (const auto& [topic, partitions] : std::map(there)) {
    there.erase(topic);
    EXPECT_EQ(LeastPartitions(options, count).status(), absl::NotFoundError(topic));
    there[topic] = partitions;
  }
}

}  // namespace
}  // namespace lethe
