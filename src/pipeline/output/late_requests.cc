#include "src/pipeline/output/late_requests.h"

namespace lethe {

bool LateRequests::NeedNewEpoch() const { return may_come_.load(std::memory_order_relaxed); }

bool LateRequests::NeedNewMember() const { return offsets_may_come_.load(std::memory_order_relaxed); }

}  // namespace lethe
