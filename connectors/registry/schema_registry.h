// Schemas from a registry that speaks Confluent's API.
#ifndef LETHE_CONNECTORS_REGISTRY_SCHEMA_REGISTRY_H_
#define LETHE_CONNECTORS_REGISTRY_SCHEMA_REGISTRY_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "connectors/registry/http_get.h"
#include "connectors/registry/registry_options.h"
#include "connectors/registry/schema_answer.h"
#include "connectors/registry/schema_files.h"
#include "src/record/schema_source.h"

namespace lethe::registry {

// Asks in one thread, one schema at a time, for as long as there is no answer. A known schema is known for
// ever. One that the registry does not have is asked for again while there is patience
// (RegistryOptions::patience), which all of these share; then it is unknown for a minute. So one forged id
// stops a partition for the patience at most, and each of ten thousand for one request, of which there are at
// most 50 a second. Thread-safe.
class SchemaRegistry final : public SchemaSource {
 public:
  explicit SchemaRegistry(RegistryOptions options);
  ~SchemaRegistry() override;
  SchemaRegistry(const SchemaRegistry&) = delete;
  SchemaRegistry& operator=(const SchemaRegistry&) = delete;

  SchemaLookup Find(const SchemaKey& key) override;
  int64_t answers() const override { return answers_; }
  SchemaFigures figures() const override;

 private:
  struct Entry {
    SchemaLookup lookup;
    absl::Time due;           // kWaiting: when it is asked for
    absl::Duration pause;     // before the next time
    bool is_read = false;     // from its file, if there is one
    bool is_missing = false;  // the registry has said that it has none
    absl::Time forgotten;     // kUnknown
  };
  using Entries = std::map<SchemaKey, Entry>;

  void Run();
  // The waiting schema whose turn it is; end(): none is due before `until`.
  Entries::iterator Next(absl::Time now, absl::Time& until);
  void Handle(const SchemaKey& key, const absl::Status& asked);
  void Decide(Entry& entry, SchemaLookup lookup);
  // Takes or gives back what has passed since the last call.
  void CountPatience(absl::Time now);
  void HandleFailure(Entry& entry, const std::string& why, absl::Time now);
  void HandleUnknown(const SchemaKey& key, Entry& entry, const std::string& why, bool is_final,
                     absl::Time now);

  // These run without the lock.
  absl::StatusOr<Schema> FromFile(const SchemaKey& key) const;
  // NotFound: the registry has none. Unimplemented: lethe refuses it. Unavailable: no
  // registry has answered. Cancelled: the end.
  absl::StatusOr<Schema> Fetch(const SchemaKey& key);
  absl::StatusOr<SchemaAnswer> Ask(const std::string& path);
  absl::StatusOr<SchemaAnswer> AskOne(const std::string& url);
  struct Resolving;
  absl::Status Resolve(const std::vector<SchemaAnswer::Reference>& references, Resolving& to, int depth);
  void Count(int64_t SchemaFigures::*result);

  const RegistryOptions options_;
  const SchemaFiles files_;
  HttpGet http_;
  size_t url_ = 0;  // the one that answered last; of the thread

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stops_ = false;
  Entries entries_;
  std::deque<SchemaKey> unknown_;  // in the order in which they are forgotten
  SchemaFigures figures_;
  int failures_ = 0;                                // in a row
  absl::Time pauses_until_ = absl::InfinitePast();  // after a failure
  absl::Duration patience_;
  absl::Time patience_counted_;
  int64_t missing_ = 0;     // waiting, and the registry has said that it has none
  double misses_left_ = 0;  // requests that may find nothing, now
  absl::Time next_failure_log_ = absl::InfinitePast();
  absl::Time next_unknown_log_ = absl::InfinitePast();

  std::atomic<int64_t> answers_{0};
  std::thread thread_;
};

}  // namespace lethe::registry

#endif  // LETHE_CONNECTORS_REGISTRY_SCHEMA_REGISTRY_H_
