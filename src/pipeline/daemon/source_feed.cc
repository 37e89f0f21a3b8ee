#include "src/pipeline/daemon/source_feed.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <utility>

namespace lethe {
namespace {

constexpr absl::Duration kAskSourcesEvery = absl::Seconds(1);
constexpr absl::Duration kAskSoonEvery = absl::Milliseconds(20);
constexpr absl::Duration kAskSourcesTimeout = absl::Seconds(2);

}  // namespace

SourceFeed::SourceFeed(const DaemonOptions& routing, const Flows& flows, MakeBrokers make,
                       std::function<std::vector<int32_t>(int32_t flow)> owned, WakeUp& asked_soon,
                       const StopFlag& stop, const Clock& clock)
    : options_(routing),
      flows_(flows),
      make_(std::move(make)),
      owned_(std::move(owned)),
      asked_soon_(asked_soon),
      stop_(stop),
      clock_(clock) {
  thread_ = clock_.Start([this] { Run(); });
}

void SourceFeed::Join() {
  if (thread_ == nullptr) return;
  asked_soon_.Wake();
  thread_->Join();
  thread_.reset();
}

void SourceFeed::Run() {
  absl::Time next_ask = absl::InfinitePast();
  while (!clock_.WaitFor(stop_, kAskSoonEvery)) {
    clock_.Await(asked_soon_, std::max(next_ask - clock_.Steady(), absl::ZeroDuration()));
    const bool is_due = clock_.Steady() >= next_ask;
    std::map<std::string, std::vector<const Flow*>> by_output;  // with the same sources
    for (int32_t number = 0; number < flows_.size(); ++number) {
      by_output[flows_.at(number).options.output].push_back(&flows_.at(number));
    }
    for (const auto& [output, flows] : by_output) {
      RoutedSources& sources = *flows.front()->sources;
      if (!sources.TakeAskSoon() && !is_due) continue;
      absl::Status answered;
      for (const Flow* flow : flows) answered.Update(Ask(*flow, is_due));
      sources.SetAnswered(answered.ok());
    }
    if (is_due) next_ask = clock_.Steady() + kAskSourcesEvery;
  }
}

absl::Status SourceFeed::Connect() {
  if (brokers_ != nullptr) return absl::OkStatus();
  // With the records that a hanging transaction holds back: they are still to come.
  auto brokers = make_(options_, Isolation::kReadUncommitted);
  if (!brokers.ok()) return brokers.status();
  brokers_ = *std::move(brokers);
  return absl::OkStatus();
}

absl::Status SourceFeed::Ask(const Flow& flow, bool with_count) {
  if (absl::Status connected = Connect(); !connected.ok()) return connected;
  brokers_->LastError().IgnoreError();  // what the lanes meet, too, and say
  const std::string& input = flow.options.input;
  int32_t& partitions = partitions_.try_emplace(flow.number, flow.topics.partitions).first->second;
  if (with_count) {
    const auto count = brokers_->CountPartitions(input);
    if (!count.ok()) return count.status();
    partitions = std::max(partitions, *count);
    flow.sources->SetCount(flow.number, partitions);
  }
  std::vector<int32_t> all(static_cast<size_t>(partitions));
  std::iota(all.begin(), all.end(), 0);
  const auto ends = brokers_->AskEnds(input, all, kAskSourcesTimeout);
  if (!ends.ok()) return ends.status();
  std::map<TopicPartition, int64_t> told;
  for (const auto& [partition, end] : *ends) told[{flow.number, partition}] = end;
  flow.sources->PutEnds(told, clock_.Steady());
  const auto committed = brokers_->AskCommitted(input, partitions);
  if (!committed.ok()) return committed.status();
  std::vector<int32_t> owned = owned_(flow.number);
  std::sort(owned.begin(), owned.end());
  const absl::Time latest = clock_.Wall() + options_.max_future;
  SourceStates others;
  for (const int32_t id : all) {
    if (std::binary_search(owned.begin(), owned.end(), id)) continue;
    const CommittedOffset& each = (*committed)[static_cast<size_t>(id)];
    const auto end = ends->find(id);
    others.emplace_back(
        TopicPartition{flow.number, id},
        CommittedState(std::max<int64_t>(each.offset, 0), each.metadata,
                       end == ends->end() ? std::numeric_limits<int64_t>::max() : end->second, latest));
  }
  flow.sources->Put(others, clock_.Steady());
  return absl::OkStatus();
}

}  // namespace lethe
