#include "connectors/http/http_server.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <list>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace lethe::http {
namespace {

constexpr unsigned kSilenceSeconds = 5;
constexpr int kBacklog = 256;

// Owns a file descriptor, or -1.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  void Release() { fd_ = -1; }

 private:
  int fd_;
};

absl::StatusOr<Descriptor> Listen(const HttpAddress& address, absl::string_view text) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error =
          getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
      error != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("http: ", text, ": the host is not known: ", gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, &freeaddrinfo);
  Descriptor listener(socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int yes = 1;
  // A restart need not wait for old connections to expire; the port is not shared.
  if (listener.ok() && setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
      bind(listener.get(), found->ai_addr, found->ai_addrlen) == 0 && listen(listener.get(), kBacklog) == 0) {
    return listener;
  }
  switch (errno) {
    case EADDRINUSE:
      return absl::AlreadyExistsError(absl::StrCat(
          "http: ", text,
          ": another program listens there already; choose another port, or 0 for any free one"));
    case EADDRNOTAVAIL:
      return absl::InvalidArgumentError(
          absl::StrCat("http: ", text, ": this host does not have that address"));
    default:
      return absl::ErrnoToStatus(errno, absl::StrCat("http: ", text, ": cannot listen"));
  }
}

int PortOf(int listener) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

}  // namespace

absl::StatusOr<HttpAddress> HttpAddress::Parse(absl::string_view text) {
  const size_t colon = text.rfind(':');
  int port = -1;
  absl::string_view host = text.substr(0, colon);
  bool is_good = colon != absl::string_view::npos && !host.empty();
  if (is_good && host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != absl::string_view::npos) {
    is_good = false;  // an IPv6 address without brackets: its last part may be taken for a port
  }
  if (host.find_first_of("[]") != absl::string_view::npos) is_good = false;
  if (!is_good || !absl::SimpleAtoi(text.substr(colon + 1), &port) || port < 0 || port > 65535) {
    return absl::InvalidArgumentError(
        "expected HOST:PORT, such as 127.0.0.1:9464 or [::1]:9464, or 0.0.0.0:9464 for all interfaces");
  }
  return HttpAddress{std::string(host), port};
}

bool AnswersTo(const HttpAddress& bound, absl::string_view host_header) {
  // Without the port, which differs behind a forwarded port.
  const size_t end = absl::StartsWith(host_header, "[") ? host_header.find(']') : host_header.find(':');
  std::string host(host_header.substr(0, end));
  if (absl::StartsWith(host, "[")) host.erase(0, 1);
  std::array<unsigned char, sizeof(in6_addr)> bytes = {};
  const auto is_address = [&](const std::string& text) {
    return inet_pton(AF_INET, text.c_str(), bytes.data()) == 1 ||
           inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1;
  };
  if (is_address(host) || absl::EqualsIgnoreCase(host, "localhost") ||
      absl::EqualsIgnoreCase(host, bound.host)) {
    return true;
  }
  bytes.fill(0);
  return is_address(bound.host) &&
         std::count(bytes.begin(), bytes.end(), 0) == static_cast<int>(bytes.size());
}

// Its thread owns all members except the daemon.
struct HttpServer::Impl {
  struct Peer {
    int socket;
    bool is_answered;
    bool is_closing;
  };
  using Peers = std::list<Peer>;  // the oldest first

  Impl(HttpAddress address, HttpRoutes handlers) : bound(std::move(address)), routes(std::move(handlers)) {}
  ~Impl() {
    if (daemon != nullptr) MHD_stop_daemon(daemon);
  }

  // Closes the oldest connection above the limit: the library sees the end of the stream and drops it.
  void CloseAbove(size_t limit, bool is_answered) {
    const auto counts = [&](const Peer& peer) { return peer.is_answered == is_answered && !peer.is_closing; };
    if (static_cast<size_t>(std::count_if(peers.begin(), peers.end(), counts)) <= limit) return;
    const auto oldest = std::find_if(peers.begin(), peers.end(), counts);
    shutdown(oldest->socket, SHUT_RDWR);
    oldest->is_closing = true;
  }

  void Connected(MHD_Connection* connection, void** context) {
    const int socket = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    *context = new Peers::iterator(peers.insert(peers.end(), {socket, false, false}));
    CloseAbove(kMaxConnections - kMaxAnswers, /*is_answered=*/false);
  }

  void Disconnected(void** context) {
    const std::unique_ptr<Peers::iterator> peer(static_cast<Peers::iterator*>(*context));
    peers.erase(*peer);
  }

