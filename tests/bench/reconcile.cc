// What `lethe reconcile` takes: two clusters on this machine, with the same ids but for some; bytes and
// seconds by each method, one after the other.
//
//   reconcile_bench [IDS-A-SIDE]
#include <simdjson.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "tests/support/kafka_broker.h"
#include "tests/support/kafka_client.h"
#include "tests/support/process.h"

namespace lethe::test {
namespace {

template <typename T>
T OrExit(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "reconcile_bench: %s\n", value.status().ToString().c_str());
  std::exit(1);
}
void OrExit(const absl::Status& status) { OrExit(status.ok() ? absl::StatusOr<int>(0) : status); }

struct Site {
  Site() : broker(OrExit(KafkaBroker::Start())), client(OrExit(KafkaClient::Connect(address()))) {}
  std::string address() const { return broker->bootstrap(); }

  // Events of some 200 bytes, with their ids in the JSON, from an hour to ten minutes ago.
  void Add(const std::string& topic, const std::string& name, int64_t from, int64_t to) {
    const int64_t begin_ms = absl::ToUnixMillis(absl::Now() - absl::Hours(1));
    while (from < to) {
      std::vector<Record> batch;
      for (; batch.size() < 100'000 && from < to; ++from) {
        Record record;
        record.key = absl::StrCat("customer-", from % 1000);
        record.value =
            absl::StrCat(R"({"order":{"id":")", name, from, R"(","note":")", std::string(150, 'x'), R"("}})");
        record.timestamp_ms = begin_ms + from * 3;
        batch.push_back(std::move(record));
      }
      OrExit(client->Produce(topic, batch));
    }
  }

  std::unique_ptr<KafkaBroker> broker;
  std::unique_ptr<KafkaClient> client;
};

int Main(int64_t ids) {
  Site here, there;
  absl::PrintF("%d ids a side, 4 partitions, two brokers and both sides on this machine\n\n", ids);
  std::puts("| differ | method | bytes | tables, filters | s |\n| --- | --- | --- | --- | --- |");
  simdjson::dom::parser parser;
  for (const int64_t differ : {int64_t{0}, int64_t{1}, int64_t{1000}, ids / 2}) {
    const std::string topic = absl::StrCat("orders-", differ);
    for (Site* site : {&here, &there}) {
      std::fprintf(stderr, "filling %s at %s ...\n", topic.c_str(), site->address().c_str());
      OrExit(site->client->CreateTopic(topic, 4));
      const int64_t own = site == &here ? differ - differ / 2 : differ / 2;
      site->Add(topic, "both", 0, ids - differ);
      site->Add(topic, site == &here ? "here" : "there", ids - differ, ids - differ + own);
    }
    for (const char* method : {"auto", "table", "filter"}) {
      const std::string side = absl::StrCat(" --topic ", topic, " --id json:/order/id --brokers ");
      ProcessOptions options;
      options.args = {"sh", "-c",
                      absl::StrCat("exec ", LETHE_PROGRAM, " reconcile --format json --method ", method, side,
                                   here.address(), " --peer '", LETHE_PROGRAM, " reconcile --serve", side,
                                   there.address(), "'")};
      const Finished finished = OrExit(RunToEnd(options, absl::Minutes(10)));
      simdjson::dom::element json;
      if (finished.exit_code == 2 || parser.parse(finished.out).get(json) != simdjson::SUCCESS) {
        OrExit(absl::InternalError(finished.err));
      }
      const auto figure = [&](const char* name) { return json[name].get_int64().value(); };
      const int64_t found =
          json["here"]["only"].get_int64().value() + json["there"]["only"].get_int64().value();
      if (found != differ) OrExit(absl::InternalError(absl::StrCat(found, " found, ", differ, " differ")));
      absl::PrintF("| %d | %s | %d | %d, %d | %.1f |\n", differ, method, figure("bytes"),
                   figure("table_rounds"), figure("filter_rounds"), json["seconds"].get_double().value());
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace
}  // namespace lethe::test

int main(int argc, char** argv) {
  int64_t ids = 1'000'000;
  if (argc > 2 || (argc == 2 && (!absl::SimpleAtoi(argv[1], &ids) || ids < 2000))) {
    std::fprintf(stderr, "usage: reconcile_bench [IDS-A-SIDE]   (2000 or more)\n");
    return 2;
  }
  return lethe::test::Main(ids);
}
