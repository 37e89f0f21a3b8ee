#include "src/survey/survey.h"

#include <algorithm>
#include <random>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "src/record/timestamp.h"
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
constexpr size_t kUnusableShown = 3;
constexpr size_t kTimes = 65536;

uint64_t HashOf(absl::string_view bytes) { return FixedHash(bytes).a; }

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
    return {.record = view, .headers = {}, .partition = partition, .offset = offset, .time_ms = time_ms};
  }

  bool has_key, has_value;
  std::string key, value;
  std::vector<std::pair<std::string, std::optional<std::string>>> headers;
  int32_t partition;
  int64_t offset;
  int64_t time_ms;
};

// A candidate's hash in each of the first records; 0: none.
using Column = std::vector<uint64_t>;

// A candidate, measured on all records.
class Tracked {
 public:
  Tracked(IdSpec id, int64_t memory_bytes, SchemaSource* schemas)
      : reader_({.id = id, .schemas = schemas}), sample_(memory_bytes) {
    candidate_.id = std::move(id);
  }

  void Add(const SurveyRecord& record, uint32_t payload) {
    const RecordFields& fields = reader_.Read(record.record);
    if (fields.id_state == RecordFields::State::kPresent) {
      sample_.Add({HashOf(fields.id), record.time_ms, record.offset, record.partition, payload});
      return;
    }
    ++(fields.id_state == RecordFields::State::kMissing ? candidate_.missing : candidate_.malformed);
    if (candidate_.unusable.size() < kUnusableShown) {
      candidate_.unusable.push_back({record.partition, record.offset, std::string(fields.reason)});
    }
  }

  IdCandidate Candidate() {
    IdCandidate candidate = candidate_;
    candidate.figures = sample_.Figures();
    return candidate;
  }

