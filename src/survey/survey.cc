#include "src/survey/survey.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <random>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "src/record/event_list.h"
#include "src/record/timestamp.h"
#include "src/survey/envelopes.h"
#include "src/survey/id_names.h"
#include "src/survey/id_places.h"
#include "src/survey/id_quality.h"
#include "src/text/fixed_hash.h"

namespace lethe {
namespace {

// Candidates come from the first records, up to this number and size.
constexpr size_t kFirstRecords = 4000;
constexpr size_t kFirstBytes = size_t{16} << 20;
constexpr size_t kMostPlaces = 60;
constexpr size_t kMostSingles = 4;
constexpr size_t kMostInPairs = 16;
constexpr size_t kMostPairs = 2;
// Where copies are more, a thing is seen at several times rather than sent several times.
constexpr size_t kLeastPerCopy = 3;
constexpr size_t kUnusableShown = 3;
constexpr size_t kTimes = 65536;

uint64_t HashOf(absl::string_view bytes) { return FixedHash(bytes).a; }

void Mix(std::optional<absl::string_view> part, uint64_t& hash) {
  hash = (hash ^ (part ? HashOf(*part) | 1 : 2)) * 0x9E37'79B9'7F4A'7C15;
  hash ^= hash >> 32;
}

// But for those that only name a sending.
void MixHeaders(const SurveyRecord& record, uint64_t& hash) {
  for (const auto& [name, text] : record.headers) {
    if (IsHeaderOfSending(name)) continue;
    Mix(name, hash);
    Mix(text, hash);
  }
}

uint64_t ContentOf(const SurveyRecord& record) {
  uint64_t hash = 1;
  Mix(record.record.key, hash);
  Mix(record.record.value, hash);
  MixHeaders(record, hash);
  return hash;
}

// The contents of records that are sent again with other times, or with the number of the attempt: instead of
// the value they have all strings and numbers of it but for those.
class ContentsOfEvents {
 public:
  // `places` of the value; the first is in every record that has such a content.
  ContentsOfEvents(std::vector<Field> places, SchemaSource* schemas)
      : reader_({.id = SpecOf(std::move(places)), .schemas = schemas}) {}

  uint64_t Of(const SurveyRecord& record) {
    const RecordFields& fields = reader_.Read(record.record);
    if (fields.id_state != RecordFields::State::kPresent) return ContentOf(record);
    uint64_t hash = 2;
    Mix(record.record.key, hash);
    Mix(fields.id, hash);
    MixHeaders(record, hash);
    return hash;
  }

 private:
  static IdSpec SpecOf(std::vector<Field> places) {
    for (size_t i = 1; i < places.size(); ++i) places[i].is_optional = true;
    return {std::move(places)};
  }

  RecordReader reader_;
};

// What tells an event from its sending, if that is in the value.
struct Sending {
  std::unique_ptr<ContentsOfEvents> contents;  // null: nothing names a sending
  std::string places;                          // that name it
};

// The same without the key and the headers that the id reads.
uint64_t ContentBut(const IdSpec& id, const SurveyRecord& record) {
  SurveyRecord rest = record;
  std::vector<std::pair<absl::string_view, std::optional<absl::string_view>>> headers;
  const auto is_of_id = [&](absl::string_view name) {
    return std::any_of(id.fields.begin(), id.fields.end(), [&](const Field& field) {
      return field.kind == Field::Kind::kHeader && field.name == name;
    });
  };
  for (const auto& header : record.headers) {
    if (!is_of_id(header.first)) headers.push_back(header);
  }
  rest.headers = headers;
  if (id.reads_key()) rest.record.key = std::nullopt;
  return ContentOf(rest);
}

bool ReadsOutsideOfValue(const IdSpec& id) {
  return id.reads_key() || std::any_of(id.fields.begin(), id.fields.end(),
                                       [](const Field& field) { return field.kind == Field::Kind::kHeader; });
}

bool ReadsOnlyKey(const IdSpec& id) {
  return std::all_of(id.fields.begin(), id.fields.end(),
                     [](const Field& field) { return field.kind == Field::Kind::kKey || field.in_key; });
}

// A record that is kept until the candidates are chosen.
struct Held : RecordHeaders {
  explicit Held(const SurveyRecord& from)
      : has_key(from.record.key),
        has_value(from.record.value),
        partition(from.partition),
        offset(from.offset),
        time_ms(from.time_ms) {
    if (has_key) key = std::string(*from.record.key);
    if (has_value) value = std::string(*from.record.value);
    for (const auto& [name, text] : from.headers) {
      headers.emplace_back(name, text ? std::optional<std::string>(*text) : std::nullopt);
    }
    for (const auto& [name, text] : headers) views.emplace_back(name, text);
  }

