// The topics that lethe creates, and what it deletes in them.
#include "src/pipeline/preflight/own_topics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/pipeline/daemon/log_trimmer.h"
#include "src/pipeline/options/stage_options.h"
#include "src/pipeline/preflight/describe_topics.h"
#include "src/pipeline/restore/commit_metadata.h"
#include "tests/support/fake_brokers.h"
#include "tests/support/log_of.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

using testing::HasSubstr;

DaemonOptions Merged() {
  DaemonOptions options;
  options.process.group = "g";
  options.process.instance = "i";
  options.input = "a";
  options.output = "x";
  options.scope = Scope::kTopic;
  options.merged = {"a", "b"};
  options.record.id = *IdSpec::Parse("key");
  return options;
}

// A commit of a router that began at 0.
CommittedOffset Routed(int64_t offset) {
  CommitMetadata metadata;
  metadata.id_fingerprint = "id";
  metadata.horizon = absl::Hours(1);
  return {offset, metadata.ToString()};
}

class OwnTopicsTest : public testing::Test {
 protected:
  const DaemonOptions options_ = Merged();
  const std::string topic_ = RepartitionTopic(options_);
  FakeTopics topics_ = {.by_name = {{"a", {.partitions = 2}}, {"b", {.partitions = 6}}}};
  FakeBrokers routers_{topics_, RoutingGroup(options_)};
  FakeBrokers deduplicators_{topics_, "g"};
};

TEST_F(OwnTopicsTest, ARepartitionTopicHasThePartitionsOfTheLargestInput) {
  EXPECT_OK(EnsureRepartitionTopic(options_, routers_));
  EXPECT_EQ(topics_.by_name[topic_].partitions, 6);
  // It stays as it is: the partition of an id must not change.
  topics_.by_name["b"].partitions = 12;
  EXPECT_OK(EnsureRepartitionTopic(options_, routers_));
  EXPECT_EQ(topics_.by_name[topic_].partitions, 6);
  EXPECT_EQ(topics_.created, std::vector<std::string>{topic_});
}

TEST_F(OwnTopicsTest, AnInputThatComesLaterHoldsUpNoRepartitionTopic) {
  topics_.by_name.erase("b");
  EXPECT_OK(EnsureRepartitionTopic(options_, routers_));
  EXPECT_EQ(topics_.by_name[topic_].partitions, 2);
}

TEST_F(OwnTopicsTest, ALostRepartitionTopicIsNotCreatedAgain) {
  topics_.by_name["b"].commits[RoutingGroup(options_)] = {Routed(0), Routed(7)};
  const absl::Status lost = EnsureRepartitionTopic(options_, routers_);
  EXPECT_TRUE(absl::IsNotFound(lost)) << lost;
  EXPECT_TRUE(topics_.created.empty());
  topics_.by_name["b"].commits[RoutingGroup(options_)] = {{5, ""}, {7, ""}};
  EXPECT_OK(EnsureRepartitionTopic(options_, routers_)) << "the group was reset";
}

TEST_F(OwnTopicsTest, AnInstanceThatBeganToRouteAMomentAgoIsNoLoss) {
  topics_.by_name["b"].commits[RoutingGroup(options_)] = {Routed(7)};
  topics_.by_name[topic_].partitions = 2;
  const auto warnings = [&] { return WarningsOf([&] { WarnOfLoss(options_, routers_, deduplicators_); }); };
  EXPECT_THAT(warnings(), HasSubstr("may have been deleted and created again"));
  const std::string name = absl::StrCat("lethe-", options_.process.instance);
  topics_.members[RoutingGroup(options_)] = {{"id", name, "here"}};
  EXPECT_NE(warnings(), "") << "a former life of its own may have crashed";
  topics_.members[RoutingGroup(options_)].push_back({"id", "lethe-other", "there"});
  EXPECT_EQ(warnings(), "");
}

TEST_F(OwnTopicsTest, ARightThatIsMissingIsNamed) {
  topics_.trouble["a"] = absl::PermissionDeniedError("denied");
  const absl::Status denied = EnsureRepartitionTopic(options_, routers_);
  EXPECT_TRUE(absl::IsPermissionDenied(denied));
  EXPECT_THAT(denied.message(), HasSubstr("grant this user Describe and Read on topic a"));
}

