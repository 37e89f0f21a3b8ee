#include "connectors/registry/schema_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "connectors/registry/patient_schemas.h"
#include "connectors/registry/schema_files.h"
#include "src/pipeline/clock/steady_time.h"
#include "src/record/record_reader.h"
#include "tests/support/encodings.h"
#include "tests/support/fake_registry.h"
#include "tests/support/reply_server.h"
#include "tests/support/status_matchers.h"

namespace lethe::registry {
namespace {

using testing::HasSubstr;
using testing::Not;

using State = SchemaLookup::State;
using test::FakeRegistry;
using test::ReplyServer;

constexpr absl::Duration kPatience = absl::Seconds(60);
// 404 is asked again for this long in these tests.
constexpr absl::Duration kMissing = absl::Milliseconds(300);

RegistryOptions Quick(std::vector<std::string> urls) {
  RegistryOptions options;
  options.urls = std::move(urls);
  options.patience = kMissing;
  options.expected_after = absl::Milliseconds(50);
  options.shows_waiting = absl::ZeroDuration();
  options.first_pause = absl::Milliseconds(5);
  options.longest_pause = absl::Milliseconds(20);
  return options;
}

bool WaitUntil(const std::function<bool()>& condition) {
  for (const absl::Time end = SteadyNow() + kPatience; SteadyNow() < end;) {
    if (condition()) return true;
    absl::SleepFor(absl::Milliseconds(1));
  }
  return false;
}

SchemaLookup Await(SchemaSource& source, const SchemaNeed& key) {
  SchemaLookup lookup;
  EXPECT_TRUE(WaitUntil([&] {
    lookup = source.Find(key);
    return lookup.state != State::kWaiting;
  }));
  return lookup;
}

// Still waits after so many requests, and says why.
std::string WaitsBecause(SchemaRegistry& source, const SchemaNeed& key, int64_t SchemaFigures::*result) {
  source.Find(key);
  EXPECT_TRUE(WaitUntil([&] { return source.figures().*result >= 3; }));
  const SchemaLookup lookup = source.Find(key);
  EXPECT_EQ(lookup.state, State::kWaiting) << lookup.why;
  EXPECT_EQ(source.figures().waiting, 1);
  return lookup.why;
}

std::string Reply(const std::string& body) {
  return absl::StrCat("HTTP/1.1 200 OK\r\nContent-Length: ", body.size(), "\r\n\r\n", body);
}

void ReadRequest(int connection) {
  std::string request;
  char byte = 0;
  while (!absl::EndsWith(request, "\r\n\r\n") && recv(connection, &byte, 1, 0) == 1) request.push_back(byte);
}

std::string UrlOf(const ReplyServer& server) { return absl::StrCat("http://127.0.0.1:", server.port()); }

std::string EmptyFolder() {
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  const auto folder = std::filesystem::path(testing::TempDir()) / absl::StrCat("lethe-", test->name());
  std::filesystem::remove_all(folder);
  return folder.string();
}

std::filesystem::path FileOf(const RegistryOptions& options, const std::string& name) {
  for (const auto& each : std::filesystem::recursive_directory_iterator(options.folder)) {
    if (each.path().filename() == name) return each.path();
  }
  return {};
}

TEST(SchemaRegistryTest, AsksOnceForASchema) {
  FakeRegistry registry;
  registry.PutAvro(7, R"(\"string\")");
  SchemaRegistry source(Quick({registry.url()}));
  const int64_t answers = source.answers();
  const SchemaLookup lookup = Await(source, 7);
  ASSERT_EQ(lookup.state, State::kKnown) << lookup.why;
  EXPECT_EQ(SchemaOf(lookup)->text, R"("string")");
  EXPECT_EQ(SchemaOf(lookup)->type, Schema::Type::kAvro);
  EXPECT_GT(source.answers(), answers);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(source.Find(7).plan, lookup.plan);
  EXPECT_EQ(registry.requests(), 1u);
  EXPECT_EQ(source.figures().known, 1);
  EXPECT_EQ(source.figures().waiting, 0);
  EXPECT_EQ(source.figures().answered, 1);
}

TEST(SchemaRegistryTest, KnowsTypesGuidsAndPaths) {
  FakeRegistry registry;
  registry.Put("/path/schemas/ids/1", {200, R"({"schemaType":"PROTOBUF","schema":"syntax = \"proto3\";"})"});
  registry.Put("/path/schemas/ids/2",
               {.status = 200, .body = R"({"schemaType":"JSON","schema":"{}"})", .chunked = true});
  registry.Put("/path/schemas/guids/00010203-0405-0607-0809-0a0b0c0d0e0f", {200, R"({"schema":"\"int\""})"});
  SchemaRegistry source(Quick(*ParseUrls(registry.url() + "/path/")));
  const SchemaLookup protobuf = Await(source, 1);
  ASSERT_EQ(protobuf.state, State::kKnown) << protobuf.why;
  EXPECT_EQ(SchemaOf(protobuf)->type, Schema::Type::kProtobuf);
  const SchemaLookup chunked = Await(source, 2);
  ASSERT_EQ(chunked.state, State::kKnown) << chunked.why;
  EXPECT_EQ(SchemaOf(chunked)->type, Schema::Type::kJson);
  const std::array<uint8_t, 16> guid = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const SchemaLookup by_guid = Await(source, SchemaKey(guid));
  ASSERT_EQ(by_guid.state, State::kKnown) << by_guid.why;
  EXPECT_EQ(SchemaOf(by_guid)->text, R"("int")");
}

TEST(SchemaRegistryTest, ResolvesReferencesInTheirOrder) {
  FakeRegistry registry;
  registry.Put("/schemas/ids/1", {200, R"({"schema":"C","references":[
      {"name":"A","subject":"a/x","version":1},{"name":"B","subject":"b","version":2}]})"});
  registry.Put("/subjects/a%2Fx/versions/1?deleted=true", {200, R"({"id":9,"schema":"A"})"});
  registry.Put("/subjects/b/versions/2?deleted=true",
               {200, R"({"schema":"B","references":[{"name":"A","subject":"a/x","version":1},
                         {"name":"D","subject":"d","version":1}]})"});
  registry.Put("/subjects/d/versions/1?deleted=true", {200, R"({"schema":"D"})"});
  SchemaRegistry source(Quick({registry.url()}));
  const SchemaLookup lookup = Await(source, 1);
  ASSERT_EQ(lookup.state, State::kKnown) << lookup.why;
  std::string order;
  for (const Schema::Reference& each : SchemaOf(lookup)->references)
    absl::StrAppend(&order, each.name, each.text);
  EXPECT_EQ(order, "AADDBB");
}

