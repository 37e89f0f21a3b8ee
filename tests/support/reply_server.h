// A server that sends each client the replies that a test chooses.
#ifndef LETHE_TESTS_SUPPORT_REPLY_SERVER_H_
#define LETHE_TESTS_SUPPORT_REPLY_SERVER_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/string_view.h"

namespace lethe::test {

// On 127.0.0.1. Calls `serve` with one connection after the other, in its thread, and closes it then. The end
// waits for a `serve` that runs, so the client goes first.
class ReplyServer {
 public:
  explicit ReplyServer(std::function<void(int connection)> serve)
      : serve_(std::move(serve)), socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (bind(socket_, any, size) != 0 || listen(socket_, 8) != 0 || getsockname(socket_, any, &size) != 0) {
      std::perror("a server for a test");
      std::abort();
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Serve(); });
  }
  ~ReplyServer() {
    shutdown(socket_, SHUT_RDWR);  // ends accept()
    thread_.join();
    close(socket_);
  }
  ReplyServer(const ReplyServer&) = delete;
  ReplyServer& operator=(const ReplyServer&) = delete;

  int port() const { return port_; }

  // False: the client has closed.
  static bool Send(int connection, absl::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  // Until the client closes.
  static void ReadAll(int connection) {
    char buffer[4096];
    while (recv(connection, buffer, sizeof(buffer), 0) > 0) {
    }
  }

 private:
  void Serve() {
    for (;;) {
      const int connection = accept(socket_, nullptr, nullptr);
      if (connection < 0) return;
      // A reset leaves no port waiting: a fuzzer opens thousands.
      const linger reset = {.l_onoff = 1, .l_linger = 0};
      setsockopt(connection, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
      serve_(connection);
      close(connection);
    }
  }

  const std::function<void(int connection)> serve_;
  const int socket_;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_REPLY_SERVER_H_
