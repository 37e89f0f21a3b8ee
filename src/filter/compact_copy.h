// A copy of a compact filter's lines that is made while ids are inserted.
#ifndef LETHE_SRC_FILTER_COMPACT_COPY_H_
#define LETHE_SRC_FILTER_COMPACT_COPY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "src/filter/compact_line.h"

namespace lethe {

// Lines are copied in order. A line that loses an entry before its turn (it is split, or an entry is moved or
// renewed) is saved before, and copied as saved: a copy has all entries of its beginning, and some later
// ones. If that takes more than an eighth of the lines, or memory is lacking, the copy is broken. Lines are
// not merged meanwhile.
//
// The table shares it with the copying thread. Thread safety: none, apart from that sharing.
class CompactCopy {
 public:
  explicit CompactCopy(uint64_t lines) : lines_(lines) {}

  // Before line `index` loses an entry.
  void Keep(uint64_t index, const uint8_t* line) {
    if (index < copied_ || index >= lines_ || broken_) return;
    if (kept_.size() >= lines_ / 8 + kFewLines) {
      broken_ = true;
      return;
    }
    try {
      const auto [kept, is_new] = kept_.try_emplace(index);
      if (is_new) std::memcpy(kept->second.data(), line, kept->second.size());
    } catch (const std::bad_alloc&) {
      broken_ = true;
    }
  }

  // Copies whole lines from `index` on, as they were. False if the copy is broken.
  bool Copy(uint64_t index, absl::Span<const char> part, char* to) {
    if (broken_) return false;
    std::memcpy(to, part.data(), part.size());
    const uint64_t end = index + part.size() / kCompactLineBytes;
    for (uint64_t line = index; line < end && !kept_.empty(); ++line) {
      const auto kept = kept_.find(line);
      if (kept == kept_.end()) continue;
      std::memcpy(to + (line - index) * kCompactLineBytes, kept->second.data(), kept->second.size());
      kept_.erase(kept);
    }
    copied_ = end;
    return true;
  }

  void Break() { broken_ = true; }

 private:
  static constexpr uint64_t kFewLines = 1024;

  const uint64_t lines_;
  uint64_t copied_ = 0;
  bool broken_ = false;
  absl::flat_hash_map<uint64_t, std::array<uint8_t, kCompactLineBytes>> kept_;
};

}  // namespace lethe

#endif  // LETHE_SRC_FILTER_COMPACT_COPY_H_
