// What the pipeline relies on when partitions come and go: one suite, for the fakes and for a real broker.
#ifndef LETHE_TESTS_SUPPORT_REBALANCES_SUITE_H_
#define LETHE_TESTS_SUPPORT_REBALANCES_SUITE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/pipeline/clock/steady_time.h"
#include "src/pipeline/output/sink.h"
#include "src/pipeline/task/cluster.h"
#include "src/pipeline/task/source.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {

// `Cluster` has an input of two partitions and a group, and is
//   void Append(partition, value)     to the input
//   Source& source(i), Sink& sink(i)  of members 0 and 1; the sink is open, the source is not
//   std::vector<lethe::CommittedOffset> Committed(i)  of the input, as member i is told
//   void Expel()                      returns when the group has given up member 0, which was silent
//   static constexpr bool kIsCooperative
template <class Cluster>
class Rebalances : public testing::Test {
 protected:
  static constexpr int kRounds = 5;  // in which nothing may happen

  struct Member {
    Tasks tasks;
    std::optional<SourceEvent> told;  // and not answered
    std::vector<std::string> values;
  };

  void Open(size_t i) { ASSERT_OK(cluster_->source(i).Open()); }
  // One round of the loop of a member, which answers nothing.
  void Step(size_t i) {
    Source& source = cluster_->source(i);
    Member& member = members_[i];
    source.Poll(absl::Milliseconds(50), 100, 1 << 20);
    for (const InputRecord& each : source.batch()) {
      Task* task = Find(member.tasks, each.from());
      if (each.event != nullptr && !each.event->partitions.empty()) {
        EXPECT_EQ(&each, source.batch().data()) << "it comes before the records";
      }
      if (each.event != nullptr && each.event->kind <= SourceEvent::Kind::kLost) {
        EXPECT_FALSE(member.told.has_value()) << "one that waits for its answer is the only one";
        member.told = *each.event;
      } else if (each.event == nullptr && task != nullptr && each.offset >= task->next() &&
                 !source.IsStale(*task)) {
        task->SkipTo(each.offset + 1);
        member.values.emplace_back(each.payload());
      }
    }
    source.ClearBatch();
  }
  void Answer(size_t i) {
    Source& source = cluster_->source(i);
    Member& member = members_[i];
    const SourceEvent event = *std::exchange(member.told, std::nullopt);
    if (event.kind != SourceEvent::Kind::kAssigned) {
      for (const TopicPartition& partition : event.partitions) member.tasks.erase(partition);
      return source.Unassign(event.partitions);
    }
    ASSERT_TRUE(source.TakeGeneration());
    const std::vector<lethe::CommittedOffset> committed = cluster_->Committed(i);
    std::vector<const Task*> tasks;
    for (const TopicPartition& partition : event.partitions) {
      auto task = std::make_unique<Task>(partition);
      task->SkipTo(std::max<int64_t>(committed[static_cast<size_t>(partition.partition)].offset, 0));
      tasks.push_back(task.get());
      member.tasks[partition] = std::move(task);
    }
    source.Assign(tasks);
  }
  // Both go on, where they are open, until member `i` is told of some partitions, or `done`.
  template <class Done>
  bool Until(size_t open, const Done& done) {
    const absl::Time give_up = SteadyNow() + absl::Seconds(60);
    while (!done() && SteadyNow() < give_up) {
      for (size_t i = 0; i < open; ++i) {
        if (!done()) Step(i);
        // What is of no partition, and what is not waited for.
        if (members_[i].told && (members_[i].told->partitions.empty() || !done())) Answer(i);
      }
    }
    return done();
  }
  bool IsTold(size_t i, SourceEvent::Kind kind) const {
    const auto& told = members_[i].told;
    return told && told->kind == kind && !told->partitions.empty();
  }
  void OwnAll(size_t i) {
    Open(i);
    ASSERT_TRUE(Until(i + 1, [&] { return members_[i].tasks.size() == 2; }));
  }
  Outcome Commit(size_t i, int32_t partition, int64_t offset) {
    Sink& sink = cluster_->sink(i);
    EXPECT_OK(sink.Begin());
    return sink.Commit({{{0, partition}, offset, ""}});
  }

  std::unique_ptr<Cluster> cluster_ = std::make_unique<Cluster>();
  std::array<Member, 2> members_;
};

TYPED_TEST_SUITE_P(Rebalances);

TYPED_TEST_P(Rebalances, NothingIsReadBeforeAnAssignmentIsAnswered) {
  this->cluster_->Append(0, "a");
  this->cluster_->Append(1, "b");
  this->Open(0);
  ASSERT_TRUE(this->Until(1, [&] { return this->IsTold(0, SourceEvent::Kind::kAssigned); }));
  EXPECT_EQ(this->members_[0].told->partitions.size(), 2u);
  for (int i = 0; i < this->kRounds; ++i) this->Step(0);
  this->Answer(0);
  ASSERT_TRUE(this->Until(1, [&] { return this->members_[0].values.size() == 2; }));
}

