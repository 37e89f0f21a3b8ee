// The judge of `scope: topic` and of merged inputs, by the logs alone.
//
//   - Each record of the inputs is in the repartition topic once, unchanged but for its place in the last
//     headers, and all of an id in one partition. Records of one source partition keep their order there.
//   - The disorder there is bounded: what follows a record is at most the lead older, by the time at which it
//     was sent.
//   - Of what is there, the output has what the oracle of the deduplicator says (tests/faults/judge.h), in
//     the partitions of the inputs, and in the order of the repartition topic.
#ifndef LETHE_TESTS_SIMULATION_ROUTED_JUDGE_H_
#define LETHE_TESTS_SIMULATION_ROUTED_JUDGE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/faults/judge.h"

namespace lethe::simulation {

// What was committed.
struct RoutedEvidence {
  std::map<std::string, std::vector<test::Record>> inputs;
  std::vector<test::Record> routed;
  absl::Duration lead = absl::InfiniteDuration();  // infinite: disorder has no bound
  std::function<int64_t(int64_t sending)> time_ms;
  // Of the deduplicator: without an input. Its records' partitions are those of the inputs.
  test::Evidence judged;
};

test::Judgement JudgeRouted(RoutedEvidence evidence);

}  // namespace lethe::simulation

#endif  // LETHE_TESTS_SIMULATION_ROUTED_JUDGE_H_
