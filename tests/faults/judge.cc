#include "tests/faults/judge.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <unordered_map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tests/support/oracle.h"

namespace lethe::test {
namespace {

constexpr size_t kExamples = 5;  // of each kind of problem
constexpr size_t kMedianOf = 101;

// Problems of one kind.
class Kind {
 public:
  explicit Kind(std::string name) : name_(std::move(name)) {}
  void Add(const std::string& example) {
    if (count_++ < kExamples) absl::StrAppend(&examples_, "\n      ", example);
  }
  int64_t count() const { return static_cast<int64_t>(count_); }
  void Report(std::vector<std::string>& problems) const {
    if (count_ > 0) problems.push_back(absl::StrCat(count_, " ", name_, ", for example:", examples_));
  }

 private:
  const std::string name_;
  size_t count_ = 0;
  std::string examples_;
};

struct Kinds {
  Kind lost{"records are LOST: dropped, and no copy of them had been passed"};
  Kind repeated{"records are REPEATED: passed within the horizon of a copy"};
  Kind remembered{"records are REMEMBERED for too long: dropped, and their ids had to be forgotten"};
  Kind held{"filters HOLD other ids than they should"};
  Kind times{"filters have ANOTHER TIME"};
  Kind twice{"records are out TWICE: one input record, several output records"};
  Kind foreign{"records of the output are FOREIGN: the partition's input has no such record"};
  Kind reordered{"records are REORDERED: out after one that follows them in the input"};
  Kind changed{"records are CHANGED on their way"};
  Kind counters{"counters are WRONG"};
  Kind open{"partitions have a transaction OPEN"};
  Kind uncommitted{"partitions are NOT COMMITTED to their end"};
};

// Stream time by its definition, slowly.
class NaiveStreamTime {
 public:
  NaiveStreamTime(absl::Time latest, absl::Duration horizon)
      : latest_ms_(absl::ToUnixMillis(latest)), settled_ms_(absl::ToInt64Milliseconds(horizon / 32)) {}

  std::optional<int64_t> Observe(int64_t timestamp_ms) {
    if (timestamp_ms > latest_ms_) return now_;
    // The sorted window is kept: to sort it for each record would take most of a simulation's time.
    const auto place = [this](int64_t time) {
      return std::lower_bound(sorted_.begin(), sorted_.end(), time);
    };
    last_.push_back(timestamp_ms);
    sorted_.insert(place(timestamp_ms), timestamp_ms);
    ++seen_;
    if (last_.size() > kMedianOf) {
      sorted_.erase(place(last_.front()));
      last_.pop_front();
    }
    if (last_.size() < kMedianOf) return now_;
    const bool is_settled = sorted_[kMedianOf * 3 / 4] - sorted_[kMedianOf / 4] <= settled_ms_;
    if (!now_ && !is_settled && seen_ < kMostUnsettled) return now_;
    now_ = std::max(now_.value_or(INT64_MIN), sorted_[kMedianOf / 2]);
    return now_;
  }

 private:
  static constexpr int64_t kMostUnsettled = 3 * kMedianOf;

