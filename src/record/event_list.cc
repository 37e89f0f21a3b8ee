#include "src/record/event_list.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "simdjson.h"

namespace lethe {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

bool Has(const object& in, const char* name) { return in.at_key(name).error() == simdjson::SUCCESS; }

bool HasId(const object& in) {
  for (const char* name :
       {"id", "uuid", "guid", "eid", "event_id", "eventId", "eventID", "message_id", "messageId"}) {
    if (Has(in, name)) return true;
  }
  return false;
}

// 0: one is no object, or has no id where it should.
int64_t EventsIn(const array& list, bool must_have_ids) {
  int64_t events = 0;
  for (const element each : list) {
    object event;
    if (each.get(event) || (must_have_ids && !HasId(event))) return 0;
    ++events;
  }
  return events;
}

// The log records, spans or metrics below resources and scopes.
int64_t TelemetryIn(const array& resources) {
  constexpr const char* kLevels[][2] = {
      {"scopeLogs", "logRecords"}, {"scopeSpans", "spans"}, {"scopeMetrics", "metrics"}};
  int64_t events = 0;
  for (const element resource : resources) {
    for (const auto& [scopes, records] : kLevels) {
      array of_resource;
      if (resource[scopes].get(of_resource)) continue;
      for (const element scope : of_resource) {
        array of_scope;
        if (!scope[records].get(of_scope)) events += static_cast<int64_t>(of_scope.size());
      }
    }
  }
  return events;
}

std::string EnvelopeOf(const array& list) {
  object first;
  if (list.size() == 0 || list.at(0).get(first)) return "";
  if (Has(first, "messageId") && Has(first, "type")) return "Segment";
  return Has(first, "eid") && Has(first, "tv") ? "Snowplow" : "";
}

std::optional<EventList> InObject(const object& record) {
  array list;
  for (const auto& [name, envelope] :
       {std::pair("resourceLogs", "OpenTelemetry logs"), std::pair("resourceSpans", "OpenTelemetry traces"),
        std::pair("resourceMetrics", "OpenTelemetry metrics")}) {
    if (record[name].get(list)) continue;
    const int64_t events = TelemetryIn(list);
    if (events > 0) return EventList{absl::StrCat("/", name), events, envelope};
  }
  if (HasId(record)) return std::nullopt;
  for (const char* name : {"batch", "events", "records", "Records", "messages", "data"}) {
    if (record[name].get(list)) continue;
    const int64_t events = EventsIn(list, /*must_have_ids=*/true);
    if (events > 0) return EventList{absl::StrCat("/", name), events, EnvelopeOf(list)};
  }
  return std::nullopt;
}

}  // namespace

struct EventListFinder::Parser {
  simdjson::dom::parser parser;
};

EventListFinder::EventListFinder() : parser_(std::make_unique<Parser>()) {}
EventListFinder::~EventListFinder() = default;

std::optional<EventList> EventListFinder::Find(absl::string_view json) {
  const absl::string_view text = absl::StripLeadingAsciiWhitespace(json);
  if (text.empty() || (text[0] != '[' && text[0] != '{')) return std::nullopt;
  element document;
  if (parser_->parser.parse(json.data(), json.size()).get(document)) return std::nullopt;
  object record;
  if (!document.get(record)) return InObject(record);
  array list;
  if (document.get(list)) return std::nullopt;
  const int64_t events = EventsIn(list, /*must_have_ids=*/false);
  if (events == 0) return std::nullopt;
  return EventList{"", events, EnvelopeOf(list)};
}

bool IsOfOneElement(const IdSpec& id, const EventList& list) {
  const std::string begin = absl::StrCat(list.pointer, "/");
  return std::any_of(id.fields.begin(), id.fields.end(), [&](const Field& field) {
    return field.kind == Field::Kind::kJson && !field.in_key && absl::StartsWith(field.name, begin) &&
           field.name.size() > begin.size() &&
           absl::ascii_isdigit(static_cast<unsigned char>(field.name[begin.size()]));
  });
}

}  // namespace lethe