  HttpResponse Answer(MHD_Connection* connection, const char* path, const char* method) const {
    const char* const host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
    if (host != nullptr && !AnswersTo(bound, host)) {
      return {
          .status = MHD_HTTP_MISDIRECTED_REQUEST,
          .body = absl::StrCat(
              "This server listens on ", bound.host,
              " and does not answer under another name. Use its address, or let it listen on that name.\n")};
    }
    if (absl::string_view(method) != MHD_HTTP_METHOD_GET) {
      return {.status = MHD_HTTP_METHOD_NOT_ALLOWED, .body = "Only GET is answered here.\n"};
    }
    const auto route = routes.find(path);
    if (route == routes.end()) return {.status = MHD_HTTP_NOT_FOUND, .body = "There is nothing here.\n"};
    HttpQuery query;
    const auto add = [](void* to, MHD_ValueKind, const char* name, const char* value) {
      static_cast<HttpQuery*>(to)->emplace(name, value == nullptr ? "" : value);
      return MHD_YES;
    };
    MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, add, &query);
    try {
      return route->second(query);
    } catch (const std::exception&) {
      return {.status = MHD_HTTP_INTERNAL_SERVER_ERROR, .body = "The server failed to answer.\n"};
    }
  }

  MHD_Result Respond(MHD_Connection* connection, const char* path, const char* method) {
    HttpResponse answer = Answer(connection, path, method);
    auto body = std::make_unique<std::string>(std::move(answer.body));
    MHD_Response* const response = MHD_create_response_from_buffer_with_free_callback_cls(
        body->size(), body->data(), [](void* text) { delete static_cast<std::string*>(text); }, body.get());
    if (response == nullptr) return MHD_NO;
    body.release();
    const std::pair<const char*, std::string> headers[] = {
        {MHD_HTTP_HEADER_CONNECTION, "close"},
        {MHD_HTTP_HEADER_CONTENT_TYPE, answer.content_type},
        {MHD_HTTP_HEADER_CACHE_CONTROL, "no-store"},
        {"Content-Security-Policy", answer.content_security_policy},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"X-Content-Type-Options", "nosniff"},
    };
    for (const auto& [name, value] : headers) MHD_add_response_header(response, name, value.c_str());
    if (answer.status == MHD_HTTP_METHOD_NOT_ALLOWED) {
      MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, MHD_HTTP_METHOD_GET);
    }
    const MHD_Result result = MHD_queue_response(connection, static_cast<unsigned>(answer.status), response);
    MHD_destroy_response(response);
    auto* const peer = static_cast<Peers::iterator*>(
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context);
    (*peer)->is_answered = true;
    CloseAbove(kMaxAnswers, /*is_answered=*/true);
    return result;
  }

  const HttpAddress bound;
  const HttpRoutes routes;
  int port = 0;
  Peers peers;
  MHD_Daemon* daemon = nullptr;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(absl::string_view address, HttpRoutes routes) {
  absl::StatusOr<HttpAddress> parsed = HttpAddress::Parse(address);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("http: \"", address, "\" is not valid: ", parsed.status().message()));
  }
  absl::StatusOr<Descriptor> listener = Listen(*parsed, address);
  if (!listener.ok()) return listener.status();
  auto impl = std::make_unique<Impl>(*std::move(parsed), std::move(routes));
  impl->port = PortOf(listener->get());
  const auto respond = [](void* self, MHD_Connection* connection, const char* path, const char* method,
                          const char*, const char*, size_t*,
                          void**) { return static_cast<Impl*>(self)->Respond(connection, path, method); };
  const auto notify = [](void* self, MHD_Connection* connection, void** context,
                         MHD_ConnectionNotificationCode code) {
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
      static_cast<Impl*>(self)->Connected(connection, context);
    } else {
      static_cast<Impl*>(self)->Disconnected(context);
    }
  };
  impl->daemon = MHD_start_daemon(
      MHD_USE_EPOLL_INTERNAL_THREAD, 0, nullptr, nullptr, MHD_AccessHandlerCallback{respond}, impl.get(),
      MHD_OPTION_LISTEN_SOCKET, listener->get(),
      // Twice the number that is kept, so that connections about to be closed do not block new ones.
      MHD_OPTION_CONNECTION_LIMIT, 2U * kMaxConnections, MHD_OPTION_CONNECTION_TIMEOUT, kSilenceSeconds,
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, size_t{2 * kMaxRequestBytes}, MHD_OPTION_NOTIFY_CONNECTION,
      MHD_NotifyConnectionCallback{notify}, impl.get(), MHD_OPTION_END);
  if (impl->daemon == nullptr)
    return absl::ErrnoToStatus(errno, absl::StrCat("http: ", address, ": cannot start"));
  listener->Release();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::~HttpServer() = default;

int HttpServer::port() const { return impl_->port; }

}  // namespace lethe::http
