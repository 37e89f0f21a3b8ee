// Memory that the system does not have is a status, or is done without. A run over a stage is played again
// and again, and each time another allocation of it fails, or all from that one on: operator new, and the
// pages that filters take. Beside it is an exact memory of what was passed.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lethe/snapshot.h"
#include "lethe/stage.h"
#include "src/filter/ordered_id_set.h"
#include "src/memory/line_memory.h"
#include "tests/support/status_matchers.h"

namespace {

using testing::HasSubstr;

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// Allocations of threads that are armed are numbered from 1 on; those from first_failure to last_failure
// fail.
std::atomic<int64_t> allocations{0};
std::atomic<int64_t> first_failure{kNever};
std::atomic<int64_t> last_failure{kNever};
thread_local bool armed = false;

bool Fails() {
  if (!armed) return false;
  const int64_t number = ++allocations;
  return number >= first_failure && number <= last_failure;
}

void FailAllocations(int64_t first, int64_t last) {
  allocations = 0;
  first_failure = first;
  last_failure = last;
}

}  // namespace

[[gnu::noinline]] void* operator new(size_t size) {
  void* const memory = Fails() ? nullptr : std::malloc(size);
  if (memory != nullptr) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return Fails() ? nullptr : std::malloc(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

// How a filter's memory becomes usable.
extern "C" int mprotect(void* address, size_t size, int protection) noexcept {
  if ((protection & PROT_WRITE) != 0 && Fails()) {
    errno = ENOMEM;
    return -1;
  }
  return static_cast<int>(syscall(SYS_mprotect, address, size, protection));
}

// A disk would be waited for, thousands of times.
extern "C" int fsync(int) { return 0; }

namespace lethe {
namespace {

// What `call` returns if its allocations may fail.
template <typename Call>
auto Faulty(const Call& call) {
  struct Armed {
    Armed() { armed = true; }
    ~Armed() { armed = false; }
  } const now;
  return call();
}

// The same of a call that returns a Status or a StatusOr: if it failed, for want of memory, it is made again
// when there is some.
template <typename Call>
auto FaultyOnce(const Call& call) {
  auto result = Faulty(call);
  if (result.ok()) return result;
  absl::Status status;
  if constexpr (std::is_same_v<decltype(result), absl::Status>) {
    status = result;
  } else {
    status = result.status();
  }
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted));
  return call();
}

constexpr int64_t kStartMs = 1'700'000'000'000;
constexpr int64_t kHorizonMs = 5000;
constexpr int64_t kBatchMs = 1000;
constexpr uint64_t kSeed = 20150912;
// Of the failures that are played, one in so many is also played with all later ones.
constexpr int64_t kEachThatStays = 7;

IdHash NumberedId(uint64_t number) {
  return HashId({reinterpret_cast<const char*>(&number), sizeof(number)}, {.low = kSeed});
}
HashedId NumberedId(const Partition& partition, uint64_t number) {
  return {NumberedId(number), partition.Hash("").key_check};
}

int64_t StreamMs(const Partition& partition) {
  return std::max(kStartMs, absl::ToUnixMillis(partition.stream_time()));
}

struct Case {
  std::string name;
  StageOptions options;
  int64_t most_lost = 0;  // new events that are dropped, at the target
  size_t batch = 400;
};

// Events of which some are copies, judged in transactions and in one step, while allocations fail.
class Player {
 public:
  static constexpr int kBatches = 8;

  explicit Player(const Case& played) : case_(played) {}

  void Play() {
    auto stage = FaultyOnce([&] { return DedupStage::Create(case_.options); });
    ASSERT_OK(stage);
    auto partition = FaultyOnce([&] { return (*stage)->Open("orders-0"); });
    ASSERT_OK(partition);
    partition_ = partition->get();
    for (int batch = 0; batch < kBatches; ++batch) {
      Fill(batch);
      const bool in_transaction = batch % 4 != 3;
      in_transaction ? Transact(/*abort_first=*/batch % 5 == 0) : JudgeInOneStep();
      if (testing::Test::HasFailure()) return;
    }
    ExpectAllKnown();
    ExpectFewLost();
    // The order of destruction: the transaction, the partition, the stage.
    partition->reset();
    EXPECT_EQ((*stage)->memory().used_bytes(), 0);
  }

  int failed_transactions() const { return failed_transactions_; }

 private:
  static constexpr int64_t kNotPassed = -1;

  void Fill(int batch) {
    events_.clear();
    numbers_.clear();
    for (size_t i = 0; i < case_.batch; ++i) {
      const bool is_copy = next_ > 0 && random_() % 4 == 0;
      const uint64_t number = is_copy ? random_() % next_ : next_++;
      numbers_.push_back(number);
      events_.push_back({.id = NumberedId(*partition_, number),
                         .time = absl::FromUnixMillis(kStartMs + batch * kBatchMs),
                         .payload = "the same of all"});
    }
    verdicts_.assign(case_.batch, Verdict::kUnique);
    passed_ms_.resize(next_, kNotPassed);
  }

  void JudgeInOneStep() {
    const int64_t before_ms = StreamMs(*partition_);
    Faulty([&] { EXPECT_OK(partition_->Judge(events_, absl::MakeSpan(verdicts_))); });
    Check(before_ms);
  }

  void Transact(bool abort_first) {
    if (abort_first) {
      auto given_up = FaultyOnce([&] { return partition_->Begin(); });
      ASSERT_OK(given_up);
      Faulty([&] { JudgeIn(&*given_up); });
      Faulty([&] { given_up->Abort(); });
    }
    const int64_t before_ms = StreamMs(*partition_);
    auto transaction = FaultyOnce([&] { return partition_->Begin(); });
    ASSERT_OK(transaction);
    Faulty([&] { JudgeIn(&*transaction); });
    if (absl::Status status = transaction->status(); !status.ok()) {
      ++failed_transactions_;
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted));
      Faulty([&] { transaction->Abort(); });
      EXPECT_EQ(StreamMs(*partition_), before_ms);
      transaction = partition_->Begin();
      ASSERT_OK(transaction);
      JudgeIn(&*transaction);  // there is memory again
      ASSERT_OK(transaction->status());
    }
    Faulty([&] { transaction->Commit(); });
    Check(before_ms);
  }

  void JudgeIn(Transaction* transaction) {
    const size_t half = events_.size() / 2;
    EXPECT_OK(
        transaction->Judge(absl::MakeConstSpan(events_).first(half), absl::MakeSpan(verdicts_).first(half)));
    EXPECT_OK(transaction->Judge(absl::MakeConstSpan(events_).subspan(half),
                                 absl::MakeSpan(verdicts_).subspan(half)));
  }

  // After the batch was judged, and committed if it was in a transaction that began at `before_ms`.
  void Check(int64_t before_ms) {
    std::optional<PartitionStatus> status;  // takes long
    for (size_t i = 0; i < events_.size(); ++i) {
      int64_t& passed_ms = passed_ms_[numbers_[i]];
      const bool is_copy = passed_ms != kNotPassed;
      if (verdicts_[i] == Verdict::kDuplicate) {
        lost_ += is_copy ? 0 : 1;
        continue;
      }
      if (is_copy) {
        if (!status) status = partition_->Status();
        ExpectExcused(*status, passed_ms);
      }
      passed_ms = before_ms;
    }
  }

  void ExpectFewLost() const {
    const PartitionStatus status = partition_->Status();
    EXPECT_LE(lost_, case_.most_lost) << lost_ << " new events were dropped";
    EXPECT_LE(status.audit.false_drops, lost_);
    EXPECT_TRUE(status.filter.limit_hits > 0 || status.audit.missed == 0) << status.audit.missed;
  }

  // A copy was passed.
  void ExpectExcused(const PartitionStatus& status, int64_t passed_ms) const {
    const int64_t now_ms = StreamMs(*partition_);
    if (now_ms - passed_ms > kHorizonMs) return;
    // Of the millisecond in which the window begins, some may be gone.
    const bool is_forgotten = passed_ms <= now_ms - absl::ToInt64Milliseconds(status.filter.window);
    EXPECT_TRUE(is_forgotten && status.filter.limit_hits > 0)
        << "a copy passed, " << now_ms - passed_ms << " ms after the first, in a window of "
        << status.filter.window << ", limit hits " << status.filter.limit_hits;
  }

  void ExpectAllKnown() {
    events_.clear();
    numbers_.clear();
    for (uint64_t number = 0; number < next_; ++number) {
      if (passed_ms_[number] == kNotPassed) continue;
      numbers_.push_back(number);
      events_.push_back({.id = NumberedId(*partition_, number), .time = absl::InfinitePast()});
    }
    verdicts_.resize(events_.size());
    JudgeInOneStep();
  }

  const Case& case_;
  Partition* partition_ = nullptr;
  std::mt19937_64 random_{kSeed};
  uint64_t next_ = 0;
  std::vector<uint64_t> numbers_;  // of the batch's ids
  std::vector<Event> events_;
  std::vector<Verdict> verdicts_;
  std::vector<int64_t> passed_ms_;  // by number: stream time when it was last passed, or before
  int64_t lost_ = 0;
  int failed_transactions_ = 0;
};

