// The status of filters and stages, for people, metrics and tests. Plain values: a copy is a
// consistent picture of the moment in which it was taken.
#ifndef LETHE_STATUS_H_
#define LETHE_STATUS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lethe {

// One step by which a filter adapted itself.
struct AdaptationStep {
  enum class Kind : uint8_t {
    kRefresh,        // an interval has ended
    kUnfold,         // the lines are doubled
    kFold,           // the lines are halved
    kUnfoldRefused,  // the memory limit kept the filter from growing
    kShortenWindow,  // at the limit: the oldest generation was dropped before the horizon
    kScaleUp,        // of a filter that adapts N and t: more generations, and a shorter refresh period
    kScaleDown,      // fewer generations, and a longer refresh period
  };
  Kind kind = Kind::kRefresh;
  int64_t stream_time_ms = 0;       // kNoStreamTime if time had not begun
  int64_t bits_per_generation = 0;  // m, when the step began
  absl::string_view reason = "";    // a constant, for people
};

// How often a filter has taken steps of one kind for one reason, since it was made or restored.
struct StepCount {
  AdaptationStep::Kind kind = AdaptationStep::Kind::kRefresh;
  absl::string_view reason = "";  // as in AdaptationStep
  int64_t count = 0;
};

// One generation of a forgetful filter: what it holds, and how full it is.
struct GenerationStatus {
  int64_t ids = 0;
  // How long ago, in stream time, the first and the last of them were inserted.
  absl::Duration oldest = absl::ZeroDuration();
  absl::Duration newest = absl::ZeroDuration();
  double fill = 0;  // of its bits are set, by a sample
};

// The shape of a filter, in the paper's letters.
struct FilterShape {
  int past_generations = 0;                              // N
  absl::Duration refresh_period = absl::ZeroDuration();  // t: the present one, of the last full interval
  int64_t bits_per_generation = 0;                       // m
  int bits_per_id = 0;                                   // k: bits set per id in one generation
  // Of 64 bytes each, which hold the ids of kCompact and kExact. 0 in other engines.
  int64_t lines = 0;
};

// A filter's probability of a false positive.
struct FppStatus {
  double target = 0;
  double modelled = 0;   // from the loads, by the layout's model
  double estimated = 0;  // from bits or fingerprints in a sample; modelled where it is not made
  double deviation = 0;  // standard deviation of the estimate, from sampling
  // Modelled at the end of the last interval, the worst moment of each; 0 before the first has ended.
  double at_interval_end = 0;
};

// One filter, or the filters of a partition's shards together.
struct FilterStatus {
  FilterShape shape;
  FppStatus fpp;
  int64_t ids = 0;  // inserted and not yet forgotten
  // Of the generation that is the present: the share of its bits that are set, by a sample. 0 in engines
  // without generations.
  double present_fill = 0;
  // What is covered now: at least the horizon, or all since the start. Less if the memory limit was hit
  // (limit_hits).
  absl::Duration window = absl::ZeroDuration();
  int64_t memory_bytes = 0;
  // Of these, what the ids that are held would not take in a table that is full: what is kept to grow into,
  // and what was not given back yet. Of kCompact and kExact; 0 in other engines.
  int64_t memory_above_need_bytes = 0;
  int64_t refreshes = 0;
  // Times that the memory limit shortened the window.
  int64_t limit_hits = 0;
  // Ids that found no room in any place that their hashes have, and that are not remembered: their copies
  // pass. Chance does not do that; hashes that somebody has chosen do.
  int64_t lost_ids = 0;
  // The latest steps of adaptation, oldest first; at most 64 of a filter.
  std::vector<AdaptationStep> steps = {};
  // Every kind and reason that this filter may have, also those that have not come yet.
  std::vector<StepCount> step_counts = {};
  // The future first, the oldest last. Of a single filter; shards refresh each in their own time.
  std::vector<GenerationStatus> generations = {};
};

// What the stage found out about its own verdicts, from the ids that it audits: a share of all ids, chosen by
// their hash, of which an exact set remembers what was passed. Counts are since the partition was opened, of
// events that were committed (or judged in one step).
struct AuditStatus {
  double share = 0;    // of the ids that are audited now; halved when memory is short
  int64_t events = 0;  // judged, of audited ids: fresh ones, copies, and some of which nothing is learnt

  int64_t fresh = 0;        // events whose id was not seen for so long that the filter cannot know it
  int64_t false_drops = 0;  // of these, the ones that were not passed: unique events lost
  int64_t copies = 0;       // events whose id was passed within the horizon
  int64_t missed = 0;       // of these, the ones that passed

  int64_t compared = 0;            // copies of which both payloads are known
  int64_t payload_mismatches = 0;  // of these, unlike the first: the id is not unique, and events are lost

  // The rate of false positives that this implies for all events: false_drops / fresh, and the interval
  // that holds the true rate with a confidence of 99 % (Garwood's exact interval for a Poisson count:
  // Clopper and Pearson's for rare events, and never narrower). [0, 1] before the first fresh event.
  double fpp_measured = 0;
  double fpp_low = 0;
  double fpp_high = 1;

  int64_t ids = 0;  // in the exact set
  int64_t memory_bytes = 0;
};

// One partition of a stage. Counts are since it was opened.
struct PartitionStatus {
  std::string name = "";
  absl::Time stream_time = absl::InfinitePast();
  int64_t unique = 0;      // judged unique (and not taken back by an abort or Forget)
  int64_t duplicates = 0;  // judged duplicate (likewise)
  int64_t replayed = 0;    // inserted without a verdict
  int64_t pending = 0;     // passed in the open transaction
  FilterStatus filter;
  AuditStatus audit;
};

}  // namespace lethe

#endif  // LETHE_STATUS_H_
