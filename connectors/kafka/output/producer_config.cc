#include "connectors/kafka/output/producer_config.h"

#include <algorithm>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "connectors/kafka/client/client_statistics.h"

namespace lethe::kafka {
namespace {

// The client's queue, for records up to so many bytes.
constexpr int64_t kQueueBytes = int64_t{64} << 20;

}  // namespace

int64_t BatchSize(const DaemonOptions& options, int64_t max_batch_bytes) {
  int64_t size = 1000000;
  for (const auto& [name, value] : options.process.properties) {
    int64_t wanted = 0;
    if (name == "batch.size" && absl::SimpleAtoi(value, &wanted)) size = wanted;
  }
  return std::min(size, max_batch_bytes);
}

ClientConfig ProducerConfig(const DaemonOptions& options, int lane, const OutputLimits& limits,
                            absl::string_view codec) {
  const int64_t queue_bytes = std::max(kQueueBytes, limits.record_bytes);
  ClientConfig config =
      BaseConfig(options, {
                              {"transaction.timeout.ms", "30000"},
                              // Large batches cost less on both sides.
                              {"linger.ms", "5"},
                              {"compression.type", std::string(codec)},
                              // AwaitRoom() bounds a stalled output; any record fits.
                              {"queue.buffering.max.kbytes", absl::StrCat((queue_bytes >> 10) + 1)},
                              {"queue.buffering.max.messages", "1000000"},
                              // A topic that was deleted fails its records after this time, and the
                              // transaction of all topics with them.
                              {"topic.metadata.propagation.max.ms", "5000"},
                              ClientStatistics::Interval(),
                          });
  config.Set("enable.idempotence", "true")
      .Set("acks", "all")
      .Set("delivery.report.only.error", "true")
      // The broker decides whether a record is too large: the client would measure it uncompressed. But no
      // record may be refused because of others in its batch.
      .Set("message.max.bytes", "1000000000")
      .Set("batch.size", absl::StrCat(BatchSize(options, limits.batch_bytes)));
  if (options.process.delivery == Delivery::kExactlyOnce) {
    config.Set("transactional.id",
               absl::StrCat(options.process.group, "/", options.process.instance, "/", lane));
  }
  return config;
}

}  // namespace lethe::kafka
