#include "src/pipeline/report/remarks.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "src/text/format.h"

namespace lethe {

std::optional<std::string> MemoryRemark(const std::string& input, const PartitionReport& partition,
                                        absl::Duration horizon) {
  const FilterStatus& filter = partition.filter.filter;
  if (filter.limit_hits == 0) return std::nullopt;
  const std::string where = absl::StrCat("the memory limit is reached: ", input, "-", partition.partition);
  if (filter.fpp_modelled > filter.fpp_target) {
    return absl::StrFormat("%s loses good events at a rate of %.2g, the target is %.2g; raise memory", where,
                           filter.fpp_modelled, filter.fpp_target);
  }
  if (filter.window >= horizon) return std::nullopt;
  return absl::StrCat(where, " covers ", DurationText(filter.window), " of the horizon of ",
                      DurationText(horizon), ", and later copies pass; raise memory");
}

std::string ThrottleRemark(absl::string_view client, double share) {
  return absl::StrFormat(
      "a quota of the brokers holds the %s back %.0f %% of the time; raise the quota of its user or "
      "client.id "
      "(kafka-configs.sh --describe --entity-type users, or clients)",
      client, 100 * share);
}

namespace {

void AddThrottled(const std::vector<LaneReport>& lanes, absl::string_view name,
                  std::vector<std::string>* remarks) {
  for (const LaneReport& lane : lanes) {
    for (const auto& [client, share] :
         {std::pair("consumer", lane.consumer_throttled), {"producer", lane.producer_throttled}}) {
      if (share == 0) continue;
      remarks->push_back(absl::StrCat(name, " ", lane.lane, ": ", ThrottleRemark(client, share)));
    }
  }
}

}  // namespace

std::vector<std::string> Remarks(const DaemonReport& report) {
  std::vector<std::string> remarks;
  AddThrottled(report.routing_lanes, "routing lane", &remarks);
  AddThrottled(report.lanes, "lane", &remarks);
  for (const LaneReport& lane : report.lanes) {
    if (lane.without_id) {
      remarks.push_back(absl::StrCat(
          "lane ", lane.lane, ": ", FormatCount(lane.without_id->without_id), " of ",
          FormatCount(lane.without_id->records), " records have no usable id, and are not deduplicated",
          lane.without_id->reason.empty() ? "" : ": ", lane.without_id->reason, "; correct id"));
    }
    std::optional<std::string> first;
    int more = 0;
    for (const PartitionReport& partition : lane.partitions) {
      std::optional<std::string> remark = MemoryRemark(report.input, partition, report.horizon);
      if (!remark) continue;
      more += first ? 1 : 0;
      if (!first) first = std::move(remark);
    }
    if (first)
      remarks.push_back(more == 0 ? *first : absl::StrCat(*first, " (and ", more, " more partitions)"));
  }
  for (const StoreReport& store : report.stores) {
    if (store.problem.empty()) continue;
    remarks.push_back(absl::StrCat("counter ", store.counter, ": store ", store.store, " lacks ",
                                   FormatCount(store.lag), " totals: ", store.problem));
  }
  return remarks;
}

}  // namespace lethe
