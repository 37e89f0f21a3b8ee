// What it costs to hash an id, in the hash that lethe uses and in those that it could use. In ns an id, the
// least of nine rounds in turn, EPYC (family 26), GCC 12, Debian 12's packages:
//
//   bytes                       8     16     36     64    250   1000
//   XXH3-128 (no PRF)         3.8    3.9    6.9    6.9   29.6     66
//   SipHash-1-3-128          10.6   11.9   15.2   21.9   59.0    212
//   SipHash-2-4-128          15.2   17.3   23.0   33.8   96.9    351
//   the same of libsodium    15.7   18.4   24.1   34.7   97.5    352
//   HighwayHash-128, AVX2    16.6   16.7   18.7   17.6   33.8     95
//
// Ids are short: SipHash-1-3 adds least. No package has it with 128 bits; libhighwayhash has had no release
// since 2020, and no interface to its 128 bits but templates.
#include <benchmark/benchmark.h>
#include <xxhash.h>

#include <random>
#include <string>
#include <vector>

#include "lethe/event.h"
#include "src/text/sip_hash.h"

#if defined(LETHE_SODIUM)
#include <sodium/crypto_shorthash_siphash24.h>
#endif
#if defined(LETHE_HIGHWAYHASH)
#include <highwayhash/highwayhash_target.h>
#include <highwayhash/instruction_sets.h>
#endif

namespace lethe {
namespace {

constexpr HashKey kKey = {.low = 0x0123456789abcdef, .high = 0xfedcba9876543210};

// Ids that follow one another in memory, half a megabyte of them.
template <typename Hash>
void HashIds(benchmark::State& state, const Hash& hash) {
  const auto size = static_cast<size_t>(state.range(0));
  const size_t count = (size_t{1} << 19) / size;
  std::mt19937_64 random(1);
  std::string ids(size * count, '\0');
  for (char& byte : ids) byte = static_cast<char>(random());
  for (auto _ : state) {
    for (size_t i = 0; i < count; ++i) {
      benchmark::DoNotOptimize(hash(absl::string_view(ids).substr(i * size, size)));
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(count));
  state.counters["ns_an_id"] =
      benchmark::Counter(static_cast<double>(count) * 1e-9,
                         benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void AllSizes(benchmark::internal::Benchmark* bench) {
  for (const int size : {8, 16, 36, 64, 250, 1000}) bench->Arg(size);
}

void Xxh3(benchmark::State& state) {
  HashIds(state, [](absl::string_view id) {
    const XXH128_hash_t hash = XXH3_128bits_withSeed(id.data(), id.size(), kKey.low);
    return IdHash{hash.low64, hash.high64};
  });
}
BENCHMARK(Xxh3)->Apply(AllSizes);

void OfIds(benchmark::State& state) {
  HashIds(state, [](absl::string_view id) { return HashId(id, kKey); });
}
BENCHMARK(OfIds)->Name("HashId")->Apply(AllSizes);

void SipHash24(benchmark::State& state) {
  HashIds(state, [](absl::string_view id) { return SipHash<2, 4>::Of(id, kKey); });
}
BENCHMARK(SipHash24)->Apply(AllSizes);

#if defined(LETHE_SODIUM)
void Sodium(benchmark::State& state) {
  HashIds(state, [](absl::string_view id) {
    IdHash hash;
    crypto_shorthash_siphashx24(reinterpret_cast<unsigned char*>(&hash),
                                reinterpret_cast<const unsigned char*>(id.data()), id.size(),
                                reinterpret_cast<const unsigned char*>(&kKey));
    return hash;
  });
}
BENCHMARK(Sodium)->Name("libsodium's SipHash-2-4-128")->Apply(AllSizes);
#endif

#if defined(LETHE_HIGHWAYHASH)
void HighwayHash(benchmark::State& state) {
  const highwayhash::HHKey key HH_ALIGNAS(32) = {kKey.low, kKey.high, 3, 4};
  HashIds(state, [&key](absl::string_view id) {
    highwayhash::HHResult128 hash;
    highwayhash::InstructionSets::Run<highwayhash::HighwayHash>(key, id.data(), id.size(), &hash);
    return IdHash{hash[0], hash[1]};
  });
}
BENCHMARK(HighwayHash)->Name("HighwayHash-128")->Apply(AllSizes);
#endif

}  // namespace
}  // namespace lethe
