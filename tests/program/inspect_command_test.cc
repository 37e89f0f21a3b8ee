// What `lethe inspect` prints of a snapshot that was just made.
#include "src/cli/commands/inspect_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <simdjson.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "lethe/snapshot.h"
#include "lethe/stage.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

using testing::HasSubstr;

class InspectCommandTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::temp_directory_path() / absl::StrCat("lethe-inspect-test-", getpid());
    const auto stage = *DedupStage::Create({.horizon = absl::Hours(1), .target_fpp = 1e-4, .shards = 2});
    const auto partition = *stage->Open("orders \"7\"");
    for (int i = 0; i < 1000; ++i) {
      EXPECT_OK(partition->Judge(absl::StrCat(i % 800), absl::FromUnixSeconds(1'700'000'000 + i)));
    }
    ASSERT_OK(partition->Save(path_, {.topic = "orders", .partition = 7, .id_fingerprint = "f00"},
                              {.offset = 1000, .end_offset = 1003, .record_before = 0xabc}));
  }
  void TearDown() override { std::filesystem::remove(path_); }

  std::string Inspect(ReportFormat format) {
    std::ostringstream out;
    const absl::Status status = RunInspect({path_, format}, out);
    EXPECT_OK(status);
    return out.str();
  }

  std::string path_;
};

TEST_F(InspectCommandTest, TextForPeople) {
  const std::string text = Inspect(ReportFormat::kText);
  for (const char* part :
       {"snapshot     format 9, ", "partition    orders \"7\", of topic orders, partition 7\n",
        "configuration f00\n",
        "offset       1000, when it was done 1003; hash of the record before 0000000000000abc\n",
        "filter       compact, horizon 1h, target 0.0001, in 2 shards\n",
        "stream time  2023-11-14T22:29:09+00:00, ", "holds        800 ids in ", " modelled, ",
        " estimated, standard deviation ", "judged       800 unique, 200 duplicates; 0 replayed\n",
        "\nshard 0: ", "\nshard 1: ", "  present "}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST_F(InspectCommandTest, JsonForPrograms) {
  const std::string json = Inspect(ReportFormat::kJson);
  EXPECT_EQ(json.find('\n'), json.size() - 1);
  simdjson::dom::parser parser;
  const simdjson::dom::element all = parser.parse(json);
  EXPECT_EQ(std::string_view(all["name"]), "orders \"7\"");
  EXPECT_EQ(std::string_view(all["record_before"]), "0000000000000abc");
  EXPECT_EQ(int64_t(all["offset"]), 1000);
  EXPECT_EQ(int64_t(all["horizon_ms"]), 3'600'000);
  EXPECT_EQ(int64_t(all["stream_time_ms"]), 1'700'000'949'000);
  EXPECT_EQ(int64_t(all["unique"]), 800);
  EXPECT_EQ(int64_t(all["file_bytes"]), static_cast<int64_t>(std::filesystem::file_size(path_)));
  // All lines of so small a filter are looked at.
  EXPECT_EQ(double(all["fpp_estimated_deviation"]), 0);
  int64_t ids = 0;
  for (const simdjson::dom::element shard : all["shards"]) {
    EXPECT_EQ(double(shard["fpp_estimated_deviation"]), 0);
    ids += int64_t(shard["ids"]);
    EXPECT_GT(double(shard["generations"].at(0)["fill"]), 0);
  }
  EXPECT_EQ(ids, 800);
}

TEST_F(InspectCommandTest, SaysWhatIsWrong) {
  std::filesystem::resize_file(path_, 1000);
  std::ostringstream out;
  const absl::Status status = RunInspect({path_, ReportFormat::kText}, out);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss, HasSubstr("is cut: it ends at byte 1000")));
  EXPECT_EQ(out.str(), "");
}

}  // namespace
}  // namespace lethe
