// Any bytes as a request: the server does not crash, what it answers is HTTP, and it still answers then.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/match.h"
#include "connectors/http/http_server.h"

namespace {

std::string Ask(int port, const std::string& request) {
  const int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(peer, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) std::abort();
  // What is no whole request would be waited for: the blank line ends it.
  const std::string whole = request + "\r\n\r\n";
  const ssize_t sent = send(peer, whole.data(), whole.size(), MSG_NOSIGNAL);
  shutdown(peer, SHUT_WR);
  std::string answer;
  char buffer[4096];
  for (ssize_t size = 0; sent > 0 && (size = recv(peer, buffer, sizeof(buffer), 0)) > 0;) {
    answer.append(buffer, static_cast<size_t>(size));
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
  return 0;
}
