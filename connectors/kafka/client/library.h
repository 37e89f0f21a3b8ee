// The linked librdkafka.
#ifndef LETHE_CONNECTORS_KAFKA_CLIENT_LIBRARY_H_
#define LETHE_CONNECTORS_KAFKA_CLIENT_LIBRARY_H_

#include <string>

namespace lethe::kafka {

// Its version, and what it was built with: "librdkafka 2.8.0 (gzip,snappy,ssl,...,oauthbearer_oidc)".
std::string LibraryText();

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_CLIENT_LIBRARY_H_
