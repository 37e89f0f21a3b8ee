// Any bytes as a request: the server does not crash, what it answers is HTTP, and it still answers then.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/match.h"
#include "connectors/http/http_server.h"

namespace {

// Ends the target, and says what the system refused.
[[noreturn]] void Refused(const char* what) {
  std::perror(what);
  std::abort();
}

// The server's answer. Each input opens a connection, tens of thousands in a few seconds. The side that
// closes first keeps the port in TIME_WAIT for a minute, and the ports would run out: so the client lets the
// server close first, and then resets the connection.
std::string Ask(int port, const std::string& request) {
  const int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (peer < 0) Refused("socket");
  const linger reset = {.l_onoff = 1, .l_linger = 0};
  const timeval silence = {.tv_sec = 0, .tv_usec = 100'000};
  if (setsockopt(peer, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) != 0) Refused("SO_LINGER");
  if (setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof(silence)) != 0) Refused("SO_RCVTIMEO");
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  // The fuzzer's alarm interrupts any of these calls; an interrupted connect goes on by itself.
  while (connect(peer, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 && errno != EISCONN) {
    if (errno != EINTR && errno != EALREADY) Refused("connect");
  }
  // The server waits for the rest of an incomplete request. The blank line completes the headers; if a body
  // is missing, the end of the stream after the silence ends the wait.
  const std::string whole = request + "\r\n\r\n";
  std::string answer;
  char buffer[4096];
  ssize_t size = 0;
  do {
    size = send(peer, whole.data(), whole.size(), MSG_NOSIGNAL);
  } while (size < 0 && errno == EINTR);
  while (size > 0 || (size < 0 && (errno == EAGAIN || errno == EINTR))) {
    size = recv(peer, buffer, sizeof(buffer), 0);
    if (size > 0) answer.append(buffer, static_cast<size_t>(size));
    if (size < 0 && errno == EAGAIN) shutdown(peer, SHUT_WR);
  }
  close(peer);
  return answer;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto* server =
      new auto(*lethe::http::HttpServer::Start("127.0.0.1:0", {{"/", [](const lethe::http::HttpQuery& query) {
                                                                  lethe::http::HttpResponse response;
                                                                  for (const auto& [name, value] : query) {
                                                                    response.body +=
                                                                        name + "=" + value + "\n";
                                                                  }
                                                                  return response;
                                                                }}}));
  const std::string text(reinterpret_cast<const char*>(data), size);
  lethe::http::AnswersTo({"127.0.0.1", 9464}, text);
  lethe::http::HttpAddress::Parse(text).IgnoreError();
  const std::string answer = Ask((*server)->port(), "GET /" + text);
  if (!answer.empty() && !absl::StartsWith(answer, "HTTP/1.")) {
    std::fprintf(stderr, "no HTTP: %s\n", answer.c_str());
    std::abort();
  }
  // Some requests are closed without an answer. The next request must still have one.
  if (answer.empty() &&
      !absl::StartsWith(Ask((*server)->port(), "GET / HTTP/1.1\r\nHost: 127.0.0.1"), "HTTP/1.1 200")) {
    std::fprintf(stderr, "the server does not answer any more\n");
    std::abort();
  }
  return 0;
}
