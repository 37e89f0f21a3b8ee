// The examples in the comments of the public headers: compiled, run, and held against the headers.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lethe/counters.h"
#include "lethe/snapshot.h"
#include "lethe/stage.h"
#include "tests/support/status_matchers.h"

namespace {

using testing::HasSubstr;

struct Order {
  std::string id;
  absl::Time time = absl::Now();
};

struct Database {
  bool fails = false;
  std::vector<std::string> open = {};
  std::vector<std::string> written = {};

  void Write(const Order& order) { open.push_back(order.id); }
  bool Commit() {
    if (!fails) written.insert(written.end(), open.begin(), open.end());
    open.clear();
    return !fails;
  }
};

std::vector<std::string> processed;
void Process(const Order& order) { processed.push_back(order.id); }

int64_t replayed_from = -1;
void ReplayFrom(int64_t offset, lethe::Partition& /*partition*/) { replayed_from = offset; }

absl::Status JudgeAll(const std::vector<Order>& incoming) {
  // [stage.h]
  auto stage = lethe::DedupStage::Create({.horizon = absl::Hours(24), .target_fpp = 1e-6});
  if (!stage.ok()) return stage.status();
  auto orders = (*stage)->Open("orders-0");
  if (!orders.ok()) return orders.status();
  for (const Order& order : incoming) {
    const auto verdict = (*orders)->Judge(order.id, order.time);
    if (!verdict.ok()) return verdict.status();
    if (*verdict == lethe::Verdict::kUnique) Process(order);
  }
  // [/]
  return absl::OkStatus();
}

absl::Status WriteOnce(const Order& order, lethe::Partition& orders, Database& database) {
  // [transaction.h]
  auto transaction = orders.Begin();
  if (!transaction.ok()) return transaction.status();
  const auto verdict = transaction->Judge(order.id, order.time);
  if (!verdict.ok()) return verdict.status();  // the end of the scope aborts the transaction
  if (*verdict == lethe::Verdict::kUnique) database.Write(order);
  if (transaction->status().ok() && database.Commit()) {
    transaction->Commit();
  } else {
    transaction->Abort();
  }
  // [/]
  return absl::OkStatus();
}

absl::Status SaveAndRestore(lethe::DedupStage& stage, lethe::Partition& orders) {
  // [snapshot.h]
  const lethe::SnapshotOrigin origin = {.topic = "orders", .id_fingerprint = "json:/id"};
  const absl::Status saved = orders.Save("orders-0.snapshot", origin, {.offset = 1200});
  if (!saved.ok()) return saved;
  auto restored = stage.Restore("orders-0", "orders-0.snapshot", origin);
  if (!restored.ok()) return restored.status();
  ReplayFrom(restored->point.offset, *restored->partition);
  // [/]
  return absl::OkStatus();
}

absl::Status SumUp(const std::vector<std::pair<std::string, std::string>>& records, absl::int128& sum) {
  // [counters.h]
  lethe::CounterReader likes;
  for (const auto& [key, value] : records) {
    if (absl::Status added = likes.Add(key, value); !added.ok()) return added;
  }
  const absl::int128 total = likes.Total("page 7");
  // [/]
  sum = total;
  return absl::OkStatus();
}

TEST(HeaderExamplesTest, JudgeAllProcessesEachOrderOnce) {
  processed.clear();
  ASSERT_OK(JudgeAll({{"a"}, {"b"}, {"a"}}));
  EXPECT_EQ(processed, (std::vector<std::string>{"a", "b"}));
}

TEST(HeaderExamplesTest, WriteOnceSurvivesAFailedCommit) {
  auto stage = lethe::DedupStage::Create({});
  ASSERT_OK(stage);
  auto orders = (*stage)->Open("orders-0");
  ASSERT_OK(orders);
  Database database{.fails = true};
  ASSERT_OK(WriteOnce({"a"}, **orders, database));
  database.fails = false;
  for (int copy = 0; copy < 2; ++copy) ASSERT_OK(WriteOnce({"a"}, **orders, database));
  EXPECT_EQ(database.written, (std::vector<std::string>{"a"}));
}

TEST(HeaderExamplesTest, SaveAndRestoreReplaysFromTheSnapshot) {
  const std::filesystem::path here = std::filesystem::current_path();
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / absl::StrCat("lethe-header-examples-", getpid());
  std::filesystem::create_directory(folder);
  std::filesystem::current_path(folder);
  auto stage = lethe::DedupStage::Create({});
  ASSERT_OK(stage);
  auto orders = (*stage)->Open("orders-0");
  ASSERT_OK(orders);
  const absl::Status done = SaveAndRestore(**stage, **orders);
  std::filesystem::current_path(here);
  std::filesystem::remove_all(folder);
  EXPECT_OK(done);
  EXPECT_EQ(replayed_from, 1200);
}

TEST(HeaderExamplesTest, SumUpAddsDeltas) {
  absl::int128 sum = 0;
  ASSERT_OK(SumUp({{"page 7", "2"}, {"page 8", "1"}, {"page 7", "3"}}, sum));
  EXPECT_EQ(sum, 5);
}

// The lines of each header that are indented within a comment are those between this file's markers.
TEST(HeaderExamplesTest, TheHeadersShowThem) {
  const auto lines = [](const std::string& path) {
    std::ifstream file(path);
    EXPECT_TRUE(file.good()) << path;
    std::stringstream text;
    text << file.rdbuf();
    return std::vector<std::string>(absl::StrSplit(text.str(), '\n'));
  };
  const std::string root = LETHE_SOURCE_DIR "/";
  std::string header;
  std::set<std::string> shown;
  std::vector<std::string> example;
  for (const std::string& line : lines(root + "tests/unit/header_examples_test.cc")) {
    if (absl::StartsWith(line, "  // [/]")) {
      std::vector<std::string> in_comments;
      for (absl::string_view text : lines(root + "include/lethe/" + header)) {
        if (absl::ConsumePrefix(&text, "//   ")) in_comments.emplace_back(text);
      }
      const std::string expected = absl::StrJoin(example, "\n");
      EXPECT_THAT(absl::StrJoin(in_comments, "\n"), HasSubstr(expected)) << "show this in " << header << ":\n"
                                                                         << expected;
      shown.insert(header);
      header.clear();
    } else if (!header.empty()) {
      example.emplace_back(absl::StripPrefix(line, "  "));
    } else if (absl::StartsWith(line, "  // [")) {
      header = std::string(absl::StripSuffix(absl::StripPrefix(line, "  // ["), "]"));
      example.clear();
    }
  }
  EXPECT_EQ(shown, (std::set<std::string>{"stage.h", "transaction.h", "snapshot.h", "counters.h"}));
}

}  // namespace
