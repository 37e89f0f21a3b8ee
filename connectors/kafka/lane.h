// The loop of the daemon, readable in one direction: poll -> id -> verdict -> produce -> commit.
#ifndef LETHE_CONNECTORS_KAFKA_LANE_H_
#define LETHE_CONNECTORS_KAFKA_LANE_H_

#include <librdkafka/rdkafka.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "connectors/kafka/client/client.h"
#include "connectors/kafka/client/client_statistics.h"
#include "connectors/kafka/client/log_ends.h"
#include "connectors/kafka/client/message_view.h"
#include "connectors/kafka/counters/counter_watch.h"
#include "connectors/kafka/group/assignment.h"
#include "connectors/kafka/group/owned_partition.h"
#include "connectors/kafka/options/options.h"
#include "connectors/kafka/output/output.h"
#include "connectors/kafka/output/record_writer.h"
#include "connectors/kafka/output/refusal_search.h"
#include "connectors/kafka/preflight/inspection.h"
#include "connectors/kafka/report/lane_figures.h"
#include "connectors/kafka/report/report.h"
#include "src/pipeline/heartbeat.h"
#include "src/pipeline/id_watch.h"
#include "src/pipeline/key_watch.h"
#include "src/pipeline/progress_watch.h"
#include "src/pipeline/repeats.h"
#include "src/pipeline/stop_flag.h"
#include "src/pipeline/transaction_backoff.h"
#include "src/record/record_reader.h"

namespace lethe::kafka {

// What may be changed while a lane runs. The rest of its options is built into its clients, the filters and
// what has been promised.
struct LaneTuning {
  Policies policies;
  double target_fpp = 0;
};

// One consumer and one producer, in one thread. `snapshots` is null where none are taken.
//
// Invariant: between transactions every owned partition's filter is a function of the log up to its
// committed offset (but while it is being restored), and nothing is out beyond it. One transaction is open
// at a time, over all partitions that have carried something out since the last.
//
// Thread safety: Run() belongs to one thread, Report() may be called from any.
class Lane {
 public:
  Lane(const DaemonOptions& options, int number, const Topics& topics, DedupStage& stage,
       KeptPartitions& kept, Snapshots* snapshots, const LogEnds& ends, const StopFlag& stop);
  ~Lane();

  // Until the stop is requested. Not OK: what makes it impossible to go on, in words for the operator.
  absl::Status Run();

  LaneReport Report() const;
  // How long nothing has been heard of its thread; zero if it is not running. From any thread.
  absl::Duration SilentFor() const { return running_ ? heartbeat_.SinceLast() : absl::ZeroDuration(); }
  // It was stopped, has committed what it had carried out, and only leaves the group. From any thread.
  bool OnlyLeaves() const { return all_is_out_; }
  // It was stopped, and what it judged last could not be committed: it is to be read again. From any thread.
  bool LeavesUnfinished() const { return leaves_unfinished_; }
  // Before Run(). The watch asks for the totals of counters.
  void SetCounterWatch(CounterWatch* watch) { counter_watch_ = watch; }
  // From the next transaction on. From any thread. What the policies divert needs a topic in the options.
  void SetCommitInterval(absl::Duration interval) { commit_interval_ = absl::ToChronoNanoseconds(interval); }
  void Tune(const LaneTuning& tuning);

 private:
  using Messages = std::vector<MessagePtr>;
  // A run is a stretch of a batch that belongs to one partition.
  using MessageRun = absl::Span<const MessagePtr>;
  // A message of the run that is being judged. Its views are set when texts_ is complete.
  struct Item {
    JudgedRecord record;
    size_t reason_at;  // in texts_
    size_t reason_bytes;
    size_t changes_at;  // in changes_
    size_t changes;
  };

  absl::Status Open();
  absl::Status OpenConsumer();
  absl::Status Subscribe();
  void Step();
  void Close();

