// The input of a worker, from the cluster in memory.
#ifndef LETHE_TESTS_SIMULATION_SOURCE_H_
#define LETHE_TESTS_SIMULATION_SOURCE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/pipeline/options/options.h"
#include "src/pipeline/task/asides.h"
#include "src/pipeline/task/source.h"
#include "tests/simulation/broker.h"
#include "tests/simulation/group.h"
#include "tests/simulation/thread.h"

namespace lethe::simulation {

class SimulatedSource final : public Source {
 public:
  SimulatedSource(const DaemonOptions& options, const Flows& flows, int lane, Broker& broker, Group& group,
                  const Connection& connection, Thread& thread);

  absl::Status Open() override;
  void Leave() override;
  absl::Status Resubscribe() override;
  absl::Status Rejoin() override;
  absl::Status Reopen() override;
  void StayAlive() override { thread_.Pass(); }
  void Assign(const std::vector<const Task*>& tasks) override;
  void Unassign(const std::vector<TopicPartition>& partitions) override;
  bool TakeGeneration() override;
  void Reassign(const Task& task, const Tasks& all) override;
  int64_t HighWatermark(TopicPartition partition) const override;
  bool IsLost() const override { return client_.is_lost(); }
  absl::Duration session_timeout() const override { return group_.options().session_timeout; }
  const std::string& member_id() const override { return taken_member_; }

  GroupClient& client() { return client_; }
  Group& group() { return group_; }
  bool is_connected() const { return connection_.is_up(); }
  // Those of the last TakeGeneration().
  int generation() const { return taken_generation_; }
  const std::string& commit_member() const { return commit_member_; }
  // It has something new to read.
  void Wake() { thread_.Wake(); }

 private:
  struct Position {
    int64_t next = 0;
    int64_t sought = 0;  // as the worker has told it last: the client may have gone back a little
    bool is_paused = false;
    bool has_said_end = false;
    bool is_gone = false;    // the log has no such offset: nothing is read until it is assigned again
    int64_t known_end = 0;   // as last fetched
    size_t truncations = 0;  // of the log, of which the client knows
  };
  void PollBatch(absl::Duration timeout, size_t limit, size_t most_bytes) override;
  void ReleaseBatch() override;
  void MoveTo(const Task& task, int64_t offset) override;
  void Pause(const Task& task, bool paused) override;
  void SetAside(const Task& task, absl::Span<const InputRecord> records) override;
  void Wait(Task& task) override;
  void TakeBack(Task& task) override;

  // What one fetch has brought: a record, or an event of the partition.
  struct Fetched {
    MessagePlace place;
    const Record* record = nullptr;
    std::optional<SourceEvent> event = std::nullopt;
  };
  using FetchedPtr = std::unique_ptr<Fetched>;
  friend class Asides<FetchedPtr, SimulatedSource>;
  static MessagePlace PlaceOf(const FetchedPtr& fetched) { return fetched->place; }
  void StopFetching(TopicPartition partition);
  void FetchAgain(TopicPartition partition, std::optional<int64_t> offset);
  void Add(FetchedPtr fetched);
  bool TakeEvent();
  void TakeEventAndFetch(size_t limit);
  void Fetch(size_t limit);
  void FetchFrom(TopicPartition partition, Position& position, size_t limit);
  Position PositionAt(const Task& task) const;
  // Adds it to the batch, unless others of the partition are to come first.
  void Bring(TopicPartition partition, int64_t offset, const Record* record,
             std::optional<SourceEvent> event = std::nullopt);
  const std::string& TopicOf(TopicPartition partition) const {
    return flows_.at(partition.flow).options.input;
  }
  std::set<std::string> Topics() const;

  const DaemonOptions& options_;
  const Flows& flows_;
  Broker& broker_;
  Group& group_;
  const Connection& connection_;
  Thread& thread_;
  GroupClient client_;
  const std::string static_id_;
  std::map<TopicPartition, Position> positions_;
  std::string taken_member_;
  std::string commit_member_;  // empty: it was none
  int taken_generation_ = -1;
  Asides<FetchedPtr, SimulatedSource> asides_;
  std::vector<FetchedPtr> fetched_;                    // of the batch
  std::deque<SourceEvent> events_;                     // likewise
  std::deque<std::unique_ptr<InputHeaders>> headers_;  // likewise
};

// A record as the pipeline sees it. `headers` are kept there.
InputRecord ViewOf(const Record& record, TopicPartition partition, int64_t offset,
                   std::deque<std::unique_ptr<InputHeaders>>& headers);

}  // namespace lethe::simulation

#endif  // LETHE_TESTS_SIMULATION_SOURCE_H_
