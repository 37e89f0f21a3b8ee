#include "src/pipeline/restore/commit_metadata.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "src/pipeline/options/stage_options.h"

namespace lethe {
namespace {

// Words NAME=VALUE. They are few, and found faster in a row than in a map.
class Fields {
 public:
  // False if a word has no '='.
  bool Parse(absl::string_view words) {
    bool is_good = true;
    for (const absl::string_view word : absl::StrSplit(words, ' ')) {
      const size_t equals = std::min(word.find('='), word.size());
      is_good = is_good && equals < word.size();
      fields_.emplace_back(word.substr(0, equals), word.substr(std::min(equals + 1, word.size())));
    }
    return is_good;
  }
  bool contains(absl::string_view name) const { return Find(name) != fields_.end(); }
  // The first of this name; without one the text is empty.
  absl::string_view operator[](absl::string_view name) const {
    const auto found = Find(name);
    return found == fields_.end() ? absl::string_view() : found->second;
  }

 private:
  using Field = std::pair<absl::string_view, absl::string_view>;
  using Row = absl::InlinedVector<Field, 20>;
  Row::const_iterator Find(absl::string_view name) const {
    return std::find_if(fields_.begin(), fields_.end(),
                        [&](const Field& each) { return each.first == name; });
  }

  Row fields_;
};

std::string GrowthText(const Growth& growth) {
  if (growth.offset < 0) return absl::StrCat(growth.partitions);
  return absl::StrCat(growth.partitions, ":", growth.offset, ":", TimeText(growth.time));
}

bool ParseGrowth(absl::string_view text, Growth* growth) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ':');
  if (parts.empty() || !absl::SimpleAtoi(parts[0], &growth->partitions) || growth->partitions <= 0)
    return false;
  if (parts.size() == 1) return true;
  return parts.size() == 3 && absl::SimpleAtoi(parts[1], &growth->offset) && growth->offset >= 0 &&
         ParseTime(parts[2], &growth->time);
}

bool ParseRecord(absl::string_view text, CommitMetadata* metadata) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ':');
  return parts.size() == 2 && absl::SimpleAtoi(parts[0], &metadata->last.offset) &&
         metadata->last.offset >= 0 && absl::SimpleHexAtoi(parts[1], &metadata->last.hash);
}

std::string ListText(const std::vector<int64_t>& offsets) {
  std::string text;
  for (size_t i = offsets.size(); i-- > 0;) {
    const std::string next =
        text.empty() ? absl::StrCat(offsets[i]) : absl::StrCat(",", offsets[i + 1] - offsets[i]);
    if (text.size() + next.size() > CommitMetadata::kMostListBytes) break;
    text += next;
  }
  return text;
}

bool ParseList(absl::string_view text, std::vector<int64_t>* offsets) {
  if (text.empty() || text.size() > CommitMetadata::kMostListBytes) return false;
  int64_t last = 0;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(word, &number) || number < 0) return false;
    if (!offsets->empty() && (number == 0 || number > last)) return false;
    last = offsets->empty() ? number : last - number;
    offsets->push_back(last);
  }
  std::reverse(offsets->begin(), offsets->end());
  return true;
}

std::string TotalsText(const std::vector<TotalKeys>& totals) {
  return absl::StrJoin(totals, ",", [](std::string* out, const TotalKeys& each) {
    absl::StrAppend(out, absl::Hex(each.counter), ":", each.keys);
  });
}

