// What `lethe verify` takes: an input with copies, the output that lethe would write of it, and in that ten
// damages, each of which must be found, and nothing else.
//
//   verify_bench [EVENTS]
#include <simdjson.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
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

constexpr int kPartitions = 4;
// So far is a record that is out of order from its place.
constexpr int64_t kMoved = 4000;

template <typename T>
T OrExit(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "verify_bench: %s\n", value.status().ToString().c_str());
  std::exit(1);
}
void OrExit(const absl::Status& status) { OrExit(status.ok() ? absl::StatusOr<int>(0) : status); }

// Event i, of some 200 bytes, ten minutes in all. Every twentieth record is a copy of one in the same
// partition, and every thousandth has no id.
bool IsCopy(int64_t i) { return i % 20 == 19 && i > 10'000; }
Record RecordAt(int64_t i, int64_t events, int64_t begin_ms) {
  const int64_t id = IsCopy(i) ? i - 8 - 20 * (i / 20 % 500) : i;
  Record record;
  record.key = absl::StrCat("customer-", id % 1000);
  const std::string field = i % 1000 == 7 ? "nothing" : "id";
  record.value =
      absl::StrCat(R"({")", field, R"(":"order-)", id, R"(","note":")", std::string(130, 'x'), R"("})");
  record.headers = {{"trace", absl::StrCat(i)}};
  record.timestamp_ms = begin_ms + i * 600'000 / events;
  record.partition = static_cast<int32_t>(i % kPartitions);
  return record;
}

// What is written in the place of event i: at each tenth of the stream a damage.
std::vector<Record> WrittenAt(int64_t i, int64_t events, int64_t begin_ms) {
  const Record right = RecordAt(i, events, begin_ms);
  std::vector<Record> written;
  if (!IsCopy(i)) written.push_back(right);
  const int64_t tenth = events / 10;
  const int64_t which = i / tenth;
  const int64_t from = which * tenth + tenth / 2;              // no copy, and of no copy
  if (which == 9 && i == from / 1000 * 1000 + 7) return {};    // without an id
  if (which == 3 && i == from / 20 * 20 + 19) return {right};  // a copy
  if (which == 8 && i == from / 20 * 20 + 4 + kMoved) {
    return {right, RecordAt(i - kMoved, events, begin_ms)};
  }
  if (i != from / 20 * 20 + 4) return written;
  Record other = right;
  switch (which) {
    case 0:
    case 8:
      return {};
    case 1:
      return {right, right};
    case 2:
      other.value = R"({"id":"foreign"})";
      return {right, other};
    case 4:
      *other.value += " ";
      return {other};
    case 5:
      other.headers[0].second = "other";
      return {other};
    case 6:
      ++other.timestamp_ms;
      return {other};
    case 7:
      other.key = "other";
      return {other};
    default:
      return written;
  }
}

int Main(int64_t events) {
  const std::unique_ptr<KafkaBroker> broker = OrExit(KafkaBroker::Start());
  const std::unique_ptr<KafkaClient> client = OrExit(KafkaClient::Connect(broker->bootstrap()));
  for (const char* topic : {"orders", "orders-unique"}) {
    OrExit(client->CreateTopic(topic, kPartitions, {{"retention.ms", "-1"}}));
  }
  const int64_t begin_ms = absl::ToUnixMillis(absl::Now() - absl::Minutes(10));
  int64_t out = 0;
  std::vector<Record> input, output;
  for (int64_t i = 0; i < events; ++i) {
    input.push_back(RecordAt(i, events, begin_ms));
    for (Record& record : WrittenAt(i, events, begin_ms)) output.push_back(std::move(record));
    if (input.size() < 50'000 && i + 1 < events) continue;
    OrExit(client->Produce("orders", input));
    OrExit(client->Produce("orders-unique", output));
    out += static_cast<int64_t>(output.size());
    input.clear();
    output.clear();
    std::fprintf(stderr, "\rwritten: %lld of %lld", static_cast<long long>(i + 1),
                 static_cast<long long>(events));
  }
  std::fputs("\n", stderr);
  // As lethe would have committed it.
  std::vector<CommittedOffset> committed;
  for (const int64_t end : OrExit(client->EndOffsets("orders", Isolation::kReadCommitted))) {
    committed.push_back({end, "lethe/2 o=0 n=4 r=0 rt=- ct=- id=0 h=3600000"});
  }
  const auto producer = OrExit(TransactionalProducer::Start(broker->bootstrap(), "verify-bench"));
  OrExit(producer->Begin());
  OrExit(producer->SendOffsets("lethe-orders", "orders", committed));
  OrExit(producer->Commit());
  const std::string config = absl::StrCat("/tmp/verify_bench.", getpid(), ".yaml");
  std::ofstream(config) << "brokers: " << broker->bootstrap()
                        << "\ninput: orders\noutput: orders-unique\ngroup: lethe-orders\nid: json:/id\n"
                           "horizon: 1h\nfpp: 1e-9\n";
  absl::PrintF("%d events, %d of them written, in %d partitions; the broker on the same machine\n\n", events,
               out, kPartitions);
  std::puts("| --memory | passes | s | records/s | memory of the process |\n| --- | --- | --- | --- | --- |");
  bool right = true;
  simdjson::dom::parser parser;
  for (const char* memory : {"256MiB", "1GiB"}) {
    const absl::Time begin = absl::Now();
    ProcessOptions verify;
    verify.args = {LETHE_PROGRAM, "verify", "--config", config, "--since",  "all",
                   "--share",     "1",      "--memory", memory, "--format", "json"};
    const Finished finished = OrExit(RunToEnd(verify, absl::Hours(1)));
    const double seconds = absl::ToDoubleSeconds(absl::Now() - begin);
    rusage usage = {};
    getrusage(RUSAGE_CHILDREN, &usage);
    simdjson::dom::element json;
    if (parser.parse(finished.out).get(json) != simdjson::SUCCESS) OrExit(absl::InternalError(finished.err));
    json = json["topics"].at(0);
    absl::PrintF("| %s | %d | %.0f | %.0f | %.0f MiB |\n", memory, json["passes"].get_int64().value(),
                 seconds, static_cast<double>(events + out) / seconds,
                 static_cast<double>(usage.ru_maxrss) / 1024);
    std::fflush(stdout);
    for (const auto& [kind, count] :
         {std::pair("lost", 2), std::pair("repeated", 2), std::pair("foreign", 1), std::pair("changed", 4),
          std::pair("out_of_order", 1), std::pair("undecided", 0)}) {
      const int64_t found = json[kind]["count"].get_int64().value();
      if (found == count) continue;
      std::fprintf(stderr, "WRONG: %s: %lld, and %d are there\n", kind, static_cast<long long>(found), count);
      right = false;
    }
  }
  std::remove(config.c_str());
  return right ? 0 : 1;
}

}  // namespace
}  // namespace lethe::test

int main(int argc, char** argv) {
  int64_t events = 10'000'000;
  if (argc > 2 || (argc == 2 && (!absl::SimpleAtoi(argv[1], &events) || events < 200'000))) {
    std::fprintf(stderr, "usage: verify_bench [EVENTS]   (200000 or more)\n");
    return 2;
  }
  return lethe::test::Main(events);
}
