#include "tests/support/free_port.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"

namespace lethe::test {
namespace {

bool CanBind(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Loopback(port);
  const bool bound = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return bound;
}

// Until the process ends no other that asks here is given the port: a server that is killed and starts again
// is to find it free. The mark is a name in the abstract namespace of Unix sockets, which the kernel takes
// back itself.
bool Mark(int port) {
  const std::string name = absl::StrCat("lethe/test-port/", port);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), length) == 0) return true;
  close(fd);
  return false;
}

}  // namespace

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int FreePort() {
  std::random_device random;
  std::uniform_int_distribution<int> candidates(15'000, 32'000);
  int port = candidates(random);
  while (!CanBind(port) || !Mark(port)) port = candidates(random);
  return port;
}

}  // namespace lethe::test
