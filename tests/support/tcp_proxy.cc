#include "tests/support/tcp_proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "absl/time/clock.h"
#include "src/pipeline/clock/steady_time.h"
#include "tests/support/free_port.h"

namespace lethe::test {
namespace {

// What a connection may hold in one direction; beyond it nothing is read, as a network does.
constexpr size_t kMaxBuffered = size_t{4} << 20;
constexpr size_t kReadBytes = size_t{64} << 10;
constexpr size_t kSlowReadBytes = size_t{2} << 10;
// A slow connection pushes back instead of holding megabytes that would come much later.
constexpr size_t kMaxSlowBuffered = size_t{64} << 10;

int NewSocket() { return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

void SendAtOnce(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TcpProxy>> TcpProxy::Start() {
  const int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake < 0) return absl::ErrnoToStatus(errno, "eventfd");
  std::unique_ptr<TcpProxy> proxy(new TcpProxy(wake));
  proxy->thread_ = std::thread([p = proxy.get()] { p->Run(); });
  return proxy;
}

TcpProxy::~TcpProxy() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    Wake();
  }
  thread_.join();
  for (Connection& connection : connections_) Close(connection, /*reset=*/true);
  for (const auto& [port, route] : routes_) close(route.listener);
  close(wake_);
}

void TcpProxy::Wake() {
  changed_ = true;
  const uint64_t one = 1;
  // It fails only if the thread has enough to wake for already.
  [[maybe_unused]] const ssize_t ignored = write(wake_, &one, sizeof one);
}

absl::StatusOr<int> TcpProxy::Listen() {
  const int fd = NewSocket();
  if (fd < 0) return absl::ErrnoToStatus(errno, "socket");
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(fd, 64) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    const int error = errno;
    close(fd);
    return absl::ErrnoToStatus(error, "listening on 127.0.0.1");
  }
  const int port = ntohs(address.sin_port);
  const std::lock_guard<std::mutex> lock(mutex_);
  routes_[port] = {fd, 0};
  Wake();
  return port;
}

void TcpProxy::Forward(int port, int target_port) {
  const std::lock_guard<std::mutex> lock(mutex_);
  routes_.at(port).target_port = target_port;
  Wake();
}

void TcpProxy::Cut() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (Connection& connection : connections_) Close(connection, /*reset=*/true);
  connections_.clear();
  Wake();
}

void TcpProxy::SetDelay(absl::Duration delay) {
  const std::lock_guard<std::mutex> lock(mutex_);
  delay_ = delay;
}

void TcpProxy::SetBytesPerSecond(int64_t rate) {
  const std::lock_guard<std::mutex> lock(mutex_);
  bytes_per_second_ = rate;
  const absl::Time now = SteadyNow();
  // What waits for its turn at the old rate waits no longer than for the delay.
  for (Connection& connection : connections_) {
    for (Flow* flow : {&connection.up, &connection.down}) {
      flow->free_at = now;
      for (Chunk& chunk : flow->chunks) chunk.due = std::min(chunk.due, now + delay_);
    }
  }
  Wake();
}

void TcpProxy::SetStalled(bool stalled) {
  const std::lock_guard<std::mutex> lock(mutex_);
  stalled_ = stalled;
  Wake();
}

void TcpProxy::SetStallingProducers(bool stalling) {
  const std::lock_guard<std::mutex> lock(mutex_);
  stalling_producers_ = stalling;
  Wake();
}

void TcpProxy::SetLosingReplies(bool losing) {
  const std::lock_guard<std::mutex> lock(mutex_);
  losing_ = losing;
  lose_from_.reset();
  if (losing) return;
  connections_.remove_if([](Connection& connection) {
    if (connection.lost) Close(connection, /*reset=*/true);
    return connection.lost;
  });
  Wake();
}

void TcpProxy::LoseRepliesFrom(int request) {
  const std::lock_guard<std::mutex> lock(mutex_);
  lose_from_ = request;
}

int64_t TcpProxy::lost_bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return lost_bytes_;
}

int64_t TcpProxy::passed_bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  int64_t passed = 0;
  for (const Connection& connection : connections_) passed += connection.down.passed;
  return passed;
}

void TcpProxy::Close(Connection& connection, bool reset) {
  for (const int fd : {connection.client, connection.server}) {
    if (fd < 0) continue;
    const linger now = {1, 0};
    if (reset) setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(fd);
  }
}

