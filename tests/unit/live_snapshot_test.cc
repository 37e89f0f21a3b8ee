// Snapshots of a partition that goes on: nothing that was passed is missing after a restore and a replay.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lethe/snapshot.h"
#include "lethe/stage.h"
#include "tests/support/seed.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

constexpr int64_t kStartMs = 1'700'000'000'000;
constexpr size_t kLag = 101;  // records by which stream time is behind at most
const SnapshotOrigin kOrigin = {.topic = "orders", .partition = 3, .id_fingerprint = "f00"};

struct Shape {
  const char* name;
  int shards;
};

// A log that is judged in transactions, some of which are aborted, at a rate that goes up and down, so that
// the filter refreshes, grows and shrinks.
class LiveSnapshotTest : public testing::TestWithParam<Shape> {
 protected:
  LiveSnapshotTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "lethe-live-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    options_.shards = GetParam().shards;
    stage_ = *DedupStage::Create(options_);
    partition_ = *stage_->Open("orders-3");
  }
  ~LiveSnapshotTest() override { std::filesystem::remove_all(folder_); }

  Event EventAt(const Partition& partition, size_t offset) const {
    return {.id = partition.Hash(absl::StrCat(offset)), .time = absl::FromUnixMillis(times_[offset])};
  }

  void Write(size_t records) {
    for (size_t i = 0; i < records; ++i) {
      if (random_() % 20'000 == 0) per_second_ = uint64_t{2000} << random_() % 6;
      now_ms_ += random_() % per_second_ < 1000 ? 1 : 0;
      times_.push_back(now_ms_);
    }
  }

  // Judges what is there in one transaction.
  void Advance(LiveSnapshot* live) {
    std::vector<Event> events;
    for (size_t i = committed_; i < times_.size(); ++i) events.push_back(EventAt(*partition_, i));
    std::vector<Verdict> verdicts(events.size());
    for (const bool abort : {random_() % 8 == 0, false}) {
      auto transaction = partition_->Begin();
      ASSERT_OK(transaction);
      EXPECT_OK(transaction->Judge(events, absl::MakeSpan(verdicts)));
      if (abort) {
        transaction->Abort();
        continue;
      }
      for (const Verdict verdict : verdicts) passed_.push_back(verdict != Verdict::kDuplicate);
      committed_ = times_.size();
      if (live != nullptr) live->NoteEnd(static_cast<int64_t>(committed_));
      transaction->Commit();
      break;
    }
  }

  // All that was passed within the horizon is known to who restores it and replays from its point on.
  void ExpectWhole(const std::string& path) {
    const auto stage = *DedupStage::Create(options_);
    auto restored = stage->Restore("orders-3", path, kOrigin);
    ASSERT_OK(restored);
    ASSERT_LE(restored->point.end_offset, static_cast<int64_t>(committed_));
    EXPECT_EQ(restored->point.notes, "noted");
    std::vector<Event> events;
    for (auto i = static_cast<size_t>(restored->point.offset); i < committed_; ++i) {
      events.push_back(EventAt(*restored->partition, i));
    }
    ASSERT_OK(restored->partition->Replay(events));
    ASSERT_EQ(restored->partition->stream_time(), partition_->stream_time());
    const int64_t now = absl::ToUnixMillis(partition_->stream_time());
    std::vector<Event> known, fresh;
    for (size_t i = kLag; i < committed_; ++i) {
      // Stream time was not behind that when it was passed.
      if (passed_[i] && times_[i - kLag] >= now - absl::ToInt64Milliseconds(options_.horizon)) {
        known.push_back(EventAt(*restored->partition, i));
        fresh.push_back(
            {.id = restored->partition->Hash(absl::StrCat("fresh", i)), .time = known.back().time});
      }
    }
    ASSERT_FALSE(known.empty());
    std::vector<Verdict> verdicts(known.size());
    auto transaction = restored->partition->Begin();
    EXPECT_OK(transaction->Judge(known, absl::MakeSpan(verdicts)));
    EXPECT_EQ(std::count(verdicts.begin(), verdicts.end(), Verdict::kDuplicate),
              static_cast<int64_t>(known.size()));
    EXPECT_OK(transaction->Judge(fresh, absl::MakeSpan(verdicts)));
    // At a thousand times the target this fails by chance less than once in a million.
    EXPECT_LE(std::count(verdicts.begin(), verdicts.end(), Verdict::kDuplicate),
              10 + static_cast<int64_t>(1000 * options_.target_fpp * static_cast<double>(fresh.size())));
  }

  std::string folder_;
  StageOptions options_ = {.horizon = absl::Seconds(8), .target_fpp = 1e-6, .memory_limit_bytes = 256 << 20};
  std::unique_ptr<DedupStage> stage_;
  std::unique_ptr<Partition> partition_;
  std::mt19937_64 random_{TestSeed()};
  std::vector<int64_t> times_;  // by offset
  int64_t now_ms_ = kStartMs;
  uint64_t per_second_ = 20'000;
  std::vector<bool> passed_;  // of what is committed
  size_t committed_ = 0;
};

