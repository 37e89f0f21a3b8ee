#include "connectors/kafka/repartition/source_feed.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "absl/time/clock.h"
#include "connectors/kafka/group/group_state.h"
#include "src/pipeline/clock/steady_time.h"

namespace lethe::kafka {
namespace {

constexpr absl::Duration kAskEvery = absl::Seconds(1);
constexpr absl::Duration kAskSoonEvery = absl::Milliseconds(20);
constexpr absl::Duration kAskTimeout = absl::Seconds(2);

}  // namespace

SourceFeed::SourceFeed(const DaemonOptions& routing, int32_t partitions, RoutedSources& sources,
                       std::function<std::vector<int32_t>()> owned, const StopFlag& stop)
    : options_(routing), sources_(sources), owned_(std::move(owned)), stop_(stop), partitions_(partitions) {
  // Before the lanes: what no one has spoken of holds the others.
  sources_.SetCount(partitions_);
  thread_ = std::thread([this] { Run(); });
}

void SourceFeed::Run() {
  absl::Time next_ask = absl::InfinitePast();
  while (!stop_.WaitFor(kAskSoonEvery)) {
    const bool is_due = SteadyNow() >= next_ask;
    if (!sources_.TakeAskSoon() && !is_due) continue;
    sources_.SetAnswered(Ask(is_due).ok());
    if (is_due) next_ask = SteadyNow() + kAskEvery;
  }
}

absl::Status SourceFeed::Ask(bool with_count) {
  if (client_ == nullptr) {
    // With the records that a hanging transaction holds back: they are still to come.
    ClientConfig config = ReaderConfig(options_, "read_uncommitted");
    errors_.Watch(config);
    auto client = config.MakeConsumer();
    if (!client.ok()) return client.status();
    client_ = *std::move(client);
  }
  errors_.Last(client_.get()).IgnoreError();  // what the lanes meet, too, and say
  const auto timeout_ms = static_cast<int>(absl::ToInt64Milliseconds(kAskTimeout));
  if (with_count) {
    const auto count = CountPartitions(client_.get(), options_.input, timeout_ms);
    if (!count.ok()) return count.status();
    partitions_ = std::max(partitions_, *count);
    sources_.SetCount(partitions_);
  }
  std::vector<int32_t> all(static_cast<size_t>(partitions_));
  std::iota(all.begin(), all.end(), 0);
  const auto ends = AskEnds(client_.get(), options_.input, all, kAskTimeout);
  if (!ends.ok()) return ends.status();
  sources_.PutEnds(*ends, SteadyNow());
  const auto committed = AskCommitted(client_.get(), options_.input, partitions_);
  if (!committed.ok()) return committed.status();
  std::vector<int32_t> owned = owned_();
  std::sort(owned.begin(), owned.end());
  const absl::Time latest = absl::Now() + options_.max_future;
  std::map<int32_t, SourceState> others;
  for (const int32_t id : all) {
    if (std::binary_search(owned.begin(), owned.end(), id)) continue;
    const CommittedOffset& each = (*committed)[static_cast<size_t>(id)];
    const auto end = ends->find(id);
    others[id] =
        CommittedState(std::max<int64_t>(each.offset, 0), each.metadata,
                       end == ends->end() ? std::numeric_limits<int64_t>::max() : end->second, latest);
  }
  sources_.Put(others, SteadyNow());
  return absl::OkStatus();
}

}  // namespace lethe::kafka