  const int64_t latest_ms_;
  const int64_t settled_ms_;
  int64_t seen_ = 0;
  std::deque<int64_t> last_;
  std::vector<int64_t> sorted_;
  std::optional<int64_t> now_;
};

constexpr absl::Time kFarthest = absl::FromUnixSeconds(int64_t{1} << 40);

// One input record.
struct Entry {
  const Record* record = nullptr;
  FaultyEvent event;
  int64_t stream_time_ms = 0;
  // Its timestamp, or stream time if that is later; where the timestamp is, or may be, too far ahead, the one
  // before.
  int64_t own_ms = 0;
  int64_t earliest_own_ms = 0;
  bool is_timed = false;  // for sure
  int64_t latest_ms = 0;  // of its timestamp and the two before, as which it passes
  int64_t kept_ms = 0;    // stream time when it had come to the record, and its id entered the filter anew
  size_t left_at = SIZE_MAX;  // the record with which it had
  size_t before = SIZE_MAX;   // the last of its id that is deliverable
  bool passed = false;
  bool undeliverable = false;
};

bool Same(const Record& a, const Record& b) {
  return a.key == b.key && a.value == b.value && a.headers == b.headers && a.timestamp_ms == b.timestamp_ms;
}

std::string Place(const Entry& entry) {
  return absl::StrCat("id \"", entry.event.id, "\" (sending ", entry.event.send, ") at offset ",
                      entry.record->offset, " of input partition ", entry.record->partition, ", stream time ",
                      absl::FormatTime(absl::FromUnixMillis(entry.stream_time_ms), absl::UTCTimeZone()));
}

class PartitionJudge {
 public:
  PartitionJudge(const Evidence& evidence, Kinds& kinds, Judgement& sums)
      : horizon_ms_(absl::ToInt64Milliseconds(evidence.horizon)),
        forgotten_after_ms_(absl::ToInt64Milliseconds(evidence.forgotten_after)),
        renews_(evidence.renews),
        is_rebuilt_(evidence.is_rebuilt || evidence.renews),
        keeps_order_(!evidence.topic_scope),
        scattered_(evidence.scattered),
        clock_may_be_older_(evidence.clock_may_be_older),
        sent_ms_(evidence.sent_ms),
        output_takes_bytes_(evidence.output_takes_bytes),
        kinds_(kinds),
        sums_(sums),
        latest_ms_(absl::ToUnixMillis(std::min(evidence.latest_time, kFarthest))),
        differ_ms_(absl::ToInt64Milliseconds(evidence.clocks_differ)),
        stream_time_(evidence.latest_time, evidence.horizon) {}

  void AddInput(const Record& record) {
    Entry entry;
    entry.record = &record;
    if (!record.value || !FaultyEvent::Parse(*record.value, &entry.event)) {
      kinds_.foreign.Add(absl::StrCat("the input itself, at ", record.partition, "/", record.offset));
      return;
    }
    const std::optional<int64_t> now = stream_time_.Observe(record.timestamp_ms);
    entry.stream_time_ms = now.value_or(0);
    entry.is_timed = record.timestamp_ms <= latest_ms_ - differ_ms_;
    if (record.timestamp_ms <= latest_ms_ + differ_ms_) {
      last_ms_ = record.timestamp_ms;
      last_three_ms_ = {last_three_ms_[1], last_three_ms_[2], last_ms_};
      // Of those that had none, the next timestamp counts, too.
      for (size_t i = entries_.size(); i > 0 && !entries_[i - 1].is_timed; --i) {
        Entry& untimed = entries_[i - 1];
        untimed.latest_ms = std::max(untimed.latest_ms, last_ms_);
        // In a replay stream time has perhaps not come to it yet.
        if (is_rebuilt_) untimed.kept_ms = std::max(untimed.kept_ms, last_ms_);
      }
    }
    entry.latest_ms = *std::max_element(last_three_ms_.begin(), last_three_ms_.end());
    // A rebuild takes it for one that passed, at the later of the two times.
    const auto same = latest_of_.try_emplace(entry.event.id, entry.latest_ms).first;
    if (is_rebuilt_) entry.latest_ms = std::max(entry.latest_ms, same->second);
    same->second = entry.latest_ms;
    if (record.timestamp_ms <= latest_ms_ - differ_ms_) earliest_ms_ = record.timestamp_ms;
    entry.own_ms = std::max(last_ms_, entry.stream_time_ms);
    entry.earliest_own_ms = std::max(earliest_ms_, entry.stream_time_ms);
    entry.undeliverable = record.value->size() > output_takes_bytes_;
    std::vector<size_t>& sendings = by_send_[entry.event.send];
    if (!sendings.empty()) ++sums_.client_copies;
    sendings.push_back(entries_.size());
    if (now && unmoved_ == SIZE_MAX) unmoved_ = entries_.size();
    // Whether one that is refused is remembered again is not certain.
    if (const auto last = last_of_.find(entry.event.id); last != last_of_.end()) entry.before = last->second;
    if (!entry.undeliverable) last_of_[entry.event.id] = entries_.size();
    entry.kept_ms = entry.stream_time_ms;
    entries_.push_back(std::move(entry));
    if (entries_.back().event.id.empty()) return;  // it only moves the clock
    ahead_.push_back(entries_.size() - 1);
    // So does one that is known to be undeliverable, and whether it was, or was a copy, nobody knows.
    if (!entries_.back().undeliverable) ComeTo(now);
  }

