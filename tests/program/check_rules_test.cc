// The rules of `lethe check`, without a broker: what is found in descriptions and samples, and how it is
// told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <simdjson.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "connectors/http/http_server.h"
#include "connectors/kafka/preflight/probes.h"
#include "src/cli/commands/check_command.h"
#include "src/pipeline/clock/clock.h"
#include "src/pipeline/options/stage_options.h"
#include "src/pipeline/preflight/check.h"
#include "src/pipeline/preflight/group_rules.h"
#include "src/pipeline/preflight/log_rules.h"
#include "src/pipeline/preflight/memory_rules.h"
#include "src/pipeline/preflight/topic_rules.h"
#include "src/pipeline/restore/commit_metadata.h"
#include "tests/support/fake_schemas.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

using Severity = Finding::Severity;

DaemonOptions Options() {
  DaemonOptions options;
  options.process.brokers = "b:9092";
  options.input = "in";
  options.output = "out";
  options.record.id = *IdSpec::Parse("json:/id");
  options.stage.horizon = absl::Hours(24);
  return options;
}

TopicFacts Topic(const std::string& name, std::map<std::string, std::string> config = {}) {
  config.try_emplace("cleanup.policy", "delete");
  config.try_emplace("retention.ms", "604800000");
  config.try_emplace("retention.bytes", "-1");
  config.try_emplace("max.message.bytes", "1048588");
  config.try_emplace("message.timestamp.type", "CreateTime");
  return {name, 4, std::move(config), true};
}

// What is not fine, as "warning retention;error partitions;".
std::string Wrong(const std::vector<Finding>& findings) {
  std::string wrong;
  for (const Finding& finding : findings) {
    if (finding.severity == Severity::kOk) {
      EXPECT_EQ(finding.remedy, "") << finding.Text();
      continue;
    }
    EXPECT_NE(finding.remedy, "") << finding.Text();
    absl::StrAppend(&wrong, finding.severity == Severity::kError ? "error " : "warning ", finding.check, ";");
  }
  return wrong;
}

std::string WrongTopics(const TopicFacts& input, const TopicFacts& output,
                        const TopicFacts* counter = nullptr, CounterMode mode = CounterMode::kDelta) {
  AllTopics topics = {input, output};
  DaemonOptions options = Options();
  if (counter != nullptr) {
    topics.counters = {*counter};
    options.counters = {{"n", mode, {}, counter->name}};
  }
  return Wrong(ApplyTopicRules(options, topics));
}

TEST(TopicRules, WhatFitsIsFine) {
  const TopicFacts counter = Topic("counts");
  EXPECT_EQ(WrongTopics(Topic("in"), Topic("out"), &counter), "");
  EXPECT_EQ(WrongTopics(Topic("in", {{"retention.ms", "-1"}}), Topic("out")), "");
  EXPECT_EQ(WrongTopics(Topic("in", {{"retention.ms", "86400000"}}), Topic("out")), "");
}

TEST(TopicRules, ACompactedOutputIsWarnedOf) {
  for (const std::string policy : {"compact", "compact,delete"}) {
    EXPECT_EQ(WrongTopics(Topic("in"), Topic("out", {{"cleanup.policy", policy}})),
              "warning cleanup.policy;");
  }
}

TEST(TopicRules, AnInputOfLargeGzipBatchesMayTakeALotOfMemory) {
  const auto wrong = [](const std::string& codec, const std::string& bytes) {
    return WrongTopics(Topic("in", {{"compression.type", codec}, {"max.message.bytes", bytes}}),
                       Topic("out", {{"max.message.bytes", bytes}}));
  };
  EXPECT_EQ(wrong("producer", "10485760"), "warning decompression;");
  EXPECT_EQ(wrong("gzip", "10485760"), "warning decompression;");
  EXPECT_EQ(wrong("producer", "1048588"), "");
  for (const char* codec : {"zstd", "lz4", "snappy", "uncompressed"}) EXPECT_EQ(wrong(codec, "10485760"), "");
}

TEST(TopicRules, MemoryHasRoomForTheSmallestFilters) {
  DaemonOptions options = Options();
  AllTopics topics = {Topic("in"), Topic("out")};
  topics.input.partitions = topics.output.partitions = 60;
  options.stage.memory_limit_bytes = LeastMemory(options, 60);
  EXPECT_EQ(Wrong(ApplyTopicRules(options, topics)), "");
  options.stage.memory_limit_bytes -= 1024;
  EXPECT_EQ(Wrong(ApplyTopicRules(options, topics)), "warning memory;");
}

TEST(TopicRules, TotalsAreCompactedAndInThePartitionOfTheirInput) {
  const auto wrong = [](const TopicFacts& totals) {
    return WrongTopics(Topic("in"), Topic("out"), &totals, CounterMode::kTotal);
  };
  TopicFacts totals = Topic("totals", {{"cleanup.policy", "compact"}});
  EXPECT_EQ(wrong(totals), "");
  EXPECT_EQ(wrong(Topic("totals")), "error cleanup.policy;");
  EXPECT_EQ(wrong(Topic("totals", {{"cleanup.policy", "compact,delete"}})), "error cleanup.policy;");
  totals.partitions = 3;
  EXPECT_EQ(wrong(totals), "error partitions;");
  TopicFacts missing;
  missing.name = "totals";
  EXPECT_EQ(wrong(missing), "");  // lethe makes it
}

TEST(TopicRules, DivertedRecordsKeepTheirPartition) {
  AllTopics topics = {Topic("in"), Topic("out")};
  topics.divert = Topic("diverted");
  EXPECT_EQ(Wrong(ApplyTopicRules(Options(), topics)), "");
  topics.divert->partitions = 3;
  EXPECT_EQ(Wrong(ApplyTopicRules(Options(), topics)), "error partitions;");
  topics.divert = Topic("diverted", {{"cleanup.policy", "compact"}});
  EXPECT_EQ(Wrong(ApplyTopicRules(Options(), topics)), "error cleanup.policy;");
}

