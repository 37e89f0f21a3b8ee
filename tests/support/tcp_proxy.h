// A wire that can be cut: what stands between a client and its brokers when the network is to fail.
#ifndef LETHE_TESTS_SUPPORT_TCP_PROXY_H_
#define LETHE_TESTS_SUPPORT_TCP_PROXY_H_

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace lethe::test {

// Forwards TCP connections on 127.0.0.1, on any number of ports, all with the same faults. A thread of its
// own does it. Invariant: bytes arrive in order and unchanged, or the connection is closed before the first
// one that is missing. Thread-safe.
class TcpProxy {
 public:
  static absl::StatusOr<std::unique_ptr<TcpProxy>> Start();
  ~TcpProxy();
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  // A port that is listened on from now on. Until Forward() says where it leads, connections wait.
  absl::StatusOr<int> Listen();
  void Forward(int port, int target_port);

  // Resets every present connection. New ones are served.
  void Cut();
  // What is read from now on is passed on so much later, in both directions.
  void SetDelay(absl::Duration delay);
  // Each connection passes on at most so many bytes a second, in each direction. 0: as many as there are.
  void SetBytesPerSecond(int64_t rate);
  // Nothing is passed on, in either direction, and nothing is lost: it comes when the stall ends.
  void SetStalled(bool stalled);
  // The same for the connections of Kafka's producers only: those on which a Produce request was sent.
  void SetStallingProducers(bool stalling);
  // What the servers answer is thrown away: requests arrive, and the client does not learn of it. Connections
  // that lost something are reset when that ends, at the latest.
  void SetLosingReplies(bool losing);
  // The same from the next request of this kind on, whose answer is the first to be lost. Kinds are those of
  // Kafka's protocol.
  static constexpr int kAddOffsetsToTransaction = 25;
  static constexpr int kEndTransaction = 26;
  void LoseRepliesFrom(int request);

  int64_t lost_bytes() const;  // of replies
  // Of replies, on the connections that there are.
  int64_t passed_bytes() const;

 private:
  // What flows one way on a connection.
  struct Chunk {
    absl::Time due;
    std::vector<char> bytes;
    size_t sent = 0;
  };
  struct Flow {
    std::list<Chunk> chunks;
    size_t bytes = 0;
    int64_t passed = 0;
    bool read_closed = false;
    bool write_closed = false;
    absl::Time free_at = absl::InfinitePast();  // of what was read so far, at the limited rate
  };
  struct Connection {
    int client = -1;
    int server = -1;
    bool connecting = true;
    bool lost = false;  // a reply was thrown away
    bool produces = false;
    std::vector<unsigned char> header;  // of the request that is being read, as far as it is needed
    size_t request_left = 0;            // of what follows the header
    Flow up;                            // from the client
    Flow down;
  };
  struct Route {
    int listener = -1;
    int target_port = 0;
  };

  explicit TcpProxy(int wake) : wake_(wake) {}
  void Run();
  void Wake();
  void Accept(const Route& route);
  // False: the connection is over.
  bool Serve(Connection& connection, bool client_ready, bool server_ready);
  bool Read(Connection& connection, bool from_client);
  bool Write(Flow& flow, int to, absl::Time now) const;
  bool IsStalled(const Connection& connection) const {
    return stalled_ || (stalling_producers_ && connection.produces);
  }
  size_t MaxBuffered() const;
  void FollowRequests(Connection& connection, const std::vector<char>& bytes);
  static void Close(Connection& connection, bool reset);

  const int wake_;
  mutable std::mutex mutex_;
  bool stopping_ = false;        // guarded by mutex_, as all below
  bool changed_ = false;         // since the thread last looked
  std::map<int, Route> routes_;  // by port
  std::list<Connection> connections_;
  absl::Duration delay_ = absl::ZeroDuration();
  int64_t bytes_per_second_ = 0;
  bool stalled_ = false;
  bool stalling_producers_ = false;
  bool losing_ = false;
  std::optional<int> lose_from_;
  int64_t lost_bytes_ = 0;
  std::thread thread_;
};

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_TCP_PROXY_H_
