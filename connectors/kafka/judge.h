// From a run of messages to records with verdicts: ids are read, and the filter is asked.
#ifndef LETHE_CONNECTORS_KAFKA_JUDGE_H_
#define LETHE_CONNECTORS_KAFKA_JUDGE_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "connectors/kafka/client/message_view.h"
#include "connectors/kafka/group/source.h"
#include "connectors/kafka/options/options.h"
#include "connectors/kafka/output/record_writer.h"
#include "connectors/kafka/output/refusal_search.h"
#include "connectors/kafka/output/warnings.h"
#include "connectors/kafka/preflight/inspection.h"
#include "lethe/stage.h"
#include "src/pipeline/repeats.h"
#include "src/record/record_reader.h"

namespace lethe::kafka {

// Invariant: what it has judged is in the open transaction of the partition, in the order of the log; what is
// known to be undeliverable is not, so that a copy of it passes.
//
// Not thread-safe: it belongs to the worker's thread. Memory is kept from batch to batch, so that nothing is
// allocated once it is warm.
class Judge {
 public:
  Judge(const DaemonOptions& options, const Topics& topics, const Source& source, const RecordWriter& writer,
        RefusalSearch& refusals, Warnings& warnings);

  // Of a partition that is in the open transaction. Of a shorter run, if the partition must stop within it:
  // then its stop_before_next says why. Valid until the next call.
  JudgedRun Run(OwnedPartition& owned, MessageRun run);
  // After a batch: gives back what larger batches than usual needed.
  void GiveBack();

 private:
  // Where the texts of a record are; its views are set when all texts are there.
  struct Place {
    size_t reason_at;  // in texts_
    size_t reason_bytes;
    size_t changes_at;  // in changes_
    size_t changes;
  };

  // The open events, which were not judged yet.
  void JudgeEvents(OwnedPartition& owned);
  void Add(const rd_kafka_message_t& message, const RecordFields& fields);
  void SetViews();
  // The time of a record that is judged, or InfinitePast() if it has none, or is dated after `latest`: that
  // is counted and now and then said.
  absl::Time Believe(OwnedPartition& owned, const MessageView& view, int64_t offset, absl::Time latest);
  // Says now and then which record has no usable id.
  void Complain(const OwnedPartition& owned, int64_t offset, const RecordFields& fields);

  const DaemonOptions& options_;
  const Topics& topics_;
  const Source& source_;
  const RecordWriter& writer_;
  RefusalSearch& refusals_;
  Warnings& warnings_;
  RecordReader reader_;
  std::vector<JudgedRecord> records_;
  std::vector<Place> places_;
  std::vector<CounterChange> changes_;
  std::vector<std::pair<size_t, size_t>> change_texts_;  // their places in texts_, and bytes
  std::vector<Event> events_;
  std::vector<size_t> event_records_;
  std::vector<Verdict> verdicts_;
  std::string texts_;
  Repeats disbelieved_;  // timestamps
  Repeats complaints_;
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_JUDGE_H_