// What is read to rebuild filters is the copy, and what places records have is the input's to say.
TEST(TopicRules, ACopiedInputNeedNotBeKept) {
  DaemonOptions options = Options();
  options.scope = Scope::kTopic;
  AllTopics topics = {Topic("in", {{"retention.ms", "1000"}}), Topic("out")};
  EXPECT_EQ(Wrong(ApplyTopicRules(options, topics)), "");
  options.half.routed_from = {"in"};
  topics.origin = topics.input;
  topics.input = Topic("copy", {{"retention.ms", "-1"}, {"max.message.bytes", "1048844"}});
  topics.input.partitions = 8;
  EXPECT_EQ(Wrong(ApplyTopicRules(options, topics)), "");
}

// What was written to a weaker topic is lost where the input's records survive.
TEST(TopicRules, WhatIsWrittenIsAsSafeAsTheInput) {
  DaemonOptions options = Options();
  AllTopics topics = {Topic("in", {{"min.insync.replicas", "2"}}),
                      Topic("out", {{"min.insync.replicas", "2"}})};
  options.counters = {{"n", CounterMode::kDelta, {}, "counts"}};
  topics.counters = {topics.output};
  topics.divert = topics.output;
  for (TopicFacts* topic : {&topics.input, &topics.output, &topics.counters[0], &*topics.divert}) {
    topic->replicas = 3;
  }
  EXPECT_EQ(Wrong(ApplyTopicRules(options, topics)), "");
  for (TopicFacts* topic : {&topics.output, &topics.counters[0], &*topics.divert}) {
    const TopicFacts before = *topic;
    topic->replicas = 1;
    EXPECT_EQ(Wrong(ApplyTopicRules(options, topics)), "warning replicas;") << topic->name;
    topic->config["min.insync.replicas"] = "1";
    EXPECT_EQ(Wrong(ApplyTopicRules(options, topics)), "warning replicas;warning min.insync;");
    topic->replicas = 3;
    EXPECT_EQ(Wrong(ApplyTopicRules(options, topics)), "warning min.insync;");
    *topic = before;
  }
  topics.input.replicas = 1;
  topics.input.config.erase("min.insync.replicas");
  EXPECT_EQ(Wrong(ApplyTopicRules(options, topics)), "") << "safer than the input";
}

TEST(TopicRules, ATopicIsCreatedLikeItsInput) {
  TopicFacts input = Topic("in", {{"min.insync.replicas", "2"}, {"max.message.bytes", "2000000"}});
  input.replicas = 3;
  TopicFacts other = Topic("more", {{"retention.ms", "-1"}, {"retention.bytes", "1000"}});
  other.partitions = 6;
  input.Join(other);
  const std::string missing(MissingTopic(Options(), "output", "out", input, /*others=*/{}).message());
  EXPECT_THAT(missing, HasSubstr("lethe check --create"));
  EXPECT_THAT(missing,
              HasSubstr("kafka-topics.sh --bootstrap-server b:9092 --create --topic out --partitions 6 "
                        "--replication-factor 3 --config max.message.bytes=2000000 --config "
                        "min.insync.replicas=2 --config retention.bytes=-1 --config retention.ms=-1"));
  // Of a cluster that says nothing of settings.
  const absl::Status least = MissingTopic(Options(), "output", "out", {.name = "in", .partitions = 6}, {});
  EXPECT_THAT(std::string(least.message()), EndsWith("--create --topic out --partitions 6"));
}

// Topics that lethe makes itself may have been made by somebody else before.
TEST(TopicRules, WhatLetheMakesItselfMustBeAsItWouldMakeIt) {
  AllTopics topics = {Topic("in"), Topic("out")};
  topics.snapshots = Topic("snapshots", {{"cleanup.policy", "compact"}});
  EXPECT_EQ(Wrong(ApplyTopicRules(Options(), topics)), "");
  for (const std::string policy : {"delete", "compact,delete"}) {
    topics.snapshots = Topic("snapshots", {{"cleanup.policy", policy}});
    EXPECT_EQ(Wrong(ApplyTopicRules(Options(), topics)), "warning cleanup.policy;") << policy;
  }
  topics.snapshots.reset();
  DaemonOptions options = Options();
  options.scope = Scope::kTopic;
  const TopicFacts made = Topic("r", {{"retention.ms", "-1"}, {"max.message.bytes", "1048844"}});
  topics.repartition = made;
  EXPECT_EQ(Wrong(ApplyTopicRules(options, topics)), "");
  topics.repartition->partitions = 5;
  EXPECT_EQ(Wrong(ApplyTopicRules(options, topics)), "warning partitions;");
  topics.repartition = made;
  topics.input.replicas = 3;
  topics.repartition->replicas = 3;
  EXPECT_EQ(Wrong(ApplyTopicRules(options, topics)), "");
  topics.repartition->replicas = 1;
  EXPECT_EQ(Wrong(ApplyTopicRules(options, topics)), "warning replicas;");
  topics.repartition = made;
  topics.repartition->config[TopicFacts::kAfter] = "3600000";
  EXPECT_EQ(Wrong(ApplyTopicRules(options, topics)), "warning timestamp bounds;");
  topics.input.config[TopicFacts::kAfter] = "3600000";
  EXPECT_EQ(Wrong(ApplyTopicRules(options, topics)), "");
  topics.repartition->config[TopicFacts::kBefore] = "3600000";
  topics.input.config[TopicFacts::kBefore] = "3600000";
  EXPECT_EQ(Wrong(ApplyTopicRules(options, topics)), "warning timestamp bounds;") << "of a lag";
  topics.input.config.erase(TopicFacts::kAfter);
  topics.repartition = made;
  topics.repartition->config[TopicFacts::kDifference] = "3600000";
  EXPECT_EQ(Wrong(ApplyTopicRules(options, topics)), "warning timestamp bounds;") << "of older brokers";
  topics.repartition = Topic("r", {{"cleanup.policy", "compact"}, {"retention.ms", "1000"}});
  EXPECT_EQ(Wrong(ApplyTopicRules(options, topics)), "error cleanup.policy;warning retention;");
}

