// The input as one worker sees it: its consumer, what that has polled, and where it reads on.
#ifndef LETHE_CONNECTORS_KAFKA_GROUP_SOURCE_H_
#define LETHE_CONNECTORS_KAFKA_GROUP_SOURCE_H_

#include <librdkafka/rdkafka.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "connectors/kafka/client/client.h"
#include "connectors/kafka/client/client_statistics.h"
#include "connectors/kafka/group/owned_partition.h"
#include "connectors/kafka/options/options.h"

namespace lethe::kafka {

using Messages = std::vector<MessagePtr>;
// A stretch of a batch that belongs to one partition.
using MessageRun = absl::Span<const MessagePtr>;
using PartitionList = rd_kafka_topic_partition_list_t;

// Invariant: what is left of a batch of a partition that was sought since is stale, by IsStale().
//
// Thread safety: none, it belongs to the worker's thread; but statistics() may be asked from any.
class Source {
 public:
  // Called within Poll() and Close(), and by nothing else.
  struct Rebalance {
    std::function<void(const PartitionList&)> assigned;
    std::function<void(const PartitionList&, bool lost)> revoked;
  };

  Source(const DaemonOptions& options, int lane, Rebalance rebalance);

  // Makes the consumer and subscribes.
  absl::Status Open();
  bool is_open() const { return consumer_ != nullptr; }
  // Ends the membership of a static member that would otherwise keep its place, and revokes what is assigned.
  void Leave();
  // Revokes what is assigned, and drops the consumer.
  void Close();
  // Leaves the group and joins it again.
  absl::Status Rejoin();

  // Reads what is there into the batch, at most `limit` messages or about `most_bytes`, waiting at most
  // `timeout` for the first.
  void Poll(absl::Duration timeout, size_t limit, size_t most_bytes);
  const Messages& batch() const { return batch_; }
  void ClearBatch() { batch_.clear(); }
  // Of the batch: all of a partition that is owned no more.
  void DropUnowned(const OwnedPartitions& owned);
  // After the batch's message `begin` could not be carried out: seeks every partition from there on, but
  // those of the transaction, which are sought when that is rolled back.
  void ReadAgainFrom(size_t begin, const OwnedPartitions& owned);
  bool IsStale(const OwnedPartition& owned) const { return owned.sought_in_batch == batch_number_; }

  // Reads on from `next`; or from another offset, in search of it.
  void Seek(OwnedPartition& owned);
  void SeekTo(OwnedPartition& owned, int64_t offset);
  // After an offset that is not in the log the client fetches nothing more of the partition, and a seek may
  // come too early for it.
  void Reassign(const OwnedPartition& owned, const OwnedPartitions& all);
  void SetPaused(OwnedPartition& owned, bool paused);
  // The end of the log, as last fetched; 0 if it is not known.
  int64_t HighWatermark(int32_t partition) const;

  // Within a rebalance: what the group has assigned is read, from each `next`; or is no longer.
  void Assign(const std::vector<const OwnedPartition*>& partitions);
  void Unassign(const PartitionList& partitions);
  // Takes the group's metadata of this moment. False: the group counts this worker out already.
  bool TakeGroupMetadata();
  const rd_kafka_consumer_group_metadata_t* group_metadata() const { return group_metadata_.get(); }
  // The group took the assignment away unasked.
  bool IsLost() const { return rd_kafka_assignment_lost(client()) != 0; }
  // The group takes a consumer for dead that is not polled for max.poll.interval.ms. This counts as polling,
  // and brings neither a message nor a rebalance.
  void StayAlive();

  bool is_cooperative() const { return cooperative_; }
  absl::Duration session_timeout() const { return session_timeout_; }
  // In the group, where it is to keep its partitions through a restart.
  std::string InstanceName() const;
  // An event that is no message, for people.
  std::string Describe(const rd_kafka_message_t& event) const;
  // Of a partition, for people.
  std::string Name(const OwnedPartition& owned) const;
  rd_kafka_t* client() const { return consumer_.get(); }
  const ClientStatistics& statistics() const { return statistics_; }

 private:
  static void OnRebalance(rd_kafka_t* consumer, rd_kafka_resp_err_t code, PartitionList* partitions,
                          void* opaque);
  absl::Status Subscribe();
  bool IsMember() const;
  PartitionListPtr Positions(const std::vector<const OwnedPartition*>& partitions) const;
  // Whether there is none.
  bool Log(const char* doing, const ErrorPtr& error) const;

  const DaemonOptions& options_;
  const int lane_;
  const Rebalance rebalance_;
  // The client tells its protocol, too, but no more once it ends.
  const bool cooperative_;
  ClientStatistics statistics_;
  ClientPtr consumer_;
  std::optional<FetchOn> fetch_on_;  // of the consumer
  absl::Duration session_timeout_ = absl::ZeroDuration();
  GroupMetadataPtr group_metadata_;  // as of the present assignment
  Messages batch_;
  int64_t batch_number_ = 0;
  bool polling_ = false;  // the batch is being filled
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_GROUP_SOURCE_H_
