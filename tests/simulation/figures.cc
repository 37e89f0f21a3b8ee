#include "tests/simulation/figures.h"

#include <numeric>

#include "absl/strings/str_cat.h"

namespace lethe::simulation {
namespace {

struct NamedCount {
  const char* name;
  int64_t RecordCounts::*count;
};

// `suppressed` is missing: how much is replayed depends on who has kept what.
constexpr NamedCount kCounts[] = {{"unique", &RecordCounts::unique},
                                  {"duplicate", &RecordCounts::duplicate},
                                  {"missing_id", &RecordCounts::missing_id},
                                  {"malformed", &RecordCounts::malformed},
                                  {"undeliverable", &RecordCounts::undeliverable},
                                  {"unreadable", &RecordCounts::unreadable},
                                  {"passed", &RecordCounts::passed},
                                  {"tagged", &RecordCounts::tagged},
                                  {"diverted", &RecordCounts::diverted},
                                  {"dropped", &RecordCounts::dropped},
                                  {"unkeyed", &RecordCounts::unkeyed},
                                  {"future", &RecordCounts::future}};

int64_t Judged(const RecordCounts& counts) {
  return counts.unique + counts.duplicate + counts.missing_id + counts.malformed + counts.undeliverable;
}

int64_t Count(const Histogram& histogram) {
  const auto counts = histogram.counts();
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

}  // namespace

void Figures::Add(const DaemonReport& report) {
  for (const LaneReport& lane : report.lanes) judged_ += lane.totals;
  for (const LaneReport& lane : report.routing_lanes) routed_ += lane.totals;
}

void Figures::Look(const DaemonReport& report) {
  for (const auto* lanes : {&report.lanes, &report.routing_lanes}) {
    for (const LaneReport& lane : *lanes) Look(lane);
  }
}

void Figures::Look(const LaneReport& lane) {
  const std::string name = absl::StrCat("lane ", lane.lane);
  Look(name, lane.totals);
  for (const PartitionReport& partition : lane.partitions) Look(partition.Name(), partition.counts);
  if (const int64_t timed = Count(lane.histograms.latency_seconds); timed != Judged(lane.totals)) {
    problems_.push_back(absl::StrCat("figures DISAGREE: ", name, " has the latency of ", timed,
                                     " records of ", Judged(lane.totals)));
  }
  for (const Histogram* each : {&lane.histograms.transaction_seconds, &lane.histograms.commit_seconds}) {
    if (Count(*each) <= lane.transactions.committed) continue;  // a wall clock may have jumped back
    problems_.push_back(absl::StrCat("figures DISAGREE: ", name, " has the times of ", Count(*each),
                                     " transactions of ", lane.transactions.committed));
  }
}

void Figures::Look(const std::string& where, const RecordCounts& counts) {
  const int64_t kinds = Judged(counts) + counts.unreadable;
  const int64_t actions = counts.passed + counts.tagged + counts.diverted + counts.dropped;
  if (kinds == actions) return;
  problems_.push_back(absl::StrCat("figures DISAGREE: ", where, " has counted ", kinds,
                                   " records by kind, and ", actions, " by what became of them"));
}

void Figures::Compare(const char* what, const RecordCounts& counted, const CountsInLog& in_log,
                      bool is_exact) {
  const auto compare = [&](const char* name, int64_t here, int64_t least, int64_t most) {
    if (here <= most && (here >= least || !is_exact)) return;
    problems_.push_back(absl::StrCat(what, " are MISCOUNTED: ", name, " ", here, " by the metrics, ", least,
                                     least == most ? "" : absl::StrCat(" to ", most), " by the logs"));
  };
  for (const auto& [name, count] : kCounts) {
    compare(name, counted.*count, in_log.least.*count, in_log.most.*count);
  }
  compare("counter updates", counted.counters.updates, in_log.least.counters.updates,
          in_log.most.counters.updates);
}

}  // namespace lethe::simulation
