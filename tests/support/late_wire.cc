#include "tests/support/late_wire.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "tests/support/free_port.h"

namespace lethe::test {
namespace {

// Kafka's numbers of requests, and the version from which each has the flexible encoding.
enum ApiKey : int16_t {
  kProduce = 0,
  kInitProducerId = 22,
  kAddPartitionsToTxn = 24,
  kAddOffsetsToTxn = 25,
  kEndTxn = 26,
  kTxnOffsetCommit = 28,
};
struct Api {
  int16_t kind;
  int16_t flexible_from;
};
constexpr Api kApis[] = {{kProduce, 9},         {kInitProducerId, 2}, {kAddPartitionsToTxn, 3},
                         {kAddOffsetsToTxn, 3}, {kEndTxn, 3},         {kTxnOffsetCommit, 3}};

const Api* Find(int16_t kind) {
  const auto* api =
      std::find_if(std::begin(kApis), std::end(kApis), [&](const Api& each) { return each.kind == kind; });
  return api == std::end(kApis) ? nullptr : api;
}
bool IsFlexible(int16_t kind, int16_t version) {
  const Api* const api = Find(kind);
  return api != nullptr && version >= api->flexible_from;
}

// Reads a frame from its front; zeros behind its end.
class Reader {
 public:
  Reader(const std::vector<unsigned char>& bytes, size_t at) : bytes_(bytes), at_(at) {}
  int64_t Int(int size) {
    uint64_t value = 0;
    for (int i = 0; i < size; ++i) value = value << 8 | Byte();
    const int unused = 64 - 8 * size;
    return static_cast<int64_t>(value << unused) >> unused;
  }
  uint64_t Unsigned() {
    uint64_t value = 0;
    for (int shift = 0; shift < 35; shift += 7) {
      const uint64_t byte = Byte();
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    return value;
  }
  std::string String(bool compact) {
    const int64_t size = compact ? static_cast<int64_t>(Unsigned()) - 1 : Int(2);
    std::string text;
    for (int64_t i = 0; i < size && at_ < bytes_.size(); ++i) text += static_cast<char>(Byte());
    return text;
  }
  // The length of an array.
  void Array(bool compact) { compact ? static_cast<void>(Unsigned()) : static_cast<void>(Int(4)); }

 private:
  uint64_t Byte() { return at_ < bytes_.size() ? bytes_[at_++] : 0; }
  const std::vector<unsigned char>& bytes_;
  size_t at_;
};

bool Send(int fd, const std::vector<unsigned char>& bytes) {
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t count = send(fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) return false;
    sent += static_cast<size_t>(count);
  }
  return true;
}

// A request or an answer with the four bytes of its size. False: the connection is closed.
bool Receive(int fd, std::vector<unsigned char>& frame) {
  frame.resize(4);
  if (recv(fd, frame.data(), 4, MSG_WAITALL) != 4) return false;
  const auto size = static_cast<size_t>(Reader(frame, 0).Int(4));
  frame.resize(4 + size);
  return recv(fd, frame.data() + 4, size, MSG_WAITALL) == static_cast<ssize_t>(size);
}

// -1: nobody listens there.
int Connect(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Loopback(port);
  if (fd >= 0 && connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
  }
  if (fd >= 0) close(fd);
  return -1;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LateWire>> LateWire::Start() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  if (listener < 0 || bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener, 64) != 0 || getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    const int error = errno;
    if (listener >= 0) close(listener);
    return absl::ErrnoToStatus(error, "listening on 127.0.0.1");
  }
  std::unique_ptr<LateWire> wire(new LateWire(listener, ntohs(address.sin_port)));
  wire->acceptor_ = std::thread([w = wire.get()] { w->Accept(); });
  return wire;
}

LateWire::~LateWire() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    shutdown(listener_, SHUT_RDWR);
    for (const Connection& connection : connections_) {
      shutdown(connection.client, SHUT_RDWR);
      shutdown(connection.server, SHUT_RDWR);
    }
  }
  acceptor_.join();
  for (Connection& connection : connections_) {
    connection.thread.join();
    close(connection.client);
    close(connection.server);
  }
  close(listener_);
}

void LateWire::Forward(int target_port) {
  const std::lock_guard<std::mutex> lock(mutex_);
  target_port_ = target_port;
}

void LateWire::Hold(History history) {
  const std::lock_guard<std::mutex> lock(mutex_);
  history_ = std::move(history);
  stage_ = Stage::kArmed;
  late_answer_ = -1;
}

bool LateWire::is_held() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stage_ >= Stage::kHeld;
}

bool LateWire::is_delivered() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stage_ >= Stage::kDelivered;
}

bool LateWire::is_over() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stage_ == Stage::kOver;
}

int LateWire::late_answer() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return late_answer_;
}

int LateWire::opened() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int>(connections_.size());
}

int LateWire::closed() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return closed_;
}

void LateWire::Accept() {
  for (;;) {
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (client < 0 || stopping_) {
      if (client >= 0) close(client);
      return;
    }
    const int server = Connect(target_port_);
    if (server < 0) {
      close(client);
      continue;
    }
    const int on = 1;
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    Connection& connection = connections_.emplace_back();
    connection.client = client;
    connection.server = server;
    connection.thread = std::thread([this, &connection] { Serve(connection); });
  }
}

