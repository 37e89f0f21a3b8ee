// The content of a reconciliation's messages: unsigned integers, little-endian, and bytes.
#ifndef LETHE_SRC_RECONCILE_MESSAGE_H_
#define LETHE_SRC_RECONCILE_MESSAGE_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace lethe {

class MessageWriter {
 public:
  MessageWriter& Word(uint64_t value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  // Its length, then its bytes.
  MessageWriter& Text(absl::string_view text) {
    Word(text.size());
    bytes_.append(text.data(), text.size());
    return *this;
  }
  // The number of ascending numbers, then each as its distance from the one before, in LEB128.
  MessageWriter& Ascending(const std::vector<uint64_t>& numbers);

  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// After an error or the end of the message ok() stays false, and values are 0 or empty. Views are valid as
// long as the message.
class MessageReader {
 public:
  explicit MessageReader(absl::string_view bytes) : bytes_(bytes) {}

  uint64_t Word() {
    uint64_t value = 0;
    const absl::string_view taken = Bytes(sizeof value);
    if (ok_) std::memcpy(&value, taken.data(), sizeof value);
    return value;
  }
  absl::string_view Bytes(uint64_t size) {
    ok_ = ok_ && size <= bytes_.size();
    if (!ok_) return {};
    const absl::string_view taken = bytes_.substr(0, static_cast<size_t>(size));
    bytes_.remove_prefix(taken.size());
    return taken;
  }
  absl::string_view Text() { return Bytes(Word()); }
  std::vector<uint64_t> Ascending();

  bool ok() const { return ok_; }
  bool Ended() const { return ok_ && bytes_.empty(); }

 private:
  absl::string_view bytes_;
  bool ok_ = true;
};

}  // namespace lethe

#endif  // LETHE_SRC_RECONCILE_MESSAGE_H_
