// chaos [--seed N] [--schedules N] [--schedule SEED] [--lethe PROGRAM]
//
// Plays random schedules of faults against `lethe run`, and has each judged by the log alone. Every schedule
// has a seed of its own, which is printed before it begins, with what will happen; --schedule plays that one
// again. Where something is wrong, all logs are kept, and the folder is named; the exit code is 1 then.
#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "tests/faults/run.h"
#include "tests/faults/schedule.h"
#include "tests/faults/site.h"

namespace lethe::test {
namespace {

class Chaos {
 public:
  explicit Chaos(std::string program) : program_(std::move(program)) {}

  // Whether all was well.
  bool Play(uint64_t seed) {
    const Schedule schedule = MakeSchedule(seed);
    std::cout << "seed " << seed << ": " << schedule.Outline() << std::flush;
    std::unique_ptr<Site>& site = sites_[schedule.brokers];
    if (site == nullptr) {
      auto started = Site::Start(schedule.brokers);
      if (!started.ok()) return Fail(seed, {started.status().ToString()}, "");
      site = *std::move(started);
    }
    std::string folder =
        (std::filesystem::temp_directory_path() / absl::StrCat("lethe-chaos-", seed, "-XXXXXX")).string();
    if (mkdtemp(folder.data()) == nullptr)
      return Fail(seed, {absl::StrCat("cannot make a folder like ", folder)}, "");
    const absl::Time begin = absl::Now();
    Run run(schedule, *site, program_, folder);
    const absl::StatusOr<Judgement> judgement = run.Play();
    if (!judgement.ok()) {
      site.reset();  // whatever is wrong with it, the next begins anew
      return Fail(seed, {absl::StrCat("the harness: ", judgement.status().ToString())}, folder);
    }
    std::cout << absl::StrFormat(
        "  %d records, %d of them copies that the client made; %d passed, %d dropped; after the horizon %d "
        "passed "
        "again, %d were dropped still; %d filters from snapshots, %d snapshots refused, %d not written; %.1f "
        "s\n",
        judgement->records, judgement->client_copies, judgement->passed, judgement->dropped,
        judgement->late_passed, judgement->late_dropped, run.snapshot_news().restored,
        run.snapshot_news().refused, run.snapshot_news().unwritten,
        absl::ToDoubleSeconds(absl::Now() - begin));
    records_ += judgement->records;
    client_copies_ += judgement->client_copies;
    snapshot_news_ += run.snapshot_news();
    if (!judgement->problems.empty()) return Fail(seed, judgement->problems, folder);
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
    return true;
  }

  int64_t records() const { return records_; }
  int64_t client_copies() const { return client_copies_; }
  const SnapshotNews& snapshot_news() const { return snapshot_news_; }

 private:
  static bool Fail(uint64_t seed, const std::vector<std::string>& problems, const std::string& folder) {
    std::cout << "  FAILED; again: chaos --schedule " << seed << "\n    " << absl::StrJoin(problems, "\n    ")
              << (folder.empty() ? "" : "\n  logs are in " + folder) << std::endl;
    return false;
  }

  const std::string program_;
  std::map<int, std::unique_ptr<Site>> sites_;  // by brokers
  int64_t records_ = 0;
  int64_t client_copies_ = 0;
  SnapshotNews snapshot_news_;
};

int Main(const std::string& program, uint64_t first, int schedules) {
  Chaos chaos(program);
  std::vector<uint64_t> failed;
  const absl::Time begin = absl::Now();
  for (int i = 0; i < schedules; ++i) {
    const uint64_t seed = first + static_cast<uint64_t>(i);
    std::cout << "[" << i + 1 << "/" << schedules;
    if (i > 0) {
      const absl::Duration left = (absl::Now() - begin) / i * (schedules - i);
      std::cout << ", " << absl::FormatDuration(absl::Trunc(left, absl::Seconds(1))) << " left";
    }
    std::cout << "] ";
    if (!chaos.Play(seed)) failed.push_back(seed);
  }
  std::cout << schedules << " schedules, " << chaos.records() << " records, " << chaos.client_copies()
            << " of them copies that the client made, " << chaos.snapshot_news().restored
            << " filters from snapshots, " << chaos.snapshot_news().refused << " snapshots refused, "
            << chaos.snapshot_news().unwritten << " not written, "
            << absl::FormatDuration(absl::Trunc(absl::Now() - begin, absl::Seconds(1))) << ": "
            << (failed.empty() ? "all well"
                               : absl::StrCat(failed.size(), " FAILED: ", absl::StrJoin(failed, ", ")))
            << std::endl;
  return failed.empty() ? 0 : 1;
}

}  // namespace
}  // namespace lethe::test

int main(int argc, char** argv) {
  CLI::App app("Random schedules of faults against `lethe run`, judged by the log");
  std::optional<uint64_t> seed;
  std::optional<uint64_t> schedule;
  int schedules = 24;
  std::string program = LETHE_PROGRAM;
  app.add_option("--seed", seed, "Of the first schedule; the next has the next number [random]");
  app.add_option("--schedules", schedules, "How many")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--schedule", schedule, "Play the one of this seed again");
  app.add_option("--lethe", program, "The program")->check(CLI::ExistingFile)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  if (schedule) return lethe::test::Main(program, *schedule, 1);
  return lethe::test::Main(program, seed.value_or(std::random_device()() % 1'000'000'000), schedules);
}
