#include "src/survey/id_names.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace lethe {
namespace {

// The last step of a name: "order_id" of json:/order/order_id.
absl::string_view LastStep(const Field& field) {
  const absl::string_view name = field.name;
  return name.substr(name.find_last_of("/.:") + 1);
}

}  // namespace

bool IsMomentName(const Field& field) {
  const absl::string_view step = LastStep(field);
  const std::string name = absl::AsciiStrToLower(step);
  for (const char* whole : {"ts", "date", "lsn", "scn", "when"}) {
    if (name == whole) return true;
  }
  for (const char* begin : {"ts_", "time_unix", "timeunix"}) {
    if (absl::StartsWith(name, begin)) return true;
  }
  for (const char* end : {"time", "timestamp", "tstamp", "_ts", "_at", "_date", "_lsn", "_scn", "unixnano"}) {
    if (absl::EndsWith(name, end)) return true;
  }
  return absl::EndsWith(step, "At") || absl::EndsWith(step, "Date");
}

bool IsTraceName(const Field& field) {
  const std::string name = absl::AsciiStrToLower(LastStep(field));
  return absl::StrContains(name, "trace") || absl::StartsWith(name, "span") ||
         absl::EndsWith(name, "spanid") || absl::EndsWith(name, "span_id") || absl::EndsWith(name, "span-id");
}

bool IsNameOfSending(const Field& field) {
  const std::string name = absl::AsciiStrToLower(LastStep(field));
  for (const char* part :
       {"attempt", "retry", "retries", "redeliver", "resend", "resent", "pending", "possdup"}) {
    if (absl::StrContains(name, part)) return true;
  }
  return false;
}

int Unlikeliness(const Field& field) {
  const std::string name = absl::AsciiStrToLower(LastStep(field));
  if (name == "id" || name == "uuid" || name == "guid") return 0;
  for (const char* hint : {"event", "message", "idempotency", "request", "msg"}) {
    if (absl::StrContains(name, hint) && absl::EndsWith(name, "id")) return 0;
  }
  if (absl::StrContains(name, "idempot") || absl::StrContains(name, "dedup")) return 0;
  if (absl::EndsWith(name, "id") || absl::StrContains(name, "uuid") || absl::StrContains(name, "key"))
    return 1;
  return 2;
}

int Unlikeliness(const IdSpec& id) {
  int most = 0;
  for (const Field& field : id.fields) most = std::max(most, Unlikeliness(field));
  return most;
}

bool IsHeaderOfSending(absl::string_view name) {
  const std::string lower = absl::AsciiStrToLower(name);
  if (lower == "b3" || lower == "baggage" || lower == "__debezium.context.runid") return true;
  if (absl::StartsWith(lower, "x-b3-") || absl::StartsWith(lower, "x-datadog-")) return true;
  const Field header = {Field::Kind::kHeader, std::string(name)};
  return IsTraceName(header) || IsNameOfSending(header);
}

}  // namespace lethe
