// chaos [--seed N] [--schedules N] [--schedule SEED] [--jobs N] [--lethe PROGRAM]
//
// Plays random schedules of faults against `lethe run`, and has each judged by the log alone. Every schedule
// has a seed of its own, which is printed before it begins, with what will happen; --schedule plays that one
// again. Where something is wrong, all logs are kept, and the folder is named; the exit code is 1 then.
#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "src/pipeline/clock/steady_time.h"
#include "tests/faults/run.h"
#include "tests/faults/schedule.h"
#include "tests/faults/site.h"

namespace lethe::test {
namespace {

std::string Rounded(absl::Duration duration) {
  return absl::FormatDuration(absl::Trunc(duration, absl::Seconds(1)));
}

// Schedules from a seed on, played by several threads, each on brokers of its own. Thread-compatible.
class Chaos {
 public:
  Chaos(std::string program, uint64_t first, int schedules)
      : program_(std::move(program)), first_(first), schedules_(schedules) {}

  // Whether all was well.
  bool Play(int jobs) {
    std::vector<std::thread> threads;
    for (int i = 0; i < jobs; ++i) threads.emplace_back([this] { Work(); });
    for (std::thread& thread : threads) thread.join();
    std::sort(failed_.begin(), failed_.end());
    std::cout << schedules_ << " schedules with " << faults_ << " faults, " << records_ << " records, "
              << client_copies_ << " of them copies that the client made; " << news_.ToString() << "; "
              << Rounded(SteadyNow() - begin_) << ": "
              << (!failed_.empty() ? absl::StrCat(failed_.size(), " FAILED: ", absl::StrJoin(failed_, ", "))
                  : !HasBitten()   ? "FAILED: some of this was not met once"
                                   : "all well")
              << std::endl;
    return failed_.empty() && HasBitten();
  }

 private:
  using Sites = std::map<int, std::unique_ptr<Site>>;  // by brokers

  // A dozen schedules in a row have all themes, and must have had an effect. (Whether a snapshot could be
  // written just then is chance, so that each kind of effect is too much to ask for.)
  bool HasBitten() const {
    return schedules_ < ThemeCount() ||
           (news_.aborted > 0 && news_.restored + news_.refused + news_.unwritten > 0);
  }

  void Work() {
    Sites sites;
    while (const std::optional<Schedule> schedule = Next()) PlayOne(*schedule, sites);
  }

  std::optional<Schedule> Next() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (next_ == schedules_) return std::nullopt;
    const Schedule schedule = MakeSchedule(first_ + static_cast<uint64_t>(next_));
    std::cout << "[" << ++next_ << "/" << schedules_;
    if (done_ > 0) {
      std::cout << ", " << Rounded((SteadyNow() - begin_) / done_ * (schedules_ - done_)) << " left";
    }
    std::cout << "] seed " << schedule.seed << ": " << schedule.Outline() << std::flush;
    faults_ += schedule.faults.size();
    return schedule;
  }

  void PlayOne(const Schedule& schedule, Sites& sites) {
    std::unique_ptr<Site>& site = sites[schedule.brokers];
    if (site == nullptr) {
      auto started = Site::Start(schedule.brokers);
      if (!started.ok()) return Fail(schedule.seed, {started.status().ToString()}, "");
      site = *std::move(started);
    }
    std::string folder =
        (std::filesystem::temp_directory_path() / absl::StrCat("lethe-chaos-", schedule.seed, "-XXXXXX"))
            .string();
    if (mkdtemp(folder.data()) == nullptr) {
      return Fail(schedule.seed, {absl::StrCat("cannot make a folder like ", folder)}, "");
    }
    const absl::Time begin = SteadyNow();
    Run run(schedule, *site, program_, folder);
    const absl::StatusOr<Judgement> judgement = run.Play();
    if (!judgement.ok()) {
      site.reset();  // whatever is wrong with it, the next begins again
      return Fail(schedule.seed, {absl::StrCat("the harness: ", judgement.status().ToString())}, folder);
    }
    Sum(schedule.seed, *judgement, run.news(), SteadyNow() - begin);
    if (!judgement->problems.empty()) return Fail(schedule.seed, judgement->problems, folder);
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }

  void Sum(uint64_t seed, const Judgement& judgement, const News& news, absl::Duration took) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++done_;
    records_ += judgement.records;
    client_copies_ += judgement.client_copies;
    news_ += news;
    std::cout << absl::StrFormat(
        "  seed %d: %d records, %d of them copies that the client made; %d passed, %d dropped; after the "
        "horizon %d passed again, %d were dropped still",
        seed, judgement.records, judgement.client_copies, judgement.passed, judgement.dropped,
        judgement.late_passed, judgement.late_dropped);
    std::cout << "; " << news.ToString();
    std::cout << absl::StrFormat("; %.1f s\n", absl::ToDoubleSeconds(took)) << std::flush;
  }

  void Fail(uint64_t seed, const std::vector<std::string>& problems, const std::string& folder) {
    const std::lock_guard<std::mutex> lock(mutex_);
    failed_.push_back(seed);
    std::cout << "  seed " << seed << " FAILED; again: chaos --schedule " << seed << "\n    "
              << absl::StrJoin(problems, "\n    ") << (folder.empty() ? "" : "\n  logs are in " + folder)
              << std::endl;
  }

  const std::string program_;
  const uint64_t first_;
  const int schedules_;
  const absl::Time begin_ = SteadyNow();

  std::mutex mutex_;  // guards what follows, and what is printed
  int next_ = 0;
  int done_ = 0;
  size_t faults_ = 0;
  int64_t records_ = 0;
  int64_t client_copies_ = 0;
  News news_;
  std::vector<uint64_t> failed_;
};

}  // namespace
}  // namespace lethe::test

int main(int argc, char** argv) {
  CLI::App app("Random schedules of faults against `lethe run`, judged by the log");
  std::optional<uint64_t> seed;
  std::optional<uint64_t> schedule;
  int schedules = 24;
  int jobs = 1;
  std::string program = LETHE_PROGRAM;
  app.add_option("--seed", seed, "Of the first schedule; the next has the next number [random]");
  app.add_option("--schedules", schedules, "How many")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--schedule", schedule, "Play the one of this seed again");
  app.add_option("--lethe", program, "The program")->check(CLI::ExistingFile)->capture_default_str();
  app.add_option("--jobs", jobs, "So many at a time, each on brokers of its own")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const uint64_t first = schedule ? *schedule : seed.value_or(std::random_device()() % 1'000'000'000);
  return lethe::test::Chaos(program, first, schedule ? 1 : schedules).Play(schedule ? 1 : jobs) ? 0 : 1;
}
