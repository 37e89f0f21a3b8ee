// What the pipeline relies on of a source and a sink: one suite, for the fakes and for a real broker.
#ifndef LETHE_TESTS_SUPPORT_SOURCE_AND_SINK_SUITE_H_
#define LETHE_TESTS_SUPPORT_SOURCE_AND_SINK_SUITE_H_

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "src/pipeline/clock/steady_time.h"
#include "src/pipeline/output/sink.h"
#include "src/pipeline/task/cluster.h"
#include "src/pipeline/task/source.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {

// `Cluster` has an input of one partition and an output of one, and is
//   void Append(key, value, timestamp_ms, headers)   to the input, committed
//   void AppendAborted(value)                        to the input, which no reader sees
//   std::vector<Seen> Output()                       what a reader of what is committed sees, once no
//                                                    transaction is open
//   size_t OutputNow()                               how much of it there is, whatever is open
//   Source& source(), Sink& sink()                   open, with partition 0 assigned; the same member
//   std::vector<lethe::CommittedOffset> Committed()         of the input, by the group
//   Task& task()                                     of that partition
//   void Restart()                                   another source and sink, where the group has committed
template <class Cluster>
class SourceAndSink : public testing::Test {
 protected:
  struct Polled {
    int64_t offset;
    std::string value;
  };

  // Records until there are `count` of them, and the event that was last said.
  std::vector<Polled> Poll(size_t count) {
    std::vector<Polled> records;
    const absl::Time give_up = SteadyNow() + absl::Seconds(60);
    while (records.size() < count && SteadyNow() < give_up) {
      Step([&](const InputRecord& record) {
        records.push_back({record.offset, std::string(record.payload())});
      });
    }
    EXPECT_EQ(records.size(), count);
    return records;
  }
  // The offset of such an event at `from` or behind it, which is waited for.
  std::optional<int64_t> PollEvent(SourceEvent::Kind kind, int64_t from = 0) {
    const absl::Time give_up = SteadyNow() + absl::Seconds(60);
    while (SteadyNow() < give_up && (!event_offset_ || event_kind_ != kind || *event_offset_ < from)) {
      Step([](const InputRecord&) {});
    }
    return event_kind_ == kind ? event_offset_ : std::nullopt;
  }
  template <class Take>
  void Step(const Take& take) {
    Source& source = cluster_->source();
    source.Poll(absl::Milliseconds(100), 100, 1 << 20);
    for (const InputRecord& record : source.batch()) {
      if (record.event == nullptr) {
        if (record.offset < cluster_->task().next() || source.IsStale(cluster_->task())) continue;
        cluster_->task().SkipTo(record.offset + 1);
        take(record);
      } else if (record.partition == 0) {
        event_kind_ = record.event->kind;
        event_offset_ = record.offset;
      }
    }
    source.ClearBatch();
  }
  static OutputRecord Record(absl::string_view key, absl::string_view value) {
    OutputRecord record;
    record.key = key;
    record.value = value;
    return record;
  }
  std::string Values() {
    std::string values;
    for (const auto& seen : cluster_->Output()) absl::StrAppend(&values, seen.value.value_or("null"), " ");
    return values;
  }

  std::unique_ptr<Cluster> cluster_ = std::make_unique<Cluster>();
  SourceEvent::Kind event_kind_ = SourceEvent::Kind::kError;
  std::optional<int64_t> event_offset_;
};

TYPED_TEST_SUITE_P(SourceAndSink);

TYPED_TEST_P(SourceAndSink, ACommitPutsOutWhatWasWrittenWithThePosition) {
  this->cluster_->Append("k", "v", 1000, {});
  ASSERT_EQ(this->Poll(1)[0].value, "v");
  Sink& sink = this->cluster_->sink();
  ASSERT_OK(sink.Begin());
  ASSERT_OK(sink.Write(this->Record("a", "1")));
  ASSERT_OK(sink.Write(this->Record("b", "2")));
  EXPECT_EQ(this->cluster_->OutputNow(), 0u) << "nothing is out before the commit";
  ASSERT_EQ(sink.Commit({{{0, 0}, 1, "words"}}), Outcome::kCommitted) << sink.report().last_error;
  EXPECT_EQ(this->Values(), "1 2 ");
  const std::vector<lethe::CommittedOffset> committed = this->cluster_->Committed();
  ASSERT_EQ(committed.size(), 1u);
  EXPECT_EQ(committed[0].offset, 1);
  EXPECT_EQ(committed[0].metadata, "words");
  this->cluster_->Restart();
  this->cluster_->Append("k", "next", 1000, {});
  EXPECT_EQ(this->Poll(1)[0].value, "next") << "a restart goes on behind it";
}

