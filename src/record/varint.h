// Integers of variable length, as Protobuf and Avro write them: 7 bits a byte, the lowest first.
#ifndef LETHE_SRC_RECORD_VARINT_H_
#define LETHE_SRC_RECORD_VARINT_H_

#include <cstdint>

namespace lethe {

// Takes one off the front of [*at, end). False if it has no end, or more than 64 bits.
inline bool TakeVarint(const char** at, const char* end, uint64_t* number) {
  uint64_t result = 0;
  for (int shift = 0; *at < end && shift < 64; shift += 7) {
    const auto byte = static_cast<uint8_t>(*(*at)++);
    if (shift == 63 && byte > 1) return false;
    result |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) {
      *number = result;
      return true;
    }
  }
  return false;
}

// Signed ones, in zigzag: 0, -1, 1, -2...
inline int64_t FromZigzag(uint64_t number) {
  return static_cast<int64_t>(number >> 1) ^ -static_cast<int64_t>(number & 1);
}
inline bool TakeZigzag(const char** at, const char* end, int64_t* number) {
  uint64_t coded = 0;
  if (!TakeVarint(at, end, &coded)) return false;
  *number = FromZigzag(coded);
  return true;
}

}  // namespace lethe

#endif  // LETHE_SRC_RECORD_VARINT_H_
