#include "connectors/kafka/client/fixed_properties.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace lethe::kafka {
namespace {

constexpr absl::string_view kUseBrokers = "set 'brokers' instead";
constexpr absl::string_view kOffsetsInTransaction =
    "offsets are committed in the transaction of their records, and nowhere else";
constexpr absl::string_view kStart =
    "lethe itself decides where a partition without a committed offset starts; set 'start' instead";
constexpr absl::string_view kClassic =
    "lethe uses the classic protocol, in which members assign partitions; set 'assignment' instead";
constexpr absl::string_view kAcks = "an output record counts as written when all in-sync replicas have it";

// Includes the synonyms in librdkafka's CONFIGURATION.md, which would set the same.
constexpr FixedProperty kFixed[] = {
    {"bootstrap.servers", kUseBrokers},
    {"metadata.broker.list", kUseBrokers},
    {"group.id", "set 'group' instead"},
    {"transactional.id", "lethe builds it from group, instance and lane; set 'instance' instead"},
    {"partition.assignment.strategy", "set 'assignment' to eager or cooperative instead"},
    {"group.protocol", kClassic},
    {"group.remote.assignor", kClassic},
    {"group.instance.id", "each lane is a member with a name of its own; set 'static_membership' instead"},
    {"isolation.level",
     "the input is read with read_committed: only then does an offset fetch wait for pending commits"},
    {"enable.auto.commit", kOffsetsInTransaction},
    {"auto.commit.enable", kOffsetsInTransaction},
    {"enable.auto.offset.store", kOffsetsInTransaction},
    {"auto.offset.reset", kStart},
    {"enable.idempotence", "without it the producer's own retries would write duplicates"},
    {"acks", kAcks},
    {"request.required.acks", kAcks},
    {"enable.partition.eof", "lethe needs the end-of-partition events itself"},
};

}  // namespace

absl::Span<const FixedProperty> FixedProperties() { return kFixed; }

std::optional<absl::string_view> WhyFixed(absl::string_view property) {
  for (const FixedProperty& fixed : kFixed) {
    if (fixed.name == property) return fixed.reason;
  }
  return std::nullopt;
}

bool IsSecret(absl::string_view property) {
  if (absl::EndsWith(property, ".url")) return false;  // of an OAuth server's tokens
  for (absl::string_view word : {"password", "secret", "key", "jaas", "token", "oauthbearer.config"}) {
    if (absl::StrContains(property, word)) return true;
  }
  return false;
}

bool IsSecretValue(absl::string_view property) {
  return IsSecret(property) && !absl::EndsWith(property, ".location");
}

std::string SecretsOnCommandLine(absl::Span<const std::string> properties) {
  if (properties.empty()) return "";
  return absl::StrCat("--kafka ", absl::StrJoin(properties, ", --kafka "),
                      ": every user of this host can read a secret on the command line. Write "
                      "${file:PATH} or ${VARIABLE} instead, in single quotes: lethe reads it");
}

}  // namespace lethe::kafka
