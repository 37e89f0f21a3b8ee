// A cluster in memory: logs, the positions of a group, and an output with transactions. What a source and a
// sink are to the pipeline, without a broker.
#ifndef LETHE_TESTS_SUPPORT_FAKE_CLUSTER_H_
#define LETHE_TESTS_SUPPORT_FAKE_CLUSTER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/pipeline/options/options.h"
#include "src/pipeline/output/sink.h"
#include "src/pipeline/task/cluster.h"
#include "src/pipeline/task/source.h"

namespace lethe::test {

using Headers = std::vector<std::pair<std::string, std::string>>;

// A number alone is a partition of the first topic.
struct At : TopicPartition {
  At(int32_t id) : TopicPartition{0, id} {}      // NOLINT(google-explicit-constructor)
  At(TopicPartition of) : TopicPartition(of) {}  // NOLINT(google-explicit-constructor)
  At(int32_t of_flow, int32_t id) : TopicPartition{of_flow, id} {}
  friend bool operator==(const At& x, const At& y) { return x.flow == y.flow && x.partition == y.partition; }
};

struct FakeRecord {
  std::optional<std::string> key;
  std::optional<std::string> value;
  int64_t timestamp_ms = -1;
  Headers headers = {};
};

// An entry of a log.
struct FakeEntry {
  enum class Kind {
    kRecord,
    kControl,     // a marker of a transaction, which no reader sees
    kUnreadable,  // a batch of one offset that cannot be fetched
  };
  Kind kind = Kind::kRecord;
  FakeRecord record = {};
};

// Thread safety: none. All is public, since tests arrange it and look at it.
struct FakeCluster {
  struct Log {
    int64_t start = 0;  // the offset of the first entry
    std::vector<FakeEntry> entries;
    int64_t end() const { return start + static_cast<int64_t>(entries.size()); }
  };
  struct Written {
    Target target;
    int32_t partition = 0;
    FakeRecord record;
  };

  int64_t Append(At partition, FakeRecord record) {
    logs[partition].entries.push_back({FakeEntry::Kind::kRecord, std::move(record)});
    return logs[partition].end() - 1;
  }
  void AppendOther(At partition, FakeEntry::Kind kind) { logs[partition].entries.push_back({kind}); }
  // As retention does.
  void DeleteBefore(At partition, int64_t offset);

  std::map<At, Log> logs;
  std::map<At, Position> committed;
  std::vector<Written> output;  // committed, in the order of the commits
  absl::StatusOr<int32_t> output_partitions = 1;
  std::string smallest_output = "unique";  // the topic that has so many
  RecordRules output_rules;                // by which the output refuses values for their size
};

class FakeSource;

// A group of such sources, between which it divides the partitions of the first topic. Thread safety: none.
class FakeGroup {
 public:
  FakeGroup(int32_t partitions, bool is_cooperative)
      : partitions_(partitions), is_cooperative_(is_cooperative) {}

  void Join(FakeSource& source);
  void Leave(FakeSource& source);
  // The member was silent for too long; it hears of that, and joins again when it has answered.
  void Expel(FakeSource& source);
  // The member has answered what it was told.
  void Answered(FakeSource& source);
  bool is_cooperative() const { return is_cooperative_; }
  // -1: it is no member.
  int GenerationOf(const FakeSource& source) const;

 private:
  struct Member {
    FakeSource* source;
    std::set<int32_t> owned = {};
    bool is_told = false;  // and has not answered
    bool is_expelled = false;
  };
  Member* Find(const FakeSource& source);
  void Tell(Member& member, SourceEvent::Kind kind, const std::set<int32_t>& partitions);
  void Rebalance();
  void Distribute();

  const int32_t partitions_;
  const bool is_cooperative_;
  std::vector<Member> members_;
  int generation_ = 0;
  enum class State { kStable, kRevoking, kAssigning } state_ = State::kStable;
  bool again_ = false;
};

// Reads the partitions that were assigned to it, in turns.
class FakeSource final : public Source {
 public:
  // Without a group tests say what is assigned.
  explicit FakeSource(FakeCluster& cluster, FakeGroup* group = nullptr) : cluster_(cluster), group_(group) {}

  absl::Status Open() override;
  void Leave() override;
  absl::Status Resubscribe() override {
    ++resubscriptions;
    return absl::OkStatus();
  }
  absl::Status Rejoin() override {
    ++rejoins;
    return absl::OkStatus();
  }
  absl::Status Reopen() override;
  void StayAlive() override {}
  absl::Duration session_timeout() const override { return absl::Seconds(45); }
  const std::string& member_id() const override { return member_id_; }
  void Assign(const std::vector<const Task*>& tasks) override;
  void Unassign(const std::vector<TopicPartition>& partitions) override;
  bool TakeGeneration() override;
  void Reassign(const Task& task, const Tasks& all) override;
  int64_t HighWatermark(TopicPartition partition) const override { return cluster_.logs[partition].end(); }
  bool IsLost() const override { return lost; }

  // The next poll delivers the event.
  void Tell(SourceEvent::Kind kind, const std::vector<At>& partitions) {
    told.push_back({.kind = kind, .partitions = {partitions.begin(), partitions.end()}});
  }
  // Whether commits are of the group's present generation.
  bool IsInGroup() const { return group_ == nullptr || group_->GenerationOf(*this) == generation_; }

