// Ids that somebody chooses: pairs that a hash may take for one, as XXH3 does for some of its seeds; and
// those that crowd in one place of a filter whose key he has.
#ifndef LETHE_TESTS_SUPPORT_CHOSEN_PAIRS_H_
#define LETHE_TESTS_SUPPORT_CHOSEN_PAIRS_H_

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "lethe/stage.h"

namespace lethe {

// Above 240 bytes XXH3 adds to accumulator i the products of the halves of (x ^ w), for each word x of eight
// bytes at lane i of a stripe of 64 bytes, where w is a word of its secret plus or minus the seed, and adds x
// to the accumulator beside it. If two words of one lane have the same lower half after the xor, they may
// swap a bit of their upper halves: all sums stay. The lower halves of two secret words plus the same seed
// differ by one xor much more often than by others, and so the pair collides under one seed in some hundreds,
// whatever else the ids have.
class LongPairs {
 public:
  explicit LongPairs(size_t size, uint64_t seed) : random_(seed), id_(size, '\0') {
    for (char& byte : id_) byte = static_cast<char>(random_());
    const size_t stripes = std::min<size_t>((size - 1) / 64, 16);
    int most = 0;
    for (size_t lane = 0; lane < 8; ++lane) {
      for (size_t first = 0; first < stripes; ++first) {
        for (size_t second = first + 2; second < stripes; second += 2) {
          const auto [difference, count] = MostFrequent(first + lane, second + lane);
          if (count <= most) continue;
          most = count;
          first_at_ = 64 * first + 8 * lane;
          second_at_ = 64 * second + 8 * lane;
          difference_ = difference;
        }
      }
    }
  }

  // The next pair.
  void Next(std::string* one, std::string* other) {
    const uint64_t random = random_();
    const uint64_t bit = uint64_t{1} << (32 + random_() % 31);
    const uint64_t first = random & ~bit;
    const uint64_t second =
        ((random_() & ~uint64_t{UINT32_MAX}) | ((random ^ difference_) & UINT32_MAX)) | bit;
    *one = *other = id_;
    Put(one, first_at_, first);
    Put(one, second_at_, second);
    Put(other, first_at_, first | bit);
    Put(other, second_at_, second & ~bit);
  }

 private:
  struct Difference {
    uint64_t bits = 0;
    int count = 0;
  };

  static void Put(std::string* id, size_t at, uint64_t word) { std::memcpy(id->data() + at, &word, 8); }
  static uint64_t SecretWord(size_t index, uint64_t seed) {
    uint64_t word;
    std::memcpy(&word, XXH3_kSecret + 8 * index, 8);
    return index % 2 == 0 ? word + seed : word - seed;
  }
  Difference MostFrequent(size_t first, size_t second) {
    std::vector<uint64_t> found(4000);
    for (uint64_t& bits : found) {
      const uint64_t seed = random_();
      bits = (SecretWord(first, seed) ^ SecretWord(second, seed)) & UINT32_MAX;
    }
    std::sort(found.begin(), found.end());
    Difference most;
    for (auto at = found.begin(); at != found.end();) {
      const auto next = std::upper_bound(at, found.end(), *at);
      if (next - at > most.count) most = {*at, static_cast<int>(next - at)};
      at = next;
    }
    return most;
  }

  std::mt19937_64 random_;
  std::string id_;
  size_t first_at_ = 0;
  size_t second_at_ = 0;
  uint64_t difference_ = 0;
};

// Printable ids of 8 to 40 letters that differ in one.
class ShortPairs {
 public:
  explicit ShortPairs(uint64_t seed) : random_(seed) {}

  void Next(std::string* one, std::string* other) {
    const uint64_t word = random_();
    one->resize(8 + word % 33);
    for (size_t at = 0; at < one->size(); at += 8) {
      uint64_t letters = random_();
      for (size_t i = at; i < std::min(at + 8, one->size()); ++i, letters >>= 8) {
        (*one)[i] = static_cast<char>('!' + letters % 64);
      }
    }
    *other = *one;
    char& changed = (*other)[(word >> 8) % one->size()];
    changed = static_cast<char>(changed ^ (1 << (word >> 16) % 5));
  }

 private:
  std::mt19937_64 random_;
};

// Where the second line of a tag is (CompactTable::Turn).
inline uint64_t Turn(uint64_t tag) {
  const uint64_t product = (tag + 1) * 0x9E3779B97F4A7C15ULL;
  return (product ^ product >> 32) | 1;
}

// Ids that have the same two lines of 128 in a partition's filter.
inline std::vector<std::string> ForgedFor(const Partition& partition, size_t count) {
  std::vector<std::string> ids;
  for (uint64_t i = 0; ids.size() < count; ++i) {
    std::string id(reinterpret_cast<const char*>(&i), sizeof(i));
    const HashedId hash = partition.Hash(id);
    if ((hash.a & 127) == 5 && (Turn(hash.b >> 48) & 127) == 77) ids.push_back(std::move(id));
  }
  return ids;
}

}  // namespace lethe

#endif  // LETHE_TESTS_SUPPORT_CHOSEN_PAIRS_H_
