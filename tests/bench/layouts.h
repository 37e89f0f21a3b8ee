// The layouts that are compared: lethe's own and their rivals, each at a size that meets a target.
#ifndef LETHE_TESTS_BENCH_LAYOUTS_H_
#define LETHE_TESTS_BENCH_LAYOUTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "lethe/filter.h"
#include "src/memory/line_memory.h"

namespace lethe::bench {

// A filter with the memory that it takes from.
struct Layout {
  std::string name = "";
  int generations = 0;
  std::unique_ptr<MemoryBudget> memory = nullptr;  // outlives the filter
  std::unique_ptr<Filter> filter = nullptr;
};

inline constexpr double kDefaultTarget = 1e-6;
// The row that judges nothing (TwoLines).
inline constexpr char kFloor[] = "two lines";

// Those that are compared at that size and target: lethe's own engines, the rivals, and the floor. What does
// not depend on the target is there for the default one only.
std::vector<std::string> LayoutNames(double window, double target_fpp);

// Of which no false positive can be met.
inline bool IsExact(const std::string& name) {
  return name == "exact" || name == "exact-engine" || name == "RocksDB";
}

// A layout for so many ids in the horizon (kHorizonMs). The published one gets as many bits as compact takes,
// and does not meet the target with them.
absl::StatusOr<Layout> MakeLayout(const std::string& name, double window, double target_fpp);

// A layout whose memory is `bytes` of lines; `make` gets the memory.
inline constexpr int64_t kAmpleBytes = int64_t{1} << 36;
template <typename Make>
absl::StatusOr<Layout> OnLines(const std::string& name, int generations, int64_t bytes, Make make) {
  Layout layout{
      .name = name, .generations = generations, .memory = std::make_unique<MemoryBudget>(kAmpleBytes)};
  absl::StatusOr<LineMemory> memory = LineMemory::Create(layout.memory.get(), bytes, bytes);
  if (!memory.ok()) return memory.status();
  layout.filter = make(*std::move(memory));
  return layout;
}

}  // namespace lethe::bench

#endif  // LETHE_TESTS_BENCH_LAYOUTS_H_
