// `lethe verify` on topics that lethe has written, and on copies of them with a damage: each is found where
// it is, and nothing is found where there is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <simdjson.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "tests/support/flow.h"
#include "tests/support/kafka_tools.h"
#include "tests/support/process.h"
#include "tests/support/retrying_clients.h"
#include "tests/support/seed.h"
#include "tests/support/shared_broker.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {
namespace {

using testing::HasSubstr;

using Json = simdjson::dom::element;

constexpr int kPartitions = 3;

struct Answer {
  int exit_code = -1;
  std::string text;
  Json json;  // of the first topic
};

class VerifyTopicsTest : public testing::Test {
 protected:
  VerifyTopicsTest() { WriteConfig(flow_.output()); }

  // With the flow's group.
  void WriteConfig(const std::string& output, const std::string& more = "") {
    std::ofstream(config_) << "brokers: " << SharedBroker().bootstrap() << "\ninput: " << flow_.input()
                           << "\noutput: " << output << "\ngroup: " << flow_.group()
                           << "\nid: json:/id\nhorizon: 1h\nfpp: 1e-9\n"
                           << more;
  }

  // A record each 50 ms, up to now. A tenth are copies, some have no id.
  void SendStream(size_t count) {
    std::vector<Record> records = RetryingClients(TestSeed()).Take(count);
    const int64_t begin = absl::ToUnixMillis(absl::Now()) - 50 * static_cast<int64_t>(count);
    for (size_t i = 0; i < count; ++i) {
      records[i].timestamp_ms = begin + 50 * static_cast<int64_t>(i);
      records[i].headers = {{"trace", absl::StrCat(i)}};
      if (i % 100 == 50) records[i].value = absl::StrCat("{\"n\":", i, "}");
    }
    flow_.Send(records);
  }
  void Deduplicate(const Args& args = {}) {
    ASSERT_TRUE(EndsWell(flow_.RunToEnd(Args{"--horizon=1h"} + args)));
  }

  Finished RunVerify(const Args& args = {}) const {
    ProcessOptions options;
    options.args = Args{LETHE_PROGRAM, "verify", "--config", config_} + args;
    const absl::StatusOr<Finished> finished = RunToEnd(options, absl::Minutes(1));
    EXPECT_OK(finished);
    return finished.ok() ? *finished : Finished{-1, "", ""};
  }
  Answer Verify(const Args& args = {}) {
    const Finished finished = RunVerify(args + Args{"--format", "json"});
    Answer answer = {finished.exit_code, absl::StrCat(finished.out, finished.err), {}};
    if (parser_.parse(finished.out).get(all_) == simdjson::SUCCESS) answer.json = all_["topics"].at(0);
    return answer;
  }
  static int64_t Count(const Answer& answer, const std::string& kind) {
    return answer.json[kind]["count"].get_int64().value();
  }
  static std::pair<int64_t, int64_t> First(const Answer& answer, const std::string& kind) {
    const Json first = answer.json[kind]["first"].at(0);
    return {first["partition"].get_int64().value(), first["offset"].get_int64().value()};
  }
  static std::string Counts(const Answer& answer) {
    std::string counts;
    for (const char* kind :
         {"lost", "repeated", "foreign", "changed", "out_of_order", "in_several_partitions", "undecided"}) {
      if (const int64_t count = Count(answer, kind); count > 0)
        absl::StrAppend(&counts, kind, " ", count, " ");
    }
    return counts;
  }
  void ExpectHolds(const Answer& answer) {
    ASSERT_EQ(answer.exit_code, 0) << answer.text;
    EXPECT_EQ(Counts(answer), "");
    EXPECT_EQ(answer.json["verdict"].get_string().value(), "holds");
  }

  // From this record of the output on, the first whose id comes once in the input: if one with copies is
  // lost, its copies are lost, too.
  static size_t Single(const std::vector<Record>& input, const std::vector<Record>& output, size_t from) {
    for (;; ++from) {
      const bool has_id = absl::StrContains(*output.at(from).value, "\"id\"");
      const auto same = std::count_if(input.begin(), input.end(), [&](const Record& record) {
        return record.value == output[from].value;
      });
      if (has_id && same == 1) return from;
    }
  }

  // A topic with these records, in their partitions and order.
  std::string Written(const std::vector<Record>& records) {
    const std::string topic = UniqueName("verified");
    EXPECT_OK(SharedClient().CreateTopic(topic, kPartitions, {{"retention.ms", "-1"}}));
    EXPECT_OK(SharedClient().Produce(topic, records));
    return topic;
  }

