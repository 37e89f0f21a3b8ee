// A running `lethe run`, watched: its log, its metrics, its exit.
#ifndef LETHE_TESTS_SUPPORT_DAEMON_H_
#define LETHE_TESTS_SUPPORT_DAEMON_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/support/process.h"

namespace lethe::test {

struct HttpAnswer {
  int status = 0;  // 0: there was none
  std::string body;
};
// From 127.0.0.1.
HttpAnswer HttpGet(int port, const std::string& path);

// The sum of a metric's series that have all of the labels, each as in `verdict="unique"`. 0 if there is
// none.
double MetricSum(const std::string& metrics, absl::string_view name, const std::vector<std::string>& labels);

// A running `lethe run` that serves its metrics.
class Daemon {
 public:
  Daemon(std::unique_ptr<Process> process, int port) : process_(std::move(process)), port_(port) {}

  Process& process() { return *process_; }
  int port() const { return port_; }  // of its HTTP server
  std::string Log() const { return process_->Stderr(); }

  HttpAnswer Get(const std::string& path) const { return HttpGet(port_, path); }
  double Metric(absl::string_view name, const std::vector<std::string>& labels = {}) const {
    return MetricSum(Get("/metrics").body, name, labels);
  }

  // Whether it came true in time. A daemon that has ended makes nothing come true any more.
  testing::AssertionResult Await(const std::function<bool()>& condition);
  testing::AssertionResult AwaitLog(absl::string_view text);
  testing::AssertionResult AwaitReady();

  // Succeeds if SIGTERM ends it with exit code 0 within 5 seconds, as promised.
  testing::AssertionResult Stop();

 private:
  const std::unique_ptr<Process> process_;
  const int port_;
};

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_DAEMON_H_
