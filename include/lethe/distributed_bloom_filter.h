// The Distributed Bloom Filter (Ramabaja and Avdullahu, 2019): a Bloom filter whose mapping belongs to one
// pair of peers and one round, so that an element that one exchange hides shows in the next.
//
// Its authors state a pending patent (EP19020580.7). Nothing but `lethe reconcile` and lethe/reconcile.h uses
// it, and ReconcileMethod::kLookupTable does without.
#ifndef LETHE_DISTRIBUTED_BLOOM_FILTER_H_
#define LETHE_DISTRIBUTED_BLOOM_FILTER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lethe/export.h"

namespace lethe {

// A set of elements, each given by 64 bits of a hash of it that both peers compute alike.
//
// An element that was inserted is contained. One that was not is contained with a probability of
// (1 - e^(-k n / m))^k, after n insertions (section 1.1 of the paper), and independently of other rounds.
//
// The mapping is that of section 2.2: the peers' ids are XOR-ed, the result is hashed k times, and each
// element's hash XOR-ed with each of those is taken modulo m. Section 2.3's counter is the round. One thing
// is added: m is odd. Where m is a power of two, XOR and modulo commute, so two elements that agree in the
// low bits share all k positions in every round, and the promise of the paper does not hold
// (DistributedBloomFilterTest.APowerOfTwoWouldHideTheSameElementsInEveryRound).
//
// Thread safety: none. Const methods may run together.
class LETHE_EXPORT DistributedBloomFilter {
 public:
  // m: `bits`, rounded up to the next odd number, at least 1. k: `hashes`, 1 to 16.
  DistributedBloomFilter(uint64_t peer, uint64_t other_peer, uint64_t round, uint64_t bits, int hashes);

  void Insert(uint64_t element);
  bool Contains(uint64_t element) const;

  uint64_t bits() const { return bits_; }
  // The bits, eight to a byte, the lowest first.
  const std::string& bytes() const { return bytes_; }
  // Takes the bits of a peer's filter with the same parameters. InvalidArgument if their number is wrong.
  absl::Status SetBytes(absl::string_view bytes);

 private:
  const uint64_t bits_;
  std::vector<uint64_t> seeds_;
  std::string bytes_;
};

}  // namespace lethe

#endif  // LETHE_DISTRIBUTED_BLOOM_FILTER_H_
