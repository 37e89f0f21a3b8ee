#include "src/pipeline/options/topic_list.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

using Strings = std::vector<std::string>;

DaemonOptions Entry(const std::string& input, const std::string& output, const std::string& divert = "") {
  DaemonOptions options;
  options.process.group = "lethe";
  options.input = input;
  options.output = output;
  options.divert = divert;
  return options;
}

TopicList List(std::vector<DaemonOptions> entries) {
  absl::StatusOr<TopicList> list = TopicList::Create(std::move(entries));
  EXPECT_OK(list);
  return *std::move(list);
}

// What the list takes; `committed` have committed offsets, and of `unknown` nobody knows it.
TopicList::Inputs Match(const TopicList& list, const std::set<std::string>& existing,
                        const std::set<std::string>& present = {},
                        const std::set<std::string>& committed = {},
                        const std::set<std::string>& unknown = {}) {
  return list.Match(existing, present, [&](const std::vector<const DaemonOptions*>& inputs) {
    std::vector<absl::StatusOr<bool>> answers;
    for (const DaemonOptions* each : inputs) {
      if (unknown.contains(each->input)) {
        answers.emplace_back(absl::UnavailableError("no coordinator"));
      } else {
        answers.emplace_back(committed.contains(each->input));
      }
    }
    return answers;
  });
}

std::set<std::string> Refused(const TopicList::Inputs& inputs) {
  std::set<std::string> topics;
  for (const TopicList::Refused& each : inputs.refused) topics.insert(each.topic);
  return topics;
}

// "input -> output" of each.
std::vector<std::string> Texts(const TopicList::Inputs& inputs) {
  std::vector<std::string> texts;
  for (const DaemonOptions& options : inputs.topics) {
    texts.push_back(absl::StrCat(options.input, " -> ", options.output));
  }
  return texts;
}

// The first of the parts that the text lacks, with the text; empty: it has all of them.
std::string Lacking(const std::string& text, const Strings& parts) {
  for (const std::string& part : parts) {
    if (!absl::StrContains(text, part)) return absl::StrCat(part, " is not in: ", text);
  }
  return "";
}

std::string WhyRefused(std::vector<DaemonOptions> entries) {
  return std::string(TopicList::Create(std::move(entries)).status().message());
}

TEST(TopicList, NamesAreInputsWhetherTheyExistOrNot) {
  const TopicList list = List({Entry("b", "b-unique"), Entry("a", "a-unique")});
  EXPECT_FALSE(list.has_patterns());
  EXPECT_EQ(Texts(Match(list, {})), Strings({"b -> b-unique", "a -> a-unique"}));
  EXPECT_EQ(Texts(Match(list, {"a", "c"})), Strings({"b -> b-unique", "a -> a-unique"}));
}

TEST(TopicList, APatternGivesEachTopicItsOwnOutputDivertAndCounters) {
  DaemonOptions entry = Entry(R"(^clicks\.([a-z]+)(-v[0-9])?$)", "unique.$1", "diverted.$1");
  entry.counters = {{.name = "pages", .spec = {}, .output = "pages.$1$2"}};
  entry.stage.horizon = absl::Hours(7);
  const TopicList::Inputs inputs =
      Match(List({entry}), {"clicks.de", "clicks.us-v2", "clicks.", "xclicks.de", "clicks.de.old", "other"});
  ASSERT_EQ(Texts(inputs), Strings({"clicks.de -> unique.de", "clicks.us-v2 -> unique.us"}));
  EXPECT_EQ(inputs.topics[0].divert, "diverted.de");
  EXPECT_EQ(inputs.topics[0].counters[0].output, "pages.de");
  EXPECT_EQ(inputs.topics[1].counters[0].output, "pages.us-v2");
  EXPECT_EQ(inputs.topics[1].stage.horizon, absl::Hours(7));
  EXPECT_TRUE(inputs.refused.empty());
}

TEST(TopicList, ANameGoesBeforeAPattern) {
  const TopicList list = List({Entry("^clicks-(.+)$", "unique-$1"), Entry("clicks-de", "german")});
  EXPECT_EQ(Texts(Match(list, {"clicks-de", "clicks-us"})),
            Strings({"clicks-de -> german", "clicks-us -> unique-us"}));
}

TEST(TopicList, WhatLetheWritesIsNoInput) {
  DaemonOptions entry = Entry("^(.+)$", "$1-unique", "$1.diverted");
  entry.counters = {{.name = "n", .spec = {}, .output = "count-$1"}};
  entry.process.snapshots.topic = "snapshots";
  const TopicList list = List({entry, Entry("orders", "paid", "odd")});
  // Also where the input of an output is not there any more.
  EXPECT_EQ(Texts(Match(list, {"a", "a-unique", "gone-unique", "a.diverted", "count-a", "snapshots", "paid",
                               "odd", "__consumer_offsets", "lethe-a-repartition", "orders"})),
            Strings({"orders -> paid", "a -> a-unique"}));
}

