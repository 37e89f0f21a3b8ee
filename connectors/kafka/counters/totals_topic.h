// A topic of totals, for the feed of a store.
#ifndef LETHE_CONNECTORS_KAFKA_COUNTERS_TOTALS_TOPIC_H_
#define LETHE_CONNECTORS_KAFKA_COUNTERS_TOTALS_TOPIC_H_

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "connectors/kafka/client/client.h"
#include "connectors/kafka/client/message_view.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/totals/totals_log.h"

namespace lethe::kafka {

class TotalsTopic final : public TotalsLog {
 public:
  // The options outlive it.
  TotalsTopic(const DaemonOptions& options, std::string topic)
      : options_(options), topic_(std::move(topic)) {}

  absl::Status Open(const std::map<int32_t, int64_t>& offsets) override;
  void Close() override;
  std::optional<InputRecord> Poll(absl::Duration timeout) override;
  absl::StatusOr<std::map<int32_t, int64_t>> Ends(const std::vector<int32_t>& partitions) override;
  absl::StatusOr<int64_t> HighWatermark(int32_t partition) override;

 private:
  const DaemonOptions& options_;
  const std::string topic_;
  ClientPtr consumer_;
  std::optional<FetchOn> fetch_on_;  // of the consumer
  MessagePtr message_;               // the last one, with its view or its event
  std::optional<MessageView> view_;
  SourceEvent event_;
  ClientPtr asking_;         // sees committed records
  ClientPtr asking_of_all_;  // sees all; the other thread's
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_COUNTERS_TOTALS_TOPIC_H_
