// Snapshots: what is restored is what was saved, and nothing else is ever taken for it.
#include "lethe/snapshot.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lethe/stage.h"
#include "src/reference/any_engine.h"
#include "src/stage/partition_key.h"
#include "src/stage/snapshot_format.h"
#include "tests/support/exact_filter.h"
#include "tests/support/seed.h"
#include "tests/support/snapshot_pieces.h"
#include "tests/support/status_matchers.h"

// What is done to make a file last, in its order, and a disk of which one sync fails: the first is 1, none 0.
// Of one thread.
static int failing_sync = 0;
static std::vector<std::string> disk_calls;
extern "C" int fsync(int fd) {
  struct stat about = {};
  fstat(fd, &about);
  disk_calls.push_back(absl::StrCat("sync inode ", about.st_ino, " of ", about.st_size, " bytes"));
  if (failing_sync > 0 && --failing_sync == 0) {
    errno = EIO;
    return -1;
  }
  return static_cast<int>(syscall(SYS_fsync, fd));
}
extern "C" int rename(const char* from, const char* to) noexcept {
  disk_calls.push_back(absl::StrCat("rename ", from, " to ", to));
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

namespace lethe {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string SyncOf(const std::string& path) {
  struct stat about = {};
  EXPECT_EQ(stat(path.c_str(), &about), 0) << path;
  return absl::StrCat("sync inode ", about.st_ino, " of ", about.st_size, " bytes");
}

// Of the processor, that this thread has used.
absl::Duration ThreadTime() {
  timespec used = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return absl::DurationFromTimespec(used);
}

constexpr int64_t kStartMs = 1'700'000'000'000;
const SnapshotOrigin kOrigin = {.topic = "orders", .partition = 3, .id_fingerprint = "f00"};

// Without what is modelled, which a compact filter takes from its lines when it is restored, and what is
// estimated, which follows it between two samples.
std::string Text(const FilterStatus& s) {
  std::string text = absl::StrCat(s.shape.past_generations, " ", absl::FormatDuration(s.shape.refresh_period),
                                  " ", s.shape.bits_per_generation, " ", s.shape.bits_per_id, " ", s.ids, " ",
                                  absl::FormatDuration(s.window));
  absl::StrAppend(&text, " ", s.fpp.target, " ", s.memory_bytes, " ", s.refreshes, " ", s.limit_hits, "\n");
  for (const AdaptationStep& step : s.steps) {
    absl::StrAppend(&text, static_cast<int>(step.kind), " ", step.stream_time_ms, " ",
                    step.bits_per_generation, " ", step.reason, "\n");
  }
  for (const GenerationStatus& g : s.generations) {
    absl::StrAppend(&text, g.ids, " ", absl::FormatDuration(g.oldest), " ", absl::FormatDuration(g.newest),
                    " ", g.fill, "\n");
  }
  return text;
}

// Without the audit, which never changes a verdict: how its set is divided, and so when it learns of an event
// or drops a part of its share, depends on what it once held.
std::string Text(const PartitionStatus& s) {
  return absl::StrCat(absl::FormatTime(s.stream_time), " ", s.unique, " ", s.duplicates, " ", s.replayed, " ",
                      s.pending, "\n", Text(s.filter), "\n");
}

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void Put(const std::string& path, const std::string& contents) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << contents;
}

// A file without a disk, for tests that change it thousands of times.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& contents) : fd_(memfd_create("snapshot", MFD_CLOEXEC)) {
    EXPECT_GE(fd_, 0);
    Put(contents);
  }
  ~MemoryFile() { close(fd_); }
  std::string path() const { return absl::StrCat("/proc/self/fd/", fd_); }
  void Put(const std::string& contents) const {
    Cut(contents.size());
    Change(0, contents);
  }
  void Cut(size_t size) const { EXPECT_EQ(ftruncate(fd_, static_cast<off_t>(size)), 0); }
  void Change(size_t at, const std::string& bytes) const {
    EXPECT_EQ(pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(at)),
              static_cast<ssize_t>(bytes.size()));
  }

 private:
  const int fd_;
};

std::unique_ptr<DedupStage> NewStage(const StageOptions& options) {
  auto stage = DedupStage::Create(options);
  EXPECT_OK(stage);
  return *std::move(stage);
}

class SnapshotTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "lethe-snapshot-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = folder_ + "/p.snapshot";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // A partition that has seen some events, saved to path_.
  void SaveSmall() {
    stage_ = NewStage(options_);
    partition_ = *stage_->Open("orders-3");
    for (int i = 0; i < 400; ++i) {
      EXPECT_OK(partition_->Judge(absl::StrCat("id", i % 300), absl::FromUnixMillis(kStartMs + i * 10)));
    }
    ASSERT_OK(partition_->Save(path_, kOrigin, point_));
  }

  absl::Status Restored(const SnapshotOrigin& origin = kOrigin) { return Restored(options_, origin); }
  absl::Status Restored(const StageOptions& options, const SnapshotOrigin& origin = kOrigin) {
    const auto stage = NewStage(options);
    const absl::Status status = stage->Restore("p", path_, origin).status();
    EXPECT_EQ(stage->memory().used_bytes(), 0);
    return status;
  }

  std::string folder_;
  std::string path_;
  StageOptions options_ = {.horizon = absl::Seconds(10),
                           .target_fpp = 1e-3,
                           .memory_limit_bytes = 1 << 20,
                           .audit_share = 0.25,
                           .hash_seed = 7};
  const SnapshotPoint point_ = {
      .offset = 400, .end_offset = 401, .record_before = 0xfedcba9876543210, .notes = ""};
  std::unique_ptr<DedupStage> stage_;
  std::unique_ptr<Partition> partition_;
};

struct Shape {
  Engine engine;
  int shards;
  double target_fpp;
  int64_t memory_limit_bytes;
};

class SnapshotTwinTest : public SnapshotTest, public testing::WithParamInterface<Shape> {};

INSTANTIATE_TEST_SUITE_P(Shapes, SnapshotTwinTest,
                         testing::Values(Shape{Engine::kCompact, 1, 1e-2, 64 << 20},
                                         Shape{Engine::kCompact, 4, 1e-6, 64 << 20},
                                         Shape{Engine::kCompact, 1, 1e-15, 64 << 20},
                                         Shape{Engine::kExact, 1, 1e-6, 64 << 20},
                                         Shape{Engine::kPublished, 2, 1e-3, 64 << 20},
                                         // At its limit.
                                         Shape{Engine::kCompact, 2, 1e-4, 192 << 10}));

// A stream whose rate goes up and down, so that filters grow and shrink. Every now and then one of two
// partitions is replaced by what is restored from its snapshot, in another stage; nothing tells them apart.
TEST_P(SnapshotTwinTest, NothingTellsTheRestoredFromTheSaved) {
  std::mt19937_64 random(TestSeed());
  options_.engine = GetParam().engine;
  options_.shards = GetParam().shards;
  options_.target_fpp = GetParam().target_fpp;
  options_.memory_limit_bytes = GetParam().memory_limit_bytes;
  const auto never_saved_in = NewStage(options_);
  const auto never_saved = *never_saved_in->Open("twin");
  std::vector<std::unique_ptr<DedupStage>> stages;
  stages.push_back(NewStage(options_));
  auto twin = *stages.back()->Open("twin");

  int64_t now_us = kStartMs * 1000;
  uint64_t next_id = 0;
  std::vector<Event> events;
  std::vector<Verdict> expected, got;
  const std::string payloads[] = {"a", "b"};
  for (int batch = 0; batch < 600; ++batch) {
    const int phase = batch / 60 % 4;
    const int64_t step_us = phase == 0 ? 2000 : phase == 1 ? 50 : phase == 2 ? 400 : 20000;
    events.clear();
    const size_t size = 1 + random() % 400;
    for (size_t i = 0; i < size; ++i) {
      now_us += static_cast<int64_t>(random() % static_cast<uint64_t>(2 * step_us));
      const uint64_t id =
          random() % 4 == 0 ? next_id - random() % std::min<uint64_t>(next_id + 1, 20000) : next_id++;
      events.push_back({.id = never_saved->Hash(absl::StrCat(id)),
                        .time = absl::FromUnixMicros(now_us),
                        .payload = payloads[random() % 50 == 0]});
    }
    expected.assign(size, Verdict::kUnique);
    got.assign(size, Verdict::kUnique);
    EXPECT_OK(never_saved->Judge(events, absl::MakeSpan(expected)));
    EXPECT_OK(twin->Judge(events, absl::MakeSpan(got)));
    ASSERT_EQ(expected, got) << "batch " << batch;
    if (random() % 4 != 0) continue;
    ASSERT_OK(twin->Save(path_, kOrigin, point_));
    ASSERT_EQ(Text(twin->Status()), Text(never_saved->Status())) << "batch " << batch;
    auto stage = NewStage(options_);
    auto restored = stage->Restore("twin", path_, kOrigin);
    ASSERT_OK(restored);
    ASSERT_EQ(Text(restored->partition->Status()), Text(never_saved->Status())) << "batch " << batch;
    // Their samples are of different moments.
    const FilterStatus expected_figures = never_saved->Status().filter;
    for (const auto* each : {twin.get(), restored->partition.get()}) {
      const FilterStatus figures = each->Status().filter;
      const double apart = 5 * (figures.fpp.deviation + expected_figures.fpp.deviation);
      ASSERT_NEAR(figures.fpp.estimated, expected_figures.fpp.estimated,
                  0.3 * expected_figures.fpp.estimated + apart);
    }
    const double modelled = never_saved->Status().filter.fpp.modelled;
    ASSERT_NEAR(restored->partition->Status().filter.fpp.modelled, modelled, 0.3 * modelled);
    const auto bytes_without_audit = [](const DedupStage& of, const Partition& partition) {
      return of.memory().used_bytes() - partition.Status().audit.memory_bytes;
    };
    ASSERT_EQ(bytes_without_audit(*stage, *restored->partition), bytes_without_audit(*stages.back(), *twin));
    twin = std::move(restored->partition);
    stages.back() = std::move(stage);
  }
  std::cout << "refreshes " << never_saved->Status().filter.refreshes << ", steps in the list "
            << never_saved->Status().filter.steps.size() << ", bytes " << std::filesystem::file_size(path_)
            << "\n";
}