TYPED_TEST_P(SourceAndSink, AnAbortPutsOutNothing) {
  this->cluster_->Append("k", "v", 1000, {});
  this->Poll(1);
  Sink& sink = this->cluster_->sink();
  ASSERT_OK(sink.Begin());
  ASSERT_OK(sink.Write(this->Record("a", "1")));
  ASSERT_EQ(sink.Abort(), Outcome::kAborted) << sink.report().last_error;
  ASSERT_OK(sink.Begin());
  ASSERT_OK(sink.Write(this->Record("b", "2")));
  ASSERT_EQ(sink.Commit({{{0, 0}, 1, ""}}), Outcome::kCommitted) << sink.report().last_error;
  EXPECT_EQ(this->Values(), "2 ");
}

TYPED_TEST_P(SourceAndSink, ASeekReadsAgainFromThere) {
  for (const char* value : {"a", "b", "c"}) this->cluster_->Append("k", value, 1000, {});
  this->Poll(3);
  Task& task = this->cluster_->task();
  task.SkipTo(1);
  this->cluster_->source().Seek(task);
  EXPECT_EQ(this->Poll(2)[0].value, "b");
}

TYPED_TEST_P(SourceAndSink, ARecordIsReadAsItWasWritten) {
  this->cluster_->Append(std::nullopt, "", 1234, {{"one", "1"}, {"two", ""}});
  this->cluster_->Append("", std::nullopt, 1235, {});
  size_t records = 0;
  const absl::Time give_up = SteadyNow() + absl::Seconds(60);
  while (records < 2 && SteadyNow() < give_up) {
    this->Step([&](const InputRecord& record) {
      const bool is_first = records++ == 0;
      EXPECT_EQ(record.key.has_value(), !is_first);
      EXPECT_EQ(record.value.has_value(), is_first);
      EXPECT_EQ(record.timestamp_ms, is_first ? 1234 : 1235);
      std::vector<HeaderView> headers;
      if (record.headers != nullptr) record.headers->AppendTo(headers);
      EXPECT_EQ(headers.size(), is_first ? 2u : 0u);
      // And written as it was read.
      Sink& sink = this->cluster_->sink();
      ASSERT_OK(sink.Begin());
      OutputRecord copy;
      copy.key = record.key;
      copy.value = record.value;
      copy.timestamp_ms = record.timestamp_ms;
      copy.headers = headers;
      ASSERT_OK(sink.Write(copy));
      ASSERT_EQ(sink.Commit({{{0, 0}, record.offset + 1, ""}}), Outcome::kCommitted)
          << sink.report().last_error;
    });
  }
  const auto seen = this->cluster_->Output();
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].key, std::nullopt);
  EXPECT_EQ(seen[0].value, "");
  EXPECT_EQ(seen[0].timestamp_ms, 1234);
  EXPECT_EQ(seen[0].headers.size(), 2u);
  EXPECT_EQ(seen[1].key, "");
  EXPECT_EQ(seen[1].value, std::nullopt);
}

TYPED_TEST_P(SourceAndSink, TheEndIsBehindInvisibleRecords) {
  this->cluster_->Append("k", "v", 1000, {});
  this->cluster_->AppendAborted("no");
  EXPECT_EQ(this->Poll(1)[0].value, "v");
  const auto end = this->PollEvent(SourceEvent::Kind::kEnd, 2);
  ASSERT_TRUE(end.has_value());
  EXPECT_GT(*end, 1);
  EXPECT_EQ(*end, this->cluster_->source().HighWatermark({0, 0}));
}

TYPED_TEST_P(SourceAndSink, AnOffsetThatIsNotThereIsAnEvent) {
  this->cluster_->Append("k", "v", 1000, {});
  this->Poll(1);
  Task& task = this->cluster_->task();
  task.SkipTo(1000);
  this->cluster_->source().Seek(task);
  EXPECT_TRUE(this->PollEvent(SourceEvent::Kind::kUnreadDeleted).has_value());
}

TYPED_TEST_P(SourceAndSink, APausedPartitionIsNotRead) {
  this->cluster_->Append("k", "first", 1000, {});
  this->Poll(1);
  Task& task = this->cluster_->task();
  this->cluster_->source().SetPaused(task, true);
  this->cluster_->Append("k", "second", 1000, {});
  int64_t records = 0;
  for (int i = 0; i < 3; ++i) this->Step([&](const InputRecord&) { ++records; });
  EXPECT_EQ(records, 0);
  this->cluster_->source().SetPaused(task, false);
  EXPECT_EQ(this->Poll(1)[0].value, "second");
}

REGISTER_TYPED_TEST_SUITE_P(SourceAndSink, ACommitPutsOutWhatWasWrittenWithThePosition, AnAbortPutsOutNothing,
                            ASeekReadsAgainFromThere, ARecordIsReadAsItWasWritten,
                            TheEndIsBehindInvisibleRecords, AnOffsetThatIsNotThereIsAnEvent,
                            APausedPartitionIsNotRead);

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_SOURCE_AND_SINK_SUITE_H_
