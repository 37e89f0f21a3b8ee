// Publishes the figures of a worker, and whether it makes progress.
#ifndef LETHE_SRC_PIPELINE_PUBLISH_PUBLISHER_H_
#define LETHE_SRC_PIPELINE_PUBLISH_PUBLISHER_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

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

namespace lethe {

// Thread safety: Report() from any thread; the rest belongs to the worker's.
class Publisher {
 public:
  Publisher(const Workplace& place, LaneFlows& flows, const Membership& membership,
            const Transactions& transactions, const SourcePaces& pace, const InputWatch& input_watch);

  // Whether it is time to publish again, or the end was reached where the daemon waits for it (exit_at_end).
  bool IsDue() const;
  void Publish();

  LaneReport Report() const;

 private:
  PartitionReport ReportOf(const Task& task) const;
  // If quotas hold the clients back.
  void LookAtThrottling(LaneReport& report);
  std::string WhyItWaits(const Task& task) const;
  // How long a partition may be behind without a commit before it counts as stalled.
  absl::Duration StallPatience() const;
  // Names the partitions without progress; empty: none. Logs when that begins or ends.
  std::string WhyItStands();
  void LookForOpenTransactions();
  void SayOpenTransactions(const std::vector<PartitionReport>& partitions);
  bool IsAtEnd() const;
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
  absl::Time next_publish_ = absl::InfinitePast();
  TopicPartition next_renewed_;  // the partition whose filter figures are next
  bool published_at_end_ = false;

  mutable std::mutex mutex_;
  std::shared_ptr<const LaneReport> report_;  // guarded by mutex_
  absl::Time published_at_;                   // likewise
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_PUBLISH_PUBLISHER_H_
