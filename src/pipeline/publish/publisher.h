// Publishes the figures of a worker, and whether it makes progress.
#ifndef LETHE_SRC_PIPELINE_PUBLISH_PUBLISHER_H_
#define LETHE_SRC_PIPELINE_PUBLISH_PUBLISHER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "src/pipeline/assign/input_watch.h"
#include "src/pipeline/assign/membership.h"
#include "src/pipeline/output/lane_flow.h"
#include "src/pipeline/output/sink.h"
#include "src/pipeline/output/source_pace.h"
#include "src/pipeline/output/transactions.h"
#include "src/pipeline/publish/log_ends.h"
#include "src/pipeline/report/report.h"
#include "src/pipeline/report/watches.h"
#include "src/pipeline/task/workplace.h"
#include "src/sync/mutex.h"

namespace lethe {

// Thread safety: Report() and ReportedPartitions() from any thread; the rest belongs to the worker's.
class Publisher {
 public:
  Publisher(const Workplace& place, LaneFlows& flows, const Membership& membership,
            const Transactions& transactions, const SourcePaces& pace, const InputWatch& input_watch);

  // Whether it is time to publish again, or the end was reached where the daemon waits for it (exit_at_end).
  bool IsDue() const;
  void Publish();

  LaneReport Report() const;
  // The partitions in it, which is copied for more than them.
  std::vector<TopicPartition> ReportedPartitions() const;

 private:
  // What a partition's report was made of, as far as it shows that nothing has happened since.
  struct Stamp {
    int64_t next = -1;
    int64_t committed = -1;
    int64_t end_of_log = -1;
    std::pair<int64_t, int64_t> status_at = {};
    Phase phase = Phase::kActive;
    bool in_transaction = false;
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  struct Reported {
    Stamp stamp;
    std::shared_ptr<const PartitionReport> report;
  };

  // Renews the reports of partitions with which something has happened or may; of the others, which are most
  // of thousands, each in its turn: only what producers hide in an open transaction changes there.
  absl::Duration PublishEvery() const;
  void RenewReports();
  static Stamp StampOf(const Task& task);
  // Whether the report stays true until something happens.
  static bool IsQuiet(const Task& task, const PartitionReport& report);
  PartitionReport ReportOf(const Task& task) const;
  // If quotas hold the clients back.
  void LookAtThrottling(LaneReport& report);
  std::string WhyItWaits(const Task& task) const;
  // How long a partition may be behind without a commit before it counts as stalled.
  absl::Duration StallPatience() const;
  // Names the partitions without progress; empty: none. Logs when that begins or ends.
  std::string WhyItStands();
  void LookForOpenTransactions();
  void SayOpenTransactions();
  bool IsAtEnd() const;
  // How restores of many partitions go on; few say so each by itself.
  void SayRestores();
  void SayWhenCaughtUp();

  const DaemonOptions& options_;
  const Flows& all_flows_;
  const LogEnds& ends_;  // of the inputs
  const WorkerState& state_;
  const Source& source_;
  const Tasks& tasks_;
  const Membership& membership_;
  const Transactions& transactions_;
  const SourcePaces& pace_;
  const InputWatch& input_watch_;
  const Sink& sink_;
  LaneFlows& flows_;
  ThrottleWatch consumer_throttle_;
  ThrottleWatch producer_throttle_;
  ProgressWatch progress_;
  std::string stalled_;  // the last answer of WhyItStands()
  OpenTransactionWatch open_transactions_;
  bool said_open_transaction_ = false;
  bool caught_up_ = false;
  int64_t said_ready_ = 0;     // as WorkerState::ready_partitions
  int64_t said_replayed_ = 0;  // as WorkerState::replayed_offsets
  absl::Time say_restores_at_ = absl::InfiniteFuture();
  absl::Time next_publish_ = absl::InfinitePast();
  TopicPartition next_renewed_;  // the partition whose filter figures are next
  std::map<TopicPartition, Reported> reported_;
  TopicPartition next_quiet_;  // the quiet partition whose turn it is
  bool published_at_end_ = false;

  mutable Mutex mutex_;
  std::shared_ptr<const LaneReport> report_ ABSL_GUARDED_BY(mutex_);  // without its partitions
  std::vector<std::shared_ptr<const PartitionReport>> partitions_ ABSL_GUARDED_BY(mutex_);  // its partitions
  absl::Time published_at_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_PUBLISH_PUBLISHER_H_
