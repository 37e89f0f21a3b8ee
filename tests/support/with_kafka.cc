// with_kafka -- PROGRAM [ARGUMENT...]
//
// Starts a Kafka broker, runs the program with every argument `{}` replaced by the broker's address (which is
// also in KAFKA_BROKERS), ends the broker, and returns the program's exit status.
#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "absl/strings/string_view.h"
#include "tests/support/kafka_broker.h"

namespace {

volatile sig_atomic_t child = 0;

// The program decides what a request to end means; the broker is ended after it. A terminal's Ctrl-C has
// reached the program too.
void PassOn(int number) {
  if (child > 0 && number != SIGINT) kill(child, number);
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "with_kafka: %s\n", status.ToString().c_str());
  return 125;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || absl::string_view(argv[1]) != "--") {
    std::fprintf(stderr,
                 "usage: with_kafka -- PROGRAM [ARGUMENT...]   ({} stands for the broker's address)\n");
    return 125;
  }
  absl::StatusOr<std::unique_ptr<lethe::test::KafkaBroker>> broker = lethe::test::KafkaBroker::Start();
  if (!broker.ok()) return Fail(broker.status());

  lethe::test::ProcessOptions program;
  program.inherit = true;
  program.env = {{"KAFKA_BROKERS", (*broker)->bootstrap()}};
  for (int i = 2; i < argc; ++i) {
    program.args.push_back(absl::string_view(argv[i]) == "{}" ? (*broker)->bootstrap() : argv[i]);
  }
  absl::StatusOr<std::unique_ptr<lethe::test::Process>> process = lethe::test::Process::Start(program);
  if (!process.ok()) return Fail(process.status());
  child = (*process)->pid();
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, PassOn);
  const absl::StatusOr<int> code = (*process)->Wait(absl::InfiniteDuration());
  child = 0;
  if (!code.ok()) return Fail(code.status());
  return *code;
}
