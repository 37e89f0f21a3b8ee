#include "src/pipeline/report/remarks.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "src/pipeline/options/kafka_commands.h"
#include "src/text/format.h"

namespace lethe {
namespace {

std::string UtcText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", time, absl::UTCTimeZone());
}

}  // namespace

std::optional<std::string> MemoryRemark(const PartitionReport& partition) {
  const FilterStatus& filter = partition.filter.filter;
  if (filter.limit_hits == 0) return std::nullopt;
  const std::string where = absl::StrCat("the memory limit is reached: ", partition.Name());
  if (filter.fpp.modelled > filter.fpp.target) {
    return absl::StrFormat("%s loses good events at a rate of %.2g, the target is %.2g; raise memory", where,
                           filter.fpp.modelled, filter.fpp.target);
  }
  if (filter.window >= partition.horizon) return std::nullopt;
  return absl::StrCat(where, " covers ", DurationText(filter.window), " of the horizon of ",
                      DurationText(partition.horizon), ", and later copies pass; raise memory");
}

std::optional<std::string> LostIdsRemark(const PartitionReport& partition) {
  const int64_t lost = partition.filter.filter.lost_ids;
  if (lost == 0) return std::nullopt;
  return absl::StrCat(partition.Name(), ": the filter could not remember ", FormatCount(lost),
                      " ids, and their copies pass: too many ids have the same place in it, which chance "
                      "does not do, but who knows the key of its hash can. Delete the partition's snapshots "
                      "and restart lethe, which then makes a new key");
}

std::optional<std::string> SharedIdRemark(const PartitionReport& partition) {
  if (!partition.shared_id) return std::nullopt;
  return absl::StrCat(partition.Name(), ": many records that differ share one id, such as those at offsets ",
                      partition.shared_id->first_offset, " and ", partition.shared_id->second_offset, ": ",
                      FormatCount(partition.counts.suspicious),
                      " so far (on_suspicious_id). Correct id, or their producer");
}

std::optional<std::string> DuplicatesRemark(const PartitionReport& partition) {
  if (!partition.duplicates_jumped) return std::nullopt;
  const DuplicateWatch::Jump& jump = *partition.duplicates_jumped;
  const std::string differ =
      jump.compared == 0 ? "none was compared with the first record of its id"
                         : absl::StrCat(FormatCount(jump.differing), " of ", FormatCount(jump.compared),
                                        " that were compared differ from the first record of their id");
  return absl::StrCat(
      partition.Name(),
      absl::StrFormat(
          ": %.0f %% of the records are duplicates since %s (offset %d), and %.1f %% were before; ",
          100 * jump.share, UtcText(jump.since), jump.since_offset, 100 * jump.usual),
      "some are at offsets ", absl::StrJoin(jump.offsets, ", "), "; ", differ, ": ",
      jump.MostDiffer() ? "different events have one id, and are lost. Correct id, or the producer"
                        : "a producer sends its events several times");
}

std::optional<std::string> ShortHistoryRemark(const PartitionReport& partition) {
  if (!partition.short_history) return std::nullopt;
  return absl::StrCat(partition.Name(),
                      ": short history: the filter does not know all ids of the horizon of ",
                      DurationText(partition.horizon),
                      ", and their copies pass; it ends in stream time by itself, and the log says why");
}

std::optional<std::string> MovedKeysRemark(const PartitionReport& partition) {
  if (!partition.keys_moved) return std::nullopt;
  return absl::StrCat(partition.Name(),
                      ": the topic got more partitions, and keys may have moved: copies of earlier records "
                      "pass in other partitions until the horizon of ",
                      DurationText(partition.horizon), " has passed; scope: topic matches them");
}

std::string TimesRemark(const std::string& topic, const TimeUnitCheck& times) {
  return absl::StrCat(topic, ": wrong timestamps: of the latest as milliseconds ", times.Text(),
                      "; the horizon is measured by them, so unique events may be dropped, or copies pass. "
                      "Have the producers give Kafka its milliseconds");
}

std::string ExpiryRemark(const std::string& partition, const std::string& output,
                         const ExpiryWatch::Stretch& records) {
  return absl::StrCat(partition, ": ", FormatCount(records.expired), " of the last ",
                      FormatCount(records.written), " records that lethe wrote to ", output,
                      " are older than it keeps records, such as that of offset ", records.offset, " of ",
                      UtcText(absl::FromUnixMillis(records.timestamp_ms)),
                      ": Kafka deletes them soon after retention.ms (", DurationText(records.kept_for),
                      "), since records keep their times. Raise retention.ms of ", output,
                      " above their age, or correct the timestamps");
}

std::string ThrottleRemark(const std::string& brokers, absl::string_view client, double share) {
  return absl::StrFormat(
      "a quota of the brokers holds the %s back %.0f %% of the time; raise the quota of its user, or of its "
      "client.id (clients in the place of users): %s",
      client, 100 * share, KafkaCommand("kafka-configs.sh", brokers, "--describe --entity-type users"));
}

