// What is asked of the brokers, asked by a client of librdkafka.
#ifndef LETHE_CONNECTORS_KAFKA_GROUP_BROKER_CLIENT_H_
#define LETHE_CONNECTORS_KAFKA_GROUP_BROKER_CLIENT_H_

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "connectors/kafka/client/client.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/preflight/brokers.h"

namespace lethe::kafka {

class BrokerClient final : public Brokers {
 public:
  // InvalidArgument: librdkafka refuses a property.
  static absl::StatusOr<std::unique_ptr<BrokerClient>> Make(const DaemonOptions& options,
                                                            Isolation isolation);

  absl::Status LastError() override { return errors_.Last(client()); }
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
  explicit BrokerClient(std::string group) : group_(std::move(group)) {}
  rd_kafka_t* client() const { return client_.get(); }
  // The answer; if there is none, with the reason that the connections give.
  template <class Answer>
  absl::StatusOr<Answer> Explained(absl::StatusOr<Answer> answer) {
    if (!answer.ok()) answer = Explained(answer.status());
    return answer;
  }
  absl::Status Explained(const absl::Status& status) { return errors_.Explain(client(), status); }

  const std::string group_;
  ClientErrors errors_;  // outlives the client
  ClientPtr client_;
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_GROUP_BROKER_CLIENT_H_
