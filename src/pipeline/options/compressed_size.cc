#include "src/pipeline/options/compressed_size.h"

#include <zstd.h>

#include <array>

namespace lethe {

CompressedSize::CompressedSize() : context_(ZSTD_createCCtx()) {}

void CompressedSize::Free::operator()(ZSTD_CCtx_s* context) const { ZSTD_freeCCtx(context); }

bool CompressedSize::Exceeds(absl::string_view bytes, int64_t most) {
  if (context_ == nullptr) return false;
  ZSTD_CCtx_reset(context_.get(), ZSTD_reset_session_only);
  std::array<char, 16384> scratch;
  ZSTD_inBuffer in = {bytes.data(), bytes.size(), 0};
  int64_t size = 0;
  for (size_t left = 1; left != 0;) {
    ZSTD_outBuffer out = {scratch.data(), scratch.size(), 0};
    left = ZSTD_compressStream2(context_.get(), &out, &in, ZSTD_e_end);
    if (ZSTD_isError(left) != 0) return false;
    size += static_cast<int64_t>(out.pos);
    if (size > most) return true;
  }
  return false;
}

}  // namespace lethe
