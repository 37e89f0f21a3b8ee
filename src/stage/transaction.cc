#include <algorithm>
#include <utility>

#include "lethe/stage.h"
#include "src/stage/batch.h"
#include "src/stage/no_memory.h"
#include "src/stage/partition_impl.h"

namespace lethe {

Transaction::Transaction(Transaction&& other) noexcept
    : partition_(std::exchange(other.partition_, nullptr)) {}

Transaction& Transaction::operator=(Transaction&& other) noexcept {
  if (this != &other) {
    Abort();
    partition_ = std::exchange(other.partition_, nullptr);
  }
  return *this;
}

Transaction::~Transaction() { Abort(); }

Verdict Transaction::Judge(absl::string_view id, absl::Time time) {
  return open() ? partition_->Judge(id, time) : Verdict::kUnique;
}

void Transaction::Judge(absl::Span<const Event> events, absl::Span<Verdict> verdicts) {
  if (open()) {
    partition_->Judge(events, verdicts);
  } else {
    std::fill(verdicts.begin(), verdicts.end(), Verdict::kUnique);
  }
}

absl::Status Transaction::status() const {
  return open() && partition_->impl_->lacks_pending ? NoMemory() : absl::OkStatus();
}

void Transaction::Observe(absl::Time time) {
  if (open()) partition_->Observe(time);
}

void Transaction::Forget(IdHash id) {
  if (!open()) return;
  const auto& shards = partition_->impl_->shards;
  shards[Batch::ShardOf(id, shards.size())]->Forget(id);
}

void Transaction::Commit() {
  if (open()) std::exchange(partition_, nullptr)->impl_->Commit();
}

void Transaction::Abort() {
  if (open()) std::exchange(partition_, nullptr)->impl_->Abort();
}

int64_t Transaction::pending_bytes() const {
  int64_t bytes = 0;
  if (open()) {
    for (const auto& shard : partition_->impl_->shards) bytes += shard->pending_bytes();
  }
  return bytes;
}

}  // namespace lethe