TEST(SchemaRegistryTest, ReferencesAreBounded) {
  FakeRegistry registry;
  // Each names the next one, and the hundredth the first.
  for (int i = 0; i < 100; ++i) {
    const std::string answer = absl::StrCat(R"({"schema":"x","references":[{"name":")", (i + 1) % 100,
                                            R"(","subject":"s)", (i + 1) % 100, R"(","version":1}]})");
    registry.Put(absl::StrCat("/subjects/s", i, "/versions/1?deleted=true"), {200, answer});
    if (i == 0) registry.Put("/schemas/ids/1", {200, answer});
  }
  SchemaRegistry source(Quick({registry.url()}));
  EXPECT_EQ(Await(source, 1).state, State::kUnknown);
  EXPECT_LT(registry.requests(), 50u);
}

TEST(SchemaRegistryTest, ASchemaThatTheRegistryLacksIsAskedForAgainAndThenUnknown) {
  FakeRegistry registry;
  SchemaRegistry source(Quick({registry.url()}));
  const absl::Time begin = SteadyNow();
  const SchemaLookup lookup = Await(source, 7);
  EXPECT_EQ(lookup.state, State::kUnknown);
  EXPECT_THAT(lookup.why, HasSubstr("schema id 7"));
  EXPECT_THAT(lookup.why, HasSubstr("404"));
  EXPECT_GE(SteadyNow() - begin, kMissing);
  EXPECT_GE(registry.requests(), 3u);
  EXPECT_EQ(source.figures().waiting, 0);
  const size_t requests = registry.requests();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(source.Find(7).state, State::kUnknown);
  EXPECT_EQ(registry.requests(), requests) << "it is remembered";
}

TEST(SchemaRegistryTest, AFollowerThatLagsBehindIsWaitedFor) {
  FakeRegistry registry;
  SchemaRegistry source(Quick({registry.url()}));
  source.Find(7);
  ASSERT_TRUE(WaitUntil([&] { return registry.requests() >= 2; }));
  EXPECT_EQ(source.Find(7).state, State::kWaiting);
  registry.PutAvro(7, R"(\"int\")");
  EXPECT_EQ(Await(source, 7).state, State::kKnown);
}

TEST(SchemaRegistryTest, AnUnknownSchemaIsForgottenAndFound) {
  FakeRegistry registry;
  RegistryOptions options = Quick({registry.url()});
  options.remembers_unknown = absl::Milliseconds(50);
  SchemaRegistry source(options);
  ASSERT_EQ(Await(source, 7).state, State::kUnknown);
  registry.PutAvro(7, R"(\"int\")");
  ASSERT_TRUE(WaitUntil([&] { return source.Find(7).state == State::kKnown; }));
}