// Before time begins, and with nothing in it.
TEST_F(SnapshotTest, AnEmptyPartition) {
  stage_ = NewStage(options_);
  partition_ = *stage_->Open("p");
  ASSERT_OK(partition_->Save(path_, {}, {}));
  auto restored = stage_->Restore("q", path_, {});
  ASSERT_OK(restored);
  EXPECT_EQ(restored->partition->Status().name, "q");
  EXPECT_EQ(restored->partition->stream_time(), absl::InfinitePast());
  // As new: time may be set still.
  EXPECT_OK(restored->partition->StartAt(absl::FromUnixMillis(kStartMs)));
  EXPECT_EQ(*restored->partition->Judge("a", absl::InfinitePast()), Verdict::kUnique);
  EXPECT_EQ(*restored->partition->Judge("a", absl::InfinitePast()), Verdict::kDuplicate);
  ASSERT_OK(restored->partition->Save(path_, {}, {}));
  auto again = stage_->Restore("r", path_, {});
  ASSERT_OK(again);
  EXPECT_THAT(again->partition->StartAt(absl::Now()), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(*again->partition->Judge("a", absl::InfinitePast()), Verdict::kDuplicate);
  EXPECT_EQ(*again->partition->Judge("b", absl::InfinitePast()), Verdict::kUnique);
}

TEST_F(SnapshotTest, TheKeyAndThePointComeBack) {
  SaveSmall();
  options_.hash_seed = 8;
  const auto other = NewStage(options_);
  const auto restored = other->Restore("p", path_, kOrigin);
  ASSERT_OK(restored);
  EXPECT_EQ(restored->partition->Hash("x"), partition_->Hash("x"));
  EXPECT_EQ(*restored->partition->Judge("id7", absl::InfinitePast()), Verdict::kDuplicate);
  EXPECT_EQ(restored->point.offset, 400);
  EXPECT_EQ(restored->point.end_offset, 401);
  EXPECT_EQ(restored->point.record_before, 0xfedcba9876543210);
}

// The key that follows from what the file of a partition says, if the reader has the given secret.
HashKey KeyInFile(const std::string& path, HashKey secret) {
  absl::StatusOr<SnapshotReader> reader = SnapshotReader::Open(path);
  EXPECT_OK(reader);
  const absl::StatusOr<SnapshotHeader> header = SnapshotHeader::Read(&*reader);
  EXPECT_OK(header);
  return PartitionKeyOf(secret, header->salt).key;
}

TEST_F(SnapshotTest, WithoutItsSecretItIsNotRestoredAndDoesNotTellTheKey) {
  const HashKey secret = {.low = 0x0123456789abcdef, .high = 42};
  for (const HashKey& own : {HashKey(), secret}) {
    options_.snapshot_secret = own;
    options_.hash_seed = std::nullopt;
    const auto stage = NewStage(options_);
    const auto partition = *stage->Open("p");
    EXPECT_EQ(*partition->Judge("id7", absl::InfinitePast()), Verdict::kUnique);
    ASSERT_OK(partition->Save(path_, kOrigin, {}));
    const IdHash hash = partition->Hash("id7");
    EXPECT_EQ(HashId("id7", KeyInFile(path_, own)), hash);
    EXPECT_EQ(HashId("id7", KeyInFile(path_, {})) == hash, own.high == 0);

    for (const HashKey& other : {HashKey(), secret, HashKey{.low = secret.low, .high = 43}}) {
      options_.snapshot_secret = other;
      const auto reader = NewStage(options_);
      const auto restored = reader->Restore("p", path_, kOrigin);
      if (other.low != own.low || other.high != own.high) {
        EXPECT_THAT(restored.status(), StatusIs(absl::StatusCode::kFailedPrecondition));
        continue;
      }
      ASSERT_OK(restored);
      EXPECT_EQ(*restored->partition->Judge("id7", absl::InfinitePast()), Verdict::kDuplicate);
    }
    const auto report = InspectSnapshot(path_);
    ASSERT_OK(report);
    EXPECT_EQ(report->partition.filter.ids, 1);
  }
}

// A restored partition keeps its key, so all copies would pass it, in silence.
TEST_F(SnapshotTest, HashesOfAnotherPartitionAreRefused) {
  constexpr absl::StatusCode kRefused = absl::StatusCode::kInvalidArgument;
  SaveSmall();
  options_.hash_seed = 8;
  const auto other = NewStage(options_);
  const auto opened = *other->Open("q");
  const auto restored = other->Restore("p", path_, kOrigin);
  ASSERT_OK(restored);
  Partition& partition = *restored->partition;
  const auto refuses = [&](HashedId id) {
    const std::vector<Event> events = {{.id = partition.Hash("new")}, {.id = id}};
    std::vector<Verdict> verdicts(events.size());
    EXPECT_THAT(partition.Judge(events, absl::MakeSpan(verdicts)), StatusIs(kRefused));
    EXPECT_THAT(partition.Replay(events), StatusIs(kRefused));
    Transaction transaction = *partition.Begin();
    EXPECT_THAT(transaction.Judge(events, absl::MakeSpan(verdicts)), StatusIs(kRefused));
    EXPECT_THAT(transaction.Forget(id), StatusIs(kRefused));
    transaction.Commit();
  };
  refuses(opened->Hash("id7"));
  refuses(HashedId());
  EXPECT_EQ(*partition.Judge("new", absl::InfinitePast()), Verdict::kUnique);
  EXPECT_EQ(*partition.Judge("id7", absl::InfinitePast()), Verdict::kDuplicate);
}

TEST_F(SnapshotTest, OnlyItsOwnerCanReadIt) {
  SaveSmall();
  struct stat about;
  ASSERT_EQ(stat(path_.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777, 0600u);
}

TEST_F(SnapshotTest, EveryFlippedBitIsFound) {
  SaveSmall();
  const std::string good = Contents(path_);
  ASSERT_LT(good.size(), 64u << 10);
  const MemoryFile file(good);
  const auto stage = NewStage(options_);
  for (size_t i = 0; i < good.size(); ++i) {
    // All bits of what says where things are; of the rest, where nothing else tells bits apart, one.
    const bool all = i < 400 || i + 48 > good.size();
    for (size_t bit = all ? 0 : i % 8; bit < (all ? 8 : i % 8 + 1); ++bit) {
      file.Change(i, {static_cast<char>(good[i] ^ (1 << bit))});
      const absl::Status status = stage->Restore("p", file.path(), kOrigin).status();
      ASSERT_THAT(status, StatusIs(absl::StatusCode::kDataLoss)) << "byte " << i;
      ASSERT_THAT(status.message(), HasSubstr(file.path()));
      ASSERT_TRUE(absl::StrContains(status.message(), "is damaged in the ") ||
                  absl::StrContains(status.message(), "is cut: ") ||
                  (i < 8 && absl::StrContains(status.message(), "its first bytes are damaged")))
          << status;
    }
    file.Change(i, {good[i]});
  }
  EXPECT_EQ(stage->memory().used_bytes(), 0);
  EXPECT_OK(stage->Restore("p", file.path(), kOrigin));
}

TEST_F(SnapshotTest, EveryCutIsFound) {
  SaveSmall();
  const std::string good = Contents(path_);
  const MemoryFile file(good);
  const auto stage = NewStage(options_);
  for (size_t size = good.size(); size-- > 0;) {
    file.Cut(size);
    const absl::Status status = stage->Restore("p", file.path(), kOrigin).status();
    ASSERT_THAT(status, StatusIs(absl::StatusCode::kDataLoss)) << size;
    const std::string what = size < 8 ? "is not a snapshot" : absl::StrCat("is cut: it ends at byte ", size);
    ASSERT_THAT(status.message(), HasSubstr(what));
  }
}

TEST_F(SnapshotTest, ExcessBytesAreFound) {
  SaveSmall();
  const std::string good = Contents(path_);
  Put(path_, good + '\0');
  EXPECT_THAT(Restored(), StatusIs(absl::StatusCode::kDataLoss));
  Put(path_, good + good);
  EXPECT_THAT(Restored(), StatusIs(absl::StatusCode::kDataLoss));
}

// Two pieces of the same size, each whole, in each other's place.
TEST_F(SnapshotTest, ExchangedPiecesAreFound) {
  options_.memory_limit_bytes = 16 << 20;
  stage_ = NewStage(options_);
  partition_ = *stage_->Open("p");
  for (int i = 0; i < 900'000; ++i)
    EXPECT_OK(partition_->Judge(absl::StrCat(i), absl::FromUnixMillis(kStartMs + i / 100)));
  ASSERT_OK(partition_->Save(path_, kOrigin, point_));
  ASSERT_OK(Restored());
  std::string bad = Contents(path_);
  const std::vector<std::string> pieces = PiecesOf(bad);
  ASSERT_EQ(pieces[4].size(), kPieceBytes);
  ASSERT_EQ(pieces[5].size(), kPieceBytes);
  const auto first = static_cast<std::ptrdiff_t>(bad.find(pieces[4]));
  const auto size = static_cast<std::ptrdiff_t>(kPieceBytes + kChecksumBytes);
  std::swap_ranges(bad.begin() + first, bad.begin() + first + size, bad.begin() + first + size);
  Put(path_, bad);
  EXPECT_THAT(Restored(), StatusIs(absl::StatusCode::kDataLoss));
}

// Numbers that are not true, under checksums that are.
TEST_F(SnapshotTest, LiesAreNotBelieved) {
  SaveSmall();
  const std::vector<std::string> good = PiecesOf(Contents(path_));
  ASSERT_EQ(Sealed(good), Contents(path_));
  const int64_t lies[] = {-1,        0,        1, 2, 3, 255, 1 << 20, int64_t{1} << 40, int64_t{1} << 61,
                          INT64_MAX, INT64_MIN};
  const MemoryFile file("");
  const auto stage = NewStage(options_);
  int accepted = 0;
  for (size_t piece = 0; piece < good.size(); ++piece) {
    if (piece == 4) continue;  // bits, of which any may be
    for (size_t at = 0; at + 8 <= good[piece].size(); at += 8) {
      for (const int64_t lie : lies) {
        std::vector<std::string> bad = good;
        std::memcpy(&bad[piece][at], &lie, 8);
        file.Put(Sealed(bad));
        const absl::Duration begin = ThreadTime();
        absl::StatusOr<RestoredPartition> restored = stage->Restore("p", file.path(), kOrigin);
        EXPECT_LE(stage->memory().used_bytes(), stage->memory().limit_bytes());
        if (restored.ok()) restored->partition->Status();
        // Of a file of some kilobytes, under any sanitizer.
        EXPECT_LT(ThreadTime() - begin, absl::Seconds(2))
            << "piece " << piece << " byte " << at << ": " << lie;
        if (!restored.ok()) continue;
        ++accepted;
        // What it says may be wrong, but it works.
        for (int i = 0; i < 300; ++i) {
          EXPECT_OK(restored->partition->Judge(absl::StrCat(i), absl::FromUnixMillis(kStartMs + i * 100)));
        }
      }
    }
  }
  EXPECT_GT(accepted, 0);
  EXPECT_EQ(stage->memory().used_bytes(), 0);
}

TEST_F(SnapshotTest, OfAnotherConfiguration) {
  SaveSmall();
  const auto refused = [&](const absl::Status& status, absl::string_view what) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(what)));
    EXPECT_THAT(status.message(), HasSubstr(path_));
  };
  SnapshotOrigin origin = kOrigin;
  origin.topic = "payments";
  refused(Restored(origin), "its topic is orders, and not payments");
  origin = kOrigin;
  origin.partition = 4;
  refused(Restored(origin), "its partition is 3, and not 4");
  origin = kOrigin;
  origin.id_fingerprint = "f01";
  refused(Restored(origin), "its id configuration's fingerprint is f00, and not f01");
  StageOptions options = options_;
  options.horizon = absl::Seconds(11);
  refused(Restored(options), "its horizon is 10s, and not 11s");
  options = options_;
  options.target_fpp = 1e-4;
  refused(Restored(options), "its target is 0.001, and not 0.0001");
  options = options_;
  options.shards = 2;
  refused(Restored(options), "its number of shards is 1, and not 2");
  // Of version 0.2.
  std::vector<std::string> sliced = PiecesOf(Contents(path_));
  sliced[1].replace(sliced[1].find("compact"), 7, std::string("sliced\0", 7));
  sliced[1][sliced[1].find("sliced") - 8] = 6;
  Put(path_, Sealed(sliced));
  refused(Restored(), "its engine is sliced, and not compact");
}

