#include "connectors/http/http_client.h"

#include <httplib.h>

#include "absl/strings/str_cat.h"

namespace lethe::http {
namespace {

// The library's texts are the names of its enumerators.
std::string Text(httplib::Error error) {
  switch (error) {
    case httplib::Error::Connection:
    case httplib::Error::ConnectionTimeout:
      return "connection refused or timed out";
    case httplib::Error::Read:
      return "no answer within 5 s";
    default:
      return httplib::to_string(error);
  }
}

}  // namespace

absl::StatusOr<std::string> HttpGet(const std::string& host, int port, const std::string& path) {
  httplib::Client client(host, port);
  client.set_connection_timeout(2);
  client.set_read_timeout(5);
  const httplib::Result result = client.Get(path);
  if (!result || result->status != 200) {
    return absl::UnavailableError(
        absl::StrCat("http://", host, ":", port, path, ": ",
                     result ? absl::StrCat("status ", result->status) : Text(result.error())));
  }
  return result->body;
}

}  // namespace lethe::http
