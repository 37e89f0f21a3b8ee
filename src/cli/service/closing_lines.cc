#include "src/cli/service/closing_lines.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "src/text/format.h"

namespace lethe {

std::string Totals(const DaemonReport& report) {
  if (report.lanes.empty()) return "";
  RecordCounts records;
  int64_t commits = 0;
  int64_t aborts = 0;
  for (const LaneReport& lane : report.lanes) {
    records += lane.totals;
    commits += lane.transactions.committed;
    aborts += lane.transactions.aborted;
  }
  const int64_t all =
      records.unique + records.duplicate + records.missing_id + records.malformed + records.undeliverable;
  std::vector<std::string> parts = {absl::StrCat(FormatCount(records.unique), " unique"),
                                    absl::StrCat(FormatCount(records.duplicate), " duplicates")};
  const std::pair<int64_t, const char*> rare[] = {{records.missing_id, "without an id"},
                                                  {records.malformed, "malformed"},
                                                  {records.undeliverable, "undeliverable"}};
  for (const auto& [count, name] : rare) {
    if (count > 0) parts.push_back(absl::StrCat(FormatCount(count), " ", name));
  }
  return absl::StrCat(FormatCount(all), " records: ", absl::StrJoin(parts, ", "), "; ", FormatCount(commits),
                      " transactions committed, ", aborts == 0 ? "none" : FormatCount(aborts), " aborted");
}

std::string Farewell(const DaemonReport& report, Ending ending) {
  if (report.lanes.empty() && report.routing_lanes.empty()) {
    return "stopped before the first record was read";
  }
  if (ending.unanswered) {
    return absl::StrCat(
        ending.unfinished ? "the last transaction was aborted, and the next owner replays uncommitted records"
                          : "all committed",
        ", but the group has not answered: ending without leaving it; its partitions move "
        "after session.timeout.ms");
  }
  if (ending.unfinished) {
    return absl::StrCat(ending.stays ? "" : "left the group; ",
                        "the last transaction was aborted: the next owner replays uncommitted records, and "
                        "nothing is lost");
  }
  if (ending.stays) {
    return "all committed; nobody reads its partitions until it is back, or session.timeout.ms is over "
           "(static_membership)";
  }
  return "all committed, left the group";
}

}  // namespace lethe
