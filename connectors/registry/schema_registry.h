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
#include <optional>
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

// Asks in one thread, one schema at a time, for as long as there is no answer: first for what is waited for,
// then for what is expected. A known schema is known for ever. One that the registry does not have is asked
// for again while there is patience (RegistryOptions::patience), which all of these share; then it is unknown
// for a minute. So forged ids stop a partition for twice the patience and a twentieth of the time at most,
// and beside that each for one request, of which there are at most 100 a second. Thread-safe.
class SchemaRegistry final : public SchemaSource {
 public:
  // What it logs is for a daemon; others are told by its lookups alone.
  explicit SchemaRegistry(RegistryOptions options, bool logs = true);
  ~SchemaRegistry() override;
  SchemaRegistry(const SchemaRegistry&) = delete;
  SchemaRegistry& operator=(const SchemaRegistry&) = delete;

  SchemaLookup Find(const SchemaKey& key) override;
  void Expect(const SchemaKey& key) override;
  int64_t answers() const override { return answers_; }
  SchemaFigures figures() const override;

 private:
  struct Entry {
    SchemaLookup lookup;
    bool is_wanted = false;   // by Find; else it is only expected
    bool is_read = false;     // from its file, if there is one
    bool is_queued = false;   // it is in queues_, with `due`
    absl::Time due;           // when to ask for it
    absl::Duration pause;     // before the next time
    absl::Time seen;          // kWaiting: since when
    bool is_refused = false;  // the registry has said that it has none
    absl::Time refused;       // when it has last said so
    bool is_missing = false;  // refused and wanted: asked for again until...
    absl::Time until;
    absl::Time forgotten;  // kUnknown
  };
  using Entries = std::map<SchemaKey, Entry>;
  using Queue = std::set<std::pair<absl::Time, SchemaKey>>;

  void Run();
  // Takes the waiting schema whose turn it is out of its queue; nullopt: none is due before `until`.
  std::optional<SchemaKey> TakeNext(absl::Time now, absl::Time& until);
  Entry* Add(const SchemaKey& key, absl::Time now);
  void Schedule(const SchemaKey& key, Entry& entry, absl::Time due);
  void Unschedule(const SchemaKey& key, Entry& entry);
  void Want(const SchemaKey& key, Entry& entry, absl::Time now);
  void Handle(const SchemaKey& key, const absl::Status& asked);
  void Decide(const SchemaKey& key, Entry& entry, SchemaLookup lookup);
  void DecideUnknown(const SchemaKey& key, Entry& entry, absl::Time now);
  // Takes or gives back what has passed since the last call.
  void CountPatience(absl::Time now);
  // How long to ask for a schema that turns out to be missing now; zero if little patience is left.
  absl::Duration PatienceForOne() const;
  void HandleFailure(const SchemaKey& key, Entry& entry, const std::string& why, absl::Time now);
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
  const bool logs_;
  const SchemaFiles files_;
  HttpGet http_;
  size_t url_ = 0;  // the one that answered last; of the thread

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stops_ = false;
  Entries entries_;
  Queue wanted_;    // by the time at which they are due
  Queue expected_;  // the same
  // In the order in which they are forgotten: unknown ones, and refused ones that nobody wanted.
  std::deque<SchemaKey> unknown_;
  std::deque<SchemaKey> unwanted_;
  SchemaFigures figures_;
  int64_t most_waiting_ = 0;  // of late
  absl::Time most_waiting_at_ = absl::InfinitePast();
  int failures_ = 0;                                // in a row
  absl::Time pauses_until_ = absl::InfinitePast();  // after a failure
  absl::Duration patience_;
  absl::Time patience_counted_;
  int64_t missing_ = 0;     // waiting, wanted, and the registry has said that it has none
  double misses_left_ = 0;  // requests that may find nothing, now
  absl::Time next_failure_log_ = absl::InfinitePast();
  absl::Time next_unknown_log_ = absl::InfinitePast();
  int unknown_logged_ = 0;  // since then

  std::atomic<int64_t> answers_{0};
  std::thread thread_;
};

}  // namespace lethe::registry

#endif  // LETHE_CONNECTORS_REGISTRY_SCHEMA_REGISTRY_H_
