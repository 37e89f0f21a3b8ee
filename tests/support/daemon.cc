#include "tests/support/daemon.h"

#include <httplib.h>
#include <signal.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "tests/support/kafka_client.h"

namespace lethe::test {
namespace {

constexpr absl::Duration kDaemonTimeout = absl::Minutes(1);
// It is patient with the group for four seconds itself, where that does not answer.
constexpr absl::Duration kDaemonStopTimeout = absl::Seconds(10);

}  // namespace

HttpAnswer HttpGet(int port, const std::string& path) {
  httplib::Client client("127.0.0.1", port);
  const httplib::Result result = client.Get(path.c_str());
  return result ? HttpAnswer{result->status, result->body} : HttpAnswer{};
}

double MetricSum(const std::string& metrics, absl::string_view name, const std::vector<std::string>& labels) {
  double sum = 0;
  for (const absl::string_view line : absl::StrSplit(metrics, '\n')) {
    const size_t space = line.rfind(' ');
    if (space == absl::string_view::npos || line.substr(0, line.find_first_of(" {")) != name) continue;
    const absl::string_view series = line.substr(0, space);
    const bool all = std::all_of(labels.begin(), labels.end(),
                                 [&](const std::string& label) { return absl::StrContains(series, label); });
    double value = 0;
    if (all && absl::SimpleAtod(line.substr(space + 1), &value)) sum += value;
  }
  return sum;
}

testing::AssertionResult Daemon::Await(const std::function<bool()>& condition) {
  bool met = false;
  WaitUntil([&] { return (met = condition()) || !process_->Running(); }, kDaemonTimeout);
  if (met || condition()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "timed out; lethe says\n" << Log();
}

testing::AssertionResult Daemon::AwaitLog(absl::string_view text) {
  return Await([&] { return absl::StrContains(Log(), text); }) << "\nwaited for \"" << text << "\"";
}

testing::AssertionResult Daemon::AwaitReady() {
  return Await([&] { return Get("/readyz").status == 200; });
}

testing::AssertionResult Daemon::Stop() {
  if (const absl::Status asked = process_->Signal(SIGTERM); !asked.ok()) {
    return testing::AssertionFailure() << asked << "\n" << Log();
  }
  const absl::StatusOr<int> code = process_->Wait(kDaemonStopTimeout);
  if (code.ok() && *code == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure() << (code.ok() ? absl::StrCat("it ended with ", *code)
                                                   : code.status().ToString())
                                     << "\n"
                                     << Log();
}

}  // namespace lethe::test
