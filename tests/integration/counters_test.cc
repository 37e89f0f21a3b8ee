// What unique events count: where the deltas go, and what becomes of what cannot be counted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <simdjson.h>
#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "connectors/kafka/counters/counter_totals.h"
#include "tests/integration/counting.h"
#include "tests/integration/rules.h"
#include "tests/support/flow.h"
#include "tests/support/oracle.h"
#include "tests/support/process.h"
#include "tests/support/retrying_clients.h"
#include "tests/support/seed.h"
#include "tests/support/shared_broker.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Record WithValue(const std::string& id, const std::string& rest, int32_t partition = 0) {
  Record record = WithId(id, partition);
  record.value = absl::StrCat(R"({"id":")", id, "\",", rest, "}");
  return record;
}

std::string Header(const Record& record, const std::string& name) {
  for (const auto& [key, value] : record.headers) {
    if (key == name) return value.value_or("(null)");
  }
  return "(none)";
}

std::string NewTopic(const std::string& stem, int partitions, const KafkaClient::Configs& configs = {}) {
  const std::string topic = UniqueName(stem);
  EXPECT_OK(SharedClient().CreateTopic(topic, partitions, configs));
  return topic;
}

Totals SumOf(const std::string& topic) {
  Totals sums;
  const std::vector<Record> deltas = SharedClient().ReadSettled(topic).value();
  for (const Record& record : deltas) {
    int64_t delta = 0;
    EXPECT_TRUE(absl::SimpleAtoi(record.value.value_or(""), &delta)) << topic << " " << record.offset;
    sums[record.key.value_or("(null)")] += delta;
  }
  return sums;
}

// The hashes are those of Kafka's own tests of its partitioner.
TEST(CountersTest, DeltasAreWhereKafkasDefaultPartitionerPutsTheirKeys) {
  const std::map<std::string, int32_t> hashes = {
      {"21", -973932308},
      {"foobar", -790332482},
      {"a-little-bit-long-string", -985981536},
      {"a-little-bit-longer-string", -1486304829},
      {"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971},
      {"abc", 479470107}};
  Flow flow(Options(2));
  const std::string counts = NewTopic("counts", 7);
  std::vector<Record> records;
  for (const auto& [key, hash] : hashes) {
    for (const int32_t partition : {0, 1, 1}) {
      const std::string id = absl::StrCat(key, "/", records.size());
      records.push_back(WithValue(id, absl::StrCat(R"("key":")", key, "\""), partition));
      records.push_back(records.back());
    }
  }
  flow.Send(records);
  ASSERT_TRUE(EndsWell(flow.RunToEnd({absl::StrCat("--counter=name=n,key=json:/key,output=", counts)})));
  std::map<std::string, std::map<std::string, int64_t>> sums;  // by key and input partition
  const std::vector<Record> deltas = SharedClient().ReadSettled(counts).value();
  for (const Record& delta : deltas) {
    EXPECT_EQ(delta.partition, (hashes.at(*delta.key) & 0x7fffffff) % 7) << *delta.key;
    EXPECT_EQ(Header(delta, "lethe.counter"), "n");
    EXPECT_EQ(Header(delta, "lethe.topic"), flow.input());
    sums[*delta.key][Header(delta, "lethe.partition")] += std::stoll(*delta.value);
  }
  ASSERT_EQ(sums.size(), hashes.size());
  for (const auto& [key, of_key] : sums) {
    EXPECT_EQ(of_key, (std::map<std::string, int64_t>{{"0", 1}, {"1", 2}})) << key;
  }
}

