// Ids in RocksDB, the store that stream processors keep them in.
#ifndef LETHE_TESTS_BENCH_RIVALS_ROCKS_STORE_H_
#define LETHE_TESTS_BENCH_RIVALS_ROCKS_STORE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "lethe/filter.h"

namespace lethe::bench {

// Exact: the key is an id's 128 bits, the value its stream time. Compactions drop what is older than the
// horizon. Without a log, with Bloom filters of 10 bits a key, and with a cache for all of it; in a temporary
// folder, which it removes.
absl::StatusOr<std::unique_ptr<Filter>> NewRocksStore(int64_t horizon_ms);

}  // namespace lethe::bench

#endif  // LETHE_TESTS_BENCH_RIVALS_ROCKS_STORE_H_
