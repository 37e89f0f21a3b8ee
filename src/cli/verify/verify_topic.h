// Reads the logs of a topic of the configuration, and has them judged (src/verify).
#ifndef LETHE_SRC_CLI_VERIFY_VERIFY_TOPIC_H_
#define LETHE_SRC_CLI_VERIFY_VERIFY_TOPIC_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "src/pipeline/options/options.h"
#include "src/record/schema_source.h"
#include "src/verify/verify.h"

namespace lethe {

struct VerifyRequest {
  absl::Time since = absl::InfinitePast();  // by the records' timestamps; InfinitePast: all that is there
  int64_t memory_bytes = int64_t{256} << 20;
  std::optional<double> share = {};  // of the ids; nullopt: as many as fit into memory at once
  SchemaSource* schemas = nullptr;   // outlives the call
  // Asked several times a second; false ends the work (Cancelled).
  std::function<bool(int64_t done, int64_t total)> go_on = [](int64_t, int64_t) { return true; };
};

struct VerifiedTopic {
  DaemonOptions options;
  absl::Time since;
  VerifyReport report;
  std::vector<VerifiedInput> inputs;  // of which the examples name one by its number
  double share = 1;
  int64_t passes = 1;
  int64_t input_read = 0;  // records, with the history
  int64_t output_read = 0;
  int64_t aborted = 0;        // records of the output that a reader without read_committed sees, too
  bool is_input_cut = false;  // retention has taken something of the stretch, or of its history
  bool is_output_cut = false;
  std::vector<std::string> notes;
  absl::Status status;  // not OK: it could not be judged, and of all above there is `options` alone

  VerifyReport::Outcome outcome() const { return report.OutcomeFor(options.stage.target_fpp); }
};

// `options` are of one topic, or of merged ones. Needs Read on the topics, and reads what the group has
// committed where it may. Unavailable: a broker does not answer, or a transaction stays open.
absl::StatusOr<VerifiedTopic> VerifyTopic(const DaemonOptions& options, const VerifyRequest& request);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_VERIFY_VERIFY_TOPIC_H_