  Flow flow_{{.program = LETHE_PROGRAM,
              .partitions = kPartitions,
              .input = {{"retention.ms", "-1"}},
              .output = {{"retention.ms", "-1"}}}};
  const std::string config_ = absl::StrCat(testing::TempDir(), "/", flow_.group(), ".yaml");

 private:
  simdjson::dom::parser parser_;
  Json all_;
};

TEST_F(VerifyTopicsTest, FindsEachPlantedDamageWhereItIs) {
  SendStream(6000);
  Deduplicate();
  const std::vector<Record> input = flow_.Input();
  const std::vector<Record> right = flow_.Output();
  ExpectHolds(Verify());
  ASSERT_LT(right.size() + 300, input.size());
  // A record of the output, in its middle, and its place in the input.
  const size_t middle = right.size() / 2;
  const auto of_input = [&](const Record& record) {
    const auto found = std::find_if(input.begin(), input.end(),
                                    [&](const Record& other) { return other.headers == record.headers; });
    return std::pair<int64_t, int64_t>(found->partition, found->offset);
  };
  // Offsets of a topic that is written anew, without control records.
  const auto of_output = [](const std::vector<Record>& output, size_t at) {
    const auto before =
        std::count_if(output.begin(), output.begin() + static_cast<std::ptrdiff_t>(at),
                      [&](const Record& record) { return record.partition == output[at].partition; });
    return std::pair<int64_t, int64_t>(output[at].partition, before);
  };
  const auto at = [](std::vector<Record>& output, size_t i) {
    return output.begin() + static_cast<std::ptrdiff_t>(i);
  };
  const auto copy = std::find_if(input.begin() + 1500, input.end(), [&](const Record& record) {
    return std::none_of(right.begin(), right.end(),
                        [&](const Record& other) { return other.headers == record.headers; });
  });
  size_t has_no_id = middle;
  while (absl::StrContains(*right[has_no_id].value, "\"id\"")) ++has_no_id;
  const size_t has_id = Single(input, right, middle);
  using Place = std::pair<int64_t, int64_t>;
  struct Damage {
    std::string name;
    // Damages the output, and says where it is to be found.
    std::function<Place(std::vector<Record>&)> plant;
    std::string counts;
    std::string kind;
  };
  const Damage damages[] = {
      {"a record is lost",
       [&](auto& output) {
         output.erase(at(output, has_id));
         return of_input(right[has_id]);
       },
       "lost 1 ", "lost"},
      {"a record without an id is lost",
       [&](auto& output) {
         output.erase(at(output, has_no_id));
         return of_input(right[has_no_id]);
       },
       "lost 1 ", "lost"},
      {"a record is there twice",
       [&](auto& output) {
         output.insert(at(output, has_id), right[has_id]);
         return of_output(output, has_id + 1);
       },
       "repeated 1 ", "repeated"},
      {"a copy has passed",
       [&](auto& output) {
         const auto place = std::find_if(output.begin(), output.end(), [&](const Record& record) {
           return record.partition == copy->partition && record.timestamp_ms > copy->timestamp_ms;
         });
         const auto put = output.insert(place, *copy);
         return of_output(output, static_cast<size_t>(put - output.begin()));
       },
       "repeated 1 ", "repeated"},
      {"a record is from elsewhere",
       [&](auto& output) {
         output.insert(at(output, middle),
                       WithId("foreign", right[middle].partition, right[middle].timestamp_ms));
         return of_output(output, middle);
       },
       "foreign 1 ", "foreign"},
      {"a value differs",
       [&](auto& output) {
         output[has_id].value = absl::StrCat(*output[has_id].value, " ");
         return of_output(output, has_id);
       },
       "changed 1 ", "changed"},
      {"a header differs",
       [&](auto& output) {
         output[has_id].headers[0].second = "other";
         return of_output(output, has_id);
       },
       "changed 1 ", "changed"},
      {"a time differs",
       [&](auto& output) {
         ++output[has_id].timestamp_ms;
         return of_output(output, has_id);
       },
       "changed 1 ", "changed"},
      {"a key differs",
       [&](auto& output) {
         output[has_id].key = "other";
         return of_output(output, has_id);
       },
       "changed 1 ", "changed"},
      {"a record is out of order",
       [&](auto& output) {
         const Record moved = output[has_id];
         size_t to = has_id + 1;
         while (output[to].partition != moved.partition) ++to;
         output.insert(at(output, to + 1), moved);
         output.erase(at(output, has_id));
         return of_output(output, to);
       },
       "out_of_order 1 ", "out_of_order"},
      {"a record is in another partition",
       [&](auto& output) {
         output[has_id].partition = (output[has_id].partition + 1) % kPartitions;
         return of_output(output, has_id);
       },
       "lost 1 foreign 1 ", "foreign"},
  };
  for (const Damage& damage : damages) {
    SCOPED_TRACE(damage.name);
    std::vector<Record> output = right;
    const Place place = damage.plant(output);
    WriteConfig(Written(output));
    const Answer answer = Verify();
    ASSERT_EQ(answer.exit_code, 1) << answer.text;
    EXPECT_EQ(Counts(answer), damage.counts);
    EXPECT_EQ(First(answer, damage.kind), place);
  }
}

TEST_F(VerifyTopicsTest, WhatDoesNotFitIntoMemoryTakesAShareOrSeveralPasses) {
  SendStream(24'000);
  Deduplicate();
  const std::vector<Record> input = flow_.Input();
  std::vector<Record> output = flow_.Output();
  for (const size_t from : {1000u, 9000u}) {
    output.erase(output.begin() + static_cast<std::ptrdiff_t>(Single(input, output, from)));
  }
  *output[Single(input, output, 15'000)].value += " ";
  output.push_back(output[Single(input, output, 18'000)]);
  WriteConfig(Written(output));
  const Answer share = Verify({"--memory", "1MiB"});
  EXPECT_LT(share.json["share"].get_double().value(), 0.9);
  EXPECT_EQ(share.json["passes"].get_int64().value(), 1);
  EXPECT_NEAR(static_cast<double>(share.json["input_records"].get_int64().value()),
              24'000 * share.json["share"].get_double().value(), 1000);
  const Answer passes = Verify({"--memory", "1MiB", "--share", "1"});
  EXPECT_GT(passes.json["passes"].get_int64().value(), 1);
  EXPECT_EQ(passes.json["input_records"].get_int64().value(), 24'000);
  EXPECT_EQ(Counts(passes), "lost 2 repeated 1 changed 1 ");
  EXPECT_EQ(Counts(Verify()), "lost 2 repeated 1 changed 1 ");
}

TEST_F(VerifyTopicsTest, TwoGroupsThatWriteToOneOutput) {
  SendStream(3000);
  Deduplicate();
  const Args other = {absl::StrCat("--group=", flow_.group(), "-other"), "--horizon=1h",
                      "--accept-nonempty-output=true"};
  ASSERT_TRUE(EndsWell(flow_.RunToEnd(other)));
  const Answer answer = Verify();
  EXPECT_EQ(answer.exit_code, 1) << answer.text;
  EXPECT_GT(answer.json["written_twice"].get_int64().value(), 2500);
  EXPECT_EQ(answer.json["repeated"]["first"].get_array().size(), 100u);
  EXPECT_THAT(RunVerify().out, HasSubstr("another group"));
}

TEST_F(VerifyTopicsTest, WhatAResetOfTheOffsetSkipsIsLost) {
  flow_.SendIds("first-", 1, 1000);
  Deduplicate();
  flow_.SendIds("second-", 1, 1000);
  flow_.ResetGroup({{1800, ""}, {0, ""}, {0, ""}});
  for (const bool has_run : {false, true}) {
    SCOPED_TRACE(has_run ? "lethe has run since" : "lethe has not run since");
    if (has_run) Deduplicate();
    const Answer answer = Verify();
    EXPECT_EQ(answer.exit_code, 1) << answer.text;
    EXPECT_EQ(Counts(answer), "lost 800 ");
    EXPECT_EQ(answer.json["lost_skipped"].get_int64().value(), 800);
    EXPECT_EQ(answer.json["before_begin"].get_int64().value(), 0);
    EXPECT_EQ(answer.json["reasons"].get_array().size(), 1u);
    EXPECT_EQ(First(answer, "lost"), (std::pair<int64_t, int64_t>(0, 1000)));
  }
}

TEST_F(VerifyTopicsTest, CopiesInOtherPartitionsPass) {
  for (const int partition : {0, 1}) flow_.SendIds("both-", 1, 500, partition);
  flow_.SendIds("one-", 1, 500, 2);
  Deduplicate();
  const Answer answer = Verify();
  EXPECT_EQ(answer.exit_code, 1) << answer.text;
  EXPECT_EQ(Counts(answer), "in_several_partitions 500 ");
  EXPECT_EQ(answer.json["reasons"].get_array().size(), 1u);
}

TEST_F(VerifyTopicsTest, AWrongPathOfTheIdIsUndecided) {
  SendStream(1000);
  Deduplicate({"--id=json:/wrong"});
  std::ofstream(config_) << "brokers: " << SharedBroker().bootstrap() << "\ninput: " << flow_.input()
                         << "\noutput: " << flow_.output() << "\ngroup: " << flow_.group()
                         << "\nid: json:/wrong\nhorizon: 1h\n";
  const Answer answer = Verify();
  EXPECT_EQ(answer.exit_code, 3) << answer.text;
  EXPECT_EQ(answer.json["without_id"].get_int64().value(), 1000);
  EXPECT_EQ(answer.json["reasons"].get_array().size(), 1u);
}

TEST_F(VerifyTopicsTest, WhatRetentionHasDeletedIsUndecided) {
  SendStream(3000);
  Deduplicate();
  const std::vector<Record> input = flow_.Input();
  for (const bool of_output : {true, false}) {
    SCOPED_TRACE(of_output ? "of the output" : "of the input");
    const std::string& topic = of_output ? flow_.output() : flow_.input();
    ASSERT_OK(SharedClient().DeleteRecords(topic, 0, of_output ? 300 : 600));
    const Answer answer = Verify();
    EXPECT_EQ(answer.exit_code, 3) << answer.text;
    EXPECT_GT(Count(answer, "undecided"), 100);
    EXPECT_EQ(Count(answer, "lost") + Count(answer, "foreign"), 0) << answer.text;
    EXPECT_TRUE(answer.json[of_output ? "output_is_cut" : "input_is_cut"].get_bool().value());
  }
  // What came later is whole.
  const int64_t late_ms = input[input.size() / 2].timestamp_ms + 100'000;
  const Answer late = Verify(
      {"--since", absl::FormatTime(absl::RFC3339_full, absl::FromUnixMillis(late_ms), absl::UTCTimeZone())});
  EXPECT_LT(late.json["input_records"].get_int64().value(), 2000);
}

TEST_F(VerifyTopicsTest, AbortedRecordsAreNotJudgedAndAreCounted) {
  SendStream(1000);
  Deduplicate();
  const auto producer = TransactionalProducer::Start(SharedBroker().bootstrap(), UniqueName("verify-tx"));
  ASSERT_OK(producer);
  ASSERT_OK((*producer)->Begin());
  const std::vector<Record> records(7, WithId("aborted", 1));
  ASSERT_OK((*producer)->Produce(flow_.output(), records));
  ASSERT_OK((*producer)->Abort());
  const Answer answer = Verify();
  ExpectHolds(answer);
  EXPECT_EQ(answer.json["aborted"].get_int64().value(), 7);
}

TEST_F(VerifyTopicsTest, WhileLetheRunsNothingIsLost) {
  SendStream(2000);
  const std::unique_ptr<Daemon> lethe = flow_.Start({"--horizon=1h", "--commit-interval=1s"});
  int64_t not_yet = 0;
  for (int i = 0; i < 6; ++i) {
    // It may commit as fast as records come.
    const bool stands = i == 5;
    if (stands) {
      ASSERT_OK(lethe->process().Signal(SIGSTOP));
    }
    flow_.SendIds(absl::StrCat("live-", i, "-"), 1, 500, i % kPartitions);
    const Answer answer = Verify();
    if (stands) {
      ASSERT_OK(lethe->process().Signal(SIGCONT));
    }
    if (answer.exit_code == 3 && Counts(answer).empty()) continue;  // nothing is committed yet
    ExpectHolds(answer);
    not_yet += answer.json["not_yet"].get_int64().value();
  }
  EXPECT_GT(not_yet, 0);
  ASSERT_TRUE(AwaitJudged(*lethe, 5000));
  EXPECT_TRUE(lethe->Await([&] {
    const Answer answer = Verify();
    return answer.exit_code == 0 && answer.json["not_yet"].get_int64().value() == 0;
  }));
  EXPECT_TRUE(lethe->Stop());
  ExpectHolds(Verify());
}

TEST_F(VerifyTopicsTest, PoliciesAreAccountedFor) {
  for (const std::string policy : {"drop", "divert"}) {
    SCOPED_TRACE(policy);
    Flow flow({.program = LETHE_PROGRAM, .partitions = kPartitions, .input = {}, .output = {}});
    const std::string divert = UniqueName("diverted");
    ASSERT_OK(SharedClient().CreateTopic(divert, kPartitions));
    std::vector<Record> records = RetryingClients(TestSeed()).Take(1000);
    for (size_t i = 0; i < records.size(); ++i) {
      if (i % 50 == 7) records[i].value = "{\"n\":1}";
      if (i % 50 == 8) records[i].value = "broken {";
      if (i % 200 == 9)
        records[i].value =
            absl::StrCat("{\"id\":\"big-", i, "\",\"pad\":\"", std::string(900'000, 'x'), "\"}");
    }
    flow.Send(records);
    const Args args = {absl::StrCat("--on-missing-id=", policy), absl::StrCat("--on-malformed=", policy),
                       absl::StrCat("--on-duplicate=", policy), absl::StrCat("--divert=", divert),
                       "--exit-at-end"};
    ASSERT_TRUE(EndsWell(flow.RunToEnd(args)));
    std::ofstream(config_) << "brokers: " << SharedBroker().bootstrap() << "\ninput: " << flow.input()
                           << "\noutput: " << flow.output() << "\ngroup: " << flow.group()
                           << "\nid: json:/id\nfpp: 1e-9\non_missing_id: " << policy
                           << "\non_malformed: " << policy << "\non_duplicate: " << policy
                           << "\ndivert: " << divert << "\n";
    const Answer answer = Verify();
    ExpectHolds(answer);
    EXPECT_EQ(answer.json["without_id"].get_int64().value(), 20);
    EXPECT_EQ(answer.json["malformed"].get_int64().value(), 20);
    EXPECT_GT(answer.json["copies"].get_int64().value(), 10);
  }
}

TEST_F(VerifyTopicsTest, TaggedCopies) {
  SendStream(1000);
  Deduplicate({"--on-duplicate=tag"});
  EXPECT_NE(Verify().exit_code, 0);
  WriteConfig(flow_.output(), "on_duplicate: tag\n");
  const Answer answer = Verify();
  ExpectHolds(answer);
  EXPECT_EQ(answer.json["output_records"].get_int64().value(), 1000);
}

TEST_F(VerifyTopicsTest, ScopeTopic) {
  std::vector<Record> records;
  const int64_t begin = absl::ToUnixMillis(absl::Now()) - 200'000;
  for (int i = 0; i < 4000; ++i) {
    records.push_back(
        WithId(absl::StrCat("id-", i - (i % 10 == 9 ? 2 : 0)), i % kPartitions, begin + i * 50));
  }
  flow_.Send(records);
  Deduplicate({"--scope=topic"});
  EXPECT_EQ(Verify().exit_code, 1);  // in each partition lethe keeps less
  WriteConfig(flow_.output(), "scope: topic\n");
  const Answer answer = Verify();
  ExpectHolds(answer);
  EXPECT_EQ(answer.json["copies"].get_int64().value(), 400);
  EXPECT_EQ(answer.json["not_yet"].get_int64().value(), 0);

  // A router that is killed leaves records of an aborted transaction at the end.
  const auto killed = TransactionalProducer::Start(SharedBroker().bootstrap(), UniqueName("killed"));
  ASSERT_OK(killed);
  ASSERT_OK((*killed)->Begin());
  const std::string routed = absl::StrCat(flow_.group(), "-", flow_.input(), "-repartition");
  ASSERT_OK((*killed)->Produce(routed, {WithId("aborted", 0), WithId("aborted", 1)}));
  ASSERT_OK((*killed)->Abort());
  const Answer after = Verify();
  ExpectHolds(after);
  EXPECT_EQ(after.json["not_yet"].get_int64().value(), 0);
}

TEST_F(VerifyTopicsTest, AListOfTopicsWithAPatternAndMergedInputs) {
  const std::string name = UniqueName("verify-list");
  const auto topic = [&](const std::string& stem) { return absl::StrCat(name, ".", stem); };
  for (const char* stem : {"a", "b", "ab-unique", "clicks.web", "clicks-unique.web"}) {
    ASSERT_OK(SharedClient().CreateTopic(topic(stem), 2));
  }
  const int64_t begin = absl::ToUnixMillis(absl::Now()) - 200'000;
  for (const char* stem : {"a", "b", "clicks.web"}) {
    std::vector<Record> records;
    for (int i = 0; i < 500; ++i) records.push_back(WithId(absl::StrCat("id-", i), i % 2, begin + i * 100));
    ASSERT_OK(SharedClient().Produce(topic(stem), records));
  }
  std::ofstream(config_) << "brokers: " << SharedBroker().bootstrap() << "\ngroup: " << name
                         << "\nid: json:/id\nhorizon: 1h\nfpp: 1e-9\nhttp: off\nmemory: 64MiB\ntopics:\n"
                         << "  - {input: [" << topic("a") << ", " << topic("b")
                         << "], input_header: from, output: " << topic("ab-unique") << "}\n"
                         << "  - {input: '^" << name
                         << "\\.clicks\\.(.+)$', output: " << topic("clicks-unique.$1") << "}\n";
  ProcessOptions options;
  options.args = {LETHE_PROGRAM, "run", "--config", config_, "--exit-at-end"};
  const absl::StatusOr<Finished> run = RunToEnd(options, absl::Minutes(1));
  ASSERT_OK(run);
  ASSERT_EQ(run->exit_code, 0) << run->err;
  const Answer all = Verify();
  ExpectHolds(all);
  EXPECT_EQ(all.json["copies"].get_int64().value(), 500);
  const Answer clicks = Verify({"--topic", topic("clicks.web")});
  ExpectHolds(clicks);
  EXPECT_EQ(clicks.json["passed"].get_int64().value(), 500);
  EXPECT_EQ(Verify({"--topic", "no-such"}).exit_code, 2);

  // One that cannot be judged keeps nothing back of the other.
  ASSERT_OK(SharedClient().DeleteTopic(topic("clicks-unique.web")));
  const std::string textfile = absl::StrCat(testing::TempDir(), "/", name, ".prom");
  const Answer one = Verify({"--textfile", textfile});
  EXPECT_EQ(one.exit_code, 2);
  EXPECT_EQ(one.json["verdict"].get_string().value(), "holds");
  EXPECT_THAT(one.text, HasSubstr(topic("clicks-unique.web")));
  std::ifstream file(textfile);
  const std::string metrics(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(MetricSum(metrics, "lethe_verify_result", {absl::StrCat("\"", topic("clicks.web"), "\"")}), 2);
  EXPECT_EQ(MetricSum(metrics, "lethe_verify_result", {absl::StrCat("group=\"", name, "\"")}), 2);
}

// The command that is printed shows the record, and the metrics are those of the report.
TEST_F(VerifyTopicsTest, TheCommandShowsTheRecord) {
  SendStream(1000);
  Deduplicate();
  std::vector<Record> output = flow_.Output();
  const size_t single = Single(flow_.Input(), output, 500);
  const Record lost = output[single];
  output.erase(output.begin() + static_cast<std::ptrdiff_t>(single));
  WriteConfig(Written(output));
  const std::string textfile = absl::StrCat(testing::TempDir(), "/", flow_.group(), ".prom");
  const Finished finished = RunVerify({"--textfile", textfile});
  EXPECT_EQ(finished.exit_code, 1);
  const size_t begin = finished.out.find("kafka-console-consumer.sh ");
  ASSERT_NE(begin, std::string::npos) << finished.out;
  const std::string command = finished.out.substr(begin, finished.out.find('\n', begin) - begin);
  const absl::StatusOr<Finished> shown = RunKafkaTool(absl::StrSplit(command, ' '));
  ASSERT_OK(shown);
  EXPECT_EQ(shown->exit_code, 0) << shown->err;
  EXPECT_THAT(shown->out, HasSubstr(*lost.value));
  EXPECT_THAT(shown->err, HasSubstr("Processed a total of 1 messages"));

  std::ifstream file(textfile);
  const std::string metrics(std::istreambuf_iterator<char>(file), {});
  const std::string topic = absl::StrCat("topic=\"", flow_.input(), "\"");
  EXPECT_EQ(MetricSum(metrics, "lethe_verify_records", {topic, "kind=\"lost\""}), 1);
  EXPECT_EQ(MetricSum(metrics, "lethe_verify_records", {topic, "kind=\"repeated\""}), 0);
  EXPECT_EQ(MetricSum(metrics, "lethe_verify_result", {topic}), 1);
  EXPECT_GT(MetricSum(metrics, "lethe_verify_timestamp_seconds", {topic}), 1.7e9);
}

}  // namespace
}  // namespace lethe::test
