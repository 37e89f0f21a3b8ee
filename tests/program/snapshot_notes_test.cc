#include <gtest/gtest.h>

#include <set>
#include <string>

#include "src/pipeline/restore/commit_metadata.h"

namespace lethe::kafka {
namespace {

TEST(SnapshotIdTest, IsTheNameThatIsDocumented) {
  const SnapshotId id = {184467, 0x5f0c3a9be1d200a1};
  EXPECT_EQ(id.ToString(), "184467-5f0c3a9be1d200a1");
  EXPECT_EQ(SnapshotId::Parse(id.ToString()), id);
}

TEST(SnapshotIdTest, NoTwoAreTheSame) {
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) {
    const SnapshotId id = SnapshotId::New(7, absl::FromUnixMillis(1'700'000'000'000 + i));
    EXPECT_EQ(id.time(), absl::FromUnixMillis(1'700'000'000'000 + i));
    EXPECT_EQ(SnapshotId::Parse(id.ToString()), id);
    EXPECT_TRUE(ids.insert(id.ToString()).second);
  }
}

// It comes from a commit that anybody may have written, and becomes a part of a path.
TEST(SnapshotIdTest, NothingElseIsTaken) {
  for (const char* text :
       {"", "-", "7", "7-", "-5f0c3a9be1d200a1", "7-5f0c", "7-5F0C3A9BE1D200A1", "+7-5f0c3a9be1d200a1",
        " 7-5f0c3a9be1d200a1", "07-5f0c3a9be1d200a1", "-7-5f0c3a9be1d200a1", "7-0x5f0c3a9be1d200",
        "7-5f0c3a9be1d200a1/..", "../7-5f0c3a9be1d200a1", "7--f0c3a9be1d200a1",
        "99999999999999999999-5f0c3a9be1d200a1"}) {
    EXPECT_FALSE(SnapshotId::Parse(text).has_value()) << text;
  }
}

TEST(SnapshotIdTest, OlderMeansEarlierByTheLogAndByTheClock) {
  const auto at = [](int64_t offset, int64_t ms) {
    return SnapshotId::New(offset, absl::FromUnixMillis(ms));
  };
  const SnapshotId id = at(1000, 5000);
  EXPECT_TRUE(at(900, 4000).IsOlderThan(id));
  EXPECT_TRUE(at(1000, 4000).IsOlderThan(id));
  EXPECT_FALSE(id.IsOlderThan(id));
  EXPECT_FALSE(at(1100, 6000).IsOlderThan(id));
  EXPECT_FALSE(at(900, 6000).IsOlderThan(id));
  EXPECT_FALSE(at(1100, 4000).IsOlderThan(id));
}

TEST(SnapshotNotesTest, ComeBack) {
  const SnapshotNotes notes = {5,       1199, 1100, absl::FromUnixMillis(1'700'000'000'123), "5:-:0,9:1:2",
                               "unique"};
  EXPECT_EQ(notes.ToString(), "o=5 m=1199 n=1100 c=1700000000123 p=5:-:0,9:1:2 out=unique");
  EXPECT_EQ(SnapshotNotes::Parse("o=5 m=1199 n=1100 c=- p=5:-:0")->output, "");
  const auto parsed = SnapshotNotes::Parse(notes.ToString() + " later=1");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->ToString(), notes.ToString());
  for (const char* text : {"", "o=5", "o=5 m=1199 n=1100 c= p=", "o=x m=1 n=1 c=- p="}) {
    EXPECT_FALSE(SnapshotNotes::Parse(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace lethe::kafka
