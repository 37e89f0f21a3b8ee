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

// Whether a server that listens on `bound` answers a request with this Host header. A web page of a stranger
// can reach the server under a name of its own (DNS rebinding), so a name counts only if the server listens
// on it, or if it is localhost; an address always counts. On all interfaces any name counts: the server's are
// not known.
bool AnswersTo(const HttpAddress& bound, absl::string_view host_header);

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  // Restricts what a browser that shows the body may load, run and frame.
  std::string content_security_policy = "default-src 'none'; frame-ancestors 'none'";
};

// What stands behind the path: {"partition", "3"} of /status?partition=3. Of a name that is given twice, the
// first counts.
using HttpQuery = std::map<std::string, std::string>;

// By path, such as "/metrics". Called from one thread, one after the other: a handler that hangs holds up all
// others and the server's end, so it should answer within a second or so.
using HttpRoutes = std::map<std::string, std::function<HttpResponse(const HttpQuery&)>>;

// Answers GET on its routes from the moment that Start() returns until it is destroyed, one request per
// connection, uncompressed. Strangers cost one thread, kMaxConnections sockets and kMaxAnswers bodies at
// most: one more idle connection closes the oldest idle one, one more answer closes the connection that has
// been reading its answer for the longest, and 5 s of silence close any. No body of a request is read. There
// is no TLS and no password: everyone who reaches the port can read all routes.
//
// Thread-safe.
class HttpServer {
 public:
  static constexpr int kMaxConnections = 64;
  static constexpr int kMaxAnswers = 16;
  static constexpr int kMaxRequestBytes = 8192;  // the line and the headers

  // InvalidArgument if the address is none, or no address of this host; AlreadyExists if the port is in
  // use; or another error of the system.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(absl::string_view address, HttpRoutes routes);

  // Stops: connections that are being read or written are cut, handlers that run are waited for.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // The port that is listened on, also where 0 was asked for.
  int port() const;

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lethe::http

#endif  // LETHE_CONNECTORS_HTTP_HTTP_SERVER_H_