TEST(CountersTest, EachCounterCountsWhatItIsMeantFor) {
  Flow flow(Options());
  const std::string likes = NewTopic("likes", 1), money = NewTopic("money", 1);
  std::vector<Record> records;
  Totals liked, spent;
  for (int i = 0; i < 300; ++i) {
    const std::string page = absl::StrCat("page ", i % 7);
    const bool like = i % 3 == 0;
    records.push_back(
        WithValue(absl::StrCat(i), absl::StrCat(R"("page":")", page, R"(","type":")", like ? "like" : "view",
                                                R"(","cents":)", i - 150)));
    if (i % 2 == 0) records.push_back(records.back());
    if (like) ++liked[page];
    spent[page] += i - 150;
  }
  flow.Send(records);
  const auto daemon = flow.Start(
      {absl::StrCat("--counter=name=likes,key=json:/page,when=json:/type,equals=like,output=", likes),
       absl::StrCat("--counter=name=money,key=json:/page,delta=json:/cents,output=", money)});
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") >= 450; }));
  EXPECT_EQ(daemon->Metric("lethe_deltas_total"), 400);
  EXPECT_EQ(daemon->Metric("lethe_malformed_deltas_total"), 0);
  EXPECT_TRUE(daemon->Stop());
  EXPECT_TRUE(flow.ExactlyOnce());
  EXPECT_TRUE(SameTotals(liked, SumOf(likes)));
  EXPECT_TRUE(SameTotals(spent, SumOf(money)));
}

struct Uncountable {
  std::string rest;
  std::string reason;
};
const Uncountable kUncountable[] = {
    {R"("n":1)", "json:/key is not there"},
    {R"("key":"","n":1)", "json:/key is empty"},
    {R"("key":["a"],"n":1)", "json:/key is neither a string nor a number"},
    {R"("key":"a")", "json:/n is not there"},
    {R"("key":"a","n":"1")", "json:/n is a string"},
    {R"("key":"a","n":1.5)", "json:/n is not written as a whole number"},
    {R"("key":"a","n":1e3)", "json:/n is not written as a whole number"},
    {R"("key":"a","n":9223372036854775808)", "json:/n is beyond 64 bits"},
    {R"("key":"a","n":-9223372036854775809)", "json:/n is beyond 64 bits"},
};

// What is uncountable is an event all the same.
TEST(CountersTest, WhatCannotBeCountedIsWrittenCountedAsSuchAndDiverted) {
  Flow flow(Options());
  const std::string counts = NewTopic("counts", 1, {{"max.message.bytes", "3000"}}),
                    diverted = NewTopic("diverted", 1);
  std::vector<Record> records;
  for (const Uncountable& each : kUncountable) {
    records.push_back(WithValue(absl::StrCat(records.size()), each.rest));
    records.push_back(WithValue(absl::StrCat(records.size()), R"("key":"a","n":9223372036854775807)"));
    records.push_back(WithValue(absl::StrCat(records.size()), R"("key":"a","n":-9223372036854775807)"));
  }
  const std::string huge = Incompressible(2500);
  records.push_back(WithValue("huge", absl::StrCat(R"("key":")", huge, R"(","n":1)")));
  flow.Send(records);
  const auto daemon =
      flow.Start({absl::StrCat("--counter=name=c,key=json:/key,delta=json:/n,output=", counts),
                  "--on-uncountable=divert", "--divert=" + diverted});
  const auto all = static_cast<double>(records.size());
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") >= all; }));
  const auto wrong = static_cast<double>(std::size(kUncountable));
  EXPECT_EQ(daemon->Metric("lethe_malformed_deltas_total"), wrong + 1);
  EXPECT_EQ(daemon->Metric("lethe_deltas_total"), 2 * wrong);
  EXPECT_EQ(daemon->Metric("lethe_record_actions_total", {"action=\"passed\""}), all);
  EXPECT_TRUE(daemon->AwaitLog(absl::StrCat(
      flow.input(), "-0 offset 0: written, and not counted: counter c: ", kUncountable[0].reason)));
  EXPECT_TRUE(daemon->Stop());
  EXPECT_TRUE(flow.ExactlyOnce());
  EXPECT_TRUE(SameTotals({{"a", 0}}, SumOf(counts)));
  const std::vector<Record> copies = SharedClient().ReadSettled(diverted).value();
  const std::vector<Record> input = flow.Input();
  ASSERT_EQ(copies.size(), std::size(kUncountable) + 1);
  for (size_t i = 0; i < copies.size(); ++i) {
    const Record& original = i < std::size(kUncountable) ? input[3 * i] : input.back();
    EXPECT_EQ(copies[i].value, original.value);
    EXPECT_EQ(Header(copies[i], "lethe.verdict"), "uncountable");
    EXPECT_EQ(Header(copies[i], "lethe.offset"), absl::StrCat(original.offset));
    const std::string reason =
        i < std::size(kUncountable) ? kUncountable[i].reason : "its key has 2500 bytes";
    EXPECT_THAT(Header(copies[i], "lethe.reason"), StartsWith(absl::StrCat("counter c: ", reason)));
  }
}

Finished Counters(const std::string& topic, const Args& args);
Totals LastTotals(const std::string& topic, const Flow& flow, const std::string& counter);

// A key that is not UTF-8 counts like any other. A value that is not is malformed JSON: it passes, and counts
// by the record's key.
TEST(CountersTest, KeysAreAnyBytes) {
  Flow flow(Options());
  const std::string deltas = NewTopic("deltas", 1), totals = UniqueName("totals");
  const std::string key("\xff/\xc3\n\0\"", 6), broken = "\xc3";
  std::vector<Record> records;
  for (int i = 0; i < 3; ++i) {
    records.push_back(WithValue(absl::StrCat(i), R"("n":1)"));
    records.back().key = key;
  }
  records.push_back(WithValue("broken", absl::StrCat(R"("n":")", broken, "\"")));
  records.back().key = key;
  flow.Send(records);
  const auto daemon = flow.Start({absl::StrCat("--counter=name=d,key=key,output=", deltas),
                                  absl::StrCat("--counter=name=t,mode=total,key=key,output=", totals)});
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") >= 4; }));
  EXPECT_EQ(daemon->Metric("lethe_records_total", {"verdict=\"malformed\""}), 1);
  EXPECT_EQ(daemon->Metric("lethe_deltas_total"), 8);
  EXPECT_TRUE(daemon->AwaitLog(absl::StrCat(flow.input(), "-0 offset 3")));
  EXPECT_TRUE(daemon->Stop());
  EXPECT_TRUE(SameTotals({{key, 4}}, SumOf(deltas)));
  EXPECT_TRUE(SameTotals({{"0/" + key, 4}}, LastTotals(totals, flow, "t")));
  for (const std::string& topic : {deltas, totals}) {
    EXPECT_EQ(Counters(topic, {"--format=json"}).out, R"({"key":"\ufffd/\ufffd\n\u0000\"","total":4})"
                                                      "\n");
  }
}

