// `lethe reconcile` between two clusters whose events are known: what it says is missing, what it copies, and
// what happens when either side dies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "connectors/kafka/topics/topic_reader.h"
#include "connectors/kafka/topics/topic_writer.h"
#include "src/pipeline/clock/steady_time.h"
#include "tests/support/flow.h"
#include "tests/support/kafka_broker.h"
#include "tests/support/kafka_client.h"
#include "tests/support/process.h"
#include "tests/support/seed.h"
#include "tests/support/shared_broker.h"
#include "tests/support/status_matchers.h"
#include "tests/support/tcp_proxy.h"

namespace lethe::test {
namespace {

using testing::HasSubstr;

using Json = simdjson::dom::element;

constexpr int kPartitions = 3;

// A cluster, and the topic of this test in it.
struct Site {
  std::string bootstrap;
  KafkaClient& client;
};

class ReconcileTopicsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto broker = KafkaBroker::Start();
    ASSERT_OK(broker);
    broker_ = *std::move(broker);
    auto client = KafkaClient::Connect(broker_->bootstrap());
    ASSERT_OK(client);
    client_ = *std::move(client);
  }
  static void TearDownTestSuite() {
    client_.reset();
    broker_.reset();
  }

  void SetUp() override { MakeTopics(); }
  void MakeTopics(int here = kPartitions, int there = kPartitions,
                  const KafkaClient::Configs& configs_there = {}) {
    topic_ = UniqueName("reconcile");
    ASSERT_OK(here_.client.CreateTopic(topic_, here));
    ASSERT_OK(there_.client.CreateTopic(topic_, there, configs_there));
  }

  // An event with all that a record may have.
  Record Event(const std::string& id, absl::Time time) const {
    Record record;
    record.key = absl::StrCat("customer-", id.substr(id.size() - 1));
    record.value = absl::StrCat(R"({"order":{"id":")", id, R"("}})");
    record.headers = {{"trace", absl::StrCat("t-", id)}, {"empty", ""}, {"null", std::nullopt}};
    record.timestamp_ms = absl::ToUnixMillis(time);
    return record;
  }
  // `count` events, evenly from an hour to ten minutes ago.
  std::vector<Record> Events(const std::string& name, int count) const {
    std::vector<Record> events;
    for (int i = 0; i < count; ++i) {
      events.push_back(Event(absl::StrCat(name, i), now_ - absl::Hours(1) + absl::Minutes(50) * i / count));
    }
    return events;
  }
  void Send(const Site& site, const std::vector<Record>& records) {
    const absl::Status sent = site.client.Produce(topic_, records);
    ASSERT_OK(sent);
  }

  std::string ServeCommand(const Args& more = {}, const std::string& id = "json:/order/id") const {
    std::string command = absl::StrCat(LETHE_PROGRAM, " reconcile --serve --copy both --brokers ",
                                       there_.bootstrap, " --topic ", topic_, " --id ", id);
    for (const std::string& arg : more) absl::StrAppend(&command, " ", arg);
    return command;
  }
  Finished RunWith(const std::string& peer, const Args& more) const {
    ProcessOptions options;
    options.args = {LETHE_PROGRAM, "reconcile", "--brokers",      here_.bootstrap, "--topic",
                    topic_,        "--id",      "json:/order/id", "--peer",        peer};
    options.args.insert(options.args.end(), more.begin(), more.end());
    const absl::StatusOr<Finished> finished = RunToEnd(options, absl::Minutes(2));
    EXPECT_OK(finished);
    return finished.ok() ? *finished : Finished{-1, "", ""};
  }
  Json Reconcile(int exit_code, Args more = {}, const Args& at_peer = {}) {
    more.insert(more.end(), {"--format", "json"});
    const Finished finished = RunWith(ServeCommand(at_peer), more);
    EXPECT_EQ(finished.exit_code, exit_code) << finished.err << finished.out;
    EXPECT_EQ(finished.err, "");
    json_ = finished.out;
    Json json;
    if (parser_.parse(json_).get(json) != simdjson::SUCCESS) throw std::runtime_error(finished.err);
    return json;
  }
  void ExpectError(const Finished& finished, const std::vector<std::string>& texts) {
    EXPECT_EQ(finished.exit_code, 2) << finished.err;
    EXPECT_EQ(finished.out, "");
    for (const std::string& text : texts) {
      EXPECT_THAT(finished.err, HasSubstr(text));
    }
  }

  static int64_t Figure(Json side, const char* name) { return side[name].get_int64().value(); }

