// Records that were fetched and wait: in which order they come again, and when the client pauses.
#include "src/pipeline/task/aside.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace lethe {
namespace {

// Owned, as the client's messages are.
using Message = std::unique_ptr<int64_t>;
using Offsets = std::vector<int64_t>;

class AsideTest : public testing::Test {
 protected:
  static Aside<Message>::Record At(int64_t offset, size_t bytes = 100) {
    return {std::make_unique<int64_t>(offset), bytes, offset + 1};
  }
  Offsets Come(size_t most = 1'000'000) {
    Offsets offsets;
    while (offsets.size() < most && aside_.Comes()) offsets.push_back(*aside_.Next().message);
    return offsets;
  }

  Aside<Message> aside_;
};

TEST_F(AsideTest, WhatIsKeptComesAgainWhenItIsTakenBack) {
  aside_.Keep(At(7));
  aside_.Keep(At(8));
  EXPECT_EQ(Come(), Offsets());
  EXPECT_FALSE(aside_.Follows());
  aside_.TakeBack();
  EXPECT_TRUE(aside_.Follows());
  aside_.Follow(At(9));
  EXPECT_EQ(Come(), (Offsets{7, 8, 9}));
  EXPECT_FALSE(aside_.Follows());
  aside_.TakeBack();
  EXPECT_EQ(Come(), Offsets()) << "once";
}

TEST_F(AsideTest, WhatIsKeptAgainComesBeforeWhatFollows) {
  for (const int64_t offset : {1, 2, 3, 4}) aside_.Keep(At(offset));
  aside_.TakeBack();
  EXPECT_EQ(Come(2), (Offsets{1, 2}));
  aside_.Keep(At(1));
  aside_.Keep(At(2));
  aside_.TakeBack();
  EXPECT_EQ(Come(), (Offsets{1, 2, 3, 4}));
}

TEST_F(AsideTest, NothingComesWhileThePartitionWaits) {
  aside_.Keep(At(1));
  aside_.TakeBack();
  aside_.Wait();
  EXPECT_EQ(Come(), Offsets());
  EXPECT_TRUE(aside_.Follows());
  aside_.Follow(At(2));
  aside_.TakeBack();
  EXPECT_EQ(Come(), (Offsets{1, 2}));
}

TEST_F(AsideTest, TheClientPausesOnceWhenThereAreMany) {
  const auto most = static_cast<int64_t>(Aside<Message>::kMost);
  for (int64_t offset = 0; offset < most; ++offset) {
    offset % 2 == 0 ? aside_.Keep(At(offset)) : aside_.Follow(At(offset));
    ASSERT_FALSE(aside_.FillsUp()) << offset;
  }
  aside_.Keep(At(most));
  EXPECT_FALSE(aside_.is_full());
  EXPECT_TRUE(aside_.FillsUp());
  EXPECT_FALSE(aside_.FillsUp());
  EXPECT_TRUE(aside_.is_full());
}

TEST_F(AsideTest, TheClientPausesWhenTheyAreLarge) {
  aside_.Keep(At(1, 5));
  aside_.Follow(At(2, Aside<Message>::kMostBytes - 5));
  EXPECT_FALSE(aside_.FillsUp());
  EXPECT_EQ(Come(1), Offsets{2});
  aside_.Follow(At(2, Aside<Message>::kMostBytes - 5));
  EXPECT_FALSE(aside_.FillsUp()) << "what came does not count";
  aside_.Follow(At(3, 1));
  EXPECT_TRUE(aside_.FillsUp());
}

TEST_F(AsideTest, TheClientResumesBehindTheLastWhenAllHaveCome) {
  EXPECT_FALSE(aside_.Empties());
  for (const int64_t offset : {20, 21, 22}) aside_.Follow(At(offset, Aside<Message>::kMostBytes));
  aside_.Keep({std::make_unique<int64_t>(5), 0, 5});
  ASSERT_TRUE(aside_.FillsUp());
  EXPECT_EQ(Come(2).size(), 2u);
  EXPECT_FALSE(aside_.Empties());
  EXPECT_EQ(Come().size(), 1u);
  aside_.Wait();
  EXPECT_FALSE(aside_.Empties());
  aside_.TakeBack();
  EXPECT_EQ(Come(), Offsets{5});
  EXPECT_TRUE(aside_.Empties());
  EXPECT_FALSE(aside_.Empties());
  EXPECT_FALSE(aside_.is_full());
  EXPECT_EQ(aside_.end(), 23);
}

// The batch may still have views of them.
TEST_F(AsideTest, AllAreHandedOverWhenThePartitionGoes) {
  aside_.Keep(At(1));
  aside_.TakeBack();
  aside_.Keep(At(2));
  std::vector<Message> messages;
  aside_.MoveTo(messages);
  EXPECT_EQ(messages.size(), 2u);
}

}  // namespace
}  // namespace lethe
