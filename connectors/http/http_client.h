// One GET, for commands that read a daemon's figures.
#ifndef LETHE_CONNECTORS_HTTP_HTTP_CLIENT_H_
#define LETHE_CONNECTORS_HTTP_HTTP_CLIENT_H_

#include <string>

#include "absl/status/statusor.h"

namespace lethe::http {

// The body of http://host:port/path. Unavailable if there is no answer, or another than 200.
absl::StatusOr<std::string> HttpGet(const std::string& host, int port, const std::string& path);

}  // namespace lethe::http

#endif  // LETHE_CONNECTORS_HTTP_HTTP_CLIENT_H_
