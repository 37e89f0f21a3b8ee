// Which topics of a list become flows, by what the cluster says of them.
#include "src/pipeline/preflight/flow_finder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/pipeline/options/stage_options.h"
#include "tests/support/fake_brokers.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

using testing::HasSubstr;

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
  // In a process that has just been started.
  void Find(std::vector<DaemonOptions> entries) {
    finder_.reset();
    flows_ = std::make_unique<Flows>();
    added_.clear();
    auto list = TopicList::Create(std::move(entries));
    ASSERT_OK(list);
    finder_ = std::make_unique<FlowFinder>(
        *std::move(list), *flows_, MakerOf(topics_),
        [this](const DaemonOptions& options, Topics, bool) {
          if (!options.half.routing) flows_->Add(std::make_unique<Flow>(options, nullptr));
          added_.push_back(options.input);
          if (options.start == Start::kLatest) from_end_.push_back(options.input);
          return absl::OkStatus();
        },
        SystemClock());
  }

  absl::Status Look() {
    FakeBrokers brokers(topics_, "g");
    return finder_->Look(brokers);
  }

  Inputs Unread() const {
    Inputs unread;
    for (const auto& [topic, why] : finder_->Problems()) unread.push_back(topic);
    return unread;
  }

  std::unique_ptr<Flows> flows_;
  FakeTopics topics_ = {.by_name = {{"a", {}}, {"b", {}}, {"x", {}}, {"y", {}}}};
  std::unique_ptr<FlowFinder> finder_;
  Inputs added_;
  Inputs from_end_;
};

TEST_F(FlowFinderTest, ATopicThatCannotBeReadHoldsUpNoOther) {
  Find({Entry("a", "x"), Entry("b", "y")});
  topics_.by_name.erase("x");
  EXPECT_OK(Look());
  EXPECT_EQ(added_, Inputs{"b"});
  EXPECT_EQ(Unread(), Inputs{"a"});
  topics_.by_name["x"];
  EXPECT_OK(Look());
  EXPECT_OK(Look());
  EXPECT_EQ(added_, (Inputs{"b", "a"}));
  EXPECT_EQ(Unread(), Inputs());
}

TEST_F(FlowFinderTest, APatternTakesTopicsThatComeLater) {
  Find({Entry("^(.*)-in$", "$1-out")});
  EXPECT_OK(Look());
  EXPECT_EQ(added_, Inputs());
  topics_.by_name["c-in"];
  topics_.by_name["c-out"];
  EXPECT_OK(Look());
  EXPECT_EQ(added_, Inputs{"c-in"});
}

TEST_F(FlowFinderTest, ATopicThatComesLaterIsReadFromItsStart) {
  DaemonOptions entry = Entry("^(.*)-in$", "$1-out");
  entry.start = Start::kLatest;
  DaemonOptions routed = Entry("late", "y");
  routed.start = Start::kLatest;
  routed.scope = Scope::kTopic;
  for (const char* topic : {"a-in", "a-out", "b-out"}) topics_.by_name[topic];
  Find({entry, routed});
  EXPECT_OK(Look());
  EXPECT_EQ(added_, Inputs{"a-in"});
  for (const char* topic : {"b-in", "late"}) topics_.by_name[topic];
  EXPECT_OK(Look());
  EXPECT_EQ(added_, (Inputs{"a-in", RepartitionTopic(routed), "late", "b-in"}));
  EXPECT_EQ(from_end_, Inputs{"a-in"});
}

// Who may create topics that a pattern matches displaces no other's topic: `rxw.rxw.zebra`, which comes first
// by its name, would be written to `rxw.zebra`.
TEST_F(FlowFinderTest, AStrangersTopicDisplacesNone) {
  const auto begin = [&] {
    Find({Entry(R"(^rxw\.(.+)$)", "$1")});
    EXPECT_OK(Look());
  };
  for (const char* topic : {"rxw.zebra", "zebra"}) topics_.by_name[topic];
  begin();
  EXPECT_EQ(added_, Inputs{"rxw.zebra"});
  topics_.by_name["rxw.rxw.zebra"];
  EXPECT_OK(Look());
  EXPECT_EQ(added_, Inputs{"rxw.zebra"}) << "it goes on, also before its first commit";
  EXPECT_EQ(Unread(), Inputs{"rxw.rxw.zebra"});

  topics_.by_name["rxw.zebra"].commits["g"] = {{7, ""}};
  begin();
  EXPECT_EQ(added_, Inputs{"rxw.zebra"}) << "after a restart";
  EXPECT_EQ(Unread(), Inputs{"rxw.rxw.zebra"});

  topics_.group_trouble["g"] = absl::UnavailableError("no coordinator");
  begin();
  EXPECT_EQ(added_, Inputs());
  EXPECT_EQ(Unread(), (Inputs{"rxw.rxw.zebra", "rxw.zebra"})) << "in doubt neither";
  topics_.group_trouble.clear();
  EXPECT_OK(Look());
  EXPECT_EQ(added_, Inputs{"rxw.zebra"});

  topics_.by_name["rxw.zebra"].commits.clear();
  begin();
  EXPECT_EQ(added_, Inputs()) << "neither was read before";
  EXPECT_EQ(Unread(), (Inputs{"rxw.rxw.zebra", "rxw.zebra"}));
  topics_.by_name.erase("rxw.rxw.zebra");
  EXPECT_OK(Look());
  EXPECT_EQ(added_, Inputs{"rxw.zebra"});
  EXPECT_EQ(Unread(), Inputs());
}

