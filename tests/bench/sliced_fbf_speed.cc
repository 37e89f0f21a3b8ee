// What the sliced filter costs: time and bits per id in a steady state at the memory limit, and the
// slowest calls while it grows to that size from nothing.
//
//   sliced_fbf_speed [ids in the window] [target] [ids per call]
//
// Times are of the thread's processor, so that other work on the machine only shows in the caches.
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "src/filter/sliced_fbf.h"
#include "src/fpp/sliced_model.h"

namespace {

constexpr int64_t kHorizon = 100'000'000;

uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

lethe::IdHash Id(uint64_t number) {
  const uint64_t a = Mix(number);
  return {a, Mix(a ^ 0x1234567)};
}

double Now() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

struct Cost {
  double seconds = 0;
  double ids = 0;
  double duplicates = 0;
  std::vector<double> calls;  // seconds

  double Slowest(double share) {
    const auto nth =
        calls.begin() + static_cast<std::ptrdiff_t>(static_cast<double>(calls.size() - 1) * share);
    std::nth_element(calls.begin(), nth, calls.end());
    return *nth;
  }
};

class Stream {
 public:
  Stream(lethe::Filter* filter, double window, size_t per_call)
      : filter_(filter), window_(window), ids_(std::max<size_t>(per_call, 512)), per_call_(per_call) {
    verdicts_.resize(ids_.size());
  }

  // New ids at the steady rate.
  Cost Insert(double horizons, double rate = 1) {
    return Run(
        horizons * rate * window_,
        [&] {
          for (lethe::TimedId& id : ids_) {
            time_ += kHorizon / window_ / rate;
            id = {Id(next_++), static_cast<int64_t>(time_)};
          }
        },
        [&](size_t i, size_t count) {
          filter_->TestAndInsert({&ids_[i], count}, {&verdicts_[i], count});
        });
  }

  Cost Probe(double count) {
    std::vector<lethe::IdHash> strangers(ids_.size());
    return Run(
        count,
        [&] {
          for (lethe::IdHash& id : strangers) id = Id(next_++ | uint64_t{1} << 63);
        },
        [&](size_t i, size_t size) {
          filter_->Contains({&strangers[i], size}, {&verdicts_[i], size});
        });
  }

 private:
  Cost Run(double count, const std::function<void()>& make, const std::function<void(size_t, size_t)>& call) {
    Cost cost;
    while (cost.ids < count) {
      make();
      const double start = Now();
      for (size_t i = 0; i < ids_.size(); i += per_call_) call(i, std::min(per_call_, ids_.size() - i));
      cost.calls.push_back(Now() - start);
      cost.seconds += cost.calls.back();
      cost.ids += static_cast<double>(ids_.size());
      cost.duplicates +=
          static_cast<double>(std::count(verdicts_.begin(), verdicts_.end(), lethe::Verdict::kDuplicate));
    }
    return cost;
  }

  lethe::Filter* const filter_;
  const double window_;
  std::vector<lethe::TimedId> ids_;
  const size_t per_call_;
  std::vector<lethe::Verdict> verdicts_;
  uint64_t next_ = 0;
  double time_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const double window = argc > 1 ? std::atof(argv[1]) : 1e7;
  const double target = argc > 2 ? std::atof(argv[2]) : 1e-4;
  const size_t per_call = argc > 3 ? static_cast<size_t>(std::atoll(argv[3])) : 512;
  const lethe::SlicedShape shape = lethe::SlicedShapeFor(target);
  // No room beyond what the model asks for, and a percent.
  lethe::MemoryBudget memory(static_cast<int64_t>(1.01 * window * lethe::SlicedBitsPerId(shape, target) / 8) +
                             20000);
  auto made =
      lethe::NewSlicedFbf({.horizon = absl::Milliseconds(kHorizon), .target_fpp = target, .memory = &memory});
  if (!made.ok()) {
    std::fprintf(stderr, "%s\n", std::string(made.status().message()).c_str());
    return 1;
  }
  lethe::Filter& filter = **made;
  Stream stream(&filter, window, per_call);
  Cost growing = stream.Insert(1);
  stream.Insert(1);
  Cost steady = stream.Insert(2);
  const Cost probing = stream.Probe(window);
  const double status_start = Now();
  const lethe::FilterStatus status = filter.Status();
  const double status_seconds = Now() - status_start;
  Cost falling = stream.Insert(6, 0.05);
  std::printf(
      "%.0g ids, target %.0e, %zu a call: %.1f ns per id, look-ups %.1f; %.1f bits per id; window %.3f "
      "horizons; limit hits %ld\n",
      window, target, per_call, steady.seconds / steady.ids * 1e9, probing.seconds / probing.ids * 1e9,
      static_cast<double>(status.memory_bytes) * 8 / window,
      absl::ToDoubleMilliseconds(status.window) / kHorizon, static_cast<long>(status.limit_hits));
  std::printf(
      "  FPP inserting %.3g probing %.3g modelled %.3g estimated %.3g at interval end %.3g; status %.2f ms\n",
      steady.duplicates / steady.ids, probing.duplicates / probing.ids, status.fpp_modelled,
      status.fpp_estimated, status.fpp_at_interval_end, status_seconds * 1e3);
  std::printf(
      "  512 ids take, in us (median, 99.9 %%, slowest): growing %.0f %.0f %.0f, steady %.0f %.0f %.0f, "
      "shrinking %.0f %.0f %.0f; then %.1f MiB\n",
      growing.Slowest(0.5) * 1e6, growing.Slowest(0.999) * 1e6, growing.Slowest(1) * 1e6,
      steady.Slowest(0.5) * 1e6, steady.Slowest(0.999) * 1e6, steady.Slowest(1) * 1e6,
      falling.Slowest(0.5) * 1e6, falling.Slowest(0.999) * 1e6, falling.Slowest(1) * 1e6,
      static_cast<double>(memory.used_bytes()) / (1 << 20));
}
