// A real Redis server for tests.
#ifndef LETHE_TESTS_SUPPORT_REDIS_SERVER_H_
#define LETHE_TESTS_SUPPORT_REDIS_SERVER_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/support/process.h"

namespace lethe::test {

// Debian's `redis-server`, on 127.0.0.1, with its data in a temporary folder: each write is in its file
// before it is answered. Invariant: its process ends with the object, and with the thread that started it.
// Thread-compatible.
class RedisServer {
 public:
  // `args` as on its command line: {"--requirepass", "secret"}. Returns when it answers.
  static absl::StatusOr<std::unique_ptr<RedisServer>> Start(std::vector<std::string> args = {});
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  int port() const { return port_; }
  Process& process() { return *process_; }
  // SIGKILL.
  void Kill();
  // After Kill(), with the same data and port.
  absl::Status Restart();

  // The elements of its answer, of which a simple one has one; a null is "(nil)". An error reply is an error.
  absl::StatusOr<std::vector<std::string>> Command(const std::vector<std::string>& command) const;
  // A hash whose values are whole numbers, as an application reads it; empty if there is none.
  std::map<std::string, std::string> Hash(const std::string& key) const;

 private:
  RedisServer(std::string folder, int port, std::vector<std::string> args)
      : folder_(std::move(folder)), port_(port), args_(std::move(args)) {}

  const std::string folder_;
  const int port_;
  const std::vector<std::string> args_;
  std::unique_ptr<Process> process_;
};

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_REDIS_SERVER_H_