  size_t bytes() const {
    size_t sum = sizeof(Held) + key.size() + value.size();
    for (const auto& [name, text] : headers) sum += 64 + name.size() + (text ? text->size() : 0);
    return sum;
  }

  std::optional<absl::string_view> Last(const std::string& name) const override {
    for (auto header = headers.rbegin(); header != headers.rend(); ++header) {
      if (header->first == name) return header->second;
    }
    return std::nullopt;
  }

  SurveyRecord View() const {
    RecordView view = {.headers = this};
    if (has_key) view.key = key;
    if (has_value) view.value = value;
    return {.record = view, .headers = views, .partition = partition, .offset = offset, .time_ms = time_ms};
  }

  bool has_key, has_value;
  std::string key, value;
  std::vector<std::pair<std::string, std::optional<std::string>>> headers;
  std::vector<std::pair<absl::string_view, std::optional<absl::string_view>>>
      views;  // of them; a move leaves them in place
  int32_t partition;
  int64_t offset;
  int64_t time_ms;
};

// A candidate's hash in each of the first records; 0: none.
using Column = std::vector<uint64_t>;

// An id to measure, and what is known of it beforehand.
struct Proposal {
  IdSpec id;
  bool is_moment = false;               // a time by its contents
  absl::string_view why_envelope = "";  // it is the envelope's id; empty: it is not
};

// A candidate, measured on all records.
class Tracked {
 public:
  Tracked(Proposal proposal, int64_t memory_bytes, SchemaSource* schemas)
      : proposal_(std::move(proposal)),
        needs_value_(!ReadsOnlyKey(proposal_.id)),
        reader_({.id = proposal_.id, .schemas = schemas}),
        sample_(ReadsOutsideOfValue(proposal_.id) ? memory_bytes / 2 : memory_bytes) {
    candidate_.id = proposal_.id;
    if (ReadsOutsideOfValue(proposal_.id)) rest_.emplace(memory_bytes / 2);
  }

  // `content`: a hash of the whole record.
  void Add(const SurveyRecord& record, uint32_t content) {
    const RecordFields& fields = reader_.Read(record.record);
    const bool counts = record.record.value || !needs_value_;
    countable_ += counts;
    if (fields.id_state == RecordFields::State::kPresent) {
      present_ += counts;
      candidate_.later_place += fields.id_place > 0;
      candidate_.partial += fields.lacks_optional;
      sample_.Add({HashOf(fields.id), record.time_ms, record.offset, record.partition, content});
      if (rest_) {
        rest_->Add({ContentBut(proposal_.id, record), record.time_ms, record.offset, record.partition, 0});
      }
      return;
    }
    ++(fields.id_state == RecordFields::State::kMissing ? candidate_.missing : candidate_.malformed);
    candidate_.tombstones += !counts;
    if (counts && candidate_.unusable.size() < kUnusableShown) {
      candidate_.unusable.push_back({record.partition, record.offset, std::string(fields.reason)});
    }
  }

  // And its evidence; `of_sending` as there.
  std::pair<IdCandidate, IdEvidence> Measured(absl::string_view of_sending) {
    IdCandidate candidate = candidate_;
    candidate.figures = sample_.Figures();
    const IdFigures& figures = candidate.figures;
    IdEvidence evidence;
    evidence.records = static_cast<double>(countable_);
    evidence.present = static_cast<double>(present_);
    candidate.present_share = evidence.present_share();
    evidence.copies = figures.copies.value;
    evidence.changed = figures.changed.value;
    evidence.events = static_cast<double>(figures.records) - (evidence.copies - evidence.changed);
    if (rest_) evidence.equal_but_for_it = rest_->Figures().copies.value;
    evidence.is_moment = proposal_.is_moment;
    evidence.why_envelope = proposal_.why_envelope;
    evidence.of_sending = of_sending;
    return {std::move(candidate), evidence};
  }

