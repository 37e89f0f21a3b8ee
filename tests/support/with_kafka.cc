// with_kafka [--oauth] -- PROGRAM [ARGUMENT...]
//
// Starts a Kafka broker, runs the program with every argument `{}` replaced by the broker's address (which is
// also in KAFKA_BROKERS), ends the broker, and returns the program's exit status. With LETHE_KAFKA=newest in
// the environment the broker is the newest one. With --oauth it also listens, at the address in
// KAFKA_OAUTH_BROKERS, to clients with a token of an OAuth server, which gives them at KAFKA_OAUTH_TOKENS for
// ten seconds. It verifies their signature, and wants a token again every four seconds.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tests/support/free_port.h"
#include "tests/support/kafka_broker.h"
#include "tests/support/oauth_server.h"

namespace {

volatile sig_atomic_t child = 0;

// The program decides what a request to end means; the broker is ended after it. A terminal's Ctrl-C has
// reached the program too.
void PassOn(int number) {
  if (child > 0 && number != SIGINT) kill(child, number);
}

// Adds the listener; returns its address.
std::string AddOauth(const std::string& issuer, std::map<std::string, std::string>& properties) {
  std::string address = absl::StrCat("127.0.0.1:", lethe::test::FreePort());
  for (const char* key : {"listeners", "advertised.listeners"}) {
    absl::StrAppend(&properties[key], ",OAUTH://", address);
  }
  properties["listener.security.protocol.map"] += ",OAUTH:SASL_PLAINTEXT";
  properties["listener.name.oauth.sasl.enabled.mechanisms"] = "OAUTHBEARER";
  properties["listener.name.oauth.oauthbearer.sasl.jaas.config"] =
      "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;";
  properties["listener.name.oauth.oauthbearer.sasl.server.callback.handler.class"] =
      "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler";
  properties["sasl.oauthbearer.jwks.endpoint.url"] = issuer + "/jwks";
  properties["sasl.oauthbearer.expected.issuer"] = issuer;
  properties["sasl.oauthbearer.expected.audience"] = "kafka";
  properties["listener.name.oauth.oauthbearer.connections.max.reauth.ms"] = "4000";
  return address;
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "with_kafka: %s\n", status.ToString().c_str());
  return 125;
}

}  // namespace

int main(int argc, char** argv) {
  const bool oauth = argc > 1 && absl::string_view(argv[1]) == "--oauth";
  const int command = oauth ? 3 : 2;
  if (argc <= command || absl::string_view(argv[command - 1]) != "--") {
    std::fprintf(
        stderr,
        "usage: with_kafka [--oauth] -- PROGRAM [ARGUMENT...]   ({} stands for the broker's address)\n");
    return 125;
  }
  lethe::test::KafkaBrokerOptions options;
  std::unique_ptr<lethe::test::OauthServer> oauth_server;
  std::string oauth_address;
  std::string oauth_tokens;
  if (oauth) {
    auto server = lethe::test::OauthServer::Start(absl::Seconds(10));
    if (!server.ok()) return Fail(server.status());
    oauth_server = *std::move(server);
    const std::string& issuer = oauth_server->issuer();
    oauth_tokens = issuer + "/token";
    // The broker asks only there; its Java takes flags from the environment, too.
    setenv("JDK_JAVA_OPTIONS",
           ("-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=" + issuer + "/jwks").c_str(), 1);
    options.adapt = [&](auto& properties) { oauth_address = AddOauth(issuer, properties); };
  }
  absl::StatusOr<std::unique_ptr<lethe::test::KafkaBroker>> broker =
      lethe::test::KafkaBroker::Start(std::move(options));
  if (!broker.ok()) return Fail(broker.status());

  lethe::test::ProcessOptions program;
  program.inherit = true;
  program.env = {{"KAFKA_BROKERS", (*broker)->bootstrap()},
                 {"KAFKA_OAUTH_BROKERS", oauth_address},
                 {"KAFKA_OAUTH_TOKENS", oauth_tokens}};
  for (int i = command; i < argc; ++i) {
    program.args.push_back(absl::string_view(argv[i]) == "{}" ? (*broker)->bootstrap() : argv[i]);
  }
  absl::StatusOr<std::unique_ptr<lethe::test::Process>> process = lethe::test::Process::Start(program);
  if (!process.ok()) return Fail(process.status());
  child = (*process)->pid();
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, PassOn);
  const absl::StatusOr<int> code = (*process)->Wait(absl::InfiniteDuration());
  child = 0;
  if (!code.ok()) return Fail(code.status());
  if (const absl::Status stopped = (*broker)->Stop(); !stopped.ok()) return Fail(stopped);
  return *code;
}
