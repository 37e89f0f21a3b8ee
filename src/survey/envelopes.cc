#include "src/survey/envelopes.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace lethe {
namespace {

constexpr double kNearlyAll = 0.9;

class Recognizer {
 public:
  Recognizer(const IdPlaces& places, const EnvelopeFacts& facts) : places_(places), facts_(facts) {}

  std::optional<Envelope> Recognize() {
    if (Headers({"ce_id", "ce_source", "ce_specversion"})) {
      return Named("CloudEvents, binary", {Header("ce_id"), Header("ce_source")},
                   "by the specification an id counts for its source");
    }
    for (const auto kind :
         {Field::Kind::kJson, Field::Kind::kFramedJson, Field::Kind::kAvro, Field::Kind::kProtobufNames}) {
      for (const char* above : {"", "/payload"}) {
        kind_ = kind;
        above_ = above;
        if (auto found = InValues()) return found;
      }
    }
    // The header of Debezium's outbox event router.
    if (!NearlyAll(facts_.with_uuid_header)) return std::nullopt;
    return Named("Debezium outbox", {Header("id")},
                 "the outbox row's id, which Debezium sends to find copies");
  }

 private:
  std::optional<Envelope> InValues() const {
    if (Values({"/specversion", "/id", "/source", "/type"})) {
      return Named("CloudEvents, structured", {Value("/id"), Value("/source")},
                   "by the specification an id counts for its source");
    }
    if (Values({"/op", "/source/connector"})) return ChangeEvents();
    if (Values({"/messageId", "/type"}) &&
        (Values({"/userId"}) || Values({"/anonymousId"}) || Values({"/context/library/name"}))) {
      return Named("Segment", {Value("/messageId")}, "the id that Segment itself finds copies by");
    }
    if (Values({"/event_id", "/collector_tstamp"})) {
      return Named("Snowplow", {Value("/event_id")}, "the event's id, which its tracker makes");
    }
    if (Values({"/eid", "/tv", "/e"})) {
      return Named("Snowplow, of a tracker", {Value("/eid")}, "the event's id, which its tracker makes");
    }
    if (Values({"/severity_number", "/attributes/log.record.uid"})) {
      return Named("OpenTelemetry logs", {Value("/attributes/log.record.uid")},
                   "by the semantic conventions records with one uid are copies");
    }
    return std::nullopt;
  }

  // A position in the database's log names a change of a row; an update of its key is two changes there.
  std::optional<Envelope> ChangeEvents() const {
    std::vector<Field> fields;
    if (NearlyAll(facts_.with_key)) fields.push_back({Field::Kind::kKey, ""});
    const auto add = [&](std::initializer_list<const char*> pointers) {
      for (const char* pointer : pointers) fields.push_back(Value(pointer));
    };
    if (Values({"/source/file", "/source/pos"})) {  // MySQL, MariaDB
      add({"/source/file", "/source/pos", "/source/row"});
    } else if (Values({"/source/commit_lsn", "/source/change_lsn"})) {  // SQL Server
      add({"/source/commit_lsn", "/source/change_lsn", "/source/event_serial_no"});
    } else if (Values({"/source/lsn"})) {  // PostgreSQL
      add({"/source/lsn"});
    } else {
      return std::nullopt;
    }
    return Named("Debezium change events", std::move(fields),
                 "the row's key, and the change's place in the log");
  }

  static Envelope Named(std::string name, std::vector<Field> fields, absl::string_view why) {
    return {std::move(name), {std::move(fields)}, why};
  }

  bool NearlyAll(int64_t records) const {
    return records > 0 && static_cast<double>(records) >= kNearlyAll * static_cast<double>(facts_.records);
  }
  bool Headers(std::initializer_list<const char*> names) const {
    return std::all_of(names.begin(), names.end(),
                       [&](const char* name) { return NearlyAll(places_.RecordsWith(Header(name))); });
  }
  bool Values(std::initializer_list<const char*> pointers) const {
    return std::all_of(pointers.begin(), pointers.end(),
                       [&](const char* pointer) { return NearlyAll(places_.RecordsWith(Value(pointer))); });
  }
  static Field Header(const char* name) { return {Field::Kind::kHeader, name}; }
  Field Value(const char* pointer) const { return {kind_, absl::StrCat(above_, pointer)}; }

  const IdPlaces& places_;
  const EnvelopeFacts& facts_;
  Field::Kind kind_ = Field::Kind::kJson;
  const char* above_ = "";
};

}  // namespace

std::optional<Envelope> RecognizeEnvelope(const IdPlaces& places, const EnvelopeFacts& facts) {
  return Recognizer(places, facts).Recognize();
}

bool IsUuid(absl::string_view text) {
  if (text.size() == 38 && text.front() == '"' && text.back() == '"') text = text.substr(1, 36);
  if (text.size() != 36) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (is_dash != (text[i] == '-')) return false;
    if (!is_dash && !absl::ascii_isxdigit(static_cast<unsigned char>(text[i]))) return false;
  }
  return true;
}

}  // namespace lethe
