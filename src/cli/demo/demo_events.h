// The demo's world: edits of pages, and clients that lose acknowledgements and send again.
#ifndef LETHE_SRC_CLI_DEMO_DEMO_EVENTS_H_
#define LETHE_SRC_CLI_DEMO_DEMO_EVENTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "lethe/secret_hash.h"

namespace lethe {

struct DemoEvent {
  std::string id;
  std::string value;  // JSON: one object with "id", "channel" and "delta"; or the same in Avro
  std::string channel;
  int64_t delta = 0;
};

// Gives one event after another; nullopt at the end.
using DemoEvents = std::function<std::optional<DemoEvent>()>;

// `count` made-up edits; the same seed gives the same ones.
DemoEvents GeneratedEvents(int64_t count, uint64_t seed);

// Registered as schema 1, and later as schema 2, with a field before the id, a wider type and a union.
extern const char kDemoSchema1[];
extern const char kDemoSchema2[];
// The event in Avro, behind the frame of schema 1 or 2.
std::string DemoAvro(const DemoEvent& event, int schema);

// The correct result, and that of a pipeline without deduplication.
struct DemoTruth {
  int64_t sent = 0;
  SecretHashSet ids;
  std::map<std::string, int64_t> totals;                // per channel, each event once
  std::map<std::string, int64_t> totals_without_dedup;  // per channel, every copy
};

// Sends what a source gives, and a share of it again a little later, as a client does whose acknowledgement
// was lost. Not thread-safe.
class RetryingClients {
 public:
  static constexpr double kLostAcknowledgements = 0.08;
  static constexpr double kLostAgain = 0.2;  // of those: the second sending's, too
  static constexpr int64_t kLatest = 2000;   // a retry comes at most this many events later

  RetryingClients(DemoEvents events, uint64_t seed) : events_(std::move(events)), random_(seed) {}

  // The next sending; nullopt when all is sent.
  std::optional<DemoEvent> Next();

  const DemoTruth& truth() const { return truth_; }

 private:
  struct Retry {
    int64_t due;  // by the number of events
    DemoEvent event;
    bool operator>(const Retry& other) const { return due > other.due; }
  };

  void Account(const DemoEvent& event);

  const DemoEvents events_;
  std::mt19937_64 random_;
  std::priority_queue<Retry, std::vector<Retry>, std::greater<>> retries_;
  int64_t position_ = 0;
  bool at_end_ = false;
  DemoTruth truth_;
};

}  // namespace lethe

#endif  // LETHE_SRC_CLI_DEMO_DEMO_EVENTS_H_
