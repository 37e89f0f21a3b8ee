// A snapshot taken apart, so that a test can tell lies in it under the right checksums.
#ifndef LETHE_TESTS_SUPPORT_SNAPSHOT_PIECES_H_
#define LETHE_TESTS_SUPPORT_SNAPSHOT_PIECES_H_

#include <xxhash.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "src/snapshot/snapshot_file.h"

namespace lethe {

// The contents of the pieces of a snapshot of one shard.
inline std::vector<std::string> PiecesOf(const std::string& file) {
  std::vector<std::string> pieces;
  size_t at = 0;
  const auto take = [&](size_t size) {
    pieces.push_back(file.substr(at, size));
    at += size + kChecksumBytes;
    return pieces.back();
  };
  const auto number = [](const std::string& piece, size_t offset, size_t size) {
    uint64_t value = 0;
    std::memcpy(&value, piece.data() + offset, size);
    return value;
  };
  take(number(take(16), 12, 4));
  const std::string shard = take(19 * 8);
  take(number(shard, 8, 8));
  for (uint64_t left = number(shard, 16, 8); left > 0; left -= std::min<uint64_t>(left, kPieceBytes)) {
    take(std::min<uint64_t>(left, kPieceBytes));
  }
  // What is left are the ids of the audit and the end.
  for (uint64_t left = number(shard, 11 * 8, 8); left > 0; left -= std::min<uint64_t>(left, 4096)) {
    take(std::min<uint64_t>(left, 4096) * 40);
  }
  take(16);
  return pieces;
}

inline std::string Sealed(const std::vector<std::string>& pieces) {
  std::string file;
  for (const std::string& piece : pieces) {
    const uint64_t checksum = XXH3_64bits_withSeed(piece.data(), piece.size(), file.size());
    file += piece;
    file.append(reinterpret_cast<const char*>(&checksum), sizeof(checksum));
  }
  return file;
}

}  // namespace lethe

#endif  // LETHE_TESTS_SUPPORT_SNAPSHOT_PIECES_H_
