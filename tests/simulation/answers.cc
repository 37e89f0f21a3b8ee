#include "tests/simulation/answers.h"

#include <algorithm>
#include <deque>
#include <memory>

#include "tests/simulation/source.h"

namespace lethe::simulation {
namespace {

constexpr absl::Duration kAskAgainAfter = absl::Milliseconds(20);

absl::Status Away() { return absl::UnavailableError("no broker answers"); }

}  // namespace

absl::StatusOr<std::vector<CommittedOffset>> Answers::Committed(const std::string& topic, int32_t count) {
  thread_.Pass();
  if (is_away()) return Away();
  auto committed = group_.Committed(topic, count);
  thread_.Pass();
  return committed;
}

absl::StatusOr<LogState> Answers::Log(const std::string& topic, int32_t partition) {
  thread_.Pass();
  if (is_away()) return Away();
  const auto* const log = broker_.FindLog(topic, partition);
  if (log == nullptr) return absl::NotFoundError("no such partition");
  return LogState{log->start(), log->stable_end()};
}

absl::StatusOr<absl::Time> Answers::TimeAt(const std::string& topic, int32_t partition, int64_t offset) {
  thread_.Pass();
  if (is_away()) return Away();
  const auto* const log = broker_.FindLog(topic, partition);
  if (log == nullptr) return absl::NotFoundError("no such partition");
  for (int64_t at = std::max(offset, log->start()); at < log->stable_end(); ++at) {
    if (log->at(at).kind == Entry::Kind::kRecord) {
      return absl::FromUnixMillis(log->at(at).record.timestamp_ms);
    }
  }
  return absl::InfiniteFuture();
}

absl::StatusOr<int32_t> Answers::CountPartitions(const std::string& topic) {
  thread_.Pass();
  if (is_away()) return Away();
  if (broker_.Find(topic) == nullptr) return absl::NotFoundError("no such topic");
  return broker_.CountPartitions(topic);
}

std::string Answers::TopicId(const std::string& name) {
  thread_.Pass();
  const Topic* const topic = is_away() ? nullptr : broker_.Find(name);
  return topic == nullptr ? "" : topic->id;
}

absl::Status Answers::ReadTotals(const std::string& topic, const std::vector<int32_t>& partitions,
                                 const std::function<void(const InputRecord&)>& see, const GoOn& go_on) {
  thread_.Pass();
  if (is_away()) return Away();
  std::deque<std::unique_ptr<InputHeaders>> headers;
  for (const int32_t partition : partitions) {
    const lethe::simulation::Log& log = *broker_.topic(topic).logs.at(static_cast<size_t>(partition));
    const int64_t end = log.end();
    for (int64_t next = log.start(); next < end;) {
      if (next >= log.stable_end()) {
        thread_.Sleep(kAskAgainAfter);
        if (!go_on()) return absl::CancelledError("stopped");
        continue;
      }
      const Entry& entry = log.at(next);
      if (entry.kind == Entry::Kind::kRecord && broker_.is_committed(entry.transaction)) {
        see(ViewOf(entry.record, {0, partition}, next, headers));
      }
      ++next;
    }
  }
  thread_.Pass();
  return absl::OkStatus();
}

}  // namespace lethe::simulation
