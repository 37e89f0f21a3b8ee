#include "connectors/http/http_server.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "connectors/http/responder.h"

namespace lethe::http {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kRequestTimeout{5};
constexpr int kBacklog = 16;

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

 private:
  int fd_;
};

// Waits until `fd` is ready for `events`; false if `stop` or the deadline comes first.
bool Wait(int fd, decltype(pollfd::events) events, int stop, Clock::time_point deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    std::array<pollfd, 2> fds = {{{fd, events, 0}, {stop, POLLIN, 0}}};
    const int timeout_ms = static_cast<int>(std::min<int64_t>(left, 60'000));
    const int ready = poll(fds.data(), fds.size(), timeout_ms);
    if (ready < 0 && errno != EINTR) return false;
    if (ready > 0) return fds[1].revents == 0;
  }
}

// Ends the wait for a socket that is not ready yet; everything else is an error or the peer's end.
bool IsNotReady() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

// Reads up to the blank line that ends a request's head; may have read a part of its body too. False if it
// does not come in time. A head that is too large is cut, without its blank line.
bool ReadHead(int socket, int stop, Clock::time_point deadline, std::string& head) {
  std::array<char, HttpServer::kMaxRequestBytes> buffer;
  while (head.find("\r\n\r\n") == std::string::npos && head.size() < buffer.size()) {
    const ssize_t size = recv(socket, buffer.data(), buffer.size() - head.size(), 0);
    if (size > 0) {
      head.append(buffer.data(), static_cast<size_t>(size));
    } else if (size == 0 || !IsNotReady() || !Wait(socket, POLLIN, stop, deadline)) {
      return false;
    }
  }
  return true;
}

void WriteAll(int socket, int stop, Clock::time_point deadline, absl::string_view data) {
  while (!data.empty()) {
    const ssize_t size = send(socket, data.data(), data.size(), MSG_NOSIGNAL);
    if (size >= 0) {
      data.remove_prefix(static_cast<size_t>(size));
    } else if (!IsNotReady() || !Wait(socket, POLLOUT, stop, deadline)) {
      return;
    }
  }
}

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
  // So that a restart need not wait for the old connections to be forgotten; it does not share a port.
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
      return absl::InvalidArgumentError(absl::StrCat("http: ", text, ": this host has no such address"));
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

struct HttpServer::Impl {
  explicit Impl(HttpRoutes routes) : responder(std::move(routes)) {}

  // What each thread does: it waits for a connection together with the others and serves one at a time, so
  // that the number of threads is the number of connections.
  void Serve() {
    while (Wait(listener.get(), POLLIN, stop.get(), Clock::time_point::max())) {
      // Another thread may have been faster, or the peer gone: accept then fails, and the wait begins anew.
      const Descriptor socket(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (socket.ok()) {
        ServeOne(socket.get());
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        // The connection stays acceptable while there is nothing to accept it with: give others time.
        Wait(stop.get(), POLLIN, stop.get(), Clock::now() + std::chrono::milliseconds(100));
      }
    }
  }

  void ServeOne(int socket) const {
    const Clock::time_point deadline = Clock::now() + kRequestTimeout;
    std::string head;
    if (!ReadHead(socket, stop.get(), deadline, head)) return;
    const size_t end = head.find("\r\n\r\n");
    if (end == std::string::npos) {
      WriteAll(
          socket, stop.get(), deadline,
          "HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
      return;
    }
    WriteAll(socket, stop.get(), deadline, responder.Respond(absl::string_view(head).substr(0, end + 4)));
  }

  const Responder responder;
  Descriptor listener;
  Descriptor stop;  // readable once the server is to stop
  std::vector<std::thread> threads;
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
  auto impl = std::make_unique<Impl>(std::move(routes));
  impl->listener = *std::move(listener);
  impl->stop = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!impl->stop.ok()) return absl::ErrnoToStatus(errno, "http: eventfd");
  for (int i = 0; i < kMaxConnections; ++i) impl->threads.emplace_back(&Impl::Serve, impl.get());
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::~HttpServer() {
  eventfd_write(impl_->stop.get(), 1);
  for (std::thread& thread : impl_->threads) thread.join();
}

int HttpServer::port() const { return PortOf(impl_->listener.get()); }

}  // namespace lethe::http
