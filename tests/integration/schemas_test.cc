// Records whose schemas are in a registry: away, slow, refusing and back, while lethe runs and is killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "src/pipeline/clock/steady_time.h"
#include "tests/support/fake_registry.h"
#include "tests/support/flow.h"
#include "tests/support/seed.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {
namespace {

using testing::HasSubstr;

constexpr int kFrameBytes = 5;
const Args kById = {"--id=avro:/id"};

// {id: string} with so many fields before it, by which versions of the schema differ.
void PutVersion(FakeRegistry& registry, int schema, int before) {
  std::string fields;
  for (int i = 0; i < before; ++i)
    absl::StrAppend(&fields, R"({\"name\":\"x)", i, R"(\",\"type\":\"int\"},)");
  registry.PutAvro(schema, absl::StrCat(R"({\"type\":\"record\",\"name\":\"Event\",\"fields\":[)", fields,
                                        R"({\"name\":\"id\",\"type\":\"string\"}]})"));
}

// `id` has less than 64 bytes.
Record Event(const std::string& id, int schema, int before, int32_t partition = 0) {
  std::string value(1, '\0');
  for (int shift = 24; shift >= 0; shift -= 8) value.push_back(static_cast<char>(schema >> shift & 0xFF));
  value.append(static_cast<size_t>(before), '\x02');
  value.push_back(static_cast<char>(2 * id.size()));
  value += id;
  return {.key = id, .value = value, .headers = {}, .timestamp_ms = 0, .partition = partition};
}

// How often each key is in the output.
std::map<std::string, int> Passed(Flow& flow) {
  std::map<std::string, int> passed;
  for (const Record& record : flow.Output()) ++passed[record.key.value_or("")];
  return passed;
}

void Answer(FakeRegistry& registry, int status, absl::Duration after = absl::ZeroDuration()) {
  registry.PutAll(std::make_shared<const FakeRegistry::Answer>(
      FakeRegistry::Answer{.status = status, .body = "no", .after = after}));
}

TEST(SchemaRegistryDaemonTest, AnIdStaysThroughAnEvolution) {
  FakeRegistry registry;
  PutVersion(registry, 1, 0);
  PutVersion(registry, 2, 1);
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  flow.Send({{Event("a", 1, 0), Event("b", 1, 0), Event("a", 2, 1), Event("c", 2, 1)}});
  ASSERT_TRUE(EndsWell(flow.RunToEnd(kById + Args{"--schema-registry=" + registry.url()})));
  EXPECT_EQ(Passed(flow), (std::map<std::string, int>{{"a", 1}, {"b", 1}, {"c", 1}}));
  EXPECT_EQ(registry.requests(), 2u);
}

TEST(SchemaRegistryDaemonTest, AHeldPartitionIsNamedAndOthersGoOn) {
  FakeRegistry registry;
  PutVersion(registry, 1, 0);
  registry.Put("/schemas/ids/2", {.status = 503, .body = ""});
  Flow flow({LETHE_PROGRAM, 2, {}, {}});
  flow.Send({{Event("a", 1, 0, 0), Event("b", 2, 1, 0), Event("c", 1, 0, 1)}});
  const auto daemon = flow.Start(kById + Args{"--schema-registry=" + registry.url()});
  ASSERT_TRUE(daemon->Await([&] { return absl::StrContains(daemon->Get("/readyz").body, "schema id 2"); }));
  EXPECT_EQ(daemon->Get("/readyz").status, 503);
  EXPECT_THAT(daemon->Get("/readyz").body, HasSubstr("-0 is held at offset 1"));
  EXPECT_THAT(daemon->Get("/readyz").body, HasSubstr("503"));
  EXPECT_THAT(daemon->Get("/status").body, HasSubstr("\"held\""));
  flow.Send({{Event("d", 1, 0, 1)}});
  EXPECT_TRUE(daemon->Await([&] { return Passed(flow).size() == 3; }));
  EXPECT_FALSE(Passed(flow).contains("b"));
  EXPECT_EQ(daemon->Metric("lethe_schemas_waiting"), 1);
  EXPECT_EQ(daemon->Metric("lethe_schemas_known"), 1);
  EXPECT_GT(daemon->Metric("lethe_schema_requests_total", {"result=\"failed\""}), 0);
  EXPECT_EQ(daemon->Metric("lethe_records_total", {"verdict=\"malformed\""}), 0);
  PutVersion(registry, 2, 1);
  EXPECT_TRUE(daemon->AwaitReady());
  EXPECT_TRUE(daemon->Await([&] { return Passed(flow).contains("b"); }));
  EXPECT_TRUE(daemon->Stop());
}

// To fetch what is behind a record again took half a second for each of them.
TEST(SchemaRegistryDaemonTest, ManyNewSchemasInARowTakeTheirRequestsAlone) {
  constexpr int kSchemas = 200;
  FakeRegistry registry;
  std::vector<Record> records;
  std::map<std::string, int> sent;
  for (int schema = 1; schema <= kSchemas; ++schema) {
    PutVersion(registry, schema, schema % 5);
    const std::string id = absl::StrCat("event-", schema);
    records.push_back(Event(id, schema, schema % 5));
    sent[id] = 1;
  }
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  flow.Send(records);
  const absl::Time begin = SteadyNow();
  ASSERT_TRUE(EndsWell(flow.RunToEnd(kById + Args{"--schema-registry=" + registry.url()})));
  EXPECT_LT(SteadyNow() - begin, absl::Seconds(60));
  EXPECT_EQ(Passed(flow), sent);
  EXPECT_EQ(registry.requests(), size_t{kSchemas});
}

// A replay needs the schemas of old records, and has them from their files.
TEST(SchemaRegistryDaemonTest, ARestartNeedsNoRegistry) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "lethe-schemas";
  std::filesystem::remove_all(folder);
  FakeRegistry registry;
  PutVersion(registry, 1, 0);
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  const Args args = kById + Args{"--schema-registry=" + registry.url(),
                                 "--snapshots-to=folder:" + folder.string(), "--snapshots-every=1h"};
  flow.Send({{Event("a", 1, 0), Event("b", 1, 0)}});
  ASSERT_TRUE(EndsWell(flow.RunToEnd(args)));
  Answer(registry, 500);
  flow.Send({{Event("a", 1, 0), Event("c", 1, 0)}});
  ASSERT_TRUE(EndsWell(flow.RunToEnd(args)));
  EXPECT_EQ(Passed(flow), (std::map<std::string, int>{{"a", 1}, {"b", 1}, {"c", 1}}));
  EXPECT_EQ(registry.requests(), 1u);
}

