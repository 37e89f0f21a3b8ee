// A real Prometheus server for tests.
#ifndef LETHE_TESTS_SUPPORT_PROMETHEUS_H_
#define LETHE_TESTS_SUPPORT_PROMETHEUS_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/support/process.h"

namespace lethe::test {

// One time series of an answer; an instant query's has one point. Values may be NaN.
struct Series {
  std::map<std::string, std::string> labels;
  std::vector<std::pair<double, double>> points;  // Unix seconds, value
};

// Debian's `prometheus`, on 127.0.0.1, with its data in a temporary folder.
// Invariant: its process ends with the object, and with the thread that started it. Thread-compatible.
class Prometheus {
 public:
  // Scrapes these ports of 127.0.0.1 each second as the job `lethe`, and evaluates the rules of `rule_file`
  // (a path, or none). Returns when it answers.
  static absl::StatusOr<std::unique_ptr<Prometheus>> Start(const std::vector<int>& ports,
                                                           const std::string& rule_file = "");
  ~Prometheus();
  Prometheus(const Prometheus&) = delete;
  Prometheus& operator=(const Prometheus&) = delete;

  absl::StatusOr<std::vector<Series>> Query(const std::string& expression, absl::Time at) const;
  // A point each second.
  absl::StatusOr<std::vector<Series>> QueryRange(const std::string& expression, absl::Time from,
                                                 absl::Time to) const;
  int port() const { return port_; }
  // The body of an answer of its HTTP API, such as /api/v1/rules.
  absl::StatusOr<std::string> Get(const std::string& path) const;

 private:
  explicit Prometheus(std::string folder) : folder_(std::move(folder)) {}

  const std::string folder_;
  int port_ = 0;
  std::unique_ptr<Process> process_;
};

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_PROMETHEUS_H_