 private:
  const Proposal proposal_;
  const bool needs_value_;
  RecordReader reader_;
  IdSample sample_;
  std::optional<IdSample> rest_;  // of the records without the id, if it is in the key or in headers
  IdCandidate candidate_;
  int64_t countable_ = 0;  // could have the id
  int64_t present_ = 0;    // of these
};

Column ColumnOf(const IdSpec& id, const std::vector<Held>& records, SchemaSource* schemas) {
  RecordReader reader({.id = id, .schemas = schemas});
  Column column;
  for (const Held& held : records) {
    const SurveyRecord view = held.View();
    const RecordFields& fields = reader.Read(view.record);
    column.push_back(fields.id_state == RecordFields::State::kPresent ? HashOf(fields.id) | 1 : 0);
  }
  return column;
}

Column Joined(const Column& x, const Column& y) {
  Column joined(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const uint64_t both[] = {x[i], y[i]};
    const absl::string_view bytes(reinterpret_cast<const char*>(both), sizeof both);
    joined[i] = x[i] == 0 || y[i] == 0 ? 0 : HashOf(bytes) | 1;
  }
  return joined;
}

int64_t CopiesIn(const Column& column) {
  absl::flat_hash_set<uint64_t> seen;
  int64_t copies = 0;
  for (const uint64_t hash : column) copies += hash != 0 && !seen.insert(hash).second;
  return copies;
}

// Whether an integer is the time of its record, within a day, in one of the units that people use.
// Nanoseconds are left out: there are ids of that size.
bool IsNear(absl::string_view number, int64_t time_ms) {
  int64_t value = 0;
  const std::from_chars_result parsed = std::from_chars(number.data(), number.data() + number.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != number.data() + number.size()) return false;
  constexpr double kDayMs = 86'400'000;
  for (const double to_ms : {1000.0, 1.0, 0.001}) {
    if (std::abs(static_cast<double>(value) * to_ms - static_cast<double>(time_ms)) < kDayMs) return true;
  }
  return false;
}

// The first records, and the ids that they suggest.
class Search {
 public:
  Search(const std::vector<Held>& records, SchemaSource* schemas) : records_(records), schemas_(schemas) {
    for (const Held& held : records_) contents_.push_back(ContentOf(held.View()) | 1);
  }

  // `envelope`: its name, or nothing.
  std::vector<Proposal> Choose(std::string& envelope, Sending& sending) {
    FindPlaces();
    FindSending(sending);
    const std::optional<Envelope> known = RecognizeEnvelope(places_, facts_);
    std::vector<Proposal> chosen;
    if (known) {
      envelope = known->name;
      chosen.push_back({known->id, false, known->why});
    }
    const std::vector<Scored> singles = Singles();
    if (!known && (singles.empty() || singles.front().quality != IdQuality::kGood)) AddPairs(singles, chosen);
    size_t left = kMostSingles;
    bool has_moment = false;
    for (const Scored& single : singles) {
      const bool is_moment = single.evidence.is_moment || IsMomentName(single.id.fields[0]);
      if (known && single.id.ToString() == known->id.ToString()) continue;
      if (is_moment ? has_moment : left == 0) continue;
      has_moment = has_moment || is_moment;
      left -= !is_moment;
      chosen.push_back({single.id, single.evidence.is_moment});
    }
    chosen.push_back({{{{Field::Kind::kKey, ""}}}});
    chosen.push_back({{{{Field::Kind::kValue, ""}}}});
    return chosen;
  }

 private:
  struct Scored {
    IdSpec id;
    Column column;
    IdEvidence evidence;
    IdQuality quality = IdQuality::kPoor;
  };

  static bool IsBetter(const Scored& x, const Scored& y) {
    if (x.quality != y.quality) return x.quality < y.quality;
    return x.evidence.changed_share() < y.evidence.changed_share();
  }

  void FindPlaces() {
    for (const Held& held : records_) {
      if (held.has_key) places_.AddKey(held.key, &held, schemas_);
      if (!held.has_value) continue;
      for (const auto& [name, text] : held.headers) places_.AddHeader(name);
      places_.AddValue(held.value, &held, schemas_);
      ++facts_.records;
      facts_.with_key += held.has_key;
      const auto id = held.Last("id");
      facts_.with_uuid_header += id && IsUuid(*id);
    }
  }

  std::vector<Scored> Singles() const {
    const auto records = std::max<int64_t>(facts_.records, 1);
    std::vector<Scored> singles;
    for (Field& field : places_.AtLeast((records + 1) / 2, (records + 9) / 10, kMostPlaces)) {
      Scored scored;
      scored.id = {{std::move(field)}};
      scored.column = ColumnOf(scored.id, records_, schemas_);
      scored.evidence = EvidenceOf(scored.id, scored.column);
      scored.evidence.is_moment = IsMoment(scored.id);
      scored.quality = QualityOf(scored.id, scored.evidence);
      singles.push_back(std::move(scored));
    }
    std::stable_sort(singles.begin(), singles.end(), IsBetter);
    return singles;
  }