// Each forged id takes half of the patience that is left.
TEST(SchemaRegistryTest, ForgedIdsShareOnePatience) {
  FakeRegistry registry;
  SchemaRegistry source(Quick({registry.url()}));
  const absl::Time begin = SteadyNow();
  ASSERT_EQ(Await(source, 1).state, State::kUnknown);
  const size_t first = registry.requests();
  constexpr int kForged = 300;
  for (int id = 2; id < 2 + kForged; ++id) ASSERT_EQ(Await(source, id).state, State::kUnknown);
  // With a patience of its own each would be asked for as often as the first. Patience comes back with time,
  // so some are asked for again, on a slow machine more.
  ASSERT_GT(first, 4u);
  EXPECT_LT(registry.requests() - first, 2u * kForged);
  EXPECT_GT(SteadyNow() - begin, absl::Milliseconds(2000))
      << "the registry is asked 100 times a second at most";
}

TEST(SchemaRegistryTest, AfterAForgedIdALateSchemaIsWaitedForToo) {
  FakeRegistry registry;
  SchemaRegistry source(Quick({registry.url()}));
  ASSERT_EQ(Await(source, 1).state, State::kUnknown);
  const size_t requests = registry.requests();
  source.Find(7);
  ASSERT_TRUE(WaitUntil([&] { return registry.requests() > requests; }));
  registry.PutAvro(7, R"(\"int\")");
  EXPECT_EQ(Await(source, 7).state, State::kKnown);
}

TEST(SchemaRegistryTest, ExpectedSchemasAreThereWhenTheyAreNeeded) {
  FakeRegistry registry;
  for (int id = 1; id <= 20; ++id) registry.PutAvro(id, R"(\"int\")");
  SchemaRegistry source(Quick({registry.url()}));
  for (int id = 1; id <= 20; ++id) source.Expect(id);
  EXPECT_EQ(source.figures().waiting, 0);
  ASSERT_TRUE(WaitUntil([&] { return source.figures().known == 20; }));
  for (int id = 1; id <= 20; ++id) EXPECT_EQ(source.Find(id).state, State::kKnown);
  EXPECT_EQ(registry.requests(), 20u);
}

// Where many are forged, those that are expected are asked for once, and a moment after they were seen.
TEST(SchemaRegistryTest, ExpectedForgedIdsAreDecidedByOneRequest) {
  FakeRegistry registry;
  SchemaRegistry source(Quick({registry.url()}));
  for (int id = 1; id <= 10; ++id)
    ASSERT_EQ(Await(source, id).state, State::kUnknown);  // no patience is left
  const size_t requests = registry.requests();
  constexpr int kForged = 50;
  for (int id = 100; id < 100 + kForged; ++id) source.Expect(id);
  absl::SleepFor(absl::Milliseconds(10));
  registry.PutAvro(149, R"(\"int\")");  // a little late
  ASSERT_TRUE(WaitUntil([&] { return registry.requests() == requests + kForged; }));
  ASSERT_TRUE(WaitUntil([&] { return source.figures().known == 1; }));
  EXPECT_EQ(source.figures().waiting, 0);
  for (int id = 100; id < 149; ++id) EXPECT_EQ(Await(source, id).state, State::kUnknown) << id;
  EXPECT_EQ(source.Find(149).state, State::kKnown);
  EXPECT_LT(registry.requests(), requests + kForged + 10);
}

// What is needed now does not wait behind what may be needed.
TEST(SchemaRegistryTest, ExpectedSchemasHoldNoOther) {
  FakeRegistry registry;
  registry.PutAvro(7, R"(\"int\")");
  SchemaRegistry source(Quick({registry.url()}));
  for (int id = 1000; id < 3000; ++id) source.Expect(id);
  EXPECT_EQ(Await(source, 7).state, State::kKnown);
  EXPECT_LT(registry.requests(), 1000u);
}

TEST(SchemaRegistryTest, ShowsShortWaitsForAWhile) {
  FakeRegistry registry;
  registry.PutAvro(7, R"(\"int\")");
  RegistryOptions options = Quick({registry.url()});
  options.shows_waiting = absl::Hours(1);
  SchemaRegistry source(options);
  ASSERT_EQ(Await(source, 7).state, State::kKnown);
  EXPECT_EQ(source.figures().waiting, 1);
}

