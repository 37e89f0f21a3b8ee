// The C interface: each function checks, converts and calls the C++ API, whose headers say the rest.
#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "lethe/event.h"
#include "lethe/lethe.h"
#include "lethe/options.h"
#include "lethe/snapshot.h"
#include "lethe/stage.h"
#include "lethe/status.h"
#include "lethe/transaction.h"

// A handle shares what it needs, so that handles may be freed in any order.
struct lethe_stage {
  std::shared_ptr<lethe::DedupStage> stage;
};

namespace {

// The order of the members is that in which they must not be destroyed.
struct PartitionOfStage {
  std::shared_ptr<lethe::DedupStage> stage;
  std::unique_ptr<lethe::Partition> partition;
  std::string notes;  // of the snapshot that it was restored from
};

}  // namespace

struct lethe_partition {
  std::shared_ptr<PartitionOfStage> shared;
  lethe::Partition& operator*() const { return *shared->partition; }
  lethe::Partition* operator->() const { return shared->partition.get(); }
};

struct lethe_transaction {
  std::shared_ptr<PartitionOfStage> shared;
  lethe::Transaction transaction;
};

struct lethe_snapshot {
  std::shared_ptr<PartitionOfStage> shared;
  std::unique_ptr<lethe::LiveSnapshot> snapshot;
};

namespace {

using lethe::Event;
using lethe::Verdict;

static_assert(std::is_same_v<std::underlying_type_t<Verdict>, uint8_t>);
static_assert(static_cast<uint8_t>(Verdict::kUnique) == LETHE_UNIQUE);
static_assert(static_cast<uint8_t>(Verdict::kDuplicate) == LETHE_DUPLICATE);

thread_local char error_text[1024] = "";

lethe_code Report(absl::StatusCode code, absl::string_view text) {
  const size_t size = std::min(text.size(), sizeof error_text - 1);
  std::memcpy(error_text, text.data(), size);
  error_text[size] = '\0';
  switch (static_cast<lethe_code>(code)) {
    case LETHE_CANCELLED:
    case LETHE_INVALID_ARGUMENT:
    case LETHE_NOT_FOUND:
    case LETHE_PERMISSION_DENIED:
    case LETHE_RESOURCE_EXHAUSTED:
    case LETHE_FAILED_PRECONDITION:
    case LETHE_ABORTED:
    case LETHE_UNIMPLEMENTED:
    case LETHE_INTERNAL:
    case LETHE_UNAVAILABLE:
    case LETHE_DATA_LOSS:
      return static_cast<lethe_code>(code);
    default:
      return LETHE_UNKNOWN;
  }
}

lethe_code CodeOf(const absl::Status& status) {
  return status.ok() ? LETHE_OK : Report(status.code(), status.message());
}

// Runs what returns a status. No exception leaves the library.
template <typename Function>
lethe_code Call(Function function) noexcept {
  try {
    return CodeOf(function());
  } catch (const std::bad_alloc&) {
    return Report(absl::StatusCode::kResourceExhausted, "the system has no memory for this call");
  } catch (const std::exception& error) {
    return Report(absl::StatusCode::kInternal, error.what());
  }
}

absl::Status Lacks(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(what, " is NULL"));
}

absl::Time TimeOf(int64_t time_ms) {
  if (time_ms == LETHE_NO_TIME) return absl::InfinitePast();
  return time_ms == LETHE_NO_LIMIT ? absl::InfiniteFuture() : absl::FromUnixMillis(time_ms);
}

int64_t MillisOf(absl::Time time) {
  if (time == absl::InfinitePast()) return LETHE_NO_TIME;
  return time == absl::InfiniteFuture() ? LETHE_NO_LIMIT : absl::ToUnixMillis(time);
}

absl::string_view View(const void* bytes, size_t size) {
  return size == 0 ? absl::string_view() : absl::string_view(static_cast<const char*>(bytes), size);
}

template <typename Struct>
absl::Status CheckSize(const Struct* sized, absl::string_view name) {
  if (sized == nullptr) return Lacks(name);
  if (sized->size >= sizeof sized->size) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, ".size is ", sized->size, "; set it to sizeof ", name));
}

// A struct with a size, as this library knows it: what the caller's has not keeps its default.
template <typename Struct>
absl::StatusOr<Struct> Read(const Struct* from, absl::string_view name, Struct known) {
  if (absl::Status status = CheckSize(from, name); !status.ok()) return status;
  const auto* const bytes = reinterpret_cast<const char*>(from);
  for (size_t i = sizeof known; i < from->size; ++i) {
    if (bytes[i] == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(name, " sets a field that this library of version ",
                                                   LETHE_VERSION, " does not know; set it to 0"));
  }
  std::memcpy(&known, from, std::min(sizeof known, from->size));
  return known;
}