  // A record that is sent again may say when, or for which time: then no id finds equal copies. So places
  // that by name or contents may be of a sending are taken for that if the copies of an id, by its name,
  // differ in nothing else. They are few: a thing's state differs from its former ones in its time alone,
  // too.
  void FindSending(Sending& sending) {
    const std::vector<Scored> singles = Singles();
    const auto is_of_sending = [](const Scored& single) {
      return single.evidence.is_moment || IsMomentName(single.id.fields[0]) ||
             IsNameOfSending(single.id.fields[0]);
    };
    const Scored* found = nullptr;
    std::vector<bool> differ;
    const auto try_id = [&](const Scored& first, const Column& column) {
      if (found != nullptr) return;
      if (auto only = DifferOnlyInSending(column, singles, is_of_sending)) {
        found = &first;
        differ = *std::move(only);
      }
    };
    std::vector<const Scored*> parts;
    for (const Scored& single : singles) {
      if (!is_of_sending(single) && !single.id.fields[0].in_key && single.id.fields[0].is_pointer())
        parts.push_back(&single);
    }
    if (parts.empty()) return;
    for (const Scored* part : parts) {
      if (Unlikeliness(part->id) < 2) try_id(*part, part->column);
    }
    try_id(*parts[0], ColumnOf({{{Field::Kind::kKey, ""}}}, records_, schemas_));
    for (const Scored& single : singles) {
      if (single.id.fields[0].kind == Field::Kind::kHeader && Unlikeliness(single.id) < 2 &&
          !IsHeaderOfSending(single.id.fields[0].name))
        try_id(*parts[0], single.column);
    }
    for (size_t i = 0; i < std::min(parts.size(), kMostInPairs); ++i) {
      for (size_t j = i + 1; j < std::min(parts.size(), kMostInPairs); ++j) {
        if (Unlikeliness(parts[i]->id) < 2 || Unlikeliness(parts[j]->id) < 2)
          try_id(*parts[i], Joined(parts[i]->column, parts[j]->column));
      }
    }
    if (found == nullptr) return;
    std::vector<Field> places = {found->id.fields[0]};
    std::vector<std::string> names;
    for (size_t i = 0; i < singles.size(); ++i) {
      const Field& field = singles[i].id.fields[0];
      if (differ[i]) names.push_back(field.ToString());
      if (!differ[i] && &singles[i] != found && field.is_pointer() && !field.in_key) places.push_back(field);
    }
    sending.places = absl::StrJoin(names, " and ");
    sending.contents = std::make_unique<ContentsOfEvents>(std::move(places), schemas_);
    for (size_t i = 0; i < records_.size(); ++i) contents_[i] = sending.contents->Of(records_[i].View()) | 1;
  }

  // Of a column whose copies are not all equal: in which of the places they differ, if these are of the
  // sending, and copies are few.
  template <typename IsOfSending>
  std::optional<std::vector<bool>> DifferOnlyInSending(const Column& column,
                                                       const std::vector<Scored>& singles,
                                                       const IsOfSending& is_of_sending) const {
    absl::flat_hash_map<uint64_t, size_t> first;
    std::vector<bool> differ(singles.size());
    size_t copies = 0;
    bool any = false;
    for (size_t i = 0; i < column.size(); ++i) {
      if (column[i] == 0) continue;
      const auto [known, is_new] = first.emplace(column[i], i);
      if (is_new) continue;
      ++copies;
      const size_t before = known->second;
      if (contents_[before] == contents_[i]) continue;
      if (records_[before].key != records_[i].key) return std::nullopt;
      bool is_seen = false;
      for (size_t place = 0; place < singles.size(); ++place) {
        if (singles[place].column[before] == singles[place].column[i]) continue;
        if (singles[place].id.fields[0].kind == Field::Kind::kHeader) {
          if (IsHeaderOfSending(singles[place].id.fields[0].name)) continue;
          return std::nullopt;
        }
        if (!is_of_sending(singles[place])) return std::nullopt;
        differ[place] = is_seen = any = true;
      }
      if (!is_seen) return std::nullopt;
    }
    if (!any || copies > column.size() / kLeastPerCopy) return std::nullopt;
    return differ;
  }

