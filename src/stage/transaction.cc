#include <utility>

#include "lethe/stage.h"
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

absl::Status Transaction::CheckOpen() const {
  if (open()) return absl::OkStatus();
  return absl::FailedPreconditionError("the transaction has ended: begin another one");
}

absl::StatusOr<Verdict> Transaction::Judge(absl::string_view id, absl::Time time) {
  if (absl::Status status = CheckOpen(); !status.ok()) return status;
  const Event event{.id = partition_->Hash(id), .time = time};
  Verdict verdict = Verdict::kUnique;
  if (absl::Status status = Judge({&event, 1}, {&verdict, 1}); !status.ok()) return status;
  return verdict;
}

absl::Status Transaction::Judge(absl::Span<const Event> events, absl::Span<Verdict> verdicts) {
  if (absl::Status status = CheckOpen(); !status.ok()) return status;
  return partition_->impl_->JudgeInTransaction(events, verdicts);
}

absl::Status Transaction::status() const {
  if (absl::Status status = CheckOpen(); !status.ok()) return status;
  return partition_->impl_->lacks_pending ? NoMemory() : absl::OkStatus();
}

absl::Status Transaction::Observe(absl::Time time) {
  if (absl::Status status = CheckOpen(); !status.ok()) return status;
  partition_->impl_->ObserveInTransaction(time);
  return absl::OkStatus();
}

absl::Status Transaction::Forget(HashedId id) {
  if (absl::Status status = CheckOpen(); !status.ok()) return status;
  const Event event{.id = id};
  if (absl::Status status = partition_->impl_->CheckHashes({&event, 1}); !status.ok()) return status;
  partition_->impl_->Forget(id);
  return absl::OkStatus();
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