TEST(SchemaRegistryDaemonTest, EachEventOnceWhateverTheRegistryDoes) {
  std::mt19937_64 random(TestSeed());
  FakeRegistry registry;
  for (int version = 1; version <= 6; ++version) PutVersion(registry, version, version - 1);
  Flow flow({LETHE_PROGRAM, 3, {}, {}});
  const Args args = kById + Args{"--schema-registry=" + registry.url(), "--schema-registry-timeout=300ms"};
  std::map<std::string, int> sent;
  int next = 0;
  for (int round = 1; round <= 6; ++round) {
    const auto daemon = flow.Start(args);
    // New events, and copies of old ones, by all versions so far.
    std::vector<Record> records;
    for (int i = 0; i < 300; ++i) {
      const int number =
          random() % 3 == 0 && next > 0 ? static_cast<int>(random() % static_cast<uint64_t>(next)) : next++;
      const std::string id = absl::StrCat("event-", number);
      const int version = 1 + static_cast<int>(random() % static_cast<uint64_t>(round));
      records.push_back(Event(id, version, version - 1, number % 3));
      sent[id] = 1;
    }
    switch (round % 4) {
      case 0:
        Answer(registry, 503);
        break;
      case 1:
        Answer(registry, 401);
        break;
      case 2:
        Answer(registry, 500, absl::Milliseconds(500));
        break;
      default:
        registry.PutAll(nullptr);
    }
    flow.Send(records);
    if (round % 4 != 3) {
      ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_schemas_waiting") > 0; }));
    }
    if (round % 2 == 0) {
      ASSERT_OK(daemon->process().Signal(SIGKILL));  // while partitions wait
      continue;
    }
    registry.PutAll(nullptr);
    ASSERT_TRUE(daemon->AwaitReady());
    const size_t before = Passed(flow).size();
    ASSERT_TRUE(daemon->Await([&] { return Passed(flow).size() > before || Passed(flow) == sent; }));
    ASSERT_OK(daemon->process().Signal(SIGKILL));
  }
  registry.PutAll(nullptr);
  ASSERT_TRUE(EndsWell(flow.RunToEnd(args)));
  EXPECT_EQ(Passed(flow), sent);
}

}  // namespace
}  // namespace lethe::test
