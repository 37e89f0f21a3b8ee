#include "tests/support/oauth_server.h"

#include <httplib.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/support/free_port.h"
#include "tests/support/kafka_client.h"

namespace lethe::test {
namespace {

constexpr absl::Duration kOauthStartTimeout = absl::Minutes(1);

}  // namespace

absl::StatusOr<std::unique_ptr<OauthServer>> OauthServer::Start(absl::Duration expiry) {
  const int port = FreePort();
  const nlohmann::json claims = {{"sub", "lethe"}, {"aud", {"kafka"}}, {"scope", "kafka"}};
  const nlohmann::json grant = {
      {"requestParam", "grant_type"}, {"match", "client_credentials"}, {"claims", claims}};
  const nlohmann::json callback = {{"issuerId", "lethe"},
                                   {"tokenExpiry", absl::ToInt64Seconds(expiry)},
                                   {"requestMappings", nlohmann::json::array({grant})}};
  const nlohmann::json config = {{"tokenCallbacks", nlohmann::json::array({callback})}};
  ProcessOptions options;
  options.args = {"java",
                  "-Xmx128m",
                  "-XX:TieredStopAtLevel=1",
                  "-XX:+UseSerialGC",
                  "-cp",
                  LETHE_OAUTH_LIBS "/*",
                  "no.nav.security.mock.oauth2.StandaloneMockOAuth2ServerKt"};
  options.env = {
      {"SERVER_HOSTNAME", "127.0.0.1"}, {"SERVER_PORT", absl::StrCat(port)}, {"JSON_CONFIG", config.dump()}};
  absl::StatusOr<std::unique_ptr<Process>> process = Process::Start(options);
  if (!process.ok()) return process.status();

  const std::string address = absl::StrCat("http://127.0.0.1:", port);
  httplib::Client client(address);
  const bool ready = WaitUntil(
      [&] {
        const httplib::Result keys = client.Get("/lethe/jwks");
        return !(*process)->Running() || (keys && keys->status == 200);
      },
      kOauthStartTimeout);
  if (!ready || !(*process)->Running()) {
    return absl::InternalError(absl::StrCat("the OAuth server does not answer: ", (*process)->Stderr()));
  }
  return std::unique_ptr<OauthServer>(new OauthServer(*std::move(process), address + "/lethe"));
}

}  // namespace lethe::test
