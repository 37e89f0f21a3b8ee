// The last lines of `lethe run`: the totals, and how it ended.
#ifndef LETHE_SRC_CLI_SERVICE_CLOSING_LINES_H_
#define LETHE_SRC_CLI_SERVICE_CLOSING_LINES_H_

#include <string>

#include "src/pipeline/report/report.h"

namespace lethe {

// "1,000 records: 900 unique, 100 duplicates; 12 transactions committed, none aborted". Empty if no lane ran.
std::string Totals(const DaemonReport& report);

struct Ending {
  bool unfinished = false;  // the last transaction was aborted
  bool unanswered = false;  // no broker answers, so the group may not know that this process has left it
  bool stays = false;       // in the group (StaticMembership::kAlways)
};
// How a run that was asked to end has ended.
std::string Farewell(const DaemonReport& report, Ending ending);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_SERVICE_CLOSING_LINES_H_