  // Of two places that are no id alone. A time, or what is new at each sending, would make one of any other.
  void AddPairs(const std::vector<Scored>& singles, std::vector<Proposal>& chosen) const {
    std::vector<const Scored*> parts;
    for (const Scored& single : singles) {
      const bool is_moment = single.evidence.is_moment || IsMomentName(single.id.fields[0]);
      const bool is_of_sending = single.evidence.copies == 0 && single.evidence.equal_but_for_it > 0;
      if (!is_moment && !is_of_sending && !IsTraceName(single.id.fields[0]) &&
          !IsNameOfSending(single.id.fields[0]))
        parts.push_back(&single);
      if (parts.size() == kMostInPairs) break;
    }
    std::vector<Scored> pairs;
    for (size_t i = 0; i < parts.size(); ++i) {
      for (size_t j = i + 1; j < parts.size(); ++j) {
        Scored pair;
        pair.id = {{parts[i]->id.fields[0], parts[j]->id.fields[0]}};
        pair.evidence = EvidenceOf(pair.id, Joined(parts[i]->column, parts[j]->column));
        pair.quality = QualityOf(pair.id, pair.evidence);
        if (pair.quality == IdQuality::kGood) pairs.push_back(std::move(pair));
      }
    }
    std::stable_sort(pairs.begin(), pairs.end(), [](const Scored& x, const Scored& y) {
      if (x.evidence.copies != y.evidence.copies) return x.evidence.copies > y.evidence.copies;
      return Unlikeliness(x.id) < Unlikeliness(y.id);
    });
    for (size_t i = 0; i < std::min(pairs.size(), kMostPairs); ++i) chosen.push_back({pairs[i].id});
  }

  IdEvidence EvidenceOf(const IdSpec& id, const Column& column) const {
    IdEvidence evidence;
    const bool needs_value = !ReadsOnlyKey(id);
    absl::flat_hash_map<uint64_t, uint64_t> first;
    Column rest;
    for (size_t i = 0; i < column.size(); ++i) {
      const bool counts = records_[i].has_value || !needs_value;
      evidence.records += counts;
      if (column[i] == 0) continue;
      evidence.present += counts;
      ++evidence.events;
      if (ReadsOutsideOfValue(id)) rest.push_back(ContentBut(id, records_[i].View()) | 1);
      const auto [known, is_new] = first.emplace(column[i], contents_[i]);
      if (is_new) continue;
      ++evidence.copies;
      if (known->second == contents_[i]) {
        --evidence.events;
      } else {
        ++evidence.changed;
      }
    }
    evidence.equal_but_for_it = static_cast<double>(CopiesIn(rest));
    return evidence;
  }

  // A time by what it says: all texts are RFC 3339, or all numbers near the records' own times.
  bool IsMoment(const IdSpec& id) const {
    RecordReader reader({.id = id, .schemas = schemas_});
    size_t present = 0;
    for (const Held& held : records_) {
      const SurveyRecord view = held.View();
      const RecordFields& fields = reader.Read(view.record);
      if (fields.id_state != RecordFields::State::kPresent) continue;
      absl::string_view text = fields.id;
      const bool is_number = id.fields[0].is_pointer() && text[0] == 'n';
      if (id.fields[0].is_pointer()) text.remove_prefix(1);
      if (is_number ? !IsNear(text, held.time_ms) : !ParseRfc3339(text)) return false;
      ++present;
    }
    return present > 0;
  }

  const std::vector<Held>& records_;
  SchemaSource* const schemas_;
  std::vector<uint64_t> contents_;
  IdPlaces places_;
  EnvelopeFacts facts_;
};

// All times while they are few, then a reproducible sample.
class Times {
 public:
  void Add(int64_t time_ms) {
    ++seen_;
    if (times_.size() < kTimes) {
      times_.push_back(time_ms);
    } else if (const uint64_t place = random_() % seen_; place < kTimes) {
      times_[place] = time_ms;
    }
  }

  void Fill(SurveyReport& report) {
    if (times_.empty()) return;
    std::sort(times_.begin(), times_.end());
    const size_t cut = times_.size() / 200;
    const int64_t begin = times_[cut];
    const int64_t end = times_[times_.size() - 1 - cut];
    report.begin = absl::FromUnixMillis(begin);
    report.end = absl::FromUnixMillis(end);
    if (end == begin) return;
    const double share = static_cast<double>(times_.size() - 2 * cut) / static_cast<double>(times_.size());
    report.rate = share * static_cast<double>(seen_) * 1000 / static_cast<double>(end - begin);
  }