TEST(SchemaRegistryTest, IsNeverUnknownWhileTheRegistryDoesNotAnswer) {
  FakeRegistry registry;
  SchemaRegistry source(Quick({registry.url()}));
  const auto all = [&](int status, const std::string& body) {
    registry.PutAll(std::make_shared<const FakeRegistry::Answer>(FakeRegistry::Answer{status, body}));
  };
  all(401, "who are you");
  EXPECT_THAT(WaitsBecause(source, 7, &SchemaFigures::refused), HasSubstr("401"));
  all(503, "");
  EXPECT_THAT(WaitsBecause(source, 7, &SchemaFigures::failed), HasSubstr("503"));
  all(404, "<html>no such page</html>");  // the path in the url is wrong
  ASSERT_TRUE(WaitUntil([&] { return absl::StrContains(source.Find(7).why, "404"); }));
  EXPECT_EQ(source.Find(7).state, State::kWaiting);
  all(200, "<html>a proxy</html>");
  ASSERT_TRUE(WaitUntil([&] { return absl::StrContains(source.Find(7).why, "not a schema"); }));
  EXPECT_EQ(source.Find(7).state, State::kWaiting);
  registry.PutAll(nullptr);
  registry.PutAvro(7, R"(\"int\")");
  EXPECT_EQ(Await(source, 7).state, State::kKnown);
}

TEST(SchemaRegistryTest, FollowsNoRedirect) {
  FakeRegistry other;
  other.PutAvro(7, R"(\"int\")");
  FakeRegistry registry;
  registry.Put("/schemas/ids/7", {302, "", {{"Location", other.url() + "/schemas/ids/7"}}});
  RegistryOptions options = Quick({registry.url()});
  options.user = "lethe";
  options.password = "secret";
  SchemaRegistry source(options);
  EXPECT_THAT(WaitsBecause(source, 7, &SchemaFigures::failed), HasSubstr("redirect"));
  EXPECT_EQ(other.requests(), 0u);
}

TEST(SchemaRegistryTest, SendsUserOrToken) {
  FakeRegistry registry;
  registry.PutAvro(7, R"(\"int\")");
  RegistryOptions options = Quick({registry.url()});
  options.user = "lethe";
  options.password = "secret";
  Await(*std::make_unique<SchemaRegistry>(options), 7);
  EXPECT_EQ(registry.authorization(), "Basic bGV0aGU6c2VjcmV0");
  options.user = options.password = "";
  options.token = "abc";
  Await(*std::make_unique<SchemaRegistry>(options), 7);
  EXPECT_EQ(registry.authorization(), "Bearer abc");
}

TEST(SchemaRegistryTest, AsksTheNextUrlWhereOneDoesNotAnswer) {
  FakeRegistry away;
  away.PutAll(std::make_shared<const FakeRegistry::Answer>(FakeRegistry::Answer{500, ""}));
  FakeRegistry registry;
  registry.PutAvro(7, R"(\"int\")");
  registry.PutAvro(8, R"(\"int\")");
  // Port 1 refuses connections.
  SchemaRegistry source(Quick({"http://127.0.0.1:1", away.url(), registry.url()}));
  EXPECT_EQ(Await(source, 7).state, State::kKnown);
  EXPECT_EQ(Await(source, 8).state, State::kKnown);
  EXPECT_EQ(away.requests(), 1u) << "the one that answered is asked first";
}

TEST(SchemaRegistryTest, ASlowRegistryTimesOutAndTheEndWaitsForNothing) {
  FakeRegistry registry;
  registry.Put("/schemas/ids/7", {.status = 200, .body = R"({"schema":"x"})", .after = absl::Seconds(1)});
  RegistryOptions options = Quick({registry.url()});
  options.timeout = absl::Milliseconds(50);
  {
    SchemaRegistry source(options);
    EXPECT_THAT(WaitsBecause(source, 7, &SchemaFigures::failed), HasSubstr("no answer within 50ms"));
  }
  options.timeout = absl::Hours(1);
  const ReplyServer silent([](int connection) { ReplyServer::ReadAll(connection); });
  options.urls = {UrlOf(silent)};
  const absl::Time begin = SteadyNow();
  {
    SchemaRegistry source(options);
    source.Find(7);
  }
  EXPECT_LT(SteadyNow() - begin, absl::Seconds(30));
}

