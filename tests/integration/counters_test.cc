// What unique events count: where the deltas go, and what becomes of what cannot be counted.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/integration/rules.h"
#include "tests/support/flow.h"
#include "tests/support/oracle.h"
#include "tests/support/shared_broker.h"

namespace lethe::test {
namespace {

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
  EXPECT_TRUE(SharedClient().CreateTopic(topic, partitions, configs).ok());
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
    {R"("key":"a","n":9223372036854775808)", "json:/n is beyond 64 bits"},
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
  EXPECT_EQ(daemon->Metric("lethe_malformed_deltas_total"), 8);
  EXPECT_EQ(daemon->Metric("lethe_deltas_total"), 14);
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
    EXPECT_TRUE(absl::StartsWith(Header(copies[i], "lethe.reason"), absl::StrCat("counter c: ", reason)))
        << Header(copies[i], "lethe.reason");
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

}  // namespace
}  // namespace lethe::test