  std::deque<SourceEvent> told;     // and not delivered yet
  std::map<At, int64_t> positions;  // where each assigned partition is read on
  std::set<At> paused;
  std::vector<std::pair<At, int64_t>> seeks;
  bool lost = false;
  bool left = false;
  int rejoins = 0;
  int reopenings = 0;
  int resubscriptions = 0;
  // Called at the beginning of each Poll, and when there is nothing to read.
  std::function<void()> on_poll;
  std::function<void()> on_idle;

 private:
  void PollBatch(absl::Duration timeout, size_t limit, size_t most_bytes) override;
  void ReleaseBatch() override;
  void MoveTo(const Task& task, int64_t offset) override;
  void Pause(const Task& task, bool paused) override;
  void AddEvent(TopicPartition partition, int64_t offset, SourceEvent::Kind kind, const std::string& why);

  FakeCluster& cluster_;
  FakeGroup* const group_;
  const std::string member_id_ = "member";
  int generation_ = -1;
  // Of the batch.
  std::deque<FakeRecord> records_;
  std::deque<std::unique_ptr<InputHeaders>> headers_;
  std::deque<SourceEvent> events_;
  std::set<At> at_end_;  // of which that was said
  std::set<At> gone_;    // not read until they are assigned again, as it was said
};

// Answers of the cluster in memory to a group that reads the inputs of these flows.
class FakeAnswers final : public Cluster {
 public:
  FakeAnswers(FakeCluster& cluster, const Flows& flows, int32_t of_input)
      : partitions(of_input), cluster_(cluster), flows_(flows) {}

  ByTopic<CommittedOffsets> AskCommitted(const std::map<std::string, int32_t>& counts) override;
  ByTopic<Logs> AskLogs(const std::map<std::string, std::vector<int32_t>>& of) override;
  absl::StatusOr<std::vector<absl::Time>> AskTimes(const std::vector<LogPlace>& places) override;
  ByTopic<int32_t> CountPartitions(const std::vector<std::string>& topics) override;
  std::map<std::string, std::string> TopicIds(const std::vector<std::string>& topics) override;
  absl::Status ReadTotals(const std::string& topic, const std::vector<int32_t>& of,
                          const std::function<void(const InputRecord&)>& see, const GoOn& go_on) override;

  int32_t partitions;                              // of each input
  std::string topic_id;                            // likewise
  std::map<std::string, absl::Status> bad_topics;  // the answer about each of these
  int questions = 0;

 private:
  absl::Status StatusOf(const std::string& topic) const {
    const auto bad = bad_topics.find(topic);
    return bad == bad_topics.end() ? absl::OkStatus() : bad->second;
  }
  FakeCluster::Log& LogOf(const std::string& topic, int32_t partition) {
    return cluster_.logs[{flows_.Find(topic)->number, partition}];
  }

  FakeCluster& cluster_;
  const Flows& flows_;
};

// Writes to the cluster's output at the commit. What is to fail fails once, or as often as it is said.
class FakeSink final : public Sink {
 public:
  // A commit needs a member of the group, if there is a group.
  explicit FakeSink(FakeCluster& cluster, const FakeSource* member = nullptr)
      : cluster_(cluster), member_(member) {}

  absl::Status Open(OutputLimits limits) override;
  absl::Status Begin() override;
  absl::Status Write(const OutputRecord& record) override;
  Failure Poll() override { return report_.failure; }
  Outcome Commit(const std::vector<Position>& positions) override;
  Outcome Abort() override;
  const TransactionReport& report() const override { return report_; }
  TransactionSize size() const override;
  std::map<int32_t, TransactionSize> SizeByFlow() const override;
  absl::Duration timeout() const override { return transaction_timeout; }
  int64_t batch_bytes() const override { return 1'000'000; }
  absl::StatusOr<SmallestTopic> CountPartitions(int32_t /*flow*/) override {
    if (!cluster_.output_partitions.ok()) return cluster_.output_partitions.status();
    return SmallestTopic{cluster_.smallest_output, *cluster_.output_partitions};
  }
  absl::StatusOr<RecordRules> AskRules(int32_t /*flow*/) override { return cluster_.output_rules; }
  bool NeedsNewMember() const override { return needs_new_member; }
  void OnNewMember() override { needs_new_member = false; }

  // Records that the output refuses for good, of which it hears when it commits.
  std::function<bool(const FakeRecord&)> refuses;
  std::function<void()> on_commit;  // as it begins
  std::set<int32_t> bad_outputs;    // flows whose topics fail transactions
  std::map<int32_t, int64_t>
      bytes_per_second;  // that the outputs of these flows take; others take all at once
  absl::Duration transaction_timeout = absl::InfiniteDuration();
  int fail_writes = 0;   // that many fail
  int fail_commits = 0;  // that many abort, and nothing is out
  int lose_answers = 0;  // that many commit, and the answer is lost
  int lose_commits = 0;  // that many abort, and the answer is lost
  bool needs_new_member = false;
  int begun_too_early = 0;  // that many transactions, while it needed one
  bool is_fenced = false;   // the instance that commits now is no member any more
  int commits = 0;
  int aborts = 0;
  bool is_open = false;

 private:
  FakeCluster& cluster_;
  const FakeSource* const member_;
  TransactionReport report_;
  std::vector<FakeCluster::Written> pending_;
  std::vector<RecordPlace> places_;
};

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_FAKE_CLUSTER_H_
