// One life of an instance: the daemon as it is, on the simulation's threads and its cluster.
#ifndef LETHE_TESTS_SIMULATION_PROCESS_H_
#define LETHE_TESTS_SIMULATION_PROCESS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/pipeline/daemon/daemon.h"
#include "tests/simulation/broker.h"
#include "tests/simulation/connector.h"
#include "tests/simulation/group.h"
#include "tests/simulation/schedule.h"
#include "tests/simulation/thread.h"

namespace lethe::simulation {

inline constexpr absl::Time kBegin = absl::FromUnixSeconds(1'700'000'000);
inline constexpr size_t kOutputTakesBytes = 200;

// Of a topic of the schedule, by its number: the inputs, and what is written.
struct TopicNames {
  TopicNames(const Schedule& schedule, int topic);
  std::vector<std::string> written() const { return {output, deltas, totals}; }

  std::string input;                // the first
  std::vector<std::string> inputs;  // several are merged
  std::string judged;               // the input, or the topic to which the inputs are routed
  std::string output;
  std::string deltas;
  std::string totals;
};

// Of what is written, by Schedule::names_input.
inline constexpr char kInputHeader[] = "from";

// Empty: it writes none.
std::string SnapshotTopicOf(const Schedule& schedule, int instance);

// A topic that matches a pattern of the processes, by which it is written to the same output as the topic, or
// into the topic itself. There are names that come before the topic's, and such that come after it.
std::string StrangerOf(const std::string& topic, bool shares_output, bool comes_first);
// The patterns of a schedule with strangers.
std::vector<DaemonOptions> PatternsOf(const DaemonOptions& options);

// What a process is told of a topic.
DaemonOptions OptionsOf(const Schedule& schedule, int instance, int topic, const TopicNames& names);

// Destroying it is a crash, unless it has ended.
class Process {
 public:
  struct Site {
    World& world;
    Broker& broker;
    Group& group;
    Group* routing_group;  // null: there are no routers
    const Schedule& schedule;
    std::function<bool()> is_cut;  // off from the brokers
    bool lacks_memory = false;     // else it has enough for all filters
    bool accepts_output = true;    // also where it has records, and the group no offsets
  };
  Process(const Site& site, int instance, std::function<void()> on_end);
  ~Process();

  void Stop();
  void Freeze(absl::Duration duration);
  // Its clients go on without it.
  void Stall(absl::Duration duration);
  // One of its threads dies at a call, and the process with it: `on_death` destroys it.
  void DieIn(int64_t calls, std::function<void()> on_death);
  // There is something to read.
  void Wake();
  bool is_dead() const;
  bool has_ended() const { return ended_.has_value(); }
  // How it has ended.
  absl::Status fatal() const { return ended_.value_or(absl::OkStatus()); }
  void Expel();
  void LoseAnswers(int commits);
  void RefuseCommits(int commits);
  DaemonReport Report() const { return daemon_ == nullptr ? DaemonReport() : daemon_->Report(); }
  // What it reports: partitions that are stopped, and what it waits for.
  std::string Problems() const;
  // Whether ids are judged whose commit it does not know of, or records are to be read as far as it has said:
  // a lane that waits for an answer says nothing new.
  bool HasPending() const;

 private:
  DaemonOptions OptionsFor(int topic) const;
  absl::StatusOr<std::unique_ptr<Daemon>> MakeDaemon();
  // The first lane of one of its stages; null: none has begun.
  SimulatedConnector::LaneClients* OneOf(int64_t number) const;

  const Site site_;
  const int instance_;
  ProcessClock clock_;
  Connection connection_;
  SimulatedConnector* connector_ = nullptr;  // the daemon's
  std::unique_ptr<Daemon> daemon_;
  std::optional<absl::Status> ended_;
  absl::Duration frozen_until_;
};

}  // namespace lethe::simulation

#endif  // LETHE_TESTS_SIMULATION_PROCESS_H_
