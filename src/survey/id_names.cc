#include "src/survey/id_names.h"

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

int Unlikeliness(const IdSpec& id) {
  const std::string name = absl::AsciiStrToLower(LastStep(id.fields.back()));
  if (name == "id" || name == "uuid" || name == "guid") return 0;
  for (const char* hint : {"event", "message", "idempotency", "request", "msg"}) {
    if (absl::StrContains(name, hint) && absl::EndsWith(name, "id")) return 0;
  }
  if (absl::StrContains(name, "idempot") || absl::StrContains(name, "dedup")) return 0;
  if (absl::EndsWith(name, "id") || absl::StrContains(name, "uuid") || absl::StrContains(name, "key"))
    return 1;
  return 2;
}

bool IsHeaderOfSending(absl::string_view name) {
  const std::string lower = absl::AsciiStrToLower(name);
  if (lower == "b3" || lower == "baggage" || lower == "__debezium.context.runid") return true;
  if (absl::StartsWith(lower, "x-b3-") || absl::StartsWith(lower, "x-datadog-")) return true;
  return IsTraceName({Field::Kind::kHeader, std::string(name)});
}

}  // namespace lethe