  void Match(const std::vector<const Record*>& output) {
    // What came before stream time moved is as old as its first value.
    for (size_t i = 0; i < std::min(unmoved_, entries_.size()); ++i) {
      entries_[i].stream_time_ms = unmoved_ == SIZE_MAX ? 0 : entries_[unmoved_].stream_time_ms;
      entries_[i].kept_ms = std::max(entries_[i].kept_ms, entries_[i].stream_time_ms);
    }
    size_t next = 0;  // entries before it have been passed over
    for (const Record* record : output) {
      const size_t found = Find(*record, next);
      if (found == SIZE_MAX) continue;
      Entry& entry = entries_[found];
      entry.passed = true;
      if (entry.record->partition != record->partition) {
        kinds_.foreign.Add(absl::StrCat("in partition ", record->partition, ": ", Place(entry)));
      }
      if (keeps_order_) next = std::max(next, found + 1);
      if (entry.event.id.empty()) continue;
      if (!MayPass(entry)) {
        kinds_.repeated.Add(absl::StrCat(Place(entry), ", passed before at ",
                                         Place(entries_[last_pass_.at(entry.event.id)])));
      }
      late_passed_ += last_pass_.contains(entry.event.id) ? 1 : 0;
      last_pass_[entry.event.id] = found;
    }
  }

  void JudgeDrops(Totals& totals) {
    std::unordered_map<std::string, size_t> last_pass;
    if (scattered_) last_pass = last_pass_;
    for (size_t i = 0; i < entries_.size(); ++i) {
      const Entry& entry = entries_[i];
      ++sums_.records;
      const bool must_pass = MustPass(i, last_pass) && (!is_rebuilt_ || MustPass(i, last_record_));
      const auto known = last_record_.find(entry.event.id);
      const size_t last_at = known == last_record_.end() ? i : known->second;
      // One that is too large is no more than a copy where its id had passed, and a rebuild remembers it.
      if (!entry.undeliverable || last_pass.contains(entry.event.id)) last_record_[entry.event.id] = i;
      sums_.unkeyed += entry.record->key ? 0 : 1;
      sums_.future += entry.record->timestamp_ms > latest_ms_ ? 1 : 0;
      if (entry.passed) {
        ++sums_.passed;
        sums_.surely_late += must_pass ? 1 : 0;
        sums_.without_id += entry.event.id.empty() ? 1 : 0;
        totals[entry.event.country] += entry.event.amount;
        last_pass[entry.event.id] = i;
        continue;
      }
      if (must_pass && !entry.undeliverable) {
        kinds_.remembered.Add(absl::StrCat(Place(entry), ", whose last was at ", Place(entries_[last_at])));
      }
      const auto before = last_pass.find(entry.event.id);
      if (entry.undeliverable && (entry.event.id.empty() || before == last_pass.end())) {
        ++sums_.undeliverable;
        continue;
      }
      ++sums_.dropped;
      if (entry.event.id.empty() || before == last_pass.end()) {
        kinds_.lost.Add(Place(entry));
      } else if (IsLate(entry, entries_[before->second])) {
        ++sums_.late_dropped;
        sums_.late_undeliverable += entry.undeliverable ? 1 : 0;
      }
    }
    sums_.late_passed += late_passed_;
  }

  // After JudgeDrops.
  void JudgeHeld(const HeldIds& held) {
    const size_t all = entries_.size();
    const int64_t now_ms = all == 0 ? 0 : entries_.back().stream_time_ms;
    const absl::Time now = unmoved_ >= all ? absl::InfinitePast() : absl::FromUnixMillis(now_ms);
    const std::string place = absl::StrCat("partition ", all == 0 ? 0 : entries_.front().record->partition,
                                           ", which ends at ", end());
    if (held.stream_time != now) {
      kinds_.times.Add(absl::StrCat(place, ": ", absl::FormatTime(held.stream_time, absl::UTCTimeZone()),
                                    ", not ", absl::FormatTime(now, absl::UTCTimeZone())));
    }
    int64_t least = 0, most = 0;
    for (const auto& [id, last] : is_rebuilt_ ? last_record_ : last_pass_) {
      if (id.empty()) continue;
      const auto pass = last_pass_.find(id);
      if (pass == last_pass_.end()) continue;  // LOST, or undeliverable
      if (now_ms - entries_[pass->second].stream_time_ms <= horizon_ms_) ++least;
      const int64_t kept_ms = std::max(entries_[last].kept_ms, entries_[pass->second].kept_ms);
      if (now_ms - kept_ms <= forgotten_after_ms_) ++most;
    }
    if (held.ids <= most && (held.ids >= least || held.lacks_some)) return;
    kinds_.held.Add(absl::StrCat(place, ": ", held.ids, ", of at least ", least, " and at most ", most));
  }

