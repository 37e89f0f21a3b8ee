// counter_batches redis|redis-single|cassandra|nothing PORT PAIRS SEED
//
// Figure 15: sends batches of 50 counter updates to a store on 127.0.0.1, in pairs, one through the filter
// and one without it, in random order. Prints a line for each pair: the nanoseconds of the batch without the
// filter, of that with it, and what of these was spent in the filter. With `nothing` for a store, what the
// filter takes when the processor's caches hold it.
//
// The filter holds a million ids before the first batch. All updates are new ones, so that both batches carry
// the same 50: what the filter saves the store where it drops copies is not counted.
#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lethe/stage.h"

namespace lethe::lab {
namespace {

constexpr size_t kBatch = 50;
constexpr size_t kWarmUp = 300;  // pairs that are not printed: the store compiles its code
constexpr int64_t kHeldIds = 1'000'000;
constexpr uint64_t kPages = 1000;

struct Update {
  std::string id;
  std::string page;
};

[[noreturn]] void Fail(const std::string& why) {
  std::cerr << "counter_batches: " << why << std::endl;
  std::exit(1);
}

class Store {
 public:
  virtual ~Store() = default;
  // Returns when the store has acknowledged all updates.
  virtual void Increment(const std::vector<const Update*>& updates) = 0;
};

class Nothing : public Store {
 public:
  void Increment(const std::vector<const Update*>&) override {}
};

// INCRBY, all in one pipeline or each after the answer to the one before.
class Redis : public Store {
 public:
  Redis(int port, bool pipeline) : pipeline_(pipeline), context_(redisConnect("127.0.0.1", port)) {
    if (context_ == nullptr || context_->err != 0) Fail("cannot connect to Redis");
  }
  ~Redis() override { redisFree(context_); }

  void Increment(const std::vector<const Update*>& updates) override {
    for (const Update* update : updates) {
      redisAppendCommand(context_, "INCRBY batches:%b 1", update->page.data(), update->page.size());
      if (!pipeline_) AwaitAnswer();
    }
    for (size_t i = 0; pipeline_ && i < updates.size(); ++i) AwaitAnswer();
  }

 private:
  void AwaitAnswer() {
    redisReply* reply = nullptr;
    if (redisGetReply(context_, reinterpret_cast<void**>(&reply)) != REDIS_OK) Fail(context_->errstr);
    if (reply->type != REDIS_REPLY_INTEGER) Fail(std::string(reply->str, reply->len));
    freeReplyObject(reply);
  }

  const bool pipeline_;
  redisContext* const context_;
};

// One counter batch of a prepared statement, with QUORUM. Speaks as much of CQL's binary protocol, version 4,
// as that takes: a driver's own time would hide the filter's.
class Cassandra : public Store {
 public:
  explicit Cassandra(int port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int on = 1;
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      Fail("cannot connect to Cassandra");
    Call(kStartup, absl::StrCat(Int<uint16_t>(1), Short("CQL_VERSION"), Short("3.0.0")));
    const std::string update = "UPDATE lab.batches SET n = n + 1 WHERE page = ?";
    const std::string prepared = Call(kPrepare, Int<uint32_t>(update.size()) + update);
    // The kind of the result, and the statement's id.
    const size_t size = Number(prepared.substr(4, 2));
    statement_ = prepared.substr(4, 2 + size);
  }
  ~Cassandra() override { close(socket_); }

  void Increment(const std::vector<const Update*>& updates) override {
    std::string batch = absl::StrCat(std::string(1, kCounterBatch), Int<uint16_t>(updates.size()));
    for (const Update* update : updates) {
      absl::StrAppend(&batch, std::string(1, kPrepared), statement_, Int<uint16_t>(1),
                      Int<uint32_t>(update->page.size()), update->page);
    }
    absl::StrAppend(&batch, Int<uint16_t>(kQuorum), std::string(1, '\0'));
    Call(kBatchRequest, batch);
  }

 private:
  static constexpr char kStartup = 1, kPrepare = 9, kBatchRequest = 13;  // opcodes
  static constexpr char kError = 0;
  static constexpr char kCounterBatch = 2, kPrepared = 1;
  static constexpr uint16_t kQuorum = 4;

  template <typename T>
  static std::string Int(uint64_t value) {
    std::string bytes(sizeof(T), '\0');
    for (size_t i = sizeof(T); i-- > 0; value >>= 8) bytes[i] = static_cast<char>(value & 0xff);
    return bytes;
  }
  static size_t Number(const std::string& bytes) {
    size_t number = 0;
    for (const char byte : bytes) number = number << 8 | static_cast<unsigned char>(byte);
    return number;
  }
  static std::string Short(const std::string& text) { return Int<uint16_t>(text.size()) + text; }

