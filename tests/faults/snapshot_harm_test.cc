// What befalls snapshots must be harm: each one is refused by the program, or is not there.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "lethe/snapshot.h"
#include "lethe/stage.h"
#include "tests/faults/snapshots.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {
namespace {

const SnapshotOrigin kOrigin = {.topic = "orders", .partition = 0, .id_fingerprint = "json:/id"};

class SnapshotHarmTest : public testing::Test {
 protected:
  SnapshotHarmTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "lethe-harm-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    shelf_ = ShelfInFolder(folder_);
  }
  ~SnapshotHarmTest() override { std::filesystem::remove_all(folder_); }

  void SetUp() override {
    auto stage = DedupStage::Create({.horizon = absl::Hours(1)});
    ASSERT_OK(stage);
    stage_ = *std::move(stage);
    const auto partition = stage_->Open("orders-0");
    ASSERT_OK(partition);
    ASSERT_OK((*partition)->Save(folder_ + "/orders-0.group.7-a.snapshot", kOrigin, {.offset = 7}));
    const auto snapshots = shelf_->Load();
    ASSERT_OK(snapshots);
    ASSERT_EQ(snapshots->size(), 1u);
    whole_ = *snapshots;
    EXPECT_EQ(whole_[0].series, "orders-0.group");
    EXPECT_EQ(whole_[0].id, "7-a");
  }
  // As the program finds it.
  absl::Status Stored(const std::vector<StoredSnapshot>& snapshots) {
    EXPECT_OK(shelf_->Store(snapshots));
    return stage_->Restore("orders-0", folder_ + "/orders-0.group.7-a.snapshot", kOrigin).status();
  }

  std::string folder_;
  std::unique_ptr<SnapshotShelf> shelf_;
  std::unique_ptr<DedupStage> stage_;
  std::vector<StoredSnapshot> whole_;
};

TEST_F(SnapshotHarmTest, DamagedOnesAreRefused) {
  EXPECT_OK(Stored(whole_));
  for (uint64_t seed = 0; seed < 50; ++seed) {
    std::vector<StoredSnapshot> snapshots = whole_;
    SnapshotHarm(seed).Damage(snapshots);
    EXPECT_FALSE(Stored(snapshots).ok()) << seed;
  }
}

TEST_F(SnapshotHarmTest, ForeignOnesAreWholeAndRefused) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    std::vector<StoredSnapshot> snapshots = whole_;
    ASSERT_OK(SnapshotHarm(seed).MakeForeign(snapshots));
    EXPECT_EQ(snapshots[0].bytes.size(), whole_[0].bytes.size());
    EXPECT_THAT(Stored(snapshots), StatusIs(absl::StatusCode::kFailedPrecondition)) << seed;
  }
}

TEST_F(SnapshotHarmTest, OldOnesHaveTheirOwnNameOrALaterOne) {
  bool its_own = false;
  bool later = false;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    std::vector<StoredSnapshot> snapshots = {whole_[0]};
    snapshots[0].id = "9-b";
    snapshots[0].bytes = "other bytes";
    SnapshotHarm(seed).PutBack(whole_, snapshots);
    ASSERT_EQ(snapshots.size(), 1u);
    EXPECT_EQ(snapshots[0].bytes, whole_[0].bytes);
    (snapshots[0].id == "9-b" ? later : its_own) = true;
  }
  EXPECT_TRUE(its_own && later);
}

}  // namespace
}  // namespace lethe::test
