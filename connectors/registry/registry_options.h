// Where a schema registry is, and how lethe speaks to it.
#ifndef LETHE_CONNECTORS_REGISTRY_REGISTRY_OPTIONS_H_
#define LETHE_CONNECTORS_REGISTRY_REGISTRY_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lethe::registry {

struct RegistryOptions {
  // Of one registry, without a slash at the end; empty: there is none. lethe asks the next one where one does
  // not answer.
  std::vector<std::string> urls;
  std::string user;  // with `password`: basic authentication
  std::string password;
  std::string token;                           // bearer authentication
  std::string ca_file;                         // PEM; empty: the system's authorities
  absl::Duration timeout = absl::Seconds(10);  // of one request
  std::string folder;                          // keeps schemas across restarts; empty: none does

  // How long lethe asks for the first schema that the registry does not have, before its records are
  // malformed: a follower may lag behind. Each further one gets half of what is left of twice this; all of it
  // has come back after twenty minutes. Shorter in tests, as are the others.
  absl::Duration patience = absl::Seconds(30);
  // Then, of a schema that was expected: the registry is asked so long after its first record was seen.
  absl::Duration expected_after = absl::Seconds(1);
  absl::Duration remembers_unknown = absl::Minutes(1);
  double most_misses = 100;  // requests that find nothing: so many a second, and at once
  // SchemaFigures::waiting is the most of this time: a look at it must not miss short waits in a row.
  absl::Duration shows_waiting = absl::Seconds(5);
  absl::Duration first_pause = absl::Milliseconds(250);  // after a failed request; then twice as long,
  absl::Duration longest_pause = absl::Seconds(5);       // up to this
};

// One or several URLs, joined with commas. InvalidArgument says the expected form, without the text, which
// may hold a password.
absl::StatusOr<std::vector<std::string>> ParseUrls(absl::string_view text);
// The first URL by which a password or a token leaves this machine unencrypted; empty: none does.
std::string UrlThatShowsSecret(const RegistryOptions& options);

}  // namespace lethe::registry

#endif  // LETHE_CONNECTORS_REGISTRY_REGISTRY_OPTIONS_H_
