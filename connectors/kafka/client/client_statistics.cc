#include "connectors/kafka/client/client_statistics.h"

#include <simdjson.h>

#include <algorithm>
#include <utility>

namespace lethe::kafka {
namespace {

using simdjson::dom::element;
using simdjson::dom::object;

// 0 where there is no such number.
int64_t Number(const element& parent, const char* key) {
  int64_t value = 0;
  return parent[key].get(value) == simdjson::SUCCESS ? value : 0;
}

template <typename Use>
void ForEach(const element& parent, const char* key, const Use& use) {
  object section;
  if (parent[key].get(section) != simdjson::SUCCESS) return;
  for (const auto& [name, child] : section) use(child);
}

}  // namespace

ClientReport ParseClientStatistics(absl::string_view json) {
  ClientReport report;
  simdjson::dom::parser parser;
  element root;
  if (parser.parse(json.data(), json.size()).get(root) != simdjson::SUCCESS || !root.is_object()) {
    return report;
  }
  report.known = true;
  report.received_bytes = Number(root, "rx_bytes");
  report.sent_bytes = Number(root, "tx_bytes");
  // A producer's queue.
  report.queued_messages = Number(root, "msg_cnt");
  report.queued_bytes = Number(root, "msg_size");
  ForEach(root, "topics", [&](const element& topic) {
    ForEach(topic, "partitions", [&](const element& partition) {
      // A group's consumer forwards all partitions to one queue, and each states the whole of it.
      report.queued_messages = std::max(report.queued_messages, Number(partition, "fetchq_cnt"));
      report.queued_bytes = std::max(report.queued_bytes, Number(partition, "fetchq_size"));
    });
  });
  ForEach(root, "brokers", [&](const element& broker) {
    report.request_timeouts += Number(broker, "req_timeouts");
    element rtt;
    if (broker["rtt"].get(rtt) != simdjson::SUCCESS) return;
    report.round_trip = std::max(report.round_trip, absl::Microseconds(Number(rtt, "avg")));
  });
  return report;
}

int ClientStatistics::Take(char* json) {
  decltype(unread_) taken(json);
  const MutexLock lock(mutex_);
  unread_.swap(taken);
  return 1;
}

ClientReport ClientStatistics::Report() const {
  ClientReport report = Latest();
  report.throttled = throttled();
  return report;
}

ClientReport ClientStatistics::Latest() const {
  decltype(unread_) text;
  {
    const MutexLock lock(mutex_);
    if (unread_ == nullptr) return report_;
    text = std::move(unread_);
  }
  const ClientReport report = ParseClientStatistics(text.get());
  const MutexLock lock(mutex_);
  return report_ = report;
}

}  // namespace lethe::kafka
