// `lethe survey` on topics whose truth is known: its figures, and that it leaves no trace.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <map>
#include <optional>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "tests/support/flow.h"
#include "tests/support/process.h"
#include "tests/support/real_events.h"
#include "tests/support/retrying_clients.h"
#include "tests/support/seed.h"
#include "tests/support/shared_broker.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

using Json = simdjson::dom::element;

constexpr int kPartitions = 4;

// What an oracle that knows each record says.
struct Truth {
  int64_t copies = 0;
  int64_t elsewhere = 0;
  std::map<int64_t, int64_t> caught;  // by the horizon in milliseconds
};

class SurveyTopicTest : public testing::Test {
 protected:
  // The records in a topic of its own, each a little after the one before; where an odd number asks for it,
  // in other partitions than their keys say.
  void Send(std::vector<Record> records, bool keyed = true) {
    topic_ = UniqueName("survey");
    ASSERT_OK(SharedClient().CreateTopic(topic_, kPartitions));
    const int64_t begin = absl::ToUnixMillis(absl::Now()) - 50 * static_cast<int64_t>(records.size());
    for (size_t i = 0; i < records.size(); ++i) {
      records[i].timestamp_ms = begin + 50 * static_cast<int64_t>(i);
      if (!keyed) records[i].partition = static_cast<int32_t>(i % kPartitions);
    }
    ASSERT_OK(SharedClient().Produce(topic_, records));
  }

  Finished Survey(const Args& args, const std::string& topic) {
    ProcessOptions options;
    options.args = {LETHE_PROGRAM, "survey", "--brokers", SharedBroker().bootstrap(), "--input", topic};
    options.args.insert(options.args.end(), args.begin(), args.end());
    options.env = {{"LANG", "C.UTF-8"}};
    const absl::StatusOr<Finished> finished = RunToEnd(options, absl::Minutes(1));
    EXPECT_OK(finished);
    return finished.ok() ? *finished : Finished{-1, "", ""};
  }

  Json SurveyJson(Args args) {
    args.insert(args.end(), {"--output", "json"});
    const Finished finished = Survey(args, topic_);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_EQ(finished.err, "");
    json_ = finished.out;
    Json json;
    EXPECT_EQ(parser_.parse(json_).get(json), simdjson::SUCCESS) << json_;
    return json;
  }

  Truth TruthOf(const std::string& id_at) {
    std::vector<Record> all = *SharedClient().ReadSettled(topic_);
    std::sort(all.begin(), all.end(), [](const Record& x, const Record& y) {
      return std::tie(x.timestamp_ms, x.partition, x.offset) <
             std::tie(y.timestamp_ms, y.partition, y.offset);
    });
    Truth truth;
    std::map<std::string, Record*> firsts;
    simdjson::dom::parser parser;
    for (Record& record : all) {
      const std::string id(parser.parse(*record.value)[id_at].get_string().value());
      const auto [first, is_new] = firsts.emplace(id, &record);
      if (is_new) continue;
      ++truth.copies;
      truth.elsewhere += first->second->partition != record.partition;
      for (const int64_t horizon_ms : {1000, 10'000, 60'000, 600'000}) {
        truth.caught[horizon_ms] += record.timestamp_ms - first->second->timestamp_ms <= horizon_ms;
      }
    }
    return truth;
  }

  // 5.5 standard deviations, where the survey states a margin of 1.96: missed less than once in ten million.
  static void ExpectNear(Json estimate, int64_t truth) {
    const double margin = estimate["margin"].get_double().value() * 5.5 / 1.96;
    EXPECT_LE(std::abs(estimate["value"].get_double().value() - static_cast<double>(truth)), margin + 1e-6)
        << simdjson::minify(estimate) << ", truly " << truth;
  }

  static void ExpectTrue(Json id, const Truth& truth) {
    ExpectNear(id["copies"], truth.copies);
    ExpectNear(id["elsewhere"], truth.elsewhere);
    ExpectNear(id["changed"], 0);
    for (Json horizon : id["caught"]) {
      const auto known = truth.caught.find(horizon["horizon_ms"].get_int64().value());
      if (known != truth.caught.end()) ExpectNear(horizon["copies"], known->second);
    }
  }

  std::string topic_;

 private:
  simdjson::dom::parser parser_;
  std::string json_;
};

class RealSurveyTest : public SurveyTopicTest {
 protected:
  absl::StatusOr<RealStream> Stream(int repeat) { return MakeRealStream(source_, TestSeed(), repeat); }

