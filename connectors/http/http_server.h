// A small HTTP server for metrics, health and a status page.
#ifndef LETHE_CONNECTORS_HTTP_HTTP_SERVER_H_
#define LETHE_CONNECTORS_HTTP_HTTP_SERVER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lethe::http {

// Where to listen. A host that is a name listens on its first address; 0.0.0.0 and [::] on all interfaces.
struct HttpAddress {
  std::string host;  // without the brackets of an IPv6 address
  int port = 0;      // 0: any free one

  // InvalidArgument says the expected form, without repeating the text.
  static absl::StatusOr<HttpAddress> Parse(absl::string_view text);
};

// Whether a server on `bound` answers a request with this Host header: an address, localhost, or the name
// that it listens on. Another name may be a stranger's page (DNS rebinding). On all interfaces any name
// counts, since the server's names are not known.
bool AnswersTo(const HttpAddress& bound, absl::string_view host_header);

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  // Restricts what a browser that shows the body may load, run and frame.
  std::string content_security_policy = "default-src 'none'; frame-ancestors 'none'";
};

// {"partition", "3"} of /status?partition=3. Of a repeated name the first counts.
using HttpQuery = std::map<std::string, std::string>;

// By path, such as "/metrics". One thread calls them one after the other, so each should answer within a
// second.
using HttpRoutes = std::map<std::string, std::function<HttpResponse(const HttpQuery&)>>;

// Answers GET on its routes, one request per connection, uncompressed. Costs at most one thread,
// kMaxConnections sockets and kMaxAnswers bodies: one more idle connection closes the oldest idle one, one
// more answer closes the connection with the oldest unread answer, and 5 s of silence close any. Reads no
// body of a request. There is no TLS and no password: everyone who reaches the port can read all routes.
// Thread-safe.
class HttpServer {
 public:
  static constexpr int kMaxConnections = 64;
  static constexpr int kMaxAnswers = 16;
  static constexpr int kMaxRequestBytes = 8192;  // the line and the headers

  // InvalidArgument: not an address of this host. AlreadyExists: the port is in use. Else the system's error.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(absl::string_view address, HttpRoutes routes);

  // Cuts connections, and waits for running handlers.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // The real port, also if 0 was requested.
  int port() const;

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lethe::http

#endif  // LETHE_CONNECTORS_HTTP_HTTP_SERVER_H_