  // Reads what is there, at most `limit` messages or a few megabytes, waiting at most `timeout` for the
  // first.
  void Poll(absl::Duration timeout, size_t limit);
  // Not OK: the transaction was given up, and the rest of the batch will be read again.
  absl::Status Process();
  void HandleEvent(const rd_kafka_message_t& event);
  // Errors of one batch, which is fetched again and fails again.
  static bool IsUnreadable(rd_kafka_resp_err_t code);
  // The batch that begins at `base` cannot be read: by policy its partition stops in front of it, or passes
  // over it.
  void MeetUnreadable(OwnedPartition& owned, int64_t base, const std::string& why);
  // Reads where the search for the end of the unreadable batch wants to, or passes over the batch.
  void SearchReadable(OwnedPartition& owned);
  void PassOver(OwnedPartition& owned, int64_t end);
  absl::Status Advance(OwnedPartition& owned, MessageRun run);
  // Whether the message is the one that the kept filter remembers; otherwise the filter is rebuilt.
  bool Check(OwnedPartition& owned, const rd_kafka_message_t& message);
  void Recheck(OwnedPartition& owned);
  // The log differs before C from the one that was judged.
  void StopOnOtherLog(OwnedPartition& owned);
  // The log has no record at `next` any more.
  void LoseUnread(OwnedPartition& owned, const std::string& why);
  // After an offset that is not in the log the client fetches nothing more of the partition, and a seek may
  // come too early for it.
  void AssignAnew(const OwnedPartition& owned);
  // Asks where the partition starts, as if it had just been assigned.
  void PrepareAnew(OwnedPartition& owned);
  void Activate(OwnedPartition& owned);
  // The client has come to the end of the log, over control records and aborted batches perhaps.
  void ReachEnd(OwnedPartition& owned, int64_t end);
  // The batch's events from `begin` on are dropped, and read again, but those of the transaction's
  // partitions, which are sought when that is rolled back.
  void ReadAgainFrom(size_t begin);
  void Restore(OwnedPartition& owned, MessageRun run);
  absl::Status Judge(OwnedPartition& owned, MessageRun run);
  // Items with verdicts; of a shorter run, if the partition must stop within it.
  MessageRun FillItems(OwnedPartition& owned, MessageRun run);
  Item MakeItem(const rd_kafka_message_t& message, const RecordFields& fields);
  // The time of a record that is judged, or InfinitePast() if it has none, or is dated after `latest`: that
  // is counted and now and then said.
  absl::Time Believe(OwnedPartition& owned, const MessageView& view, int64_t offset, absl::Time latest);
  // Says now and then which record has no usable id.
  void Complain(const OwnedPartition& owned, int64_t offset, const RecordFields& fields);

  // Between two transactions: takes over what Tune() was last given.
  void TakeTuning();
  absl::Status EnsureOpen(OwnedPartition& owned);
  void Commit();
  // The transaction failed: rolls back to the committed offsets and reads from there again, unless it turns
  // out to be committed.
  void GiveUp(Outcome aborted);
  // What such transactions fail for, one after the other, in words; empty: they do not.
  std::string WhyNothingIsCommitted() const;
  // How long a partition may be behind and commit nothing before the lane is said to stand still.
  absl::Duration StallPatience() const;
  // Which partitions have made no progress for too long, in words; empty: none. Logs when that begins or
  // ends.
  std::string WhyItStands();
  // Whether something is owned of which the last transaction was not committed.
  bool HasGivenUp() const;
  // Asks the group what it has committed, after a failure: the transaction is out or it is not.
  // Unknown only if the program is to stop.
  Outcome Resolve();
  void FinishTransaction(bool committed);
  // What the transaction holds.
  TransactionSize Size() const;
  // Now and then, if undeliverable records are more than a commit can list.
  void WarnOfUnlisted(OwnedPartition& owned);
  // Once, if most of what was read has no key although ids are to be unique by partition.
  void WarnIfUnkeyed();
  // Now and then, if copies have other keys than the first of their id.
  void WarnIfKeysDiffer();
  // Again and again, while nearly no record has a usable id; before their counts are closed.
  void WarnIfIdsAreMissing();
  // The first time that the memory limit costs a partition its window or its target.
  void WarnAtMemoryLimit(OwnedPartition& owned, const PartitionReport& report);
  // After a refusal: finds the records to blame. Where none is known, the transaction is halved until one
  // stands alone.
  void NarrowDown(const std::string& why);
  // Of the output's settings, as they are now; if the broker does not say, as they were.
  void RenewRules();

