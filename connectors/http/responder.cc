#include "connectors/http/responder.h"

#include <httplib.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace lethe::http {
namespace {

// A connection as cpp-httplib sees it, with the request already here and the response kept.
class MemoryStream : public httplib::Stream {
 public:
  explicit MemoryStream(absl::string_view request) : unread_(request) {}

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* to, size_t size) override {
    size = std::min(size, unread_.size());
    std::memcpy(to, unread_.data(), size);
    unread_.remove_prefix(size);
    return static_cast<ssize_t>(size);
  }
  ssize_t write(const char* from, size_t size) override {
    response_.append(from, size);
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return INVALID_SOCKET; }

  std::string TakeResponse() { return std::move(response_); }

 private:
  absl::string_view unread_;
  std::string response_;
};

httplib::Server::HandlerResponse Answer(const HttpRoutes& routes, const httplib::Request& request,
                                        httplib::Response& response) {
  const auto route = routes.find(request.path);
  if (request.method != "GET") {
    response.status = 405;
    response.set_header("Allow", "GET");
    response.set_content("Only GET is answered here.\n", "text/plain");
  } else if (route == routes.end()) {
    response.status = 404;
    response.set_content("There is nothing here.\n", "text/plain");
  } else {
    HttpQuery query;
    for (const auto& [name, value] : request.params) query.emplace(name, value);
    const HttpResponse answer = route->second(query);
    response.status = answer.status;
    response.set_content(answer.body, answer.content_type);
    response.set_header("X-Content-Type-Options", "nosniff");
    response.set_header("Cache-Control", "no-store");
  }
  return httplib::Server::HandlerResponse::Handled;
}

}  // namespace

// cpp-httplib's server without its sockets and threads: those read a header line of any length and a request
// for any time, share a port that is in use with its owner, and keep the reason of an error to themselves.
class Responder::Parser : public httplib::Server {
 public:
  explicit Parser(HttpRoutes routes) : routes_(std::move(routes)) {
    // Everything is answered before cpp-httplib would read a body or try its own (regular expression) routes.
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      return Answer(routes_, request, response);
    });
    set_exception_handler(
        [](const httplib::Request&, httplib::Response& response, const std::exception_ptr&) {
          response.status = 500;
          response.set_content("The server failed to answer.\n", "text/plain");
        });
  }

  std::string Respond(absl::string_view head) {
    MemoryStream stream(head);
    bool is_closed = false;
    // No ranges: a request for thousands of overlapping ones would make a huge response.
    process_request(stream, /*close_connection=*/true, is_closed,
                    [](httplib::Request& request) { request.ranges.clear(); });
    return stream.TakeResponse();
  }

 private:
  const HttpRoutes routes_;
};

Responder::Responder(HttpRoutes routes) : parser_(std::make_unique<Parser>(std::move(routes))) {}
Responder::~Responder() = default;

std::string Responder::Respond(absl::string_view head) const { return parser_->Respond(head); }

}  // namespace lethe::http