  const RealEventsFile source_ = FindRealEvents(LETHE_SOURCE_DIR);
};

TEST_F(RealSurveyTest, FindsTheIdAndEveryCopy) {
  const absl::StatusOr<RealStream> stream = Stream(1);
  ASSERT_OK(stream);
  Send(stream->records);
  const Json json = SurveyJson({});
  EXPECT_EQ(json["records"].get_uint64().value(), stream->records.size());
  EXPECT_EQ(json["partitions"].get_int64().value(), kPartitions);
  EXPECT_NEAR(json["rate"].get_double().value(), 20, 0.5);
  const Json best = json["ids"].at(0);
  EXPECT_EQ(best["id"].get_string().value(), "json:/id");
  EXPECT_EQ(best["quality"].get_string().value(), "good");
  EXPECT_EQ(best["sampled_share"].get_double().value(), 1);
  EXPECT_EQ(best["copies"]["value"].get_double().value(),
            static_cast<double>(stream->records.size() - stream->unique));
  EXPECT_EQ(best["copies"]["margin"].get_double().value(), 0);
  ExpectTrue(best, TruthOf("id"));
  EXPECT_EQ(best["elsewhere"]["value"].get_double().value(), 0);
  for (Json id : json["ids"]) {
    if (id["id"].get_string().value() == "key") {
      EXPECT_EQ(id["quality"].get_string().value(), "poor");
    }
  }
}

TEST_F(RealSurveyTest, CountsCopiesInOtherPartitions) {
  const absl::StatusOr<RealStream> stream = Stream(1);
  ASSERT_OK(stream);
  Send(stream->records, /*keyed=*/false);
  const Truth truth = TruthOf("id");
  EXPECT_GT(truth.elsewhere, truth.copies / 2);
  ExpectTrue(SurveyJson({"--id", "json:/id"})["ids"].at(0), truth);
}

TEST_F(RealSurveyTest, IsWithinItsMarginsWhereMemoryIsShort) {
  const absl::StatusOr<RealStream> stream = Stream(4);
  ASSERT_OK(stream);
  Send(stream->records, /*keyed=*/false);
  const Json best = SurveyJson({"--memory", "16MiB"})["ids"].at(0);
  EXPECT_EQ(best["id"].get_string().value(), "json:/id");
  EXPECT_LT(best["sampled_share"].get_double().value(), 1);
  const Truth truth = TruthOf("id");
  EXPECT_LT(best["copies"]["margin"].get_double().value(), 0.05 * static_cast<double>(truth.copies));
  ExpectTrue(best, truth);
}

TEST_F(SurveyTopicTest, ReadsNoMoreThanItIsAskedTo) {
  Send(RetryingClients(TestSeed()).Take(20000));
  EXPECT_EQ(SurveyJson({"--records", "all"})["records"].get_uint64().value(), 20000u);
  const Json some = SurveyJson({"--records", "5000", "--id", "json:/id"});
  EXPECT_NEAR(static_cast<double>(some["records"].get_uint64().value()), 5000, kPartitions);
  EXPECT_EQ(some["in_topic"].get_uint64().value(), 20000u);
  // One record in 50 ms: the last 100 s have some 2,000 of them, and some have passed since.
  const uint64_t last = SurveyJson({"--last", "100s", "--id", "json:/id"})["records"].get_uint64().value();
  EXPECT_LE(last, 2000u);
  EXPECT_GE(last, 200u);
}

TEST_F(SurveyTopicTest, SeesCommittedRecordsOnly) {
  Send({WithId("a"), WithId("b")});
  const auto producer = TransactionalProducer::Start(SharedBroker().bootstrap(), UniqueName("survey-tx"));
  ASSERT_OK(producer);
  for (const bool commits : {false, true}) {
    ASSERT_OK((*producer)->Begin());
    const std::vector<Record> records(3, WithId("a"));
    ASSERT_OK((*producer)->Produce(topic_, records));
    ASSERT_OK((commits ? (*producer)->Commit() : (*producer)->Abort()));
  }
  ASSERT_EQ(SharedClient().ReadSettled(topic_)->size(), 5u);
  const Json json = SurveyJson({"--id", "json:/id"});
  EXPECT_EQ(json["records"].get_uint64().value(), 5u);
  EXPECT_EQ(json["ids"].at(0)["copies"]["value"].get_double().value(), 3);
}

TEST_F(SurveyTopicTest, LeavesNoTrace) {
  Send(RetryingClients(TestSeed()).Take(1000));
  const auto before = SharedClient().EndOffsets(topic_, Isolation::kReadUncommitted);
  SurveyJson({});
  EXPECT_EQ(*SharedClient().EndOffsets(topic_, Isolation::kReadUncommitted), *before);
  const auto groups = SharedClient().Groups();
  ASSERT_OK(groups);
  for (const std::string& group : *groups) EXPECT_THAT(group, Not(StartsWith("lethe-survey")));
}

TEST_F(SurveyTopicTest, SaysInPlainTextWhatToDoNext) {
  Send(RetryingClients(TestSeed()).Take(5000));
  const Finished finished = Survey({}, topic_);
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.err, "");  // no bar where there is no terminal
  EXPECT_THAT(finished.out, Not(HasSubstr("\033")));
  for (const std::string& text :
       {std::string("Where the id is"), std::string("How late the copies come"),
        absl::StrCat("lethe run --brokers ", SharedBroker().bootstrap(), " --input ", topic_),
        absl::StrCat("kafka-topics.sh --bootstrap-server ", SharedBroker().bootstrap(), " --create"),
        std::string("--id json:/id --horizon 1h"), std::string("lethe plan --rate ")}) {
    EXPECT_THAT(finished.out, HasSubstr(text));
  }
}

