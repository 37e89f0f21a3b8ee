// Ports for the servers of tests.
#ifndef LETHE_TESTS_SUPPORT_FREE_PORT_H_
#define LETHE_TESTS_SUPPORT_FREE_PORT_H_

#include <netinet/in.h>

namespace lethe::test {

// 127.0.0.1.
sockaddr_in Loopback(int port);

// A port of 127.0.0.1 that is free now, and is given to no other test while this process lives. Below the
// range that the kernel takes for outgoing connections: a client that tries to reach a stopped server there
// could be given the server's port as its own and talk to itself.
int FreePort();

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_FREE_PORT_H_
