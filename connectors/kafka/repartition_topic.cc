// By itself: it is all that a configuration needs of the repartition topic.
#include "absl/strings/str_cat.h"
#include "connectors/kafka/repartition.h"

namespace lethe::kafka {

std::string RepartitionTopic(const DaemonOptions& options) {
  return absl::StrCat(options.group, "-", options.input, "-repartition");
}

}  // namespace lethe::kafka
