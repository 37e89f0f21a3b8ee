#include "connectors/kafka/lane.h"

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "src/pipeline/clock/steady_time.h"

namespace lethe::kafka {

Lane::Lane(const DaemonOptions& options, int lane, const Topics& topics, DedupStage& stage,
           KeptPartitions& kept, Snapshots* snapshots, const LogEnds& ends, InstanceClaim& claim,
           const StopFlag& stop)
    : state_(lane, stop),
      consumer_(options, lane),
      output_(
          options, lane, consumer_, stop, state_.heartbeat,
          [this](const std::string& why) { state_.SetWaiting(why); },
          [this] { return membership_.MayRecreateProducer(); }),
      worker_(options, topics, state_, tasks_, consumer_, output_, *this, snapshots),
      membership_(options, state_, consumer_, claim),
      ownership_(options, topics, stage, kept, snapshots, state_, consumer_, tasks_, membership_, worker_),
      input_watch_(options, topics.partitions, state_, consumer_, tasks_, ownership_.assigner()),
      publisher_(options, topics, ends, state_, consumer_, tasks_, membership_, output_, worker_) {}

absl::Status Lane::Run() {
  state_.heartbeat.Beat();
  membership_.SetJoined(false);
  publisher_.Publish();
  state_.is_running = true;
  const absl::Cleanup ended = [this] { state_.is_running = false; };
  worker_.Run();
  publisher_.Publish();
  return state_.fatal;
}

void Lane::Assign(const std::vector<int32_t>& partitions) {
  ownership_.Assign(partitions);
  publisher_.Publish();
}

void Lane::Revoke(const std::vector<int32_t>& partitions, bool lost) {
  ownership_.Revoke(partitions, lost);
  publisher_.Publish();
}

void Lane::Release() {
  ownership_.ReleaseAll();
  publisher_.Publish();
}

void Lane::Look() {
  if (membership_.TakeNewConsumer()) RecreateConsumer();
  if (!state_.fatal.ok()) return;  // there may be no client to ask anything
  if (ownership_.TakeRejoin()) state_.fatal = consumer_.Rejoin();
  ownership_.LookForMemory();
  membership_.LookAtWait();
  input_watch_.Look();
  if (!publisher_.IsDue()) return;
  // A filter of any lane may need the memory of one that this lane keeps.
  ownership_.assigner().GiveUpForMemory(SteadyNow());
  publisher_.Publish();
}

void Lane::RecreateConsumer() {
  if (!worker_.transactions().AbortForNewConsumer()) return;
  Release();
  consumer_.Close();
  if (absl::Status opened = consumer_.Open(); !opened.ok()) {
    // Its properties were good when the worker started, so they are not to blame.
    state_.fatal = absl::UnavailableError(
        absl::StrCat("lane ", state_.lane, ": the consumer cannot be recreated: ", opened.message()));
  }
}

}  // namespace lethe::kafka
