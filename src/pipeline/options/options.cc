#include "src/pipeline/options/options.h"

#include "absl/strings/str_cat.h"

namespace lethe {

std::string IdFingerprint(const DaemonOptions& options, int32_t output_partitions) {
  const std::string fingerprint = options.record.id.Fingerprint();
  return options.routes ? absl::StrCat(fingerprint, "/", output_partitions) : fingerprint;
}

}  // namespace lethe
