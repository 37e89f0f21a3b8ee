#include "src/reconcile/message.h"

namespace lethe {

MessageWriter& MessageWriter::Ascending(const std::vector<uint64_t>& numbers) {
  Word(numbers.size());
  uint64_t last = 0;
  for (const uint64_t number : numbers) {
    uint64_t distance = number - last;
    last = number;
    for (; distance >= 0x80; distance >>= 7) bytes_.push_back(static_cast<char>(distance | 0x80));
    bytes_.push_back(static_cast<char>(distance));
  }
  return *this;
}

std::vector<uint64_t> MessageReader::Ascending() {
  const uint64_t count = Word();
  // Each takes a byte at least: a large count without the bytes allocates nothing.
  ok_ = ok_ && count <= bytes_.size();
  std::vector<uint64_t> numbers;
  if (!ok_) return numbers;
  numbers.reserve(static_cast<size_t>(count));
  uint64_t last = 0;
  for (uint64_t i = 0; i < count && ok_; ++i) {
    uint64_t distance = 0;
    for (int shift = 0;; shift += 7) {
      const absl::string_view byte = Bytes(1);
      if (!ok_ || shift > 63) {
        ok_ = false;
        return {};
      }
      distance |= static_cast<uint64_t>(byte[0] & 0x7f) << shift;
      if ((byte[0] & 0x80) == 0) break;
    }
    // Ascending, and each once.
    ok_ = ok_ && (i == 0 || distance > 0) && last + distance >= last;
    last += distance;
    numbers.push_back(last);
  }
  if (!ok_) numbers.clear();
  return numbers;
}

}  // namespace lethe
