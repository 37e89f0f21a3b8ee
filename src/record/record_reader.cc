#include "src/record/record_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "src/record/json_scanner.h"
#include "src/record/record_format.h"
#include "src/record/timestamp.h"

namespace lethe {
namespace {

using State = RecordFields::State;
using Kind = FieldValue::Kind;

constexpr char kStringByte = 's';
constexpr char kNumberByte = 'n';
constexpr size_t kLengthBytes = 8;

// A key or a value in one format: all fields that are read of it are found at once.
struct Part {
  Field field;  // one of them
  std::vector<std::string> pointers = {};
  std::unique_ptr<RecordFormat> format = nullptr;
  std::string cannot_be_read = {};  // for people
  bool is_late = true;              // only later places of the id read it: it is read when they are looked at
  // Of the present record.
  enum class State { kUnread, kRead, kNull, kBroken, kWaiting } state = State::kUnread;

  absl::string_view part_name() const { return field.in_key ? "key" : "value"; }
};

// A field of the spec, and its place in its part.
struct Source {
  Field field;
  std::string label;
  size_t part = 0;
  size_t place = 0;

  bool pointer() const { return field.is_pointer(); }
};

// The value at a source, or (kAbsent) plain bytes.
struct Found {
  State state = State::kMissing;
  Kind kind = Kind::kAbsent;
  absl::string_view text = "";
  absl::string_view why = "";  // it is missing
  TimeUnit unit = TimeUnit::kMilliseconds;
  bool is_absent = false;  // missing, and there is nothing: no name, null or empty
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

// The bounds are those of a double that is an int64_t.
std::optional<int64_t> ParseWhole(absl::string_view number) {
  if (const auto integer = ParseInteger(number)) return integer;
  double value = 0;
  if (!absl::SimpleAtod(number, &value)) return std::nullopt;
  return static_cast<int64_t>(std::clamp(std::floor(value), -0x1p62, 0x1p62));
}

std::optional<Source> MakeSource(std::optional<Field> field, std::vector<Part>& parts) {
  if (!field) return std::nullopt;
  Source source{*std::move(field), ""};
  source.label = source.field.ToString();
  if (!source.pointer()) return source;
  const auto is_of_it = [&](const Part& part) {
    return part.field.kind == source.field.kind && part.field.in_key == source.field.in_key;
  };
  const auto part = std::find_if(parts.begin(), parts.end(), is_of_it);
  source.part = static_cast<size_t>(part - parts.begin());
  if (part == parts.end()) parts.push_back({.field = source.field});
  source.place = parts[source.part].pointers.size();
  parts[source.part].pointers.push_back(source.field.name);
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
  explicit Impl(RecordSpec spec);
  void Read(const RecordView& record);
  bool ReadPart(const RecordView& record, Part& part);
  void ReadId(const RecordView& record);
  State ReadPlace(const RecordView& record, size_t number);
  void ReadTime(const RecordView& record);
  void ReadCounter(const RecordView& record, CounterSource& counter, CounterUpdate& update) const;
  bool Meets(const RecordView& record, CounterSource& counter) const;
  Found Find(const Source& source, const RecordView& record, std::string* unescaped) const;
  State NoId(State state, absl::string_view label, absl::string_view why);

  std::vector<Source> id;
  std::vector<size_t> places;  // where in `id` each place ends
  std::optional<Source> time;
  TimeUnit time_unit;
  std::vector<CounterSource> counters;
  std::vector<Part> parts;

  RecordFields fields;
  // Storage for views of `fields` outside of the record and the formats.
  std::string id_bytes;
  std::string reason;
  std::string id_text;
  std::string time_text;
  std::vector<CounterUpdate> updates;
};

RecordReader::Impl::Impl(RecordSpec spec) : time_unit(spec.time_unit) {
  for (size_t i = 0; i < spec.id.places(); ++i) {
    for (const Field& field : spec.id.place(i)) {
      id.push_back(*MakeSource(field, parts));
      if (i == 0 && field.is_pointer()) parts[id.back().part].is_late = false;
    }
    places.push_back(id.size());
  }
  time = MakeSource(std::move(spec.time), parts);
  for (CounterSpec& counter : spec.counters) {
    CounterSource source{*MakeSource(std::move(counter.key), parts), std::nullopt, std::nullopt, "", "", ""};
    source.delta = MakeSource(std::move(counter.delta), parts);
    if (counter.when) {
      source.when = MakeSource(std::move(counter.when->field), parts);
      source.wanted = std::move(counter.when->text);
    }
    counters.push_back(std::move(source));
  }
  updates.resize(counters.size());
  const auto read_always = [&](const std::optional<Source>& source) {
    if (source && source->pointer()) parts[source->part].is_late = false;
  };
  read_always(time);
  for (const CounterSource& counter : counters) {
    read_always(counter.key);
    read_always(counter.delta);
    read_always(counter.when);
  }
  for (Part& part : parts) {
    part.format = MakeFormat(part.field, part.pointers, spec.schemas);
    part.cannot_be_read =
        absl::StrCat("cannot be read: the ", part.part_name(), " is not ", part.format->name());
  }
}

void RecordReader::Impl::Read(const RecordView& record) {
  fields = RecordFields();
  for (Part& part : parts) {
    part.state = Part::State::kUnread;
    if (!part.is_late && !ReadPart(record, part)) return;
  }
  ReadId(record);
  if (fields.waits_for) return;
  if (time) ReadTime(record);
  for (size_t i = 0; i < counters.size(); ++i) ReadCounter(record, counters[i], updates[i]);
  fields.counters = updates;
}

// False: it waits for its schema.
bool RecordReader::Impl::ReadPart(const RecordView& record, Part& part) {
  const std::optional<absl::string_view> bytes = part.field.in_key ? record.key : record.value;
  part.state = !bytes                                      ? Part::State::kNull
               : part.format->Read(*bytes, record.headers) ? Part::State::kRead
               : part.format->waits_for()                  ? Part::State::kWaiting
                                                           : Part::State::kBroken;
  if (part.state != Part::State::kWaiting) return true;
  fields.waits_for = part.format->waits_for();
  fields.id_state = fields.time_state = State::kWaiting;
  return false;
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
    case Field::Kind::kJson:
    case Field::Kind::kFramedJson:
    case Field::Kind::kProtobuf:
    case Field::Kind::kAvro:
    case Field::Kind::kProtobufNames: {
      const Part& part = parts[source.part];
      if (part.state == Part::State::kBroken) {
        return {State::kMalformed, Kind::kAbsent, "", part.cannot_be_read};
      }
      if (part.state == Part::State::kNull) {
        return {State::kMissing, Kind::kAbsent, "",
                part.field.in_key ? "is not there, since the key is null"
                                  : "is not there, since the value is null"};
      }
      const FieldValue& value = part.format->value(source.place);
      if (value.kind == Kind::kAbsent) {
        return {.kind = value.kind, .why = part.format->why_absent(source.place), .is_absent = true};
      }
      // A part of a timestamp is its time, but not its text.
      const bool is_time = time && &source == &*time;
      if (value.kind == Kind::kOther || (value.unit == TimeUnit::kTimestamp && !is_time))
        return {.kind = value.kind,
                .why = "is neither a string nor a number",
                .is_absent = value.kind == Kind::kOther && value.text == "null"};
      absl::string_view text = value.text;
      if (value.escaped) {
        unescaped->clear();
        if (!AppendUnescaped(text, unescaped)) {
          return {State::kMissing, value.kind, "", "has half of a surrogate pair in it"};
        }
        text = *unescaped;
      }
      if (text.empty()) return {.kind = value.kind, .why = "is empty", .is_absent = true};
      return {State::kPresent, value.kind, text, "", value.unit};
    }
  }
  if (!bytes) {
    const bool is_header = source.field.kind == Field::Kind::kHeader;
    return {.why = is_header ? "is not there, or null" : "is null", .is_absent = true};
  }
  if (bytes->empty()) return {.why = "is empty", .is_absent = true};
  return {State::kPresent, Kind::kAbsent, *bytes, ""};
}

// Adds to the reasons of earlier places.
State RecordReader::Impl::NoId(State state, absl::string_view label, absl::string_view why) {
  absl::StrAppend(&reason, reason.empty() ? "" : "; ", label, " ", why);
  return state;
}

void RecordReader::Impl::ReadId(const RecordView& record) {
  reason.clear();
  State state = State::kMissing;
  for (size_t number = 0; number < places.size(); ++number) {
    const State found = ReadPlace(record, number);
    if (found == State::kWaiting) return;
    if (found == State::kMalformed) state = found;
    if (found != State::kPresent) continue;
    fields.id_state = found;
    fields.id_place = static_cast<uint8_t>(number);
    return;
  }
  fields.id_state = state;
  fields.reason = reason;
  fields.lacks_optional = false;
}

State RecordReader::Impl::ReadPlace(const RecordView& record, size_t number) {
  const size_t first = number == 0 ? 0 : places[number - 1];
  const auto sources = absl::MakeConstSpan(id).subspan(first, places[number] - first);
  for (const Source& source : sources) {
    if (!source.pointer()) continue;
    Part& part = parts[source.part];
    if (part.state == Part::State::kUnread && !ReadPart(record, part)) return State::kWaiting;
    if (part.state != Part::State::kBroken) continue;
    NoId(State::kMalformed, part.field.in_key ? "the key" : "the value", "");
    part.format->AppendWhy(&reason);
    return State::kMalformed;
  }
  const bool joined = sources.size() > 1;
  fields.lacks_optional = false;
  id_bytes.clear();
  if (places.size() > 1) id_bytes.push_back(static_cast<char>(number));
  for (const Source& source : sources) {
    const Found found = Find(source, record, &id_text);
    if (found.state != State::kPresent && source.field.is_optional && found.is_absent) {
      id_bytes.append(kLengthBytes, '\0');
      fields.lacks_optional = true;
      continue;
    }
    if (found.state != State::kPresent) return NoId(found.state, source.label, found.why);
    if (!joined && !source.pointer() && places.size() == 1) {
      fields.id = found.text;
      return State::kPresent;
    }
    const size_t begin = id_bytes.size();
    if (joined) id_bytes.append(kLengthBytes, '\0');
    if (source.pointer()) id_bytes.push_back(found.kind == Kind::kString ? kStringByte : kNumberByte);
    id_bytes.append(found.text.data(), found.text.size());
    if (joined) PutLength(id_bytes.size() - begin - kLengthBytes, &id_bytes[begin]);
  }
  fields.id = id_bytes;
  return State::kPresent;
}

void RecordReader::Impl::ReadTime(const RecordView& record) {
  const Found found = Find(*time, record, &time_text);
  fields.time_state = found.state;
  if (found.state != State::kPresent) return;
  const bool is_number =
      found.kind == Kind::kNumber || (found.kind != Kind::kString && ParseInteger(found.text).has_value());
  const bool is_of_unit = is_number && found.unit == TimeUnit::kMilliseconds;
  if (is_of_unit) fields.unix_time = ParseWhole(found.text);
  const std::optional<absl::Time> parsed =
      is_number ? ParseUnixTime(found.text, is_of_unit ? time_unit : found.unit) : ParseRfc3339(found.text);
  if (parsed) fields.time = *parsed;
  if (!parsed) fields.time_state = State::kMissing;
}

bool RecordReader::Impl::Meets(const RecordView& record, CounterSource& counter) const {
  const Source& when = *counter.when;
  // A condition may also ask for true, false or null.
  if (when.pointer() && parts[when.part].state == Part::State::kRead) {
    const FieldValue& value = parts[when.part].format->value(when.place);
    if (value.kind == Kind::kOther) return value.text == counter.wanted;
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
    const Source& when = *counter.when;
    if (when.pointer() && parts[when.part].state == Part::State::kBroken) {
      return uncountable(when, parts[when.part].cannot_be_read);
    }
    if (!Meets(record, counter)) {
      update.state = UpdateState::kNotMeant;
      return;
    }
  }
  const Found key = Find(counter.key, record, &counter.key_text);
  if (key.state != State::kPresent) return uncountable(counter.key, key.why);
  if (counter.delta) {
    const Found delta = Find(*counter.delta, record, &counter.other_text);
    if (delta.state != State::kPresent) return uncountable(*counter.delta, delta.why);
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
