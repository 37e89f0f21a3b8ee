// The way of requests from the clients of an instance to the brokers, and of the answers back.
#ifndef LETHE_TESTS_SIMULATION_NETWORK_H_
#define LETHE_TESTS_SIMULATION_NETWORK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "tests/simulation/dice.h"
#include "tests/simulation/world.h"

namespace lethe::simulation {

// A client whose connection is closed sends its request again, on a new one. The first request may be lost
// with the old connection, or only late: then a broker gets it a second time, with the same bytes, when the
// client has long been answered. Not thread-safe.
class Network {
 public:
  enum class Way {
    kGood,
    kTwice,       // held, and the connection is closed: the client sends it again, and one copy is late
    kAnswerLost,  // it arrives, and the connection is closed before the answer: the client sends it again
    kSlow,        // it takes long, and so does the answer
  };

  Network(World& world, uint64_t seed) : world_(world), dice_(seed ^ 0x1a7e) {}

  // For so long many requests of the instance's clients do not go the good way.
  void Trouble(const std::string& instance, absl::Duration lasts);
  void Heal() { troubled_until_.clear(); }
  // Of its next request.
  Way NextWay(const std::string& instance);
  // How long a request or an answer may take.
  absl::Duration Delay();
  // Delivers a copy of a request later, whatever becomes of its client; nobody hears of the answer.
  void DeliverLate(std::function<void()> request) { world_.After(Delay(), std::move(request)); }

 private:
  World& world_;
  Dice dice_;  // of its own: without trouble nothing is decided
  std::map<std::string, absl::Duration> troubled_until_;
};

}  // namespace lethe::simulation

#endif  // LETHE_TESTS_SIMULATION_NETWORK_H_
