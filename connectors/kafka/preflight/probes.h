// What `lethe check` tries, tried with clients of librdkafka.
#ifndef LETHE_CONNECTORS_KAFKA_PREFLIGHT_PROBES_H_
#define LETHE_CONNECTORS_KAFKA_PREFLIGHT_PROBES_H_

#include <cstdint>
#include <memory>
#include <string>

#include "src/pipeline/preflight/probes.h"

namespace lethe::kafka {

class KafkaProbes final : public Probes {
 public:
  absl::StatusOr<std::unique_ptr<Brokers>> MakeBrokers(const DaemonOptions& options,
                                                       Isolation isolation) override;
  absl::Status MakeClients(const DaemonOptions& options) override;
  TriedTransaction TryTransaction(const DaemonOptions& options, const std::string& id,
                                  int64_t offset) override;
  absl::Status TryWriting(const DaemonOptions& options, const std::string& topic,
                          int64_t value_bytes) override;
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_PREFLIGHT_PROBES_H_