// The reverse. What the caller's has besides stays as it is.
template <typename Struct>
void Write(Struct known, Struct* to) {
  const size_t room = to->size;
  known.size = std::min(room, sizeof known);
  std::memcpy(to, &known, known.size);
}

// Events for the C++ API; up to 512 without an allocation.
using Events = absl::InlinedVector<Event, 512>;

Events EventsOf(const lethe::Partition& partition, const lethe_event* events, size_t count) {
  Events converted;
  converted.reserve(count);
  for (const lethe_event& event : absl::MakeConstSpan(events, count)) {
    converted.push_back({.id = partition.Hash(View(event.id, event.id_size)),
                         .time = TimeOf(event.time_ms),
                         .payload = View(event.payload, event.payload_size)});
  }
  return converted;
}

// Of a partition or of a transaction.
template <typename Judge>
lethe_code JudgeOne(Judge& judge, const void* id, size_t id_size, int64_t time_ms, uint8_t* verdict) {
  return Call([&] {
    const absl::StatusOr<Verdict> judged = judge.Judge(View(id, id_size), TimeOf(time_ms));
    if (judged.ok()) *verdict = static_cast<uint8_t>(*judged);
    return judged.status();
  });
}

template <typename Judge>
lethe_code JudgeBatch(Judge& judge, const lethe::Partition& partition, const lethe_event* events,
                      size_t count, uint8_t* verdicts) {
  return Call([&] {
    return judge.Judge(EventsOf(partition, events, count),
                       absl::MakeSpan(reinterpret_cast<Verdict*>(verdicts), count));
  });
}

lethe_partition* NewPartition(const lethe_stage& stage, std::unique_ptr<lethe::Partition> partition,
                              std::string notes) {
  return new lethe_partition{std::make_shared<PartitionOfStage>(
      PartitionOfStage{stage.stage, std::move(partition), std::move(notes)})};
}

absl::StatusOr<lethe::SnapshotOrigin> OriginOf(const lethe_snapshot_origin* origin) {
  const absl::StatusOr<lethe_snapshot_origin> known = Read(origin, "lethe_snapshot_origin", {});
  if (!known.ok()) return known.status();
  lethe::SnapshotOrigin converted;
  if (known->topic != nullptr) converted.topic = known->topic;
  converted.partition = known->partition;
  if (known->id_fingerprint != nullptr) converted.id_fingerprint = known->id_fingerprint;
  return converted;
}

absl::StatusOr<lethe::SnapshotPoint> PointOf(const lethe_snapshot_point* point) {
  const absl::StatusOr<lethe_snapshot_point> known = Read(point, "lethe_snapshot_point", {});
  if (!known.ok()) return known.status();
  return lethe::SnapshotPoint{.offset = known->offset,
                              .end_offset = known->end_offset,
                              .record_before = known->record_before,
                              .notes = std::string(View(known->notes, known->notes_size))};
}

lethe_status StatusOf(const lethe::PartitionStatus& status) {
  const lethe::FilterStatus& filter = status.filter;
  const lethe::AuditStatus& audit = status.audit;
  return {.size = sizeof(lethe_status),
          .stream_time_ms = MillisOf(status.stream_time),
          .unique = status.unique,
          .duplicates = status.duplicates,
          .replayed = status.replayed,
          .pending = status.pending,
          .ids = filter.ids,
          .window_ms = absl::ToInt64Milliseconds(filter.window),
          .memory_bytes = filter.memory_bytes,
          .memory_above_need_bytes = filter.memory_above_need_bytes,
          .refreshes = filter.refreshes,
          .limit_hits = filter.limit_hits,
          .lost_ids = filter.lost_ids,
          .fpp_target = filter.fpp.target,
          .fpp_modelled = filter.fpp.modelled,
          .fpp_estimated = filter.fpp.estimated,
          .audit_share = audit.share,
          .audit_events = audit.events,
          .audit_fresh = audit.fresh,
          .audit_false_drops = audit.false_drops,
          .audit_copies = audit.copies,
          .audit_missed = audit.missed,
          .audit_compared = audit.compared,
          .audit_mismatches = audit.payload_mismatches,
          .audit_fpp_measured = audit.fpp_measured,
          .audit_fpp_low = audit.fpp_low,
          .audit_fpp_high = audit.fpp_high,
          .audit_ids = audit.ids,
          .audit_memory_bytes = audit.memory_bytes};
}

lethe_options DefaultOptions() {
  const lethe::StageOptions defaults;
  return {.size = sizeof(lethe_options),
          .horizon_ms = absl::ToInt64Milliseconds(defaults.horizon),
          .target_fpp = defaults.target_fpp,
          .memory_limit_bytes = defaults.memory_limit_bytes,
          .audit_share = defaults.audit_share,
          .engine = LETHE_ENGINE_COMPACT,
          .shards = defaults.shards,
          .renew = 0,
          .reserved = 0,
          .snapshot_secret = {0, 0}};
}

