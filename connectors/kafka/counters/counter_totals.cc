#include "connectors/kafka/counters/counter_totals.h"

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "connectors/kafka/client/log_reader.h"
#include "connectors/kafka/client/message_view.h"

namespace lethe::kafka {
namespace {

constexpr int kTotalsTimeoutMs = 2000;
// A former owner's open transaction ends within this time, by its timeout.
constexpr absl::Duration kTotalsPatience = absl::Seconds(90);

// The offsets of the partitions, where there are any.
absl::StatusOr<std::map<int32_t, OffsetRange>> FindEnds(const DaemonOptions& options,
                                                        const std::string& topic,
                                                        const std::vector<int32_t>& partitions,
                                                        const GoOn& go_on) {
  std::map<int32_t, OffsetRange> ranges;
  const auto asking = MakeTotalsReader(options, "read_uncommitted");
  if (!asking.ok()) return asking.status();
  for (const int32_t id : partitions) {
    if (!go_on()) return absl::CancelledError("the totals were not read");
    const auto bounds = BoundsOf(asking->get(), topic, id, kTotalsTimeoutMs);
    if (bounds.ok()) {
      if (bounds->begin < bounds->end) ranges[id] = *bounds;
    } else if (!absl::IsNotFound(bounds.status())) {
      return bounds.status();
    } else if (const auto count = CountPartitions(asking->get(), topic, kTotalsTimeoutMs);
               !count.ok() || id < *count) {
      // lethe has created the topic when it started, and brokers learn of it some moments later.
      return absl::UnavailableError(absl::StrCat("the brokers do not know ", topic, "-", id, " yet"));
    }  // else a partition was added to the input, and not yet to the topic: then there is no total of it
  }
  return ranges;
}

absl::Status ReadRanges(const DaemonOptions& options, const std::string& topic,
                        std::map<int32_t, OffsetRange> ranges,
                        const std::function<void(const InputRecord&)>& see, const GoOn& go_on) {
  if (ranges.empty()) return absl::OkStatus();
  const auto reader = MakeTotalsReader(options, "read_committed", {kSeesEndsSoon});
  if (!reader.ok()) return reader.status();
  return ReadLog(reader->get(), topic,
                 {.ranges = std::move(ranges),
                  .patience = kTotalsPatience,
                  .see =
                      [&](const rd_kafka_message_t& message) {
                        see(MessageView(message).record());
                        return true;
                      },
                  .go_on = [&](int64_t) { return go_on(); }});
}

}  // namespace

absl::StatusOr<ClientPtr> MakeTotalsReader(const DaemonOptions& options, const char* isolation,
                                           std::vector<Property> defaults) {
  return ReaderConfig(options, isolation, FetchOn::Defaults(std::move(defaults))).MakeConsumer();
}

absl::Status ReadTotals(const DaemonOptions& options, const std::string& topic,
                        const std::vector<int32_t>& partitions,
                        const std::function<void(const InputRecord&)>& see, const GoOn& go_on) {
  auto ranges = FindEnds(options, topic, partitions, go_on);
  absl::Status status = ranges.status();
  if (status.ok()) status = ReadRanges(options, topic, *std::move(ranges), see, go_on);
  return WithGrant("totals", topic, status);
}

}  // namespace lethe::kafka
