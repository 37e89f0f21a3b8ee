#include "src/stage/snapshot_format.h"

#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/snapshot/fields.h"

namespace lethe {
namespace {

constexpr absl::string_view kMagic = "LETHESNP";
constexpr absl::string_view kEndMagic = "LETHEEND";
constexpr size_t kMostText = size_t{1} << 16;
constexpr uint32_t kMostHeaderBytes = 1 << 20;
constexpr int kMostShards = 256;
constexpr size_t kMostName = 64;

// The preamble and the end: eight letters, eight bytes.
using Marker = std::array<char, 16>;

template <typename Eight>
Marker MarkerOf(absl::string_view letters, const Eight& eight) {
  static_assert(sizeof(eight) == 8);
  Marker marker{};
  std::memcpy(marker.data(), letters.data(), 8);
  std::memcpy(marker.data() + 8, &eight, 8);
  return marker;
}

}  // namespace

template <typename Self, typename Fields>
void SnapshotHeader::Transfer(Self& self, Fields& fields) {
  fields.Text(self.name, kMostText);
  fields.Text(self.origin.topic, kMostText);
  fields.Int(self.origin.partition, INT32_MIN, INT32_MAX);
  fields.Text(self.origin.id_fingerprint, kMostText);
  fields.Int(self.point.offset, INT64_MIN, INT64_MAX);
  fields.Int(self.point.end_offset, INT64_MIN, INT64_MAX);
  fields.Word(self.point.record_before);
  fields.Text(self.engine, kMostName);
  fields.Int(self.shards, 1, kMostShards);
  int64_t horizon_ns = absl::ToInt64Nanoseconds(self.horizon);
  fields.Int(horizon_ns, 1, INT64_MAX);
  if constexpr (!std::is_const_v<Self>) self.horizon = absl::Nanoseconds(horizon_ns);
  fields.Float(self.target_fpp, 0, 1);
  fields.Word(self.salt.low);
  fields.Word(self.salt.high);
  fields.Word(self.key_check);
  fields.Int(self.started, 0, 1);
  fields.Text(self.point.notes, kMostText);
  fields.Int(self.renew, 0, 1);
}

absl::StatusOr<std::string> SnapshotHeader::SerializedState() const {
  FieldWriter fields;
  Transfer(*this, fields);
  clock.Save(&fields);
  ahead.Save(&fields);
  if (fields.ok()) return fields.bytes();
  return absl::InvalidArgumentError(
      "a snapshot's name, topic, fingerprint and notes have at most 64 KiB each; shorten them");
}

absl::Status SnapshotHeader::Write(SnapshotWriter* writer) const {
  const absl::StatusOr<std::string> state = SerializedState();
  if (!state.ok()) return state.status();
  const uint32_t numbers[] = {version, static_cast<uint32_t>(state->size())};
  const Marker preamble = MarkerOf(kMagic, numbers);
  if (absl::Status status = writer->WritePiece({preamble.data(), preamble.size()}); !status.ok())
    return status;
  return writer->WritePiece(*state);
}

absl::Status SnapshotHeader::Rewrite(SnapshotWriter* writer) const {
  const absl::StatusOr<std::string> state = SerializedState();
  if (!state.ok()) return state.status();
  return writer->RewritePiece(sizeof(Marker) + kChecksumBytes, *state);
}

absl::StatusOr<SnapshotHeader> SnapshotHeader::Read(SnapshotReader* reader) {
  // A user who names another file by mistake is not told to delete it.
  if (!reader->BeginsWith(kMagic)) {
    return reader->Annotate(
        absl::DataLossError("is not a snapshot of lethe, or its first bytes are damaged; it is not used"));
  }
  Marker preamble;
  if (absl::Status status = reader->ReadPiece(absl::MakeSpan(preamble), "preamble"); !status.ok())
    return status;
  uint32_t numbers[2];
  std::memcpy(numbers, preamble.data() + 8, 8);
  if (numbers[0] == 0 || numbers[1] > kMostHeaderBytes) return reader->Damaged("has an impossible preamble");
  if (numbers[0] != kSnapshotVersion) {
    return reader->Annotate(absl::FailedPreconditionError(absl::StrCat(
        "has the format version ", numbers[0], ", and this program knows version ", kSnapshotVersion,
        ": read it with the program that wrote it, or let the filter be rebuilt from its log")));
  }
  std::string state(numbers[1], '\0');
  if (absl::Status status = reader->ReadPiece(absl::MakeSpan(state), "header"); !status.ok()) return status;
  SnapshotHeader header;
  header.version = numbers[0];
  FieldReader fields(state);
  Transfer(header, fields);
  header.clock = StreamTime::For(header.horizon);
  header.ahead = AheadIds(absl::ToInt64Milliseconds(header.horizon));
  const bool has_clock = header.clock.Restore(&fields) && header.ahead.Restore(&fields);
  if (!has_clock || !fields.Ended()) return reader->Damaged("has an impossible header");
  return header;
}

absl::Status WriteSnapshotEnd(SnapshotWriter* writer) {
  const int64_t bytes = writer->offset() + static_cast<int64_t>(sizeof(Marker)) + kChecksumBytes;
  const Marker end = MarkerOf(kEndMagic, bytes);
  return writer->WritePiece({end.data(), end.size()});
}

absl::Status ReadSnapshotEnd(SnapshotReader* reader) {
  Marker end;
  if (absl::Status status = reader->ReadPiece(absl::MakeSpan(end), "end"); !status.ok()) return status;
  if (end != MarkerOf(kEndMagic, reader->offset())) return reader->Damaged("does not end as a snapshot does");
  if (reader->remaining() == 0) return absl::OkStatus();
  return reader->Damaged(
      absl::StrCat("has ", reader->remaining(), " bytes too many, from byte ", reader->offset()));
}

}  // namespace lethe