TEST(SchemaRegistryTest, GarbageAndHalfAnswersAreNoAnswers) {
  for (const std::string& reply :
       {std::string("garbage"), std::string("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"schema"),
        std::string("HTTP/1.1 200 OK\r\n"), std::string(), Reply("[[[[[[[[[[[[[[[["),
        Reply(R"({"schema":7})"), Reply(R"({"schema":"x","references":[{"name":"a"}]})")}) {
    const ReplyServer server([&](int connection) {
      ReadRequest(connection);
      ReplyServer::Send(connection, reply);
    });
    SchemaRegistry source(Quick({UrlOf(server)}));
    EXPECT_NE(WaitsBecause(source, 7, &SchemaFigures::failed), "") << reply;
  }
}

TEST(SchemaRegistryTest, WhatIsTooLargeIsRefused) {
  FakeRegistry registry;
  registry.PutAvro(1, std::string((size_t{1} << 20) + 1, 'x'));
  registry.PutAvro(2, std::string(size_t{10} << 20, 'x'));
  registry.Put("/schemas/ids/3", {200, R"({"schema":"x","schemaType":"THRIFT"})"});
  SchemaRegistry source(Quick({registry.url()}));
  for (const int id : {1, 2, 3}) {
    const SchemaLookup lookup = Await(source, id);
    EXPECT_EQ(lookup.state, State::kUnknown) << id;
    EXPECT_THAT(lookup.why, HasSubstr(absl::StrCat("schema id ", id)));
  }
  EXPECT_EQ(registry.requests(), 3u);
}

TEST(SchemaRegistryTest, AnAnswerThatIsTooLongAndNoSchemaIsWaitedFor) {
  FakeRegistry registry;
  registry.Put("/schemas/ids/7", {200, "<html>" + std::string(size_t{5} << 20, 'x')});
  SchemaRegistry source(Quick({registry.url()}));
  const std::string why = WaitsBecause(source, 7, &SchemaFigures::failed);
  EXPECT_THAT(why, HasSubstr("larger than 4 MiB"));
  registry.PutAvro(7, R"(\"int\")");
  EXPECT_EQ(Await(source, 7).state, State::kKnown);
}

TEST(SchemaRegistryTest, AnAnswerWithoutAnEndIsWaitedFor) {
  const ReplyServer server([](int connection) {
    ReadRequest(connection);
    const std::string more(size_t{1} << 20, 'x');
    ReplyServer::Send(connection, "HTTP/1.1 200 OK\r\n\r\n{\"schema\":\"");
    while (ReplyServer::Send(connection, more)) {
    }
  });
  SchemaRegistry source(Quick({UrlOf(server)}));
  const std::string why = WaitsBecause(source, 7, &SchemaFigures::failed);
  EXPECT_THAT(why, HasSubstr("longer than 32 MiB"));
}

TEST(SchemaRegistryTest, OneBadSchemaDoesNotHoldTheOthers) {
  FakeRegistry registry;
  registry.Put("/schemas/ids/1", {500, ""});
  SchemaRegistry source(Quick({registry.url()}));
  source.Find(1);
  for (int id = 2; id < 10; ++id) {
    registry.PutAvro(id, R"(\"int\")");
    EXPECT_EQ(Await(source, id).state, State::kKnown);
  }
  EXPECT_EQ(source.Find(1).state, State::kWaiting);
}

TEST(SchemaRegistryTest, KeepsSchemasAcrossRestarts) {
  RegistryOptions options;
  {
    FakeRegistry registry;
    registry.Put("/schemas/ids/7",
                 {200, R"({"schema":"C\u00e9","references":[{"name":"A","subject":"a","version":1}]})"});
    registry.Put("/subjects/a/versions/1?deleted=true", {200, R"({"schema":"A"})"});
    options = Quick({registry.url()});
    options.folder = EmptyFolder();
    SchemaRegistry source(options);
    ASSERT_EQ(Await(source, 7).state, State::kKnown);
  }
  {
    SchemaRegistry source(options);
    const SchemaLookup lookup = Await(source, 7);
    ASSERT_EQ(lookup.state, State::kKnown);
    EXPECT_EQ(SchemaOf(lookup)->text, "C\u00e9");
    ASSERT_EQ(SchemaOf(lookup)->references.size(), 1u);
    EXPECT_EQ(SchemaOf(lookup)->references[0].text, "A");
    // Another waits for the registry, and does not keep this one from its file.
    source.Find(8);
    EXPECT_EQ(source.figures().answered, 0);
  }
  // Of another registry the same id is another schema.
  options.urls = {"http://127.0.0.1:1"};
  SchemaRegistry source(options);
  WaitsBecause(source, 7, &SchemaFigures::failed);
}

TEST(SchemaRegistryTest, ADamagedFileIsAskedForAgain) {
  FakeRegistry registry;
  registry.PutAvro(7, R"(\"int\")");
  RegistryOptions options = Quick({registry.url()});
  options.folder = EmptyFolder();
  ASSERT_EQ(Await(*std::make_unique<SchemaRegistry>(options), 7).state, State::kKnown);
  std::filesystem::path file;
  for (const auto& each : std::filesystem::recursive_directory_iterator(options.folder)) {
    if (each.is_regular_file()) file = each.path();
  }
  ASSERT_EQ(file.filename(), "7.schema");
  for (const std::string& damage : {std::string("x"), std::string(), std::string(100, '{')}) {
    std::ofstream(file, std::ios::binary) << damage;
    const size_t requests = registry.requests();
    EXPECT_EQ(Await(*std::make_unique<SchemaRegistry>(options), 7).state, State::kKnown);
    EXPECT_EQ(registry.requests(), requests + 1);
  }
}

// Schema 1 is the honest one. Of the others each fifth has large plans, is of another type (two), is broken,
// or has a large text and a small plan; some are twenty times as large.
std::string HostileAnswer(int id) {
  const std::string honest = R"({\"name\":\"id\",\"type\":\"string\"},{\"name\":\"n\",\"type\":\"long\"})";
  const size_t size = id % 1000 == 5 ? 400'000 : 20'000;
  const auto repeat = [&](const std::string& each) {
    std::string text;
    while (text.size() < size) text += each;
    return text;
  };
  const auto record = [&](const std::string& doc, const std::string& more) {
    return absl::StrCat(R"({"schema":"{\"type\":\"record\",\"name\":\"R\",\"doc\":\")", doc,
                        R"(\",\"fields\":[)", honest, more, R"(]}"})");
  };
  if (id == 1) return record("", "");
  switch (id % 5) {
    case 0:
      return record("", absl::StrCat(R"(,{\"name\":\"u\",\"type\":[\"null\")", repeat(R"(,\"R\")"), "]}"));
    case 1:
      return absl::StrCat(R"({"schemaType":"JSON","schema":"{\"title\":\")", repeat("x"), R"(\"}"})");
    case 2:
      return absl::StrCat(R"({"schemaType":"PROTOBUF","schema":"message M {} )", repeat("message A {} "),
                          R"("})");
    case 3:
      return absl::StrCat(R"({"schema":"[)", repeat("7,"), R"(7]"})");
    default:
      return record(repeat("doc "), "");
  }
}