// As a third of a second has it.
TEST_F(SnapshotTest, AHorizonMayEndWithinANanosecond) {
  options_.horizon = absl::Seconds(1) / 3;
  ASSERT_NE(options_.horizon, absl::Nanoseconds(absl::ToInt64Nanoseconds(options_.horizon)));
  SaveSmall();
  EXPECT_OK(Restored());
}

// In an earlier one the ids were in other places.
TEST_F(SnapshotTest, OfAnotherVersion) {
  SaveSmall();
  const std::vector<std::string> pieces = PiecesOf(Contents(path_));
  for (const char version : {'\1', '\2', '\3', '\4', '\5', '\6', '\7', '\10', '\12'}) {
    std::vector<std::string> other = pieces;
    other[0][8] = version;
    Put(path_, Sealed(other));
    const absl::Status status = Restored();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                                 HasSubstr(absl::StrCat("has the format version ", int{version}))));
  }
}

TEST_F(SnapshotTest, OfNoSnapshot) {
  EXPECT_THAT(Restored(), StatusIs(absl::StatusCode::kNotFound));
  Put(path_, "");
  EXPECT_THAT(Restored(), StatusIs(absl::StatusCode::kDataLoss));
  Put(path_, std::string(1000, 'x'));
  EXPECT_THAT(Restored(), StatusIs(absl::StatusCode::kDataLoss));
  for (const std::string& other :
       {std::string(), std::string("a.host.name\n"), Sealed({std::string(16, 'x')})}) {
    Put(path_, other);
    EXPECT_THAT(Restored(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("is not a snapshot")));
    EXPECT_THAT(Restored().message(), Not(HasSubstr("delete"))) << "it may be any file";
  }
  path_ = folder_;
  EXPECT_THAT(Restored(), StatusIs(absl::StatusCode::kInvalidArgument));
  path_ = folder_ + "/pipe";
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(Restored(), StatusIs(absl::StatusCode::kInvalidArgument));
}

