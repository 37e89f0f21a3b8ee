// What is sent to the inputs of a topic in a schedule.
#ifndef LETHE_TESTS_SIMULATION_INPUT_H_
#define LETHE_TESTS_SIMULATION_INPUT_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/broker.h"
#include "tests/simulation/process.h"
#include "tests/simulation/schedule.h"
#include "tests/simulation/world.h"

namespace lethe::simulation {

// A producer that sends events, and copies of events, over the time of the schedule. An id belongs to a
// partition as long as there are as many; where the topic is routed, to none. Not thread-safe.
class Input {
 public:
  // `is_backlog`: all at once.
  Input(World& world, Broker& broker, const Schedule& schedule, const TopicNames& names, bool is_backlog);

  bool is_done() const { return sent_ >= records_; }
  // The topic is another now: more is sent, with the ids and the times of the former one.
  void BeginAgain();
  // The number of the next sending.
  int64_t sendings() const { return static_cast<int64_t>(times_ms_.size()); }
  // When the sending was made, also where the record is dated otherwise.
  int64_t time_ms(int64_t sending) const { return times_ms_.at(static_cast<size_t>(sending)); }
  // Some events in a transaction of their own, which is open for so long.
  void SendInTransaction(absl::Duration open, bool commits);
  // One more.
  void SendTo(int32_t partition);
  void SendAnywhere();
  // A batch of so many offsets.
  void SendUnreadable(int64_t offsets);
  int open_transactions() const { return open_transactions_; }
  // Until then records are dated ahead of the brokers' clocks by so much.
  void SetFastClock(absl::Duration ahead, absl::Duration until) {
    ahead_ = ahead;
    fast_until_ = until;
  }
  bool had_bad_clock() const { return std::max(bad_until_, fast_until_) > absl::ZeroDuration(); }
  // Until then records are dated wrongly.
  void SetBadClock(int64_t kind, absl::Duration until) {
    bad_clock_ = kind;
    bad_until_ = until;
  }

 private:
  void SendSome();
  void SendBacklog();
  const std::string& ChooseTopic();
  Record Next(const std::string& topic);
  // As it says itself of the last sending.
  int64_t Date();
  void Append(const std::string& topic, Record record, int64_t transaction);

  World& world_;
  Broker& broker_;
  const Schedule& schedule_;
  const std::vector<std::string> topics_;
  const bool is_routed_;
  int records_;
  int sent_ = 0;
  int sent_before_ = 0;            // to the former topic
  std::vector<int64_t> times_ms_;  // of the sendings
  int64_t events_ = 0;
  int64_t bad_clock_ = 0;
  absl::Duration bad_until_;
  absl::Duration ahead_;
  absl::Duration fast_until_;
  int open_transactions_ = 0;
};

}  // namespace lethe::simulation

#endif  // LETHE_TESTS_SIMULATION_INPUT_H_
