// Remarks on a daemon that is ready.
#ifndef LETHE_SRC_PIPELINE_REPORT_REMARKS_H_
#define LETHE_SRC_PIPELINE_REPORT_REMARKS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "src/pipeline/report/report.h"

namespace lethe {

// The present effect of the memory limit on the partition: its filter covers less than the horizon, or loses
// more unique events than the target allows.
std::optional<std::string> MemoryRemark(const PartitionReport& partition);

// That the filter has lost ids.
std::optional<std::string> LostIdsRemark(const PartitionReport& partition);

// That many events share an id.
std::optional<std::string> SharedIdRemark(const PartitionReport& partition);

// That the share of duplicates has jumped.
std::optional<std::string> DuplicatesRemark(const PartitionReport& partition);

// That copies may pass: ids of the horizon are not known, or keys have moved to other partitions.
std::optional<std::string> ShortHistoryRemark(const PartitionReport& partition);
std::optional<std::string> MovedKeysRemark(const PartitionReport& partition);

// That the output deletes most records of the partition soon after they are written.
std::string ExpiryRemark(const std::string& partition, const std::string& output,
                         const ExpiryWatch::Stretch& records);

// That most timestamps of the topic are of another unit.
std::string TimesRemark(const std::string& topic, const TimeUnitCheck& times);

// That quotas hold a client, "consumer" or "producer", back for this share of the time.
std::string ThrottleRemark(const std::string& brokers, absl::string_view client, double share);

// Names the first of the partitions that a producer's open transaction holds, and their number.
std::optional<std::string> OpenTransactionRemark(const std::string& brokers,
                                                 const std::vector<PartitionReport>& partitions);

// One of each kind and lane.
std::vector<std::string> Remarks(const DaemonReport& report);

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_REPORT_REMARKS_H_