// A filter grew to what another limit has no room for.
TEST_F(SnapshotTest, MemoryIsTakenFromTheBudgetFirst) {
  options_.memory_limit_bytes = 64 << 20;
  stage_ = NewStage(options_);
  partition_ = *stage_->Open("p");
  for (int i = 0; i < 300'000; ++i) {
    EXPECT_OK(partition_->Judge(absl::StrCat(i), absl::FromUnixMillis(kStartMs + i / 100)));
  }
  ASSERT_OK(partition_->Save(path_, kOrigin, point_));
  options_.memory_limit_bytes = 512 << 10;
  const absl::Status status = Restored();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr(path_)));
}

// Whoever waits for a large one is asked with every megabyte, and may have enough of it.
TEST_F(SnapshotTest, ReadingCanBeCancelledAtAnyPiece) {
  options_.target_fpp = 1e-9;
  options_.memory_limit_bytes = 64 << 20;
  stage_ = NewStage(options_);
  partition_ = *stage_->Open("p");
  for (int i = 0; i < 300'000; ++i) {
    EXPECT_OK(partition_->Judge(absl::StrCat(i), absl::FromUnixMillis(kStartMs + i / 100)));
  }
  ASSERT_OK(partition_->Save(path_, kOrigin, point_));
  const auto stage = NewStage(options_);
  int asked = 0;
  ASSERT_OK(stage->Restore("p", path_, kOrigin, [&] { return ++asked > 0; }));
  EXPECT_GT(asked, static_cast<int>(std::filesystem::file_size(path_) >> 20));
  for (int last = 1; last <= asked; ++last) {
    int left = last;
    const absl::Status status = stage->Restore("p", path_, kOrigin, [&] { return --left > 0; }).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kCancelled, HasSubstr(path_)));
    EXPECT_EQ(left, 0);
    EXPECT_EQ(stage->memory().used_bytes(), 0);
  }
}