void TcpProxy::Accept(const Route& route) {
  const int client = accept4(route.listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (client < 0) return;
  Connection connection;
  connection.client = client;
  connection.server = NewSocket();
  const sockaddr_in address = Loopback(route.target_port);
  if (connection.server < 0 ||
      (connect(connection.server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
       errno != EINPROGRESS)) {
    return Close(connection, /*reset=*/true);
  }
  SendAtOnce(client);
  SendAtOnce(connection.server);
  connections_.push_back(std::move(connection));
}

size_t TcpProxy::MaxBuffered() const { return bytes_per_second_ > 0 ? kMaxSlowBuffered : kMaxBuffered; }

// A request is its size in four bytes, then the number of the API in two: Produce is 0.
void TcpProxy::FollowRequests(Connection& connection, const std::vector<char>& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    if (connection.request_left > 0) {
      const size_t passed = std::min(connection.request_left, bytes.size() - at);
      connection.request_left -= passed;
      at += passed;
      continue;
    }
    std::vector<unsigned char>& header = connection.header;
    header.push_back(static_cast<unsigned char>(bytes[at++]));
    if (header.size() < 6) continue;
    const size_t size =
        size_t{header[0]} << 24 | size_t{header[1]} << 16 | size_t{header[2]} << 8 | size_t{header[3]};
    const int request = header[4] << 8 | header[5];
    connection.produces = connection.produces || request == 0;
    if (request == lose_from_) losing_ = true;
    connection.request_left = size - 2;
    header.clear();
  }
}

bool TcpProxy::Read(Connection& connection, bool from_client) {
  Flow& flow = from_client ? connection.up : connection.down;
  // Small pieces, so that a slow connection is slow all the time, and not silent between large ones.
  std::vector<char> bytes(bytes_per_second_ > 0 ? kSlowReadBytes : kReadBytes);
  const ssize_t count =
      recv(from_client ? connection.client : connection.server, bytes.data(), bytes.size(), 0);
  if (count < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  if (count == 0) {
    flow.read_closed = true;
    return true;
  }
  if (!from_client && losing_) {
    connection.lost = true;
    lost_bytes_ += count;
    return true;
  }
  bytes.resize(static_cast<size_t>(count));
  if (from_client) FollowRequests(connection, bytes);
  flow.bytes += bytes.size();
  absl::Time passed_on = SteadyNow();
  if (bytes_per_second_ > 0) {
    passed_on = std::max(passed_on, flow.free_at) +
                absl::Seconds(1) * static_cast<int64_t>(bytes.size()) / bytes_per_second_;
    flow.free_at = passed_on;
  }
  flow.chunks.push_back({passed_on + delay_, std::move(bytes)});
  return true;
}

bool TcpProxy::Write(Flow& flow, int to, absl::Time now) const {
  while (!flow.chunks.empty() && flow.chunks.front().due <= now) {
    Chunk& chunk = flow.chunks.front();
    const ssize_t count =
        send(to, chunk.bytes.data() + chunk.sent, chunk.bytes.size() - chunk.sent, MSG_NOSIGNAL);
    if (count < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    chunk.sent += static_cast<size_t>(count);
    flow.passed += count;
    if (chunk.sent < chunk.bytes.size()) return true;
    flow.bytes -= chunk.bytes.size();
    flow.chunks.pop_front();
  }
  if (flow.chunks.empty() && flow.read_closed && !flow.write_closed) {
    flow.write_closed = true;
    shutdown(to, SHUT_WR);
  }
  return true;
}

bool TcpProxy::Serve(Connection& connection, bool client_ready, bool server_ready) {
  if (connection.connecting) {
    if (!server_ready) return true;
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(connection.server, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return false;
    connection.connecting = false;
  }
  if (client_ready && !connection.up.read_closed && connection.up.bytes < MaxBuffered() &&
      !Read(connection, /*from_client=*/true)) {
    return false;
  }
  if (server_ready && !connection.down.read_closed && connection.down.bytes < MaxBuffered() &&
      !Read(connection, /*from_client=*/false)) {
    return false;
  }
  const absl::Time now = SteadyNow();
  if (IsStalled(connection)) return true;
  // What follows a lost reply makes no sense to the client.
  const bool up = Write(connection.up, connection.server, now);
  const bool down = connection.lost || Write(connection.down, connection.client, now);
  if (connection.lost && connection.down.read_closed) return false;
  return up && down && !(connection.up.write_closed && connection.down.write_closed);
}

void TcpProxy::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopping_) {
    std::vector<pollfd> fds = {{wake_, POLLIN, 0}};
    std::vector<int> ports;
    for (const auto& [port, route] : routes_) {
      if (route.target_port == 0 || stalled_) continue;
      ports.push_back(port);
      fds.push_back({route.listener, POLLIN, 0});
    }
    const absl::Time now = SteadyNow();
    absl::Time next = absl::InfiniteFuture();
    const auto events = [&](const Connection& connection, const Flow& in, const Flow& out) {
      int wanted = !in.read_closed && in.bytes < MaxBuffered() ? POLLIN : 0;
      if (!IsStalled(connection) && !out.chunks.empty()) {
        if (out.chunks.front().due <= now) wanted |= POLLOUT;
        next = std::min(next, std::max(out.chunks.front().due, now));
      }
      return static_cast<short>(wanted);
    };
    const size_t first = fds.size();
    for (const Connection& connection : connections_) {
      const bool connecting = connection.connecting;
      // A descriptor from which nothing is wanted is left out: its hang-up would be told for ever.
      const short client = connecting ? short{0} : events(connection, connection.up, connection.down);
      const short server = connecting ? short{POLLOUT} : events(connection, connection.down, connection.up);
      fds.push_back({client == 0 ? -1 : connection.client, client, 0});
      fds.push_back({server == 0 ? -1 : connection.server, server, 0});
    }
    // Bytes that are due and cannot be sent yet are waited for by POLLOUT.
    const int timeout_ms =
        next == absl::InfiniteFuture() || next <= now
            ? -1
            : static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(next - now, absl::Milliseconds(1))));
    changed_ = false;
    lock.unlock();
    poll(fds.data(), fds.size(), timeout_ms);
    lock.lock();
    uint64_t times = 0;
    [[maybe_unused]] const ssize_t none_if_not_woken = read(wake_, &times, sizeof times);
    if (changed_) continue;  // what was polled may be gone
    size_t at = first;
    for (auto connection = connections_.begin(); connection != connections_.end(); at += 2) {
      if (Serve(*connection, fds[at].revents != 0, fds[at + 1].revents != 0)) {
        ++connection;
      } else {
        Close(*connection, /*reset=*/true);
        connection = connections_.erase(connection);
      }
    }
    for (size_t i = 0; i < ports.size(); ++i) {
      if (fds[1 + i].revents != 0) Accept(routes_.at(ports[i]));
    }
  }
}

}  // namespace lethe::test
