// What processes report of themselves, held against the logs.
#ifndef LETHE_TESTS_SIMULATION_FIGURES_H_
#define LETHE_TESTS_SIMULATION_FIGURES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "src/pipeline/report/report.h"

namespace lethe::simulation {

// What should have been counted, by the logs.
struct CountsInLog {
  RecordCounts least;
  RecordCounts most;

  CountsInLog& operator+=(const CountsInLog& more) {
    least += more.least;
    most += more.most;
    return *this;
  }
};

// The records that all processes of a schedule have counted. Not thread-safe.
class Figures {
 public:
  // The last report of a process that has ended, or that dies: what it had committed then it need not have
  // learned.
  void Add(const DaemonReport& report);
  const RecordCounts& judged() const { return judged_; }
  const RecordCounts& routed() const { return routed_; }

  // Whether they have counted no record twice, and, with `is_exact`, each; `what` is for people.
  void Compare(const char* what, const RecordCounts& counted, const CountsInLog& in_log, bool is_exact);
  // Whether the figures of a report agree with each other: of a process that is not killed amid a count.
  void Look(const DaemonReport& report);

  const std::vector<std::string>& problems() const { return problems_; }

 private:
  void Look(const LaneReport& lane);
  void Look(const std::string& where, const RecordCounts& counts);

  RecordCounts judged_;
  RecordCounts routed_;
  std::vector<std::string> problems_;
};

}  // namespace lethe::simulation

#endif  // LETHE_TESTS_SIMULATION_FIGURES_H_
