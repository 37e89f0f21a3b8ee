// What only a client of its own can show, tried for `lethe check`.
#ifndef LETHE_SRC_PIPELINE_PREFLIGHT_PROBES_H_
#define LETHE_SRC_PIPELINE_PREFLIGHT_PROBES_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/preflight/brokers.h"

namespace lethe {

struct TriedTransaction {
  // Whether the id may be used. Aborted, here and below: another producer has taken it. FailedPrecondition:
  // the brokers accept no timeout of `timeout_ms`.
  absl::Status begun = {};
  absl::Status offsets = {};    // whether the group takes offsets
  std::string timeout_ms = {};  // the producer's transaction.timeout.ms
};

// Answers, and decides nothing. Each call takes some ten seconds at most. InvalidArgument, of any: the client
// refuses a property. Not thread-safe.
class Probes {
 public:
  virtual ~Probes() = default;

  virtual absl::StatusOr<std::unique_ptr<Brokers>> MakeBrokers(const DaemonOptions& options,
                                                               Isolation isolation) = 0;
  // Makes the clients of `lethe run`, which join no group and fence no producer: some properties do not go
  // with those that lethe sets.
  virtual absl::Status MakeClients(const DaemonOptions& options) = 0;
  // Sends this offset of the input's first partition in a transaction of this id, and aborts it.
  virtual TriedTransaction TryTransaction(const DaemonOptions& options, const std::string& id,
                                          int64_t offset) = 0;
  // Sends a record with a value of so many bytes. OutOfRange: the topic refuses its size.
  virtual absl::Status TryWriting(const DaemonOptions& options, const std::string& topic,
                                  int64_t value_bytes) = 0;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_PREFLIGHT_PROBES_H_
