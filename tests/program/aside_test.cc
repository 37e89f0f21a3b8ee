// Records that were fetched and wait: in which order they come again, and when the client pauses.
#include "src/pipeline/task/aside.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/pipeline/task/asides.h"

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

// A client that only notes what it is to do.
class AsidesTest : public testing::Test {
 public:
  struct Fetched {
    TopicPartition partition;
    int64_t offset = 0;
    bool is_record = true;
  };
  using FetchedPtr = std::unique_ptr<Fetched>;

  MessagePlace PlaceOf(const FetchedPtr& message) const {
    return {message->partition, message->offset, message->is_record, 100};
  }
  void StopFetching(TopicPartition partition) { told_ += absl::StrCat("stop ", partition.partition, ";"); }
  void FetchAgain(TopicPartition partition, std::optional<int64_t> offset) {
    absl::StrAppend(&told_, "fetch ", partition.partition, " from ", offset.value_or(-1), ";");
  }

 protected:
  // Of partition `id`, straight from the client.
  void Fetch(int32_t id, int64_t offset, bool is_record = true) {
    auto message = std::make_unique<Fetched>(Fetched{{0, id}, offset, is_record});
    if (!asides_.TakeFollowing(message)) messages_.push_back(std::move(message));
  }
  void SetAside(int32_t id, const Offsets& offsets) {
    std::vector<InputRecord> records;
    for (const int64_t offset : offsets) records.push_back({.partition = id, .offset = offset});
    asides_.SetAside({0, id}, records, messages_);
  }
  // The next batch: what comes again, as far as there is room.
  Offsets Return(size_t most = 100) {
    messages_.clear();
    asides_.Return([&] { return messages_.size() < most; },
                   [&](FetchedPtr message, size_t) { messages_.push_back(std::move(message)); });
    Offsets offsets;
    for (const FetchedPtr& each : messages_) offsets.push_back(each->offset);
    return offsets;
  }

  std::string told_;
  std::vector<FetchedPtr> messages_;  // of the batch
  Asides<FetchedPtr, AsidesTest> asides_{*this, 3};
};

TEST_F(AsidesTest, WhatIsTakenBackComesBeforeTheRestOfTheBatchAndWhatIsFetched) {
  for (const int64_t offset : {5, 6, 7}) Fetch(0, offset);
  Fetch(1, 9);
  SetAside(0, {5, 6});
  asides_.TakeBack({0, 0}, 5, messages_);
  Fetch(0, 8);
  EXPECT_EQ(Return(2), (Offsets{5, 6}));
  EXPECT_EQ(Return(), (Offsets{7, 8}));
  EXPECT_EQ(Return(), Offsets());
}

TEST_F(AsidesTest, OfTheBatchOnlyWhatIsNotBehindTheNextRecordIsKept) {
  for (const int64_t offset : {5, 6, 7}) Fetch(0, offset);
  asides_.TakeBack({0, 0}, 6, messages_);
  EXPECT_EQ(Return(), (Offsets{6, 7}));
}

TEST_F(AsidesTest, AnEndIsNoRecordOfItsOffset) {
  Fetch(0, 5, /*is_record=*/false);
  Fetch(0, 5);
  SetAside(0, {5});
  ASSERT_NE(messages_[0], nullptr) << "the end stays";
  EXPECT_EQ(messages_[1], nullptr);
}

TEST_F(AsidesTest, TheClientStopsWhereThereAreManyAndGoesOnBehindThem) {
  for (const int64_t offset : {1, 2, 3, 4}) Fetch(0, offset);
  SetAside(0, {1, 2, 3, 4});
  EXPECT_EQ(told_, "stop 0;");
  asides_.TakeBack({0, 0}, 5, messages_);
  EXPECT_EQ(Return(3).size(), 3u);
  EXPECT_EQ(told_, "stop 0;");
  EXPECT_EQ(Return(3).size(), 1u);
  EXPECT_EQ(told_, "stop 0;fetch 0 from 5;");
}

TEST_F(AsidesTest, APartitionThatTheWorkerHasPausedIsNotFetched) {
  asides_.SetPaused({0, 0}, true);
  for (const int64_t offset : {1, 2, 3, 4}) Fetch(0, offset);
  SetAside(0, {1, 2, 3, 4});
  asides_.Drop({0, 0});
  EXPECT_EQ(told_, "stop 0;stop 0;");
  asides_.SetPaused({0, 0}, false);
  EXPECT_EQ(told_, "stop 0;stop 0;fetch 0 from -1;");
}

TEST_F(AsidesTest, WhatIsDroppedDoesNotComeAgain) {
  for (const int64_t offset : {1, 2}) Fetch(0, offset);
  SetAside(0, {1, 2});
  asides_.Drop({0, 0});
  asides_.TakeBack({0, 0}, 3, messages_);
  EXPECT_EQ(Return(), Offsets());
}

}  // namespace
}  // namespace lethe
