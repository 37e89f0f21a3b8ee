#include "src/pipeline/output/codec_choice.h"

#include "absl/algorithm/container.h"

namespace lethe {

bool CodecChoice::Change(const DaemonOptions& options, TransactionReport& report) {
  const bool is_named = absl::c_any_of(options.process.properties, [](const Property& property) {
    return property.first == "compression.type" || property.first == "compression.codec";
  });
  const bool is_too_large =
      absl::c_any_of(report.refusals, [](const Refusal& refusal) { return !refusal.record.is_invalid; });
  if (is_named || !is_too_large || codec_ == kDense) return false;
  codec_ = kDense;
  report.failure = Failure::kTransient;
  return true;
}

}  // namespace lethe