TEST(TopicRules, WhatDoesNotFitIsFound) {
  EXPECT_EQ(WrongTopics(Topic("in", {{"retention.ms", "86399999"}}), Topic("out")), "warning retention;");
  EXPECT_EQ(WrongTopics(Topic("in", {{"cleanup.policy", "compact,delete"}}), Topic("out")),
            "error cleanup.policy;");
  EXPECT_EQ(WrongTopics(Topic("in"), Topic("out", {{"message.timestamp.type", "LogAppendTime"}})),
            "warning timestamps;");
  EXPECT_EQ(WrongTopics(Topic("in"), Topic("out", {{"max.message.bytes", "1048587"}})), "warning size;");
  TopicFacts narrow = Topic("out");
  narrow.partitions = 3;
  EXPECT_EQ(WrongTopics(Topic("in"), narrow), "error partitions;");
  EXPECT_EQ(WrongTopics(Topic("in"), Topic("out"), &narrow), "");  // deltas go where their keys belong
  TopicFacts wide = Topic("out");
  wide.partitions = 5;
  EXPECT_EQ(WrongTopics(Topic("in"), wide), "warning partitions;");
  const TopicFacts compacted = Topic("counts", {{"cleanup.policy", "compact"}});
  EXPECT_EQ(WrongTopics(Topic("in"), Topic("out"), &compacted), "error cleanup.policy;");
}

// A restart reads the horizon before what is to be judged next.
TEST(TopicRules, TheInputMustBeKeptForTheLagToo) {
  AllTopics topics = {Topic("in", {{"retention.ms", "90000000"}}), Topic("out")};  // 25 h
  topics.lag = absl::Minutes(59) + absl::Milliseconds(3);
  EXPECT_EQ(Wrong(ApplyTopicRules(Options(), topics)), "");
  topics.lag = absl::Minutes(61) + absl::Milliseconds(3);
  const std::vector<Finding> findings = ApplyTopicRules(Options(), topics);
  EXPECT_EQ(Wrong(findings), "warning retention;");
  EXPECT_THAT(findings[2].what, HasSubstr("less than the horizon of 24h and the lag of the group of 1h1m:"))
      << findings[2].Text();
  topics.input.config["retention.ms"] = "-1";
  EXPECT_EQ(Wrong(ApplyTopicRules(Options(), topics)), "");
}

TEST(TopicRules, UnknownSettingsAreNotJudged) {
  const TopicFacts silent_in{"in", 4, {}, true}, silent_out{"out", 4, {}, true};
  EXPECT_EQ(WrongTopics(silent_in, silent_out), "");
  const TopicFacts denied{"in", 4, {}, false};
  EXPECT_EQ(WrongTopics(denied, Topic("out", {{"max.message.bytes", "1"}})), "warning description;");
}

LogSample Sample() {
  LogSample sample;
  sample.records = 1000;
  sample.bytes = 100'000;
  sample.newest = absl::Now() - absl::Seconds(1);
  for (int32_t i = 0; i < 4; ++i) {
    sample.partitions.push_back({i, 0, 1'000'000, absl::Now() - absl::Hours(48), 1.0});
  }
  return sample;
}

std::string WrongLog(const LogSample& sample, std::map<std::string, std::string> config = {},
                     const DaemonOptions& options = Options()) {
  return Wrong(ApplyLogRules(options, Topic("in", std::move(config)), sample, absl::Now()));
}

TEST(LogRules, AGoodLogIsFine) {
  EXPECT_EQ(WrongLog(Sample()), "");
  EXPECT_EQ(WrongLog(LogSample()), "");
}

TEST(LogRules, IdsAndKeys) {
  LogSample sample = Sample();
  sample.without_id = 1;
  EXPECT_EQ(WrongLog(sample), "warning ids;");
  sample.malformed = 1;
  EXPECT_EQ(WrongLog(sample), "warning ids;warning ids;");
  sample.without_id = sample.records - 2;
  EXPECT_EQ(WrongLog(sample), "warning ids;warning ids;");
  sample.without_id = sample.records - 1;
  EXPECT_EQ(WrongLog(sample), "error ids;");
  sample = Sample();
  sample.without_key = 1;
  EXPECT_EQ(WrongLog(sample), "warning keys;");
  sample = Sample();
  sample.copies_with_another_key = 1;
  EXPECT_EQ(WrongLog(sample), "warning keys;");
  sample = Sample();
  sample.copies_elsewhere = 1;
  EXPECT_EQ(WrongLog(sample), "warning keys;");
  // In one partition they meet whatever their keys.
  TopicFacts single = Topic("in");
  single.partitions = 1;
  sample.without_key = sample.copies_elsewhere = 1;
  EXPECT_EQ(Wrong(ApplyLogRules(Options(), single, sample, absl::Now())), "");
  // Or if the whole topic is looked at, of which the log is a copy then.
  DaemonOptions options = Options();
  options.scope = Scope::kTopic;
  sample.partitions[2].start = 17;
  sample.partitions[2].first_record = absl::Now() - absl::Hours(3);
  EXPECT_EQ(WrongLog(sample, {{"retention.bytes", "8000000"}}, options), "");
}

TEST(LogRules, RecordsWithoutAnIdAreHandledByThePolicies) {
  const auto said = [](Action action) {
    DaemonOptions options = Options();
    options.policies.on_missing_id = action;
    options.divert = "elsewhere";
    LogSample sample = Sample();
    sample.without_id = 3;
    return ApplyLogRules(options, Topic("in"), sample, absl::Now())[0].what;
  };
  EXPECT_EQ(said(Action::kPass),
            "has no id at json:/id in 3 of 1000 of its newest records: these records and their copies pass "
            "without a verdict (on_missing_id)");
  EXPECT_THAT(said(Action::kDrop), EndsWith(": such records are dropped (on_missing_id)"));
  EXPECT_THAT(said(Action::kDivert), EndsWith(": such records go to topic elsewhere (on_missing_id)"));
  EXPECT_THAT(said(Action::kFail), EndsWith(": the first of them to be read stops its partition "
                                            "(on_missing_id)"));
}

