#include "src/pipeline/options/topics.h"

#include <zstd.h>

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"

namespace lethe {
CompressedSize::CompressedSize() : context_(nullptr, &ZSTD_freeCCtx) {}

bool CompressedSize::Exceeds(absl::string_view bytes, int64_t most) {
  if (context_ == nullptr) context_.reset(ZSTD_createCCtx());
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

namespace {

// Between the broker's clock and this machine's.
constexpr absl::Duration kClocksDiffer = absl::Minutes(1);

// INT64_MAX: no bound.
bool Exceeds(absl::Duration age, int64_t max_ms) {
  return max_ms < INT64_MAX && age > absl::Milliseconds(max_ms) + kClocksDiffer;
}

std::string Bound(absl::string_view what, int64_t max_ms, absl::string_view property) {
  return absl::StrCat("its timestamp is more than ", absl::FormatDuration(absl::Milliseconds(max_ms)), " ",
                      what, " (", property, ")");
}

}  // namespace

std::string RecordRules::WhyRefused(int64_t timestamp_ms, bool has_key, absl::Time now) const {
  if (needs_key && !has_key) return "it has no key, and the topic is compacted";
  if (timestamp_ms <= 0) return "";
  const absl::Duration age = now - absl::FromUnixMillis(timestamp_ms);
  if (Exceeds(age, before_max_ms)) return Bound("old", before_max_ms, "message.timestamp.before.max.ms");
  if (Exceeds(-age, after_max_ms)) {
    return Bound("in the future", after_max_ms, "message.timestamp.after.max.ms");
  }
  return "";
}

std::string RecordRules::WhyTooLarge(absl::string_view value, CompressedSize& compressed) const {
  if (static_cast<int64_t>(value.size()) <= max_batch_bytes) return "";
  // Another codec may compress a little better than zstd.
  const auto most = static_cast<int64_t>(1.1 * static_cast<double>(max_batch_bytes));
  if (!compressed.Exceeds(value, most)) return "";
  return absl::StrCat("its value has ", value.size(),
                      " bytes, which no codec makes smaller than the topic's ", max_batch_bytes,
                      " (max.message.bytes, segment.bytes)");
}

int64_t Topics::max_batch_bytes() const {
  int64_t bytes = output_max_bytes;
  if (divert_max_bytes > 0) bytes = std::min(bytes, divert_max_bytes);
  for (const int64_t limit : counter_max_bytes) bytes = std::min(bytes, limit);
  return bytes;
}

int64_t Topics::max_record_bytes() const {
  return std::max({input_max_bytes, output_max_bytes, divert_max_bytes});
}

}  // namespace lethe