  // One side's report against what the topic has and the list says is missing at the other.
  void ExpectTrue(Json side, const Site& site, const std::vector<Record>& missing) {
    EXPECT_EQ(Figure(side, "only"), static_cast<int64_t>(missing.size()));
    std::set<std::string> values;
    for (const Record& record : missing) values.insert(*record.value);
    std::vector<int64_t> by_partition(kPartitions);
    int64_t first = INT64_MAX, last = 0;
    std::set<std::pair<int64_t, int64_t>> places;
    const auto all = site.client.ReadAll(topic_, Isolation::kReadCommitted);
    ASSERT_OK(all);
    std::map<std::pair<int64_t, int64_t>, const Record*> by_place;
    for (const Record& record : *all) {
      by_place[{record.partition, record.offset}] = &record;
      if (!values.contains(*record.value)) continue;
      ++by_partition[static_cast<size_t>(record.partition)];
      first = std::min(first, record.timestamp_ms);
      last = std::max(last, record.timestamp_ms);
    }
    if (!missing.empty()) {
      EXPECT_EQ(Figure(side, "first_ms"), first);
      EXPECT_EQ(Figure(side, "last_ms"), last);
    }
    int64_t in_buckets = 0;
    for (Json count : side["by_time"]) in_buckets += count.get_int64().value();
    EXPECT_EQ(in_buckets, static_cast<int64_t>(missing.size()));
    size_t partition = 0;
    for (Json count : side["by_partition"]) EXPECT_EQ(count.get_int64().value(), by_partition[partition++]);
    size_t samples = 0;
    for (Json sample : side["samples"]) {
      ++samples;
      const auto record = by_place.find({Figure(sample, "partition"), Figure(sample, "offset")});
      ASSERT_NE(record, by_place.end());
      const std::string id(sample["id"].get_string().value());
      EXPECT_EQ(*record->second->value, absl::StrCat(R"({"order":{"id":")", id, R"("}})"));
      EXPECT_EQ(record->second->timestamp_ms, Figure(sample, "time_ms"));
      EXPECT_TRUE(values.contains(*record->second->value)) << id << " is not missing";
    }
    EXPECT_EQ(samples, std::min<size_t>(missing.size(), 5));
  }

  // How often each value is in the topic.
  std::map<std::string, int> Counts(const Site& site, bool is_settled = true) {
    const auto all =
        is_settled ? site.client.ReadSettled(topic_) : site.client.ReadAll(topic_, Isolation::kReadCommitted);
    EXPECT_OK(all);
    std::map<std::string, int> counts;
    for (const Record& record : *all) ++counts[*record.value];
    return counts;
  }
  void ExpectEachOnce(const std::map<std::string, int>& counts, size_t events) {
    EXPECT_EQ(counts.size(), events);
    for (const auto& [value, count] : counts) EXPECT_EQ(count, 1) << value;
  }

  static std::unique_ptr<KafkaBroker> broker_;
  static std::unique_ptr<KafkaClient> client_;
  const absl::Time now_ = absl::Now();
  const Site here_ = {SharedBroker().bootstrap(), SharedClient()};
  const Site there_ = {broker_->bootstrap(), *client_};
  std::string topic_;

 private:
  simdjson::dom::parser parser_;
  std::string json_;
};

std::unique_ptr<KafkaBroker> ReconcileTopicsTest::broker_;
std::unique_ptr<KafkaClient> ReconcileTopicsTest::client_;

