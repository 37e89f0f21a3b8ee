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

  // InvalidArgument says what is expected, without repeating the text.
  static absl::StatusOr<HttpAddress> Parse(absl::string_view text);
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

// What stands behind the path: {"partition", "3"} of /status?partition=3. Of a name that is given twice, the
// first counts.
using HttpQuery = std::map<std::string, std::string>;

// By path, such as "/metrics". Called from several threads at once; should answer within a second or so, as
// a handler that hangs holds one of few threads, and the server's end waits for it.
using HttpRoutes = std::map<std::string, std::function<HttpResponse(const HttpQuery&)>>;

// Answers GET on its routes from the moment that Start() returns until it is destroyed, with one request per
// connection. What strangers may cost is bounded: kMaxConnections are served at a time and a few more wait
// in the kernel, each for at most kRequestTimeout (5 s) from its first byte to its last, with a request of
// at most kMaxRequestBytes (8 KiB), of which no body is read. There is no TLS and no password: whoever
// reaches the port may read what the routes tell.
//
// Thread-safe.
class HttpServer {
 public:
  static constexpr int kMaxConnections = 4;
  static constexpr int kMaxRequestBytes = 8192;

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