  static void OnRebalance(rd_kafka_t* consumer, rd_kafka_resp_err_t code,
                          rd_kafka_topic_partition_list_t* partitions, void* opaque);
  void Assign(const rd_kafka_topic_partition_list_t* partitions);
  void Revoke(const rd_kafka_topic_partition_list_t* partitions, bool lost);
  absl::Status PrepareAssigned(const rd_kafka_topic_partition_list_t* partitions);
  // What their counters have come to, once the broker says it.
  absl::Status AwaitTotals(const std::vector<OwnedPartition*>& partitions);
  // Fills in the times of the log where they matter. If the broker does not tell them, they are not known.
  void AskLogTimes(int32_t partition, const CommittedOffset& committed, GroupState::Log& log);
  // Takes the group's metadata of this moment. False: the group counts this lane out already.
  bool TakeGroupMetadata();
  bool IsMember() const;
  // Those of them that the client was given, and has not let go.
  PartitionListPtr Assigned(const rd_kafka_topic_partition_list_t* partitions) const;
  // Leaves the group and joins it again.
  void Rejoin();
  // Ends the membership of a lane that would otherwise keep its place (StaticMembership::kAfterCrash).
  void LeaveGroup();
  // The group has members with another assignment protocol. Those that died count until their session times
  // out; after that it is the lane that ends.
  void MeetOtherProtocol(const std::string& why);
  void SetJoined(bool joined);
  // Says once that the group takes long to assign partitions, and why it may.
  void LookAtGroupWait();
  // The group has another member of this lane's name, which is a static member's. It makes the consumer anew,
  // which throws the other out; if that comes back again and again, it is the lane that ends.
  void MeetNamesake(const std::string& why);
  void RemakeConsumer();
  // The producer cannot be made anew: nor does the lane go on, unless it is to stop anyway.
  void LoseProducer();
  // Commits where the partitions start, with their stories. Not OK: this assignment is over.
  absl::Status CommitStart(const std::vector<OwnedPartition*>& fresh);
  // Asks until there is an answer, a refusal, or the stop.
  absl::Status Await(const std::function<absl::Status()>& ask);
  // Reads on from `next`.
  void Seek(OwnedPartition& owned);
  void SeekTo(OwnedPartition& owned, int64_t offset);

  void NameSnapshots(const std::vector<OwnedPartition*>& partitions);
  // After a commit: sees what became of those that were begun, and begins those that are due.
  void TakeSnapshots();
  void BeginSnapshot(OwnedPartition& owned);
  // No commit of this lane will name what is being taken.
  void DropSnapshot(OwnedPartition& owned);
  // While one is loaded, or totals are, which may take minutes: the lane neither hangs nor has left, unless
  // it is stopped.
  bool GoOnLoading(int32_t partition, absl::string_view what = "snapshot");
  void LoadingEnds();

  // Whether the output has such a partition. One that it has not is held, so that it stops no other.
  bool HasOutput(OwnedPartition& owned);
  // Those that are held go on where the output has got their partitions.
  void LookAtHeld();
  // It is as any other again: what the client is told not to fetch, it would not fetch for a later owner.
  void Unhold(OwnedPartition& owned);
  // A lane that is given nothing says so where the reason is that there is no input topic any more.
  void LookForInput();
  // What was added to the input and is given to nobody makes it leave and join again.
  void LookForForgotten();
  // What it owns hears how many partitions the input has.
  void NoteGrowth(int32_t partitions);
  void SetPaused(OwnedPartition& owned, bool paused);

  // In the group, where it is to keep its partitions through a restart.
  std::string InstanceName() const { return absl::StrCat(options_.instance, "-", number_); }
  OwnedPartition* Find(int32_t partition);
  std::string Name(const OwnedPartition& owned) const;
  PartitionListPtr Offsets(const std::vector<OwnedPartition*>& partitions) const;
  std::vector<OwnedPartition*> InTransaction();
  void SetWaiting(const std::string& why);
  bool AtEnd() const;
  void Publish();
  void SayWhenCaughtUp();

