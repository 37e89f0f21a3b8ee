#include "tests/simulation/network.h"

#include <algorithm>

namespace lethe::simulation {
namespace {

// Of the requests while there is trouble; more would be a network that is away.
constexpr int kTroubledOneIn = 3;

}  // namespace

void Network::Trouble(const std::string& instance, absl::Duration lasts) {
  absl::Duration& until = troubled_until_[instance];
  until = std::max(until, world_.now() + lasts);
}

Network::Way Network::NextWay(const std::string& instance) {
  if (troubled_until_.empty()) return Way::kGood;
  const auto found = troubled_until_.find(instance);
  if (found == troubled_until_.end()) return Way::kGood;
  if (world_.now() >= found->second) {
    troubled_until_.erase(found);
    return Way::kGood;
  }
  if (!dice_.OneIn(kTroubledOneIn)) return Way::kGood;
  return dice_.Choose({Way::kTwice, Way::kTwice, Way::kAnswerLost, Way::kSlow});
}

absl::Duration Network::Delay() {
  return dice_.Between(absl::ZeroDuration(),
                       dice_.Choose({absl::Milliseconds(50), absl::Milliseconds(500), absl::Seconds(4)}));
}

}  // namespace lethe::simulation
