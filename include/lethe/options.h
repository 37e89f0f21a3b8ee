// The options of a stage. Set three of them for your stream: the horizon, the target of the false-positive
// probability (FPP), and the memory limit. Their defaults are 24 h, 1e-6 and 1 GiB.
#ifndef LETHE_OPTIONS_H_
#define LETHE_OPTIONS_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "lethe/event.h"
#include "lethe/export.h"

namespace lethe {

struct EngineDefinition;

// The membership filters to choose from. DedupStage::Create() also takes one of your own. A program links the
// code of those that it names.
class LETHE_EXPORT Engine {
 public:
  // Fingerprints in time order, in a table that grows and shrinks by one line: memory follows the ids that
  // are held. For any target down to 1e-15. The default.
  static const Engine kCompact;
  static const Engine kExact;  // kCompact with its widest fingerprints, whatever the target: about 1e-15
  // The Forgetful Bloom Filter (N-FBF) with its paper's Algorithm 3, corrected so that the horizon holds:
  // when the rate of false positives nears the target, the number of filters doubles and the refresh period
  // falls; at a tenth of the target both go back in small steps. The filters have a fixed size, a 64th of the
  // memory limit in all. For targets down to 1e-12. To study and compare: kCompact takes less memory and
  // time.
  static const Engine kPublished;

  friend bool operator==(Engine one, Engine other) { return one.definition_ == other.definition_; }
  friend bool operator!=(Engine one, Engine other) { return one.definition_ != other.definition_; }

 private:
  friend struct EngineDefinition;
  explicit constexpr Engine(const EngineDefinition* definition) : definition_(definition) {}

  const EngineDefinition* definition_;
};

// The engine's name, as in a configuration and in a snapshot: "compact", "exact" or "published".
LETHE_EXPORT absl::string_view EngineName(Engine engine);

struct StageOptions {
  // How late a retry may come after the first sending, in stream time. A larger one costs memory in
  // proportion.
  absl::Duration horizon = absl::Hours(24);

  // The share of events, never seen within the window, that may be called duplicates: the FPP, 0.1 to 1e-15
  // for kCompact, which takes some 38 bits for each id in the window at 1e-6, 32 at 1e-4, and 56 at
  // 1e-9.
  double target_fpp = 1e-6;

  // Whether a copy renews its id's age: unique is then what did not come, not even as a copy, for a horizon.
  // Otherwise an id that is sent again and again passes about once a horizon.
  bool renew = false;

  // For all filters of the stage and their audits together, in bytes. Audits may take up to an eighth of it;
  // the rest, and without an audit all, is for the filters.
  int64_t memory_limit_bytes = int64_t{1} << 30;

  // Parts of one partition's filter, each with a lock of its own (a stripe): a power of two from 1 to
  // 256. More than one pays only if several threads judge events of the same partition.
  int shards = 1;

  Engine engine = Engine::kCompact;  // not if DedupStage::Create() is given a filter

  // The share of ids whose verdicts are checked by an exact set beside the filter (AuditStatus): 0 for
  // none, 1 for all. What is outside of [0, 1] counts as its nearer end. An audited id takes 64 to 128
  // bytes; if they are not in the audit's part of the memory limit, the share is halved.
  double audit_share = 1.0 / 256;

  // The key of the ids' hash follows from it, if it is set; else each partition has a random key of its own.
  // Set it only in tests: who knows it can choose ids that others' events collide with, or that have no room.
  std::optional<uint64_t> hash_seed = std::nullopt;

  // 128 random bits, without which a snapshot does not tell the key of the ids' hash. Needed where others may
  // read snapshots; a snapshot is restored with the same secret only. Without one, everybody who can read a
  // snapshot knows the key.
  HashKey snapshot_secret = {};
};

// OK, or InvalidArgument that names the option, the error and the nearest possible value.
LETHE_EXPORT absl::Status Validate(const StageOptions& options);

}  // namespace lethe

#endif  // LETHE_OPTIONS_H_
