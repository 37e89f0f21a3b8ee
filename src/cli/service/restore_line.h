// The rebuild of filters, as a person at a terminal sees it.
#ifndef LETHE_SRC_CLI_SERVICE_RESTORE_LINE_H_
#define LETHE_SRC_CLI_SERVICE_RESTORE_LINE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "src/cli/service/periodic.h"
#include "src/cli/terminal/terminal.h"
#include "src/pipeline/report/report.h"

namespace lethe {

// How far all rebuilds are together that went on at a time: those that are done count until the last one is.
// Not thread-safe.
class RestoreText {
 public:
  // As DrawProgress; empty if no filter is being rebuilt.
  std::string Draw(const DaemonReport& report, absl::Time now, const TextStyle& style, int width);

 private:
  std::map<int32_t, int64_t> offsets_;  // that each partition has to read, by its number
  absl::Time begin_;
};

// Shows it beneath the log, from a thread of its own, if the log has a footer.
class RestoreLine {
 public:
  explicit RestoreLine(std::function<DaemonReport()> look);
  ~RestoreLine();

 private:
  RestoreText text_;  // the thread's
  std::optional<Periodic> drawing_;
};

}  // namespace lethe

#endif  // LETHE_SRC_CLI_SERVICE_RESTORE_LINE_H_