absl::StatusOr<lethe::StageOptions> OptionsOf(const lethe_options* options) {
  const absl::StatusOr<lethe_options> known = Read(options, "lethe_options", DefaultOptions());
  if (!known.ok()) return known.status();
  lethe::StageOptions converted;
  switch (known->engine) {
    case LETHE_ENGINE_COMPACT:
      converted.engine = lethe::Engine::kCompact;
      break;
    case LETHE_ENGINE_EXACT:
      converted.engine = lethe::Engine::kExact;
      break;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("lethe_options.engine is ", known->engine, "; set a lethe_engine"));
  }
  converted.horizon = absl::Milliseconds(known->horizon_ms);
  converted.target_fpp = known->target_fpp;
  converted.memory_limit_bytes = known->memory_limit_bytes;
  converted.audit_share = known->audit_share;
  converted.shards = known->shards;
  converted.renew = known->renew != 0;
  converted.snapshot_secret = {known->snapshot_secret[0], known->snapshot_secret[1]};
  return converted;
}

}  // namespace

uint32_t lethe_abi_version(void) { return LETHE_ABI_VERSION; }
const char* lethe_version(void) { return LETHE_VERSION; }
const char* lethe_error_text(void) { return error_text; }

void lethe_options_init(lethe_options* options, size_t size) {
  std::memset(options, 0, size);
  const lethe_options defaults = DefaultOptions();
  std::memcpy(options, &defaults, std::min(size, sizeof defaults));
  options->size = size;
}

lethe_code lethe_stage_create(const lethe_options* options, lethe_stage** stage) {
  return Call([&] {
    const absl::StatusOr<lethe::StageOptions> converted = OptionsOf(options);
    if (!converted.ok()) return converted.status();
    absl::StatusOr<std::unique_ptr<lethe::DedupStage>> created = lethe::DedupStage::Create(*converted);
    if (!created.ok()) return created.status();
    *stage = new lethe_stage{*std::move(created)};
    return absl::OkStatus();
  });
}

void lethe_stage_free(lethe_stage* stage) { delete stage; }

int64_t lethe_stage_used_bytes(const lethe_stage* stage) { return stage->stage->memory().used_bytes(); }

lethe_code lethe_stage_set_memory_limit(lethe_stage* stage, int64_t bytes) {
  return Call([&] { return stage->stage->SetMemoryLimit(bytes); });
}

lethe_code lethe_partition_open(lethe_stage* stage, const char* name, lethe_partition** partition) {
  return Call([&] {
    if (name == nullptr) return Lacks("name");
    absl::StatusOr<std::unique_ptr<lethe::Partition>> opened = stage->stage->Open(name);
    if (!opened.ok()) return opened.status();
    *partition = NewPartition(*stage, *std::move(opened), "");
    return absl::OkStatus();
  });
}

void lethe_partition_free(lethe_partition* partition) { delete partition; }

lethe_code lethe_partition_judge(lethe_partition* partition, const void* id, size_t id_size, int64_t time_ms,
                                 uint8_t* verdict) {
  return JudgeOne(**partition, id, id_size, time_ms, verdict);
}

lethe_code lethe_partition_judge_batch(lethe_partition* partition, const lethe_event* events, size_t count,
                                       uint8_t* verdicts) {
  return JudgeBatch(**partition, **partition, events, count, verdicts);
}

lethe_code lethe_partition_replay(lethe_partition* partition, const lethe_event* events, size_t count) {
  return Call([&] { return (*partition)->Replay(EventsOf(**partition, events, count)); });
}

lethe_code lethe_partition_observe(lethe_partition* partition, int64_t time_ms) {
  return Call([&] { return (*partition)->Observe(TimeOf(time_ms)); });
}

lethe_code lethe_partition_advance_to(lethe_partition* partition, int64_t time_ms) {
  return Call([&] { return (*partition)->AdvanceTo(TimeOf(time_ms)); });
}

lethe_code lethe_partition_start_at(lethe_partition* partition, int64_t time_ms) {
  return Call([&] { return (*partition)->StartAt(TimeOf(time_ms)); });
}

void lethe_partition_limit_stream_time(lethe_partition* partition, int64_t time_ms) {
  (*partition)->LimitStreamTime(TimeOf(time_ms));
}

int64_t lethe_partition_stream_time(const lethe_partition* partition) {
  return MillisOf((*partition)->stream_time());
}

lethe_code lethe_partition_status(const lethe_partition* partition, lethe_status* status) {
  return Call([&] {
    absl::Status checked = CheckSize(status, "lethe_status");
    if (checked.ok()) Write(StatusOf((*partition)->Status()), status);
    return checked;
  });
}