  // The body of the answer.
  std::string Call(char opcode, const std::string& body) {
    const std::string frame =
        absl::StrCat(std::string({4, 0, 0, 0, opcode}), Int<uint32_t>(body.size()), body);
    for (size_t sent = 0; sent < frame.size();) {
      const ssize_t n = send(socket_, frame.data() + sent, frame.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) Fail("Cassandra has closed the connection");
      sent += static_cast<size_t>(n);
    }
    const std::string header = Read(9);
    std::string answer = Read(Number(header.substr(5, 4)));
    if (header[4] == kError) Fail("Cassandra: " + answer.substr(6));
    return answer;
  }

  std::string Read(size_t size) {
    std::string bytes(size, '\0');
    if (size > 0 && recv(socket_, bytes.data(), size, MSG_WAITALL) != static_cast<ssize_t>(size))
      Fail("Cassandra has closed the connection");
    return bytes;
  }

  const int socket_;
  std::string statement_;
};

// New ids, one each 3.6 ms of stream time: a million in an hour.
class Clients {
 public:
  explicit Clients(uint64_t seed) : random_(seed) {}

  Update Next() {
    time_ += absl::Microseconds(3600);
    return {absl::StrCat("client-", random_() % 100, "-", next_++),
            absl::StrCat("page-", random_() % kPages)};
  }
  absl::Time time() const { return time_; }

 private:
  std::mt19937_64 random_;
  int64_t next_ = 0;
  absl::Time time_ = absl::FromUnixSeconds(1'750'000'000);
};

int64_t Now() { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

void Run(Store& store, size_t pairs, uint64_t seed) {
  const auto stage = DedupStage::Create({.horizon = absl::Hours(24), .target_fpp = 1e-6});
  if (!stage.ok()) Fail(stage.status().ToString());
  const auto filter = (*stage)->Open("batches");
  if (!filter.ok()) Fail(filter.status().ToString());
  Clients clients(seed);
  for (int64_t i = 0; i < kHeldIds; ++i) {
    const std::string id = clients.Next().id;
    if (const auto verdict = (*filter)->Judge(id, clients.time()); !verdict.ok())
      Fail(verdict.status().ToString());
  }

  std::array<Event, kBatch> events;
  std::array<Verdict, kBatch> verdicts;
  std::mt19937_64 random(seed);
  for (size_t pair = 0; pair < kWarmUp + pairs; ++pair) {
    int64_t without = 0;
    int64_t with = 0;
    int64_t in_filter = 0;
    const bool filter_first = random() % 2 == 0;
    for (const bool use_filter : {filter_first, !filter_first}) {
      std::vector<Update> updates;
      for (size_t i = 0; i < kBatch; ++i) updates.push_back(clients.Next());
      std::vector<const Update*> to_store;
      to_store.reserve(kBatch);
      const int64_t begin = Now();
      if (use_filter) {
        for (size_t i = 0; i < kBatch; ++i)
          events[i] = {.id = (*filter)->Hash(updates[i].id), .time = clients.time()};
        if (const absl::Status judged = (*filter)->Judge(events, absl::MakeSpan(verdicts)); !judged.ok())
          Fail(judged.ToString());
        for (size_t i = 0; i < kBatch; ++i) {
          if (verdicts[i] == Verdict::kUnique) to_store.push_back(&updates[i]);
        }
        in_filter = Now() - begin;
      } else {
        for (const Update& update : updates) to_store.push_back(&update);
      }
      store.Increment(to_store);
      (use_filter ? with : without) = Now() - begin;
    }
    if (pair >= kWarmUp) std::cout << without << "," << with << "," << in_filter << "\n";
  }
}

}  // namespace
}  // namespace lethe::lab

int main(int argc, char** argv) {
  const std::string kind = argc == 5 ? argv[1] : "";
  const int port = argc == 5 ? std::atoi(argv[2]) : 0;
  std::unique_ptr<lethe::lab::Store> store;
  if (kind == "redis" || kind == "redis-single") {
    store = std::make_unique<lethe::lab::Redis>(port, /*pipeline=*/kind == "redis");
  } else if (kind == "cassandra") {
    store = std::make_unique<lethe::lab::Cassandra>(port);
  } else if (kind == "nothing") {
    store = std::make_unique<lethe::lab::Nothing>();
  } else {
    std::cerr << "usage: counter_batches redis|redis-single|cassandra|nothing PORT PAIRS SEED" << std::endl;
    return 2;
  }
  lethe::lab::Run(*store, std::strtoull(argv[3], nullptr, 0), std::strtoull(argv[4], nullptr, 0));
}
