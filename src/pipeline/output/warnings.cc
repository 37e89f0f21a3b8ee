#include "src/pipeline/output/warnings.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "src/pipeline/report/remarks.h"

namespace lethe {
namespace {

// Records after which a topic may look unkeyed.
constexpr int64_t kSeenUnkeyed = 1000;

constexpr absl::Duration kAskExpiredEvery = absl::Minutes(1);
constexpr absl::Duration kSayExpiredEvery = absl::Hours(1);

}  // namespace

Warnings::Warnings(const Flow& flow, const WorkerState& state)
    : options_(flow.options),
      lane_(state.lane),
      partitions_(flow.topics.partitions),
      clock_(state.clock),
      id_reads_key_(options_.record.id.reads_key()),
      id_reads_value_(options_.record.id.reads_value()) {
  if (options_.scope == Scope::kPartition && partitions_ > 1) keys_.emplace();
}

void Warnings::OfMissingIds(const std::vector<Task*>& committed) {
  int64_t records = 0;
  int64_t without_id = 0;
  for (const Task* task : committed) {
    const RecordCounts& counts = task->open_counts();
    records += counts.unique + counts.duplicate + counts.missing_id + counts.malformed;
    without_id += counts.missing_id + counts.malformed;
  }
  const auto found = ids_.Add(records, without_id, clock_.Steady());
  if (!found) return;
  spdlog::warn(
      "lane {}: {} of the last {} records have no usable id at {} and are not deduplicated (on_missing_id, "
      "on_malformed): {}; correct `id`, or the producer of these records",
      lane_, found->without_id, found->records, options_.record.id.ToString(), found->reason);
}

void Warnings::OfTimes() {
  const auto found = times_.Take(clock_.Steady());
  // Routed records keep their times, and the other half says so.
  if (found && !options_.half.routing) spdlog::warn("{}", TimesRemark(options_.input, *found));
}

bool Warnings::OfExpired(const std::vector<Task*>& committed) {
  const Task* expiring = nullptr;
  for (Task* task : committed) {
    const RecordCounts& counts = task->open_counts();
    task->expiry().Add(counts.passed + counts.tagged, counts.expired);
    if (counts.expired > 0 && task->expiry().most()) expiring = task;
  }
  if (expiring == nullptr) return false;
  const absl::Time now = clock_.Steady();
  if (now >= next_expired_line_) {
    next_expired_line_ = now + kSayExpiredEvery;
    spdlog::warn("{}", ExpiryRemark(expiring->Name(), options_.output, *expiring->expiry().most()));
  }
  if (now < next_expired_) return false;
  next_expired_ = now + kAskExpiredEvery;
  return true;
}

void Warnings::OfFilter(Task& task, const PartitionReport& report) {
  if (const auto remark = LostIdsRemark(report); remark && task.WarnOfLostIds()) spdlog::warn("{}", *remark);
  const auto jump = DuplicatesRemark(report);
  if (task.SetDuplicatesJumped(jump.has_value())) {
    jump ? spdlog::warn("{}", *jump)
         : spdlog::info("{}: its share of duplicates is as usual again", task.Name());
  }
  const auto remark = MemoryRemark(report);
  if (!remark || !task.WarnOfMemory()) return;
  if (const auto like_it = memory_warnings_.Next(clock_.Steady())) spdlog::warn("{}{}", *remark, *like_it);
}

void Warnings::OfUnlisted(Task& task) {
  const int64_t more = task.TakeUnlisted();
  if (more == 0) return;
  unlisted_ += more;
  const auto like_it = unlisted_warnings_.Next(clock_.Steady());
  if (!like_it) return;
  spdlog::warn(
      "{}: the commit metadata has no room for all undeliverable records ({} so far): after a restart, "
      "retries of the oldest are taken for copies until the horizon has passed{}",
      task.Name(), unlisted_, *like_it);
}

void Warnings::SeeFrames(const InputRecord& record) {
  if (!record.key) return;
  const std::optional<int32_t> of_key = SchemaIdOf(*record.key);
  const absl::string_view key = of_key ? record.key->substr(kFrameBytes) : *record.key;
  if (of_key && id_reads_key_) key_frames_.See(key, *of_key);
  if (!id_reads_value_ || !record.value) return;
  if (const auto of_value = SchemaIdOf(*record.value)) value_frames_.See(key, *of_value);
}

void Warnings::OfFrames(FrameWatch& watch, const char* what, absl::string_view remedy) {
  const auto found = watch.Take(clock_.Steady());
  if (!found) return;
  spdlog::warn(
      "{}: id reads {} that begin with a schema registry's frame, and {} records have another schema id than "
      "the one before them with the same key (such as {} and {}): {}; {}",
      options_.input, what, found->differing, found->before, found->schema, std::string(kFrameEffect),
      std::string(remedy));
}

void Warnings::OfKeys(const Tasks& tasks) {
  OfFrames(key_frames_, "keys", kFramedKeysRemedy);
  OfFrames(value_frames_, "values", kFramedValuesRemedy);
  if (!warned_of_frames_ && frames_.in_keys()) {
    warned_of_frames_ = true;
    spdlog::warn("{}: id reads keys that begin with {}: {}; {}", options_.input,
                 FrameText(frames_.key_schema()), std::string(kFrameEffect), std::string(kFramedKeysRemedy));
  }
  if (const auto found = keys_ ? keys_->Take(clock_.Steady()) : std::nullopt) {
    spdlog::warn(
        "{}: {} of {} copies that were compared with the first of their id have another key: they met in one "
        "partition by chance, and copies in different partitions are not found; set scope to topic, or key "
        "the records by the id",
        options_.input, found->differing, found->compared);
  }
  if (warned_unkeyed_ || options_.scope == Scope::kTopic || partitions_ == 1) return;
  int64_t records = 0;
  int64_t unkeyed = 0;
  for (const auto& [id, task] : tasks) {
    if (&task->flow()->options != &options_) continue;
    const RecordCounts& counts = task->counts();
    records += counts.passed + counts.tagged + counts.diverted + counts.dropped;
    unkeyed += counts.unkeyed;
  }
  if (records < kSeenUnkeyed || 2 * unkeyed <= records) return;
  warned_unkeyed_ = true;
  spdlog::warn(
      "{}: {} of {} records have no key: their producer spreads them over the partitions, and copies in "
      "different partitions are not found; set scope to topic, or key the records",
      options_.input, unkeyed, records);
}

}  // namespace lethe