void LateWire::Serve(Connection& connection) {
  std::thread answers([&] { PassAnswers(connection); });
  PassRequests(connection);
  answers.join();
  const std::lock_guard<std::mutex> lock(mutex_);
  ++closed_;
}

void LateWire::PassRequests(Connection& connection) {
  Bytes frame;
  while (Receive(connection.client, frame)) {
    const Request request = Parse(frame);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!OnRequest(request, frame)) break;
    connection.unanswered[request.correlation] = request;
    if (!Send(connection.server, frame)) break;
  }
  shutdown(connection.client, SHUT_RDWR);
  shutdown(connection.server, SHUT_RDWR);
}

void LateWire::PassAnswers(Connection& connection) {
  Bytes frame;
  while (Receive(connection.server, frame)) {
    const auto correlation = static_cast<int32_t>(Reader(frame, 4).Int(4));
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto request = connection.unanswered.find(correlation);
      if (request != connection.unanswered.end()) {
        OnAnswer(request->second, frame);
        connection.unanswered.erase(request);
      }
    }
    // Without the lock: a client that is stopped reads nothing.
    if (!Send(connection.client, frame)) break;
  }
  shutdown(connection.client, SHUT_RDWR);
  shutdown(connection.server, SHUT_RDWR);
}

LateWire::Request LateWire::Parse(const Bytes& frame) {
  Reader reader(frame, 4);
  Request request;
  request.kind = static_cast<int16_t>(reader.Int(2));
  request.version = static_cast<int16_t>(reader.Int(2));
  request.correlation = static_cast<int32_t>(reader.Int(4));
  if (Find(request.kind) == nullptr) return request;
  const bool flexible = IsFlexible(request.kind, request.version);
  reader.String(/*compact=*/false);       // the client's id
  if (flexible) (void)reader.Unsigned();  // tagged fields: none
  request.transactional_id = reader.String(flexible);
  if (request.kind == kEndTxn) {
    reader.Int(8);  // the producer's id
    reader.Int(2);  // its epoch
    request.commits = reader.Int(1) != 0;
  }
  return request;
}

int LateWire::ErrorOf(const Request& request, const Bytes& answer) {
  const bool flexible = IsFlexible(request.kind, request.version);
  Reader reader(answer, 8);
  if (flexible) (void)reader.Unsigned();
  if (request.kind != kProduce) reader.Int(4);  // throttled for
  if (request.kind == kTxnOffsetCommit || request.kind == kAddPartitionsToTxn || request.kind == kProduce) {
    // That of the first partition stands for all.
    reader.Array(flexible);
    reader.String(flexible);
    reader.Array(flexible);
    reader.Int(4);
  }
  return static_cast<int>(reader.Int(2));
}

bool LateWire::IsToBeHeld(const Request& request) const {
  if (stage_ != Stage::kArmed || request.transactional_id.empty()) return false;
  switch (history_.held) {
    case Held::kInit:
      return request.kind == kInitProducerId;
    case Held::kProduce:
      return request.kind == kProduce;
    case Held::kAddPartitions:
      return request.kind == kAddPartitionsToTxn;
    case Held::kAddOffsets:
      return request.kind == kAddOffsetsToTxn;
    case Held::kOffsets:
      return request.kind == kTxnOffsetCommit;
    case Held::kCommit:
      return request.kind == kEndTxn && request.commits;
    case Held::kAbort:
      return request.kind == kEndTxn && !request.commits;
  }
  return false;
}

bool LateWire::OnRequest(const Request& request, const Bytes& frame) {
  if (IsToBeHeld(request)) {
    held_ = request;
    held_frame_ = frame;
    stage_ = Stage::kHeld;
    return false;
  }
  if (stage_ == Stage::kEnded && history_.when == When::kBeforeOffsets && request.kind == kAddOffsetsToTxn &&
      request.transactional_id == held_.transactional_id) {
    Deliver();
  }
  return true;
}

void LateWire::OnAnswer(const Request& request, const Bytes& frame) {
  if (stage_ < Stage::kHeld || request.transactional_id != held_.transactional_id) return;
  const bool is_end = request.kind == kEndTxn && ErrorOf(request, frame) == 0;
  if (stage_ == Stage::kHeld && history_.when == When::kAtOnce) {
    if (request.kind == held_.kind && ErrorOf(request, frame) == 0) Deliver();
  } else if (stage_ == Stage::kHeld) {
    if (is_end) stage_ = Stage::kEnded;
  } else if (stage_ == Stage::kEnded) {
    const bool is_time = (history_.when == When::kInTheMiddle && request.kind == kProduce) ||
                         (history_.when == When::kAfterOffsets && request.kind == kTxnOffsetCommit);
    if (is_time) Deliver();
  } else if (stage_ == Stage::kDelivered && is_end) {
    stage_ = Stage::kOver;
    history_.next_end();
  }
}

void LateWire::Deliver() {
  const int broker = Connect(target_port_);
  Bytes answer;
  if (broker >= 0 && Send(broker, held_frame_) && Receive(broker, answer)) {
    late_answer_ = ErrorOf(held_, answer);
  }
  if (broker >= 0) close(broker);
  stage_ = Stage::kDelivered;
  history_.delivered();
}

}  // namespace lethe::test
