// Which topics of a list become flows, by what the cluster says of them.
#include "src/pipeline/preflight/flow_finder.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/pipeline/options/stage_options.h"

namespace lethe {
namespace {

class FakeInspector final : public TopicInspector {
 public:
  std::vector<std::string> Names() override { return names; }
  absl::StatusOr<std::vector<CommittedOffset>> AskCommitted(const std::string&) override {
    return std::vector<CommittedOffset>(1);
  }
  absl::Status EnsureTotals(const DaemonOptions&) override { return absl::OkStatus(); }
  absl::Status EnsureRepartition(const DaemonOptions&) override { return repartition; }
  void WarnOfLoss(const DaemonOptions& options) override { looked_for_loss.push_back(options.output); }
  absl::StatusOr<Topics> Inspect(const DaemonOptions& options) override {
    const auto refused = answers.find(options.input);
    if (refused != answers.end()) return refused->second;
    Topics topics;
    topics.partitions = 1;
    return topics;
  }

  std::vector<std::string> names = {"a", "b"};
  absl::Status repartition;
  std::vector<std::string> looked_for_loss;     // outputs
  std::map<std::string, absl::Status> answers;  // by input; none: it can be read
};

using Inputs = std::vector<std::string>;

class FlowFinderTest : public testing::Test {
 protected:
  static DaemonOptions Entry(const std::string& input, const std::string& output) {
    DaemonOptions options;
    options.process.group = "g";
    options.input = input;
    options.output = output;
    options.record.id = *IdSpec::Parse("key");
    return options;
  }
  void Find(std::vector<DaemonOptions> entries) {
    auto list = TopicList::Create(std::move(entries));
    ASSERT_TRUE(list.ok()) << list.status();
    finder_ = std::make_unique<FlowFinder>(*std::move(list), flows_,
                                           [this](const DaemonOptions& options, Topics, bool) {
                                             if (!options.half.routing)
                                               flows_.Add(std::make_unique<Flow>(options, nullptr));
                                             added_.push_back(options.input);
                                             if (options.start == Start::kLatest)
                                               from_end_.push_back(options.input);
                                             return absl::OkStatus();
                                           });
  }

  Flows flows_;
  FakeInspector cluster_;
  std::unique_ptr<FlowFinder> finder_;
  Inputs added_;
  Inputs from_end_;
};

TEST_F(FlowFinderTest, ATopicThatCannotBeReadHoldsUpNoOther) {
  Find({Entry("a", "x"), Entry("b", "y")});
  cluster_.answers["a"] = absl::NotFoundError("no x");
  EXPECT_TRUE(finder_->Look(cluster_).ok());
  EXPECT_EQ(added_, Inputs{"b"});
  EXPECT_EQ(finder_->Problems(), (std::map<std::string, std::string>{{"a", "no x"}}));
  cluster_.answers.clear();
  EXPECT_TRUE(finder_->Look(cluster_).ok());
  EXPECT_TRUE(finder_->Look(cluster_).ok());
  EXPECT_EQ(added_, (Inputs{"b", "a"}));
  EXPECT_TRUE(finder_->Problems().empty());
}

TEST_F(FlowFinderTest, APatternTakesTopicsThatComeLater) {
  Find({Entry("^(.*)-in$", "$1-out")});
  EXPECT_TRUE(finder_->Look(cluster_).ok());
  EXPECT_EQ(added_, Inputs());
  cluster_.names.push_back("c-in");
  EXPECT_TRUE(finder_->Look(cluster_).ok());
  EXPECT_EQ(added_, Inputs{"c-in"});
}

TEST_F(FlowFinderTest, ATopicThatComesLaterIsReadFromItsStart) {
  DaemonOptions entry = Entry("^(.*)-in$", "$1-out");
  entry.start = Start::kLatest;
  DaemonOptions routed = Entry("late", "y");
  routed.start = Start::kLatest;
  routed.scope = Scope::kTopic;
  cluster_.names = {"a-in"};
  cluster_.answers["late"] = absl::NotFoundError("no late");
  Find({entry, routed});
  EXPECT_TRUE(finder_->Look(cluster_).ok());
  EXPECT_EQ(added_, Inputs{"a-in"});
  cluster_.names = {"a-in", "b-in", "late"};
  cluster_.answers.clear();
  EXPECT_TRUE(finder_->Look(cluster_).ok());
  EXPECT_EQ(added_, (Inputs{"a-in", RepartitionTopic(routed), "late", "b-in"}));
  EXPECT_EQ(from_end_, Inputs{"a-in"});
}

TEST_F(FlowFinderTest, WithoutABrokerNothingIsKnown) {
  Find({Entry("a", "x"), Entry("b", "y")});
  cluster_.names.clear();
  EXPECT_EQ(finder_->Look(cluster_).code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(finder_->Problems().empty());
}

// Of merged inputs one may come later; nothing is routed to a topic that is not judged.
TEST_F(FlowFinderTest, MergedInputsAreRoutedAsTheyCome) {
  DaemonOptions merged = Entry("a", "x");
  merged.scope = Scope::kTopic;
  merged.merged = {"a", "b"};
  Find({merged});
  const std::string judged = RepartitionTopic(merged);
  cluster_.repartition = absl::UnavailableError("was created a moment ago");
  EXPECT_TRUE(finder_->Look(cluster_).ok());
  EXPECT_EQ(added_, Inputs());
  cluster_.repartition = absl::OkStatus();
  cluster_.answers["b"] = absl::NotFoundError("no b");
  cluster_.answers[judged] = absl::UnavailableError("has no leader");
  EXPECT_TRUE(finder_->Look(cluster_).ok());
  EXPECT_EQ(added_, Inputs());
  cluster_.answers.erase(judged);
  EXPECT_TRUE(finder_->Look(cluster_).ok());
  EXPECT_EQ(added_, (Inputs{judged, "a"}));
  EXPECT_EQ(finder_->Problems(), (std::map<std::string, std::string>{{"b", "no b"}}));
  cluster_.answers.clear();
  EXPECT_TRUE(finder_->Look(cluster_).ok());
  EXPECT_EQ(added_, (Inputs{judged, "a", "b"}));
  EXPECT_EQ(cluster_.looked_for_loss, Inputs{"x"});
}

}  // namespace
}  // namespace lethe
