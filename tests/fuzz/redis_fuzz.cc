// Any bytes as the answers of a Redis: nothing crashes, and no position is negative.
#include <sys/socket.h>

#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string>

#include "connectors/redis/redis_store.h"
#include "tests/support/reply_server.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using lethe::test::ReplyServer;
  static std::mutex mutex;
  static std::string answers;
  static auto* const server = new ReplyServer([](int connection) {
    std::string bytes;
    {
      const std::lock_guard<std::mutex> lock(mutex);
      bytes = answers;
    }
    ReplyServer::Send(connection, bytes);
    shutdown(connection, SHUT_WR);
    ReplyServer::ReadAll(connection);
  });
  {
    const std::lock_guard<std::mutex> lock(mutex);
    answers.assign(reinterpret_cast<const char*>(data), size);
  }
  lethe::redis::RedisStore store(
      {.address = {.user = "", .host = "127.0.0.1", .port = server->port(), .database = 1},
       .password = "secret",
       .totals = "totals",
       .input = "input"});
  const auto positions = store.Positions({0, 1});
  if (!positions.ok()) return 0;
  if (positions->size() != 2 || (*positions)[0] < 0 || (*positions)[1] < 0) std::abort();
  const auto stored = store.Apply({{0, 0, 1, {{"a", 1}}}, {1, 0, 1, {}}});
  if (stored.ok() && (stored->size() != 2 || (*stored)[0] < 0)) std::abort();
  return 0;
}