 private:
  std::vector<int64_t> times_;
  uint64_t seen_ = 0;
  std::mt19937_64 random_;  // NOLINT(cert-msc51-cpp): reproducible
};

}  // namespace

class Survey::Impl {
 public:
  explicit Impl(SurveyOptions options) : options_(std::move(options)) {}

  void Add(const SurveyRecord& record) {
    ++records_;
    tombstones_ += !record.record.value;
    frames_.Add(record.record.key, record.record.value);
    if (record.time_ms >= 0) {
      times_.Add(record.time_ms);
      unit_.Add(record.time_ms);
    } else {
      ++without_time_;
    }
    if (lists_.examined < static_cast<int64_t>(kFirstRecords) && record.record.value)
      FindList(*record.record.value);
    if (!tracked_.empty()) return Measure(record);
    held_.emplace_back(record);
    held_bytes_ += held_.back().bytes();
    if (held_.size() >= kFirstRecords || held_bytes_ >= kFirstBytes) ChooseAndTrack();
  }

  int64_t records() const { return records_; }

  SurveyReport Report() {
    if (tracked_.empty()) ChooseAndTrack();
    SurveyReport report;
    report.records = records_;
    report.tombstones = tombstones_;
    report.envelope = envelope_.empty() ? lists_envelope_ : envelope_;
    report.lists = lists_;
    report.without_time = without_time_;
    report.frames = frames_;
    if (unit_.MostAreWrong()) {
      report.wrong_times = unit_.Text();
    } else {
      times_.Fill(report);
    }
    Rate(report.candidates);
    return report;
  }

 private:
  void FindList(absl::string_view value) {
    ++lists_.examined;
    const std::optional<EventList> list = finder_.Find(value);
    if (!list) return;
    if (lists_envelope_.empty()) lists_envelope_ = list->envelope;
    if (list->events < 2) return;
    if (lists_.records == 0) lists_.pointer = list->pointer;
    ++lists_.records;
    lists_.events += list->events;
  }

  void Track(Proposal proposal, int64_t memory_bytes) {
    tracked_.push_back(std::make_unique<Tracked>(std::move(proposal), memory_bytes, options_.schemas));
  }

  void Measure(const SurveyRecord& record) {
    const auto content =
        static_cast<uint32_t>(sending_.contents ? sending_.contents->Of(record) : ContentOf(record));
    for (const auto& tracked : tracked_) tracked->Add(record, content);
  }

  void ChooseAndTrack() {
    std::string envelope;
    std::vector<Proposal> ids = Search(held_, options_.schemas).Choose(envelope, sending_);
    if (options_.id) {
      ids = {{*options_.id}};
    } else {
      envelope_ = std::move(envelope);
    }
    const int64_t share = options_.memory_bytes / static_cast<int64_t>(ids.size());
    for (Proposal& id : ids) Track(std::move(id), share);
    for (const Held& held : held_) Measure(held.View());
    held_ = {};
  }

  void Rate(std::vector<IdCandidate>& candidates) {
    std::vector<std::pair<IdCandidate, IdEvidence>> measured;
    for (const auto& tracked : tracked_) {
      auto& [candidate, evidence] = measured.emplace_back(tracked->Measured(sending_.places));
      IdOpinion opinion = OpinionOf(candidate.id, evidence);
      candidate.quality = opinion.quality;
      candidate.remark = std::move(opinion.remark);
    }
    std::stable_sort(measured.begin(), measured.end(), [](const auto& x, const auto& y) {
      return IsPreferred(x.first.id, x.first.quality, x.second, y.first.id, y.first.quality, y.second);
    });
    for (auto& [candidate, evidence] : measured) candidates.push_back(std::move(candidate));
  }

  const SurveyOptions options_;
  int64_t records_ = 0;
  int64_t tombstones_ = 0;
  std::string envelope_;
  EventListFinder finder_;
  SurveyReport::Lists lists_;
  std::string lists_envelope_;
  int64_t without_time_ = 0;
  RegistryFrames frames_;
  Times times_;
  TimeUnitCheck unit_;
  std::vector<Held> held_;
  size_t held_bytes_ = 0;
  Sending sending_;
  std::vector<std::unique_ptr<Tracked>> tracked_;  // empty while candidates are not chosen
};

Survey::Survey(SurveyOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Survey::~Survey() = default;
void Survey::Add(const SurveyRecord& record) { impl_->Add(record); }
int64_t Survey::records() const { return impl_->records(); }
SurveyReport Survey::Report() { return impl_->Report(); }

}  // namespace lethe
