// Writes Protobuf and Avro by hand, right or wrong.
#ifndef LETHE_TESTS_SUPPORT_ENCODINGS_H_
#define LETHE_TESTS_SUPPORT_ENCODINGS_H_

#include <cstdint>
#include <cstring>
#include <string>

namespace lethe::test {

inline std::string Varint(uint64_t number) {
  std::string bytes;
  for (; number >= 0x80; number >>= 7) bytes.push_back(static_cast<char>(number | 0x80));
  bytes.push_back(static_cast<char>(number));
  return bytes;
}
inline std::string Zigzag(int64_t number) {
  return Varint(static_cast<uint64_t>(number) << 1 ^ static_cast<uint64_t>(number >> 63));
}
template <class Number>
std::string Fixed(Number number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

// Protobuf.
inline std::string Tag(uint32_t number, uint32_t wire) { return Varint(uint64_t{number} << 3 | wire); }
inline std::string VarintField(uint32_t number, uint64_t value) { return Tag(number, 0) + Varint(value); }
inline std::string BytesField(uint32_t number, const std::string& value) {
  return Tag(number, 2) + Varint(value.size()) + value;
}

// Avro.
inline std::string AvroString(const std::string& text) {
  return Zigzag(static_cast<int64_t>(text.size())) + text;
}

// A registry's frame.
inline std::string Framed(int32_t schema, const std::string& payload) {
  std::string frame(1, '\0');
  for (const int shift : {24, 16, 8, 0}) frame.push_back(static_cast<char>(schema >> shift));
  return frame + payload;
}

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_ENCODINGS_H_
