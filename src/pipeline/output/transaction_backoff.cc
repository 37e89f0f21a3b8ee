#include "src/pipeline/output/transaction_backoff.h"

#include <algorithm>

namespace lethe {

void TransactionBackoff::Committed(const TransactionSize& size) {
  failures_ = 0;
  max_records_ = std::min(kMaxRecords, max_records_ * 2);
  // Between half of the long wait and all of it the size stays.
  if (size.waited < kLongWait / 2) max_bytes_ = std::min(kMaxBytes, max_bytes_ * 2);
  FitTo(size.bytes, size.waited);
}

void TransactionBackoff::Refused(const TransactionSize& size) { Halve(size); }

absl::Duration TransactionBackoff::Failed(const TransactionSize& size) {
  Halve(size);
  FitTo(size.acknowledged, size.waited);
  return std::min(absl::Milliseconds(10) * (1 << std::min(failures_++, 10)), kMaxPause);
}

void TransactionBackoff::Halve(const TransactionSize& size) {
  max_records_ = std::clamp<size_t>(size.records / 2, 1, max_records_);
  max_bytes_ = std::max(kMinBytes, std::min(max_bytes_, size.bytes) / 2);
}

void TransactionBackoff::FitTo(int64_t bytes, absl::Duration waited) {
  if (waited <= kLongWait) return;
  const double share = absl::FDivDuration(kLongWait, waited);
  const auto fits = static_cast<int64_t>(static_cast<double>(bytes) * share);
  max_bytes_ = std::clamp(fits, kMinBytes, max_bytes_);
}

void TopicRoom::Done(const TransactionSize& size) {
  if (size.waited > kLongWait) {
    const double share = absl::FDivDuration(kLongWait, size.waited);
    const auto fits = static_cast<int64_t>(static_cast<double>(size.acknowledged) * share);
    max_bytes_ = std::clamp(fits, kMinBytes, max_bytes_);
  } else if (size.waited < kLongWait / 2 && max_bytes_ < kMaxBytes) {
    max_bytes_ = std::min(kMaxBytes, max_bytes_ * 2);
  }
}

}  // namespace lethe