class AllocationFailureTest : public testing::TestWithParam<Case> {
 protected:
  void TearDown() override { FailAllocations(kNever, kNever); }
};

StageOptions Options(Engine engine, double target_fpp) {
  return {.horizon = absl::Milliseconds(kHorizonMs),
          .target_fpp = target_fpp,
          .memory_limit_bytes = 32 << 20,
          .engine = engine,
          .audit_share = 0,
          .hash_seed = kSeed};
}

std::vector<Case> Cases() {
  Case compact = {"Compact", Options(Engine::kCompact, 1e-9)};
  compact.options.audit_share = 1;
  Case shards = {"Shards", Options(Engine::kCompact, 1e-9)};
  shards.options.shards = 2;
  shards.options.audit_share = 0.25;
  Case exact = {"Exact", Options(Engine::kExact, 1e-9)};
  exact.batch = 2000;
  Case published = {"Published", Options(Engine::kPublished, 1e-3)};
  published.options.memory_limit_bytes = 1 << 20;
  published.most_lost = 100;
  return {compact, shards, exact, published};
}

INSTANTIATE_TEST_SUITE_P(Stages, AllocationFailureTest, testing::ValuesIn(Cases()),
                         [](const auto& played) { return played.param.name; });

TEST_P(AllocationFailureTest, IsAStatusOrDoneWithout) {
  FailAllocations(kNever, kNever);
  Player whole(GetParam());
  whole.Play();
  ASSERT_FALSE(HasFailure()) << "without a failure";
  EXPECT_EQ(whole.failed_transactions(), 0);
  const int64_t all = allocations;
  EXPECT_GT(all, 20);
  int failed_transactions = 0;
  for (int64_t first = 0; first <= all; ++first) {
    for (const int64_t last : {first, kNever}) {
      if (last == kNever && first % kEachThatStays != 0) continue;
      SCOPED_TRACE(testing::Message() << "allocations " << first << " to " << last << " of " << all);
      FailAllocations(first, last);
      Player run(GetParam());
      run.Play();
      if (HasFailure()) return;
      failed_transactions += run.failed_transactions();
    }
  }
  EXPECT_GT(failed_transactions, 0);
  std::cout << all << " allocations, " << failed_transactions << " transactions failed\n";
}

class SnapshotAllocationFailureTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "lethe-allocation-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    FailAllocations(kNever, kNever);
    std::filesystem::remove_all(folder_);
  }

  // Everything that a snapshot can be asked for, in two stages.
  void Play() const {
    const std::string path = folder_ + "/p.snapshot";
    const SnapshotOrigin origin = {.topic = "orders", .partition = 3, .id_fingerprint = "f00"};
    std::filesystem::remove(path);
    StageOptions options = Options(Engine::kCompact, 1e-9);
    options.audit_share = 1;
    const auto stage = *DedupStage::Create(options);
    auto partition = *stage->Open("p");
    for (uint64_t i = 0; i < kIds; ++i) JudgeOne(partition.get(), i);

    ASSERT_OK(FaultyOnce([&] { return partition->Save(path, origin, {.offset = kIds}); }));
    ExpectRestores(stage.get(), path, origin);
    auto live = FaultyOnce([&] { return partition->BeginSnapshot(origin, {.offset = kIds}); });
    ASSERT_OK(live);
    if (absl::Status written = Faulty([&] { return (*live)->Write(path); }); !written.ok()) {
      EXPECT_THAT(written, StatusIs(absl::StatusCode::kResourceExhausted));
      EXPECT_FALSE(std::filesystem::exists(path + ".new"));
    }
    ExpectRestores(stage.get(), path, origin);  // the old one, if there is no new one
    EXPECT_OK(FaultyOnce([&] { return InspectSnapshot(path); }));

    ASSERT_OK(FaultyOnce([&] { return stage->SetMemoryLimit(48 << 20); }));
    EXPECT_EQ(stage->memory().limit_bytes(), 48 << 20);
    for (uint64_t i = 0; i < kIds; ++i) ASSERT_EQ(JudgeOne(partition.get(), i), Verdict::kDuplicate);
    partition.reset();
    EXPECT_EQ(stage->memory().used_bytes(), 0);
  }

 private:
  static constexpr uint64_t kIds = 200;

  static Verdict JudgeOne(Partition* partition, uint64_t number) {
    const Event event = {.id = NumberedId(*partition, number), .time = absl::FromUnixMillis(kStartMs)};
    Verdict verdict = Verdict::kUnique;
    EXPECT_OK(partition->Judge({&event, 1}, {&verdict, 1}));
    return verdict;
  }

  static void ExpectRestores(DedupStage* stage, const std::string& path, const SnapshotOrigin& origin) {
    auto restored = FaultyOnce([&] { return stage->Restore("q", path, origin); });
    ASSERT_OK(restored);
    for (uint64_t i = 0; i < kIds; ++i) {
      ASSERT_EQ(JudgeOne(restored->partition.get(), i), Verdict::kDuplicate) << i;
    }
  }

  std::string folder_;
};

