#include "lethe/options.h"

#include <bit>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "src/engines/memory_parts.h"
#include "src/engines/new_filter.h"
#include "src/engines/ranges.h"
#include "src/filter/compact_formats.h"
#include "src/reference/sliced/sliced_fbf.h"
#include "src/reference/sliced/sliced_model.h"
#include "src/second_opinion/passed_ids.h"
#include "src/text/format.h"

namespace lethe {
namespace {

constexpr int kMostShards = 256;

// A second opinion needs false positives to find, and a policy for suspects.
absl::Status ValidateSecondOpinion(const StageOptions& options) {
  if (options.second_opinion == SecondOpinion::kNone) {
    return options.pass_suspects
               ? absl::OkStatus()
               : Invalid("pass_suspects", "without a second opinion there are no suspects to hold back",
                         "to pass them");
  }
  if (options.engine != Engine::kExact && options.engine != Engine::kOpposite) return absl::OkStatus();
  return Invalid("second_opinion",
                 absl::StrCat("the engine ", EngineName(options.engine), " has no false positives to find"),
                 "none");
}

// To exceed the target, a filter must be able to set more bits than it has room for.
absl::Status ValidateAtMemoryLimit(const StageOptions& options) {
  if (options.at_memory_limit == AtMemoryLimit::kShortenWindow || options.engine == Engine::kSliced ||
      options.adaptation == Adaptation::kPaper)
    return absl::OkStatus();
  return Invalid("at_memory_limit",
                 absl::StrCat("exceed_fpp is for the engine sliced, not ", EngineName(options.engine)),
                 "shorten_window");
}

bool HasRoom(const StageOptions& options, int64_t limit_bytes, int64_t partitions) {
  StageOptions limited = options;
  limited.memory_limit_bytes = limit_bytes;
  const MemoryParts parts = PartsOf(limited);
  const int64_t shards = partitions * options.shards;
  return parts.filters >= shards * SmallestFilterBytes(options.engine) &&
         (options.second_opinion == SecondOpinion::kNone ||
          parts.second_opinion >= shards * PassedIds::kFewestBytes);
}

}  // namespace

int64_t SmallestLimitBytes(const StageOptions& options, int64_t partitions) {
  int64_t too_small = 0;
  int64_t enough =
      8 * partitions * options.shards * (SmallestFilterBytes(options.engine) + PassedIds::kFewestBytes);
  while (enough - too_small > 1) {
    const int64_t middle = too_small + (enough - too_small) / 2;
    (HasRoom(options, middle, partitions) ? enough : too_small) = middle;
  }
  return enough;
}

absl::Status ValidateHorizon(absl::Duration horizon) {
  const std::string wrong = DurationText(horizon);
  if (horizon < kShortestHorizon) {
    return Invalid("horizon", absl::StrCat(wrong, " is too short"), DurationText(kShortestHorizon));
  }
  if (horizon > kLongestHorizon) {
    return Invalid("horizon", absl::StrCat(wrong, " is too long"), DurationText(kLongestHorizon));
  }
  return absl::OkStatus();
}

absl::Status ValidateTargetFpp(double target_fpp, Engine engine) {
  if (std::isnan(target_fpp)) {
    return absl::InvalidArgumentError("target_fpp: is not a number; give 1e-6, say");
  }
  const double lowest = engine == Engine::kCompact ? kLowestCompactTarget : kLowestTargetFpp;
  if (target_fpp < lowest) {
    return Invalid("target_fpp", absl::StrCat(target_fpp, " is too low for the engine ", EngineName(engine)),
                   absl::StrCat(lowest));
  }
  const bool counts_to_a_tenth = engine == Engine::kCompact || engine == Engine::kSliced;
  const double highest = counts_to_a_tenth ? kHighestDefaultTarget : kHighestTargetFpp;
  if (target_fpp > highest) {
    return Invalid("target_fpp", absl::StrCat(target_fpp, " is too high for the engine ", EngineName(engine)),
                   absl::StrCat(highest));
  }
  return absl::OkStatus();
}

absl::Status CanFollowTarget(Engine engine, double from, double to) {
  if (from == to) return absl::OkStatus();
  if (engine != Engine::kSliced) {
    return absl::FailedPreconditionError(
        absl::StrCat("target_fpp: a filter of the engine ", EngineName(engine),
                     " takes its form from the target when it is made; to change the target, restart with a "
                     "filter rebuilt from the log"));
  }
  const int lines = SlicedShapeFor(from).lines_per_id;
  const int other_lines = SlicedShapeFor(to).lines_per_id;
  if (lines == other_lines) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "target_fpp: a filter for ", from, " keeps an id in ", lines, " lines, one for ", to, " in ",
      other_lines, ": ids in the filter would not be found; restart with a filter rebuilt from the log"));
}

absl::Status ValidateAdaptation(Adaptation adaptation, Engine engine) {
  if (adaptation == Adaptation::kBudget || engine == Engine::kPublished) return absl::OkStatus();
  return Invalid("adaptation", absl::StrCat("paper is for the engine published, not ", EngineName(engine)),
                 "budget");
}

absl::Status Validate(const StageOptions& options) {
  if (absl::Status status = ValidateHorizon(options.horizon); !status.ok()) return status;
  if (absl::Status status = ValidateTargetFpp(options.target_fpp, options.engine); !status.ok()) {
    return status;
  }
  if (absl::Status status = ValidateAdaptation(options.adaptation, options.engine); !status.ok()) {
    return status;
  }
  if (absl::Status status = ValidateAtMemoryLimit(options); !status.ok()) return status;
  if (options.shards < 1) return Invalid("shards", absl::StrCat(options.shards, " is too few"), "1");
  if (options.shards > kMostShards) {
    return Invalid("shards", absl::StrCat(options.shards, " is too many"), absl::StrCat(kMostShards));
  }
  const auto shards = static_cast<unsigned>(options.shards);
  if (!std::has_single_bit(shards)) {
    const unsigned below = std::bit_floor(shards);
    const unsigned above = std::bit_ceil(shards);
    return Invalid("shards", absl::StrCat(options.shards, " is not a power of two"),
                   absl::StrCat(shards - below < above - shards ? below : above));
  }
  if (absl::Status status = ValidateSecondOpinion(options); !status.ok()) return status;
  if (!HasRoom(options, options.memory_limit_bytes, 1)) {
    return Invalid("memory_limit_bytes",
                   absl::StrCat(options.memory_limit_bytes, " has no room for one partition's filter in ",
                                options.shards, options.shards == 1 ? " shard" : " shards"),
                   absl::StrCat(SmallestLimitBytes(options, 1)));
  }
  return absl::OkStatus();
}

}  // namespace lethe
