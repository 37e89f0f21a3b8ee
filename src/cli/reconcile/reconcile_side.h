// One side of `lethe reconcile`: its part of the log, as keys for the comparison and as records to copy.
#ifndef LETHE_SRC_CLI_RECONCILE_RECONCILE_SIDE_H_
#define LETHE_SRC_CLI_RECONCILE_RECONCILE_SIDE_H_

#include <spdlog/spdlog.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "connectors/kafka/topics/topic_reader.h"
#include "connectors/kafka/topics/topic_writer.h"
#include "connectors/registry/patient_schemas.h"
#include "src/cli/reconcile/reconcile_messages.h"
#include "src/cli/reconcile/reconcile_options.h"
#include "src/cli/reconcile/reconcile_talk.h"
#include "src/record/record_reader.h"

namespace lethe {

// Thread-compatible.
class ReconcileSide {
 public:
  // `is_copied_to`: other copies to this topic are fenced before its end is asked for, so that what they have
  // committed is read, and what they have not never comes.
  static absl::StatusOr<std::unique_ptr<ReconcileSide>> Open(const ReconcileCommandOptions& options,
                                                             const ReconcileAsk& ask, bool is_copied_to,
                                                             ReconcileTalk& talk);

  const ReconcileFacts& facts() const { return report_.facts; }
  // The compared window: the requested one, or less.
  const ReconcileAsk& window() const { return window_; }

  // Reads the ids whose key is `pass` modulo `passes`.
  absl::Status Read(int64_t pass, int64_t passes);
  // Since when retention has deleted nothing of the requested window, as of the last Read().
  int64_t whole_since_ms() const { return whole_since_ms_; }
  // No more is compared than is whole on both sides. FailedPrecondition: nothing is left.
  absl::Status Narrow(int64_t whole_since_ms);

  // Of the ids that were read last.
  std::vector<uint64_t> Keys();
  // Notes which of them the peer lacks.
  void Take(const Difference& difference);

  // Of the last comparison: sends the records that the peer lacks, until it has committed them.
  absl::Status SendMissing();
  // Likewise: receives the records that this side lacks, at most as many as the peer has `announced`
  // (copy_intake.h), and commits them.
  absl::Status ReceiveMissing(const ReconcileFacts& from, uint64_t announced);
  int64_t received() const { return received_; }

  // Reads the samples' ids.
  absl::StatusOr<SideReport> Report();

 private:
  // The first record with an id.
  struct Entry {
    uint64_t key;
    int64_t time_ms;
    int64_t offset;
    int32_t partition;
  };
  struct FirstRecord {
    int64_t offset;
    int64_t time_ms;
  };
  struct Place {
    int32_t partition;
    int64_t offset;
    friend bool operator<(const Place& x, const Place& y) {
      return std::pair(x.partition, x.offset) < std::pair(y.partition, y.offset);
    }
  };

  ReconcileSide(const ReconcileCommandOptions& options, const ReconcileAsk& ask, ReconcileTalk& talk)
      : options_(options),
        window_(ask),
        talk_(talk),
        whole_since_ms_(ask.wide_begin_ms()),
        schemas_(registry::PatientSchemas::Open(options.schema_registry,
                                                [](const std::string& what) { spdlog::warn("{}", what); })),
        reader_({.id = options.id, .schemas = schemas_.get()}) {}
  // Not OK: the registry does not answer, and what was read is worth nothing.
  absl::Status SchemasStatus() const { return schemas_ == nullptr ? absl::OkStatus() : schemas_->status(); }
  void TakeSample(const Entry& entry);
  // From when on a partition that has lost records is whole; `first` is the first of it that was read.
  absl::StatusOr<int64_t> WholeSince(int32_t partition, const std::optional<FirstRecord>& first);

  const ReconcileCommandOptions& options_;
  ReconcileAsk window_;
  ReconcileTalk& talk_;
  int64_t whole_since_ms_;
  std::unique_ptr<kafka::TopicReader> log_;
  std::unique_ptr<kafka::TopicWriter> writer_;               // if it is copied to
  const std::unique_ptr<registry::PatientSchemas> schemas_;  // null: there is no registry
  RecordReader reader_;
  int64_t pass_ = 0;
  int64_t passes_ = 1;
  std::vector<Entry> entries_;  // of this pass; by key, and each key once, after Keys()
  std::vector<Place> missing_;  // of these at the peer
  int64_t received_ = 0;
  SideReport report_;
};

}  // namespace lethe

#endif  // LETHE_SRC_CLI_RECONCILE_RECONCILE_SIDE_H_