class ReconcileTopicsOfSizeTest : public ReconcileTopicsTest, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Differences, ReconcileTopicsOfSizeTest, testing::Values(0, 1, 25'000));

// In one pass and in many, by each method.
TEST_P(ReconcileTopicsOfSizeTest, AgreesWithTheList) {
  constexpr int kEvents = 50'000;
  const int only_here = GetParam() - GetParam() / 2;
  const int only_there = GetParam() / 2;
  const std::vector<Record> both = Events("both", kEvents - GetParam());
  const std::vector<Record> here = Events("here", only_here);
  const std::vector<Record> there = Events("there", only_there);
  for (const Site* site : {&here_, &there_}) Send(*site, both);
  // A copy on one side is no difference.
  Send(here_, {both.begin(), both.begin() + 100});
  Send(here_, here);
  Send(there_, there);
  const int code = GetParam() == 0 ? 0 : 1;
  struct Case {
    Args here;
    Args there;
    bool has_many_passes;
  };
  for (const auto& [more, at_peer, has_many_passes] : {Case{{}, {}, false},
                                                       {{"--memory", "1MiB"}, {}, true},
                                                       {{}, {"--memory", "1MiB"}, true},
                                                       {{"--method", "table"}, {}, false},
                                                       {{"--method", "filter"}, {}, false}}) {
    const Json json = Reconcile(code, more, at_peer);
    EXPECT_EQ(json["equal"].get_bool().value(), GetParam() == 0);
    EXPECT_EQ(Figure(json["here"], "records"), kEvents - only_there + 100);
    EXPECT_EQ(Figure(json["here"], "ids"), kEvents - only_there);
    EXPECT_EQ(Figure(json["there"], "ids"), kEvents - only_here);
    EXPECT_EQ(Figure(json, "passes") > 1, has_many_passes);
    ExpectTrue(json["here"], here_, here);
    ExpectTrue(json["there"], there_, there);
    if (more == Args{"--method", "table"}) {
      EXPECT_EQ(Figure(json, "filter_rounds"), 0);
    }
    if (more == Args{"--method", "filter"}) {
      EXPECT_EQ(Figure(json, "table_rounds"), 0);
    }
    if (more.empty() && at_peer.empty()) {
      std::cout << GetParam() << " of " << kEvents << " differ: " << Figure(json, "bytes") << " bytes, "
                << json["seconds"].get_double().value() << " s\n";
    }
  }
}

TEST_F(ReconcileTopicsTest, TheReportIsForPeopleToo) {
  Send(here_, Events("event", 100));
  Send(there_, Events("event", 90));
  const Finished finished = RunWith(ServeCommand(), {});
  EXPECT_EQ(finished.exit_code, 1);
  for (const char* text : {"The two sides differ.", "ids missing on the other side", "By partition",
                           "Only here, for example", "event90", "lookup table"}) {
    EXPECT_THAT(finished.out, HasSubstr(text));
  }
  for (const absl::string_view line : absl::StrSplit(finished.out, '\n')) {
    // Without the bytes that continue a character of UTF-8.
    EXPECT_LE(std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; }), 80) << line;
  }
}

TEST_F(ReconcileTopicsTest, AnEmptySideLacksAll) {
  const std::vector<Record> events = Events("event", 2000);
  Send(there_, events);
  const Json json = Reconcile(1);
  EXPECT_EQ(Figure(json["here"], "ids"), 0);
  ExpectTrue(json["there"], there_, events);
}