TEST(TopicList, AnOutputWithoutLettersOfItsOwn) {
  const TopicList list = List({Entry(R"(^(.+)\.raw$)", "$1")});
  EXPECT_EQ(Texts(Match(list, {"a.raw", "a", "b.raw"})), Strings({"a.raw -> a", "b.raw -> b"}));
  // a.raw.raw would be written to a.raw.
  const TopicList::Inputs loop = Match(list, {"a.raw", "a.raw.raw"}, {}, {"a.raw"});
  EXPECT_EQ(Texts(loop), Strings({"a.raw -> a"}));
  ASSERT_EQ(loop.refused.size(), 1u);
  EXPECT_EQ(loop.refused[0].topic, "a.raw.raw");
  EXPECT_EQ(Lacking(loop.refused[0].why, {"a.raw.raw -> a.raw", "no output may be"}), "");
}

// Who may create topics chooses their names. What was read before comes first, whatever the names are.
TEST(TopicList, OfTwoThatDoNotGoTogetherTheOneThatWasReadBeforeIsRead) {
  struct Pair {
    TopicList list;
    std::string one;
    std::string other;
  };
  const Pair pairs[] = {
      {List({Entry("^(a|b)-(.+)$", "unique-$2")}), "a-x", "b-x"},
      {List({Entry(R"(^rxw\.(.+)$)", "$1")}), "rxw.rxw.zebra", "rxw.zebra"},
  };
  for (const auto& [list, one, other] : pairs) {
    for (const auto& [first, second] : {std::pair(one, other), std::pair(other, one)}) {
      SCOPED_TRACE(absl::StrCat(first, " before ", second));
      using Topics = std::set<std::string>;
      const Topics both = {first, second};
      // One that is read already goes on, and one with committed offsets comes before one without.
      for (const auto& inputs : {Match(list, both, {first}), Match(list, both, {first}, {second}),
                                 Match(list, both, {first}, both), Match(list, both, {}, {first}),
                                 // It is there no more, and may come back.
                                 Match(list, {second}, {first})}) {
        ASSERT_EQ(inputs.topics.size(), 1u);
        EXPECT_EQ(inputs.topics[0].input, first);
        EXPECT_EQ(Refused(inputs), Topics{second});
        EXPECT_EQ(Lacking(inputs.refused[0].why, {first, second}), "");
      }
      // In doubt neither is read.
      for (const auto& inputs :
           {Match(list, both), Match(list, both, {}, both), Match(list, both, {}, {}, {first}),
            Match(list, both, {}, {second}, {first}), Match(list, both, {}, {}, both)}) {
        EXPECT_EQ(Texts(inputs), Strings());
        EXPECT_EQ(Refused(inputs), both);
      }
      EXPECT_EQ(Match(list, {first}).topics.size(), 1u) << "alone it is read";
    }
  }
}

TEST(TopicList, ATopicThatIsRefusedRefusesNoOther) {
  const TopicList list = List({Entry(R"(^rxw\.(.+)$)", "$1")});
  // The second is refused for the third, so the first may be read.
  const std::set<std::string> all = {"rxw.rxw.rxw.a", "rxw.rxw.a", "rxw.a"};
  const TopicList::Inputs inputs = Match(list, all, {}, {"rxw.a"});
  EXPECT_EQ(Texts(inputs), Strings({"rxw.a -> a", "rxw.rxw.rxw.a -> rxw.rxw.a"}));
  EXPECT_EQ(Match(list, all).topics.size(), 0u);
}

TEST(TopicList, ATopicThatTwoPatternsMatchIsRefusedWithBoth) {
  const TopicList list = List({Entry("^a-(.+)$", "one-$1"), Entry("^(.+)-z$", "two-$1")});
  const TopicList::Inputs inputs = Match(list, {"a-x", "a-z", "b-z"});
  EXPECT_EQ(Texts(inputs), Strings({"a-x -> one-x", "b-z -> two-b"}));
  ASSERT_EQ(inputs.refused.size(), 1u);
  EXPECT_EQ(Lacking(inputs.refused[0].why, {"^a-(.+)$", "^(.+)-z$"}), "");
}

TEST(TopicList, APatternThatWritesToANamedInputIsRefusedWithBothNames) {
  const TopicList list = List({Entry("orders-a", "paid"), Entry("^raw-(.+)$", "orders-$1")});
  const TopicList::Inputs inputs = Match(list, {"raw-a", "raw-b", "orders-a"});
  EXPECT_EQ(Texts(inputs), Strings({"orders-a -> paid", "raw-b -> orders-b"}));
  ASSERT_EQ(inputs.refused.size(), 1u);
  EXPECT_EQ(Lacking(inputs.refused[0].why, {"raw-a -> orders-a"}), "");
}

TEST(TopicList, ANameThatIsTooLongIsRefused) {
  const TopicList list = List({Entry("^(.+)$", "$1$1x")});
  const std::string topic(130, 'a');
  const TopicList::Inputs inputs = Match(list, {topic, "b"});
  EXPECT_EQ(Texts(inputs), Strings({"b -> bbx"}));
  EXPECT_EQ(inputs.refused.at(0).topic, topic);
}

