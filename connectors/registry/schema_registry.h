// Schemas from a registry that speaks Confluent's API.
#ifndef LETHE_CONNECTORS_REGISTRY_SCHEMA_REGISTRY_H_
#define LETHE_CONNECTORS_REGISTRY_SCHEMA_REGISTRY_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "connectors/registry/http_get.h"
#include "connectors/registry/registry_options.h"
#include "connectors/registry/schema_answer.h"
#include "connectors/registry/schema_files.h"
#include "src/record/parsed_schema.h"
#include "src/record/schema_source.h"
#include "src/sync/mutex.h"

namespace lethe::registry {

// Asks in one thread, one schema at a time, for as long as there is no answer: first for what is waited for,
// then for what is expected. The thread compiles a schema as well, for each use of its own, and forgets the
// text. Plans that were not used for the longest time are forgotten when all together have too many bytes,
// but not those that a waiting partition has not taken yet. A schema that the registry lacks is requested
// again while there is patience (RegistryOptions::patience), which all of these share; then it is unknown for
// a minute. So forged ids stop a partition for twice the patience and a twentieth of the time at most, and
// beside that each for one request, of which there are at most 100 a second (RegistryOptions::most_misses).
// Thread-safe.
class SchemaRegistry final : public SchemaSource {
 public:
  // What it logs is for a daemon; others are told by its lookups alone.
  explicit SchemaRegistry(RegistryOptions options, bool logs = true);
  ~SchemaRegistry() override;
  SchemaRegistry(const SchemaRegistry&) = delete;
  SchemaRegistry& operator=(const SchemaRegistry&) = delete;

  // Of the plans that it knows.
  static constexpr size_t kMostBytes = size_t{16} << 20;

  SchemaLookup Find(const SchemaNeed& need) override;
  SchemaLookup Peek(const SchemaNeed& need) override;
  void Expect(const SchemaNeed& need) override;
  int64_t answers() const override { return answers_; }
  SchemaFigures figures() const override;

 private:
  struct Entry {
    SchemaLookup lookup;
    bool is_wanted = false;   // by Find; else it is only expected
    bool is_awaited = false;  // kKnown, and those who waited for it have not taken it yet
    size_t bytes = 0;         // kKnown
    int64_t used = 0;         // kKnown: it is in by_use_ with this
    bool is_read = false;     // from its file, if there is one
    bool is_queued = false;   // it is in queues_, with `due`
    absl::Time due;           // when to ask for it
    absl::Duration pause;     // before the next time
    absl::Time seen;          // kWaiting: since when
    bool is_refused = false;  // the registry has said that it has none
    absl::Time refused;       // when it has last said so
    bool is_missing = false;  // refused and wanted: requested again until...
    absl::Time until;
    absl::Time forgotten;  // kUnknown
  };
  using Entries = std::map<SchemaNeed, Entry>;
  using Queue = std::set<std::pair<absl::Time, SchemaNeed>>;

  void Run();
  // Takes the waiting schema whose turn it is out of its queue; nullopt: none is due before `until`.
  std::optional<SchemaNeed> TakeNext(absl::Time now, absl::Time& until) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Entry* Add(const SchemaNeed& need, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Schedule(const SchemaNeed& need, Entry& entry, absl::Time due) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Unschedule(const SchemaNeed& need, Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Want(const SchemaNeed& need, Entry& entry, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Handle(const SchemaNeed& need, const absl::Status& asked) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DecideKnown(const SchemaNeed& need, std::shared_ptr<const SchemaPlan> plan)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Take(Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetUnused() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether so many plans are not taken yet that the thread makes no more; nullopt: it may.
  std::optional<absl::Time> WaitsForTakers(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Decide(const SchemaNeed& need, Entry& entry, SchemaLookup lookup)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DecideUnknown(const SchemaNeed& need, Entry& entry, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes or gives back what has passed since the last call.
  void CountPatience(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // How long to ask for a schema that turns out to be missing now; zero if little patience is left.
  absl::Duration PatienceForOne() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HandleFailure(const SchemaNeed& need, Entry& entry, const std::string& why, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HandleUnknown(const SchemaNeed& need, Entry& entry, const std::string& why, bool is_final,
                     absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // These run without the lock.
  // Errors as of Fetch, and of a file.
  absl::StatusOr<std::shared_ptr<const SchemaPlan>> MakePlan(const SchemaNeed& need, bool reads_file);
  absl::StatusOr<Schema> FromFile(const SchemaKey& key);
  // NotFound: the registry has none. Unimplemented: lethe refuses it. Unavailable: no
  // registry has answered. Cancelled: the end.
  absl::StatusOr<Schema> Fetch(const SchemaKey& key);
  // When a plan of the schema was used last; 0: there is none.
  int64_t TouchedOf(const SchemaKey& key) const;
  absl::StatusOr<SchemaAnswer> Ask(const std::string& path);
  absl::StatusOr<SchemaAnswer> AskOne(const std::string& url);
  struct Resolving;
  absl::Status Resolve(const std::vector<SchemaAnswer::Reference>& references, Resolving& to, int depth);
  void Count(int64_t SchemaFigures::*result);

  const RegistryOptions options_;
  const bool logs_;
  // These are the thread's.
  SchemaFiles files_;
  HttpGet http_;
  size_t url_ = 0;  // the one that answered last
  // The last schema: a message or a place of it may be needed next.
  struct Last {
    SchemaKey key;
    ParsedSchema schema;
    bool is_kept = false;  // in its file
  };
  std::optional<Last> last_;

  mutable Mutex mutex_;
  std::condition_variable changed_;
  bool stops_ ABSL_GUARDED_BY(mutex_) = false;
  Entries entries_ ABSL_GUARDED_BY(mutex_);
  Queue wanted_ ABSL_GUARDED_BY(mutex_);    // by the time at which they are due
  Queue expected_ ABSL_GUARDED_BY(mutex_);  // the same
  std::set<std::pair<int64_t, SchemaNeed>> by_use_
      ABSL_GUARDED_BY(mutex_);  // known ones, by when they were used last
  std::deque<std::pair<absl::Time, SchemaNeed>> awaited_
      ABSL_GUARDED_BY(mutex_);  // since when they are known; some were taken since
  size_t awaited_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // In the order in which they are forgotten: unknown ones, and refused ones that nobody wanted.
  std::deque<SchemaNeed> unknown_ ABSL_GUARDED_BY(mutex_);
  std::deque<SchemaNeed> unwanted_ ABSL_GUARDED_BY(mutex_);
  SchemaFigures figures_ ABSL_GUARDED_BY(mutex_);
  int64_t most_waiting_ ABSL_GUARDED_BY(mutex_) = 0;  // of late
  absl::Time most_waiting_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  int failures_ ABSL_GUARDED_BY(mutex_) = 0;                                // in a row
  absl::Time pauses_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // after a failure
  absl::Duration patience_ ABSL_GUARDED_BY(mutex_);
  absl::Time patience_counted_ ABSL_GUARDED_BY(mutex_);
  int64_t missing_ ABSL_GUARDED_BY(mutex_) =
      0;  // waiting, wanted, and the registry has said that it has none
  double misses_left_ ABSL_GUARDED_BY(mutex_) = 0;  // requests that may find nothing, now
  absl::Time next_failure_log_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Time next_unknown_log_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  int unknown_logged_ ABSL_GUARDED_BY(mutex_) = 0;  // since then

  std::atomic<int64_t> answers_{0};
  std::thread thread_;
};

}  // namespace lethe::registry

#endif  // LETHE_CONNECTORS_REGISTRY_SCHEMA_REGISTRY_H_