TYPED_TEST_P(Rebalances, UntilTheAnswerARevokedPartitionIsNobodyElses) {
  this->cluster_->Append(0, "a");
  this->cluster_->Append(1, "b");
  this->OwnAll(0);
  ASSERT_TRUE(this->Until(1, [&] { return this->members_[0].values.size() == 2; }));
  this->Open(1);
  ASSERT_TRUE(this->Until(2, [&] { return this->IsTold(0, SourceEvent::Kind::kRevoked); }));
  const std::vector<TopicPartition> revoked = this->members_[0].told->partitions;
  EXPECT_EQ(revoked.size(), TypeParam::kIsCooperative ? 1u : 2u);
  for (int i = 0; i < this->kRounds; ++i) {
    this->Step(0);
    this->Step(1);
    if (this->members_[1].told) {
      EXPECT_TRUE(this->members_[1].told->partitions.empty());
      this->Answer(1);
    }
  }
  // What was judged may be committed, with a cooperative group in its next generation.
  if (TypeParam::kIsCooperative) {
    EXPECT_TRUE(this->cluster_->source(0).TakeGeneration());
  }
  EXPECT_EQ(this->Commit(0, revoked[0].partition, 1), Outcome::kCommitted)
      << this->cluster_->sink(0).report().last_error;
  this->Answer(0);
  ASSERT_TRUE(this->Until(
      2, [&] { return this->members_[0].tasks.size() == 1 && this->members_[1].tasks.size() == 1; }));
  for (const int32_t partition : {0, 1}) this->cluster_->Append(partition, "c");
  ASSERT_TRUE(this->Until(2, [&] {
    const auto& first = this->members_[0].values;
    const auto& second = this->members_[1].values;
    return std::count(first.begin(), first.end(), "c") == 1 &&
           std::count(second.begin(), second.end(), "c") == 1;
  }));
  for (size_t i : {0, 1}) {
    const int32_t partition = this->members_[i].tasks.begin()->first.partition;
    EXPECT_EQ(this->Commit(i, partition, 2), Outcome::kCommitted)
        << this->cluster_->sink(i).report().last_error;
  }
}

TYPED_TEST_P(Rebalances, AMemberLeavesWithAnAssignmentThatItHasNotAnswered) {
  this->Open(0);
  ASSERT_TRUE(this->Until(1, [&] { return this->IsTold(0, SourceEvent::Kind::kAssigned); }));
  this->cluster_->source(0).Leave();
  this->members_[0] = {};
  this->Open(1);
  ASSERT_TRUE(this->Until(2, [&] { return this->members_[1].tasks.size() == 2; }));
}

TYPED_TEST_P(Rebalances, AMemberLeavesWithARevocationThatItHasNotAnswered) {
  this->OwnAll(0);
  this->Open(1);
  ASSERT_TRUE(this->Until(2, [&] { return this->IsTold(0, SourceEvent::Kind::kRevoked); }));
  this->cluster_->source(0).Leave();
  this->members_[0] = {};
  ASSERT_TRUE(this->Until(2, [&] { return this->members_[1].tasks.size() == 2; }));
}

TYPED_TEST_P(Rebalances, OfAMemberThatWasSilentThePartitionsAreLost) {
  this->cluster_->Append(0, "a");
  this->OwnAll(0);
  this->cluster_->Expel();
  EXPECT_NE(this->Commit(0, 0, 1), Outcome::kCommitted);
  EXPECT_TRUE(this->cluster_->sink(0).report().has_group_moved_on);
  ASSERT_TRUE(this->Until(1, [&] { return this->IsTold(0, SourceEvent::Kind::kLost); }));
  EXPECT_EQ(this->members_[0].told->partitions.size(), 2u);
  EXPECT_FALSE(this->cluster_->source(0).TakeGeneration()) << "it is no member";
  this->Answer(0);
  ASSERT_TRUE(this->Until(1, [&] { return this->members_[0].tasks.size() == 2; })) << "it comes back";
  EXPECT_EQ(this->Commit(0, 0, 1), Outcome::kCommitted) << this->cluster_->sink(0).report().last_error;
}

REGISTER_TYPED_TEST_SUITE_P(Rebalances, NothingIsReadBeforeAnAssignmentIsAnswered,
                            UntilTheAnswerARevokedPartitionIsNobodyElses,
                            AMemberLeavesWithAnAssignmentThatItHasNotAnswered,
                            AMemberLeavesWithARevocationThatItHasNotAnswered,
                            OfAMemberThatWasSilentThePartitionsAreLost);

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_REBALANCES_SUITE_H_