  const DaemonOptions& options_;
  const int number_;
  // The client tells its protocol, too, but no more once it ends.
  const bool cooperative_;
  const Topics& topics_;
  const LogEnds& ends_;  // of the input
  const StopFlag& stop_;
  std::atomic<std::chrono::nanoseconds> commit_interval_;
  std::atomic<bool> running_{false};
  std::atomic<bool> all_is_out_{false};
  std::atomic<bool> leaves_unfinished_{false};
  Heartbeat heartbeat_;
  const std::string id_fingerprint_;
  KeptPartitions& kept_;
  Snapshots* const snapshots_;
  Assigner assigner_;
  RecordReader reader_;
  ClientStatistics statistics_;  // the consumer's
  Output output_;
  RecordWriter writer_;
  RefusalSearch refusal_search_;
  LaneTuning tuning_;

  ClientPtr consumer_;
  std::optional<FetchOn> fetch_on_;  // of the consumer
  GroupMetadataPtr group_metadata_;  // as of the present assignment
  std::map<int32_t, std::unique_ptr<OwnedPartition>> owned_;
  CounterWatch* counter_watch_ = nullptr;
  absl::Status fatal_;
  bool joined_ = false;
  absl::Time unassigned_since_ = absl::InfinitePast();  // while it has not joined
  bool said_unassigned_ = false;
  absl::Duration session_timeout_ = absl::ZeroDuration();
  absl::Time other_protocol_since_ = absl::InfiniteFuture();
  std::optional<int32_t> loading_;  // the partition whose snapshot is being loaded
  bool wants_to_rejoin_ = false;
  bool wants_new_consumer_ = false;
  int met_namesakes_ = 0;  // in a row
  absl::Time last_namesake_ = absl::InfinitePast();
  // That the output is known to have; after a failure nothing is known.
  int32_t output_partitions_;
  absl::Time next_look_for_input_ = absl::InfinitePast();
  bool input_is_gone_ = false;
  bool has_begun_ = false;    // it was given partitions, and what the group has committed of them stood
  int32_t given_partitions_;  // of the input: all below were given to somebody
  absl::Time next_look_for_forgotten_ = absl::InfinitePast();
  absl::Time forgotten_since_ = absl::InfiniteFuture();
  int rejoined_for_forgotten_ = 0;  // in a row
  absl::Time next_look_at_held_ = absl::InfinitePast();

  // The open transaction. What is due is told by SteadyNow(), here and above.
  bool open_ = false;
  absl::Time deadline_ = absl::InfiniteFuture();
  size_t carried_out_ = 0;  // records in it
  TransactionBackoff backoff_;
  int64_t commits_ = 0;
  RecordCounts totals_;
  bool caught_up_ = false;  // and it was said
  int64_t aborts_ = 0;
  std::string given_up_because_;  // the last transaction that failed
  LaneFigures figures_;
  IdWatch ids_;
  Repeats memory_warnings_;
  ProgressWatch progress_;
  std::string stalled_;  // what WhyItStands() said last
  Repeats complaints_;
  Repeats disbelieved_;  // timestamps
  Repeats errors_;       // the consumer's
  Repeats aborted_;
  Repeats refused_starts_;
  int64_t unlisted_ = 0;  // undeliverable records that are in no commit
  Repeats unlisted_warnings_;
  bool warned_unkeyed_ = false;
  std::optional<KeyWatch> key_watch_;  // if copies with different keys would not meet

  // Scratch of one batch, kept so that nothing is allocated once it is warm.
  Messages batch_;
  int64_t batch_number_ = 0;
  bool polling_ = false;  // the batch is being filled
  std::vector<Item> items_;
  std::vector<CounterChange> changes_;
  std::vector<std::pair<size_t, size_t>> change_texts_;  // their places in texts_, and bytes
  std::vector<Event> events_;
  std::vector<size_t> event_items_;
  std::vector<Verdict> verdicts_;
  std::string texts_;

  std::mutex wanted_tuning_mutex_;
  std::optional<LaneTuning> wanted_tuning_;  // guarded by wanted_tuning_mutex_
  std::atomic<bool> is_tuned_anew_{false};

  mutable std::mutex report_mutex_;
  std::shared_ptr<const LaneReport> report_;  // guarded by report_mutex_
  std::string waiting_;                       // likewise
  absl::Time published_at_;                   // likewise
  absl::Time next_publish_ = absl::InfinitePast();
  int32_t next_renewed_ = 0;  // the partition whose filter is asked next
  bool published_at_end_ = false;
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_LANE_H_