// Whether producers can date records ahead is said, and is no fault: lethe has a bound of its own.
TEST(TopicRules, BoundsOfTimestampsAreReported) {
  const auto told = [](std::map<std::string, std::string> config) {
    for (const Finding& finding :
         ApplyTopicRules(Options(), AllTopics{Topic("in", std::move(config)), Topic("out")})) {
      if (finding.check != "timestamps") continue;
      EXPECT_EQ(finding.severity, Severity::kOk);
      return finding.what;
    }
    return std::string("nothing");
  };
  const auto is_bound = [&](std::map<std::string, std::string> config) {
    return !absl::StrContains(told(std::move(config)), "max_future");
  };
  EXPECT_FALSE(is_bound({}));
  EXPECT_FALSE(is_bound({{"message.timestamp.after.max.ms", "9223372036854775807"}}));
  EXPECT_FALSE(is_bound({{"message.timestamp.after.max.ms", "3600001"}}));
  EXPECT_TRUE(is_bound({{"message.timestamp.after.max.ms", "3600000"}}));
  EXPECT_TRUE(is_bound({{"message.timestamp.difference.max.ms", "60000"}}));
  EXPECT_TRUE(is_bound({{"message.timestamp.type", "LogAppendTime"}}));
}

// A given max_future, or one that was given for another topic of a list.
TEST(TopicRules, AMaxFutureOfAHorizonIsAWarning) {
  const auto wrong = [](absl::Duration max_future, std::map<std::string, std::string> config = {}) {
    DaemonOptions options = Options();
    options.stage.horizon = absl::Minutes(30);
    options.max_future = max_future;
    return Wrong(ApplyTopicRules(options, AllTopics{Topic("in", std::move(config)), Topic("out")}));
  };
  EXPECT_EQ(wrong(absl::Minutes(29)), "");
  EXPECT_EQ(wrong(absl::Minutes(30)), "warning max_future;");
  EXPECT_EQ(wrong(absl::Hours(2)), "warning max_future;");
  EXPECT_EQ(wrong(absl::Hours(2), {{"message.timestamp.type", "LogAppendTime"}}), "");
  EXPECT_EQ(wrong(absl::Hours(2), {{"message.timestamp.after.max.ms", "60000"}}), "");
  EXPECT_EQ(wrong(absl::Hours(2), {{"message.timestamp.after.max.ms", "3600000"}}), "warning max_future;");
}

TEST(LogRules, ClockReachAndSize) {
  LogSample sample = Sample();
  sample.newest = absl::Now() + absl::Minutes(10);
  EXPECT_EQ(WrongLog(sample), "warning clock;");
  sample = Sample();
  sample.partitions[2].start = 17;  // something was deleted, and what is left is two days old
  EXPECT_EQ(WrongLog(sample), "");
  sample.partitions[2].first_record = absl::Now() - absl::Hours(3);
  EXPECT_EQ(WrongLog(sample), "warning reach;");
  // 100 bytes a second are 8.64 MB in the horizon.
  EXPECT_EQ(WrongLog(Sample(), {{"retention.bytes", "9000000"}}), "");
  EXPECT_EQ(WrongLog(Sample(), {{"retention.bytes", "8000000"}}), "warning retention.bytes;");
}

TEST(LogRules, RecordsThatTheOutputTakesOnlyCompressedAreWarnedOf) {
  LogSample sample = Sample();
  sample.largest_bytes = 1'048'000;
  EXPECT_EQ(Wrong({ApplySizeRule({}, Topic("out"), sample)}), "");
  sample.largest_bytes = 1'400'000;
  const Finding finding = ApplySizeRule({}, Topic("out"), sample);
  EXPECT_EQ(Wrong({finding}), "warning record size;");
  EXPECT_THAT(finding.remedy, HasSubstr("max.message.bytes=1400128"));
  EXPECT_EQ(Wrong({ApplySizeRule({}, Topic("out", {{"max.message.bytes", "1400128"}}), sample)}), "");
  EXPECT_EQ(Wrong({ApplySizeRule(
                {}, Topic("out", {{"max.message.bytes", "9999999"}, {"segment.bytes", "1000000"}}), sample)}),
            "warning record size;");
}

TEST(TopicRules, ASegmentSmallerThanTheInputsBatchesIsWarnedOf) {
  EXPECT_EQ(WrongTopics(Topic("in"), Topic("out", {{"segment.bytes", "1000000"}})), "warning size;");
  EXPECT_EQ(WrongTopics(Topic("in"), Topic("out", {{"segment.bytes", "1048588"}})), "");
}

TEST(TopicRules, TheRulesForRecordsAreReadFromTheSettings) {
  const RecordRules none = Topic("out").record_rules();
  EXPECT_EQ(none.before_max_ms, INT64_MAX);
  EXPECT_EQ(none.after_max_ms, INT64_MAX);
  EXPECT_FALSE(none.needs_key);
  const RecordRules older = Topic("out", {{"message.timestamp.difference.max.ms", "1000"},
                                          {"message.timestamp.before.max.ms", "9223372036854775807"},
                                          {"message.timestamp.after.max.ms", "2000"}})
                                .record_rules();
  EXPECT_EQ(older.before_max_ms, 1000);
  EXPECT_EQ(older.after_max_ms, 2000);
  const RecordRules by_broker = Topic("out", {{"message.timestamp.type", "LogAppendTime"},
                                              {"message.timestamp.before.max.ms", "1000"},
                                              {"cleanup.policy", "compact,delete"}})
                                    .record_rules();
  EXPECT_EQ(by_broker.before_max_ms, INT64_MAX);
  EXPECT_TRUE(by_broker.needs_key);
}

