// A wire on which one request comes late: what a slow network, or a queue of a broker, does to a producer.
#ifndef LETHE_TESTS_SUPPORT_LATE_WIRE_H_
#define LETHE_TESTS_SUPPORT_LATE_WIRE_H_

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace lethe::test {

// Forwards the connections of one port on 127.0.0.1 to a broker, request by request. It can hold one request
// of a transactional producer: it keeps the bytes and closes the connection, so that the client sends the
// request again on a new one and is answered. Later it delivers the kept bytes on a connection of its own.
// Nothing is forged: brokers cannot tell this from a network that was slow. Thread-safe.
class LateWire {
 public:
  enum class Held { kInit, kProduce, kAddPartitions, kAddOffsets, kOffsets, kCommit, kAbort };
  enum class When {
    kAtOnce,  // when the request that was sent again is answered
    // In the next transaction of the same transactional id, that is, after the answer to an EndTxn:
    kInTheMiddle,    // when a Produce of it was answered
    kBeforeOffsets,  // before its AddOffsetsToTxn
    kAfterOffsets,   // when its TxnOffsetCommit was answered
  };
  struct History {
    Held held = Held::kCommit;
    When when = When::kAtOnce;
    std::function<void()> delivered = [] {};  // at once, before anything else passes
    std::function<void()> next_end = [] {};   // when the broker has answered the next EndTxn after that
  };

  static absl::StatusOr<std::unique_ptr<LateWire>> Start();
  ~LateWire();
  LateWire(const LateWire&) = delete;
  LateWire& operator=(const LateWire&) = delete;

  int port() const { return port_; }
  // Where the connections from now on lead.
  void Forward(int target_port);

  // The next such request is held, and the history takes its course.
  void Hold(History history);
  bool is_held() const;       // it is, or was
  bool is_delivered() const;  // late
  bool is_over() const;       // the next EndTxn was answered, too
  // How the broker answered the late request: 0, or an error of Kafka's protocol.
  int late_answer() const;

  // Connections that clients have made, and those of them that are closed.
  int opened() const;
  int closed() const;

 private:
  using Bytes = std::vector<unsigned char>;
  enum class Stage { kIdle, kArmed, kHeld, kEnded, kDelivered, kOver };
  struct Request {
    int16_t kind = -1;
    int16_t version = 0;
    int32_t correlation = 0;
    std::string transactional_id;  // of a producer's; otherwise empty
    bool commits = false;          // an EndTxn
  };
  struct Connection {
    int client = -1;
    int server = -1;
    std::map<int32_t, Request> unanswered;  // by correlation
    std::thread thread;
  };

  LateWire(int listener, int port) : listener_(listener), port_(port) {}
  void Accept();
  void Serve(Connection& connection);
  void PassRequests(Connection& connection);
  void PassAnswers(Connection& connection);
  // False: it is held.
  bool OnRequest(const Request& request, const Bytes& frame);
  void OnAnswer(const Request& request, const Bytes& frame);
  bool IsToBeHeld(const Request& request) const;
  void Deliver();
  static Request Parse(const Bytes& frame);
  static int ErrorOf(const Request& request, const Bytes& answer);

  const int listener_;
  const int port_;
  mutable std::mutex mutex_;
  int target_port_ = 0;  // guarded by mutex_, as all below
  bool stopping_ = false;
  std::list<Connection> connections_;
  Stage stage_ = Stage::kIdle;
  History history_;
  Request held_;
  Bytes held_frame_;
  int late_answer_ = -1;
  int closed_ = 0;
  std::thread acceptor_;
};

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_LATE_WIRE_H_
