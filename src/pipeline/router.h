// The router of `scope: topic`: writes each record to the partition of its id.
#ifndef LETHE_SRC_PIPELINE_ROUTER_H_
#define LETHE_SRC_PIPELINE_ROUTER_H_

#include "src/pipeline/judge.h"
#include "src/pipeline/output/routed_record.h"

namespace lethe {

// In the place of the judge: whether its id is there, and new, is for the deduplicator behind it. The task's
// filter stays empty, and has its stream time alone.
class Router final : public Judge {
 public:
  using Judge::Judge;
  bool IsJudged(const RecordFields&) const override { return false; }

 private:
  void Add(const Task&, LaneFlow& flow, const InputRecord& input, const RecordFields& fields) override {
    records_.push_back({.input = &input, .route = Route(fields, input, flow.flow.topics.output_partitions)});
  }
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_ROUTER_H_
