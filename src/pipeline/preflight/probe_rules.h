// What the answers to a check's attempts mean.
#ifndef LETHE_SRC_PIPELINE_PREFLIGHT_PROBE_RULES_H_
#define LETHE_SRC_PIPELINE_PREFLIGHT_PROBE_RULES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "src/pipeline/preflight/finding.h"
#include "src/pipeline/preflight/probes.h"

namespace lethe {

std::string GrantGroup(const std::string& group);

// What to do where a transactional producer cannot start (TriedTransaction); empty: no remedy is known.
std::string TransactionRemedy(const absl::Status& refused, absl::string_view timeout_ms,
                              const std::string& group);

// Without those of another producer that took the id.
std::vector<Finding> ApplyTransactionRules(const std::string& id, const std::string& group,
                                           const TriedTransaction& tried);

// Whether a topic may be written to that was sent a record too large for it. `topic`: its role and name.
Finding ApplyWriteRule(const std::string& role, const std::string& topic, const absl::Status& tried);
Finding WriteNotTried(const std::string& role, const std::string& topic);

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_PREFLIGHT_PROBE_RULES_H_
