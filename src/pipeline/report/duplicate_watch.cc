#include "src/pipeline/report/duplicate_watch.h"

#include <algorithm>
#include <utility>

namespace lethe {
namespace {

constexpr int64_t kStretch = 1000;
// Of a quiet partition.
constexpr int64_t kLeastOfStretch = 100;
constexpr absl::Duration kLongStretch = absl::Minutes(5);
constexpr int kLearnt = 3;
// The usual share is forgotten over this time.
constexpr absl::Duration kForgetsIn = absl::Hours(6);
// With fewer events that pass, chance alone would halve them.
constexpr double kLeastPassing = 0.1;
constexpr double kRises = 0.5;
constexpr double kEnds = 0.75;
constexpr absl::Duration kLasts = absl::Minutes(5);
constexpr int kStretchesOfJump = 3;
constexpr absl::Duration kBecomesUsual = absl::Hours(24);
constexpr int64_t kEnoughCopies = 20;
constexpr size_t kMostIds = 512;
constexpr size_t kOffsets = 3;

}  // namespace

void DuplicateWatch::Add(IdHash id, Verdict verdict, int64_t offset) {
  const bool is_duplicate = verdict == Verdict::kDuplicate;
  if (open_.records++ == 0) open_.first_offset = offset;
  if (is_duplicate) {
    ++open_.duplicates;
    if (open_.offsets.size() < kOffsets) open_.offsets.push_back(offset);
  }
  if (!rise_ || (id.a & rise_->mask) != 0) return;
  if (is_duplicate) {
    ++rise_->copies;
    rise_->new_copies += rise_->passed.contains(id.a) ? 1 : 0;
    return;
  }
  rise_->passed.insert(id.a);
  while (rise_->passed.size() > kMostIds) {
    rise_->mask = 2 * rise_->mask + 1;
    std::erase_if(rise_->passed, [&](uint64_t each) { return (each & rise_->mask) != 0; });
  }
}

void DuplicateWatch::Update(const AuditStatus& audit, absl::Time now) {
  if (open_.records == 0) return;
  open_.began = std::min(open_.began, now);
  const bool is_long = open_.records >= kLeastOfStretch && now - open_.began >= kLongStretch;
  if (open_.records >= kStretch || is_long) EndStretch(std::exchange(open_, {}), audit, now);
}

void DuplicateWatch::Learn(const Stretch& stretch, absl::Time now) {
  ++stretches_;
  const double forgotten = learnt_ < now ? std::min(absl::FDivDuration(now - learnt_, kForgetsIn), 1.0) : 0;
  usually_passes_ += (stretch.passed() - usually_passes_) * std::max(1.0 / stretches_, forgotten);
  learnt_ = now;
}

void DuplicateWatch::EndStretch(const Stretch& stretch, const AuditStatus& audit, absl::Time now) {
  const Compared compared = {audit.compared, audit.payload_mismatches};
  if (!rise_) {
    const bool rises = stretches_ >= kLearnt && usually_passes_ >= kLeastPassing &&
                       stretch.passed() < kRises * usually_passes_;
    if (!rises) {
      Learn(stretch, now);
      usually_compared_ = compared;
      return;
    }
    rise_ = Rise();
    rise_->all = stretch;
    rise_->before = usually_compared_;
  } else {
    if (stretch.passed() > kEnds * usually_passes_) {
      rise_.reset();
      jump_.reset();
      return;
    }
    rise_->all.records += stretch.records;
    rise_->all.duplicates += stretch.duplicates;
    ++rise_->stretches;
  }
  // A new filter has a new audit.
  if (compared.all < rise_->before.all) rise_->before = {};
  if (now - rise_->all.began >= kBecomesUsual) {
    usually_passes_ = rise_->all.passed();
    usually_compared_ = compared;
    learnt_ = now;
    rise_.reset();
    jump_.reset();
    return;
  }
  Jump found = {.since = rise_->all.began,
                .since_offset = rise_->all.first_offset,
                .usual = 1 - usually_passes_,
                .share = 1 - rise_->all.passed(),
                .offsets = rise_->all.offsets,
                .compared = compared.all - rise_->before.all,
                .differing = compared.differing - rise_->before.differing};
  if (jump_ || IsJump(found, now)) jump_ = std::move(found);
}

bool DuplicateWatch::IsJump(const Jump& found, absl::Time now) const {
  const Compared& before = rise_->before;
  const bool differed_before = before.all >= kEnoughCopies && 2 * before.differing > before.all;
  if (found.compared >= kEnoughCopies && found.MostDiffer() && !differed_before) return true;
  return now - found.since >= kLasts && rise_->stretches >= kStretchesOfJump &&
         rise_->copies >= kEnoughCopies && 2 * rise_->new_copies > rise_->copies;
}

}  // namespace lethe