TEST_P(LiveSnapshotTest, NothingIsMissing) {
  int whole = 0;
  for (int round = 0; whole < 6 && round < 60; ++round) {
    Write(2000 + random_() % 20'000);
    Advance(nullptr);
    const auto live = partition_->BeginSnapshot(
        kOrigin,
        {.offset = static_cast<int64_t>(committed_), .end_offset = 0, .record_before = 0, .notes = "noted"});
    ASSERT_OK(live);
    const std::string path = absl::StrCat(folder_, "/", round);
    std::atomic<bool> ended = false;
    absl::Status status;
    std::thread writer([&] {
      status = (*live)->Write(path);
      ended = true;
    });
    // Something in each round, whether the writer has ended or not, and more from one to the next; but little
    // again and again, since beside a slow writer the filter refreshes in the meantime where much comes.
    for (int i = 0; i == 0 || (i <= round % 10 && !ended); ++i) {
      Write(500);
      Advance(live->get());
    }
    writer.join();
    if (absl::IsAborted(status)) {
      EXPECT_FALSE(std::filesystem::exists(path) || std::filesystem::exists(path + ".new"));
      continue;
    }
    ASSERT_OK(status);
    ++whole;
    ExpectWhole(path);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(whole, 1);
}

// The old state with the new memory would not be a filter.
TEST_P(LiveSnapshotTest, ARefreshInBetweenAbortsIt) {
  Write(20'000);
  Advance(nullptr);
  const auto live = partition_->BeginSnapshot(kOrigin, {});
  ASSERT_OK(live);
  const int64_t refreshes = partition_->Status().filter.refreshes;
  while (partition_->Status().filter.refreshes == refreshes) {
    Write(5000);
    Advance(live->get());
  }
  EXPECT_THAT((*live)->Write(folder_ + "/p"), StatusIs(absl::StatusCode::kAborted));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_P(LiveSnapshotTest, ThePartitionMayGo) {
  Write(20'000);
  Advance(nullptr);
  const auto live = partition_->BeginSnapshot(kOrigin, {});
  ASSERT_OK(live);
  partition_.reset();
  EXPECT_EQ(stage_->memory().used_bytes(), 0);
  EXPECT_THAT((*live)->Write(folder_ + "/p"), StatusIs(absl::StatusCode::kCancelled));
}

TEST_P(LiveSnapshotTest, NoTransactionIsOpenWhenItBegins) {
  const auto transaction = partition_->Begin();
  EXPECT_THAT(partition_->BeginSnapshot(kOrigin, {}).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

// At rest it is the file that Save writes.
TEST_P(LiveSnapshotTest, AtRestItIsWhatSaveWrites) {
  Write(20'000);
  Advance(nullptr);
  ASSERT_OK(partition_->Save(folder_ + "/saved", kOrigin, {.offset = 7, .end_offset = 7, .notes = "noted"}));
  const auto live = partition_->BeginSnapshot(kOrigin, {.offset = 7, .end_offset = 7, .notes = "noted"});
  ASSERT_OK(live);
  const int memory = memfd_create("snapshot", MFD_CLOEXEC);
  ASSERT_GE(memory, 0);
  ASSERT_OK((*live)->Write(memory));
  const auto contents = [](int descriptor) {
    std::string text(static_cast<size_t>(lseek(descriptor, 0, SEEK_END)), '\0');
    EXPECT_EQ(pread(descriptor, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    return text;
  };
  std::FILE* saved = std::fopen((folder_ + "/saved").c_str(), "rb");
  ASSERT_NE(saved, nullptr);
  EXPECT_TRUE(contents(memory) == contents(fileno(saved)));
  std::fclose(saved);
  close(memory);
}

INSTANTIATE_TEST_SUITE_P(, LiveSnapshotTest, testing::Values(Shape{"Compact", 1}, Shape{"Shards", 4}),
                         [](const testing::TestParamInfo<Shape>& shape) { return shape.param.name; });

}  // namespace
}  // namespace lethe
