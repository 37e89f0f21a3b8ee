#include "tests/bench/steady.h"

#include <algorithm>
#include <vector>

#include "tests/bench/clocks.h"

namespace lethe::bench {
namespace {

constexpr size_t kBlock = 512;
constexpr size_t kChunk = 16 * kBlock;  // made, then judged: 192 KiB
// An interval's end is found to this part of it.
constexpr double kStepsInInterval = 64;

class Run {
 public:
  Run(Filter* filter, double window) : filter_(filter), traffic_(window) {}

  // `horizons` of traffic in calls of `per_call` ids. Returns the nanoseconds that an id took.
  double Judge(double horizons, size_t per_call) {
    const double ids = horizons * traffic_.window() / (1 - kDuplicates);
    double seconds = 0;
    double done = 0;
    while (done < ids) {
      Make(std::min(kChunk, static_cast<size_t>(ids - done) + 1));
      const double start = ThreadSeconds();
      for (size_t i = 0; i < ids_.size(); i += per_call) Call(i, std::min(per_call, ids_.size() - i));
      seconds += ThreadSeconds() - start;
      Check();
      NoteMemory();
      done += static_cast<double>(ids_.size());
    }
    return done == 0 ? 0 : seconds / done * 1e9;
  }

  Latencies TimeEach(double horizons) {
    Latencies latencies;
    const double ids = horizons * traffic_.window() / (1 - kDuplicates);
    for (double done = 0; done < ids; done += static_cast<double>(kChunk)) {
      Make(kChunk);
      int64_t before = WallNanos();
      for (size_t i = 0; i < ids_.size(); ++i) {
        Call(i, 1);
        const int64_t after = WallNanos();
        latencies.Add(after - before);
        before = after;
      }
      Check();
      NoteMemory();
    }
    return latencies;
  }

  // Stops a little before a refresh, the filter's worst moment.
  void GoToEndOfInterval() {
    const double step =
        absl::FDivDuration(filter_->Status().shape.refresh_period, absl::Milliseconds(kHorizonMs)) /
        kStepsInInterval;
    if (step <= 0) return;
    StepsToRefresh(step);
    const int steps = StepsToRefresh(step);
    for (int i = 0; i < steps - 2; ++i) Judge(step, kBlock);
  }

  void Probe(const Plan& plan, Figures* figures) {
    std::vector<IdHash> strangers(kChunk);
    std::vector<Verdict> verdicts(kChunk);
    double probes = 0;
    double hits = 0;
    while (probes < plan.most_probes && hits < plan.false_hits) {
      traffic_.Strangers(&strangers);
      filter_->Contains(strangers, absl::MakeSpan(verdicts));
      hits += static_cast<double>(std::count(verdicts.begin(), verdicts.end(), Verdict::kDuplicate));
      probes += static_cast<double>(kChunk);
    }
    figures->fpp = hits / probes;
    figures->false_hits = hits;
  }

  // What is held at most from now on.
  void ForgetMemory() { most_bytes_ = 0; }
  void SetRate(double rate) { traffic_.SetRate(rate); }

  double most_bits_per_id() const { return static_cast<double>(most_bytes_) * 8 / traffic_.window(); }
  double missed() const { return missed_; }

 private:
  void Make(size_t size) {
    ids_.resize(size);
    is_copy_.resize(size);
    verdicts_.resize(size);
    traffic_.Next(&ids_, &is_copy_);
  }

  void Call(size_t begin, size_t size) {
    filter_->TestAndInsert({&ids_[begin], size}, {&verdicts_[begin], size});
  }

  void Check() {
    for (size_t i = 0; i < ids_.size(); ++i)
      missed_ += is_copy_[i] && verdicts_[i] == Verdict::kUnique ? 1 : 0;
  }

  int StepsToRefresh(double step) {
    const int64_t refreshes = filter_->Status().refreshes;
    int steps = 0;
    while (filter_->Status().refreshes == refreshes && steps < 4 * kStepsInInterval) {
      Judge(step, kBlock);
      ++steps;
    }
    return steps;
  }

  void NoteMemory() { most_bytes_ = std::max(most_bytes_, filter_->Figures().memory_bytes); }

  Filter* const filter_;
  Traffic traffic_;
  std::vector<TimedId> ids_;
  std::vector<bool> is_copy_;
  std::vector<Verdict> verdicts_;
  int64_t most_bytes_ = 0;
  double missed_ = 0;
};

}  // namespace

Figures MeasureSteady(Filter* filter, double window, const Plan& plan) {
  Figures figures;
  Run run(filter, window);
  figures.ns_from_nothing = run.Judge(1, kBlock);
  run.Judge(plan.warm - 1, kBlock);
  // While a filter grows at its memory limit it may have to shorten its window; here only what follows
  // counts.
  const double missed_before = run.missed();
  figures.ns_batch = run.Judge(plan.batched, kBlock);
  figures.ns_single = run.Judge(plan.single, 1);
  figures.most_bits_per_id = run.most_bits_per_id();
  run.ForgetMemory();
  figures.slowest_us = run.TimeEach(plan.each_timed).Most() * 1e-3;
  run.GoToEndOfInterval();
  run.Probe(plan, &figures);
  const FilterStatus status = filter->Status();
  figures.window = window;
  figures.bits_per_id = run.most_bits_per_id();
  figures.most_bits_per_id = std::max(figures.most_bits_per_id, figures.bits_per_id);
  figures.fpp_modelled = std::max(status.fpp.modelled, status.fpp.at_interval_end);
  figures.window_kept = absl::FDivDuration(status.window, absl::Milliseconds(kHorizonMs));
  run.SetRate(kFallenRate);
  figures.ns_falling = run.Judge(kFallenRate * plan.falling, kBlock);
  figures.fallen_share =
      static_cast<double>(filter->Status().memory_bytes) * 8 / window / figures.most_bits_per_id;
  figures.missed = run.missed() - missed_before;
  return figures;
}

}  // namespace lethe::bench