// What is near an edge of the window on one side, and beyond it on the other, is not missing; nor is what
// came less than --settle ago.
TEST_F(ReconcileTopicsTest, RecordsInFlightAtTheEdgesAreNotMissing) {
  const absl::Time begin = now_ - absl::Minutes(40), end = now_ - absl::Minutes(20);
  Send(here_, {Event("near-begin", begin + absl::Seconds(1)), Event("near-end", end - absl::Seconds(1)),
               Event("just-before", begin - absl::Seconds(1)), Event("just-after", end + absl::Seconds(1)),
               Event("long-before", begin - absl::Minutes(5)), Event("lost", end - absl::Seconds(2))});
  Send(there_, {Event("near-begin", begin - absl::Seconds(50)), Event("near-end", end + absl::Seconds(50)),
                Event("too-late-to-be-the-same", end - absl::Seconds(1))});
  const auto rfc = [](absl::Time time) {
    return absl::FormatTime(absl::RFC3339_full, time, absl::UTCTimeZone());
  };
  Json json = Reconcile(1, {"--since", rfc(begin), "--until", rfc(end)});
  EXPECT_EQ(Figure(json["here"], "only"), 1);
  EXPECT_EQ(json["here"]["samples"].at(0)["id"].get_string().value(), "lost");
  EXPECT_EQ(Figure(json["here"], "unsettled"), 2);
  EXPECT_EQ(Figure(json["there"], "only"), 1);
  // Without a minute of grace, what was 50 s away is another matter.
  json = Reconcile(1, {"--since", rfc(begin), "--until", rfc(end), "--settle", "10s"});
  EXPECT_EQ(Figure(json["here"], "only"), 3);

  MakeTopics();
  Send(here_, {Event("a moment ago", now_ - absl::Seconds(1))});
  Send(there_, {Event("an hour ago", now_ - absl::Hours(1))});
  json = Reconcile(1, {"--settle", "5m"});
  EXPECT_EQ(Figure(json["here"], "only"), 0);
  EXPECT_EQ(Figure(json["here"], "unsettled"), 1);
  EXPECT_EQ(Figure(json["there"], "only"), 1);
  Send(here_, {Event("an hour ago", now_ - absl::Hours(1))});
  const Finished text = RunWith(ServeCommand(), {"--settle", "5m"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("so far; 1 id at an edge of the window is on one side only"));
}

// Nobody knows of a transaction that is open whether its records are there.
TEST_F(ReconcileTopicsTest, AnOpenTransactionIsWaitedFor) {
  const std::vector<Record> events = Events("event", 300);
  Send(here_, events);
  const auto producer = TransactionalProducer::Start(there_.bootstrap, UniqueName("mirror"));
  ASSERT_OK(producer);
  ASSERT_OK((*producer)->Begin());
  ASSERT_OK((*producer)->Produce(topic_, Events("aborted", 20)));
  ASSERT_OK((*producer)->Abort());
  ASSERT_OK((*producer)->Begin());
  ASSERT_OK((*producer)->Produce(topic_, events));
  ProcessOptions options;
  options.args = {LETHE_PROGRAM, "reconcile", "--brokers",      here_.bootstrap, "--topic",
                  topic_,        "--id",      "json:/order/id", "--peer",        ServeCommand()};
  const auto process = Process::Start(options);
  ASSERT_OK(process);
  // The peer's, which says so while it waits.
  ASSERT_TRUE(WaitUntil(
      [&] { return absl::StrContains((*process)->Stderr(), "a transaction is open since offset "); },
      absl::Seconds(30)));
  EXPECT_TRUE((*process)->Running());
  ASSERT_OK((*producer)->Commit());
  const absl::StatusOr<int> code = (*process)->Wait(absl::Minutes(1));
  EXPECT_THAT(code, IsOkAndHolds(0)) << (*process)->Stdout() << (*process)->Stderr();
}

TEST_F(ReconcileTopicsTest, WhatRetentionHasDeletedIsNotMissing) {
  std::vector<Record> events = Events("event", 3000);
  for (Record& record : events) record.partition = 1;
  Send(here_, events);
  Send(there_, events);
  Send(here_, {Event("lost", now_ - absl::Minutes(15))});
  ASSERT_OK(there_.client.DeleteRecords(topic_, 1, 1000));
  const Json json = Reconcile(1);
  EXPECT_EQ(Figure(json["here"], "only"), 1);
  EXPECT_EQ(Figure(json["there"], "only"), 0);
  const int64_t whole_since = events[1000].timestamp_ms;
  EXPECT_EQ(Figure(json, "begin_ms"), whole_since + 60'000);
  EXPECT_LT(Figure(json, "asked_begin_ms"), whole_since - 3'600'000);
  EXPECT_THAT(RunWith(ServeCommand(), {}).out, HasSubstr("retention"));

  // Of a window that is gone as a whole nothing can be said.
  const auto at = [&](size_t i) {
    return absl::FormatTime(absl::RFC3339_full, absl::FromUnixMillis(events[i].timestamp_ms),
                            absl::UTCTimeZone());
  };
  ExpectError(RunWith(ServeCommand(), {"--since", at(10), "--until", at(900)}),
              {"neither side has records in the window"});
}

// What is deleted in the middle of the reading leaves a hole between records that were read.
TEST_F(ReconcileTopicsTest, WhatRetentionDeletesDuringTheReadingIsNotMissing) {
  const auto proxy = TcpProxy::Start();
  ASSERT_OK(proxy);
  const absl::StatusOr<int> port = (*proxy)->Listen();
  ASSERT_OK(port);
  KafkaBrokerOptions broker_options;
  broker_options.proxied = {{"SLOW", *port}};
  const auto broker = KafkaBroker::Start(broker_options);
  ASSERT_OK(broker);
  (*proxy)->Forward(*port, (*broker)->port("SLOW"));
  const auto client = KafkaClient::Connect((*broker)->bootstrap());
  ASSERT_OK(client);
  ASSERT_OK((*client)->CreateTopic(topic_, kPartitions));

  constexpr size_t kEvents = 3000;
  constexpr size_t kDeleted = 2500;
  std::vector<Record> events = Events("event", kEvents);
  for (Record& record : events) record.partition = 1;
  Send(here_, events);
  Send(here_, {Event("lost", now_ - absl::Minutes(11))});
  // A fetch brings whole batches, so they are small.
  constexpr size_t kBatch = 100;
  for (size_t i = 0; i < kEvents; i += kBatch) {
    ASSERT_OK((*client)->Produce(topic_, absl::MakeSpan(events).subspan(i, kBatch)));
  }

  (*proxy)->SetBytesPerSecond(20'000);
  ProcessOptions options;
  options.args = {LETHE_PROGRAM,
                  "reconcile",
                  "--brokers",
                  here_.bootstrap,
                  "--topic",
                  topic_,
                  "--id",
                  "json:/order/id",
                  "--format",
                  "json",
                  "--timeout",
                  "60s",
                  "--peer",
                  absl::StrCat(LETHE_PROGRAM, " reconcile --serve --brokers 127.0.0.1:", *port, " --topic ",
                               topic_, " --id json:/order/id --kafka fetch.message.max.bytes=1000")};
  const auto process = Process::Start(options);
  ASSERT_OK(process);
  // Some of the records have been read, and most of them not.
  constexpr int64_t kSome = 100'000;
  ASSERT_TRUE(WaitUntil([&] { return (*proxy)->passed_bytes() >= kSome; }, absl::Minutes(1)));
  ASSERT_OK((*client)->DeleteRecords(topic_, 1, kDeleted));
  const int64_t passed = (*proxy)->passed_bytes();
  (*proxy)->SetBytesPerSecond(0);
  const absl::StatusOr<int> code = (*process)->Wait(absl::Minutes(1));
  EXPECT_THAT(code, IsOkAndHolds(1)) << (*process)->Stdout() << (*process)->Stderr();
  std::cout << passed << " bytes had been read when the records were deleted" << std::endl;

  simdjson::dom::parser parser;
  Json json;
  ASSERT_EQ(parser.parse((*process)->Stdout()).get(json), simdjson::SUCCESS) << (*process)->Stderr();
  EXPECT_EQ(Figure(json["here"], "only"), 1);
  EXPECT_EQ(Figure(json["there"], "only"), 0);
  EXPECT_EQ(Figure(json, "begin_ms"), events[kDeleted].timestamp_ms + 60'000);
}

TEST_F(ReconcileTopicsTest, RecordsWithoutAnIdAreCounted) {
  std::vector<Record> events = Events("event", 100);
  Send(there_, events);
  for (const char* broken : {"{", "{}", "null"}) {
    events.push_back(Event("x", now_ - absl::Minutes(30)));
    events.back().value = broken;
  }
  Send(here_, events);
  EXPECT_EQ(Figure(Reconcile(0)["here"], "without_id"), 3);
}

TEST_F(ReconcileTopicsTest, RefusesAPeerThatComparesSomethingElse) {
  const Finished finished = RunWith(ServeCommand({}, "json:/order/number"), {});
  ExpectError(finished, {"json:/order/number", "json:/order/id"});
}

TEST_F(ReconcileTopicsTest, ErrorsOfThePeerAreReportedHere) {
  const std::string there = absl::StrCat(LETHE_PROGRAM, " reconcile --serve --id json:/order/id --brokers ");
  ExpectError(RunWith(absl::StrCat(there, there_.bootstrap, " --topic nowhere"), {}),
              {"the peer has failed: topic nowhere does not exist"});
  ExpectError(RunWith(absl::StrCat(there, "127.0.0.1:1 --topic x"), {}),
              {"the peer has failed: no broker answers at 127.0.0.1:1"});
  ExpectError(RunWith("exit 3", {}), {"has ended with code 3"});
  ExpectError(RunWith("no-such-program-xyz", {}), {"has ended with code 127"});
  ExpectError(RunWith("echo Welcome to site b, last login yesterday; cat", {}), {"Welcome to site"});
  ExpectError(RunWith(absl::StrCat(ServeCommand(), " --last 1h"), {}),
              {"--serve does as the side with --peer"});
}

TEST_F(ReconcileTopicsTest, SaysThatATopicMayBeComparedWithItself) {
  const Finished finished =
      RunWith(absl::StrCat(LETHE_PROGRAM, " reconcile --serve --id json:/order/id --brokers ",
                           here_.bootstrap, " --topic ", topic_),
              {});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("the same cluster and topic"));
}

TEST_F(ReconcileTopicsTest, EndsInOrderWhenItIsAskedTo) {
  Send(here_, Events("event", 100));
  ProcessOptions options;
  options.args = {LETHE_PROGRAM, "reconcile", "--brokers",      here_.bootstrap, "--topic",
                  topic_,        "--id",      "json:/order/id", "--peer",        "exec sleep 30"};
  const auto process = Process::Start(options);
  ASSERT_OK(process);
  EXPECT_TRUE(absl::IsDeadlineExceeded((*process)->Wait(absl::Seconds(1)).status()));
  const absl::StatusOr<int> code = (*process)->Terminate(absl::Seconds(20));
  EXPECT_THAT(code, IsOkAndHolds(2));
  EXPECT_EQ((*process)->Stderr(), "lethe: interrupted\n");
}

TEST_F(ReconcileTopicsTest, APeerThatStallsIsLeft) {
  const absl::Time begin = SteadyNow();
  ExpectError(RunWith("exec sleep 30", {"--timeout", "2s"}), {"has sent nothing for 2s", "--timeout"});
  EXPECT_LT(SteadyNow() - begin, absl::Seconds(30));
  // In the middle: what it sends stops, and it does not end.
  Send(here_, Events("event", 1000));
  ExpectError(
      RunWith(absl::StrCat("(", ServeCommand(), "; sleep 30) | (stdbuf -o0 head -c 200; exec sleep 30)"),
              {"--timeout", "2s"}),
      {"has sent nothing for 2s"});
}

// The peer is killed when it has written so many bytes.
std::string KilledAfter(int64_t bytes, const std::string& serve) {
  const std::string pid = absl::StrCat(testing::TempDir(), UniqueName("pid"));
  return absl::StrCat("sh -c 'echo $$ > ", pid, "; exec ", serve, "' | (stdbuf -o0 head -c ", bytes,
                      "; kill -9 $(cat ", pid, "); rm ", pid, ")");
}

// This side is killed when the peer has taken so many bytes from it.
std::string KillerAfter(int64_t bytes, const std::string& serve) {
  return absl::StrCat("(stdbuf -o0 head -c ", bytes, "; kill -9 $PPID) | ", serve);
}

TEST_F(ReconcileTopicsTest, APeerThatIsKilledInAnyRoundIsAnError) {
  Send(here_, Events("both", 4000));
  Send(there_, Events("both", 4000));
  Send(here_, Events("here", 1500));
  Send(there_, Events("there", 1500));
  // About half of the bytes are the peer's.
  const int64_t bytes = Figure(Reconcile(1, {"--method", "filter"}), "bytes");
  for (int i = 0; i < 12; ++i) {
    const int64_t at = 20 + i * (bytes * 4 / 10) / 12;
    ExpectError(RunWith(KilledAfter(at, ServeCommand()), {"--method", "filter", "--timeout", "10s"}),
                {"the peer has gone"});
  }
}

TEST_F(ReconcileTopicsTest, CopiesMissingRecordsUnchanged) {
  const std::vector<Record> both = Events("both", 2000);
  std::vector<Record> here = Events("here", 40);
  const std::vector<Record> there = Events("there", 30);
  here[0].key.reset();
  here[1].headers.clear();
  for (const Site* site : {&here_, &there_}) Send(*site, both);
  Send(here_, here);
  Send(there_, there);
  Send(there_, there);  // twice: it is to come once
  EXPECT_EQ(Figure(Reconcile(1, {"--copy", "none"})["here"], "only"), 40);
  Json json = Reconcile(1, {"--copy", "to-peer"});
  EXPECT_EQ(Figure(json["here"], "copied"), 40);
  EXPECT_EQ(Figure(json["there"], "copied"), 0);
  json = Reconcile(0, {"--copy", "from-peer"});
  EXPECT_EQ(Figure(json["here"], "only"), 0);
  EXPECT_EQ(Figure(json["there"], "copied"), 30);
  EXPECT_EQ(Figure(Reconcile(0, {"--copy", "both"})["there"], "only"), 0);
  ExpectEachOnce(Counts(here_), 2070);

  // The same but for one header, in the same partition.
  std::map<std::string, Record> originals;
  const auto at_source = here_.client.ReadSettled(topic_);
  ASSERT_OK(at_source);
  for (const Record& record : *at_source) originals[*record.value] = record;
  int copies = 0;
  const auto at_target = there_.client.ReadSettled(topic_);
  ASSERT_OK(at_target);
  for (Record copy : *at_target) {
    if (copy.headers.empty() || copy.headers.back().first != "lethe.copied_from") continue;
    ++copies;
    const Record& original = originals.at(*copy.value);
    const std::vector<std::string> from = absl::StrSplit(*copy.headers.back().second, '/');
    ASSERT_EQ(from.size(), 4u);
    EXPECT_EQ(from[0].size(), 22u) << from[0];
    EXPECT_EQ(from[1], topic_);
    EXPECT_EQ(from[2], absl::StrCat(original.partition));
    EXPECT_EQ(from[3], absl::StrCat(original.offset));
    copy.headers.pop_back();
    EXPECT_EQ(copy.key, original.key);
    EXPECT_EQ(copy.headers, original.headers);
    EXPECT_EQ(copy.timestamp_ms, original.timestamp_ms);
    EXPECT_EQ(copy.partition, original.partition);
  }
  EXPECT_EQ(copies, 40);
}

TEST_F(ReconcileTopicsTest, CopiesIntoAnotherNumberOfPartitionsByKey) {
  MakeTopics(3, 5);
  Send(here_, Events("event", 500));
  Reconcile(0, {"--copy", "both"});
  ExpectEachOnce(Counts(there_), 500);
  std::map<std::string, std::set<int32_t>> partitions;
  const auto all = there_.client.ReadSettled(topic_);
  ASSERT_OK(all);
  for (const Record& record : *all) partitions[*record.key].insert(record.partition);
  EXPECT_EQ(partitions.size(), 10u);
  for (const auto& [key, of_key] : partitions) EXPECT_EQ(of_key.size(), 1u) << key;
}

// Each pass copies in a transaction of its own.
TEST_F(ReconcileTopicsTest, CopiesInSeveralPasses) {
  const std::vector<Record> events = Events("event", 60'000);
  Send(here_, {events.begin(), events.begin() + 40'000});
  Send(there_, {events.begin() + 20'000, events.end()});
  const Json json = Reconcile(0, {"--copy", "both", "--memory", "1MiB"});
  EXPECT_GT(Figure(json, "passes"), 3);
  EXPECT_EQ(Figure(json["here"], "copied"), 20'000);
  EXPECT_EQ(Figure(json["there"], "copied"), 20'000);
  for (const Site* site : {&here_, &there_}) ExpectEachOnce(Counts(*site), 60'000);
}

TEST_F(ReconcileTopicsTest, CopiesOnlyWhatTheServingSideAllows) {
  Send(here_, Events("here", 5));
  Send(there_, Events("there", 5));
  const auto allowing = [&](absl::string_view what) {
    return absl::StrReplaceAll(ServeCommand(), {{"--copy both", absl::StrCat("--copy ", what)}});
  };
  for (const auto& [allowed, asked] :
       {std::pair{"none", "to-peer"}, {"none", "from-peer"}, {"to-peer", "both"}, {"from-peer", "both"}}) {
    ExpectError(RunWith(allowing(allowed), {"--copy", asked}), {"--copy"});
  }
  EXPECT_EQ(RunWith(allowing("from-peer"), {"--copy", "to-peer"}).exit_code, 1);
  EXPECT_EQ(Counts(here_).size(), 5u);
  EXPECT_EQ(Counts(there_).size(), 10u);
}

TEST_F(ReconcileTopicsTest, DoesNotCopyWhereTimestampsAreNotKept) {
  MakeTopics(1, 1, {{"message.timestamp.type", "LogAppendTime"}});
  Send(here_, Events("event", 5));
  ExpectError(RunWith(ServeCommand(), {"--copy", "to-peer"}), {"LogAppendTime"});
  EXPECT_TRUE(Counts(there_).empty());
}

// A record that the other topic does not take stops the copy as a whole, and is named.
TEST_F(ReconcileTopicsTest, CopiesAllOrNothing) {
  MakeTopics(1, 1, {{"max.message.bytes", "2000"}});
  std::vector<Record> events = Events("event", 300);
  std::mt19937 random(7);
  std::string large = R"({"order":{"id":"large"},"x":")";
  while (large.size() < 6000) large += static_cast<char>('a' + random() % 26);
  events[150].value = large + "\"}";
  Send(here_, events);
  ExpectError(RunWith(ServeCommand(), {"--copy", "to-peer"}),
              {"the peer has failed", absl::StrCat("/", topic_, "/0/150"), "MSG_SIZE_TOO_LARGE"});
  EXPECT_TRUE(Counts(there_).empty());
}

// A copy that has looked before another one began would copy the same records again.
TEST_F(ReconcileTopicsTest, OneCopyFencesTheOneBefore) {
  const auto asks = kafka::TopicReader::Open({.brokers = there_.bootstrap, .topic = topic_});
  ASSERT_OK(asks);
  const auto go_on = [] { return true; };
  const auto open = [&] {
    return kafka::TopicWriter::Open({there_.bootstrap, topic_, {}}, (*asks)->client(), go_on);
  };
  const SurveyRecord record = {{"key", "value"}, {}, 0, 0, absl::ToUnixMillis(now_)};
  const auto first = open();
  ASSERT_OK(first);
  ASSERT_OK((*first)->Write(record, "here", go_on));
  const auto second = open();
  ASSERT_OK(second);
  const absl::Status fenced = (*first)->Commit(go_on);
  EXPECT_THAT(fenced, StatusIs(absl::StatusCode::kAborted));
  EXPECT_TRUE(Counts(there_).empty());
  ASSERT_OK((*second)->Write(record, "here", go_on));
  EXPECT_OK((*second)->Commit(go_on));
  ExpectEachOnce(Counts(there_), 1);
}

// The receiving side is killed when records of its transaction are in the topic: a run that copies nothing
// waits for that transaction, and the next copy ends it.
TEST_F(ReconcileTopicsTest, AKillWithinACopyLeavesATransactionThatTheNextCopyEnds) {
  constexpr int kEvents = 20'000;
  Send(here_, Events("event", kEvents));
  const std::string pid_file = absl::StrCat(testing::TempDir(), UniqueName("pid"));
  ProcessOptions options;
  options.args = {LETHE_PROGRAM, "reconcile", "--brokers",      here_.bootstrap, "--topic",
                  topic_,        "--id",      "json:/order/id", "--peer",        ServeCommand()};
  ProcessOptions copying = options;
  // It gets a part of the records, and never their end.
  copying.args.back() = absl::StrCat("sh -c 'echo $$ > ", pid_file,
                                     "-of-feeder; stdbuf -o0 head -c 1000000; cat > /dev/null; :' | "
                                     "sh -c 'echo $$ > ",
                                     pid_file, "; exec ", ServeCommand(), "'");
  copying.args.insert(copying.args.end(), {"--copy", "to-peer"});
  const auto copy = Process::Start(copying);
  ASSERT_OK(copy);
  const auto has_records = [&] {
    const auto ends = there_.client.EndOffsets(topic_, Isolation::kReadUncommitted);
    return ends.ok() && *std::max_element(ends->begin(), ends->end()) > 0;
  };
  ASSERT_TRUE(WaitUntil(has_records, absl::Seconds(30))) << (*copy)->Stderr();
  // Then the feeder, whose end alone would have the peer abort in order.
  for (const std::string& file : {pid_file, absl::StrCat(pid_file, "-of-feeder")}) {
    pid_t pid = 0;
    std::ifstream(file) >> pid;
    ASSERT_GT(pid, 0);
    ASSERT_EQ(kill(pid, SIGKILL), 0) << (*copy)->Stderr();
  }
  EXPECT_EQ((*copy)->Wait(absl::Seconds(30)).value_or(-1), 2) << (*copy)->Stderr();
  EXPECT_THAT((*copy)->Stderr(), HasSubstr("run it again"));

  const auto waits = Process::Start(options);
  ASSERT_OK(waits);
  ASSERT_TRUE(
      WaitUntil([&] { return absl::StrContains((*waits)->Stderr(), "a transaction is open since offset "); },
                absl::Seconds(20)));
  Reconcile(0, {"--copy", "to-peer"});
  ExpectEachOnce(Counts(there_), kEvents);
  EXPECT_NE((*waits)->Wait(absl::Seconds(30)).value_or(2), 2) << (*waits)->Stderr();
}

// Either side is killed at any point of a copy, again and again: what is missing is there once in the end,
// and never twice.
TEST_F(ReconcileTopicsTest, KillsInTheMiddleOfACopyDoubleNothing) {
  std::mt19937_64 random(TestSeed());
  size_t events = 1000;
  Send(here_, Events("both", 1000));
  Send(there_, Events("both", 1000));
  const Args copy = {"--copy", "both", "--timeout", "20s"};
  int killed = 0;
  int64_t bytes = 0;
  constexpr int kRounds = 16;
  for (int round = 0; round < kRounds; ++round) {
    Send(here_, Events(absl::StrCat("here", round, "-"), 150));
    Send(there_, Events(absl::StrCat("there", round, "-"), 150));
    events += 300;
    if (round == 0) {
      bytes = Figure(Reconcile(0, copy), "bytes");
      continue;
    }
    // Of the two kills in turn; more towards the end, where records go and transactions commit.
    const bool is_peer = round % 2 == 0;
    const int64_t share = bytes / 2;
    const auto at = static_cast<int64_t>(static_cast<double>(share) *
                                         std::sqrt(static_cast<double>(random() % 1000) / 1000));
    const std::string peer = is_peer ? KilledAfter(at, ServeCommand({"--timeout", "20s"}))
                                     : KillerAfter(at, ServeCommand({"--timeout", "20s"}));
    const Finished finished = RunWith(peer, copy);
    EXPECT_TRUE(finished.exit_code == 0 || finished.exit_code == (is_peer ? 2 : 137)) << finished.err;
    killed += finished.exit_code != 0;
    for (const Site* site : {&here_, &there_}) {
      for (const auto& [value, count] : Counts(*site, /*is_settled=*/false)) EXPECT_EQ(count, 1) << value;
    }
  }
  EXPECT_GT(killed, kRounds / 2);
  Reconcile(0, copy);
  for (const Site* site : {&here_, &there_}) ExpectEachOnce(Counts(*site), events);
}

}  // namespace
}  // namespace lethe::test
