// watched_demo BROKERS PICTURE
//
// Runs `lethe demo --adapt` on a Kafka cluster while a Prometheus watches both daemons, and draws the
// Adaptation dashboard of that day as a PNG file. On a terminal Prometheus then stays until Enter is pressed.
// The exit status is the demo's.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/support/dashboard.h"
#include "tests/support/dashboard_answers.h"
#include "tests/support/process.h"
#include "tests/support/prometheus.h"

namespace lethe::test {
namespace {

const std::string kFolder = LETHE_SOURCE_DIR "/dashboards";
constexpr int kPort = 9464;  // as in dashboards/prometheus.yml

// When both daemons answered.
absl::Status FindTimes(const Prometheus& prometheus, absl::Time* from, absl::Time* to) {
  const auto up = prometheus.QueryRange("min(up{job=\"lethe\"})", *from, *to);
  if (!up.ok()) return up.status();
  std::vector<double> times;
  for (const Series& series : *up) {
    for (const auto& [time, value] : series.points) {
      if (value == 1) times.push_back(time);
    }
  }
  if (times.empty()) return absl::UnavailableError("Prometheus has not reached the daemons");
  const auto [first, last] = std::minmax_element(times.begin(), times.end());
  *from = absl::UnixEpoch() + absl::Seconds(*first);
  *to = absl::UnixEpoch() + absl::Seconds(*last);
  return absl::OkStatus();
}

absl::Status Draw(const Prometheus& prometheus, absl::Time from, absl::Time to, const std::string& picture) {
  if (absl::Status found = FindTimes(prometheus, &from, &to); !found.ok()) return found;
  const Dashboard dashboard = ReadDashboard(kFolder + "/adaptation.json");
  const auto answers = AskDashboard(
      DashboardView::Of(prometheus, from, to, {{"group", ".*"}, {"topic", ".*"}, {"partition", ".*"}}),
      dashboard);
  if (!answers.ok()) return answers.status();
  return WritePicture(dashboard, *answers, picture);
}

absl::StatusOr<int> Run(const std::string& brokers, const std::string& picture) {
  const auto prometheus = Prometheus::Start({kPort, kPort + 1}, kFolder + "/alerts.yml");
  if (!prometheus.ok()) return prometheus.status();
  std::printf("Prometheus: http://127.0.0.1:%d/, for Grafana LETHE_PROMETHEUS (dashboards/README.md)\n",
              (*prometheus)->port());
  std::fflush(stdout);
  ProcessOptions program;
  program.args = {LETHE_PROGRAM, "demo", "--adapt", "--brokers", brokers, "--port", absl::StrCat(kPort)};
  program.inherit = true;
  const absl::Time from = absl::Now();
  auto demo = Process::Start(program);
  if (!demo.ok()) return demo.status();
  const absl::StatusOr<int> code = (*demo)->Wait(absl::InfiniteDuration());
  if (!code.ok() || *code != 0) return code;
  if (absl::Status drawn = Draw(**prometheus, from, absl::Now(), picture); !drawn.ok()) return drawn;
  std::printf("\nThe Adaptation dashboard of this day: %s\n", picture.c_str());
  if (isatty(STDIN_FILENO) != 0) {
    std::printf("Prometheus stays at http://127.0.0.1:%d/ until you press Enter.\n", (*prometheus)->port());
    std::getchar();
  }
  return 0;
}

}  // namespace
}  // namespace lethe::test

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: watched_demo BROKERS PICTURE\n");
    return 125;
  }
  signal(SIGINT, [](int) {});  // a terminal's Ctrl-C has reached the demo, too, which ends by it
  const absl::StatusOr<int> code = lethe::test::Run(argv[1], argv[2]);
  if (code.ok()) return *code;
  std::fprintf(stderr, "watched_demo: %s\n", code.status().ToString().c_str());
  return 125;
}