std::string MetadataText() {
  CommitMetadata metadata;
  metadata.origin = {0, 4};
  return metadata.ToString();
}

TEST(OffsetRules, RecordsThatWereDeletedUnreadAreAnError) {
  LogSample sample = Sample();
  sample.partitions[1].start = 7;
  DaemonOptions options = Options();
  const std::vector<CommittedOffset> committed = {{}, {5, MetadataText()}, {9, MetadataText()}};
  const auto wrong = [&](const DaemonOptions& stage) {
    return Wrong(ApplyOffsetRules(stage, committed, sample));
  };
  EXPECT_EQ(wrong(options), "error unread records;");
  EXPECT_TRUE(sample.partitions[1].is_stopped);
  LogSample young = sample;
  young.partitions[1].first_record = absl::Now() - absl::Hours(1);
  EXPECT_EQ(WrongLog(young), "") << "no restart reads it";
  EXPECT_EQ(wrong(RoutingOptions(options, "in")), "error unread records;");
  options.policies.on_unread_deleted = OnUnreadDeleted::kContinue;
  EXPECT_EQ(wrong(options), "warning unread records;");
  EXPECT_FALSE(sample.partitions[1].is_stopped);
  EXPECT_EQ(wrong(RoutingOptions(options, "in")), "warning unread records;");
  sample.partitions[1].start = 5;
  EXPECT_EQ(wrong(options), "");
}

TEST(OffsetRules, AnOffsetBeyondTheEndIsAnError) {
  LogSample sample = Sample();
  std::vector<CommittedOffset> committed = {{1'000'000, MetadataText()}, {}};
  EXPECT_EQ(Wrong(ApplyOffsetRules(Options(), committed, sample)), "");
  for (const std::string& metadata : {MetadataText(), std::string()}) {
    committed[0] = {1'000'001, metadata};
    const std::vector<Finding> findings = ApplyOffsetRules(Options(), committed, sample);
    EXPECT_EQ(Wrong(findings), "error group;");
    EXPECT_THAT(findings[0].Text(), HasSubstr("ends at 1000000, and group"));
    EXPECT_EQ(Wrong(ApplyRestartRules(Options(), committed, absl::Now(), sample)), "");
    EXPECT_FALSE(sample.partitions[0].is_planned) << "it does not start";
    EXPECT_TRUE(sample.partitions[0].is_stopped);
    for (const Finding& finding : ApplyLogRules(Options(), Topic("in"), sample, absl::Now())) {
      EXPECT_NE(finding.check, "reach");
    }
  }
}

TEST(OffsetRules, OffsetsOfAnotherProgramAreAWarning) {
  LogSample sample = Sample();
  const std::vector<CommittedOffset> committed = {{3, MetadataText()}, {5, ""}, {9, "by hand"}};
  const std::vector<Finding> findings = ApplyOffsetRules(Options(), committed, sample);
  EXPECT_EQ(Wrong(findings), "warning group;");
  EXPECT_THAT(findings[0].what, HasSubstr("has offsets in 2 partitions that another program committed"));
  EXPECT_THAT(findings[0].what, HasSubstr("(in-1 at 5)"));
  DaemonOptions strict = Options();
  strict.policies.on_short_history = OnShortHistory::kFail;
  EXPECT_EQ(Wrong(ApplyOffsetRules(strict, committed, sample)), "error group;");
  EXPECT_EQ(Wrong(ApplyOffsetRules(strict, {{0, ""}}, sample)), "") << "nothing lies before it";
  EXPECT_EQ(Wrong(ApplyOffsetRules(RoutingOptions(Options(), "in"), committed, sample)), "")
      << "routers remember no ids";
}

TEST(OffsetRules, AGroupThatDoesNotAnswerYetNeedsNoPermission) {
  const Finding late = WithoutCommits("g", absl::UnavailableError("timed out"));
  EXPECT_EQ(late.Text(),
            "group g does not answer yet: timed out: try again: its broker has just started, or is busy");
  const Finding refused = WithoutCommits("g", absl::PermissionDeniedError("no"));
  EXPECT_EQ(refused.Text(), "group g cannot be used: no: grant this user Read on group g");
}

TEST(LogRules, ReachAndSizeCountTheLag) {
  LogSample sample = Sample();
  sample.partitions[2].start = 17;
  sample.partitions[2].first_record = absl::Now() - absl::Hours(30);
  sample.partitions[1].lag = absl::Hours(20);  // of another partition
  EXPECT_EQ(WrongLog(sample), "");
  sample.partitions[2].lag = absl::Hours(7);
  EXPECT_EQ(WrongLog(sample), "warning reach;");
  for (const Finding& finding : ApplyLogRules(Options(), Topic("in"), sample, absl::Now())) {
    if (finding.check != "reach") continue;
    EXPECT_THAT(finding.what, HasSubstr("less than the horizon of 24h and the lag of the group of 7h:"));
  }
  // 100 bytes a second are 12.24 MB in 34 hours.
  sample = Sample();
  sample.partitions[3].lag = absl::Hours(10);
  EXPECT_EQ(WrongLog(sample, {{"retention.bytes", "12500000"}}), "");
  EXPECT_EQ(WrongLog(sample, {{"retention.bytes", "12000000"}}), "warning retention.bytes;");
}

TEST(LogRules, SchemaRegistryFramesThatTheIdMeetsAreNamed) {
  const std::string framed(
      "\0\0\0\0\x2A"
      "body",
      9);
  LogSample sample = Sample();
  sample.frames.Add(framed, framed);
  DaemonOptions options = Options();
  EXPECT_EQ(WrongLog(sample, {}, options), "error schema registry;");
  options.record.id = *IdSpec::Parse("header:id");
  EXPECT_EQ(WrongLog(sample, {}, options), "");
  for (const char* id : {"framed.json:/id", "protobuf:/1", "key.protobuf:/1", "avro:/id", "protobuf:/id"}) {
    options.record.id = *IdSpec::Parse(id);
    EXPECT_EQ(WrongLog(sample, {}, options), "") << id;
  }
  for (const char* id : {"key", "value"}) {
    options.record.id = *IdSpec::Parse(id);
    EXPECT_EQ(WrongLog(sample, {}, options), "warning schema registry;") << id;
  }
  options.record.id = *IdSpec::Parse("key");
  for (int i = 0; i < 9; ++i) sample.frames.Add("a plain key", std::nullopt);
  EXPECT_EQ(WrongLog(sample, {}, options), "");
}

