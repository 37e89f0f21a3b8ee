#include "tests/simulation/shrink.h"

#include <algorithm>
#include <vector>

#include "tests/simulation/play.h"

namespace lethe::simulation {
namespace {

using Step = std::function<void(Schedule&)>;

// Each makes the schedule simpler in one way, or leaves it as it is.
std::vector<Step> StepsOf(const Schedule& schedule) {
  std::vector<Step> steps;
  for (size_t i = 0; i < schedule.faults.size(); ++i) {
    steps.emplace_back([i](Schedule& s) { s.faults.erase(s.faults.begin() + static_cast<int64_t>(i)); });
  }
  for (const int part : {2, 4, 8}) {
    steps.emplace_back([part](Schedule& s) { s.records -= s.records / part; });
  }
  steps.emplace_back([](Schedule& s) { s.records = std::max(1, s.records - 1); });
  steps.emplace_back([](Schedule& s) { s.instances = std::max(1, s.instances - 1); });
  steps.emplace_back([](Schedule& s) { s.lanes = 1; });
  steps.emplace_back([](Schedule& s) { s.topics = std::max(1, s.topics - 1); });
  steps.emplace_back([](Schedule& s) { s.routed_topics = std::max(0, s.routed_topics - 1); });
  steps.emplace_back([](Schedule& s) { s.ways = 1; });
  steps.emplace_back([](Schedule& s) { s.is_backlog = false; });
  steps.emplace_back([](Schedule& s) { s.stopping_topic = -1; });
  steps.emplace_back([](Schedule& s) { s.filters = 0; });
  steps.emplace_back([](Schedule& s) { s.partitions = std::max(1, s.partitions - 1); });
  steps.emplace_back([](Schedule& s) { s.is_cooperative = false; });
  steps.emplace_back([](Schedule& s) { s.has_static_members = false; });
  steps.emplace_back([](Schedule& s) { s.keeps_places = false; });
  steps.emplace_back([](Schedule& s) { s.accepts_output = true; });
  steps.emplace_back([](Schedule& s) { s.skips_deleted = false; });
  steps.emplace_back([](Schedule& s) { s.stops_at_short = false; });
  steps.emplace_back([](Schedule& s) { s.names_input = false; });
  steps.emplace_back([](Schedule& s) { s.is_exact = false; });
  steps.emplace_back([](Schedule& s) { s.renews = false; });
  steps.emplace_back([](Schedule& s) { s.tags = false; });
  steps.emplace_back([](Schedule& s) { s.shards = 1; });
  steps.emplace_back([](Schedule& s) { s.past_of_hundred = 0; });
  steps.emplace_back([](Schedule& s) { s.snapshots = SnapshotPlace::kNowhere; });
  steps.emplace_back([](Schedule& s) { s.counting = Counting::kNothing; });
  steps.emplace_back([](Schedule& s) { s.wild_of_hundred = 0; });
  steps.emplace_back([](Schedule& s) { s.burst = 0; });
  steps.emplace_back([](Schedule& s) { s.without_id_of_hundred = 0; });
  steps.emplace_back([](Schedule& s) { s.oversized_of_hundred = 0; });
  steps.emplace_back([](Schedule& s) { s.skew = absl::ZeroDuration(); });
  steps.emplace_back([](Schedule& s) { s.are_brokers_old = false; });
  steps.emplace_back([](Schedule& s) { s.epilogue = Epilogue::kNone; });
  return steps;
}

}  // namespace

std::function<bool(const Schedule&)> FailsLike(absl::string_view problem) {
  return [kind = KindOf(problem)](const Schedule& schedule) {
    const Played played = Play(schedule);
    return !played.problems.empty() && KindOf(played.problems.front()) == kind;
  };
}

Schedule Shrink(const Schedule& schedule, const std::function<bool(const Schedule&)>& fails) {
  Schedule least = schedule;
  for (bool is_smaller = true; is_smaller;) {
    is_smaller = false;
    for (const Step& step : StepsOf(least)) {
      Schedule next = least;
      step(next);
      if (next.Story() == least.Story() || !fails(next)) continue;
      least = next;
      is_smaller = true;
      break;
    }
  }
  return least;
}

}  // namespace lethe::simulation
