// One life of an instance: its lanes, deduplicators and routers, with what they share.
#ifndef LETHE_TESTS_SIMULATION_PROCESS_H_
#define LETHE_TESTS_SIMULATION_PROCESS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/pipeline/assign/instance_claim.h"
#include "src/pipeline/output/source_pace.h"
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
    Shelf& shelf;
    const Schedule& schedule;
    std::function<bool()> is_cut;  // off from the brokers
    bool lacks_memory = false;     // else it has enough for all filters
    // A partition of an input that is routed to this topic is not waited for any longer.
    std::function<void(const std::string& topic)> on_passed_over = {};
  };
  Process(const Site& site, int instance, std::function<void()> on_end);
  ~Process();

  void Stop();
  void Freeze(absl::Duration duration);
  // Its clients go on without it.
  void Stall(absl::Duration duration);
  // The first lane of a stage dies at a call, and the process with it: `on_death` destroys it.
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
  struct Stage;

  void RunSnapshots();
  // As connectors/kafka/repartition/source_feed.h does.
  void RunFeed();
  bool Ask(const Stage& stage, const Flow& flow);
  // Adds flows for topics that are there; those to come are looked for later.
  void LookForTopics();
  DaemonOptions OptionsFor(int topic) const;
  void AddTopic(const DaemonOptions& options);
  void AddFlow(Stage& stage, const DaemonOptions& options);
  void SeePassedOver(const Stage& stage, const Lane& lane) const;
  // The first lane of one of its stages.
  Lane& OneOf(int64_t number) const;
  template <class See>
  void ForEachLane(const See& see) const;

  const Site site_;
  const std::function<void()> on_end_;
  const int instance_;
  const DaemonOptions options_;  // of the process: those of its first topic
  ProcessClock clock_;
  StopFlag stop_;
  Connection connection_;
  std::unique_ptr<DedupStage> memory_;                             // all topics share it
  std::map<std::string, std::unique_ptr<RoutedSources>> sources_;  // by the topic to which they are routed
  std::vector<std::unique_ptr<Stage>> stages_;                     // the deduplicators, and the routers
  Thread snapshot_thread_;
  std::unique_ptr<Actor> snapshot_actor_;
  Thread feed_thread_;
  std::unique_ptr<Actor> feed_actor_;
  int running_ = 0;
  absl::Duration frozen_until_;
  std::shared_ptr<Process*> self_;  // null inside once it has ended
};

}  // namespace lethe::simulation

#endif  // LETHE_TESTS_SIMULATION_PROCESS_H_
