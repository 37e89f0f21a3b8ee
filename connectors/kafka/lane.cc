#include "connectors/kafka/lane.h"

#include <string>

namespace lethe::kafka {

Lane::Lane(const Shared& shared, int lane, const StopFlag& stop)
    : shared_(shared),
      state_(lane, stop),
      consumer_(shared_.options, lane),
      output_(
          shared_.options, lane, consumer_, stop, state_.heartbeat,
          [this](const std::string& why) { state_.SetWaiting(why); },
          [this] { return worker_.membership().MayRecreateProducer(); }),
      cluster_(shared_.options, consumer_) {}

absl::Status Lane::Run() {
  worker_.Run();
  return state_.fatal;
}

}  // namespace lethe::kafka