// The audit is not worth a restore: what it has no room for is no longer audited.
TEST_F(SnapshotTest, AnAuditThatDoesNotFitIsHalved) {
  options_.audit_share = 1;
  options_.memory_limit_bytes = 32 << 20;
  SaveSmall();
  for (int i = 0; i < 20'000; ++i)
    EXPECT_OK(partition_->Judge(absl::StrCat(i), absl::FromUnixMillis(kStartMs)));
  ASSERT_OK(partition_->Save(path_, kOrigin, point_));
  const PartitionStatus saved = partition_->Status();
  EXPECT_EQ(saved.audit.share, 1);
  options_.memory_limit_bytes = (saved.filter.memory_bytes + (64 << 10)) * 8 / 7;
  const auto stage = NewStage(options_);
  const auto restored = stage->Restore("p", path_, kOrigin);
  ASSERT_OK(restored);
  const PartitionStatus status = restored->partition->Status();
  EXPECT_LT(status.audit.share, 1);
  EXPECT_GT(status.audit.ids, 0);
  EXPECT_EQ(status.audit.fresh, saved.audit.fresh);
  EXPECT_EQ(Text(status.filter), Text(saved.filter));
}

TEST_F(SnapshotTest, TheSmallerShareIsAudited) {
  SaveSmall();
  const AuditStatus saved = partition_->Status().audit;
  ASSERT_GT(saved.ids, 0);
  for (const double share : {0.0, 0.125, 0.25, 1.0}) {
    options_.audit_share = share;
    const auto stage = NewStage(options_);
    const auto restored = stage->Restore("p", path_, kOrigin);
    ASSERT_OK(restored);
    EXPECT_EQ(restored->partition->Status().audit.share, std::min(share, 0.25));
    for (int i = 0; i < 300; ++i)
      EXPECT_OK(restored->partition->Judge(absl::StrCat("id", i), absl::InfinitePast()));
    EXPECT_EQ(restored->partition->Status().audit.false_drops, 0);
  }
}

TEST_F(SnapshotTest, NoTransactionMayBeOpen) {
  SaveSmall();
  const std::string before = Contents(path_);
  {
    const auto transaction = partition_->Begin();
    ASSERT_OK(transaction);
    const absl::Status status = partition_->Save(path_, kOrigin, point_);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("orders-3")));
  }
  EXPECT_EQ(Contents(path_), before);
  EXPECT_OK(partition_->Save(path_, kOrigin, point_));
  EXPECT_EQ(Contents(path_), before);
}

