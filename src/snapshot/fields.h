// Serialized state in a snapshot: a sequence of fields of eight bytes, little-endian.
#ifndef LETHE_SRC_SNAPSHOT_FIELDS_H_
#define LETHE_SRC_SNAPSHOT_FIELDS_H_

#include <bit>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "lethe/filter.h"

namespace lethe {

static_assert(std::endian::native == std::endian::little, "snapshots hold memory as it is, little-endian");

// Stream times that a snapshot may hold lie within this on either side of 1970; or there is none.
inline constexpr int64_t kFarthestSnapshotMs = int64_t{1} << 61;
// No count comes near this, and sums of a few thousand of them do not overflow.
inline constexpr int64_t kMostSnapshotCount = int64_t{1} << 48;

// The format is stated once, by a function that takes either of these two and calls the same
// methods of it in the same order. A field is
//   Int     an integer, enum or bool, two's complement, within bounds
//   Count   an integer from 0 to kMostSnapshotCount
//   Time    a stream time in milliseconds since 1970, or kNoStreamTime
//   Float   an IEEE double, within bounds
//   Word    any 64 bits
//   Text    its length, then its bytes, filled up with zeros to a multiple of eight
// A value out of its bounds makes ok() false from then on, on writing too: a snapshot that could not be read
// again must not replace one that can. Thread safety: none.
class FieldWriter {
 public:
  template <typename T>
  void Int(const T& field, int64_t least, int64_t most) {
    PutInt(static_cast<int64_t>(field), least, most);
  }
  template <typename T>
  void Count(const T& field) {
    Int(field, 0, kMostSnapshotCount);
  }
  void Time(const int64_t& field) {
    Int(field, field == kNoStreamTime ? kNoStreamTime : -kFarthestSnapshotMs, kFarthestSnapshotMs);
  }
  void Float(const double& field, double least, double most);
  void Word(const uint64_t& field) { Put(&field); }
  void Text(const std::string& field, size_t most);

  bool ok() const { return ok_; }
  const std::string& bytes() const { return bytes_; }

 private:
  void PutInt(int64_t value, int64_t least, int64_t most);
  void Put(const void* eight);

  std::string bytes_;
  bool ok_ = true;
};

// Fields that are out of bounds, or behind the end, are left as they were.
class FieldReader {
 public:
  explicit FieldReader(absl::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  void Int(T& field, int64_t least, int64_t most) {
    int64_t value = 0;
    if (GetInt(&value, least, most)) field = static_cast<T>(value);
  }
  template <typename T>
  void Count(T& field) {
    Int(field, 0, kMostSnapshotCount);
  }
  void Time(int64_t& field);
  void Float(double& field, double least, double most);
  void Word(uint64_t& field);
  void Text(std::string& field, size_t most);

  bool ok() const { return ok_; }
  // All was read, and nothing is left.
  bool Ended() const { return ok_ && bytes_.empty(); }

 private:
  bool GetInt(int64_t* value, int64_t least, int64_t most);
  void Get(void* eight);

  absl::string_view bytes_;
  bool ok_ = true;
};

// A list that may not be longer than its reserved capacity: its length, then its elements.
template <typename List, typename Fields, typename Element>
void TransferList(List& list, size_t most, Fields& fields, Element element) {
  size_t size = list.size();
  fields.Int(size, 0, static_cast<int64_t>(most));
  if constexpr (!std::is_const_v<List>) list.resize(fields.ok() ? size : 0);
  for (auto& each : list) element(each);
}

}  // namespace lethe

#endif  // LETHE_SRC_SNAPSHOT_FIELDS_H_