TEST(TopicList, EntriesThatDoNotGoTogetherAreRefusedWithBothNames) {
  EXPECT_EQ(Lacking(WhyRefused({Entry("a", "x"), Entry("a", "y")}), {"a -> y", "x"}), "");
  EXPECT_EQ(Lacking(WhyRefused({Entry("a", "x"), Entry("b", "x")}), {"b -> x", "a is"}), "");
  EXPECT_EQ(Lacking(WhyRefused({Entry("a", "b"), Entry("b", "c")}), {"from a", "b -> c"}), "");
  EXPECT_EQ(Lacking(WhyRefused({Entry("b", "c"), Entry("a", "b")}), {"a -> b", "to c"}), "");
  DaemonOptions counting = Entry("b", "y");
  counting.counters = {{.name = "n", .spec = {}, .output = "x"}};
  EXPECT_EQ(Lacking(WhyRefused({Entry("a", "x"), counting}), {"b -> x"}), "");
  // Diverted records may come together.
  EXPECT_EQ(WhyRefused({Entry("a", "x", "odd"), Entry("b", "y", "odd")}), "");
}

TEST(TopicList, APatternThatCannotBeMetIsRefused) {
  EXPECT_EQ(Lacking(WhyRefused({Entry("^a(b", "x-$1")}), {"^a(b: not a POSIX extended"}), "");
  EXPECT_EQ(Lacking(WhyRefused({Entry("^((a{100}){100}){100}", "x-$1")}), {"^((a{100}){100}){100}: its"}),
            "");
  EXPECT_EQ(WhyRefused({Entry("^a([0-9]{4}-[0-9]{2})$", "x-$1")}), "");
  EXPECT_EQ(Lacking(WhyRefused({Entry("^a(.+)$", "x")}), {"^a(.+)$ -> x: all topics"}), "");
  EXPECT_EQ(Lacking(WhyRefused({Entry("^a(.+)$", "x-$2")}), {"no group 2"}), "");
  EXPECT_EQ(Lacking(WhyRefused({Entry("a", "x-$1")}), {"a -> x-$1: $1 stands for"}), "");
}

TEST(TopicList, APatternWithoutAnInputSaysWhatItLeavesOut) {
  const TopicList list = List({Entry("clicks.web", "a"), Entry("^clicks\\.(.+)$", "unique.clicks.$1"),
                               Entry("^x\\.(.+)$", "unique.x.$1")});
  const TopicList::Inputs inputs = Match(list, {"clicks.web", "unique.x.1", "other"});
  ASSERT_EQ(inputs.unmatched.size(), 2u);
  EXPECT_EQ(inputs.unmatched[0].left_out, Strings({"clicks.web"}));
  EXPECT_EQ(inputs.unmatched[1].pattern, "^x\\.(.+)$");
  EXPECT_EQ(inputs.unmatched[1].left_out, Strings({}));
}

TEST(TopicList, APatternWithADigitOfPerlIsRefused) {
  EXPECT_EQ(Lacking(WhyRefused({Entry("^clicks-(\\d+)$", "unique.$1")}), {"\\d is the letter d", "[0-9]"}),
            "");
  EXPECT_EQ(Lacking(WhyRefused({Entry("^clicks-(\\D+)$", "unique.$1")}), {"[^0-9]"}), "");
}

TEST(TopicList, MergedInputsAreInputsAndNoneComesTwice) {
  DaemonOptions merged = Entry("west", "all");
  merged.merged = {"west", "east"};
  merged.scope = Scope::kTopic;
  const TopicList list = List({merged, Entry("^(.*)st$", "unique.$1")});
  const TopicList::Inputs inputs = Match(list, {"west", "east", "lethe-all-repartition"});
  EXPECT_EQ(Texts(inputs), Strings({"west -> all"}));
  EXPECT_EQ(inputs.topics[0].merged, Strings({"west", "east"}));
  EXPECT_EQ(Lacking(WhyRefused({merged, Entry("east", "east-unique")}), {"east", "also that of all"}), "");
  EXPECT_EQ(Lacking(WhyRefused({merged, Entry("a", "east")}), {"a -> east", "lethe reads east"}), "");
  EXPECT_EQ(Lacking(WhyRefused({Entry("a", "east"), merged}), {"east -> all", "lethe writes east from a"}),
            "");
  EXPECT_EQ(Lacking(WhyRefused({merged, Entry("lethe-all-repartition", "b")}),
                    {"lethe-all-repartition -> b", "lethe writes lethe-all-repartition"}),
            "");
}

TEST(TopicList, APatternMayHaveScopeTopic) {
  DaemonOptions entry = Entry("^clicks\\.(.+)$", "unique.$1");
  entry.scope = Scope::kTopic;
  const std::string longest = absl::StrCat("clicks.", std::string(235, 'x'));
  const TopicList::Inputs inputs =
      Match(List({entry}), {"clicks.web", "lethe-clicks.web-repartition", longest});
  EXPECT_EQ(Texts(inputs), Strings({"clicks.web -> unique.web"}));
  ASSERT_EQ(inputs.refused.size(), 1u) << "its repartition topic's name would be too long";
  EXPECT_EQ(inputs.refused[0].topic, longest);
}

}  // namespace
}  // namespace lethe
