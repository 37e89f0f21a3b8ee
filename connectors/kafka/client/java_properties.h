// Properties of Kafka's Java clients that librdkafka does not have, or has under another name.
#ifndef LETHE_CONNECTORS_KAFKA_CLIENT_JAVA_PROPERTIES_H_
#define LETHE_CONNECTORS_KAFKA_CLIENT_JAVA_PROPERTIES_H_

#include <optional>

#include "absl/strings/string_view.h"

namespace lethe::kafka {

// What to do instead, as a clause; nullopt: the property is not one of these.
std::optional<absl::string_view> InsteadOfJavas(absl::string_view property);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_CLIENT_JAVA_PROPERTIES_H_
