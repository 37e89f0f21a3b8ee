// One request in, one response out, as bytes: the part of HTTP that needs no socket.
#ifndef LETHE_CONNECTORS_HTTP_RESPONDER_H_
#define LETHE_CONNECTORS_HTTP_RESPONDER_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "connectors/http/http_server.h"

namespace lethe::http {

// Thread-safe.
class Responder {
 public:
  explicit Responder(HttpRoutes routes);
  ~Responder();

  // `head` is a request up to and with its blank line; whatever it is, the answer is a whole response, which
  // closes the connection: 400 if it is no request, 405 if it is no GET, 404 if there is no such route, 500
  // if the route throws.
  std::string Respond(absl::string_view head) const;

 private:
  class Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace lethe::http

#endif  // LETHE_CONNECTORS_HTTP_RESPONDER_H_
