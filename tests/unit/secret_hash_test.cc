// Keys that collide in Abseil's hash, whatever its seed, in the tables that hold keys from outside.
#include "lethe/secret_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "absl/base/config.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/internal/hashtable_debug.h"
#include "lethe/counters.h"
#include "src/counters/counter_sums.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

constexpr uint64_t kCount = 4096;

std::string Bytes(uint64_t number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

// absl/hash/internal/low_level_hash.cc of Abseil 20220623 (Debian 12) takes 32 bytes as a, b, c and d of 8
// bytes each, with Mix(x, y) = the halves of the product x * y, xored:
//
//   state = Mix(a ^ salt[1], b ^ seed ^ salt[0]), hash = Mix(Mix(c ^ salt[1], d ^ state), salt[1] ^ 32)
//
// Its salts are known. With a = c = salt[1] both products are 0, and so is the hash, whatever b, d and the
// seed are.
std::vector<std::string> CollidingKeys() {
  const std::string salt = Bytes(0x13198A2E03707344);
  std::vector<std::string> keys;
  for (uint64_t i = 0; i < kCount; ++i) keys.push_back(salt + Bytes(i) + salt + Bytes(~i));
  return keys;
}

// How many groups of slots a search looks at, for the worst key.
template <class Table>
size_t MostProbes(const Table& table, const std::vector<std::string>& keys) {
  size_t most = 0;
  for (const std::string& key : keys) {
    most = std::max(most, absl::container_internal::GetHashtableDebugNumProbes(table, key));
  }
  return most;
}

// In a table of 7/8 full groups longer ways are as good as impossible.
constexpr size_t kFewProbes = 30;

TEST(SecretHashTest, TheKeysCollideInAbseilsOwnHash) {
  const std::vector<std::string> keys = CollidingKeys();
#if defined(ABSL_LTS_RELEASE_VERSION) && ABSL_LTS_RELEASE_VERSION == 20220623
  const absl::flat_hash_set<std::string> plain(keys.begin(), keys.end());
  EXPECT_GT(MostProbes(plain, keys), kCount / 2);
#endif
  const SecretHashSet with_secret(keys.begin(), keys.end());
  EXPECT_EQ(with_secret.size(), kCount);
  EXPECT_LT(MostProbes(with_secret, keys), kFewProbes);
}

TEST(SecretHashTest, TheKeysOfACounterDoNotCollide) {
  const std::vector<std::string> keys = CollidingKeys();
  CounterSums sums = CounterSums::WithTotals(keys.size());
  CounterReader deltas, totals;
  for (const std::string& key : keys) {
    ASSERT_EQ(sums.Add(key, 1), CounterSums::Added::kYes);
    ASSERT_OK(deltas.Add(key, "1"));
    const CounterTotal total = {"likes", "in", 0, key, 1, 1};
    ASSERT_OK(totals.Add(total.RecordKey(), total.RecordValue()));
  }
  EXPECT_LT(MostProbes(sums.changed(), keys), kFewProbes);
  sums.Commit();
  EXPECT_EQ(sums.totals().size(), kCount);
  EXPECT_LT(MostProbes(sums.totals(), keys), kFewProbes);
  for (const CounterReader* reader : {&deltas, &totals}) {
    EXPECT_EQ(reader->totals().size(), kCount);
    EXPECT_LT(MostProbes(reader->totals(), keys), kFewProbes);
  }
}

TEST(SecretHashTest, FindsTextOfAnyKind) {
  SecretHashMap<int> map;
  map["a"] = 1;
  EXPECT_EQ(map.find(absl::string_view("a"))->second, 1);
  EXPECT_EQ(map.find(""), map.end());
  EXPECT_EQ(SecretHash()("a"), SecretHash()(std::string("a")));
}

}  // namespace
}  // namespace lethe
