#include "src/filter/exact.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/filter/fixed_share.h"

namespace lethe {
namespace {

constexpr int64_t kEpochsAtLimit = 16;
// A turn through all tables takes so long. A shorter one costs time, a longer one memory.
constexpr int64_t kSlicesPerSweep = 2;
// In so many beginnings of an epoch all tables are swept, however seldom a call comes: of the 252 from one to
// the next epoch with its stamp, an epoch is live in 62 at most.
constexpr size_t kBeginsPerSweep = 64;

}  // namespace

absl::StatusOr<std::unique_ptr<Exact>> Exact::Create(const FilterOptions& options) {
  // The table takes its memory as ids come; only that there is some is asked for here.
  if (options.memory->limit_bytes() - options.memory->used_bytes() < kSmallestShareBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "exact filter: needs ", kSmallestShareBytes, " bytes, and of the limit of ",
        options.memory->limit_bytes(), " only ", options.memory->limit_bytes() - options.memory->used_bytes(),
        " are left; raise the memory limit or open fewer partitions"));
  }
  return std::unique_ptr<Exact>(new Exact(options));
}

Exact::Exact(const FilterOptions& options)
    : target_fpp_(options.target_fpp),
      epochs_(options.horizon, EpochRing::kMostSlices),
      tables_(options.memory) {
  NoteLive();
}

uint8_t Exact::StampOf(int tag) const {
  return static_cast<uint8_t>(given_[static_cast<size_t>(tag)] * kTags + tag);
}

void Exact::InsertId(IdHash id) {
  uint8_t* const found = tables_.Find(id.a);
  if (found == nullptr) return Add(id.a);
  Renew(found);
}

bool Exact::TestAndInsertId(IdHash id) {
  uint8_t* const found = tables_.Find(id.a);
  if (IsLive(found)) return true;
  if (found == nullptr) {
    Add(id.a);
  } else {
    Renew(found);
  }
  return false;
}

// Takes an id that is in the tables, of an epoch that may be over, into the current one.
void Exact::Renew(uint8_t* found) {
  if (IsLive(found)) epochs_.Count(TagOf(*found), -1);
  epochs_.Count(epochs_.current(), 1);
  *found = StampOf(epochs_.current());
}

void Exact::Add(uint64_t key) {
  while (!tables_.Insert(key, StampOf(epochs_.current()))) {
    if (tables_.SweepAt(key, live_)) continue;
    ++limit_hits_;
    // From now on epochs are small parts of what the memory holds, so that one can go at a time.
    short_epoch_ids_ = epochs_.ids() / kEpochsAtLimit + 1;
    if (epochs_.ids() == 0) {
      epochs_.NoteLost();  // others have used up the limit: this id is not kept
      return;
    }
    DropOldest();
  }
  epochs_.Count(epochs_.current(), 1);
  if (epochs_.ids_of(epochs_.current()) >= short_epoch_ids_) BeginEpoch();
}

void Exact::DropOldest() {
  if (!epochs_.DropOldest()) {
    BeginEpoch();
    epochs_.DropOldest();
  }
  NoteLive();
}

void Exact::BeginEpoch() {
  // What of this is due was done before, but where much time passed at once.
  for (const size_t least = (tables_.tables() + kBeginsPerSweep - 1) / kBeginsPerSweep; swept_ < least;) {
    tables_.SweepNext(live_);
    ++swept_;
  }
  swept_ = 0;
  epochs_.Begin();
  uint8_t& given = given_[static_cast<size_t>(epochs_.current())];
  given = static_cast<uint8_t>((given + 1) % 4);
  NoteLive();
}

void Exact::NoteLive() {
  live_.reset();
  for (int tag = 1; tag < kTags; ++tag) {
    if ((epochs_.live() >> tag & 1) != 0) live_.set(StampOf(tag));
  }
}

void Exact::AdvanceTo(int64_t stream_time_ms) {
  if (epochs_.AdvanceTo(stream_time_ms)) {
    short_epoch_ids_ = INT64_MAX;
    BeginEpoch();
    sweep_from_ms_ = std::min(stream_time_ms, INT64_MAX / 2);
    NoteNextSweep();
  }
  if (stream_time_ms < next_sweep_ms_ || swept_ >= tables_.tables()) return;
  tables_.SweepNext(live_);
  ++swept_;
  NoteNextSweep();
}

// All tables have their turn in kSlicesPerSweep.
void Exact::NoteNextSweep() {
  const auto tables = static_cast<int64_t>(tables_.tables()) + 1;
  const int64_t turn_ms = kSlicesPerSweep * absl::ToInt64Milliseconds(epochs_.slice());
  next_sweep_ms_ = sweep_from_ms_ + static_cast<int64_t>(swept_ + 1) * turn_ms / tables;
}

FilterStatus Exact::Status() const {
  FilterStatus status;
  status.past_generations = epochs_.slices();
  status.refresh_period = epochs_.slice();
  status.ids = epochs_.ids();
  status.window = epochs_.Window();
  status.fpp_modelled = std::ldexp(static_cast<double>(status.ids), -64);
  status.fpp_estimated = status.fpp_modelled;
  status.fpp_target = target_fpp_;
  status.memory_bytes = tables_.memory_bytes();
  status.refreshes = epochs_.begun();
  status.limit_hits = limit_hits_;
  return status;
}

}  // namespace lethe
