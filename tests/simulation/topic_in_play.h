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
    const Schedule& schedule;
    std::function<void()> on_change;  // of the input
  };
  // Creates the topic with all that is written for it, and begins to send.
  TopicInPlay(const Site& site, int number);

  const TopicNames& names() const { return names_; }
  Input& input() { return input_; }

  // One more, there and in what is written.
  void AddPartition();
  // Deletes below the restart point of each commit.
  void Delete();
  // Of `kind`; `which` of its outputs is by number.
  void TroubleOutput(FaultKind kind, int which, absl::Duration lasts, bool lasts_long);
  // Whether one lasts, so that nothing is to be expected before Repair().
  bool is_in_trouble() const { return troubles_ > 0; }
  void Repair();

  // Whether the group has committed all that is to be judged.
  bool IsDone() const;
  test::Judgement Judge() const;

 private:
  // Where the partition stops by policy, or its end.
  int64_t EndOf(int32_t partition) const;
  // Whether a record that is to be judged is in the log from the offset on.
  bool HasRecords(const Log& log, int64_t from, int64_t end) const;
  test::TopicEnds EndsOf(const std::string& topic) const;

  const Site site_;
  const bool stops_;
  const TopicNames names_;
  Input input_;
  std::vector<std::function<void()>> repairs_;
  int troubles_ = 0;
};

}  // namespace lethe::simulation

#endif  // LETHE_TESTS_SIMULATION_TOPIC_IN_PLAY_H_