  int64_t end() const { return entries_.empty() ? 0 : entries_.back().record->offset + 1; }

 private:
  // By stream time, or by the timestamps of both where that lags behind.
  bool MayPass(const Entry& entry) const {
    const auto before = last_pass_.find(entry.event.id);
    if (entry.event.id.empty() || before == last_pass_.end()) return true;
    if (clock_may_be_older_ && before->second < unmoved_) return true;
    if (renews_ && entry.before != SIZE_MAX && !IsLate(entry, entries_[entry.before])) return false;
    return IsLate(entry, entries_[before->second]);
  }

  bool IsLate(const Entry& entry, const Entry& passed) const {
    if (sent_ms_ && sent_ms_(entry.event.send) - sent_ms_(passed.event.send) > horizon_ms_) return true;
    // One that is dated a horizon later than its copy is dated wrongly.
    return entry.stream_time_ms - passed.stream_time_ms > horizon_ms_ ||
           entry.own_ms - passed.earliest_own_ms > horizon_ms_ ||
           passed.own_ms - entry.earliest_own_ms > horizon_ms_;
  }

  // Whether the id of the record was forgotten before.
  bool MustPass(size_t index, const std::unordered_map<std::string, size_t>& known) const {
    const Entry& entry = entries_[index];
    const auto before = known.find(entry.event.id);
    return !entry.event.id.empty() && before != known.end() && entries_[before->second].left_at < index &&
           entry.stream_time_ms - entries_[before->second].kept_ms > forgotten_after_ms_;
  }

  // Stream time comes to records that were ahead of it, at the latest when 101 timestamps have come since.
  void ComeTo(std::optional<int64_t> now_ms) {
    std::erase_if(ahead_, [&](size_t i) {
      Entry& entry = entries_[i];
      const size_t since = entries_.size() - i;
      const bool is_ahead = !now_ms || entry.latest_ms > *now_ms + horizon_ms_ / 16;
      if (is_ahead && since <= kMedianOf) return false;
      if (now_ms) entry.kept_ms = std::max(entry.kept_ms, is_ahead ? *now_ms : KeptAs(entry, *now_ms));
      entry.left_at = entries_.size() - 1;
      // How many had timestamps is not known for sure.
      return !is_ahead || since > 4 * kMedianOf;
    });
  }

  // As of its own timestamp, however far stream time has come by then; in a replay, where stream time stands
  // at first, perhaps a sixteenth of the horizon later than in the first reading.
  int64_t KeptAs(const Entry& entry, int64_t now_ms) const {
    return is_rebuilt_ ? entry.latest_ms : std::min(entry.latest_ms, now_ms);
  }

  // The input record that the output record is: of several equal ones the first that can be it.
  size_t Find(const Record& record, size_t next) {
    FaultyEvent event;
    const auto place = [&] {
      return absl::StrCat("at ", record.partition, "/", record.offset, " of the output");
    };
    const auto sendings = record.value && FaultyEvent::Parse(*record.value, &event)
                              ? by_send_.find(event.send)
                              : by_send_.end();
    if (sendings == by_send_.end()) {
      kinds_.foreign.Add(absl::StrCat(place(), ": ", record.value.value_or("(null)")));
      return SIZE_MAX;
    }
    size_t best = SIZE_MAX;
    size_t unused = SIZE_MAX;
    bool equal = false;
    for (const size_t i : sendings->second) {
      const Entry& entry = entries_[i];
      if (!Same(*entry.record, record)) continue;
      equal = true;
      if (entry.passed) continue;
      if (unused == SIZE_MAX) unused = i;
      if (i < next) continue;
      if (best == SIZE_MAX || (!MayPass(entries_[best]) && MayPass(entry))) best = i;
    }
    const auto original = [&] { return Place(entries_[sendings->second.front()]); };
    if (!equal) {
      kinds_.changed.Add(absl::StrCat(place(), ": ", original()));
      return sendings->second.front();
    }
    if (unused == SIZE_MAX) {
      kinds_.twice.Add(absl::StrCat(place(), ": ", original()));
      return SIZE_MAX;
    }
    if (best == SIZE_MAX) {
      kinds_.reordered.Add(absl::StrCat(place(), ": ", original()));
      return unused;
    }
    return best;
  }

