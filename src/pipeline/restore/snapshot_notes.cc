#include "src/pipeline/restore/snapshot_notes.h"

#include <map>
#include <random>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "src/pipeline/restore/commit_metadata.h"

namespace lethe {

SnapshotId SnapshotId::New(int64_t offset, absl::Time now) {
  std::random_device random;
  return {offset, static_cast<uint64_t>(absl::ToUnixMillis(now)) << 22 | random() >> 10};
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
  // One name for one id: no sign, no space, no other digits.
  return id.offset >= 0 && id.ToString() == text ? std::optional(id) : std::nullopt;
}

std::string SnapshotNotes::ToString() const {
  return absl::StrCat("o=", origin, " m=", mark_offset, " n=", timed_records, " c=", TimeText(covered_since),
                      " p=", points);
}

std::optional<SnapshotNotes> SnapshotNotes::Parse(absl::string_view text) {
  std::map<absl::string_view, absl::string_view> fields;
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    const std::pair<absl::string_view, absl::string_view> field =
        absl::StrSplit(word, absl::MaxSplits('=', 1));
    fields.insert(field);
  }
  SnapshotNotes notes;
  if (!absl::SimpleAtoi(fields["o"], &notes.origin) || !absl::SimpleAtoi(fields["m"], &notes.mark_offset) ||
      !absl::SimpleAtoi(fields["n"], &notes.timed_records) || !ParseTime(fields["c"], &notes.covered_since)) {
    return std::nullopt;
  }
  notes.points = std::string(fields["p"]);
  return notes;
}

}  // namespace lethe