// Each look is a few questions, however many topics strangers create: neither does a topic with a name wait
// for them, nor does lethe ask the brokers without end.
TEST_F(FlowFinderTest, TopicsOfStrangersCostNoQuestions) {
  constexpr int kStrangers = 2'000;
  Find({Entry("a", "x"), Entry("^stranger[.](.+)$", "unique.$1")});
  ASSERT_OK(Look());
  const int alone = std::exchange(topics_.questions, 0);
  ASSERT_EQ(added_, Inputs{"a"});
  ASSERT_OK(Look());
  const int later = std::exchange(topics_.questions, 0);

  for (int i = 0; i < kStrangers; ++i) topics_.by_name[absl::StrCat("stranger.", i)].partitions = 3;
  for (const Scope scope : {Scope::kPartition, Scope::kTopic}) {
    DaemonOptions strangers = Entry("^stranger[.](.+)$", "unique.$1");
    strangers.scope = scope;
    strangers.divert = "rest.$1";
    strangers.counters = {{.name = "sums", .mode = CounterMode::kTotal, .spec = {}, .output = "sums.$1"},
                          {.name = "deltas", .spec = {}, .output = "deltas.$1"}};
    Find({Entry("a", "x"), strangers});
    topics_.questions = 0;
    ASSERT_OK(Look());
    EXPECT_EQ(added_, Inputs{"a"});
    EXPECT_EQ(topics_.questions, alone);
    topics_.questions = 0;
    ASSERT_OK(Look());
    EXPECT_EQ(topics_.questions, later);
    const std::map<std::string, std::string> problems = finder_->Problems();
    EXPECT_EQ(problems.size(), static_cast<size_t>(kStrangers));
    const auto problem = problems.find("stranger.7");
    ASSERT_NE(problem, problems.end());
    EXPECT_THAT(problem->second, HasSubstr("--create --topic unique.7 --partitions 3"));
    EXPECT_TRUE(topics_.created.empty()) << "for what is not read";
  }

  // Two topics into one each: of all of them the group is asked at once.
  for (int i = 0; i < kStrangers; ++i) topics_.by_name[absl::StrCat("other.", i)];
  Find({Entry("a", "x"), Entry("^(stranger|other)[.](.+)$", "unique.$2")});
  topics_.questions = 0;
  ASSERT_OK(Look());
  EXPECT_EQ(topics_.questions, alone + 1);
  EXPECT_EQ(finder_->Problems().size(), 2u * kStrangers);
}

// The list of topics may lack one that there is, if the user may not describe it.
TEST_F(FlowFinderTest, AnOutputThatIsNotListedIsAskedForIfItsInputHasAName) {
  topics_.hidden = {"x"};
  Find({Entry("a", "x")});
  ASSERT_OK(Look());
  EXPECT_EQ(added_, Inputs{"a"});
}

TEST_F(FlowFinderTest, WithoutABrokerNothingIsKnown) {
  Find({Entry("a", "x"), Entry("b", "y")});
  topics_.is_away = true;
  EXPECT_THAT(Look(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(Unread(), Inputs());
}

// Of merged inputs one may come later; nothing is routed to a topic that is not judged.
TEST_F(FlowFinderTest, MergedInputsAreRoutedAsTheyCome) {
  DaemonOptions merged = Entry("a", "x");
  merged.scope = Scope::kTopic;
  merged.merged = {"a", "b"};
  Find({merged});
  const std::string judged = RepartitionTopic(merged);
  topics_.trouble[judged] = absl::UnavailableError("was created a moment ago");
  EXPECT_OK(Look());
  EXPECT_EQ(added_, Inputs());
  topics_.trouble.clear();
  topics_.by_name.erase("b");
  topics_.trouble["x"] = absl::UnavailableError("has no leader");
  EXPECT_OK(Look());
  EXPECT_EQ(added_, Inputs());
  EXPECT_EQ(topics_.created, Inputs()) << "what the output has is not known";
  topics_.trouble.clear();
  EXPECT_OK(Look());
  EXPECT_EQ(topics_.created, Inputs{judged});
  EXPECT_EQ(added_, (Inputs{judged, "a"}));
  EXPECT_EQ(Unread(), Inputs{"b"});
  topics_.by_name["b"];
  EXPECT_OK(Look());
  EXPECT_EQ(added_, (Inputs{judged, "a", "b"}));
}

}  // namespace
}  // namespace lethe
