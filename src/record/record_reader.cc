#include "src/record/record_reader.h"

#include <charconv>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/record/json_scanner.h"
#include "src/record/registry_frame.h"
#include "src/record/timestamp.h"

namespace lethe {
namespace {

using State = RecordFields::State;
using Kind = JsonValue::Kind;

constexpr char kStringByte = 's';
constexpr char kNumberByte = 'n';
constexpr size_t kLengthBytes = 8;

// A field of the spec, and its place among the scanner's pointers.
struct Source {
  Field field;
  std::string label;
  size_t pointer = 0;

  bool json() const { return field.kind == Field::Kind::kJson; }
};

// The value at a source: JSON, or (kAbsent) plain bytes.
struct Found {
  State state = State::kMissing;
  Kind kind = Kind::kAbsent;
  absl::string_view text;
  const char* why = "";  // it is missing
};

// Null if `text` is an integer of 64 bits, else the reason why not.
const char* WhyNoInteger(absl::string_view text, int64_t* number) {
  const char* end = text.data() + text.size();
  const std::from_chars_result result = std::from_chars(text.data(), end, *number);
  if (result.ptr != end || result.ec == std::errc::invalid_argument) {
    const bool is_number = text.find_first_not_of("0123456789+-.eE") == absl::string_view::npos;
    return is_number ? "is not written as a whole number" : "is not a number";
  }
  return result.ec == std::errc() ? nullptr : "is beyond 64 bits";
}

std::optional<int64_t> ParseInteger(absl::string_view text) {
  int64_t number = 0;
  return WhyNoInteger(text, &number) == nullptr ? std::optional(number) : std::nullopt;
}

std::optional<absl::Time> ParseTime(const Found& found) {
  switch (found.kind) {
    case Kind::kNumber:
      return ParseUnixMillis(found.text);
    case Kind::kString:
      return ParseRfc3339(found.text);
    default:
      if (ParseInteger(found.text)) return ParseUnixMillis(found.text);
      return ParseRfc3339(found.text);
  }
}

std::optional<Source> MakeSource(std::optional<Field> field, std::vector<std::string>* pointers) {
  if (!field) return std::nullopt;
  Source source{*std::move(field), "", pointers->size()};
  source.label = source.field.ToString();
  if (source.json()) pointers->push_back(source.field.name);
  return source;
}

// A counter of the spec, and storage for views of its update.
struct CounterSource {
  Source key;
  std::optional<Source> delta;
  std::optional<Source> when;
  std::string wanted;
  std::string key_text;
  std::string other_text;
};

void PutLength(size_t length, char* out) {
  for (size_t i = 0; i < kLengthBytes; ++i) out[i] = static_cast<char>(length >> (8 * i) & 0xFF);
}

}  // namespace

struct RecordReader::Impl {
  enum class Json { kNotRead, kRead, kNull, kBroken };

  explicit Impl(RecordSpec spec);
  void Read(const RecordView& record);
  void ReadId(const RecordView& record);
  void ReadTime(const RecordView& record);
  void ReadCounter(const RecordView& record, CounterSource& counter, CounterUpdate& update) const;
  bool Meets(const RecordView& record, CounterSource& counter) const;
  Found Find(const Source& source, const RecordView& record, std::string* unescaped) const;
  void NoId(State state, absl::string_view label, absl::string_view why);

  std::vector<Source> id;
  std::optional<Source> time;
  std::vector<CounterSource> counters;
  bool id_reads_json = false;
  std::unique_ptr<JsonScanner> scanner;  // null if nothing reads JSON

