// The example of include/lethe/README.md: compiled, run, and held against the page, which shows it to the
// letter.
#include <fstream>
#include <sstream>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

// [example]
#include <string>
#include <vector>

#include "lethe/stage.h"

struct Payment {
  std::string id;
  absl::Time time;
  int cents;
};

// A table whose writes can fail; stands for a database with transactions.
struct Ledger {
  int cents = 0;
  bool fails = false;
  bool Commit(int sum) {
    if (!fails) cents += sum;
    return !fails;
  }
};

// Books each payment once, however often it is sent. False: nothing was booked, send the batch again.
bool Book(const std::vector<Payment>& payments, lethe::Partition& partition, Ledger& ledger) {
  std::vector<lethe::Event> events;
  for (const Payment& payment : payments) {
    events.push_back({.id = partition.Hash(payment.id), .time = payment.time});
  }
  absl::StatusOr<lethe::Transaction> transaction = partition.Begin();
  if (!transaction.ok()) return false;

  std::vector<lethe::Verdict> verdicts(events.size());
  if (!transaction->Judge(events, absl::MakeSpan(verdicts)).ok()) return false;
  int sum = 0;
  for (size_t i = 0; i < payments.size(); ++i) {
    if (verdicts[i] == lethe::Verdict::kUnique) sum += payments[i].cents;
  }

  // Neither events that there was no memory to remember nor a batch that the ledger rejects may be committed.
  if (!transaction->status().ok() || !ledger.Commit(sum)) {
    transaction->Abort();  // as if the batch had never been judged
    return false;
  }
  transaction->Commit();  // from now on these payments are duplicates, for the horizon
  return true;
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

TEST(EmbedExampleTest, BooksEachPaymentOnce) {
  auto stage = lethe::DedupStage::Create({});
  ASSERT_TRUE(stage.ok()) << stage.status();
  auto partition = (*stage)->Open("payments-0");
  ASSERT_TRUE(partition.ok()) << partition.status();
  const absl::Time now = absl::Now();
  const std::vector<Payment> batch = {{"p1", now, 500}, {"p2", now, 250}, {"p1", now, 500}};
  Ledger ledger{.fails = true};
  EXPECT_FALSE(Book(batch, **partition, ledger));
  EXPECT_EQ(ledger.cents, 0);
  ledger.fails = false;
  EXPECT_TRUE(Book(batch, **partition, ledger)) << "the retry is booked, p1 once";
  EXPECT_EQ(ledger.cents, 750);
  EXPECT_TRUE(Book(batch, **partition, ledger)) << "a copy of the whole batch adds nothing";
  EXPECT_EQ(ledger.cents, 750);
}

TEST(EmbedExampleTest, ThePageShowsIt) {
  const std::string root = LETHE_SOURCE_DIR "/";
  const std::string source = ReadFile(root + "tests/unit/embed_example_test.cc");
  const std::string begin = "// [example]\n";
  const size_t first = source.find(begin) + begin.size();
  const std::string example = source.substr(first, source.find("// [/example]\n") - first);
  const std::string page = ReadFile(root + "include/lethe/README.md");
  EXPECT_NE(page.find("```cpp\n" + example + "```\n"), std::string::npos)
      << "show this in include/lethe/README.md:\n"
      << example;
}

}  // namespace
