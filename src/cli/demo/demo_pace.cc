#include "src/cli/demo/demo_pace.h"

#include <time.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "lethe/stage.h"
#include "src/cli/demo/demo_events.h"
#include "src/record/record_reader.h"

namespace lethe {
namespace {

constexpr size_t kBatch = 512;  // as the daemon polls

// Of this thread: other programs do not slow it.
absl::Duration ProcessorTime() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return absl::DurationFromTimespec(now);
}

}  // namespace

absl::StatusOr<DemoPace> MeasurePace(int64_t events, double target_fpp, uint64_t seed) {
  auto stage = DedupStage::Create({.horizon = absl::Hours(24), .target_fpp = target_fpp});
  if (!stage.ok()) return stage.status();
  auto partition = (*stage)->Open("pace");
  if (!partition.ok()) return partition.status();
  const auto id = IdSpec::Parse("json:/id");
  if (!id.ok()) return id.status();
  RecordReader reader({.id = *id});
  RetryingClients clients(GeneratedEvents(events, seed), seed);

  DemoPace pace;
  absl::Duration took;
  std::vector<std::string> values;
  std::vector<Event> batch(kBatch);
  std::vector<Verdict> verdicts(kBatch);
  do {
    values.clear();
    while (values.size() < kBatch) {
      std::optional<DemoEvent> event = clients.Next();
      if (!event) break;
      values.push_back(std::move(event->value));
    }
    const absl::Time now = absl::Now();
    const absl::Duration start = ProcessorTime();
    for (size_t i = 0; i < values.size(); ++i) {
      const RecordFields& fields = reader.Read({.key = std::nullopt, .value = values[i]});
      batch[i] = {.id = (*partition)->Hash(fields.id), .time = now, .payload = values[i]};
    }
    const absl::Status judged =
        (*partition)->Judge(absl::MakeConstSpan(batch).first(values.size()), absl::MakeSpan(verdicts));
    took += ProcessorTime() - start;
    if (!judged.ok()) return judged;
    pace.records += static_cast<int64_t>(values.size());
  } while (values.size() == kBatch);
  const PartitionStatus status = (*partition)->Status();
  pace.records_per_second = static_cast<double>(pace.records) / absl::ToDoubleSeconds(took);
  pace.ids = status.filter.ids;
  pace.filter_bytes = status.filter.memory_bytes;
  return pace;
}

}  // namespace lethe
