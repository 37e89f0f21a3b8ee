// The audit in a snapshot: the field list below, and then its ids in pieces of at most kPlacesPerPiece
// places, each place five fields: a and b of the id, its stream time (INT64_MAX: forgotten), the payload's
// hash, and whether it was passed.
#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "src/fpp/audit.h"
#include "src/snapshot/fields.h"
#include "src/snapshot/snapshot_file.h"

namespace lethe {
namespace {

constexpr uint32_t kAllIds = 1 << 16;
constexpr int64_t kPlacesPerPiece = 4096;
constexpr int64_t kPlaceBytes = 5 * 8;
constexpr int64_t kForgottenMs = INT64_MAX;

}  // namespace

template <typename Self, typename Fields>
void Audit::Transfer(Self& self, SavedIds& ids, Fields& fields) {
  fields.Int(self.threshold_, 0, kAllIds);
  fields.Int(self.fades_ms_, 0, 2 * kFarthestSnapshotMs);
  fields.Time(self.now_ms_);
  fields.Time(self.first_ms_);
  fields.Count(ids.capacity);
  fields.Count(ids.places);
  fields.Count(self.counts_.events);
  fields.Count(self.counts_.fresh);
  fields.Count(self.counts_.false_drops);
  fields.Count(self.counts_.copies);
  fields.Count(self.counts_.missed);
  fields.Count(self.counts_.compared);
  fields.Count(self.counts_.payload_mismatches);
}

void Audit::Save(FieldWriter* fields) const {
  SavedIds ids;
  for (const auto& part : parts_) {
    ids.places += static_cast<int64_t>(part->seen.places());
    ids.capacity += static_cast<int64_t>(part->capacity);
  }
  if (ids.capacity > 0)
    ids.capacity = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(ids.capacity)));
  Transfer(*this, ids, *fields);
}

bool Audit::Restore(FieldReader* fields, SavedIds* ids) {
  const uint32_t wanted = threshold_;
  Transfer(*this, *ids, *fields);
  threshold_ = std::min(threshold_, wanted);
  return fields->ok() && ids->places <= ids->capacity &&
         (ids->capacity == 0 || std::has_single_bit(static_cast<uint64_t>(ids->capacity)));
}

absl::Status Audit::SaveIds(absl::Span<const Seen> ids, SnapshotWriter* writer) {
  for (size_t done = 0; done < ids.size(); done += kPlacesPerPiece) {
    FieldWriter fields;
    for (const Seen& seen : ids.subspan(done, kPlacesPerPiece)) {
      fields.Word(seen.id.a);
      fields.Word(seen.id.b);
      fields.Int(seen.stream_time_ms, INT64_MIN, INT64_MAX);
      fields.Word(uint64_t{seen.payload});
      fields.Int(seen.passed ? 1 : 0, 0, 1);
    }
    if (absl::Status status = writer->WritePiece(fields.bytes()); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Audit::RestoreIds(const SavedIds& ids, SnapshotReader* reader) {
  // As many bits of a payload's hash as an entry keeps.
  constexpr uint64_t kPayloadBits = [] {
    Seen all;
    --all.payload;
    return uint64_t{all.payload};
  }();
  std::string piece;
  for (int64_t left = ids.places; left > 0; left -= kPlacesPerPiece) {
    piece.resize(static_cast<size_t>(std::min(left, kPlacesPerPiece) * kPlaceBytes));
    if (absl::Status status = reader->ReadPiece(absl::MakeSpan(piece), "ids of the audit"); !status.ok()) {
      return status;
    }
    FieldReader fields(piece);
    while (!fields.Ended()) {
      Seen seen;
      int64_t time_ms = 0;
      uint64_t payload = 0;
      int passed = 0;
      fields.Word(seen.id.a);
      fields.Word(seen.id.b);
      fields.Int(time_ms, INT64_MIN, INT64_MAX);
      fields.Word(payload);
      fields.Int(passed, 0, 1);
      const bool forgotten = time_ms == kForgottenMs;
      const bool in_time = time_ms == kNoStreamTime || forgotten ||
                           (time_ms >= -kFarthestSnapshotMs && time_ms <= kFarthestSnapshotMs);
      seen.stream_time_ms = forgotten ? 0 : time_ms;
      seen.payload = payload & kPayloadBits;
      seen.passed = passed == 1;
      if (!fields.ok() || !in_time || !RestoreId(seen, forgotten)) {
        return reader->Damaged("holds impossible ids of the audit");
      }
    }
  }
  return absl::OkStatus();
}

// False if it is there already.
bool Audit::RestoreId(const Seen& seen, bool forgotten) {
  if (forgotten || !Audits(seen.id) || !MakeRoom(seen.id) || !Audits(seen.id)) return true;
  return PartOf(seen.id).seen.Insert(seen);
}

}  // namespace lethe
