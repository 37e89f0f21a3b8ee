// Records in the snapshot topic that somebody else wrote: what they say of sizes is not believed.
#include "src/pipeline/snapshots/snapshot_records.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

constexpr int64_t kMemory = int64_t{64} << 20;
constexpr int64_t kMost = int64_t{1} << 30;
const SnapshotId kOlder = {100, uint64_t{1} << 40};
const SnapshotId kOwn = {200, uint64_t{2} << 40};

std::string Key(SnapshotId id, int64_t chunk) { return SnapshotKey{id, chunk}.ToString(); }

using Chunks = std::map<std::string, std::set<int64_t>>;

TEST(SnapshotKeyTest, IsReadAsItIsWritten) {
  const auto chunk = SnapshotKey::Parse(Key(kOlder, 7), MostChunks(kMemory));
  ASSERT_TRUE(chunk);
  EXPECT_EQ(chunk->id, kOlder);
  EXPECT_EQ(chunk->chunk, 7);
  const auto manifest = SnapshotKey::Parse(SnapshotKey{kOlder, {}}.ToString(), MostChunks(kMemory));
  ASSERT_TRUE(manifest);
  EXPECT_FALSE(manifest->chunk);
}

TEST(SnapshotKeyTest, AnIndexThatNoSnapshotHasIsNone) {
  const int64_t most = MostChunks(kMemory);
  EXPECT_TRUE(SnapshotKey::Parse(Key(kOlder, most - 1), most));
  for (const int64_t index : {most, int64_t{4'000'000'000'000'000'000}, std::numeric_limits<int64_t>::max(),
                              std::numeric_limits<int64_t>::min(), int64_t{-1}}) {
    EXPECT_FALSE(SnapshotKey::Parse(Key(kOlder, index), most)) << index;
  }
  for (const char* index : {"", "007", "+7", " 7", "7 ", "7/8", "99999999999999999999", "manifest "}) {
    EXPECT_FALSE(SnapshotKey::Parse(absl::StrCat(kOlder.ToString(), "/", index), most)) << index;
  }
  EXPECT_FALSE(SnapshotKey::Parse("x/7", most));
}

TEST(SnapshotKeyTest, MemoryBoundsASnapshotWhateverItIs) {
  EXPECT_GE(MostChunks(kMemory) * kChunkBytes, kMemory);
  EXPECT_LE(MostChunks(kMemory) * kChunkBytes, 4 * kMemory);
  EXPECT_GT(MostChunks(1), 0);
  EXPECT_GT(MostChunks(std::numeric_limits<int64_t>::max() / 4), 0);
}

TEST(SnapshotManifestTest, StatesAsManyChunksAsTheBytesNeedAndTheMemoryAllows) {
  const int64_t most = MostChunks(kMemory);
  const SnapshotManifest good = {2, kChunkBytes + 1};
  const auto read = SnapshotManifest::Parse(good.ToString(), most);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->chunks, 2);
  EXPECT_EQ(read->bytes, kChunkBytes + 1);
  const SnapshotManifest largest = {most, most * kChunkBytes};
  EXPECT_TRUE(SnapshotManifest::Parse(largest.ToString(), most));
  const SnapshotManifest larger = {most + 1, (most + 1) * kChunkBytes};
  EXPECT_FALSE(SnapshotManifest::Parse(larger.ToString(), most));
  EXPECT_FALSE(SnapshotManifest::Parse(SnapshotManifest{3, kChunkBytes + 1}.ToString(), most));
  EXPECT_FALSE(SnapshotManifest::Parse(SnapshotManifest{0, 0}.ToString(), most));
  EXPECT_FALSE(SnapshotManifest::Parse(SnapshotManifest{1, -5}.ToString(), most));
}

TEST(SnapshotRemainsTest, AForgedIndexLeavesNothingToDelete) {
  SnapshotRemains remains(kOwn, MostChunks(kMemory), kMost);
  EXPECT_TRUE(remains.See(Key(kOlder, 4'000'000'000'000'000'000), false, 57));
  EXPECT_EQ(remains.chunks(), Chunks());
  // What is there is deleted, and nothing between.
  EXPECT_TRUE(remains.See(Key(kOlder, 0), false, 57));
  EXPECT_TRUE(remains.See(Key(kOlder, MostChunks(kMemory) - 1), false, 57));
  EXPECT_EQ(remains.chunks(), (Chunks{{kOlder.ToString(), {0, MostChunks(kMemory) - 1}}}));
}

