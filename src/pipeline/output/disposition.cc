#include "src/pipeline/output/disposition.h"

namespace lethe {
namespace {

using Count = int64_t RecordCounts::*;

constexpr absl::string_view kSameId = "a record before it has the same id";
constexpr absl::string_view kSuspiciousId = "many records that differ have the same id";

Count CountOf(Action action) {
  switch (action) {
    case Action::kPass:
      return &RecordCounts::passed;
    case Action::kTag:
      return &RecordCounts::tagged;
    case Action::kDivert:
      return &RecordCounts::diverted;
    case Action::kDrop:
      return &RecordCounts::dropped;
    case Action::kFail:
      break;
  }
  return nullptr;
}

Disposition Judged(Verdict verdict, const Policies& policies) {
  switch (verdict) {
    case Verdict::kDuplicate:
      return {policies.on_duplicate, "duplicate", "on_duplicate", kSameId, &RecordCounts::duplicate};
    case Verdict::kUnique:
      break;
  }
  return {Action::kPass, "unique", "", "", &RecordCounts::unique};
}

Disposition Decide(const RecordFacts& record, const Policies& policies) {
  if (record.is_undeliverable) {
    const bool has_nowhere = record.is_divert_refused && policies.on_undeliverable == Action::kDivert;
    return {has_nowhere ? Action::kDrop : policies.on_undeliverable, "undeliverable", "on_undeliverable", "",
            &RecordCounts::undeliverable};
  }
  switch (record.id_state) {
    case RecordFields::State::kMissing:
      return {policies.on_missing_id, "missing_id", "on_missing_id", "", &RecordCounts::missing_id};
    case RecordFields::State::kMalformed:
      return {policies.on_malformed, "malformed", "on_malformed", "", &RecordCounts::malformed};
    case RecordFields::State::kWaiting:  // not judged yet
    case RecordFields::State::kPresent:
      break;
  }
  // Where its own policy drops it, too, it is a copy like others: tagged, say.
  if (record.has_suspicious_id && policies.on_suspicious_id != Action::kDrop) {
    return {policies.on_suspicious_id, "suspicious_id", "on_suspicious_id", kSuspiciousId,
            &RecordCounts::duplicate};
  }
  return Judged(record.verdict, policies);
}

}  // namespace

Disposition Dispose(const RecordFacts& record, const Policies& policies) {
  Disposition disposition = Decide(record, policies);
  disposition.action_count = CountOf(disposition.action);
  return disposition;
}

Action DisposeUncountable(bool is_copy_refused, const Policies& policies) {
  return is_copy_refused ? Action::kPass : policies.on_uncountable;
}

}  // namespace lethe
