// The librdkafka properties that a user may not set, since lethe's guarantees rest on their values, and those
// whose values are secret.
#ifndef LETHE_CONNECTORS_KAFKA_CLIENT_FIXED_PROPERTIES_H_
#define LETHE_CONNECTORS_KAFKA_CLIENT_FIXED_PROPERTIES_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "src/pipeline/options/options.h"

namespace lethe::kafka {

struct FixedProperty {
  absl::string_view name;
  absl::string_view reason;  // a clause, with what to do instead where there is something
};

absl::Span<const FixedProperty> FixedProperties();

// Why the property is fixed; nullopt if the user may set it.
std::optional<absl::string_view> WhyFixed(absl::string_view property);

// Whether the property concerns a secret: passwords, keys, tokens.
bool IsSecret(absl::string_view property);

// Likewise, except the paths of key files, which need no protection.
bool IsSecretValue(absl::string_view property);

// A warning about these properties, whose values are secrets and on the command line; empty without any.
std::string SecretsOnCommandLine(absl::Span<const std::string> properties);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_CLIENT_FIXED_PROPERTIES_H_
