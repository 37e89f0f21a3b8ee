// What is sent to an input in a schedule.
#ifndef LETHE_TESTS_SIMULATION_INPUT_H_
#define LETHE_TESTS_SIMULATION_INPUT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "tests/simulation/broker.h"
#include "tests/simulation/schedule.h"
#include "tests/simulation/world.h"

namespace lethe::simulation {

// A producer that sends events, and copies of events, over the time of the schedule. An id belongs to a
// partition as long as there are as many. Not thread-safe.
class Input {
 public:
  Input(World& world, Broker& broker, const Schedule& schedule, std::string topic);

  bool is_done() const { return sent_ >= records_; }
  // The topic is another now: more is sent, with the ids and the times of the former one.
  void BeginAgain();
  // The number of the next sending.
  int64_t sendings() const { return sendings_; }
  // Some events in a transaction of their own, which is open for so long.
  void SendInTransaction(absl::Duration open, bool commits);
  // One more.
  void SendTo(int32_t partition);
  // A batch of so many offsets.
  void SendUnreadable(int64_t offsets);
  int open_transactions() const { return open_transactions_; }
  // Until then records are dated wrongly.
  void SetBadClock(int64_t kind, absl::Duration until) {
    bad_clock_ = kind;
    bad_until_ = until;
  }

 private:
  void SendSome();
  Record Next();
  int64_t Time();
  void Append(Record record, int64_t transaction);

  World& world_;
  Broker& broker_;
  const Schedule& schedule_;
  const std::string topic_;
  int records_;
  int sent_ = 0;
  int sent_before_ = 0;  // to the former topic
  int64_t sendings_ = 0;
  int64_t events_ = 0;
  int64_t bad_clock_ = 0;
  absl::Duration bad_until_;
  int open_transactions_ = 0;
};

}  // namespace lethe::simulation

#endif  // LETHE_TESTS_SIMULATION_INPUT_H_
