// What a worker needs of its own for each flow.
#ifndef LETHE_SRC_PIPELINE_OUTPUT_LANE_FLOW_H_
#define LETHE_SRC_PIPELINE_OUTPUT_LANE_FLOW_H_

#include <cstdint>
#include <map>
#include <optional>

#include "absl/time/time.h"
#include "src/pipeline/output/expected_schemas.h"
#include "src/pipeline/output/record_writer.h"
#include "src/pipeline/output/refusal_search.h"
#include "src/pipeline/output/transaction_backoff.h"
#include "src/pipeline/output/warnings.h"
#include "src/pipeline/task/workplace.h"
#include "src/record/record_reader.h"

namespace lethe {

// Not thread-safe: it belongs to the worker's thread.
struct LaneFlow {
  LaneFlow(const Flow& of, const Workplace& place)
      : flow(of),
        reader(of.options.RecordAndCounters()),
        replay_reader(of.options.record),
        expected(of.options.RecordAndCounters()),
        writer(of, place),
        refusals(of.topics.output_rules),
        warnings(of, place.state),
        room(of.options.half.routing ? std::nullopt : std::optional(TopicRoom())),
        output_partitions(of.topics.least_partitions) {}

  const Flow& flow;
  RecordReader reader;         // of records that are judged
  RecordReader replay_reader;  // of those that are replayed
  ExpectedSchemas expected;    // of those that wait for a schema
  RecordWriter writer;
  RefusalSearch refusals;
  Warnings warnings;
  std::optional<TopicRoom> room;               // none of routers, whose records may wait for others already
  int64_t written = 0;                         // bytes, in the open transaction
  absl::Time next_try = absl::InfinitePast();  // by Clock::Steady(), while its output fails
  int32_t output_partitions;  // that the output had when it was last asked; 0: to be asked for
};

// Those of a worker, each made when a partition of its topic first needs it. Not thread-safe.
class LaneFlows {
 public:
  explicit LaneFlows(const Workplace& place) : place_(place) {}

  LaneFlow& Of(const Task& task) {
    return flows_.try_emplace(task.id().flow, *task.flow(), place_).first->second;
  }
  // Null: no partition of its topic has needed it.
  LaneFlow* Find(int32_t number) {
    const auto found = flows_.find(number);
    return found == flows_.end() ? nullptr : &found->second;
  }
  auto begin() { return flows_.begin(); }
  auto end() { return flows_.end(); }

 private:
  const Workplace place_;
  std::map<int32_t, LaneFlow> flows_;  // by number
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OUTPUT_LANE_FLOW_H_