int64_t ResidentBytes() {
  std::ifstream stream("/proc/self/statm");
  int64_t size = 0;
  int64_t resident = 0;
  stream >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

TEST(SchemaRegistryTest, TenThousandHostileSchemasTakeBoundedMemoryAndFiles) {
  constexpr int kHostile = 10'000;
  FakeRegistry registry;
  registry.Compute([](const std::string& path) {
    return FakeRegistry::Answer{200, HostileAnswer(std::stoi(path.substr(path.rfind('/') + 1)))};
  });
  RegistryOptions options = Quick({registry.url()});
  options.folder = EmptyFolder();
  SchemaRegistry source(options);
  RecordReader reader({.id = IdSpec::Parse("avro:/id").value(), .schemas = &source});
  // Reads a record as a partition does.
  const auto read = [&](int id) {
    using test::AvroString;
    using test::Zigzag;
    const std::string value =
        test::Framed(id, AvroString("a") + Zigzag(7) + (id != 1 && id % 5 == 0 ? Zigzag(0) : ""));
    RecordFields::State state = RecordFields::State::kWaiting;
    EXPECT_TRUE(WaitUntil([&] {
      const RecordFields& fields = reader.Read({.value = value});
      state = fields.id_state;
      if (!fields.waits_for) return true;
      const SchemaNeed need = *fields.waits_for;
      EXPECT_TRUE(WaitUntil([&] { return source.Peek(need).state != State::kWaiting; }));
      return false;
    }));
    return state;
  };
  const auto requests = [&](int id) {
    return absl::c_count(registry.paths(), absl::StrCat("/schemas/ids/", id));
  };
  EXPECT_EQ(read(1), RecordFields::State::kPresent);
  const int64_t before = ResidentBytes();
  int64_t most_memory = 0;
  int64_t most_files = 0;
  int64_t most_resident = 0;
  for (int id = 2; id <= kHostile; ++id) {
    const bool is_usable = id % 5 == 0 || id % 5 == 4;
    ASSERT_EQ(read(id), is_usable ? RecordFields::State::kPresent : RecordFields::State::kMalformed) << id;
    if (id % 10 == 0) {
      EXPECT_EQ(read(1), RecordFields::State::kPresent);
    }
    const SchemaFigures figures = source.figures();
    most_memory = std::max(most_memory, figures.memory_bytes);
    most_files = std::max(most_files, figures.folder_bytes);
    most_resident = std::max(most_resident, ResidentBytes());
  }
  EXPECT_LE(most_memory, int64_t{SchemaRegistry::kMostBytes});
  EXPECT_GT(most_memory, int64_t{SchemaRegistry::kMostBytes} / 2);
  EXPECT_LE(most_files, SchemaFiles::kMostBytes);
  EXPECT_GT(most_files, SchemaFiles::kMostBytes / 2);
  EXPECT_LE(most_resident - before, int64_t{64} << 20);
  RecordProperty("resident_mib", static_cast<int>((most_resident - before) >> 20));
  EXPECT_EQ(requests(1), 1) << "it is used all the time";

  int64_t on_disk = 0;
  for (const auto& each : std::filesystem::recursive_directory_iterator(options.folder)) {
    if (!each.is_regular_file()) continue;
    on_disk += static_cast<int64_t>(each.file_size());
    const int id = std::stoi(each.path().stem());
    EXPECT_TRUE(id == 1 || id % 5 == 0 || id % 5 == 4) << each.path() << " is of no use to this id";
  }
  EXPECT_LE(on_disk, SchemaFiles::kMostBytes);
  EXPECT_TRUE(std::filesystem::exists(FileOf(options, "1.schema"))) << "it is used all the time";

  // What was forgotten is fetched again.
  ASSERT_EQ(requests(10), 1);
  EXPECT_EQ(read(10), RecordFields::State::kPresent);
  EXPECT_EQ(requests(10), 2);
}

// A schema of about 480 KB, whose records name each message once.
class ManyMessages {
 public:
  static constexpr int kMessages = 10'000;

  explicit ManyMessages(FakeRegistry& registry) {
    std::string proto = R"(syntax = \"proto3\";)";
    for (int i = 0; i < kMessages; ++i)
      absl::StrAppend(&proto, "message Message", i, " { string id = 1; }\\n");
    registry.Put("/schemas/ids/7",
                 {200, absl::StrCat(R"({"schemaType":"PROTOBUF","schema":")", proto, R"("})")});
  }

  // How many of them have been read when the time is over.
  int Read(SchemaSource& source, absl::Duration time) {
    RecordReader reader({.id = IdSpec::Parse("protobuf:/id").value(), .schemas = &source});
    const absl::Time end = absl::Now() + time;
    for (int i = 0; i < kMessages; ++i) {
      const std::string value = test::Framed(7, test::Zigzag(1) + test::Zigzag(i) + test::BytesField(1, "a"));
      while (reader.Read({.value = value}).id_state != RecordFields::State::kPresent) {
        if (absl::Now() > end) return i;
        absl::SleepFor(absl::Microseconds(100));
      }
      if (absl::Now() > end) return i;
    }
    return kMessages;
  }
};

TEST(SchemaRegistryTest, TheMessagesOfOneSchemaAreCompiledTogether) {
  FakeRegistry registry;
  ManyMessages messages(registry);
  SchemaRegistry source(Quick({registry.url()}));
  EXPECT_EQ(messages.Read(source, kPatience), ManyMessages::kMessages);
  EXPECT_EQ(registry.requests(), 1u);
  EXPECT_LE(source.figures().memory_bytes, int64_t{SchemaRegistry::kMostBytes});
}

TEST(PatientSchemasTest, TheMessagesOfOneSchemaAreCompiledTogether) {
  FakeRegistry registry;
  ManyMessages messages(registry);
  PatientSchemas source(std::make_unique<SchemaRegistry>(Quick({registry.url()})), absl::Seconds(60),
                        nullptr);
  EXPECT_EQ(messages.Read(source, kPatience), ManyMessages::kMessages);
}

TEST(SchemaRegistryTest, TooManyFilesOfAnEarlierRunAreDeletedTheOldestFirst) {
  FakeRegistry registry;
  registry.PutAvro(7, R"(\"int\")");
  RegistryOptions options = Quick({registry.url()});
  options.folder = EmptyFolder();
  ASSERT_EQ(Await(*std::make_unique<SchemaRegistry>(options), 7).state, State::kKnown);
  const std::filesystem::path folder = FileOf(options, "7.schema").parent_path();
  const auto now = std::filesystem::file_time_type::clock::now();
  for (int id = 100; id < 200; ++id) {
    const std::filesystem::path file = folder / absl::StrCat(id, ".schema");
    std::ofstream(file) << "x";
    std::filesystem::resize_file(file, 1 << 20);
    std::filesystem::last_write_time(file, now - std::chrono::seconds(1000 - id));
  }
  SchemaRegistry source(options);
  EXPECT_LE(source.figures().folder_bytes, SchemaFiles::kMostBytes);
  EXPECT_FALSE(std::filesystem::exists(folder / "100.schema"));
  EXPECT_TRUE(std::filesystem::exists(folder / "199.schema"));
  EXPECT_TRUE(std::filesystem::exists(folder / "7.schema"));
}

TEST(SchemaRegistryTest, TrustsTheAuthoritiesOfTheFile) {
  const std::string folder = EmptyFolder();
  std::filesystem::create_directories(folder);
  const std::string certificate = folder + "/cert.pem";
  const std::string key = folder + "/key.pem";
  const std::string command = absl::StrCat(
      "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext "
      "subjectAltName=DNS:localhost -keyout ",
      key, " -out ", certificate, " 2> /dev/null");
  ASSERT_EQ(std::system(command.c_str()), 0);  // NOLINT(cert-env33-c)
  FakeRegistry registry(certificate, key);
  registry.PutAvro(7, R"(\"int\")");
  RegistryOptions options = Quick({registry.url()});
  {
    SchemaRegistry stranger(options);
    EXPECT_THAT(WaitsBecause(stranger, 7, &SchemaFigures::failed), HasSubstr("certificate"));
  }
  options.ca_file = certificate;
  SchemaRegistry source(options);
  const SchemaLookup lookup = Await(source, 7);
  EXPECT_EQ(lookup.state, State::kKnown) << lookup.why;
}

TEST(PatientSchemasTest, WaitsForAnAnswerAndNoLonger) {
  FakeRegistry registry;
  registry.Put("/schemas/ids/7",
               {.status = 200, .body = R"({"schema":"x"})", .after = absl::Milliseconds(50)});
  PatientSchemas patient(std::make_unique<SchemaRegistry>(Quick({registry.url()})), absl::Seconds(60),
                         [](const std::string& what) { ADD_FAILURE() << what; });
  EXPECT_EQ(patient.Find(7).state, State::kKnown);
  EXPECT_EQ(patient.Find(8).state, State::kUnknown);
  EXPECT_OK(patient.status());

  std::vector<std::string> said;
  PatientSchemas gives_up(std::make_unique<SchemaRegistry>(Quick({"http://127.0.0.1:1"})),
                          absl::Milliseconds(1200), [&](const std::string& what) { said.push_back(what); });
  const absl::Time begin = absl::Now();
  for (int i = 0; i < 1000; ++i) {
    const SchemaLookup lookup = gives_up.Find(7 + i % 2);
    EXPECT_EQ(lookup.state, State::kUnknown);
    EXPECT_EQ(lookup.why, gives_up.status().message()) << "one error for all";
  }
  EXPECT_LT(absl::Now() - begin, absl::Seconds(30));
  EXPECT_TRUE(absl::IsUnavailable(gives_up.status())) << gives_up.status();
  EXPECT_EQ(said.size(), 1u);
}

// Writers that forge ids must not hold a command: all ids share its patience, and each is requested once
// more.
TEST(PatientSchemasTest, ForgedIdsShareOnePatience) {
  FakeRegistry registry;
  registry.PutAvro(7, R"(\"int\")");
  RegistryOptions options;
  options.urls = {registry.url()};
  const auto patient = PatientSchemas::Open(options, nullptr);
  constexpr int kForged = 3000;
  const absl::Time begin = absl::Now();
  for (int pass = 0; pass < 2; ++pass) {
    for (int id = 1000; id < 1000 + kForged; ++id) {
      ASSERT_EQ(patient->Find(id).state, State::kUnknown);
      ASSERT_LT(absl::Now() - begin, absl::Seconds(30)) << "pass " << pass << ", id " << id;
    }
  }
  EXPECT_LT(registry.requests(), kForged + 100u);
  EXPECT_EQ(patient->Find(7).state, State::kKnown);
  EXPECT_OK(patient->status());
}

TEST(RegistryOptionsTest, ParsesUrls) {
  EXPECT_EQ(ParseUrls("https://a:8081/, http://b/apis/ccompat/v7").value(),
            (std::vector<std::string>{"https://a:8081", "http://b/apis/ccompat/v7"}));
  for (const char* wrong : {"", "a:8081", "ftp://a", "http://", "https://a,", "http://a/?x=1", "http://a/#x",
                            "http://user:secret@a", "http://a b"}) {
    const auto urls = ParseUrls(wrong);
    EXPECT_TRUE(absl::IsInvalidArgument(urls.status())) << wrong;
    EXPECT_THAT(urls.status().message(), Not(HasSubstr("secret")));
  }
}

}  // namespace
}  // namespace lethe::registry