 private:
  RecordReader reader_;
  IdSample sample_;
  IdCandidate candidate_;
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

IdEvidence EvidenceOf(const Column& column, const Column& values) {
  IdEvidence evidence;
  evidence.records = static_cast<double>(column.size());
  absl::flat_hash_map<uint64_t, uint64_t> first;
  for (size_t i = 0; i < column.size(); ++i) {
    if (column[i] == 0) continue;
    ++evidence.present;
    const auto [known, is_new] = first.emplace(column[i], values[i]);
    if (is_new) continue;
    ++evidence.copies;
    evidence.changed += known->second != values[i];
  }
  return evidence;
}

struct Scored {
  IdSpec id;
  Column column;
  IdEvidence evidence;
  IdQuality quality;
};

bool IsBetter(const Scored& x, const Scored& y) {
  if (x.quality != y.quality) return x.quality < y.quality;
  return x.evidence.changed_share() < y.evidence.changed_share();
}

std::vector<IdSpec> ChooseIds(const std::vector<Held>& records, SchemaSource* schemas) {
  IdPlaces places;
  for (const Held& held : records) {
    for (const auto& [name, text] : held.headers) places.AddHeader(name);
    if (held.has_value) places.AddValue(held.value, &held, schemas);
    if (held.has_key) places.AddKey(held.key, &held, schemas);
  }
  const Column values = ColumnOf({{{Field::Kind::kValue, ""}}}, records, nullptr);
  std::vector<Scored> singles;
  for (Field& field : places.AtLeast(static_cast<int64_t>(records.size() + 1) / 2,
                                     static_cast<int64_t>(records.size() + 9) / 10, kMostPlaces)) {
    Scored scored{{{std::move(field)}}, {}, {}, IdQuality::kPoor};
    scored.column = ColumnOf(scored.id, records, schemas);
    scored.evidence = EvidenceOf(scored.column, values);
    scored.quality = QualityOf(scored.id, scored.evidence);
    singles.push_back(std::move(scored));
  }
  std::stable_sort(singles.begin(), singles.end(), IsBetter);

  std::vector<IdSpec> chosen;
  const size_t in_pairs = std::min(singles.size(), kMostInPairs);
  const bool needs_pair = singles.empty() || singles.front().quality != IdQuality::kGood;
  std::vector<Scored> pairs;
  for (size_t i = 0; needs_pair && i < in_pairs; ++i) {
    for (size_t j = i + 1; j < in_pairs; ++j) {
      Scored pair{{{singles[i].id.fields[0], singles[j].id.fields[0]}}, {}, {}, IdQuality::kPoor};
      pair.evidence = EvidenceOf(Joined(singles[i].column, singles[j].column), values);
      pair.quality = QualityOf(pair.id, pair.evidence);
      if (pair.quality == IdQuality::kGood) pairs.push_back(std::move(pair));
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(), IsBetter);
  for (size_t i = 0; i < std::min(pairs.size(), kMostPairs); ++i) chosen.push_back(pairs[i].id);
  for (size_t i = 0; i < std::min(singles.size(), kMostSingles); ++i) chosen.push_back(singles[i].id);
  chosen.push_back({{{Field::Kind::kKey, ""}}});
  chosen.push_back({{{Field::Kind::kValue, ""}}});
  return chosen;
}

IdEvidence EvidenceOf(const IdCandidate& candidate, int64_t records) {
  IdEvidence evidence;
  evidence.records = static_cast<double>(records);
  evidence.present = static_cast<double>(candidate.figures.records);
  evidence.copies = candidate.figures.copies.value;
  evidence.changed = candidate.figures.changed.value;
  return evidence;
}

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
  explicit Impl(SurveyOptions options) : options_(std::move(options)), looks_for_id_(!options_.id) {
    if (options_.id) tracked_.emplace_back(*options_.id, options_.memory_bytes, options_.schemas);
  }

  void Add(const SurveyRecord& record) {
    ++records_;
    frames_.Add(record.record.key, record.record.value);
    if (record.time_ms >= 0) {
      times_.Add(record.time_ms);
      unit_.Add(record.time_ms);
    } else {
      ++without_time_;
    }
    if (!tracked_.empty()) return Track(record);
    held_.emplace_back(record);
    held_bytes_ += held_.back().bytes();
    if (held_.size() >= kFirstRecords || held_bytes_ >= kFirstBytes) ChooseAndTrack();
  }

  int64_t records() const { return records_; }

  SurveyReport Report() {
    if (tracked_.empty()) ChooseAndTrack();
    SurveyReport report;
    report.records = records_;
    report.without_time = without_time_;
    report.frames = frames_;
    if (unit_.MostAreWrong()) {
      report.wrong_times = unit_.Text();
    } else {
      times_.Fill(report);
    }
    for (Tracked& tracked : tracked_) report.candidates.push_back(tracked.Candidate());
    Judge(report.candidates);
    return report;
  }

 private:
  void Track(const SurveyRecord& record) {
    const uint64_t payload = record.record.value ? HashOf(*record.record.value) : 0;
    for (Tracked& tracked : tracked_) tracked.Add(record, static_cast<uint32_t>(payload));
  }

  void ChooseAndTrack() {
    const std::vector<IdSpec> ids = ChooseIds(held_, options_.schemas);
    for (const IdSpec& id : ids) {
      tracked_.emplace_back(id, options_.memory_bytes / static_cast<int64_t>(ids.size()), options_.schemas);
    }
    for (const Held& held : held_) Track(held.View());
    held_ = {};
  }

  void Judge(std::vector<IdCandidate>& candidates) const {
    std::optional<IdEvidence> whole_value;
    for (const IdCandidate& candidate : candidates) {
      const bool is_value = candidate.id.ToString() == "value";
      if (looks_for_id_ && is_value) whole_value = EvidenceOf(candidate, records_);
    }
    for (IdCandidate& candidate : candidates) {
      const IdEvidence evidence = EvidenceOf(candidate, records_);
      const IdOpinion opinion = OpinionOf(candidate.id, evidence, whole_value);
      candidate.quality = opinion.quality;
      candidate.remark = opinion.remark;
    }
    const int64_t records = records_;
    std::stable_sort(candidates.begin(), candidates.end(), [&](const IdCandidate& x, const IdCandidate& y) {
      return IsPreferred(x.id, x.quality, EvidenceOf(x, records), y.id, y.quality, EvidenceOf(y, records));
    });
  }

  const SurveyOptions options_;
  const bool looks_for_id_;
  int64_t records_ = 0;
  int64_t without_time_ = 0;
  RegistryFrames frames_;
  Times times_;
  TimeUnitCheck unit_;
  std::vector<Held> held_;
  size_t held_bytes_ = 0;
  std::vector<Tracked> tracked_;  // empty while candidates are not chosen
};

Survey::Survey(SurveyOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Survey::~Survey() = default;
void Survey::Add(const SurveyRecord& record) { impl_->Add(record); }
int64_t Survey::records() const { return impl_->records(); }
SurveyReport Survey::Report() { return impl_->Report(); }

}  // namespace lethe