// 987 events in lists, with the id of the first one of each.
TEST(LogRules, AnIdOfOneEventOfAListIsAnError) {
  DaemonOptions options = Options();
  for (const char* id : {"json:/batch/0/messageId", "json:/messageId"}) {
    options.record.id = *IdSpec::Parse(id);
    LogSample sample = Sample();
    LogSampler sampler(options, sample);
    const std::string value =
        R"({"messageId":"m","batch":[{"id":1,"messageId":"a"},{"id":2,"messageId":"b"}]})";
    const std::string list = R"({"batch":[{"messageId":"a"},{"messageId":"b"},{"messageId":"c"}]})";
    sampler.Add({.partition = 0, .offset = 7, .value = value, .timestamp_ms = 1});
    sampler.Add({.partition = 0, .offset = 8, .value = list, .timestamp_ms = 1});
    const bool is_of_list = std::string(id) == "json:/batch/0/messageId";
    EXPECT_EQ(sample.lists, 1);
    EXPECT_EQ(sample.listed, 3);
    EXPECT_EQ(absl::StrContains(WrongLog(sample, {}, options), "error ids;"), is_of_list);
  }
}

// Whatever the id is: lethe does not look into a list.
TEST(LogRules, ListsOfEventsAreSaidForEachKindOfId) {
  DaemonOptions options = Options();
  for (const char* id : {"key", "value", "header:id", "json:/batchId"}) {
    options.record.id = *IdSpec::Parse(id);
    LogSample sample = Sample();
    LogSampler sampler(options, sample);
    for (const char* value : {R"({"batch":[{"messageId":"a"},{"messageId":"b"}]})", R"({"items":[1,2]})"}) {
      sampler.Add(
          {.partition = 0, .offset = 7, .key = "k", .value = value, .timestamp_ms = 1'700'000'000'000});
    }
    EXPECT_EQ(sample.lists, 1) << id;
    sample.without_id = sample.malformed = 0;
    EXPECT_EQ(WrongLog(sample, {}, options), "warning ids;") << id;
  }
}

