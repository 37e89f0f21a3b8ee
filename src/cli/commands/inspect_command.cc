#include "src/cli/commands/inspect_command.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lethe/snapshot.h"
#include "src/cli/terminal/json_text.h"
#include "src/cli/terminal/plain_text.h"
#include "src/text/format.h"

namespace lethe {
namespace {

std::string Mib(int64_t bytes) { return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (1 << 20)); }

std::string TimeText(absl::Time time) {
  return time == absl::InfinitePast() ? "not begun"
                                      : absl::FormatTime(absl::RFC3339_full, time, absl::UTCTimeZone());
}

void WriteText(const SnapshotReport& report, std::ostream& out) {
  const PartitionStatus& partition = report.partition;
  const FilterStatus& filter = partition.filter;
  out << absl::StreamFormat("snapshot     format %d, %s, whole\n", report.format_version,
                            Mib(report.file_bytes))
      << absl::StreamFormat("partition    %s, of topic %s, partition %d\n", Printable(partition.name),
                            Printable(report.origin.topic), report.origin.partition)
      << absl::StreamFormat("ids          fingerprint of their configuration %s\n",
                            Printable(report.origin.id_fingerprint))
      << absl::StreamFormat("offset       %d, when it was done %d; hash of the record before %016x\n",
                            report.point.offset, report.point.end_offset, report.point.record_before)
      << absl::StreamFormat("filter       %s, horizon %s, target %.3g, in %d shards\n",
                            Printable(report.engine), DurationText(report.horizon), report.target_fpp,
                            report.shards.size())
      << absl::StreamFormat("stream time  %s, window %s\n", TimeText(partition.stream_time),
                            DurationText(filter.window))
      << absl::StreamFormat("holds        %d ids in %s\n", filter.ids, Mib(filter.memory_bytes))
      << absl::StreamFormat("FPP          %.3g modelled, %.3g estimated, standard deviation %.2g\n",
                            filter.fpp.modelled, filter.fpp.estimated, filter.fpp.deviation)
      << absl::StreamFormat("limit hits   %d\n", filter.limit_hits)
      << absl::StreamFormat("lost ids     %d\n", filter.lost_ids)
      << absl::StreamFormat("judged       %d unique, %d duplicates; %d replayed\n", partition.unique,
                            partition.duplicates, partition.replayed)
      << absl::StreamFormat("audit        %d of %d good events lost, %d of %d copies missed\n",
                            partition.audit.false_drops, partition.audit.fresh, partition.audit.missed,
                            partition.audit.copies);
  for (size_t i = 0; i < report.shards.size(); ++i) {
    const FilterStatus& shard = report.shards[i];
    const bool has_future = std::ssize(shard.generations) > shard.shape.past_generations + 1;
    out << absl::StreamFormat("\nshard %d: %d bits per generation\n  %-11s %12s %20s %20s %7s\n", i,
                              shard.shape.bits_per_generation, "generation", "ids", "oldest", "newest",
                              "fill");
    for (size_t j = 0; j < shard.generations.size(); ++j) {
      const GenerationStatus& generation = shard.generations[j];
      const size_t present = has_future ? 1 : 0;
      const std::string name = j < present    ? "future"
                               : j == present ? "present"
                                              : absl::StrCat("past ", j - present);
      out << absl::StreamFormat("  %-11s %12d %20s %20s %6.2f%%\n", name, generation.ids,
                                absl::FormatDuration(generation.oldest),
                                absl::FormatDuration(generation.newest), 100 * generation.fill);
    }
  }
}

// JSON has no infinity: null.
std::string Milliseconds(absl::Duration duration) {
  if (duration == absl::InfiniteDuration()) return "null";
  return absl::StrCat(absl::ToInt64Milliseconds(duration));
}

void WriteShardJson(const FilterStatus& shard, std::ostream& out) {
  out << absl::StreamFormat(
      "{\"ids\":%d,\"past_generations\":%d,\"bits_per_generation\":%d,\"memory_bytes\":%d,\"window_ms\":%s,"
      "\"fpp_modelled\":%.17g,\"fpp_estimated\":%.17g,\"fpp_estimated_deviation\":%.17g,\"generations\":[",
      shard.ids, shard.shape.past_generations, shard.shape.bits_per_generation, shard.memory_bytes,
      Milliseconds(shard.window), shard.fpp.modelled, shard.fpp.estimated, shard.fpp.deviation);
  for (const GenerationStatus& generation : shard.generations) {
    out << absl::StreamFormat("%s{\"ids\":%d,\"oldest_ms\":%s,\"newest_ms\":%s,\"fill\":%.17g}",
                              &generation == shard.generations.data() ? "" : ",", generation.ids,
                              Milliseconds(generation.oldest), Milliseconds(generation.newest),
                              generation.fill);
  }
  out << "]}";
}

void WriteJson(const SnapshotReport& report, std::ostream& out) {
  const PartitionStatus& partition = report.partition;
  const bool timed = partition.stream_time != absl::InfinitePast();
  out << absl::StreamFormat(
             "{\"format_version\":%d,\"file_bytes\":%d,\"name\":%s,\"topic\":%s,\"partition\":%d,\"id_"
             "fingerprint\":%s,\"offset\":%d,\"end_offset\":%d,\"record_before\":\"%016x\",",
             report.format_version, report.file_bytes, JsonString(partition.name),
             JsonString(report.origin.topic), report.origin.partition,
             JsonString(report.origin.id_fingerprint), report.point.offset, report.point.end_offset,
             report.point.record_before)
      << absl::StreamFormat(
             "\"engine\":%s,\"horizon_ms\":%s,\"target_fpp\":%.17g,\"stream_time_ms\":%s,\"window_ms\":%s,"
             "\"ids\":%d,\"memory_bytes\":%d,\"fpp_modelled\":%.17g,\"fpp_estimated\":%.17g,\"fpp_estimated_"
             "deviation\":%.17g,\"limit_hits\":%d,\"lost_ids\":%d,",
             JsonString(report.engine), Milliseconds(report.horizon), report.target_fpp,
             timed ? absl::StrCat(absl::ToUnixMillis(partition.stream_time)) : "null",
             Milliseconds(partition.filter.window), partition.filter.ids, partition.filter.memory_bytes,
             partition.filter.fpp.modelled, partition.filter.fpp.estimated, partition.filter.fpp.deviation,
             partition.filter.limit_hits, partition.filter.lost_ids)
      << absl::StreamFormat(
             "\"unique\":%d,\"duplicates\":%d,\"replayed\":%d,\"audit\":{\"fresh\":%d,"
             "\"false_drops\":%d,\"copies\":%d,\"missed\":%d},\"shards\":[",
             partition.unique, partition.duplicates, partition.replayed, partition.audit.fresh,
             partition.audit.false_drops, partition.audit.copies, partition.audit.missed);
  for (const FilterStatus& shard : report.shards) {
    if (&shard != report.shards.data()) out << ",";
    WriteShardJson(shard, out);
  }
  out << "]}\n";
}

}  // namespace

absl::Status RunInspect(const InspectCommandOptions& options, std::ostream& out) {
  const absl::StatusOr<SnapshotReport> report = InspectSnapshot(options.path);
  if (!report.ok()) return report.status();
  (options.format == ReportFormat::kJson ? WriteJson : WriteText)(*report, out);
  return absl::OkStatus();
}

}  // namespace lethe
