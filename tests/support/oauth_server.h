// A real OAuth server for tests: it signs tokens for client credentials, which brokers verify by its keys.
#ifndef LETHE_TESTS_SUPPORT_OAUTH_SERVER_H_
#define LETHE_TESTS_SUPPORT_OAUTH_SERVER_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/support/process.h"

namespace lethe::test {

// Ends with the object. Thread-compatible.
class OauthServer {
 public:
  // Its tokens, for the audience "kafka", expire after so long. Returns when it answers.
  static absl::StatusOr<std::unique_ptr<OauthServer>> Start(absl::Duration expiry);

  // What its tokens say who gave them; clients get them at /token below it, brokers its keys at /jwks.
  const std::string& issuer() const { return issuer_; }

 private:
  OauthServer(std::unique_ptr<Process> process, std::string issuer)
      : process_(std::move(process)), issuer_(std::move(issuer)) {}

  std::unique_ptr<Process> process_;
  std::string issuer_;
};

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_OAUTH_SERVER_H_
