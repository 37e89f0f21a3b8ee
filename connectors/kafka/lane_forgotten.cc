// The lane's part in partitions that were added, also with a topic that was made anew: that the group gives
// each of them to somebody.
//
// Two ways lead to a partition without an owner. The group's leader may ask a broker that does not know the
// new partition yet; the client then sees no reason to rebalance when it learns of it. And the group does not
// rebalance when a static member restarts (KIP-345): it gets its old assignment, and a leader that restarted
// does not know that it is the leader (KIP-814, which librdkafka does not have). So each lane checks that
// every partition has a committed offset, since each owner commits its starting offset.
#include <spdlog/spdlog.h>

#include <algorithm>

#include "connectors/kafka/group/group_state.h"
#include "connectors/kafka/lane.h"
#include "src/pipeline/steady_time.h"

namespace lethe::kafka {
namespace {

constexpr absl::Duration kLookEvery = absl::Seconds(5);
constexpr int kLookTimeoutMs = 500;
// A rebalance may have to wait for a member that does not answer; and the cause may be another one, which a
// rebalance does not mend.
constexpr absl::Duration kPatience = absl::Seconds(30);
constexpr int kMostDoublings = 7;  // an hour

}  // namespace

void Lane::NoteGrowth(int32_t partitions) {
  assigner_.SetPartitions(partitions);
  for (auto& [id, owned] : owned_) {
    if (!assigner_.HasGrownFor(*owned)) continue;
    const auto log = GroupState(consumer_.get(), options_.input).LogOf(id);
    if (!log.ok()) return;  // at the next look
    assigner_.NoteGrowth(*owned, log->end);
  }
}

void Lane::LookForForgotten() {
  const absl::Time now = SteadyNow();
  if (now < next_look_for_forgotten_) return;
  next_look_for_forgotten_ = now + kLookEvery;
  // The topic may have been away meanwhile, and its commits with it.
  if (owned_.empty()) given_partitions_ = 0;
  const auto counted = kafka::CountPartitions(consumer_.get(), options_.input, kLookTimeoutMs);
  if (!counted.ok()) return;
  NoteGrowth(*counted);
  if (*counted <= given_partitions_) return;
  const int32_t count = *counted;
  const auto committed = GroupState(consumer_.get(), options_.input).Committed(count);
  if (!committed.ok()) return;
  int32_t forgotten = given_partitions_;
  while (forgotten < count && ((*committed)[static_cast<size_t>(forgotten)].offset >= 0 || Find(forgotten))) {
    ++forgotten;
  }
  if (forgotten == count) {
    given_partitions_ = count;
    forgotten_since_ = absl::InfiniteFuture();
    rejoined_for_forgotten_ = 0;
    return;
  }
  forgotten_since_ = std::min(forgotten_since_, now);
  if (now - forgotten_since_ < kPatience * (1 << std::min(rejoined_for_forgotten_, kMostDoublings))) return;
  spdlog::warn(
      "lane {}: {}-{} is there, and nobody has begun to read it for {}: leaving the group and joining it "
      "again, so that it assigns anew",
      number_, options_.input, forgotten,
      absl::FormatDuration(absl::Trunc(now - forgotten_since_, absl::Seconds(1))));
  forgotten_since_ = now;
  ++rejoined_for_forgotten_;
  Rejoin();
}

}  // namespace lethe::kafka
