// A day of `lethe demo --adapt`: a load that rises and falls twice, and clients that send again.
#ifndef LETHE_SRC_CLI_DEMO_DEMO_DAY_H_
#define LETHE_SRC_CLI_DEMO_DEMO_DAY_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "lethe/secret_hash.h"

namespace lethe {

// As in Figure 13 of the Forgetful Bloom Filter's paper a peak, a higher one, and quiet around them.
// Deterministic for a seed, whatever the clock does: times are of the day's own clock. Not thread-safe.
class DemoDay {
 public:
  static constexpr absl::Duration kLength = absl::Hours(24);
  static constexpr absl::Duration kHorizon = absl::Minutes(90);
  static constexpr double kLostAcknowledgements = 0.08;
  static constexpr absl::Duration kLatestRetry = absl::Minutes(30);

  struct Sending {
    absl::Duration at;  // since midnight
    std::string id;
    bool operator>(const Sending& other) const { return at > other.at; }
  };

  DemoDay(int64_t events, uint64_t seed) : events_(events), random_(seed) {}

  // New events an hour at a time of the day, of a day with so many.
  static double Load(absl::Duration at, int64_t events);

  // The next sending, in order of time; nullopt when all is sent.
  std::optional<Sending> Next();

  const SecretHashSet& ids() const { return ids_; }
  int64_t sent() const { return sent_; }

 private:
  // The next event; its time is kLength or later if there is no more.
  Sending NewEvent();

  const int64_t events_;
  std::mt19937_64 random_;
  absl::Duration clock_;
  double due_ = 0;  // events that the load has brought and that were not sent
  std::optional<Sending> next_;
  std::priority_queue<Sending, std::vector<Sending>, std::greater<>> retries_;
  SecretHashSet ids_;
  int64_t sent_ = 0;
};

}  // namespace lethe

#endif  // LETHE_SRC_CLI_DEMO_DEMO_DAY_H_
