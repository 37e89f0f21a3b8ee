#include "connectors/kafka/output/held_partitions.h"

#include <spdlog/spdlog.h>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "src/pipeline/steady_time.h"

namespace lethe::kafka {
namespace {

constexpr absl::Duration kLookEvery = absl::Seconds(1);

}  // namespace

bool HeldPartitions::HasOutput(OwnedPartition& owned) {
  if (owned.id < output_partitions_) return true;
  const auto count = output_.CountPartitions();
  // If the broker does not say, the transaction will find out.
  if (!count.ok() && !absl::IsNotFound(count.status())) return true;
  output_partitions_ = count.value_or(0);
  if (owned.id < output_partitions_) return true;
  owned.phase = Phase::kHeld;
  owned.problem = absl::StrCat(
      source_.Name(owned), " is held at offset ", owned.next, ": ",
      count.ok() ? absl::StrCat("records keep their partition, and the topics that are written to have only ",
                                output_partitions_,
                                "; add partitions there, and it goes on (kafka-topics.sh "
                                "--alter --partitions ",
                                owned.id + 1, ")")
                 : absl::StrCat(count.status().message(), "; create it, and it goes on"));
  spdlog::error("{}", owned.problem);
  source_.SetPaused(owned, true);
  next_look_ = SteadyNow() + kLookEvery;
  return false;
}

void HeldPartitions::Look(const OwnedPartitions& owned_partitions) {
  if (SteadyNow() < next_look_) return;
  next_look_ = absl::InfiniteFuture();
  absl::StatusOr<int32_t> count = absl::UnknownError("not asked yet");
  for (auto& [id, owned] : owned_partitions) {
    if (owned->phase != Phase::kHeld) continue;
    if (absl::IsUnknown(count.status())) count = output_.CountPartitions();
    if (!count.ok() || id >= *count) {
      next_look_ = SteadyNow() + kLookEvery;
      continue;
    }
    output_partitions_ = *count;
    spdlog::info("{}: goes on at offset {}: the output has its partition", source_.Name(*owned), owned->next);
    Release(*owned);
    source_.Seek(*owned);
  }
}

void HeldPartitions::Release(OwnedPartition& owned) {
  if (owned.paused) source_.SetPaused(owned, false);
  if (owned.phase != Phase::kHeld) return;
  owned.phase = Phase::kActive;
  owned.problem.clear();
}

}  // namespace lethe::kafka
