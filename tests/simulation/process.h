// One life of an instance: its lanes, with what they share.
#ifndef LETHE_TESTS_SIMULATION_PROCESS_H_
#define LETHE_TESTS_SIMULATION_PROCESS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/pipeline/assign/instance_claim.h"
#include "src/pipeline/publish/log_ends.h"
#include "src/pipeline/worker.h"
#include "tests/simulation/answers.h"
#include "tests/simulation/broker.h"
#include "tests/simulation/group.h"
#include "tests/simulation/schedule.h"
#include "tests/simulation/shelf.h"
#include "tests/simulation/sink.h"
#include "tests/simulation/source.h"
#include "tests/simulation/thread.h"

namespace lethe::simulation {

inline constexpr absl::Time kBegin = absl::FromUnixSeconds(1'700'000'000);
inline constexpr char kInput[] = "input";
inline constexpr char kOutput[] = "output";
inline constexpr char kDeltas[] = "deltas";
inline constexpr char kTotals[] = "totals";
inline constexpr size_t kOutputTakesBytes = 200;

// What all processes of a schedule are told.
DaemonOptions OptionsOf(const Schedule& schedule, int instance);

// Destroying it is a crash, unless it has ended.
class Process {
 public:
  struct Site {
    World& world;
    Broker& broker;
    Group& group;
    Shelf& shelf;
    const Schedule& schedule;
    std::function<bool()> is_cut;  // off from the brokers
  };
  Process(const Site& site, int instance, std::function<void()> on_end);
  ~Process();

  void Stop();
  void Freeze(absl::Duration duration);
  // Its clients go on without it.
  void Stall(absl::Duration duration);
  // Its first lane dies at a call, and the process with it: `on_death` destroys it.
  void DieIn(int64_t calls, std::function<void()> on_death);
  // There is something to read.
  void Wake();
  bool is_dead() const;
  bool has_ended() const { return running_ == 0; }
  absl::Status fatal() const;
  void Expel();
  void LoseAnswers(int commits);
  void RefuseCommits(int commits);
  // Partitions that are stopped, and why.
  std::string Problems() const;

 private:
  struct Lane;

  void RunSnapshots();

  const Site site_;
  const std::function<void()> on_end_;
  const DaemonOptions options_;
  ProcessClock clock_;
  StopFlag stop_;
  Connection connection_;
  InstanceClaim claim_;
  Flows flows_;
  Flow& flow_;
  KeptPartitions kept_;
  LogEnds ends_;
  std::unique_ptr<Shared> shared_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  Thread snapshot_thread_;
  std::unique_ptr<Actor> snapshot_actor_;
  int running_ = 0;
  absl::Duration frozen_until_;
};

}  // namespace lethe::simulation

#endif  // LETHE_TESTS_SIMULATION_PROCESS_H_