TEST_F(OwnTopicsTest, OnlyTopicsOfTotalsAreCreated) {
  DaemonOptions options = Merged();
  options.scope = Scope::kPartition;
  options.counters.resize(2);
  options.counters[0].output = "totals";
  options.counters[0].mode = CounterMode::kTotal;
  options.counters[1].output = "deltas";
  EXPECT_OK(EnsureTotalsTopics(options, deduplicators_));
  EXPECT_EQ(topics_.created, std::vector<std::string>{"totals"});
  EXPECT_EQ(topics_.by_name["totals"].config["cleanup.policy"], "compact");
}

TEST_F(OwnTopicsTest, OfATopicOfTotalsMoreRightsAreNeeded) {
  DaemonOptions options = Merged();
  options.scope = Scope::kPartition;
  options.counters.resize(1);
  options.counters[0].output = "totals";
  topics_.by_name["x"];
  topics_.trouble["totals"] = absl::PermissionDeniedError("denied");
  for (const CounterMode mode : {CounterMode::kDelta, CounterMode::kTotal}) {
    options.counters[0].mode = mode;
    const absl::Status denied = DescribeTopics(options, deduplicators_).status();
    EXPECT_TRUE(absl::IsPermissionDenied(denied));
    EXPECT_EQ(denied.message().find("to make it, Create") != std::string::npos, mode == CounterMode::kTotal)
        << denied;
  }
}

TEST_F(OwnTopicsTest, OnlyAskingForTheRightCreatesNothing) {
  EXPECT_OK(MayCreateRepartitionTopic(options_, routers_, {.name = "a", .partitions = 2}));
  EXPECT_TRUE(topics_.created.empty());
  topics_.may_create = absl::PermissionDeniedError("denied");
  EXPECT_TRUE(absl::IsPermissionDenied(
      MayCreateRepartitionTopic(options_, routers_, {.name = "a", .partitions = 2})));
}

class LogTrimmerTest : public testing::Test {
 protected:
  LogTrimmerTest() {
    DaemonOptions routed = JudgingOptions(Merged());
    flows_.Add(std::make_unique<Flow>(routed, nullptr));
    DaemonOptions other = Merged();
    other.scope = Scope::kPartition;
    flows_.Add(std::make_unique<Flow>(other, nullptr));
    topics_.by_name[routed.input];
  }
  PartitionReport& Add(int32_t flow) {
    PartitionReport& report = lane_.partitions.emplace_back();
    report.flow = flow;
    report.topic = flows_.at(flow).options.input;
    return report;
  }
  void Trim() { trimmer_.Trim(brokers_, flows_, {lane_}); }

  Flows flows_;
  FakeTopics topics_ = {.by_name = {{"a", {}}}};
  FakeBrokers brokers_{topics_, "g"};
  LaneReport lane_;
  LogTrimmer trimmer_;
};

TEST_F(LogTrimmerTest, DeletesWhatNoRestartReadsOfItsOwnTopics) {
  PartitionReport& routed = Add(0);
  routed.restore.restart = 7;
  const std::string topic = routed.topic;
  Add(1).restore.restart = 9;  // the user's topic
  Trim();
  EXPECT_EQ(topics_.deleted_below, (EndsByTopic{{topic, {{0, 7}}}}));
  // Not asked for again until a restart reads less.
  topics_.deleted_below.clear();
  Trim();
  EXPECT_TRUE(topics_.deleted_below.empty());
  lane_.partitions[0].restore.restart = 8;
  Trim();
  EXPECT_EQ(topics_.deleted_below, (EndsByTopic{{topic, {{0, 8}}}}));
}

TEST_F(LogTrimmerTest, WhatFailedIsAskedForAgain) {
  PartitionReport& routed = Add(0);
  routed.restore.restart = 7;
  topics_.trouble[routed.topic] = absl::PermissionDeniedError("denied");
  Trim();
  topics_.is_away = true;
  Trim();
  EXPECT_TRUE(topics_.deleted_below.empty());
  topics_.trouble.clear();
  topics_.is_away = false;
  Trim();
  EXPECT_EQ(topics_.deleted_below, (EndsByTopic{{routed.topic, {{0, 7}}}}));
}

}  // namespace
}  // namespace lethe
