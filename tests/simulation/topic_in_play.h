// A topic of a schedule: what is sent, what happens to it, and what is to be expected of it.
#ifndef LETHE_TESTS_SIMULATION_TOPIC_IN_PLAY_H_
#define LETHE_TESTS_SIMULATION_TOPIC_IN_PLAY_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/faults/judge.h"
#include "tests/simulation/broker.h"
#include "tests/simulation/group.h"
#include "tests/simulation/input.h"
#include "tests/simulation/process.h"
#include "tests/simulation/schedule.h"
#include "tests/simulation/world.h"

namespace lethe::simulation {

// Each topic is judged by itself. Not thread-safe.
class TopicInPlay {
 public:
  struct Site {
    World& world;
    Broker& broker;
    Group& group;
    Group* routing_group;  // null: there are no routers
    const Schedule& schedule;
    std::function<void()> on_change;  // of the input
  };
  // Creates the topic with all that is written for it, and begins to send.
  TopicInPlay(const Site& site, int number);

  const TopicNames& names() const { return names_; }
  Input& input() { return input_; }
  bool is_routed() const { return names_.judged != names_.input; }

  // One more, there and in what is written.
  void AddPartition();
  // Deletes below the restart point of each commit.
  void Delete();
  // Of `kind`; `which` of its outputs is by number.
  void TroubleOutput(FaultKind kind, int which, absl::Duration lasts, bool lasts_long);
  // Deletes it, and creates it again.
  void Recreate(absl::Duration after, bool forgets_offsets);
  // Of a format that this version does not know.
  void CommitForeign();
  // Whether one of these lasts, so that nothing is to be expected before Repair().
  bool is_in_trouble() const { return troubles_ > 0 || may_need_reset_; }
  void Repair();
  // Whether it may have stopped until an operator resets the group's offsets, while no process runs.
  bool may_need_reset() const { return may_need_reset_; }
  void Reset();
  // Whether each commit says of which topic it is: no broker may have answered the question.
  bool has_ids() const;

  // A partition of an input stood still for too long: the others go on without it, and disorder is not
  // bounded any more.
  void NotePassedOver() { was_passed_over_ = true; }

  // Whether the group has committed all that is to be judged.
  bool IsDone() const;
  // Of all its partitions, as a measure of progress.
  int64_t Committed() const;
  test::Judgement Judge() const;

 private:
  // A former topic of the name, and what the group had committed of it when it was deleted.
  struct Life {
    const Topic* input = nullptr;
    int64_t sendings_begin = 0;
    std::vector<int64_t> committed = {};
  };
  // What the group has judged of a former topic, as far as it came.
  test::Judgement JudgeFormer(const Life& life, int64_t sendings_end) const;
  test::Evidence EvidenceOf(const Topic& input, int64_t sendings_begin, int64_t sendings_end) const;
  // Where the partition stops by policy, or its end.
  int64_t EndOf(int32_t partition) const;
  // Whether a record that is to be judged is in the log from the offset on.
  bool HasRecords(const Log& log, int64_t from, int64_t end) const;
  // Whether the group has committed all of the topic.
  bool IsRead(const Group& group, const std::string& topic) const;
  test::Judgement JudgeRouted() const;
  bool IsOfPresentTopic(const CommittedOffset& committed) const;
  void LookAtPartitionsSoon();
  test::TopicEnds EndsOf(const std::string& topic) const;

  const Site site_;
  const bool stops_;
  const TopicNames names_;
  Input input_;
  std::vector<std::function<void()>> repairs_;
  int troubles_ = 0;
  std::vector<Life> former_;
  int64_t sendings_begin_ = 0;  // of the present topic
  bool may_need_reset_ = false;
  bool was_passed_over_ = false;
  // After a reset: where the input and the output that count begin, by partition.
  std::vector<int64_t> input_begin_;
  std::vector<int64_t> output_begin_;
};

}  // namespace lethe::simulation

#endif  // LETHE_TESTS_SIMULATION_TOPIC_IN_PLAY_H_
