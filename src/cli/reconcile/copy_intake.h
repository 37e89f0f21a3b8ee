// What the other side of `lethe reconcile` may write into this side's topic.
#ifndef LETHE_SRC_CLI_RECONCILE_COPY_INTAKE_H_
#define LETHE_SRC_CLI_RECONCILE_COPY_INTAKE_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/cli/reconcile/reconcile_messages.h"
#include "src/cli/reconcile/reconcile_talk.h"
#include "src/record/record_reader.h"
#include "src/survey/survey.h"

namespace lethe {

// What a comparison has agreed on.
struct CopyTerms {
  ReconcileAsk window;  // that was compared
  int64_t pass = 0;     // compared were the ids whose key is `pass` modulo `passes`
  int64_t passes = 1;
  uint64_t announced = 0;                 // ids that this side lacks, as the peer says
  std::function<bool(uint64_t key)> has;  // whether this side has the id
};

// Receives the peer's records up to kEnd, and gives each to `write` with its source
// (CLUSTER/TOPIC/PARTITION/OFFSET) and without the header lethe.copied_from that it came with. Returns how
// many they were. DataLoss: the peer breaks the terms; the caller must then commit nothing. A record breaks
// them if it is one more than announced, has no id, has an id that this side has, that was not compared or
// that comes twice, or has a time outside the window. Errors of `write` are returned as they are.
absl::StatusOr<int64_t> ReceiveCopies(
    ReconcileTalk& talk, const ReconcileFacts& from, const CopyTerms& terms, RecordReader& reader,
    const std::function<absl::Status(const SurveyRecord& record, absl::string_view source)>& write);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_RECONCILE_COPY_INTAKE_H_