TEST(SnapshotRemainsTest, FindsWhatIsThereUpToTheOwnSnapshot) {
  SnapshotRemains remains(kOwn, MostChunks(kMemory), kMost);
  const SnapshotId deleted = {50, uint64_t{1} << 39};
  const SnapshotId next = {300, uint64_t{3} << 40};
  for (const SnapshotId id : {deleted, kOlder, next}) {
    for (int64_t chunk = 0; chunk < 3; ++chunk) EXPECT_TRUE(remains.See(Key(id, chunk), false, 1000));
    EXPECT_TRUE(remains.See(SnapshotKey{id, {}}.ToString(), false, 50));
  }
  EXPECT_TRUE(remains.See(SnapshotKey{deleted, {}}.ToString(), true, 0));
  for (int64_t chunk = 0; chunk < 3; ++chunk) EXPECT_TRUE(remains.See(Key(deleted, chunk), true, 0));
  EXPECT_TRUE(remains.See(std::nullopt, false, 1000));
  EXPECT_FALSE(remains.See(Key(kOwn, 0), false, 1000));
  EXPECT_EQ(remains.chunks(), (Chunks{{kOlder.ToString(), {0, 1, 2}}}));
}

// Empty records, each of an id of its own: keys are counted too.
TEST(SnapshotRemainsTest, TheSearchEndsHoweverSmallTheRecordsAre) {
  SnapshotRemains remains(kOwn, MostChunks(kMemory), 1'000'000);
  int64_t seen = 0;
  while (remains.See(Key({seen, 1}, 1), false, 0)) {
    ASSERT_LT(++seen, 1'000'000);
  }
  EXPECT_LE(remains.chunks().size(), 100'000u);
}

// Of what a collector has seen, its bytes and its error.
class SnapshotCollectorTest : public testing::Test {
 protected:
  bool See(SnapshotId id, std::optional<int64_t> chunk, std::optional<absl::string_view> value) {
    return collector_.See(SnapshotKey{id, chunk}.ToString(), value);
  }

  const std::string whole_ = std::string(kChunkBytes, 'a');
  MemoryFile file_;
  SnapshotCollector collector_{kOwn, MostChunks(kMemory), "snapshots", file_};
};

TEST_F(SnapshotCollectorTest, AWholeSnapshotIsCollectedUpToItsManifest) {
  EXPECT_TRUE(collector_.See("something else", "x"));
  EXPECT_TRUE(See(kOlder, 0, "of another"));
  EXPECT_TRUE(See(kOwn, 0, whole_));
  EXPECT_TRUE(See(kOwn, 1, "end"));
  EXPECT_THAT(collector_.manifest().status(), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_FALSE(See(kOwn, std::nullopt, SnapshotManifest::Of(kChunkBytes + 3).ToString()));
  ASSERT_OK(collector_.manifest());
  EXPECT_EQ(collector_.manifest()->bytes, kChunkBytes + 3);
  EXPECT_EQ(file_.size(), kChunkBytes + 3);
  std::string end(4, ' ');
  EXPECT_TRUE(file_.Read(kChunkBytes - 1, end));
  EXPECT_EQ(end, "aend");
}

TEST_F(SnapshotCollectorTest, OneWithoutAChunkIsNotFound) {
  EXPECT_TRUE(See(kOwn, 1, "end"));
  EXPECT_TRUE(See(kOwn, 0, std::nullopt)) << "a tombstone";
  EXPECT_FALSE(See(kOwn, std::nullopt, SnapshotManifest::Of(kChunkBytes + 3).ToString()));
  EXPECT_THAT(collector_.manifest().status(), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(SnapshotCollectorTest, ForgedSizesAreDamage) {
  EXPECT_FALSE(See(kOwn, 0, whole_ + "b"));
  EXPECT_THAT(collector_.manifest().status(), StatusIs(absl::StatusCode::kDataLoss));
  SnapshotCollector other(kOwn, MostChunks(kMemory), "snapshots", file_);
  EXPECT_FALSE(other.See(SnapshotKey{kOwn, std::nullopt}.ToString(), "lethe-snapshot/1 chunks=9 bytes=1"));
  EXPECT_THAT(other.manifest().status(), StatusIs(absl::StatusCode::kDataLoss));
}

}  // namespace
}  // namespace lethe
