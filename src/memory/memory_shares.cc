#include "src/memory/memory_shares.h"

#include <algorithm>

namespace lethe {

MemoryBudget::MemoryBudget(MemoryShares& shares)
    : whole_(shares.whole()),
      shares_(&shares),
      limit_bytes_(whole_->limit_bytes()),
      free_bytes_(whole_->limit_bytes()) {
  shares.Add(this);
}

MemoryBudget::~MemoryBudget() {
  if (shares_ != nullptr) shares_->Remove(this);
}

void MemoryBudget::DivideIfShort() {
  if (shares_ != nullptr && shares_->IsShort()) shares_->Divide(this, 0);
}

bool MemoryBudget::DivideFor(int64_t bytes) {
  if (shares_ == nullptr) return false;
  shares_->Divide(this, bytes);
  return bytes <= free_bytes();
}

void MemoryShares::Add(MemoryBudget* share) {
  const MutexLock lock(mutex_);
  used_.reserve(shares_.size() + 1);
  shares_.push_back(share);
}

void MemoryShares::Remove(MemoryBudget* share) {
  const MutexLock lock(mutex_);
  shares_.erase(std::find(shares_.begin(), shares_.end(), share));
}

void MemoryShares::Divide(const MemoryBudget* share, int64_t bytes) {
  const MutexLock lock(mutex_);
  const int64_t level = Level(share, bytes);
  for (MemoryBudget* each : shares_) each->SetLimitOfShare(level);
}

int64_t MemoryShares::Level(const MemoryBudget* share, int64_t bytes) {
  used_.clear();
  for (const MemoryBudget* each : shares_) {
    const int64_t used = each->used_bytes() + (each == share ? bytes : 0);
    if (used > 0) used_.push_back(used);
  }
  const int64_t limit = whole_->limit_bytes();
  if (used_.size() <= 1) return limit;
  std::sort(used_.begin(), used_.end());
  int64_t left = limit - Kept();
  auto sharing = static_cast<int64_t>(used_.size());
  for (const int64_t used : used_) {
    if (used > left / sharing) return left / sharing;
    left -= used;
    --sharing;
  }
  return limit;
}

}  // namespace lethe