  Json json = Json::kNotRead;
  RecordFields fields;
  // Storage for views of `fields` outside of the record and the scanner.
  std::string id_bytes;
  std::string reason;
  std::string id_text;
  std::string time_text;
  std::vector<CounterUpdate> updates;
};

RecordReader::Impl::Impl(RecordSpec spec) {
  std::vector<std::string> pointers;
  id_reads_json = spec.id.reads_json();
  for (Field& field : spec.id.fields) id.push_back(*MakeSource(std::move(field), &pointers));
  time = MakeSource(std::move(spec.time), &pointers);
  for (CounterSpec& counter : spec.counters) {
    CounterSource source{
        *MakeSource(std::move(counter.key), &pointers), std::nullopt, std::nullopt, "", "", ""};
    source.delta = MakeSource(std::move(counter.delta), &pointers);
    if (counter.when) {
      source.when = MakeSource(std::move(counter.when->field), &pointers);
      source.wanted = std::move(counter.when->text);
    }
    counters.push_back(std::move(source));
  }
  updates.resize(counters.size());
  if (!pointers.empty()) scanner = std::make_unique<JsonScanner>(pointers);
}

void RecordReader::Impl::Read(const RecordView& record) {
  fields = RecordFields();
  json = Json::kNotRead;
  if (scanner != nullptr) {
    json = !record.value ? Json::kNull : scanner->Scan(*record.value) ? Json::kRead : Json::kBroken;
  }
  ReadId(record);
  if (time) ReadTime(record);
  for (size_t i = 0; i < counters.size(); ++i) ReadCounter(record, counters[i], updates[i]);
  fields.counters = updates;
}

// `unescaped`: storage for an unescaped text.
Found RecordReader::Impl::Find(const Source& source, const RecordView& record, std::string* unescaped) const {
  std::optional<absl::string_view> bytes;
  switch (source.field.kind) {
    case Field::Kind::kKey:
      bytes = record.key;
      break;
    case Field::Kind::kValue:
      bytes = record.value;
      break;
    case Field::Kind::kHeader:
      if (record.headers != nullptr) bytes = record.headers->Last(source.field.name);
      break;
    case Field::Kind::kJson: {
      if (json == Json::kBroken) return {State::kMalformed, Kind::kAbsent, "", ""};
      if (json == Json::kNull)
        return {State::kMissing, Kind::kAbsent, "", "is not there, since the value is null"};
      const JsonValue& value = scanner->value(source.pointer);
      if (value.kind == Kind::kAbsent) return {State::kMissing, value.kind, "", "is not there"};
      if (value.kind == Kind::kOther)
        return {State::kMissing, value.kind, "", "is neither a string nor a number"};
      absl::string_view text = value.text;
      if (value.escaped) {
        unescaped->clear();
        if (!AppendUnescaped(text, unescaped)) {
          return {State::kMissing, value.kind, "", "has half of a surrogate pair in it"};
        }
        text = *unescaped;
      }
      if (text.empty()) return {State::kMissing, value.kind, "", "is empty"};
      return {State::kPresent, value.kind, text, ""};
    }
  }
  if (!bytes) return {State::kMissing, Kind::kAbsent, "", "is null"};
  if (bytes->empty()) return {State::kMissing, Kind::kAbsent, "", "is empty"};
  return {State::kPresent, Kind::kAbsent, *bytes, ""};
}

void RecordReader::Impl::NoId(State state, absl::string_view label, absl::string_view why) {
  reason.clear();
  absl::StrAppend(&reason, label, " ", why);
  fields.id_state = state;
  fields.reason = reason;
}

void RecordReader::Impl::ReadId(const RecordView& record) {
  if (id_reads_json && json == Json::kBroken) {
    if (const auto schema = SchemaIdOf(*record.value)) {
      return NoId(State::kMalformed, "the value is not JSON: it begins with", FrameText(*schema));
    }
    NoId(State::kMalformed, "the value is not JSON:", scanner->error());
    absl::StrAppend(&reason, ", at byte ", scanner->error_offset());
    fields.reason = reason;
    return;
  }
  const bool joined = id.size() > 1;
  id_bytes.clear();
  for (const Source& source : id) {
    const Found found = Find(source, record, &id_text);
    if (found.state != State::kPresent) return NoId(found.state, source.label, found.why);
    if (!joined && !source.json()) {
      fields.id_state = State::kPresent;
      fields.id = found.text;
      return;
    }
    const size_t begin = id_bytes.size();
    if (joined) id_bytes.append(kLengthBytes, '\0');
    if (source.json()) id_bytes.push_back(found.kind == Kind::kString ? kStringByte : kNumberByte);
    id_bytes.append(found.text.data(), found.text.size());
    if (joined) PutLength(id_bytes.size() - begin - kLengthBytes, &id_bytes[begin]);
  }
  fields.id_state = State::kPresent;
  fields.id = id_bytes;
}

void RecordReader::Impl::ReadTime(const RecordView& record) {
  const Found found = Find(*time, record, &time_text);
  fields.time_state = found.state;
  if (found.state != State::kPresent) return;
  const std::optional<absl::Time> parsed = ParseTime(found);
  if (parsed) fields.time = *parsed;
  if (!parsed) fields.time_state = State::kMissing;
}

bool RecordReader::Impl::Meets(const RecordView& record, CounterSource& counter) const {
  const Source& when = *counter.when;
  // A condition may also ask for true, false or null.
  if (when.json() && json == Json::kRead && scanner->value(when.pointer).kind == Kind::kOther) {
    return scanner->value(when.pointer).text == counter.wanted;
  }
  const Found found = Find(when, record, &counter.other_text);
  return found.state == State::kPresent && found.text == counter.wanted;
}

void RecordReader::Impl::ReadCounter(const RecordView& record, CounterSource& counter,
                                     CounterUpdate& update) const {
  using UpdateState = CounterUpdate::State;
  update.state = UpdateState::kUncountable;
  update.key = absl::string_view();
  update.delta = 1;
  update.reason.clear();
  const auto uncountable = [&](const Source& source, absl::string_view why) {
    absl::StrAppend(&update.reason, source.label, " ", why);
  };
  if (counter.when) {
    if (counter.when->json() && json == Json::kBroken) {
      return uncountable(*counter.when, "cannot be read: the value is not JSON");
    }
    if (!Meets(record, counter)) {
      update.state = UpdateState::kNotMeant;
      return;
    }
  }
  const auto why_not = [](const Found& found) {
    return found.state == State::kMalformed ? "cannot be read: the value is not JSON" : found.why;
  };
  const Found key = Find(counter.key, record, &counter.key_text);
  if (key.state != State::kPresent) return uncountable(counter.key, why_not(key));
  if (counter.delta) {
    const Found delta = Find(*counter.delta, record, &counter.other_text);
    if (delta.state != State::kPresent) return uncountable(*counter.delta, why_not(delta));
    const char* why = delta.kind == Kind::kString ? "is a string" : WhyNoInteger(delta.text, &update.delta);
    if (why != nullptr) return uncountable(*counter.delta, why);
  }
  update.key = key.text;
  update.state = UpdateState::kCounted;
}

RecordReader::RecordReader(RecordSpec spec) : impl_(std::make_unique<Impl>(std::move(spec))) {}
RecordReader::~RecordReader() = default;
RecordReader::RecordReader(RecordReader&&) noexcept = default;

const RecordFields& RecordReader::Read(const RecordView& record) {
  impl_->Read(record);
  return impl_->fields;
}

}  // namespace lethe
