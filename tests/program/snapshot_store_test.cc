// Snapshots in a topic, on a log in memory: which records are written, found again and deleted.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "lethe/snapshot.h"
#include "lethe/stage.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/snapshots/snapshot_log.h"
#include "src/pipeline/snapshots/snapshot_records.h"
#include "src/pipeline/snapshots/snapshot_topic.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

using Keys = std::vector<std::string>;

struct LogRecord {
  std::string key;
  std::optional<std::string> value;
  absl::Time time;
};

// One partition of the topic as the broker has it, and what goes wrong on the way to it.
struct FakeTopic {
  // The keys that have a value, in the order of their records.
  Keys Live() const {
    Keys keys;
    for (const LogRecord& record : records) {
      std::erase(keys, record.key);
      if (record.value) keys.push_back(record.key);
    }
    return keys;
  }
  // Keeps the last record of each key.
  void Compact() {
    std::set<std::string> seen;
    std::vector<LogRecord> kept;
    for (auto record = records.rbegin(); record != records.rend(); ++record) {
      if (seen.insert(record->key).second) kept.push_back(*record);
    }
    records.assign(kept.rbegin(), kept.rend());
  }
  void Add(const std::string& key, absl::Time time, const std::string& value = "x") {
    records.push_back({key, value, time});
  }

  std::vector<LogRecord> records;
  std::function<void(const SnapshotLog::NewRecord&)> on_send = [](const auto&) {};
  int sends_until_failure = -1;    // of one; -1: none fails
  int flushes_until_failure = -1;  // likewise
  bool is_stuck = false;           // no broker answers
  std::vector<absl::Time> scans;   // where they began
  size_t read = 0;                 // records
};

constexpr int32_t kPartition = 5;
constexpr int32_t kPartitionsOfTopic = 4;
constexpr int32_t kPlace = 1;

// A record is in the log when it is flushed.
class FakeLog final : public SnapshotLog {
 public:
  explicit FakeLog(FakeTopic& topic) : topic_(topic) {}
  ~FakeLog() override { EXPECT_TRUE(sent_.empty()) << "not flushed"; }

  absl::Status Send(const NewRecord& record, const GoOn& go_on) override {
    EXPECT_EQ(record.partition, kPlace);
    topic_.on_send(record);
    if (topic_.is_stuck) return AwaitEndOf(go_on);
    if (topic_.sends_until_failure >= 0 && topic_.sends_until_failure-- == 0) {
      return absl::UnavailableError("the queue is full");
    }
    sent_.push_back({record.key, std::nullopt, record.time});
    if (record.value) sent_.back().value = std::string(*record.value);
    return absl::OkStatus();
  }

  absl::Status Flush(const GoOn& go_on) override {
    const bool fails =
        topic_.is_stuck || (topic_.flushes_until_failure >= 0 && topic_.flushes_until_failure-- == 0);
    const size_t arrived = fails ? (sent_.size() + 1) / 2 : sent_.size();
    for (size_t i = 0; i < arrived; ++i) topic_.records.push_back(std::move(sent_[i]));
    sent_.clear();
    if (topic_.is_stuck) return AwaitEndOf(go_on);
    return fails ? absl::UnavailableError("not delivered") : absl::OkStatus();
  }

