// The reference of the metrics, made of their definitions.
#ifndef LETHE_SRC_CLI_METRICS_METRICS_PAGE_H_
#define LETHE_SRC_CLI_METRICS_METRICS_PAGE_H_

#include <string>

namespace lethe {

// `lethe help metrics`: of each metric all that its definition says.
std::string MetricsPage();

}  // namespace lethe

#endif  // LETHE_SRC_CLI_METRICS_METRICS_PAGE_H_
