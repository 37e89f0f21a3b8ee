#include "tests/simulation/snapshot_log.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace lethe::simulation {
namespace {

constexpr absl::Duration kFlushAgainAfter = absl::Milliseconds(100);
constexpr absl::Duration kFlushPatience = absl::Seconds(30);

// A tombstone ends what has its key; the log is short.
void Compact(Log& log, const std::string& key) {
  for (int64_t at = log.start(); at < log.end(); ++at) {
    const Entry& entry = log.at(at);
    if (entry.kind == Entry::Kind::kRecord && entry.record.key == key) log.Compact(at);
  }
}

}  // namespace

absl::Status SimulatedSnapshotLog::Send(const NewRecord& record, const GoOn& /*go_on*/) {
  Record& sent = on_their_way_.emplace_back();
  sent.key = record.key;
  if (record.value) sent.value = std::string(*record.value);
  sent.timestamp_ms = absl::ToUnixMillis(record.time);
  sent.partition = record.partition;
  thread_.Pass();
  return absl::OkStatus();
}

absl::Status SimulatedSnapshotLog::Flush(const GoOn& go_on) {
  for (absl::Duration waited; !on_their_way_.empty();) {
    Log* const log = broker_.FindLog(topic_, on_their_way_.front().partition);
    if (!is_up() || log == nullptr) {
      if (!go_on() || waited >= kFlushPatience) {
        on_their_way_.clear();
        return absl::UnavailableError(absl::StrCat("writing to ", topic_));
      }
      thread_.Sleep(kFlushAgainAfter);
      waited += kFlushAgainAfter;
      continue;
    }
    Record record = std::move(on_their_way_.front());
    on_their_way_.pop_front();
    if (!record.value) Compact(*log, *record.key);
    log->Append({.record = std::move(record)});
    thread_.Pass();
  }
  return absl::OkStatus();
}

absl::Status SimulatedSnapshotLog::Scan(int32_t partition, absl::Time from, const GoOn& go_on,
                                        const See& see) const {
  thread_.Pass();
  if (!is_up()) return absl::UnavailableError(absl::StrCat("reading ", topic_));
  const Log* log = broker_.FindLog(topic_, partition);
  if (log == nullptr) return absl::NotFoundError(absl::StrCat("there is no topic ", topic_));
  const int64_t end = log->end();
  const int64_t from_ms = absl::ToUnixMillis(from);
  bool has_begun = false;
  for (int64_t at = log->start(); at < end; ++at) {
    const Entry& entry = log->at(at);
    if (entry.kind != Entry::Kind::kRecord) continue;
    has_begun = has_begun || entry.record.timestamp_ms >= from_ms;
    if (!has_begun) continue;
    thread_.Pass();
    if (!go_on()) return absl::CancelledError(absl::StrCat("reading ", topic_, " was cancelled"));
    if (entry.kind != Entry::Kind::kRecord) continue;  // compacted meanwhile
    if (!see(*entry.record.key, entry.record.value)) break;
  }
  return absl::OkStatus();
}

void DamageSnapshots(Broker& broker, const std::string& topic, uint64_t number) {
  if (broker.Find(topic) == nullptr) return;
  for (auto& log : broker.topic(topic).logs) {
    for (int64_t at = log->start(); at < log->end(); ++at) {
      const Entry& entry = log->at(at);
      if (entry.kind != Entry::Kind::kRecord || entry.record.value.value_or("").empty()) continue;
      number = number * 6364136223846793005 + 1442695040888963407;
      std::string value = *entry.record.value;
      if (number >> 63 == 0) {
        value[(number >> 20) % value.size()] ^= static_cast<char>(1 << (number >> 10) % 8);
      } else {
        value.resize((number >> 20) % value.size());
      }
      log->Damage(at, std::move(value));
    }
  }
}

void LoseSnapshots(Broker& broker, const std::string& topic) {
  if (broker.Find(topic) == nullptr) return;
  for (auto& log : broker.topic(topic).logs) log->DeleteBefore(log->end());
}

}  // namespace lethe::simulation
