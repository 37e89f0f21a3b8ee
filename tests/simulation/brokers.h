// What a process asks of the cluster in memory, beside its lanes.
#ifndef LETHE_TESTS_SIMULATION_BROKERS_H_
#define LETHE_TESTS_SIMULATION_BROKERS_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "src/pipeline/preflight/brokers.h"
#include "tests/simulation/broker.h"
#include "tests/simulation/group.h"
#include "tests/simulation/thread.h"

namespace lethe::simulation {

// The time of the first record at or after a place; InfiniteFuture: there is none.
absl::Time TimeOfNext(const Log& log, int64_t offset);
// The same as a reader with read_committed sees it.
absl::Time TimeOfNextCommitted(const Broker& broker, const Log& log, int64_t offset);

class SimulatedBrokers final : public Brokers {
 public:
  SimulatedBrokers(Broker& broker, Group& group, const Connection& connection, Isolation isolation,
                   Thread& thread)
      : broker_(broker), group_(group), connection_(connection), isolation_(isolation), thread_(thread) {}

  absl::Status LastError() override { return absl::OkStatus(); }
  absl::StatusOr<int> CountBrokers() override;
  absl::StatusOr<std::map<std::string, int32_t>> ListTopics() override;
  absl::StatusOr<int32_t> CountPartitions(const std::string& topic) override;
  absl::StatusOr<TopicFacts> DescribeTopic(const std::string& topic) override;
  absl::Status CreateTopic(const TopicFacts& topic, bool validate_only) override;
  ByTopic<std::vector<CommittedOffset>> AskCommittedOf(
      const std::map<std::string, int32_t>& partitions) override;
  absl::StatusOr<EndsByTopic> AskOffsets(const PartitionsByTopic& partitions, absl::Time at,
                                         absl::Duration timeout) override;
  absl::StatusOr<OffsetRange> AskBounds(const std::string& topic, int32_t partition) override;
  absl::StatusOr<std::vector<absl::Time>> AskTimes(const std::vector<LogPlace>& places) override;
  absl::Status Read(const std::string& topic, const std::map<int32_t, OffsetRange>& ranges,
                    absl::Duration patience, const std::function<void(const InputRecord&)>& see) override;
  absl::StatusOr<std::vector<NamedMember>> AskMembers() override;
  absl::StatusOr<Answers> DeleteRecords(const EndsByTopic& below) override;

 private:
  // Every call begins with this. Unavailable: no broker answers.
  absl::Status Ask();
  // NotFound: there is no such topic.
  absl::StatusOr<const Topic*> AskOf(const std::string& topic);
  int64_t EndOf(const Log& log) const {
    return isolation_ == Isolation::kReadCommitted ? log.stable_end() : log.end();
  }

  Broker& broker_;
  Group& group_;
  const Connection& connection_;
  const Isolation isolation_;
  Thread& thread_;
};

}  // namespace lethe::simulation

#endif  // LETHE_TESTS_SIMULATION_BROKERS_H_
