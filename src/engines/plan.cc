#include "src/engines/plan.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/engines/ranges.h"
#include "src/filter/compact_epochs.h"
#include "src/filter/compact_formats.h"
#include "src/text/format.h"

namespace lethe {
namespace {

// An epoch is forgotten when its last id is a horizon old.
constexpr double kHeldPerHorizon = 1 + 1.0 / CompactEpochs::kInHorizon;
// Memory is taken by a 64th, arrivals scatter, and lines fill unevenly: with a 16th a filter that has no more
// may forget an epoch early.
constexpr double kMargin = 1 + 1.0 / 12;
// The filters' part of the limit is seven eighths (MemoryParts), and twice what they need: a restart does not
// know which record of an id was the unique one, and remembers it for a horizon after its last.
constexpr double kLimitForFilters = 2 * 8.0 / 7;
constexpr double kLineBytes = 64;
// What a filter and a stage take beside the lines, at most.
constexpr int64_t kOwnBytes = 64 << 10;
constexpr double kFewestLines = 1 << kCompactLeastLevel;
// The address space of a process is good for no more.
constexpr int64_t kMostMemoryBytes = int64_t{64} << 40;

constexpr double kLowestTarget = kLowestCompactTarget;
constexpr double kHighestTarget = kHighestDefaultTarget;
constexpr double kTargetStep = 1.122;  // 20 in a factor of ten
constexpr double kHighestRate = 1e12;

// 9 bytes in a slot, half to three quarters of the slots in use: 96 to 144 bits, measured 97 to 131.
constexpr double kExactBitsPerId = 120;

// Ids of a horizon that so many lines hold.
double IdsIn(double lines, const CompactFormats& formats) {
  // A larger table has the slots of many filters of the largest level.
  const int level = std::min(static_cast<int>(std::log2(lines)), kCompactMostLevel - 1);
  const double whole = std::exp2(level);
  const double split = std::min(lines - whole, whole);
  const double slots =
      (whole - split) * formats[level].slots + (lines - whole + split) * formats[level + 1].slots;
  return kCompactFullLoad * slots / (kHeldPerHorizon * kMargin);
}

double LinesFor(double ids, double target_fpp) {
  const CompactFormats formats = CompactFormatsFor(target_fpp);
  double few = kFewestLines;
  if (IdsIn(few, formats) >= ids) return few;
  double enough = 2 * few;
  while (IdsIn(enough, formats) < ids) enough *= 2;
  few = enough / 2;
  while (enough - few > std::max(1.0, 1e-9 * enough)) {
    const double middle = few + (enough - few) / 2;
    (IdsIn(middle, formats) >= ids ? enough : few) = middle;
  }
  return std::ceil(enough);
}

double MemoryFor(double ids, double target_fpp) {
  return std::ceil(kLimitForFilters * kLineBytes * LinesFor(ids, target_fpp)) + kOwnBytes;
}

double LinesIn(int64_t memory_bytes) {
  return std::floor(static_cast<double>(memory_bytes - kOwnBytes) / (kLimitForFilters * kLineBytes));
}

absl::Duration HorizonFor(double ids, double rate) {
  const double most = absl::ToDoubleSeconds(kLongestHorizon);
  return absl::Milliseconds(std::floor(std::min(ids / rate, most) * 1000));
}

absl::Status CheckCount(const PlanRequest& request) {
  const int given = request.rate.has_value() + request.horizon.has_value() + request.target_fpp.has_value() +
                    request.memory_bytes.has_value();
  if (given == 3) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("of rate, horizon, fpp and memory ", given == 4 ? "all" : absl::StrCat(given),
                   given == 1 ? " is" : " are", " given; give three, and the plan finds the fourth"));
}

absl::Status CheckRanges(const PlanRequest& request) {
  if (request.rate && !(*request.rate > 0 && *request.rate <= kHighestRate)) {
    return Invalid("rate", absl::StrCat(*request.rate, " events a second cannot be"),
                   *request.rate > 0 ? absl::StrCat(kHighestRate) : "any above 0");
  }
  if (request.horizon && !(*request.horizon >= kShortestHorizon && *request.horizon <= kLongestHorizon)) {
    return Invalid("horizon", absl::StrCat(DurationText(*request.horizon), " cannot be kept"),
                   DurationText(*request.horizon < kShortestHorizon ? kShortestHorizon : kLongestHorizon));
  }
  if (request.target_fpp &&
      !(*request.target_fpp >= kLowestTarget && *request.target_fpp <= kHighestTarget)) {
    return Invalid("fpp", absl::StrCat(*request.target_fpp, " cannot be a target"),
                   absl::StrCat(*request.target_fpp > kHighestTarget ? kHighestTarget : kLowestTarget));
  }
  const auto least = static_cast<int64_t>(MemoryFor(0, kHighestTarget));
  if (request.memory_bytes && (*request.memory_bytes < least || *request.memory_bytes > kMostMemoryBytes)) {
    return Invalid("memory", absl::StrCat(FormatBytes(*request.memory_bytes), " cannot be the limit"),
                   BytesSetting(*request.memory_bytes < least ? least : kMostMemoryBytes));
  }
  return absl::OkStatus();
}

absl::Status TooMuch(const PlanRequest& request) {
  const double ids = IdsIn(LinesIn(kMostMemoryBytes), CompactFormatsFor(*request.target_fpp));
  return Invalid("memory",
                 absl::StrCat("no process can have what ", *request.rate, " events a second over ",
                              DurationText(*request.horizon), " need"),
                 absl::StrCat("a horizon of ", DurationText(HorizonFor(ids, *request.rate))));
}

absl::Status TooLittle(const PlanRequest& request) {
  const double lines = LinesIn(*request.memory_bytes);
  const auto horizon_at = [&](double target) {
    return DurationText(HorizonFor(IdsIn(lines, CompactFormatsFor(target)), *request.rate));
  };
  const double ids = *request.rate * absl::ToDoubleSeconds(*request.horizon);
  return absl::InvalidArgumentError(absl::StrCat(
      "memory: ", FormatBytes(*request.memory_bytes), " hold ", *request.rate, " events a second over ",
      DurationText(*request.horizon), " at no target up to ", kHighestTarget,
      "; they would hold a horizon of ", horizon_at(kHighestTarget), " at ", kHighestTarget, ", or of ",
      horizon_at(1e-6), " at 1e-06; for the horizon at ", kHighestTarget, " it takes ",
      BytesSetting(static_cast<int64_t>(std::min(MemoryFor(ids, kHighestTarget), 9e18)))));
}

// The lowest target for which the lines are enough; kHighestTarget must be one.
double LowestTarget(double ids, double lines) {
  const auto fits = [&](double target) { return LinesFor(ids, target) <= lines; };
  // By steps first: a narrower tag has fewer bits in all, so the bits per id do not only rise.
  double high = kLowestTarget;
  while (high < kHighestTarget && !fits(high)) high = std::min(high * kTargetStep, kHighestTarget);
  double low = std::max(high / kTargetStep, kLowestTarget);
  for (int i = 0; i < 10; ++i) {
    const double middle = std::sqrt(low * high);
    (fits(middle) ? high : low) = middle;
  }
  return high;
}

// Finds the value that is not given.
absl::Status Solve(const PlanRequest& request, Plan* plan) {
  plan->rate = request.rate.value_or(0);
  plan->horizon = request.horizon.value_or(absl::ZeroDuration());
  plan->target_fpp = request.target_fpp.value_or(0);
  plan->memory_bytes = request.memory_bytes.value_or(0);
  const double ids = plan->rate * absl::ToDoubleSeconds(plan->horizon);
  if (!request.memory_bytes) {
    const double memory = MemoryFor(ids, plan->target_fpp);
    if (!(memory <= static_cast<double>(kMostMemoryBytes))) return TooMuch(request);
    plan->memory_bytes = static_cast<int64_t>(memory);
    return absl::OkStatus();
  }
  const double lines = LinesIn(plan->memory_bytes);
  if (!request.target_fpp) {
    if (LinesFor(ids, kHighestTarget) > lines) return TooLittle(request);
    plan->target_fpp = LowestTarget(ids, lines);
    return absl::OkStatus();
  }
  const double held = IdsIn(lines, CompactFormatsFor(plan->target_fpp));
  if (!request.rate) {
    plan->rate = std::min(held / absl::ToDoubleSeconds(plan->horizon), kHighestRate);
    return absl::OkStatus();
  }
  plan->horizon = HorizonFor(held, plan->rate);
  if (plan->horizon >= kShortestHorizon) return absl::OkStatus();
  const double least = MemoryFor(plan->rate * absl::ToDoubleSeconds(kShortestHorizon), plan->target_fpp);
  return Invalid("memory",
                 absl::StrCat(FormatBytes(plan->memory_bytes), " do not hold a millisecond of these events"),
                 BytesSetting(static_cast<int64_t>(least)));
}

}  // namespace

