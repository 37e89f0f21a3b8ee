// The examples of include/lethe/README.md: compiled, run, and held against the page, which shows them to the
// letter.
// [example]
#include <istream>
#include <ostream>
#include <string>

#include "absl/time/clock.h"
#include "lethe/stage.h"

// Copies each line that has not occurred within the last hour.
absl::Status CopyUnique(std::istream& in, std::ostream& out) {
  auto stage = lethe::DedupStage::Create({
      .horizon = absl::Hours(1),  // how late a copy may come
      .target_fpp = 1e-6,         // the share of unique lines that may be dropped
      .memory_limit_bytes = 64 << 20,
      .shards = 1,  // 4 for each thread that judges lines of one partition
  });
  if (!stage.ok()) return stage.status();
  auto partition = (*stage)->Open("lines");
  if (!partition.ok()) return partition.status();
  for (std::string line; std::getline(in, line);) {
    const auto verdict = (*partition)->Judge(line, absl::Now());
    if (!verdict.ok()) return verdict.status();
    if (*verdict == lethe::Verdict::kUnique) out << line << '\n';
  }
  return absl::OkStatus();
}
// [/example]

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lethe/snapshot.h"
#include "tests/support/status_matchers.h"

// Stands for a database with transactions, whose writes can fail.
struct Ledger {
  int cents = 0;
  bool fails = false;
  bool Commit(int sum) {
    if (!fails) cents += sum;
    return !fails;
  }
};

// [example]
struct Payment {
  std::string id;
  absl::Time time;
  int cents;
};

// Only the partition that hashed an id can judge it: another answers InvalidArgument.
std::vector<lethe::Event> Events(absl::Span<const Payment> payments, const lethe::Partition& partition) {
  std::vector<lethe::Event> events;
  for (const Payment& payment : payments) {
    events.push_back({.id = partition.Hash(payment.id), .time = payment.time});
  }
  return events;
}

absl::StatusOr<int> SumOfUnique(absl::Span<const Payment> payments, lethe::Partition& partition) {
  std::vector<lethe::Verdict> verdicts(payments.size());
  const absl::Status judged = partition.Judge(Events(payments, partition), absl::MakeSpan(verdicts));
  if (!judged.ok()) return judged;
  int sum = 0;
  for (size_t i = 0; i < payments.size(); ++i) {
    if (verdicts[i] == lethe::Verdict::kUnique) sum += payments[i].cents;
  }
  return sum;
}
// [/example]

// [example]
// Books each payment once, however often the batch is sent. False: nothing was booked, send it again.
bool Book(absl::Span<const Payment> payments, lethe::Partition& partition, Ledger& ledger) {
  absl::StatusOr<lethe::Transaction> transaction = partition.Begin();
  if (!transaction.ok()) return false;
  int sum = 0;
  for (const Payment& payment : payments) {
    const auto verdict = transaction->Judge(payment.id, payment.time);
    if (!verdict.ok()) return false;
    if (*verdict == lethe::Verdict::kUnique) sum += payment.cents;
  }
  // An error: there was no memory to remember them all. The end of the scope aborts the transaction.
  if (!transaction->status().ok() || !ledger.Commit(sum)) return false;
  transaction->Commit();  // from now on these payments are duplicates, for the horizon
  return true;
}
// [/example]

// [example]
// Judges each part in a thread of its own. Of copies in several parts one passes.
absl::Status JudgeInThreads(absl::Span<const std::vector<lethe::Event>> parts,
                            absl::Span<std::vector<lethe::Verdict>> verdicts, lethe::Partition& partition) {
  std::vector<absl::Status> judged(parts.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < parts.size(); ++i) {
    verdicts[i].resize(parts[i].size());
    threads.emplace_back([&, i] { judged[i] = partition.Judge(parts[i], absl::MakeSpan(verdicts[i])); });
  }
  for (std::thread& thread : threads) thread.join();
  absl::Status all;
  for (const absl::Status& status : judged) all.Update(status);
  return all;  // not OK: verdicts are missing
}
// [/example]

// [example]
const lethe::SnapshotOrigin kOrigin = {.topic = "payments", .id_fingerprint = "json:/id"};

// A partition that judges from offset `next` of the log on as if there had been no restart.
absl::StatusOr<std::unique_ptr<lethe::Partition>> Reopen(lethe::DedupStage& stage,
                                                         const std::string& snapshot,
                                                         absl::Span<const Payment> log, size_t next) {
  size_t first = 0;  // without a snapshot: all, or from a horizon before `next` on
  absl::StatusOr<std::unique_ptr<lethe::Partition>> partition;
  auto restored = stage.Restore("payments", snapshot, kOrigin);
  if (restored.ok() && static_cast<size_t>(restored->point.offset) <= next) {
    first = static_cast<size_t>(restored->point.offset);
    partition = std::move(restored->partition);
  } else {
    partition = stage.Open("payments");  // none, a damaged or later one, or one of something else
    if (!partition.ok()) return partition;
  }
  const auto replayed = log.subspan(first, next - first);  // copies, too: they are not judged
  if (absl::Status done = (*partition)->Replay(Events(replayed, **partition)); !done.ok()) return done;
  return partition;
}
// [/example]

namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class EmbedExampleTest : public testing::Test {
 protected:
  std::unique_ptr<lethe::Partition> Open() {
    auto partition = stage_->Open("payments");
    EXPECT_OK(partition);
    return *std::move(partition);
  }

  const std::unique_ptr<lethe::DedupStage> stage_ = *lethe::DedupStage::Create({.shards = 4});
  const absl::Time now_ = absl::Now();
  const std::vector<Payment> batch_ = {{"p1", now_, 500}, {"p2", now_, 250}, {"p1", now_, 500}};
};

TEST_F(EmbedExampleTest, CopiesUniqueLines) {
  std::istringstream in("a\nb\na\n\nb\n\nc\n");
  std::ostringstream out;
  EXPECT_OK(CopyUnique(in, out));
  EXPECT_EQ(out.str(), "a\nb\n\nc\n");
}

TEST_F(EmbedExampleTest, SumsUpEachPaymentOnce) {
  const auto partition = Open();
  EXPECT_EQ(*SumOfUnique(batch_, *partition), 750);
  EXPECT_EQ(*SumOfUnique(batch_, *partition), 0);
}

TEST_F(EmbedExampleTest, BooksEachPaymentOnce) {
  const auto partition = Open();
  Ledger ledger{.fails = true};
  EXPECT_FALSE(Book(batch_, *partition, ledger));
  EXPECT_EQ(ledger.cents, 0);
  ledger.fails = false;
  EXPECT_TRUE(Book(batch_, *partition, ledger)) << "the retry is booked, p1 once";
  EXPECT_EQ(ledger.cents, 750);
  EXPECT_TRUE(Book(batch_, *partition, ledger)) << "a copy of the whole batch adds nothing";
  EXPECT_EQ(ledger.cents, 750);
}

TEST_F(EmbedExampleTest, OneOfTheCopiesInSeveralThreadsPasses) {
  const auto partition = Open();
  const std::vector<std::vector<lethe::Event>> parts(3, Events(batch_, *partition));
  std::vector<std::vector<lethe::Verdict>> verdicts(parts.size());
  EXPECT_OK(JudgeInThreads(parts, absl::MakeSpan(verdicts), *partition));
  int64_t unique = 0;
  for (const auto& part : verdicts) unique += std::count(part.begin(), part.end(), lethe::Verdict::kUnique);
  EXPECT_EQ(unique, 2);
  // Not all were judged, and the caller learns it.
  const auto transaction = partition->Begin();
  EXPECT_FALSE(JudgeInThreads(parts, absl::MakeSpan(verdicts), *partition).ok());
}

TEST_F(EmbedExampleTest, ARestartFindsAllThatWasJudgedBefore) {
  const std::string snapshot =
      (std::filesystem::temp_directory_path() / absl::StrCat("lethe-embed-", getpid())).string();
  std::vector<Payment> log;
  for (int i = 0; i < 300; ++i) log.push_back({absl::StrCat("p", i), now_ + absl::Seconds(i), 1});
  for (const bool has_snapshot : {false, true}) {
    const auto first = Open();
    EXPECT_EQ(*SumOfUnique(absl::MakeSpan(log).first(100), *first), 100);
    if (has_snapshot) {
      const absl::Status saved = first->Save(snapshot, kOrigin, {.offset = 100});
      EXPECT_OK(saved);
    }
    // As after a restart, the seed is another one.
    const auto stage = lethe::DedupStage::Create({.shards = 4});
    const auto partition = Reopen(**stage, snapshot, log, 200);
    ASSERT_OK(partition);
    EXPECT_EQ(*SumOfUnique(log, **partition), 100) << has_snapshot;
  }
  // The database is older than the snapshot: no event after `next` is lost.
  const auto partition = Reopen(*stage_, snapshot, log, 50);
  ASSERT_OK(partition);
  EXPECT_EQ(*SumOfUnique(log, **partition), 250);
  std::filesystem::remove(snapshot);
}

TEST_F(EmbedExampleTest, TheTypesOfTheStandardLibraryDo) {
  const auto partition = Open();
  const std::string_view id = "a";
  const std::chrono::system_clock::time_point now = absl::ToChronoTime(now_);
  EXPECT_EQ(partition->Hash(id), partition->Hash("a"));
  EXPECT_EQ(*partition->Judge(id, now), lethe::Verdict::kUnique);
  EXPECT_EQ(*partition->Judge(std::string("a"), now), lethe::Verdict::kDuplicate);
  EXPECT_EQ(*partition->Judge(id, now_), lethe::Verdict::kDuplicate);
  auto transaction = partition->Begin();
  ASSERT_OK(transaction);
  EXPECT_EQ(*transaction->Judge(id, now), lethe::Verdict::kDuplicate);
  EXPECT_EQ(*transaction->Judge(id, now_), lethe::Verdict::kDuplicate);
}

TEST_F(EmbedExampleTest, ThePageShowsThem) {
  const std::string root = LETHE_SOURCE_DIR "/";
  const std::string page = ReadFile(root + "include/lethe/README.md");
  const std::string begin = "// [example]\n";
  std::string rest = ReadFile(root + "tests/unit/embed_example_test.cc");
  int examples = 0;
  for (size_t at = rest.find(begin); at != std::string::npos && examples < 5;
       at = rest.find(begin), ++examples) {
    const size_t end = rest.find("// [/example]\n");
    const std::string example = rest.substr(at + begin.size(), end - at - begin.size());
    EXPECT_NE(page.find("```cpp\n" + example + "```\n"), std::string::npos)
        << "show this in include/lethe/README.md:\n"
        << example;
    rest = rest.substr(end + 1);
  }
  EXPECT_EQ(examples, 5);
}

}  // namespace