// The record itself has a place in the output, whatever becomes of its copy.
TEST(CountersTest, ACopyThatTheDivertTopicRefusesCostsNothingElse) {
  Flow flow(Options());
  const std::string counts = NewTopic("counts", 1),
                    diverted = NewTopic("diverted", 1, {{"max.message.bytes", "2000"}});
  std::vector<Record> records;
  for (int i = 0; i < 200; ++i) {
    const std::string pad = i == 70 ? Incompressible(5000) : "";
    records.push_back(WithValue(
        absl::StrCat(i), absl::StrCat(R"("key":"a","pad":")", pad, "\"", i % 70 == 0 ? "" : R"(,"n":1)")));
  }
  flow.Send(records);
  const Finished finished =
      flow.RunToEnd({absl::StrCat("--counter=name=c,key=json:/key,delta=json:/n,output=", counts),
                     "--on-uncountable=divert", "--divert=" + diverted, "--kafka=compression.type=none"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_TRUE(flow.ExactlyOnce());
  EXPECT_TRUE(SameTotals({{"a", 197}}, SumOf(counts)));
  std::vector<std::string> offsets;
  const std::vector<Record> copies = SharedClient().ReadSettled(diverted).value();
  for (const Record& copy : copies) offsets.push_back(Header(copy, "lethe.offset"));
  EXPECT_EQ(offsets, (std::vector<std::string>{"0", "140"}));
}

// Of a topic of totals: the last of each key and input partition, as "PARTITION/KEY". A total that says that
// it has less in it than the one before is a failure.
Totals LastTotals(const std::string& topic, const Flow& flow, const std::string& counter) {
  simdjson::dom::parser parser;
  Totals totals;
  std::map<std::string, int64_t> offsets;
  const std::string prefix = absl::StrCat(counter, "/", flow.input(), "/");
  const std::vector<Record> records = SharedClient().ReadSettled(topic).value();
  for (const Record& record : records) {
    absl::string_view place = *record.key;
    EXPECT_TRUE(absl::ConsumePrefix(&place, prefix)) << *record.key;
    EXPECT_THAT(std::string(place), StartsWith(absl::StrCat(record.partition, "/"))) << *record.key;
    const simdjson::dom::element value = parser.parse(*record.value).value();
    EXPECT_EQ(std::string(value["mode"].get_string().value()), "total");
    const int64_t offset = value["offset"].get_int64().value();
    EXPECT_GT(offset, offsets[std::string(place)]) << *record.key;
    offsets[std::string(place)] = offset;
    totals[std::string(place)] = value["total"].get_int64().value();
  }
  return totals;
}

TEST(CountersTest, Rules16And17TotalsAreExactThroughKills) {
  RetryingClients clients(TestSeed());
  Flow flow(Options(3));
  const std::string totals = UniqueName("totals");
  const Args args = CountOrders(totals);
  for (int round = 0; round < 5; ++round) {
    const auto daemon = flow.Start(args);
    ASSERT_TRUE(SendUntil(flow, clients, [&] { return daemon->Metric("lethe_deltas_total") > 0; }));
    EXPECT_GT(daemon->Metric("lethe_counted_keys"), 0);
    flow.Send(clients.Take(2000));
  }  // killed
  ASSERT_TRUE(EndsWell(flow.RunToEnd(args)));
  EXPECT_TRUE(flow.ExactlyOnce());
  const Totals expected = CountedOutput(flow, "country", "amount");
  EXPECT_TRUE(expected.contains("0/is") && expected.contains("2/is"));
  EXPECT_TRUE(SameTotals(expected, LastTotals(totals, flow, "revenue")));
}

TEST(CountersTest, TotalsMoveWithTheirPartitions) {
  for (const char* assignment : {"--assignment=eager", "--assignment=cooperative"}) {
    RetryingClients clients(TestSeed());
    Flow flow(Options(4));
    const std::string totals = UniqueName("totals");
    Args args = CountOrders(totals);
    args.emplace_back(assignment);
    const auto with = [&](const char* instance) {
      Args all = args;
      all.emplace_back(instance);
      return all;
    };
    const auto first = flow.Start(with("--instance=1"));
    ASSERT_TRUE(SendUntil(flow, clients, [&] { return first->Metric("lethe_deltas_total") > 0; }));
    for (int round = 0; round < 3; ++round) {
      const auto second = flow.Start(with("--instance=2"));
      ASSERT_TRUE(SendUntil(flow, clients, [&] { return second->Metric("lethe_deltas_total") > 100; }))
          << second->Log();
      if (round == 1) continue;  // killed
      EXPECT_TRUE(second->Stop());
    }
    EXPECT_TRUE(first->Stop());
    ASSERT_TRUE(EndsWell(flow.RunToEnd(with("--instance=1"))));
    EXPECT_TRUE(flow.ExactlyOnce());
    EXPECT_TRUE(SameTotals(CountedOutput(flow, "country", "amount"), LastTotals(totals, flow, "revenue")));
  }
}

TEST(CountersTest, AnOverflowStopsThatUpdateAndNoOther) {
  Flow flow(Options());
  const std::string totals = UniqueName("totals"), diverted = NewTopic("diverted", 1);
  const Args args = {absl::StrCat("--counter=name=n,mode=total,key=json:/key,delta=json:/n,output=", totals),
                     "--on-uncountable=divert", "--divert=" + diverted};
  const auto send = [&](const std::string& id, const std::string& key, const std::string& n) {
    flow.Send({WithValue(id, absl::StrCat(R"("key":")", key, R"(","n":)", n))});
  };
  send("1", "a", "9223372036854775800");
  ASSERT_TRUE(EndsWell(flow.RunToEnd(args)));
  send("2", "a", "8");
  send("3", "b", "-9223372036854775808");
  send("4", "b", "-1");
  send("5", "a", "7");
  const auto daemon = flow.Start(args);
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") >= 4; }));
  EXPECT_EQ(daemon->Metric("lethe_overflowed_deltas_total"), 2);
  EXPECT_EQ(daemon->Metric("lethe_counted_keys"), 2);
  EXPECT_TRUE(daemon->AwaitLog(
      absl::StrCat(flow.input(),
                   "-0 offset 1: written, and not counted: counter n: with 8 more, its key's total leaves")));
  EXPECT_TRUE(daemon->Stop());
  EXPECT_TRUE(flow.ExactlyOnce());
  EXPECT_TRUE(SameTotals({{"0/a", INT64_MAX}, {"0/b", INT64_MIN}}, LastTotals(totals, flow, "n")));
  const std::vector<Record> copies = SharedClient().ReadSettled(diverted).value();
  ASSERT_EQ(copies.size(), 2u);
  EXPECT_EQ(Header(copies[0], "lethe.verdict"), "uncountable");
  EXPECT_EQ(Header(copies[0], "lethe.offset"), "1");
  EXPECT_EQ(Header(copies[1], "lethe.offset"), "3");
}

// What would be read again is in the totals already.
TEST(CountersTest, TotalsAheadOfTheGroupAreRefusedWithTheRemedy) {
  Flow flow(Options(2));
  const std::string totals = UniqueName("totals");
  const Args args = CountOrders(totals);
  const auto order = [&](int i, int32_t partition) {
    return WithValue(absl::StrCat(i), R"("country":"is","amount":1)", partition);
  };
  std::vector<Record> records;
  for (int i = 0; i < 100; ++i) records.push_back(order(i, i % 2));
  flow.Send(records);
  ASSERT_TRUE(EndsWell(flow.RunToEnd(args)));
  const std::vector<CommittedOffset> committed = flow.Committed();
  flow.ResetGroup({{20, ""}, committed[1]});
  flow.Send({order(1000, 1)});
  const auto daemon = flow.Start(args);
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_partition_failed") == 1; }));
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") == 1; }));
  const std::string why = daemon->Get("/readyz").body;
  EXPECT_THAT(why, HasSubstr(absl::StrCat("before offset ", committed[0].offset, " of ", flow.input(),
                                          "-0, and the group is at 20")));
  EXPECT_TRUE(daemon->Stop());
  EXPECT_TRUE(SameTotals({{"0/is", 50}, {"1/is", 51}}, LastTotals(totals, flow, "revenue")));
}

// The topic is made again at the start, and the totals would begin at 0.
TEST(CountersTest, TotalsThatWereDeletedMeanwhileStopTheirPartitions) {
  Flow flow(Options(2));
  const std::string totals = UniqueName("totals");
  const Args args = CountOrders(totals);
  std::vector<Record> records;
  for (int i = 0; i < 100; ++i) {
    records.push_back(WithValue(absl::StrCat(i), R"("country":"is","amount":1)", 1));
  }
  flow.Send(records);
  ASSERT_TRUE(EndsWell(flow.RunToEnd(args)));
  ASSERT_OK(SharedClient().DeleteTopic(totals));
  const auto says = [&](const Finished& finished) {
    EXPECT_NE(finished.exit_code, 0);
    return absl::StrContains(absl::StrCat(finished.out, finished.err),
                             absl::StrCat("counter revenue had 1 total in ", totals, "-1"));
  };
  const Finished checked = flow.RunCommand("check", args);
  EXPECT_TRUE(says(checked)) << checked.out;
  flow.Send({WithValue("more", R"("country":"is","amount":1)", 1)});
  const Finished refused = flow.RunToEnd(args);
  EXPECT_TRUE(says(refused)) << refused.err;
  EXPECT_TRUE(says(flow.RunCommand("check", args))) << "the topic is there, and empty";
  EXPECT_TRUE(SameTotals({}, LastTotals(totals, flow, "revenue")));
  const std::string others = UniqueName("totals");
  ASSERT_TRUE(EndsWell(flow.RunToEnd(CountOrders(others))));
  EXPECT_TRUE(SameTotals({{"1/is", 1}}, LastTotals(others, flow, "revenue")));

  // A counter that is renamed leaves its totals.
  const Args renamed = {absl::StrReplaceAll(CountOrders(others).front(), {{"revenue", "income"}})};
  const std::string left = absl::StrCat("counter topic ", others, " also has totals of counter revenue of ");
  const Finished warned = flow.RunCommand("check", renamed);
  EXPECT_EQ(warned.exit_code, 1) << warned.out;
  EXPECT_THAT(warned.out, HasSubstr(left));
  const Finished run = flow.RunToEnd(renamed);
  EXPECT_TRUE(EndsWell(run));
  EXPECT_THAT(run.err, HasSubstr(left));
}

TEST(CountersTest, ATopicThatDoesNotFitTotalsIsRefusedWithTheRemedy) {
  Flow flow(Options(3));
  const std::string deltas = NewTopic("deltas", 3),
                    narrow = NewTopic("narrow", 2, {{"cleanup.policy", "compact"}}),
                    foreign = NewTopic("foreign", 3, {{"cleanup.policy", "compact"}});
  const auto totals = [](const std::string& topic) { return CountOrders(topic); };
  EXPECT_TRUE(IsRefused(flow.RunToEnd(totals(deltas)), "belongs to another mode"));
  EXPECT_TRUE(
      IsRefused(flow.RunToEnd(totals(narrow)), absl::StrCat("--alter --topic ", narrow, " --partitions 3")));
  Record record;
  record.key = "is";
  record.value = "5";
  record.partition = 1;
  ASSERT_OK(SharedClient().Produce(foreign, {{record}}));
  EXPECT_TRUE(IsRefused(flow.RunToEnd(totals(foreign)),
                        absl::StrCat(foreign, "-1 offset 0: not a total: its key is not COUNTER")));
  // And the other way round.
  const std::string made = UniqueName("totals");
  ASSERT_TRUE(EndsWell(flow.RunToEnd(totals(made))));
  EXPECT_TRUE(
      IsRefused(flow.RunToEnd({absl::StrCat("--counter=name=revenue,key=json:/country,output=", made)}),
                "use a topic with cleanup.policy=delete"));
}

Finished Counters(const std::string& topic, const Args& args) {
  ProcessOptions options;
  options.args = {LETHE_PROGRAM, "counters", "--brokers", SharedBroker().bootstrap(), "--topic", topic};
  options.args.insert(options.args.end(), args.begin(), args.end());
  const absl::StatusOr<Finished> finished = RunToEnd(options, absl::Minutes(1));
  EXPECT_OK(finished);
  return finished.value_or(Finished{-1, "", ""});
}

// Both topics say the same, in every format.
TEST(CountersTest, TheCommandPrintsTheTotalsOfBothModes) {
  Flow flow(Options(3));
  const std::string deltas = NewTopic("deltas", 2), totals = UniqueName("totals");
  std::vector<Record> records;
  for (int i = 0; i < 60; ++i) {
    const std::string key = i % 2 == 0 ? "a" : i % 3 == 0 ? "b,\\n" : "c\\u00e9";
    records.push_back(WithValue(absl::StrCat(i), absl::StrCat(R"("key":")", key, R"(","n":)", i), i % 3));
    records.push_back(records.back());
  }
  flow.Send(records);
  for (int half = 0; half < 2; ++half) {
    if (half == 1) flow.Send({WithValue("last", R"("key":"a","n":1)", 2)});
    ASSERT_TRUE(EndsWell(flow.RunToEnd(
        {absl::StrCat("--counter=name=d,key=json:/key,delta=json:/n,output=", deltas),
         absl::StrCat("--counter=name=t,mode=total,key=json:/key,delta=json:/n,output=", totals)})));
  }
  for (const std::string& topic : {deltas, totals}) {
    EXPECT_EQ(Counters(topic, {}).out, "871  a\n600  c\u00e9\n300  b,\\n\n");
    EXPECT_EQ(Counters(topic, {"--top=1"}).out, "871  a\n");
    EXPECT_EQ(Counters(topic, {"--format=csv"}).out, "key,total\na,871\nc\u00e9,600\n\"b,\\n\",300\n");
    EXPECT_EQ(Counters(topic, {"--format=json", "--top=2"}).out,
              "{\"key\":\"a\",\"total\":871}\n{\"key\":\"c\u00e9\",\"total\":600}\n");
  }
}

// What other programs have to print of it: KEY=TOTAL lines, sorted.
struct CountedStream {
  std::string deltas;
  std::string totals;
  std::string lines;
};

CountedStream CountThroughKills(Flow& flow) {
  RetryingClients clients(TestSeed());
  CountedStream counted{NewTopic("deltas", 4), UniqueName("totals"), ""};
  Args args = CountOrders(counted.totals);
  args.push_back(
      absl::StrCat("--counter=name=d,key=json:/country,delta=json:/amount,output=", counted.deltas));
  for (int round = 0; round < 2; ++round) {
    const auto daemon = flow.Start(args);
    EXPECT_TRUE(SendUntil(flow, clients, [&] { return daemon->Metric("lethe_deltas_total") > 0; }));
    flow.Send(clients.Take(2000));
  }  // killed
  EXPECT_TRUE(EndsWell(flow.RunToEnd(args)));
  for (const auto& [country, total] : CountedKeys(flow, "country", "amount")) {
    absl::StrAppend(&counted.lines, country, "=", total, "\n");
  }
  return counted;
}

// Not by librdkafka of lethe's making, nor by a reader of its own.
TEST(CountersTest, AProgramInPythonGetsTheTotalsOfBothModesThroughKills) {
  Flow flow(Options(3));
  const CountedStream counted = CountThroughKills(flow);
  for (const std::string& topic : {counted.deltas, counted.totals}) {
    ProcessOptions options;
    options.args = {"/usr/bin/python3", LETHE_SOURCE_DIR "/tests/support/add_up_counter.py",
                    SharedBroker().bootstrap(), topic};
    const absl::StatusOr<Finished> finished = RunToEnd(options, absl::Minutes(1));
    ASSERT_OK(finished);
    EXPECT_EQ(finished->exit_code, 0) << finished->err << "\n(Debian's package python3-confluent-kafka)";
    EXPECT_EQ(finished->out, counted.lines);
  }
}

// With groupByKey and no repartitioning: all deltas of a key are in one partition.
TEST(CountersTest, AKafkaStreamsTopologyGetsTheTotalsOfDeltasThroughKills) {
  Flow flow(Options(3));
  const CountedStream counted = CountThroughKills(flow);
  std::string folder = (std::filesystem::temp_directory_path() / "lethe-streams-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  ProcessOptions options;
  options.args = {"java",
                  "-XX:TieredStopAtLevel=1",
                  "-XX:+UseSerialGC",
                  "-Djava.io.tmpdir=" + folder,
                  "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
                  "-cp",
                  LETHE_KAFKA_LIBS "/*",
                  LETHE_SOURCE_DIR "/tests/support/SumDeltas.java",
                  SharedBroker().bootstrap(),
                  counted.deltas,
                  folder};
  const absl::StatusOr<Finished> finished = RunToEnd(options, absl::Minutes(2));
  std::filesystem::remove_all(folder);
  ASSERT_OK(finished);
  EXPECT_EQ(finished->exit_code, 0) << finished->err << "\n(Debian's package default-jdk-headless)";
  EXPECT_EQ(finished->out, counted.lines);
}

TEST(CountersTest, TheCommandFollows) {
  Flow flow(Options());
  const std::string totals = UniqueName("totals");
  flow.Send({WithValue("1", R"("key":"a")"), WithValue("2", R"("key":"b")")});
  const auto daemon = flow.Start({absl::StrCat("--counter=name=t,mode=total,key=json:/key,output=", totals)});
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_deltas_total") >= 2; }));
  ProcessOptions options;
  options.args = {LETHE_PROGRAM, "counters", "--brokers",    SharedBroker().bootstrap(),
                  "--topic",     totals,     "--format=csv", "--follow"};
  const auto following = Process::Start(options);
  ASSERT_OK(following);
  EXPECT_TRUE(daemon->Await([&] { return (*following)->Stdout() == "key,total\na,1\nb,1\n"; }));
  flow.Send({WithValue("2", R"("key":"b")"), WithValue("3", R"("key":"b")")});
  EXPECT_TRUE(daemon->Await([&] { return (*following)->Stdout() == "key,total\na,1\nb,1\nb,2\n"; }))
      << (*following)->Stdout();
  ASSERT_OK((*following)->Signal(SIGTERM));
  EXPECT_EQ((*following)->Wait(absl::Seconds(10)).value_or(-1), 0);
  EXPECT_TRUE(daemon->Stop());
}

TEST(CountersTest, TheCommandRejectsATopicWithoutCounters) {
  const std::string topic = NewTopic("foreign", 1);
  std::vector<Record> records(3);
  for (Record& record : records) record.key = "k";
  records[0].value = "5";
  records[1].value = "five";
  records[2].value = "-7";
  ASSERT_OK(SharedClient().Produce(topic, records));
  const Finished finished = Counters(topic, {});
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_EQ(finished.out, "-2  k\n");
  EXPECT_THAT(finished.err, HasSubstr(absl::StrCat("1 records of ", topic)));
  EXPECT_THAT(finished.err, HasSubstr(absl::StrCat(topic, "-0 offset 1: its value is not a whole number")));
}

// A broker learns of a topic some moments after the controller has made it.
TEST(CountersTest, ATopicOfTotalsThatNoBrokerKnowsYetIsAskedForAgain) {
  DaemonOptions options;
  options.process.brokers = SharedBroker().bootstrap();
  options.input = NewTopic("counted", 1);
  options.process.group = options.input;
  CounterOptions& counter = options.counters.emplace_back();
  counter.name = "likes";
  counter.mode = CounterMode::kTotal;
  counter.output = UniqueName("new");
  const auto restore = [&] {
    return kafka::ReadTotals(
        options, counter.output, {0}, [](const InputRecord&) {}, [] { return true; });
  };
  const absl::Status unknown = restore();
  EXPECT_TRUE(absl::IsUnavailable(unknown)) << unknown;
  ASSERT_OK(SharedClient().CreateTopic(counter.output, 1));
  const absl::Status restored = restore();
  EXPECT_OK(restored);
}

}  // namespace
}  // namespace lethe::test
