// Plays schedules by their seeds. A failure is shrunk, and told.
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <ctime>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/simulation/play.h"
#include "tests/simulation/schedule.h"
#include "tests/simulation/shrink.h"

namespace lethe::simulation {
namespace {

void Tell(const Schedule& schedule) {
  const Played played = Play(schedule, /*keeps_log=*/true);
  std::cout << schedule.Story() << "\n" << played.log << "\n";
}

constexpr absl::Duration kNewsEvery = absl::Minutes(1);
// In most schedules no horizon goes by: they have few records.
constexpr int kFewRecords = 120;
constexpr size_t kMostShrunk = 3;

// What was played, and how long it took the processor.
struct Speed {
  int64_t schedules = 0;
  clock_t took = 0;

  void Add(clock_t of_one) {
    ++schedules;
    took += of_one;
  }
  double per_second() const {
    return static_cast<double>(schedules) * CLOCKS_PER_SEC / static_cast<double>(std::max<clock_t>(took, 1));
  }
};

int Main(int argc, char** argv) {
  CLI::App app("Plays schedules of faults on a cluster in memory, and judges what they leave behind");
  uint64_t seed = 1;
  double seconds = 0;
  int64_t count = 1000;
  bool tells = false;
  app.add_option("--seed", seed, "Of the first schedule; each one has the next");
  app.add_option("--seconds", seconds, "How long to play");
  app.add_option("--schedules", count, "How many to play, without --seconds");
  app.add_flag("--tell", tells, "Print what happens, of all, and of none the shrunk one");
  CLI11_PARSE(app, argc, argv);
  spdlog::set_level(spdlog::level::off);
  const absl::Time begin = absl::Now();
  const uint64_t first = seed;
  int64_t played = 0;
  Speed all;
  Speed small;
  std::vector<std::string> failures;
  test::Judgement sum;
  absl::Time next_news = begin + kNewsEvery;
  for (; seconds > 0 ? absl::Now() - begin < absl::Seconds(seconds) : played < count; ++played, ++seed) {
    if (absl::Now() >= next_news) {
      std::cerr << absl::StreamFormat("%d schedules, %d fail\n", played, failures.size());
      next_news += kNewsEvery;
    }
    const Schedule schedule = MakeSchedule(seed);
    const clock_t before = std::clock();
    const Played result = Play(schedule);
    const clock_t took = std::clock() - before;
    all.Add(took);
    if (schedule.records * schedule.topics <= kFewRecords) small.Add(took);
    sum += result.judgement;
    if (tells) Tell(schedule);
    if (result.problems.empty()) continue;
    failures.push_back(absl::StrCat("seed ", seed, " FAILS: ", result.problems.front()));
    std::cout << failures.back() << "\n";
    if (failures.size() > kMostShrunk || tells) continue;
    std::cout << "The least of it:\n";
    Tell(Shrink(schedule, FailsLike(result.problems.front())));
  }
  const double real = absl::ToDoubleSeconds(absl::Now() - begin);
  std::cout << absl::StreamFormat(
      "%d schedules, of the seeds %d to %d: %d fail. %d records, of which %d were passed, %d dropped, %d "
      "undeliverable. %.1f s. A second of a processor plays %.0f, and %.0f of those with up to %d records\n",
      played, first, seed - 1, failures.size(), sum.records, sum.passed, sum.dropped, sum.undeliverable, real,
      all.per_second(), small.per_second(), kFewRecords);
  // Once more behind the stories: of a long log the end is read first.
  for (const std::string& failure : failures) std::cout << failure << "\n";
  if (failures.empty()) return 0;
  std::cout << "To play one again, with this commit: make simulate SCHEDULES=1 SEED=n\n";
  return 1;
}

}  // namespace
}  // namespace lethe::simulation

int main(int argc, char** argv) { return lethe::simulation::Main(argc, argv); }