// What was judged while the snapshot was written is replayed: from the offset at its start on.
TEST_F(SnapshotTest, EventsMayBeJudgedMeanwhile) {
  constexpr int kEvents = 60'000;
  options_.shards = 4;
  options_.target_fpp = 1e-9;
  options_.memory_limit_bytes = 64 << 20;
  stage_ = NewStage(options_);
  partition_ = *stage_->Open("p");
  const auto event = [&](int i) {
    return Event{.id = partition_->Hash(absl::StrCat(i)), .time = absl::FromUnixMillis(kStartMs + i / 100)};
  };
  std::atomic<int> judged{0};
  std::thread judge([&] {
    for (int i = 0; i < kEvents; ++i) {
      const Event each = event(i);
      Verdict verdict;
      EXPECT_OK(partition_->Judge({&each, 1}, {&verdict, 1}));
      ASSERT_EQ(verdict, Verdict::kUnique);
      judged = i + 1;
    }
  });
  for (bool more = true; more;) {
    const int start = judged;
    more = start < kEvents;
    ASSERT_OK(partition_->Save(path_, kOrigin, {.offset = start, .end_offset = judged}));
    const auto stage = NewStage(options_);
    const auto restored = stage->Restore("p", path_, kOrigin);
    ASSERT_OK(restored);
    for (auto i = static_cast<int>(restored->point.offset); i < restored->point.end_offset; ++i) {
      const Event each = event(i);
      ASSERT_OK(restored->partition->Replay({&each, 1}));
    }
    for (int i = 0; i < restored->point.end_offset; ++i) {
      ASSERT_EQ(*restored->partition->Judge(absl::StrCat(i), absl::InfinitePast()), Verdict::kDuplicate) << i;
    }
  }
  judge.join();
}

TEST_F(SnapshotTest, OtherEnginesSayThatTheyCannot) {
  SaveSmall();
  std::filesystem::rename(path_, path_ + ".compact");
  options_.memory_limit_bytes = 2 * ExactFilter::kBytes;
  const auto stage = *DedupStage::Create(options_, ExactFilter::Factory());
  auto partition = *stage->Open("p");
  EXPECT_THAT(partition->Save(path_, kOrigin, point_), StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_FALSE(std::filesystem::exists(path_) || std::filesystem::exists(path_ + ".new"));
  partition.reset();
  EXPECT_THAT(stage->Restore("p", path_ + ".compact", kOrigin).status(),
              StatusIs(absl::StatusCode::kUnimplemented));
}

TEST_F(SnapshotTest, EnginesWithoutSnapshotsSaySo) {
  SaveSmall();
  const std::string before = Contents(path_);
  for (const Reference engine : {Reference::kRecycled, Reference::kOpposite}) {
    const auto stage = *CreateStage(engine, options_);
    const auto partition = *stage->Open("p");
    EXPECT_OK(partition->Judge("a", absl::FromUnixMillis(kStartMs)));
    for (const absl::Status& status :
         {partition->Save(path_, kOrigin, point_), stage->Restore("q", path_, kOrigin).status()}) {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnimplemented));
    }
  }
  EXPECT_EQ(Contents(path_), before);
}

// Whatever fails, the old snapshot is there, and nothing else.
class SnapshotFaultTest : public SnapshotTest {
 protected:
  void SetUp() override {
    SnapshotTest::SetUp();
    SaveSmall();
    old_ = Contents(path_);
    EXPECT_OK(partition_->Judge("one more", absl::InfinitePast()));
  }
  void ExpectOld() {
    EXPECT_EQ(Contents(path_), old_);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
    EXPECT_OK(partition_->Save(path_, kOrigin, point_));
    EXPECT_NE(Contents(path_), old_);
    EXPECT_OK(Restored());
  }
  std::string old_;
};