  absl::Status Scan(int32_t partition, absl::Time from, const GoOn& go_on, const See& see) const override {
    EXPECT_EQ(partition, kPlace);
    topic_.scans.push_back(from);
    auto record = absl::c_find_if(topic_.records, [&](const LogRecord& each) { return each.time >= from; });
    for (; record != topic_.records.end(); ++record) {
      if (!go_on()) return absl::CancelledError("reading was cancelled");
      ++topic_.read;
      if (!see(record->key, record->value)) break;
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status AwaitEndOf(const GoOn& go_on) {
    for (int i = 0; go_on(); ++i) {
      if (i < 1000) continue;
      ADD_FAILURE() << "it waits for ever";
      break;
    }
    return absl::UnavailableError("no broker answers");
  }

  FakeTopic& topic_;
  std::vector<LogRecord> sent_;
};

absl::Time At(int seconds) { return absl::FromUnixSeconds(1'700'000'000 + seconds); }
SnapshotId IdAt(int seconds) { return SnapshotId::New(seconds, At(seconds), 7); }
bool Always() { return true; }

class SnapshotTopicTest : public testing::Test {
 protected:
  SnapshotTopicTest() {
    options_.input = "orders";
    options_.process.group = "group";
    options_.process.snapshots.topic = "snapshots";
    options_.record.id = *IdSpec::Parse("json:/id");
    options_.stage.horizon = absl::Hours(1);
    options_.stage.target_fpp = 1e-15;  // few ids, large snapshots
    stage_ = DedupStage::Create(options_.stage).value();
    filter_ = stage_->Open("orders-5").value();
    for (int i = 0; i < 120'000; ++i) filter_->Judge(absl::StrCat(i), At(0)).status().IgnoreError();
    store_ = NewStore();
  }

  // Of another process.
  std::unique_ptr<SnapshotStore> NewStore() {
    return MakeSnapshotTopic(options_, std::make_unique<FakeLog>(topic_), kPartitionsOfTopic);
  }
  absl::Status Write(SnapshotStore& store, SnapshotId id, const GoOn& go_on = Always,
                     int32_t partition = kPartition) {
    const SnapshotOrigin origin = {
        .topic = "orders", .partition = partition, .id_fingerprint = options_.record.id.Fingerprint()};
    const auto image = filter_->BeginSnapshot(origin, {.offset = id.offset, .end_offset = id.offset});
    return image.ok() ? store.Write(partition, id, **image, go_on) : image.status();
  }
  absl::Status Restore(SnapshotStore& store, SnapshotId id, const GoOn& go_on = Always) {
    return store.Restore(kPartition, id, *stage_, go_on).status();
  }
  static std::string Key(SnapshotId id, absl::string_view last) {
    return absl::StrCat("group/orders/5/", id.ToString(), "/", last);
  }
  // Of the snapshots that have any record with a value.
  bool IsThere(SnapshotId id) const {
    return absl::c_any_of(topic_.Live(), [&](const std::string& key) {
      return absl::StartsWith(key, absl::StrCat("group/orders/5/", id.ToString(), "/"));
    });
  }
  // A process is killed while it writes this one: without its last records.
  void LeavePart(SnapshotId id, size_t without) {
    ASSERT_OK(Write(*NewStore(), id));
    topic_.records.resize(topic_.records.size() - without);
  }

  DaemonOptions options_;
  FakeTopic topic_;
  std::unique_ptr<DedupStage> stage_;
  std::unique_ptr<Partition> filter_;
  std::unique_ptr<SnapshotStore> store_;
};

// The format of the topic: a new version must find what an older one has written.
TEST_F(SnapshotTopicTest, ChunksAndThenTheManifestHaveTheTimeOfTheId) {
  const SnapshotId id = IdAt(1);
  ASSERT_OK(Write(*store_, id));
  ASSERT_GT(topic_.records.size(), 3u) << "too small for these tests";
  const size_t chunks = topic_.records.size() - 1;
  int64_t bytes = 0;
  for (size_t i = 0; i < chunks; ++i) {
    EXPECT_EQ(topic_.records[i].key, Key(id, absl::StrCat(i)));
    const auto size = static_cast<int64_t>(topic_.records[i].value->size());
    EXPECT_TRUE(i + 1 == chunks ? size <= kChunkBytes : size == kChunkBytes) << size;
    bytes += size;
  }
  EXPECT_EQ(topic_.records.back().key, Key(id, "manifest"));
  EXPECT_EQ(topic_.records.back().value, absl::StrCat("lethe-snapshot/1 chunks=", chunks, " bytes=", bytes));
  for (const LogRecord& record : topic_.records) EXPECT_EQ(record.time, id.time());
}

TEST_F(SnapshotTopicTest, AnotherProcessRestoresIt) {
  const SnapshotId id = IdAt(1);
  topic_.Add("somebody else's", At(0));
  ASSERT_OK(Write(*store_, id));
  topic_.Add("somebody else's", At(0));  // clocks differ
  ASSERT_OK(Write(*store_, IdAt(2)));
  const auto restored = NewStore()->Restore(kPartition, id, *stage_, Always);
  ASSERT_OK(restored);
  EXPECT_EQ(restored->point.offset, id.offset);
  EXPECT_EQ(*restored->partition->Judge("77", At(1)), Verdict::kDuplicate);
  EXPECT_EQ(topic_.scans, std::vector<absl::Time>{id.time()});
}

TEST_F(SnapshotTopicTest, TheYoungestIsFoundThatIsWholeAndNotBeyondAnOffset) {
  const auto found = [&](int64_t at_most) { return *NewStore()->FindYoungest(kPartition, at_most, Always); };
  EXPECT_EQ(found(100), std::nullopt);
  topic_.Add("somebody else's", At(0));
  ASSERT_OK(Write(*store_, IdAt(1)));
  ASSERT_OK(Write(*store_, IdAt(2)));
  ASSERT_OK(Write(*store_, IdAt(3), Always, kPartition + kPartitionsOfTopic));
  LeavePart(IdAt(4), 1);
  EXPECT_EQ(found(100), IdAt(2));
  EXPECT_EQ(found(1), IdAt(1));
  EXPECT_EQ(found(0), std::nullopt);
  ASSERT_OK(store_->Remove({{kPartition, IdAt(2)}}));
  EXPECT_EQ(found(100), IdAt(1));
  EXPECT_TRUE(absl::IsCancelled(NewStore()->FindYoungest(kPartition, 100, [] { return false; }).status()));
}

TEST_F(SnapshotTopicTest, OneWithoutAManifestDoesNotExist) {
  LeavePart(IdAt(1), 1);
  EXPECT_THAT(Restore(*store_, IdAt(1)), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(SnapshotTopicTest, OneOfAnotherPartitionOrGroupIsNotThisOne) {
  const SnapshotId id = IdAt(1);
  ASSERT_OK(Write(*store_, id));
  for (LogRecord& record : topic_.records) record.key = "other-" + record.key;
  EXPECT_THAT(Restore(*store_, id), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(SnapshotTopicTest, ALoadIsCancelledHalfWay) {
  ASSERT_OK(Write(*store_, IdAt(1)));
  int left = 2;
  EXPECT_THAT(Restore(*store_, IdAt(1), [&] { return --left >= 0; }), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(topic_.read, 2u);
}

// In the filter, between two chunks, or before the manifest.
TEST_F(SnapshotTopicTest, NothingStaysOfAnAbandonedOne) {
  int asked = 0;
  ASSERT_OK(Write(*store_, IdAt(1), [&] { return ++asked > 0; }));
  const Keys before = topic_.Live();
  for (int most = 0; most < asked; ++most) {
    int left = most;
    const absl::Status written = Write(*store_, IdAt(2), [&] { return --left >= 0; });
    EXPECT_THAT(written, StatusIs(absl::StatusCode::kCancelled));
    EXPECT_EQ(topic_.Live(), before) << most << " of " << asked;
  }
  EXPECT_OK(Restore(*store_, IdAt(1)));
}

TEST_F(SnapshotTopicTest, AWriteThatFailsLeavesTombstones) {
  ASSERT_OK(Write(*store_, IdAt(1)));
  const Keys before = topic_.Live();
  const auto records = static_cast<int>(before.size());
  for (int sends = 0; sends < records; ++sends) {
    topic_.sends_until_failure = sends;
    EXPECT_THAT(Write(*store_, IdAt(2)), StatusIs(absl::StatusCode::kUnavailable)) << sends;
    EXPECT_EQ(topic_.Live(), before) << sends;
  }
  for (int flushes = 0; flushes < 2; ++flushes) {
    topic_.flushes_until_failure = flushes;
    EXPECT_THAT(Write(*store_, IdAt(2)), StatusIs(absl::StatusCode::kUnavailable)) << flushes;
    EXPECT_EQ(topic_.Live(), before) << flushes;
  }
}

TEST_F(SnapshotTopicTest, WhatCouldNotBeDeletedIsDeletedWithTheNextThatCounts) {
  topic_.flushes_until_failure = 1;
  topic_.on_send = [&](const SnapshotLog::NewRecord& record) {
    if (!record.value) topic_.sends_until_failure = 0;
  };
  EXPECT_FALSE(Write(*store_, IdAt(1)).ok());
  EXPECT_TRUE(IsThere(IdAt(1)));
  topic_.on_send = [](const auto&) {};
  topic_.sends_until_failure = -1;
  ASSERT_OK(Write(*store_, IdAt(2)));
  ASSERT_OK(Write(*store_, IdAt(3)));
  topic_.flushes_until_failure = 0;
  EXPECT_FALSE(store_->Remove({{kPartition, IdAt(2)}}).ok());
  EXPECT_TRUE(IsThere(IdAt(2)));
  topic_.sends_until_failure = 0;
  EXPECT_FALSE(store_->Remove({{kPartition, IdAt(2)}, {kPartition, IdAt(3)}}).ok());
  EXPECT_TRUE(IsThere(IdAt(2)) && IsThere(IdAt(3)));

  ASSERT_OK(Write(*store_, IdAt(4)));
  ASSERT_OK(store_->DropOlder(kPartition, IdAt(4), std::nullopt, false));
  EXPECT_FALSE(IsThere(IdAt(1)) || IsThere(IdAt(2)) || IsThere(IdAt(3)));
  EXPECT_TRUE(IsThere(IdAt(4)));
  // And not again.
  const size_t records = topic_.records.size();
  ASSERT_OK(store_->DropOlder(kPartition, IdAt(4), std::nullopt, false));
  EXPECT_EQ(topic_.records.size(), records);
}

TEST_F(SnapshotTopicTest, OlderOnesOfOtherPartitionsStay) {
  ASSERT_OK(Write(*store_, IdAt(1), Always, kPartition + kPartitionsOfTopic));
  const Keys others = topic_.Live();
  ASSERT_OK(Write(*store_, IdAt(2)));
  const size_t written = topic_.records.size();
  ASSERT_OK(store_->DropOlder(kPartition, IdAt(2), std::nullopt, true));
  EXPECT_EQ(topic_.records.size(), written);
  ASSERT_OK(store_->Remove({{kPartition, IdAt(2)}}));
  EXPECT_EQ(topic_.Live(), others);
}

TEST_F(SnapshotTopicTest, TheManifestIsDeletedFirst) {
  ASSERT_OK(Write(*store_, IdAt(1)));
  const size_t written = topic_.records.size();
  ASSERT_OK(store_->Remove({{kPartition, IdAt(1)}}));
  ASSERT_EQ(topic_.records.size(), 2 * written);
  EXPECT_EQ(topic_.records[written].key, Key(IdAt(1), "manifest"));
  EXPECT_EQ(topic_.Live(), Keys());
  for (const LogRecord& record : topic_.records) EXPECT_EQ(record.time, IdAt(1).time());
}

TEST_F(SnapshotTopicTest, ADeletionThatIsCancelledHalfWayLeavesNoSnapshot) {
  ASSERT_OK(Write(*store_, IdAt(1)));
  ASSERT_OK(Write(*store_, IdAt(2)));
  const size_t written = topic_.records.size();
  int sent = 0;
  topic_.on_send = [&](const auto&) {
    if (++sent == 2) store_->Stop();
  };
  const absl::Status dropped = store_->DropOlder(kPartition, IdAt(2), std::nullopt, false);
  EXPECT_THAT(dropped, StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(topic_.records.size(), written + 2);
  EXPECT_TRUE(IsThere(IdAt(1)));
  topic_.Compact();
  EXPECT_THAT(Restore(*NewStore(), IdAt(1)), StatusIs(absl::StatusCode::kNotFound));
}

// Also where the program ends: what nobody needs goes from the topic.
TEST_F(SnapshotTopicTest, UnusedOnesAreRemovedAfterAStopUnlessNoBrokerAnswers) {
  ASSERT_OK(Write(*store_, IdAt(1)));
  ASSERT_OK(Write(*store_, IdAt(2)));
  store_->Stop();
  EXPECT_OK(store_->Remove({{kPartition, IdAt(1)}}));
  EXPECT_FALSE(IsThere(IdAt(1)));
  topic_.is_stuck = true;
  EXPECT_THAT(store_->Remove({{kPartition, IdAt(2)}}), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(Write(*store_, IdAt(3)), StatusIs(absl::StatusCode::kUnavailable));
}

class SnapshotRemainsInTopicTest : public SnapshotTopicTest {
 protected:
  // A former owner's commit names the one of second 10; it was killed while it wrote another. Records of
  // others lie between.
  void SetUp() override {
    topic_.Add(Key(oldest_, "0"), oldest_.time());
    ASSERT_OK(Write(*NewStore(), named_));
    topic_.Add(absl::StrCat(own_.ToString(), "/0"), At(15));  // without a prefix
    LeavePart(unfinished_, 2);
    for (const std::string& key : others_) topic_.Add(key, At(25));
    topic_.Add(Key(later_, "0"), later_.time());
  }

  const SnapshotId oldest_ = IdAt(5);
  const SnapshotId named_ = IdAt(10);
  const SnapshotId unfinished_ = IdAt(20);
  const SnapshotId own_ = IdAt(30);
  const SnapshotId later_ = IdAt(40);
  const Keys others_ = {
      absl::StrCat("group/orders/9/", IdAt(15).ToString(), "/0"),
      absl::StrCat("other-group/orders/5/", IdAt(15).ToString(), "/0"),
      absl::StrCat("group/orders/5/", IdAt(15).ToString(), "/x"),
      "",
  };
};

TEST_F(SnapshotRemainsInTopicTest, TheNextOwnerDeletesThemAndNoOthers) {
  ASSERT_OK(Restore(*store_, named_));
  ASSERT_OK(Write(*store_, own_));
  Keys expected = topic_.Live();
  std::erase_if(expected, [&](const std::string& key) {
    return absl::StrContains(key, named_.ToString()) || absl::StrContains(key, unfinished_.ToString());
  });
  topic_.scans.clear();
  ASSERT_OK(store_->DropOlder(kPartition, own_, named_, true));
  EXPECT_EQ(topic_.Live(), expected);
  EXPECT_TRUE(IsThere(oldest_) && IsThere(own_) && IsThere(later_));
  // Its chunks are known since it was loaded.
  EXPECT_EQ(topic_.scans, std::vector<absl::Time>{named_.time() + absl::Milliseconds(1)});
}

TEST_F(SnapshotRemainsInTopicTest, TheSearchBeginsWithTheNamedOneIfItWasNotLoaded) {
  ASSERT_OK(Write(*store_, own_));
  ASSERT_OK(store_->DropOlder(kPartition, own_, named_, true));
  EXPECT_FALSE(IsThere(named_) || IsThere(unfinished_));
  EXPECT_TRUE(IsThere(oldest_) && IsThere(own_) && IsThere(later_));
}

TEST_F(SnapshotRemainsInTopicTest, WhereNoCommitNamedOneTheWholeLogIsSearched) {
  ASSERT_OK(Write(*store_, own_));
  ASSERT_OK(store_->DropOlder(kPartition, own_, std::nullopt, true));
  EXPECT_FALSE(IsThere(oldest_) || IsThere(named_) || IsThere(unfinished_));
  EXPECT_TRUE(IsThere(own_) && IsThere(later_));
}

TEST_F(SnapshotRemainsInTopicTest, OnlyTheFirstOfAnOwnerSearches) {
  ASSERT_OK(Write(*store_, own_));
  ASSERT_OK(store_->DropOlder(kPartition, own_, named_, false));
  EXPECT_TRUE(topic_.scans.empty());
  EXPECT_TRUE(IsThere(unfinished_));
}

// It reads what an earlier owner has left, which may be much.
TEST_F(SnapshotRemainsInTopicTest, TheSearchEndsWithTheProgram) {
  ASSERT_OK(Write(*store_, own_));
  const size_t written = topic_.records.size();
  store_->Stop();
  const absl::Status dropped = store_->DropOlder(kPartition, own_, named_, true);
  EXPECT_THAT(dropped, StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(topic_.records.size(), written) << "it had found some";
}

// Four times the own snapshot and 16 MiB, not all that others have in the topic.
TEST_F(SnapshotRemainsInTopicTest, TheSearchEndsAfterSomeMegabytes) {
  ASSERT_OK(Write(*store_, own_));
  const auto find_behind = [&](SnapshotId id, int megabytes) {
    const std::vector<LogRecord> records = topic_.records;
    topic_.records.clear();
    for (int i = 0; i < megabytes; ++i) topic_.Add("others", At(11), std::string(1 << 20, 'x'));
    topic_.Add(Key(id, "0"), id.time());
    EXPECT_OK(store_->DropOlder(kPartition, own_, named_, true));
    const bool is_found = !IsThere(id);
    topic_.records = records;
    return is_found;
  };
  EXPECT_TRUE(find_behind(IdAt(12), 16 + 4));
  EXPECT_FALSE(find_behind(IdAt(13), 16 + 16));
}

// What a former owner is late to tidy up is what is older than its own, and not what the partition's next
// owner has named, even if it has come to know of that.
TEST_F(SnapshotTopicTest, Rule15SnapshotsOfALaterOwnerStay) {
  const auto later = NewStore();
  const SnapshotId oldest = IdAt(1), own = IdAt(2), named = IdAt(3);
  ASSERT_OK(Write(*store_, oldest));
  ASSERT_OK(Write(*store_, own));
  ASSERT_OK(Write(*later, named));
  ASSERT_OK(Restore(*store_, named));
  ASSERT_OK(store_->DropOlder(kPartition, own, oldest, true));
  EXPECT_FALSE(IsThere(oldest));
  EXPECT_TRUE(IsThere(own) && IsThere(named));
  ASSERT_OK(later->DropOlder(kPartition, named, own, true));
  EXPECT_FALSE(IsThere(own));
  EXPECT_TRUE(IsThere(named));
}

}  // namespace
}  // namespace lethe
