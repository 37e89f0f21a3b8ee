// The lane's transaction that was not committed, or of which that is not known: what becomes of its records,
// and of those that were refused.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "connectors/kafka/group/group_state.h"
#include "connectors/kafka/lane.h"
#include "connectors/kafka/topics/topics.h"
#include "src/pipeline/steady_time.h"

namespace lethe::kafka {
namespace {

// Fewer in a row are a rebalance, or a broker that is started again.
constexpr int kManyFailures = 3;

}  // namespace

void Lane::GiveUp(Outcome outcome) {
  const Failure failure = output_.failure();
  const std::string why = output_.last_error();
  if (outcome != Outcome::kStopped) {
    // What was aborted is not committed, even if another instance has come to the same offset meanwhile.
    const Outcome resolved = Resolve();
    if (outcome == Outcome::kUnknown || resolved == Outcome::kStopped) outcome = resolved;
  }
  if (outcome == Outcome::kCommitted) {
    spdlog::info("lane {}: the transaction was committed after all ({})", number_, why);
    return FinishTransaction(/*committed=*/true);
  }
  if (outcome == Outcome::kStopped) LoseProducer();
  output_partitions_ = 0;
  if (const auto like_it = aborted_.Next()) {
    spdlog::warn("lane {}: transaction of {} records aborted, to be judged again: {}{}", number_,
                 carried_out_, why, *like_it);
  }
  absl::Duration pause;
  if (failure == Failure::kRefused) {
    NarrowDown(why);
  } else {
    given_up_because_ = why;
    pause = backoff_.Failed(Size());
  }
  if (outcome == Outcome::kStopped) {
    for (OwnedPartition* owned : InTransaction()) owned->LeaveNamed();
  }
  const std::vector<OwnedPartition*> rolled_back = InTransaction();
  FinishTransaction(/*committed=*/false);
  // No others: the offset that an idle one is at may be gone from its log.
  for (OwnedPartition* owned : rolled_back) {
    if (owned->phase != Phase::kFailed) Seek(*owned);
  }
  if (pause > absl::ZeroDuration()) stop_.WaitFor(pause);
}

std::string Lane::WhyNothingIsCommitted() const {
  if (backoff_.failures() < kManyFailures || !HasGivenUp()) return "";
  return absl::StrCat(backoff_.failures(), " transactions in a row were given up: ", given_up_because_);
}

bool Lane::HasGivenUp() const {
  return std::any_of(owned_.begin(), owned_.end(), [](const auto& each) { return each.second->given_up; });
}

void Lane::LoseProducer() {
  if (stop_.requested() || !fatal_.ok()) return;
  fatal_ = absl::UnavailableError(
      absl::StrCat("lane ", number_, ": the producer cannot go on: ", output_.last_error()));
}

Outcome Lane::Resolve() {
  std::vector<CommittedOffset> committed;
  const GroupState group(consumer_.get(), options_.input);
  const absl::Status asked = Await([&] {
    auto answer =
        group.Committed(std::max(topics_.partitions, owned_.empty() ? 0 : owned_.rbegin()->first + 1));
    if (answer.ok()) committed = std::move(*answer);
    return answer.status();
  });
  if (!asked.ok()) return Outcome::kStopped;
  Outcome outcome = Outcome::kAborted;
  for (OwnedPartition* owned : InTransaction()) {
    const int64_t offset = committed[static_cast<size_t>(owned->id)].offset;
    if (offset == owned->next && owned->next != owned->in_group) outcome = Outcome::kCommitted;
    if (offset != owned->next && offset != owned->in_group) {
      owned->LeaveNamed();
      owned->RolledBack();
      Unhold(*owned);
      owned->phase = Phase::kFailed;
      owned->problem = absl::StrCat(Name(*owned), ": the group is at offset ", offset, ", not at ",
                                    owned->in_group, ": another instance has it now; waiting for the group");
      spdlog::warn("{}", owned->problem);
    }
  }
  return outcome;
}

void Lane::NarrowDown(const std::string& why) {
  const std::vector<Output::Refusal>& refusals = output_.refusals();
  std::vector<RefusedRecord> records;
  for (const Output::Refusal& refusal : refusals) records.push_back(refusal.record);
  const bool is_any_invalid = std::any_of(records.begin(), records.end(),
                                          [](const RefusedRecord& record) { return record.is_invalid; });
  if (is_any_invalid && !refusal_search_.trusted(SteadyNow())) RenewRules();
  bool is_known = false;
  for (const size_t i : refusal_search_.ToBlame(records, output_.batch_bytes(), output_.refusals_are_named(),
                                                absl::Now(), SteadyNow())) {
    const RecordPlace& place = refusals[i].place;
    OwnedPartition* owned = place.offset < 0 ? nullptr : Find(place.partition);
    if (owned == nullptr) continue;
    if (place.copied) {
      owned->uncopied.insert(place.offset);
    } else {
      owned->undeliverable[place.offset] = {refusals[i].why, place.diverted};
    }
    is_known = true;
  }
  if (is_known) return;
  if (carried_out_ > 1) return backoff_.Refused(Size());
  for (OwnedPartition* owned : InTransaction()) {
    // Refused for the second time is what there was left to write: the diverted record.
    const auto [known, is_new] = owned->undeliverable.try_emplace(owned->mark.offset, Undeliverable{why});
    known->second.divert_refused = !is_new;
  }
}

void Lane::RenewRules() {
  if (const auto output = DescribeTopic(consumer_.get(), options_.output); output.ok()) {
    refusal_search_.SetRules(output->record_rules());
  }
}

}  // namespace lethe::kafka