  const int64_t horizon_ms_;
  const int64_t forgotten_after_ms_;
  const bool renews_;
  const bool is_rebuilt_;
  const bool keeps_order_;
  const bool scattered_;
  const bool clock_may_be_older_;
  const std::function<int64_t(int64_t)>& sent_ms_;
  const size_t output_takes_bytes_;
  Kinds& kinds_;
  Judgement& sums_;
  const int64_t latest_ms_;
  const int64_t differ_ms_;
  NaiveStreamTime stream_time_;
  int64_t last_ms_ = 0;
  std::array<int64_t, 3> last_three_ms_ = {};
  int64_t earliest_ms_ = 0;
  std::vector<Entry> entries_;
  std::unordered_map<std::string, size_t> last_record_;  // that a rebuild remembers
  std::vector<size_t> ahead_;
  std::unordered_map<std::string, int64_t> latest_of_;  // by id: of its last record
  size_t unmoved_ = SIZE_MAX;                           // the first entry for which stream time had moved
  std::unordered_map<int64_t, std::vector<size_t>> by_send_;
  std::unordered_map<std::string, size_t> last_of_;  // by id: its last record that is deliverable
  std::unordered_map<std::string, size_t> last_pass_;
  int64_t late_passed_ = 0;
};

std::map<int32_t, std::vector<const Record*>> ByPartition(const std::vector<Record>& records) {
  std::map<int32_t, std::vector<const Record*>> result;
  for (const Record& record : records) result[record.partition].push_back(&record);
  return result;
}

// The input partition that a delta is of, by its header; -1 if it does not say.
int32_t ShardOf(const Record& delta) {
  int32_t partition = -1;
  for (const auto& [name, value] : delta.headers) {
    if (name == "lethe.partition" && !absl::SimpleAtoi(value.value_or(""), &partition)) return -1;
  }
  return partition;
}

void Compare(const char* what, const std::map<int32_t, Totals>& expected, std::map<int32_t, Totals>& actual,
             Kinds& kinds) {
  std::map<int32_t, Totals> all = expected;
  for (const auto& [partition, totals] : actual) {
    for (const auto& [key, total] : totals) all[partition].try_emplace(key, 0);
  }
  for (const auto& [partition, totals] : all) {
    for (const auto& [key, want] : totals) {
      const int64_t got = actual[partition][key];
      if (got != want) {
        kinds.counters.Add(
            absl::StrCat(what, " of \"", key, "\" in partition ", partition, " are ", got, ", not ", want));
      }
    }
  }
}

void CheckCounters(const std::map<int32_t, Totals>& expected, const std::vector<Record>& deltas,
                   bool topic_scope, Kinds& kinds) {
  std::map<int32_t, Totals> actual;
  for (const Record& record : deltas) {
    int64_t delta = 0;
    if (!record.key || !record.value || !absl::SimpleAtoi(*record.value, &delta)) {
      kinds.counters.Add(absl::StrCat("no delta at ", record.partition, "/", record.offset));
      continue;
    }
    actual[topic_scope ? 0 : ShardOf(record)][*record.key] += delta;
  }
  Compare("deltas", expected, actual, kinds);
}

// A total has more in it than the one before, or is the same, for a topic that was missing; and no more than
// is committed.
void CheckTotals(const std::map<int32_t, Totals>& expected, const Evidence& evidence, Kinds& kinds) {
  static thread_local simdjson::dom::parser parser;
  std::map<std::string, std::pair<int64_t, int64_t>> last;  // total and offset, by "PARTITION/KEY"
  for (const Record& record : evidence.totals) {
    const std::string place = absl::StrCat("total at ", record.partition, "/", record.offset);
    const std::vector<std::string> key = absl::StrSplit(record.key.value_or(""), absl::MaxSplits('/', 3));
    simdjson::dom::element value;
    int64_t total = 0, offset = 0;
    if (key.size() != 4 || key[0] != "totals" || key[2] != absl::StrCat(record.partition) ||
        parser.parse(record.value.value_or("")).get(value) || value["total"].get(total) ||
        value["offset"].get(offset)) {
      kinds.counters.Add(absl::StrCat(place, " is none"));
      continue;
    }
    auto& before = last[absl::StrCat(key[2], "/", key[3])];
    if (offset < before.second || (offset == before.second && total != before.first))
      kinds.counters.Add(absl::StrCat(place, " is older than the one before"));
    before = {total, offset};
  }
  std::map<int32_t, Totals> actual;
  for (const auto& [place, total] : last) {
    const std::vector<std::string> parts = absl::StrSplit(place, absl::MaxSplits('/', 1));
    actual[evidence.topic_scope ? 0 : std::stoi(parts[0])][parts[1]] += total.first;
  }
  Compare("totals", expected, actual, kinds);
}

void CheckEnds(const char* topic, const TopicEnds& ends, Kinds& kinds) {
  for (size_t p = 0; p < ends.end.size(); ++p) {
    if (ends.stable[p] == ends.end[p]) continue;
    kinds.open.Add(absl::StrCat(topic, "-", p, ": stable up to ", ends.stable[p], ", ends at ", ends.end[p]));
  }
}

std::vector<const Record*> ByTime(const std::vector<Record>& records) {
  std::vector<const Record*> result;
  for (const Record& record : records) result.push_back(&record);
  std::stable_sort(result.begin(), result.end(),
                   [](const Record* a, const Record* b) { return a->timestamp_ms < b->timestamp_ms; });
  return result;
}

// As one partition, in the order of time.
void JudgeScattered(const Evidence& evidence, Kinds& kinds, Judgement& sums, Totals& totals) {
  PartitionJudge judge(evidence, kinds, sums);
  for (const Record* record : ByTime(evidence.input)) judge.AddInput(*record);
  judge.Match(ByTime(evidence.output));
  judge.JudgeDrops(totals);
}

void CheckCommitted(const Evidence& evidence, Kinds& kinds) {
  std::map<int32_t, int64_t> ends;
  for (const Record& record : evidence.input) ends[record.partition] = record.offset + 1;
  for (const auto& [partition, end] : ends) {
    const int64_t committed = evidence.committed[static_cast<size_t>(partition)];
    if (committed >= end) continue;
    kinds.uncommitted.Add(absl::StrCat("partition ", partition, " is committed up to ", committed,
                                       ", its records end at ", end));
  }
}

}  // namespace

std::string FaultyEvent::ToJson() const {
  return absl::StrCat("{\"send\":", send, id.empty() ? "" : absl::StrCat(",\"id\":\"", id, "\""),
                      ",\"country\":\"", country, "\",\"amount\":", amount,
                      pad.empty() ? "" : absl::StrCat(",\"pad\":\"", pad, "\""), "}");
}

bool FaultyEvent::Parse(absl::string_view json, FaultyEvent* event) {
  // A full parser takes longer than all the rest of a judgement. No value has a comma in it.
  json = absl::StripAsciiWhitespace(json);
  if (!absl::ConsumePrefix(&json, "{") || !absl::ConsumeSuffix(&json, "}")) return false;
  bool has_send = false, has_country = false, has_amount = false;
  event->id.clear();
  for (absl::string_view field : absl::StrSplit(json, ',')) {
    if (absl::ConsumePrefix(&field, "\"send\":")) {
      has_send = absl::SimpleAtoi(field, &event->send);
    } else if (absl::ConsumePrefix(&field, "\"amount\":")) {
      has_amount = absl::SimpleAtoi(field, &event->amount);
    } else if (absl::ConsumePrefix(&field, "\"country\":\"")) {
      has_country = absl::ConsumeSuffix(&field, "\"");
      event->country = std::string(field);
    } else if (absl::ConsumePrefix(&field, "\"id\":\"") && absl::ConsumeSuffix(&field, "\"")) {
      event->id = std::string(field);
    }
  }
  return has_send && has_country && has_amount;
}

Judgement& Judgement::operator+=(const Judgement& more) {
  problems.insert(problems.end(), more.problems.begin(), more.problems.end());
  records += more.records;
  passed += more.passed;
  dropped += more.dropped;
  undeliverable += more.undeliverable;
  late_passed += more.late_passed;
  late_dropped += more.late_dropped;
  surely_late += more.surely_late;
  late_undeliverable += more.late_undeliverable;
  without_id += more.without_id;
  unkeyed += more.unkeyed;
  future += more.future;
  client_copies += more.client_copies;
  lost += more.lost;
  repeated += more.repeated;
  foreign += more.foreign;
  changed += more.changed;
  reordered += more.reordered;
  return *this;
}

Judgement Judge(const Evidence& evidence) {
  Judgement judgement;
  Kinds kinds;
  std::map<int32_t, Totals> totals;
  const auto inputs = ByPartition(evidence.input);
  auto outputs = ByPartition(evidence.output);
  CountedVerdicts seen;
  if (evidence.scattered) {
    JudgeScattered(evidence, kinds, judgement, totals[0]);
    CheckCommitted(evidence, kinds);
    outputs.clear();
  }
  for (size_t p = 0; p < evidence.committed.size() && !evidence.scattered; ++p) {
    const auto partition = static_cast<int32_t>(p);
    PartitionJudge judge(evidence, kinds, judgement);
    if (const auto found = inputs.find(partition); found != inputs.end()) {
      for (const Record* record : found->second) judge.AddInput(*record);
    }
    judge.Match(outputs[partition]);
    outputs.erase(partition);
    judge.JudgeDrops(totals[evidence.topic_scope ? 0 : partition]);
    if (p < evidence.held.size() && evidence.held[p]) judge.JudgeHeld(*evidence.held[p]);
    const int64_t most = p < evidence.input_ends.size() ? evidence.input_ends[p] : judge.end();
    if (judge.end() > 0 && (evidence.committed[p] < judge.end() || evidence.committed[p] > most)) {
      kinds.uncommitted.Add(absl::StrCat("partition ", p, " is committed up to ", evidence.committed[p],
                                         ", its records end at ", judge.end()));
    }
  }
  for (const auto& [partition, records] : outputs) {
    kinds.foreign.Add(absl::StrCat(records.size(), " records in partition ", partition));
  }
  if (evidence.deltas_are_counted) CheckCounters(totals, evidence.deltas, evidence.topic_scope, kinds);
  if (evidence.totals_are_counted) CheckTotals(totals, evidence, kinds);
  CheckEnds("output", evidence.output_ends, kinds);
  CheckEnds("counters", evidence.delta_ends, kinds);
  CheckEnds("totals", evidence.total_ends, kinds);
  for (const Kind* kind :
       {&kinds.lost, &kinds.repeated, &kinds.remembered, &kinds.held, &kinds.times, &kinds.twice,
        &kinds.foreign, &kinds.reordered, &kinds.changed, &kinds.counters, &kinds.open, &kinds.uncommitted}) {
    kind->Report(judgement.problems);
  }
  judgement.lost = kinds.lost.count();
  judgement.repeated = kinds.repeated.count() + kinds.twice.count();
  judgement.foreign = kinds.foreign.count();
  judgement.changed = kinds.changed.count();
  judgement.reordered = kinds.reordered.count();
  seen.missing_id = judgement.without_id;
  seen.unique = judgement.passed - judgement.without_id;
  seen.duplicate = judgement.dropped;
  seen.undeliverable = judgement.undeliverable;
  if (const auto& counted = evidence.counted;
      counted && (counted->unique != seen.unique || counted->duplicate != seen.duplicate ||
                  counted->missing_id != seen.missing_id || counted->undeliverable != seen.undeliverable)) {
    judgement.problems.push_back(absl::StrCat(
        "records are MISCOUNTED: unique ", counted->unique, ", duplicate ", counted->duplicate,
        ", without id ", counted->missing_id, ", undeliverable ", counted->undeliverable, " by the metrics; ",
        seen.unique, ", ", seen.duplicate, ", ", seen.missing_id, ", ", seen.undeliverable, " by the log"));
  }
  return judgement;
}

}  // namespace lethe::test
