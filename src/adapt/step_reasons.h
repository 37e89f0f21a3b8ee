// Why a filter adapts itself: the texts of AdaptationStep::reason, for people.
#ifndef LETHE_SRC_ADAPT_STEP_REASONS_H_
#define LETHE_SRC_ADAPT_STEP_REASONS_H_

#include "absl/strings/string_view.h"

namespace lethe {

inline constexpr absl::string_view kFull = "the generation has its share of the memory limit";
inline constexpr absl::string_view kNoRoomToGrow = "the memory limit leaves no room to grow";
inline constexpr absl::string_view kOldestDropped = "at the memory limit the oldest interval was dropped";
inline constexpr absl::string_view kLongest = "the generation has lasted an eighth of the horizon";
inline constexpr absl::string_view kShareReached = "the generation has its share of ids times duration";
inline constexpr absl::string_view kMoreIds = "more ids";
inline constexpr absl::string_view kFewerIds = "fewer ids";

// A snapshot holds a reason's place in this list.
inline constexpr absl::string_view kStepReasons[] = {kFull,         kNoRoomToGrow, kOldestDropped, kLongest,
                                                     kShareReached, kMoreIds,      kFewerIds};

}  // namespace lethe

#endif  // LETHE_SRC_ADAPT_STEP_REASONS_H_
