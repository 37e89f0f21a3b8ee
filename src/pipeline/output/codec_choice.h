// The compression of the output.
#ifndef LETHE_SRC_PIPELINE_OUTPUT_CODEC_CHOICE_H_
#define LETHE_SRC_PIPELINE_OUTPUT_CODEC_CHOICE_H_

#include "absl/strings/string_view.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/output/sink.h"

namespace lethe {

// Where the user names no codec: a fast one, until a record is too large for its topic. Not thread-safe.
class CodecChoice {
 public:
  static constexpr absl::string_view kQuick = "lz4";
  static constexpr absl::string_view kDense = "zstd";

  absl::string_view codec() const { return codec_; }
  // A transaction was aborted. True: another codec may help from now on, and no record is to blame before
  // that was tried.
  bool Change(const DaemonOptions& options, TransactionReport& report);

 private:
  absl::string_view codec_ = kQuick;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OUTPUT_CODEC_CHOICE_H_
