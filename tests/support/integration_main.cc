// The main function of the integration tests: GoogleTest's, with the shared broker's life around it.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/support/shared_broker.h"
#include "tests/support/tcp_proxy.h"

namespace lethe::test {
namespace {

// What ctest is told to take for "skipped". Without it a program whose tests skip would look as if it had
// tested something.
constexpr int kSkipped = 77;

struct Shared {
  KafkaBrokerOptions options;
  std::unique_ptr<TcpProxy> proxy;
  int proxy_port = 0;
  std::unique_ptr<KafkaBroker> broker;
  std::unique_ptr<KafkaClient> client;
};
Shared& Instance() {
  static Shared shared;
  return shared;
}

template <typename T>
T OrExit(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
  std::exit(1);
}

class BrokerEnvironment : public testing::Environment {
 public:
  void TearDown() override {
    Shared& shared = Instance();
    if (shared.broker != nullptr && testing::UnitTest::GetInstance()->Failed()) {
      std::fprintf(stderr, "The end of the shared broker's log:\n%s\n", shared.broker->LogTail().c_str());
    }
    shared.client.reset();
    shared.broker.reset();
    shared.proxy.reset();
  }
};

}  // namespace

KafkaBroker& SharedBroker() {
  Shared& shared = Instance();
  if (shared.broker == nullptr) {
    shared.proxy = OrExit(TcpProxy::Start());
    shared.proxy_port = OrExit(shared.proxy->Listen());
    KafkaBrokerOptions options = shared.options;
    options.proxied.emplace_back("WIRE", shared.proxy_port);
    shared.broker = OrExit(KafkaBroker::Start(std::move(options)));
    shared.proxy->Forward(shared.proxy_port, shared.broker->port("WIRE"));
  }
  return *shared.broker;
}

void SetSharedBrokerOptions(KafkaBrokerOptions options) { Instance().options = std::move(options); }

SharedWireToBroker SharedWire() {
  SharedBroker();
  return {*Instance().proxy, absl::StrCat("127.0.0.1:", Instance().proxy_port)};
}

KafkaClient& SharedClient() {
  Shared& shared = Instance();
  if (shared.client == nullptr) shared.client = OrExit(KafkaClient::Connect(SharedBroker().bootstrap()));
  return *shared.client;
}

std::string UniqueName(const std::string& stem) {
  static int count = 0;
  return absl::StrCat(stem, "-", ++count);
}

}  // namespace lethe::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::AddGlobalTestEnvironment(new lethe::test::BrokerEnvironment);
  const int result = RUN_ALL_TESTS();
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  if (result == 0 && all.skipped_test_count() + all.reportable_disabled_test_count() > 0) {
    return lethe::test::kSkipped;
  }
  return result;
}
