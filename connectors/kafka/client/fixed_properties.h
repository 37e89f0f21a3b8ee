// What lethe knows of librdkafka's properties: those that a user may not set, since lethe's promise rests on
// their values, and those whose values are not to be shown.
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

// Why the property is fixed; nullopt if it is the user's to set.
std::optional<absl::string_view> WhyFixed(absl::string_view property);

// Whether the value of a property is nobody's business: passwords, keys, tokens.
bool IsSecret(absl::string_view property);

// The same, but for the places of keys, which every user of the host may read on a command line.
bool IsSecretValue(absl::string_view property);

// A warning if any of these, from a command line, is secret: other users of the host see it. Empty if none
// is.
std::string SecretsOnCommandLine(absl::Span<const Property> properties);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_CLIENT_FIXED_PROPERTIES_H_
