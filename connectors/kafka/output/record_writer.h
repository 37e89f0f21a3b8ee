// What becomes of a record once it is judged.
#ifndef LETHE_CONNECTORS_KAFKA_OUTPUT_RECORD_WRITER_H_
#define LETHE_CONNECTORS_KAFKA_OUTPUT_RECORD_WRITER_H_

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "connectors/kafka/group/owned_partition.h"
#include "connectors/kafka/options/options.h"
#include "connectors/kafka/output/output.h"
#include "connectors/kafka/preflight/inspection.h"
#include "connectors/kafka/repartition/route.h"
#include "src/pipeline/disposition.h"
#include "src/pipeline/repeats.h"
#include "src/record/record_reader.h"

namespace lethe::kafka {

// What one counter makes of a record that is meant for it.
struct CounterChange {
  size_t counter = 0;  // of the options'
  bool countable = false;
  absl::string_view text;  // the key, or why there is nothing to count
  int64_t delta = 0;
};

// A record of the input, and what is known of it.
struct JudgedRecord {
  const rd_kafka_message_t* message = nullptr;
  RecordFields::State id_state = RecordFields::State::kPresent;
  Verdict verdict = Verdict::kUnique;  // also if there is no usable id
  absl::string_view reason = {};       // why there is none
  absl::Span<const CounterChange> changes = {};
  int32_t route = 0;  // the partition that it is routed to, if that is all that is done
};

// A stretch of judged records of one partition.
struct JudgedRun {
  absl::Span<const JudgedRecord> records;
  int64_t oldest_ms = INT64_MAX;  // the lowest of their timestamps
};

// Writes, tags, diverts and drops records as the policies say, counts what it did in the partition's open
// counts, and sums up the counters. All of it belongs to the output's open transaction.
//
// Thread safety: that of the output, which it shares with its lane.
class RecordWriter {
 public:
  RecordWriter(const DaemonOptions& options, const Topics& topics, Output& output)
      : options_(options), topics_(topics), output_(output), policies_(options.policies) {}

  // Others, between two transactions.
  void SetPolicies(const Policies& policies) { policies_ = policies; }

  // Of a record that no topic is known to refuse, by the policies; `known`: one does.
  Disposition DispositionOf(const JudgedRecord& record, const Undeliverable* known = nullptr) const;

  // Why the partition must stop in front of this record, with what to do; nullopt if it need not.
  std::optional<std::string> WhyStop(const OwnedPartition& owned, const rd_kafka_message_t& message,
                                     const RecordFields& fields) const;

  bool StopsAtUndeliverable() const { return policies_.on_undeliverable == Action::kFail; }

  // Not OK: the transaction is to be given up.
  absl::Status CarryOut(OwnedPartition& owned, const JudgedRecord& record);

  // Writes what the open transaction has changed the counters of the partition to, or by.
  absl::Status ProduceSums(OwnedPartition& owned);

 private:
  absl::Status ProduceSums(OwnedPartition& owned, size_t counter);
  // Now and then.
  void SayUndeliverable(const OwnedPartition& owned, const JudgedRecord& record, const Undeliverable& known,
                        Action action);
  absl::Status Pass(const OwnedPartition& owned, const JudgedRecord& record, absl::string_view tag);
  // Or a copy of a record that goes out all the same.
  absl::Status Divert(const OwnedPartition& owned, const JudgedRecord& record, absl::string_view verdict,
                      absl::string_view reason, bool copied = false);
  // The message as it came, but for its headers. `as` says what refuses it, if it is refused.
  absl::Status Produce(const rd_kafka_message_t& message, rd_kafka_topic_t* topic, int32_t partition,
                       HeadersPtr headers, RecordPlace as);
  // Adds what it counts, if anything is counted.
  absl::Status Count(OwnedPartition& owned, const JudgedRecord& record);
  // The record goes out, and a counter goes without it.
  absl::Status LeaveUncounted(OwnedPartition& owned, const JudgedRecord& record, size_t counter,
                              absl::string_view why);
  // Where it was first, with its own headers: in the input, or in the topic that this was routed from.
  struct Original {
    absl::string_view topic;
    RoutedFrom place;
    HeadersPtr headers;
  };
  Original OriginalOf(const OwnedPartition& owned, const rd_kafka_message_t& message) const;
  // The record in words, with its original.
  std::string Name(const OwnedPartition& owned, const rd_kafka_message_t& message) const;

  const DaemonOptions& options_;
  const Topics& topics_;
  Output& output_;
  Policies policies_;
  Repeats undeliverable_;
  Repeats uncounted_;
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_OUTPUT_RECORD_WRITER_H_
