// How small a record becomes on its way to the broker.
#ifndef LETHE_SRC_PIPELINE_OPTIONS_COMPRESSED_SIZE_H_
#define LETHE_SRC_PIPELINE_OPTIONS_COMPRESSED_SIZE_H_

#include <cstdint>
#include <memory>

#include "absl/strings/string_view.h"

struct ZSTD_CCtx_s;

namespace lethe {

// Compresses with zstd at its default level, as librdkafka does with `compression.type=zstd`, only to see how
// many bytes come out. Thread safety: none.
class CompressedSize {
 public:
  CompressedSize();

  // Whether the bytes compress to more than `most`. Stops as soon as that is known, and keeps no output.
  // False if zstd fails.
  bool Exceeds(absl::string_view bytes, int64_t most);

 private:
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  std::unique_ptr<ZSTD_CCtx_s, Free> context_;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OPTIONS_COMPRESSED_SIZE_H_