TEST_F(SnapshotFaultTest, NoRoomAtAnyByte) {
  signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  for (rlim_t limit = 0; limit < old_.size(); limit += 1 + limit / 7) {
    const rlimit small = {limit, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    const absl::Status status = partition_->Save(path_, kOrigin, point_);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    ASSERT_FALSE(status.ok()) << limit;
    ASSERT_THAT(status.message(), HasSubstr(absl::StrCat("writing at byte ", limit)));
  }
  ExpectOld();
}

// The whole file, then its name, then the folder that has the name: in any other order a power cut can leave
// a name without a content, or the old name after all.
TEST_F(SnapshotFaultTest, LastsWhenItIsSaved) {
  disk_calls.clear();
  ASSERT_OK(partition_->Save(path_, kOrigin, point_));
  EXPECT_EQ(disk_calls,
            (std::vector<std::string>{SyncOf(path_), absl::StrCat("rename ", path_, ".new to ", path_),
                                      SyncOf(folder_)}));
}

TEST_F(SnapshotFaultTest, AFileThatIsNotSynced) {
  failing_sync = 1;
  const absl::Status status = partition_->Save(path_, kOrigin, point_);
  EXPECT_THAT(status.message(), HasSubstr(absl::StrCat(path_, ".new: syncing it")));
  EXPECT_EQ(failing_sync, 0);
  ExpectOld();
}

// It has its name already, and is whole; that it would survive a power cut is not said.
TEST_F(SnapshotFaultTest, AFolderThatIsNotSynced) {
  failing_sync = 2;
  const absl::Status status = partition_->Save(path_, kOrigin, point_);
  EXPECT_THAT(status.message(), HasSubstr(absl::StrCat(path_, ": syncing its folder")));
  EXPECT_EQ(failing_sync, 0);
  EXPECT_NE(Contents(path_), old_);
  EXPECT_OK(Restored());
  EXPECT_FALSE(std::filesystem::exists(path_ + ".new"));
}

TEST_F(SnapshotFaultTest, LeftoversOfACrashAreReplaced) {
  Put(path_ + ".new", "half a snapshot");
  ASSERT_EQ(chmod((path_ + ".new").c_str(), 0666), 0);
  EXPECT_OK(partition_->Save(path_, kOrigin, point_));
  EXPECT_OK(Restored());
  EXPECT_EQ(std::filesystem::status(path_).permissions(), std::filesystem::perms(0600));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".new"));
}

TEST_F(SnapshotFaultTest, NoPlaceForIt) {
  EXPECT_THAT(partition_->Save(folder_ + "/no/p", kOrigin, point_), StatusIs(absl::StatusCode::kNotFound));
  std::filesystem::create_directory(folder_ + "/taken");
  EXPECT_FALSE(partition_->Save(folder_ + "/taken", kOrigin, point_).ok());
  std::filesystem::remove(folder_ + "/taken");
  EXPECT_THAT(partition_->Save("", kOrigin, point_), StatusIs(absl::StatusCode::kInvalidArgument));
  ExpectOld();
}

TEST_F(SnapshotFaultTest, TextsHaveAnEnd) {
  SnapshotOrigin origin = kOrigin;
  origin.topic = std::string(65'537, 'x');
  EXPECT_THAT(partition_->Save(path_, origin, point_), StatusIs(absl::StatusCode::kInvalidArgument));
  ExpectOld();
}

class SnapshotInspectTest : public SnapshotTest, public testing::WithParamInterface<Engine> {};

INSTANTIATE_TEST_SUITE_P(Engines, SnapshotInspectTest,
                         testing::Values(Engine::kCompact, Engine::kExact, Engine::kPublished));

TEST_P(SnapshotInspectTest, DescribesIt) {
  options_.engine = GetParam();
  options_.shards = 2;
  options_.audit_share = 1;
  SaveSmall();
  const absl::StatusOr<SnapshotReport> report = InspectSnapshot(path_);
  ASSERT_OK(report);
  EXPECT_EQ(report->format_version, 9);
  EXPECT_EQ(report->file_bytes, static_cast<int64_t>(std::filesystem::file_size(path_)));
  EXPECT_EQ(report->origin.topic, "orders");
  EXPECT_EQ(report->point.offset, 400);
  EXPECT_EQ(report->engine, EngineName(GetParam()));
  EXPECT_EQ(report->horizon, options_.horizon);
  EXPECT_EQ(report->target_fpp, options_.target_fpp);
  EXPECT_EQ(report->partition.name, "orders-3");
  EXPECT_EQ(Text(report->partition), Text(partition_->Status()));
  ASSERT_EQ(report->shards.size(), 2u);
  for (const FilterStatus& shard : report->shards) {
    // The generations that hold something; an id is in one, of `published` in the next one, too.
    int64_t ids = 0;
    for (const GenerationStatus& generation : shard.generations) {
      ids += generation.ids;
      EXPECT_EQ(generation.fill > 0, generation.ids > 0);
      EXPECT_GE(generation.oldest, generation.newest);
      EXPECT_LE(generation.oldest, absl::Seconds(4));
    }
    EXPECT_EQ(ids, GetParam() == Engine::kPublished ? 2 * shard.ids : shard.ids);
  }
  std::string bad = Contents(path_);
  bad[bad.size() / 2] ^= 1;
  Put(path_, bad);
  EXPECT_THAT(InspectSnapshot(path_).status(), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(InspectSnapshot(folder_ + "/none").status(), StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace lethe
