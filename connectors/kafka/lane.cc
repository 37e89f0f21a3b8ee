#include "connectors/kafka/lane.h"

namespace lethe::kafka {

Lane::Lane(const Shared& shared, int lane, const StopFlag& stop)
    : shared_(shared),
      state_(lane, stop),
      consumer_(shared_.options, shared_.flows, lane),
      output_(shared_.options, shared_.flows, state_, consumer_,
              [this] { return worker_.membership().MayRecreateProducer(); }),
      cluster_(shared_.options, shared_.flows, consumer_) {}

absl::Status Lane::Run() {
  worker_.Run();
  return state_.fatal;
}

}  // namespace lethe::kafka