lethe_code lethe_transaction_begin(lethe_partition* partition, lethe_transaction** transaction) {
  return Call([&] {
    absl::StatusOr<lethe::Transaction> begun = (*partition)->Begin();
    if (!begun.ok()) return begun.status();
    *transaction = new lethe_transaction{partition->shared, *std::move(begun)};
    return absl::OkStatus();
  });
}

lethe_code lethe_transaction_judge(lethe_transaction* transaction, const void* id, size_t id_size,
                                   int64_t time_ms, uint8_t* verdict) {
  return JudgeOne(transaction->transaction, id, id_size, time_ms, verdict);
}

lethe_code lethe_transaction_judge_batch(lethe_transaction* transaction, const lethe_event* events,
                                         size_t count, uint8_t* verdicts) {
  return JudgeBatch(transaction->transaction, *transaction->shared->partition, events, count, verdicts);
}

lethe_code lethe_transaction_observe(lethe_transaction* transaction, int64_t time_ms) {
  return Call([&] { return transaction->transaction.Observe(TimeOf(time_ms)); });
}

lethe_code lethe_transaction_forget(lethe_transaction* transaction, const void* id, size_t id_size) {
  return Call([&] {
    return transaction->transaction.Forget(transaction->shared->partition->Hash(View(id, id_size)));
  });
}

lethe_code lethe_transaction_status(const lethe_transaction* transaction) {
  return Call([&] { return transaction->transaction.status(); });
}

void lethe_transaction_commit(lethe_transaction* transaction) {
  transaction->transaction.Commit();
  delete transaction;
}

void lethe_transaction_abort(lethe_transaction* transaction) {
  delete transaction;  // an open one is aborted
}

lethe_code lethe_partition_save(const lethe_partition* partition, const char* path,
                                const lethe_snapshot_origin* origin, const lethe_snapshot_point* point) {
  return Call([&] {
    const absl::StatusOr<lethe::SnapshotOrigin> from = OriginOf(origin);
    if (!from.ok()) return from.status();
    const absl::StatusOr<lethe::SnapshotPoint> at = PointOf(point);
    if (!at.ok()) return at.status();
    return (*partition)->Save(path, *from, *at);
  });
}

lethe_code lethe_partition_restore(lethe_stage* stage, const char* name, const char* path,
                                   const lethe_snapshot_origin* origin, lethe_partition** partition,
                                   lethe_snapshot_point* point) {
  return Call([&] {
    if (name == nullptr || path == nullptr) return Lacks(name == nullptr ? "name" : "path");
    const absl::StatusOr<lethe::SnapshotOrigin> from = OriginOf(origin);
    if (!from.ok()) return from.status();
    const absl::Status checked =
        point == nullptr ? absl::OkStatus() : CheckSize(point, "lethe_snapshot_point");
    if (!checked.ok()) return checked;
    absl::StatusOr<lethe::RestoredPartition> restored = stage->stage->Restore(name, path, *from);
    if (!restored.ok()) return restored.status();
    const lethe::SnapshotPoint& at = restored->point;
    *partition = NewPartition(*stage, std::move(restored->partition), at.notes);
    if (point == nullptr) return absl::OkStatus();
    const std::string& notes = (*partition)->shared->notes;
    Write({.size = 0,
           .offset = at.offset,
           .end_offset = at.end_offset,
           .record_before = at.record_before,
           .notes = notes.data(),
           .notes_size = notes.size()},
          point);
    return absl::OkStatus();
  });
}

lethe_code lethe_snapshot_begin(const lethe_partition* partition, const lethe_snapshot_origin* origin,
                                const lethe_snapshot_point* point, lethe_snapshot** snapshot) {
  return Call([&] {
    const absl::StatusOr<lethe::SnapshotOrigin> from = OriginOf(origin);
    if (!from.ok()) return from.status();
    const absl::StatusOr<lethe::SnapshotPoint> at = PointOf(point);
    if (!at.ok()) return at.status();
    absl::StatusOr<std::unique_ptr<lethe::LiveSnapshot>> begun = (*partition)->BeginSnapshot(*from, *at);
    if (!begun.ok()) return begun.status();
    *snapshot = new lethe_snapshot{partition->shared, *std::move(begun)};
    return absl::OkStatus();
  });
}

void lethe_snapshot_note_end(lethe_snapshot* snapshot, int64_t end_offset) {
  snapshot->snapshot->NoteEnd(end_offset);
}

lethe_code lethe_snapshot_write(lethe_snapshot* snapshot, const char* path) {
  return Call([&] { return snapshot->snapshot->Write(std::string(path)); });
}

void lethe_snapshot_free(lethe_snapshot* snapshot) { delete snapshot; }