bool ParseTotals(absl::string_view text, std::vector<TotalKeys>* totals) {
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(word, absl::MaxSplits(':', 2));
    TotalKeys& each = totals->emplace_back();
    if (parts.size() != 2 || totals->size() > CommitMetadata::kMostCounters ||
        !absl::SimpleHexAtoi(parts[0], &each.counter) || !absl::SimpleAtoi(parts[1], &each.keys) ||
        each.keys <= 0) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string TimeText(absl::Time time) {
  return time == absl::InfinitePast() ? "-" : absl::StrCat(absl::ToUnixMillis(time));
}

bool ParseTime(absl::string_view text, absl::Time* time) {
  if (text == "-") {
    *time = absl::InfinitePast();
    return true;
  }
  int64_t ms;
  if (!absl::SimpleAtoi(text, &ms)) return false;
  *time = absl::FromUnixMillis(ms);
  return true;
}

bool CommitMetadata::DropTimesAfter(absl::Time latest) {
  if (growth.time > latest) growth.time = absl::InfinitePast();  // reached at the next record
  if (committed_time <= latest && restart.stream_time <= latest && covered_since <= latest) return false;
  // The filter may have forgotten ids from before R too early. `latest` bounds the gap if the time at R is
  // wrong, too.
  if (restart.offset > origin.offset) covered_since = std::max(covered_since, restart.stream_time);
  covered_since = std::min(covered_since, latest);
  if (restart.stream_time > latest) restart.stream_time = absl::InfinitePast();
  if (committed_time > latest) committed_time = absl::InfinitePast();
  snapshot.clear();
  return true;
}

int64_t KeysOf(const std::vector<TotalKeys>& totals, uint64_t counter) {
  const auto found = std::find_if(totals.begin(), totals.end(),
                                  [&](const TotalKeys& each) { return each.counter == counter; });
  return found == totals.end() ? 0 : found->keys;
}

size_t CommitMetadata::ListedOf(const std::vector<int64_t>& offsets) {
  if (offsets.empty()) return 0;
  const std::string text = ListText(offsets);
  return static_cast<size_t>(std::count(text.begin(), text.end(), ',')) + 1;
}

std::string CommitMetadata::ToString() const {
  return absl::StrCat("lethe/2 o=", origin.offset, " n=", origin.partitions, " r=", restart.offset,
                      " rt=", TimeText(restart.stream_time), " ct=", TimeText(committed_time),
                      " id=", id_fingerprint, " h=", absl::ToInt64Milliseconds(horizon),
                      snapshot.empty() ? "" : " s=", snapshot,
                      covered_since == absl::InfinitePast() ? "" : " cs=" + TimeText(covered_since),
                      growth.partitions == 0 ? "" : " g=" + GrowthText(growth),
                      output.empty() ? "" : " out=" + output, scope.empty() ? "" : " sc=" + scope,
                      last.offset < 0 ? "" : absl::StrCat(" b=", last.offset, ":", absl::Hex(last.hash)),
                      undeliverable.empty() ? "" : " u=" + ListText(undeliverable),
                      last.time == absl::InfinitePast() ? "" : " lt=" + TimeText(last.time),
                      topic_id.empty() ? "" : " ti=" + topic_id,
                      next_record_time == absl::InfinitePast() ? "" : " nt=" + TimeText(next_record_time),
                      wall_time == absl::InfinitePast() ? "" : " wt=" + TimeText(wall_time),
                      totals.empty() ? "" : " tk=" + TotalsText(totals));
}

absl::StatusOr<CommitMetadata> CommitMetadata::Parse(absl::string_view text) {
  if (!absl::StartsWith(text, "lethe/")) return absl::NotFoundError("no metadata of lethe's");
  const std::pair<absl::string_view, absl::string_view> words = absl::StrSplit(text, absl::MaxSplits(' ', 1));
  if (words.first != "lethe/1" && words.first != "lethe/2") {
    return absl::FailedPreconditionError(absl::StrCat("the commit was written in format ", words.first,
                                                      ", this program reads lethe/1 and lethe/2. ",
                                                      kCostOfReset,
                                                      "Run the version that wrote it, or reset "
                                                      "the group's offsets"));
  }
  Fields fields;
  CommitMetadata m;
  int64_t horizon_ms = 0;
  if (!fields.Parse(words.second) || !absl::SimpleAtoi(fields["o"], &m.origin.offset) ||
      !absl::SimpleAtoi(fields["n"], &m.origin.partitions) ||
      !absl::SimpleAtoi(fields["r"], &m.restart.offset) || !ParseTime(fields["rt"], &m.restart.stream_time) ||
      !ParseTime(fields["ct"], &m.committed_time) || !absl::SimpleAtoi(fields["h"], &horizon_ms) ||
      fields["id"].empty() || m.origin.offset < 0 || m.origin.partitions <= 0 ||
      m.restart.offset < m.origin.offset || horizon_ms <= 0 ||
      (fields.contains("cs") && !ParseTime(fields["cs"], &m.covered_since)) ||
      (fields.contains("g") && !ParseGrowth(fields["g"], &m.growth)) ||
      (fields.contains("b") && !ParseRecord(fields["b"], &m)) ||
      (fields.contains("u") && !ParseList(fields["u"], &m.undeliverable)) ||
      (fields.contains("lt") && !ParseTime(fields["lt"], &m.last.time)) ||
      (fields.contains("nt") && !ParseTime(fields["nt"], &m.next_record_time)) ||
      (fields.contains("wt") && !ParseTime(fields["wt"], &m.wall_time)) ||
      (fields.contains("tk") && !ParseTotals(fields["tk"], &m.totals))) {
    return absl::DataLossError(
        absl::StrCat("damaged commit metadata \"", text, "\". ", kCostOfReset, "Reset the group's offsets"));
  }
  m.id_fingerprint = std::string(fields["id"]);
  m.horizon = absl::Milliseconds(horizon_ms);
  m.snapshot = std::string(fields["s"]);
  m.output = std::string(fields["out"]);
  m.scope = std::string(fields["sc"]);
  m.topic_id = std::string(fields["ti"]);
  return m;
}

CommitTimes ReadCommitTimes(absl::string_view text) {
  CommitTimes times;
  if (!absl::StartsWith(text, "lethe/1 ") && !absl::StartsWith(text, "lethe/2 ")) return times;
  for (const auto& [name, time] : {std::pair(" ct=", &times.committed), {" nt=", &times.next_record}}) {
    const size_t at = text.find(name);
    if (at == text.npos) continue;
    const absl::string_view rest = text.substr(at + 4);
    ParseTime(rest.substr(0, rest.find(' ')), time);
  }
  return times;
}

SnapshotId SnapshotId::New(int64_t offset, absl::Time now, uint32_t random) {
  return {offset, static_cast<uint64_t>(absl::ToUnixMillis(now)) << 22 | random >> 10};
}

std::string SnapshotId::ToString() const {
  return absl::StrCat(offset, "-", absl::Hex(token, absl::kZeroPad16));
}

std::optional<SnapshotId> SnapshotId::Parse(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits('-', 1));
  SnapshotId id;
  if (!absl::SimpleAtoi(parts.first, &id.offset) || !absl::SimpleHexAtoi(parts.second, &id.token)) {
    return std::nullopt;
  }
  // One name for each id: no sign, no space, no other digits.
  return id.offset >= 0 && id.ToString() == text ? std::optional(id) : std::nullopt;
}

std::string SnapshotNotes::ToString() const {
  return absl::StrCat("o=", origin, " m=", mark_offset, " n=", timed_records, " c=", TimeText(covered_since),
                      " p=", points, output.empty() ? "" : " out=", output);
}

std::optional<SnapshotNotes> SnapshotNotes::Parse(absl::string_view text) {
  Fields fields;
  fields.Parse(text);
  SnapshotNotes notes;
  if (!absl::SimpleAtoi(fields["o"], &notes.origin) || !absl::SimpleAtoi(fields["m"], &notes.mark_offset) ||
      !absl::SimpleAtoi(fields["n"], &notes.timed_records) || !ParseTime(fields["c"], &notes.covered_since)) {
    return std::nullopt;
  }
  notes.points = std::string(fields["p"]);
  if (fields.contains("out")) notes.output = std::string(fields["out"]);
  return notes;
}

}  // namespace lethe
