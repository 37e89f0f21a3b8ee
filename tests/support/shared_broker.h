// The broker that all tests of one program share. Each test takes topics and groups of its own.
#ifndef LETHE_TESTS_SUPPORT_SHARED_BROKER_H_
#define LETHE_TESTS_SUPPORT_SHARED_BROKER_H_

#include <string>

#include "tests/support/kafka_broker.h"
#include "tests/support/kafka_client.h"
#include "tests/support/tcp_proxy.h"

namespace lethe::test {

// Started at the first call, ended after the last test; the program ends if it cannot be started. To be
// called from the program's main thread.
KafkaBroker& SharedBroker();
// What it is started with; before the first call of SharedBroker.
void SetSharedBrokerOptions(KafkaBrokerOptions options);
KafkaClient& SharedClient();

// Another way to it, for one whose connections are to fail.
struct SharedWireToBroker {
  TcpProxy& proxy;
  std::string bootstrap;
};
SharedWireToBroker SharedWire();

// A name for a topic or a group that no other test uses.
std::string UniqueName(const std::string& stem);

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_SHARED_BROKER_H_
