// The last lines of `lethe run`: the totals, and how it ended.
#ifndef LETHE_SRC_CLI_SERVICE_CLOSING_LINES_H_
#define LETHE_SRC_CLI_SERVICE_CLOSING_LINES_H_

#include <string>

#include "src/pipeline/report/report.h"

namespace lethe {

// "1,000 records: 900 unique, 100 duplicates; 12 transactions committed, none aborted". Empty if no lane ran.
std::string Totals(const DaemonReport& report);

// How a run that was asked to end has ended. `unfinished`: its last transaction was aborted.
std::string Farewell(const DaemonReport& report, bool unfinished);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_SERVICE_CLOSING_LINES_H_
