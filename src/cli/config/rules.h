// What the values of a configuration must agree on.
#ifndef LETHE_SRC_CLI_CONFIG_RULES_H_
#define LETHE_SRC_CLI_CONFIG_RULES_H_

#include "absl/status/status.h"
#include "src/cli/config/draft.h"

namespace lethe {

// InvalidArgument: required values are not given.
absl::Status CheckMissing(const Draft& draft);

// Sets defaults that follow from other values; adds the errors of those that do not agree. Each value is good
// by itself, and none is missing.
void ApplyRules(Draft& draft, Errors& errors);

// Appends to the warning if a registry is set that no field needs.
void WarnOfUnusedRegistry(RunConfig& config);
// Adds a warning if the schema registry's password or token goes unencrypted to another machine.
void WarnOfShownSecret(RunConfig& config);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_CONFIG_RULES_H_
