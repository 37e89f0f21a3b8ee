// The fuzzers' committed snapshots are such as the present format has: else nothing deep is reached from
// them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "lethe/snapshot.h"
#include "lethe/stage.h"
#include "tests/support/small_snapshots.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

const std::filesystem::path kCorpus = std::filesystem::path(LETHE_SOURCE_DIR) / "tests/fuzz/corpus";

std::string Contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// LETHE_WRITE=1 writes it.
TEST(FuzzCorpusTest, HasASnapshotThatCanBeRestored) {
  const std::string snapshot = ::testing::TempDir() + "/fuzz_corpus_test.snapshot";
  const auto stage = DedupStage::Create(SmallStage());
  ASSERT_OK(stage);
  const std::filesystem::path seed = kCorpus / "snapshot_fuzz/compact";
  if (std::getenv("LETHE_WRITE") != nullptr) {
    const auto partition = (*stage)->Open("p");
    ASSERT_OK(partition);
    JudgeSome(**partition, 90, absl::Milliseconds(5));
    const absl::Status saved = (*partition)->Save(snapshot, kSmallOrigin, {});
    ASSERT_OK(saved);
    std::filesystem::create_directories(seed.parent_path());
    std::ofstream(seed, std::ios::binary) << Contents(snapshot);
  }
  const std::string input = Contents(seed);
  ASSERT_FALSE(input.empty()) << seed;
  std::ofstream(snapshot, std::ios::binary) << input;
  const auto restored = (*stage)->Restore("q", snapshot, kSmallOrigin);
  EXPECT_OK(restored) << "if the format has changed: LETHE_WRITE=1 build/tests/fuzz_corpus_test";
  std::filesystem::remove(snapshot);
}

}  // namespace
}  // namespace lethe
