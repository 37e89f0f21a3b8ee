#include "connectors/http/http_client.h"

#include <httplib.h>

#include "absl/strings/str_cat.h"

namespace lethe::http {

absl::StatusOr<std::string> HttpGet(const std::string& host, int port, const std::string& path) {
  httplib::Client client(host, port);
  client.set_connection_timeout(2);
  client.set_read_timeout(5);
  const httplib::Result result = client.Get(path);
  if (!result || result->status != 200) {
    return absl::UnavailableError(
        absl::StrCat("http://", host, ":", port, path, ": ",
                     result ? absl::StrCat("status ", result->status) : httplib::to_string(result.error())));
  }
  return result->body;
}

}  // namespace lethe::http
