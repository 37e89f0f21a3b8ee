// What thousands of partitions take of a process's address space.
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lethe/stage.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

struct Taken {
  int64_t bytes = 0;
  int64_t mappings = 0;
};

Taken OfThisProcess() {
  Taken taken;
  std::ifstream("/proc/self/statm") >> taken.bytes;
  taken.bytes *= 4096;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) ++taken.mappings;
  return taken;
}

// By default Linux gives a process 65,530 mappings and 128 TiB.
TEST(AddressSpace, OfTenThousandPartitionsIsBounded) {
  auto stage = DedupStage::Create({.horizon = absl::Hours(1), .memory_limit_bytes = int64_t{4} << 30});
  ASSERT_OK(stage);
  const Taken before = OfThisProcess();
  std::vector<std::unique_ptr<Partition>> partitions;
  std::vector<Event> events(100);
  std::vector<Verdict> verdicts(events.size());
  uint64_t next = 0;
  for (int i = 0; i < 10'000; ++i) {
    auto partition = (*stage)->Open(absl::StrCat("topic-", i));
    ASSERT_OK(partition) << i;
    const uint32_t key_check = (*partition)->Hash("").key_check;
    for (Event& event : events) event = {.id = {{++next, ~next}, key_check}, .time = absl::UnixEpoch()};
    ASSERT_OK((*partition)->Judge(events, absl::MakeSpan(verdicts)));
    partitions.push_back(*std::move(partition));
  }
  const Taken after = OfThisProcess();
  EXPECT_LT(after.bytes - before.bytes, int64_t{100} << 30);
  EXPECT_LT(after.mappings - before.mappings, 45'000);
}

}  // namespace
}  // namespace lethe