// A producer that sends `id: "unknown"` for all has an id in each record, and lethe would drop all but one.
TEST(LogRules, AnIdThatDifferentRecordsShareIsFound) {
  DaemonOptions options = Options();
  options.record.id = *IdSpec::Parse("json:/id");
  const auto found = [&](int records, int share_percent, bool differ) {
    LogSample sample;
    LogSampler sampler(options, sample);
    for (int i = 0; i < records; ++i) {
      const bool is_shared = i % 100 < share_percent;
      const std::string value = absl::StrCat(R"({"id":")", is_shared ? "unknown" : absl::StrCat(i),
                                             R"(","n":)", differ ? i : 0, "}");
      sampler.Add(
          {.partition = 0, .offset = i, .key = "k", .value = value, .timestamp_ms = 1'700'000'000'000});
    }
    return WrongLog(sample, {}, options);
  };
  EXPECT_EQ(found(12'000, 100, true), "error ids;");
  EXPECT_EQ(found(12'000, 2, true), "warning ids;") << "a default, where the producer knows no id";
  EXPECT_EQ(found(20, 100, true), "error ids;") << "a young topic";
  EXPECT_EQ(found(9, 100, true), "") << "too few to tell from retries";
  EXPECT_EQ(found(12'000, 100, false), "") << "a loop that sends one event again";
  EXPECT_EQ(found(12'000, 0, true), "");
}

TEST(LogRules, IdsFromLaterPlacesAndWithoutAPartAreCountedApart) {
  DaemonOptions options = Options();
  options.record.id = *IdSpec::Parse("json:/a+json:/b? or json:/id");
  LogSample sample;
  LogSampler sampler(options, sample);
  for (const char* value : {R"({"a":1,"b":2})", R"({"a":1})", R"({"id":1})", R"({"id":2})"}) {
    sampler.Add({.partition = 0, .offset = 7, .value = value, .timestamp_ms = 1});
  }
  EXPECT_EQ(sample.records, 4);
  EXPECT_EQ(sample.later_place, 2);
  EXPECT_EQ(sample.partial, 1);
  EXPECT_EQ(sample.without_id, 0);
}

TEST(LogRules, TheRegistryIsAskedForTheSchemasOfTheSample) {
  test::FakeSchemas schemas;
  const std::array<uint8_t, 16> guid = {1, 2, 3};
  schemas.Put(7, {Schema::Type::kAvro, R"("string")", {}});
  schemas.Put(guid, {Schema::Type::kAvro, R"("string")", {}});
  schemas.PutUnknown(8);
  DaemonOptions options = Options();
  options.record.id = *IdSpec::Parse("avro:/id");
  options.record.schemas = &schemas;
  LogSample sample = Sample();
  EXPECT_EQ(WrongLog(sample, {}, options), "warning schemas;") << "no record names one";
  EXPECT_EQ(schemas.finds, 0);
  sample.schemas = {7, guid};
  EXPECT_EQ(WrongLog(sample, {}, options), "");
  EXPECT_EQ(schemas.finds, 2);
  schemas.PutUnknown(9);
  sample.schemas.insert({8, 9});
  EXPECT_EQ(WrongLog(sample, {}, options), "warning schemas;") << "anybody can write records that name one";
  sample.schemas = {8, 9};
  sample.malformed = sample.records;
  EXPECT_EQ(WrongLog(sample, {}, options), "warning schemas;") << "and as many as they want";
}

// A registry that does not answer says the same of all schemas, and of the ids nothing can be said.
TEST(LogRules, ARegistryThatDoesNotAnswerIsOneError) {
  class Away final : public SchemaSource {
    SchemaLookup Find(const SchemaNeed&) override {
      return {SchemaLookup::State::kUnknown, nullptr, "the schema registry does not answer",
              /*is_answer=*/false};
    }
  } away;
  DaemonOptions options = Options();
  options.record.id = *IdSpec::Parse("avro:/id");
  options.record.schemas = &away;
  LogSample sample = Sample();
  sample.schemas = {7, 8, 9};
  sample.malformed = sample.records;
  EXPECT_EQ(WrongLog(sample, {}, options), "error schemas;");
}

TEST(LogRules, MemoryIsThatOfThePlan) {
  DaemonOptions options = Options();
  LogSample sample = Sample();
  for (auto& partition : sample.partitions) partition.rate = 500;  // 2,000 in all: 2.1 GiB
  options.stage.memory_limit_bytes = int64_t{3} << 30;
  EXPECT_EQ(WrongLog(sample, {}, options), "");
  options.stage.memory_limit_bytes = int64_t{1} << 30;
  EXPECT_EQ(WrongLog(sample, {}, options), "warning memory;");
  options.stage.engine = Engine::kExact;
  EXPECT_EQ(WrongLog(sample, {}, options), "");
}

TEST(Findings, AreWrittenAndCounted) {
  const Finding fine{Severity::kOk, "a", "topic x", "is fine", ""};
  const Finding warning{Severity::kWarning, "b", "topic \"y\"", "is\nso", "do"};
  const Finding error{Severity::kError, "c", "z", "is wrong", "mend it"};
  const auto write = [](const std::vector<Finding>& findings, ReportFormat format) {
    std::ostringstream out;
    const int code = WriteFindings(findings, {format}, {}, out);
    return std::make_pair(code, out.str());
  };
  EXPECT_EQ(write({fine}, ReportFormat::kText).first, 0);
  EXPECT_EQ(write({fine, warning, fine}, ReportFormat::kText).first, 1);
  EXPECT_EQ(write({error, warning}, ReportFormat::kText),
            std::make_pair(2, std::string("error    c               z is wrong: mend it\n"
                                          "warning  b               topic \"y\" is so: do\n"
                                          "0 ok, 1 warning, 1 error\n")));
  const auto [code, json] = write({fine, warning, error}, ReportFormat::kJson);
  EXPECT_EQ(code, 2);
  simdjson::dom::parser parser;
  const simdjson::dom::element all = parser.parse(json);
  EXPECT_EQ(all["findings"].get_array().size(), 3u);
  EXPECT_EQ(all["findings"].at(0)["severity"].get_string().value(), "error");
  EXPECT_EQ(all["findings"].at(1)["what"].get_string().value(), "is\nso");
  EXPECT_EQ(all["findings"].at(1)["severity"].get_string().value(), "warning");
  EXPECT_EQ(all["errors"].get_int64().value(), 1);
}

TEST(Findings, TheWorstComeFirstAndQuietLeavesOutTheRest) {
  const Finding fine{Severity::kOk, "a", "topic x", "is fine", ""};
  const Finding warning{Severity::kWarning, "b", "topic y", "is so", "do"};
  const Finding error{Severity::kError, "c", "z", "is wrong", "mend it"};
  const auto write = [](const std::vector<Finding>& findings, bool quiet) {
    std::ostringstream out;
    const int code = WriteFindings(findings, {.quiet = quiet}, {}, out);
    return std::make_pair(code, out.str());
  };
  const auto [code, text] = write({fine, warning, error}, false);
  EXPECT_LT(text.find("error "), text.find("warning "));
  EXPECT_LT(text.find("warning "), text.find("ok "));
  const auto [same_code, quiet] = write({fine, warning, error}, true);
  EXPECT_EQ(same_code, code);
  EXPECT_EQ(std::count(quiet.begin(), quiet.end(), '\n'), 2);
  EXPECT_EQ(write({fine}, true), std::make_pair(0, std::string()));
}

TEST(Findings, OfSeveralTopicsNameTheirsAndFoldWhatIsFine) {
  const std::vector<Finding> findings = {
      {Severity::kOk, "brokers", "brokers b", "answer", ""},
      {Severity::kOk, "read", "input topic x", "may be read", "", "x"},
      {Severity::kOk, "write", "output topic u", "may be written to", "", "x"},
      {Severity::kOk, "read", "input topic y", "may be read", "", "y"},
      {Severity::kError, "write", "output topic v", "may not be written to", "grant it", "y"}};
  std::ostringstream text;
  EXPECT_EQ(WriteFindings(findings, {}, {}, text), 2);
  EXPECT_EQ(text.str(),
            "error    write           y: output topic v may not be written to: grant it\n"
            "ok       brokers         brokers b answer\n"
            "ok       topic           x passes 2 checks\n"
            "4 ok, 0 warnings, 1 error\n");
  std::ostringstream json;
  WriteFindings(findings, {ReportFormat::kJson}, {}, json);
  simdjson::dom::parser parser;
  const simdjson::dom::element all = parser.parse(json.str());
  ASSERT_EQ(all["findings"].get_array().size(), 5u);
  EXPECT_EQ(all["findings"].at(0)["topic"].get_string().value(), "y");
  EXPECT_TRUE(all["findings"].at(1)["topic"].is_null());
}

TEST(MemoryRule, AddsUpWhatTopicsNeed) {
  DaemonOptions topic = Options();
  const int64_t one = PlannedMemory(topic, 1000).value();
  ASSERT_GT(one, 0);
  MemoryNeed need;
  for (int i = 0; i < 3; ++i) need.Add(topic, 4, 1000);
  need.Add(topic, 0, 0);  // one that is missing
  EXPECT_EQ(need.planned_bytes, 3 * one);
  EXPECT_EQ(need.least_bytes, 3 * LeastMemory(topic, 4));
  EXPECT_EQ(ApplyMemoryRule(need, 3 * one).severity, Severity::kOk);
  EXPECT_EQ(ApplyMemoryRule(need, 3 * one - 1).severity, Severity::kWarning);
  const Finding least = ApplyMemoryRule(need, need.least_bytes - 1);
  EXPECT_EQ(least.severity, Severity::kWarning);
  EXPECT_THAT(least.what, HasSubstr("12 partitions need at least"));
  MemoryNeed quiet;
  quiet.Add(topic, 4, 0);
  const Finding enough = ApplyMemoryRule(quiet, quiet.least_bytes);
  EXPECT_EQ(enough.severity, Severity::kOk);
  EXPECT_THAT(enough.Text(), Not(HasSubstr("0 B")));
}

TEST(Findings, FitATerminalAndCommandsStayWhole) {
  const std::string command =
      absl::StrCat("kafka-configs.sh --alter", std::string(100, 'x'), " --entity-name y");
  const std::vector<Finding> findings = {
      {Severity::kWarning, "retention", "topic x", absl::StrCat("has", std::string(300, ' '), "words"), "do"},
      {Severity::kError, "size", "topic x",
       "takes less than it should, by a good deal, which is a pity, and long",
       absl::StrCat("do one thing, or: ", command)}};
  for (const int columns : {40, 80}) {
    std::ostringstream out;
    WriteFindings(findings, {}, {{}, columns}, out);
    for (const absl::string_view line : absl::StrSplit(out.str(), '\n')) {
      if (!absl::StrContains(line, command)) {
        EXPECT_LT(line.size(), static_cast<size_t>(columns)) << line;
      }
    }
    EXPECT_THAT(out.str(), HasSubstr(command));
    EXPECT_THAT(out.str(), Not(HasSubstr("\033")));
  }
  std::ostringstream coloured;
  WriteFindings(findings, {}, {{.colour = true}, 80}, coloured);
  EXPECT_THAT(coloured.str(), HasSubstr("\033[31merror"));
}

TEST(Check, WhatTheClientsOfRunRefuseIsAnErrorBeforeABrokerIsAsked) {
  DaemonOptions options = Options();
  options.process.brokers = "127.0.0.1:1";
  options.process.group = "g";
  options.process.delivery = Delivery::kAtLeastOnce;
  kafka::KafkaProbes probes;
  for (const Property& property : {Property("max.in.flight.requests.per.connection", "10"),
                                   {"session.timeout.ms", "400000"},
                                   {"no.such.property", "1"}}) {
    options.process.properties = {property};
    EXPECT_EQ(Wrong(Check(options, probes, SystemClock())), "error configuration;") << property.first;
  }
}

// Who may do everything looks as somebody who may not.
class AsNobody {
 public:
  AsNobody() : before_(geteuid()) {
    if (before_ == 0) {
      EXPECT_EQ(seteuid(65534), 0);
    }
  }
  ~AsNobody() {
    if (before_ == 0) {
      EXPECT_EQ(seteuid(before_), 0);
    }
  }

 private:
  const uid_t before_;
};

Severity OfMachine(const std::string& folder, const std::string& http) {
  RunConfig config;
  config.daemon.process.snapshots.folder = folder;
  config.http = http;
  config.daemon.process.group = "g";
  config.daemon.process.instance = "i";
  const std::vector<Finding> findings = CheckMachine(config);
  EXPECT_EQ(findings.size(), 1u);
  return findings.empty() ? Severity::kWarning : findings.front().severity;
}

TEST(Machine, AFolderThatCannotBeWrittenIsAnError) {
  const std::filesystem::path top =
      std::filesystem::temp_directory_path() / absl::StrCat("lethe-check-", getpid());
  std::filesystem::create_directories(top / "closed");
  std::ofstream(top / "file") << "x";
  EXPECT_EQ(OfMachine(top, "off"), Severity::kOk);
  EXPECT_EQ(OfMachine(top / "a" / "b", "off"), Severity::kOk) << "it would be made";
  EXPECT_FALSE(std::filesystem::exists(top / "a")) << "not by a check";
  EXPECT_EQ(OfMachine(top / "file", "off"), Severity::kError);
  EXPECT_EQ(OfMachine(top / "file" / "a", "off"), Severity::kError);
  ASSERT_EQ(chmod((top / "closed").c_str(), 0555), 0);
  {
    const AsNobody nobody;
    EXPECT_EQ(OfMachine(top / "closed", "off"), Severity::kError);
    EXPECT_EQ(OfMachine(top / "closed" / "a", "off"), Severity::kError);
  }
  std::filesystem::remove_all(top);
}

TEST(Machine, AnAddressThatSomebodyElseHasIsAnError) {
  const auto other = http::HttpServer::Start("127.0.0.1:0", {});
  ASSERT_OK(other);
  EXPECT_EQ(OfMachine("", absl::StrCat("127.0.0.1:", (*other)->port())), Severity::kError);
  EXPECT_EQ(OfMachine("", "127.0.0.1:0"), Severity::kOk);
  for (const std::string instance : {"i", "j"}) {
    const auto lethe = http::HttpServer::Start(
        "127.0.0.1:0", {{"/status", [&](const http::HttpQuery&) {
                           return http::HttpResponse{
                               .body = absl::StrCat("{\"group\":\"g\",\"instance\":\"", instance, "\"}")};
                         }}});
    ASSERT_OK(lethe);
    EXPECT_EQ(OfMachine("", absl::StrCat("127.0.0.1:", (*lethe)->port())),
              instance == "i" ? Severity::kOk : Severity::kError)
        << "a check may look on while lethe runs";
  }
}

TEST(Findings, AWrongConfigurationIsOne) {
  std::ostringstream out;
  EXPECT_EQ(RunCheck(absl::InvalidArgumentError("lethe.yaml:3: horizon: x"), {}, {}, out), 2);
  EXPECT_THAT(out.str(), HasSubstr("error    configuration   configuration is wrong: lethe.yaml:3: horizon"));
}

}  // namespace
}  // namespace lethe
