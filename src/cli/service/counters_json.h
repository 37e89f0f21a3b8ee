// The largest totals of this instance as /counters tells them.
#ifndef LETHE_SRC_CLI_SERVICE_COUNTERS_JSON_H_
#define LETHE_SRC_CLI_SERVICE_COUNTERS_JSON_H_

#include <string>
#include <vector>

#include "src/pipeline/publish/counter_watch.h"
#include "src/pipeline/report/report.h"

namespace lethe {

// Totals are texts: they may be larger than what JavaScript's numbers can tell apart.
std::string CountersJson(const CountersView& view, const std::vector<StoreReport>& stores, bool shows_keys);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_SERVICE_COUNTERS_JSON_H_
