// Keeps the totals of a counter in Redis.
#ifndef LETHE_CONNECTORS_REDIS_REDIS_STORE_H_
#define LETHE_CONNECTORS_REDIS_REDIS_STORE_H_

#include <hiredis/hiredis.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "connectors/redis/redis_address.h"
#include "src/counters/counter_store.h"

namespace lethe::redis {

struct RedisStoreOptions {
  RedisAddress address;
  std::string password;  // empty: none is needed
  std::string totals;    // the topic of totals
  std::string input;     // the input's topic, whose partitions have the totals
};

// README.md has the keys. Each batch is one call of a script, which Redis runs atomically; batches are
// pipelined. Blocks SIGPIPE in its thread, since hiredis writes to connections that may be closed. Used by
// one thread, but for Interrupt.
class RedisStore : public CounterStore {
 public:
  explicit RedisStore(RedisStoreOptions options);

  const std::string& name() const override { return name_; }
  std::string ResetCommand() const override;
  void Interrupt() override { interrupted_ = true; }
  absl::StatusOr<std::vector<int64_t>> Positions(const std::vector<int32_t>& partitions) override;
  absl::StatusOr<std::vector<int64_t>> Apply(const std::vector<StoreBatch>& batches) override;

 private:
  struct Free {
    void operator()(redisContext* context) const { redisFree(context); }
    void operator()(redisReply* reply) const { freeReplyObject(reply); }
  };
  using Reply = std::unique_ptr<redisReply, Free>;

  // Connects and prepares the connection, if needed.
  absl::Status Connect();
  absl::Status KeepsKeys();
  absl::Status Append(const std::vector<absl::string_view>& command);
  // Waits until the connection can be read or written, for as long as nobody interrupts.
  absl::Status AwaitTurn(int events, absl::Time deadline, absl::string_view doing);
  // What was appended.
  absl::Status Send();
  // Of the next command in the pipeline: of hiredis' type, and an array of so many elements. An error reply
  // is an error. The server may be no Redis, so lethe bounds type, size and time.
  absl::StatusOr<Reply> NextReply(int type, size_t elements = 0);
  absl::StatusOr<Reply> Call(const std::vector<absl::string_view>& command, int type, size_t elements = 0);
  // These close the connection.
  absl::Status NoAnswer(absl::string_view doing);
  absl::Status NoRedis(absl::string_view doing);
  // Closes the connection, and returns its last error.
  absl::Status Lost(absl::string_view doing);
  absl::Status Refused(absl::string_view reply) const;
  absl::StatusOr<int64_t> PositionOf(const redisReply& reply) const;
  std::string PartitionName(int32_t partition) const;

  const RedisStoreOptions options_;
  const std::string name_;
  const std::string values_;     // the keys, see README.md
  const std::string positions_;  // likewise
  const std::string counts_;     // likewise
  std::unique_ptr<redisContext, Free> context_;
  size_t most_elements_ = 0;  // of the reply that is waited for
  std::atomic<bool> interrupted_{false};
  std::string positions_script_;  // its hash in Redis
  std::string script_;            // likewise
};

}  // namespace lethe::redis

#endif  // LETHE_CONNECTORS_REDIS_REDIS_STORE_H_