// The commands under `Next`, those that go over several lines put together.
std::vector<std::string> CommandsIn(const std::string& report) {
  std::string next = report.substr(report.find("\nNext\n"));
  next = absl::StrReplaceAll(next, {{" \\\n       ", ""}});
  std::vector<std::string> commands;
  for (absl::string_view line : absl::StrSplit(next, '\n')) {
    if (absl::ConsumePrefix(&line, "    ")) commands.emplace_back(line);
  }
  return commands;
}

// What the flags of a command are given.
std::map<std::string, std::string> Flags(const std::string& command) {
  const std::vector<std::string> words = absl::StrSplit(command, ' ');
  std::map<std::string, std::string> flags;
  for (size_t i = 0; i < words.size(); ++i) {
    if (absl::StartsWith(words[i], "--")) flags[words[i]] = i + 1 < words.size() ? words[i + 1] : "";
  }
  return flags;
}

// As they are printed, in their order; only that `lethe run` ends and does not listen. The tools of Kafka are
// not there, so the test makes the topic as the command says.
TEST_F(SurveyTopicTest, TheCommandsThatItPrintsDeduplicateATopicWithoutKeys) {
  std::vector<Record> records;
  for (int i = 0; i < 3000; ++i) records.push_back(WithId(absl::StrCat("id-", i - (i % 10 == 9 ? 2 : 0))));
  Send(records, /*keyed=*/false);
  const std::vector<std::string> commands = CommandsIn(Survey({}, topic_).out);
  ASSERT_EQ(commands.size(), 3u);
  std::string output;
  for (const std::string& command : commands) {
    std::map<std::string, std::string> flags = Flags(command);
    if (absl::StartsWith(command, "kafka-topics.sh ")) {
      EXPECT_EQ(flags["--bootstrap-server"], SharedBroker().bootstrap());
      EXPECT_TRUE(flags.contains("--create"));
      output = flags["--topic"];
      ASSERT_OK(SharedClient().CreateTopic(output, std::stoi(flags["--partitions"])));
      continue;
    }
    ASSERT_THAT(command, StartsWith("lethe "));
    const bool runs = absl::StartsWith(command, "lethe run ");
    ProcessOptions options;
    options.args = {"sh", "-c",
                    absl::StrCat("lethe() { ", LETHE_PROGRAM, " \"$@\"; }; ", command,
                                 runs ? " --exit-at-end --http off" : "")};
    const absl::StatusOr<Finished> finished = RunToEnd(options, absl::Minutes(1));
    ASSERT_OK(finished);
    EXPECT_EQ(finished->exit_code, 0) << command << "\n" << finished->err;
  }
  EXPECT_EQ(SharedClient().ReadSettled(output)->size(), 2700u);
}