TEST_F(SnapshotAllocationFailureTest, IsAStatus) {
  FailAllocations(kNever, kNever);
  Play();
  ASSERT_FALSE(HasFailure()) << "without a failure";
  const int64_t all = allocations;
  for (int64_t first = 0; first <= all; ++first) {
    for (const int64_t last : {first, kNever}) {
      if (last == kNever && first % kEachThatStays != 0) continue;
      SCOPED_TRACE(testing::Message() << "allocations " << first << " to " << last << " of " << all);
      FailAllocations(first, last);
      Play();
      if (HasFailure()) return;
    }
  }
  std::cout << all << " allocations\n";
}

// A rebuild needs no memory that it cannot do without.
TEST(AllocationFailure, AReplayDoesNotFail) {
  const auto stage = *DedupStage::Create(Options(Engine::kCompact, 1e-9));
  const auto partition = *stage->Open("p");
  std::vector<Event> events;
  for (uint64_t i = 0; i < 500; ++i) {
    events.push_back({.id = NumberedId(*partition, i), .time = absl::FromUnixMillis(kStartMs)});
  }
  FailAllocations(1, kNever);
  EXPECT_OK(Faulty([&] { return partition->Replay(events); }));
  FailAllocations(kNever, kNever);
  std::vector<Verdict> verdicts(events.size());
  EXPECT_OK(partition->Judge(events, absl::MakeSpan(verdicts)));
  EXPECT_EQ(std::count(verdicts.begin(), verdicts.end(), Verdict::kDuplicate), 500);
}

// What a transaction could not remember it says before anything of it is made to stand, and what to do.
TEST(AllocationFailure, ATransactionSaysSo) {
  const auto stage = *DedupStage::Create(Options(Engine::kCompact, 1e-9));
  const auto partition = *stage->Open("p");
  {
    Transaction transaction = *partition->Begin();
    FailAllocations(1, kNever);
    EXPECT_EQ(Faulty([&] { return *transaction.Judge("a", absl::FromUnixMillis(kStartMs)); }),
              Verdict::kUnique);
    const absl::Status status = Faulty([&] { return transaction.status(); });
    FailAllocations(kNever, kNever);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                                 HasSubstr("the system has no memory left for this process: raise ")));
    EXPECT_EQ(*transaction.Judge("b", absl::FromUnixMillis(kStartMs)), Verdict::kUnique);
    EXPECT_FALSE(transaction.status().ok()) << "it is not whole, whatever comes later";
  }
  Transaction next = *partition->Begin();
  EXPECT_OK(next.status());
  EXPECT_EQ(*next.Judge("a", absl::FromUnixMillis(kStartMs)), Verdict::kUnique);
  EXPECT_EQ(*next.Judge("a", absl::FromUnixMillis(kStartMs)), Verdict::kDuplicate);
  EXPECT_OK(next.status());
}

TEST(AllocationFailure, AnOrderedSetIsAsBefore) {
  struct Entry {
    IdHash id;
    int64_t stream_time_ms = 0;
  };
  for (int64_t failing = 1; failing <= 20; ++failing) {
    OrderedIdSet<Entry> set;
    FailAllocations(failing, failing);
    for (uint64_t i = 0; i < 1000; ++i) {
      const Entry entry = {NumberedId(i), kStartMs};
      const bool inserted = Faulty([&] {
        try {
          return set.Insert(entry);
        } catch (const std::bad_alloc&) {
          return false;
        }
      });
      ASSERT_EQ(set.size(), i + (inserted ? 1 : 0));
      ASSERT_EQ(set.Find(entry.id) != nullptr, inserted);
      ASSERT_TRUE(inserted || set.Insert(entry)) << i;
    }
    for (uint64_t i = 0; i < 1000; ++i) ASSERT_NE(set.Find(NumberedId(i)), nullptr) << i;
    ASSERT_EQ(set.InOrder().size(), 1000u);
  }
  FailAllocations(kNever, kNever);
}

// Pages that nobody makes present beforehand are as usable.
TEST(AllocationFailure, PagesArePreparedOrNot) {
  constexpr int64_t kBytes = 4 * LineMemory::kChunkBytes;
  for (int64_t failing = 1; failing <= 4; ++failing) {
    MemoryBudget budget(kBytes);
    auto memory = LineMemory::Create(&budget, kBytes, kBytes);
    ASSERT_OK(memory);
    FailAllocations(failing, failing);
    Faulty([&] { memory->Prepare(0); });
    FailAllocations(kNever, kNever);
    static_cast<char*>(memory->data())[kBytes - 1] = 1;
  }
}

}  // namespace
}  // namespace lethe