namespace {

std::optional<std::string> ExpiredRemark(const PartitionReport& partition) {
  if (!partition.expiring) return std::nullopt;
  return ExpiryRemark(partition.Name(), partition.output, *partition.expiring);
}

// The first partition's, and how many more have one.
void AddFirst(const std::vector<PartitionReport>& partitions,
              std::optional<std::string> (*remark_of)(const PartitionReport&),
              std::vector<std::string>* remarks) {
  std::optional<std::string> first;
  int more = 0;
  for (const PartitionReport& partition : partitions) {
    std::optional<std::string> remark = remark_of(partition);
    if (!remark) continue;
    more += first ? 1 : 0;
    if (!first) first = std::move(remark);
  }
  if (!first) return;
  remarks->push_back(more == 0 ? *first : absl::StrCat(*first, " (and ", more, " more partitions)"));
}

void AddThrottled(const std::string& brokers, const std::vector<LaneReport>& lanes, absl::string_view name,
                  std::vector<std::string>* remarks) {
  for (const LaneReport& lane : lanes) {
    for (const auto& [client, share] :
         {std::pair("consumer", lane.consumer_throttled), {"producer", lane.producer_throttled}}) {
      if (share == 0) continue;
      remarks->push_back(absl::StrCat(name, " ", lane.lane, ": ", ThrottleRemark(brokers, client, share)));
    }
  }
}

}  // namespace

std::optional<std::string> OpenTransactionRemark(const std::string& brokers,
                                                 const std::vector<PartitionReport>& partitions) {
  const PartitionReport* first = nullptr;
  int more = 0;
  for (const PartitionReport& partition : partitions) {
    if (partition.open_transaction_since == absl::InfiniteFuture()) continue;
    more += first != nullptr ? 1 : 0;
    if (first == nullptr) first = &partition;
  }
  if (first == nullptr) return std::nullopt;
  const std::string others = more == 0 ? "" : absl::StrCat(" (and ", more, " more partitions)");
  return absl::StrCat(
      first->Name(), " waits at offset ", first->log.position, " since ",
      UtcText(first->open_transaction_since), others,
      ": a transaction that a producer opened there hides the records behind it; it ends with its "
      "transaction.timeout.ms, or abort it: ",
      KafkaCommand("kafka-transactions.sh", brokers,
                   absl::StrCat("abort --topic ", first->topic, " --partition ", first->partition,
                                " --start-offset ", first->log.position)));
}

std::vector<std::string> Remarks(const DaemonReport& report) {
  std::vector<std::string> remarks;
  AddThrottled(report.brokers, report.routing_lanes, "routing lane", &remarks);
  AddThrottled(report.brokers, report.lanes, "lane", &remarks);
  for (const LaneReport& lane : report.lanes) {
    if (lane.without_id) {
      remarks.push_back(absl::StrCat("lane ", lane.lane, ": ", lane.without_id->topic, ": ",
                                     FormatCount(lane.without_id->records.without_id), " of ",
                                     FormatCount(lane.without_id->records.records),
                                     " records have no usable id, and are not deduplicated",
                                     lane.without_id->records.reason.empty() ? "" : ": ",
                                     lane.without_id->records.reason, "; correct id"));
    }
    if (lane.wrong_times) {
      remarks.push_back(absl::StrCat("lane ", lane.lane, ": ",
                                     TimesRemark(lane.wrong_times->topic, lane.wrong_times->times)));
    }
    if (auto held = OpenTransactionRemark(report.brokers, lane.partitions)) remarks.push_back(*held);
    AddFirst(lane.partitions, MemoryRemark, &remarks);
    AddFirst(lane.partitions, ExpiredRemark, &remarks);
    AddFirst(lane.partitions, LostIdsRemark, &remarks);
    AddFirst(lane.partitions, SharedIdRemark, &remarks);
    AddFirst(lane.partitions, DuplicatesRemark, &remarks);
    AddFirst(lane.partitions, ShortHistoryRemark, &remarks);
    AddFirst(lane.partitions, MovedKeysRemark, &remarks);
  }
  for (const LaneReport& lane : report.routing_lanes) {
    if (auto held = OpenTransactionRemark(report.brokers, lane.partitions)) remarks.push_back(*held);
    if (lane.passed_over.empty()) continue;
    const size_t more = lane.passed_over.size() - 1;
    remarks.push_back(absl::StrCat(
        "routing lane ", lane.lane, ": ", lane.passed_over.front(),
        " stands still with records to read, and other partitions do not wait for it: copies of its records "
        "may pass",
        more == 0 ? "" : absl::StrCat(" (and ", more, " more partitions)")));
  }
  if (!report.foreign_members.empty()) {
    const size_t more = report.foreign_members.size() - 1;
    remarks.push_back(absl::StrCat(
        "group ", report.group, " has members that are not lethe's: ", report.foreign_members.front(),
        more == 0 ? "" : absl::StrCat(" (and ", more, " more)"),
        ": they get partitions, whose records lethe does not see; stop them, or give them another group"));
  }
  for (const StoreReport& store : report.stores) {
    if (store.problem.empty()) continue;
    remarks.push_back(absl::StrCat("counter ", store.counter, ": store ", store.store, " lacks ",
                                   FormatCount(store.lag), " totals: ", store.problem));
  }
  return remarks;
}

}  // namespace lethe