// The list is taken as it is printed.
TEST_F(SurveyTopicTest, APatternHasALineForEachTopicAndAListThatRuns) {
  const std::string name = UniqueName("survey-list");
  const std::string web = name + ".web";
  const std::string app = name + ".app";
  const std::string empty = name + ".empty";
  for (const std::string& topic : {web, app, empty, web + "-unique", app + "-unique"}) {
    ASSERT_OK(SharedClient().CreateTopic(topic, 1));
  }
  const auto send = [](const std::string& topic, int records, int copies) {
    std::vector<Record> sent;
    for (int i = 0; i < records; ++i) sent.push_back(WithId(absl::StrCat(topic, i)));
    for (int i = 0; i < copies; ++i) sent.push_back(WithId(absl::StrCat(topic, i)));
    return SharedClient().Produce(topic, sent);
  };
  ASSERT_OK(send(web, 900, 100));
  ASSERT_OK(send(app, 1500, 500));
  const Finished text = Survey({}, absl::StrCat("^", name, "\\."));
  EXPECT_EQ(text.exit_code, 0) << text.out << text.err;
  EXPECT_EQ(text.err, "");
  std::map<std::string, std::vector<std::string>> rows;
  for (const absl::string_view line : absl::StrSplit(text.out, '\n')) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (!words.empty() && absl::StartsWith(words[0], name)) rows[words[0]] = words;
  }
  EXPECT_EQ(rows,
            (std::map<std::string, std::vector<std::string>>{{web, {web, "1,000", "10.0", "%", "json:/id"}},
                                                             {app, {app, "2,000", "25.0", "%", "json:/id"}},
                                                             {empty, {empty, "0", "-"}}}))
      << text.out;

  const size_t list = text.out.find("\nmemory: ");
  ASSERT_NE(list, std::string::npos) << text.out;
  const std::string file = absl::StrCat(testing::TempDir(), "/", name, ".yaml");
  std::ofstream(file) << "brokers: " << SharedBroker().bootstrap() << "\ngroup: " << name << "\nhttp: off\n"
                      << text.out.substr(list + 1);
  ProcessOptions options;
  options.args = {LETHE_PROGRAM, "run", "--config", file, "--exit-at-end"};
  const absl::StatusOr<Finished> run = RunToEnd(options, absl::Minutes(1));
  ASSERT_OK(run);
  EXPECT_EQ(run->exit_code, 0) << run->err;
  EXPECT_EQ(SharedClient().ReadSettled(web + "-unique")->size(), 900u);
  EXPECT_EQ(SharedClient().ReadSettled(app + "-unique")->size(), 1500u);

  // A topic that is missing holds up no other.
  const Finished json = Survey({"--format", "json"}, absl::StrCat(web, ",", name, ".none"));
  EXPECT_EQ(json.exit_code, 1) << json.out;
  simdjson::dom::parser parser;
  const simdjson::padded_string padded(json.out);
  const Json topics = parser.parse(padded)["topics"];
  ASSERT_EQ(topics.get_array().size(), 2u) << json.out;
  EXPECT_EQ(topics.at(0)["records"].get_uint64().value(), 1000u);
  EXPECT_THAT(std::string(topics.at(1)["error"].get_string().value()), HasSubstr("does not exist"))
      << json.out;
}

TEST_F(SurveyTopicTest, AnEmptyTopicIsReported) {
  Send({});
  const Finished finished = Survey({}, topic_);
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("The topic is empty"));
}

TEST_F(SurveyTopicTest, ARegistryThatDoesNotAnswerIsOneErrorAfterAWhile) {
  Record framed = WithId("a");
  framed.value = std::string("\0\0\0\0\7\2a", 7);
  Send({framed, framed});
  const auto begin = std::chrono::steady_clock::now();
  const Finished finished = Survey({"--schema-registry", "http://127.0.0.1:1"}, topic_);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(40));
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_EQ(finished.out, "");
  EXPECT_THAT(finished.err, HasSubstr("waiting for the schema registry"));
  EXPECT_THAT(finished.err, HasSubstr("the schema registry does not answer: schema id 7"));
  EXPECT_EQ(std::count(finished.err.begin(), finished.err.end(), '\n'), 2) << finished.err;
}

TEST_F(SurveyTopicTest, ErrorsSayWhatToDo) {
  const Finished missing = Survey({}, UniqueName("nowhere"));
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.err, HasSubstr("does not exist"));
  Send({WithId("a")});
  const Finished mistyped = Survey({}, absl::StrCat(topic_, "x"));
  EXPECT_THAT(mistyped.err, HasSubstr(absl::StrCat("did you mean ", topic_, "?")));
  ProcessOptions options;
  options.args = {LETHE_PROGRAM, "survey", "--brokers", "127.0.0.1:1", "--input", "x"};
  const absl::StatusOr<Finished> nobody = RunToEnd(options, absl::Minutes(1));
  ASSERT_OK(nobody);
  EXPECT_EQ(nobody->exit_code, 1);
  EXPECT_THAT(nobody->err, HasSubstr("no broker answers at 127.0.0.1:1"));
}

}  // namespace
}  // namespace lethe::test