absl::StatusOr<Plan> MakePlan(const PlanRequest& request) {
  if (absl::Status status = CheckCount(request); !status.ok()) return status;
  if (absl::Status status = CheckRanges(request); !status.ok()) return status;
  Plan plan;
  if (absl::Status status = Solve(request, &plan); !status.ok()) return status;

  plan.ids = plan.rate * absl::ToDoubleSeconds(plan.horizon);
  const double lines = LinesFor(plan.ids, plan.target_fpp);
  plan.filter_bytes = static_cast<int64_t>(lines * kLineBytes);
  plan.past_generations = CompactEpochs::kInHorizon;
  plan.refresh_period = plan.horizon / CompactEpochs::kInHorizon;
  const int level = std::min(static_cast<int>(std::log2(lines)), kCompactMostLevel);
  plan.fingerprint_bits = CompactFormatsFor(plan.target_fpp).fingerprint_bits_of(level);
  plan.bits_per_id = 8 * static_cast<double>(plan.filter_bytes) / plan.ids;
  plan.false_drops_per_day = plan.rate * 86400 * plan.target_fpp;
  plan.exact_bits_per_id = kExactBitsPerId;
  plan.exact_bytes = static_cast<int64_t>(plan.ids * kExactBitsPerId / 8);
  return plan;
}

}  // namespace lethe
