// How much memory a stage's limit lacks.
#ifndef LETHE_SRC_STAGE_MISSING_BYTES_H_
#define LETHE_SRC_STAGE_MISSING_BYTES_H_

#include <cstdint>

#include "lethe/stage.h"

namespace lethe {

// How many bytes the limit lacks for the largest request of a filter that was refused since the last call;
// 0 if none was. Open() and Restore() count, audits do not. A filter asks again by
// itself within a tenth of an interval's ids. For a caller that can close partitions to make room.
// Thread-safe.
int64_t TakeMissingBytes(DedupStage& stage);

}  // namespace lethe

#endif  // LETHE_SRC_STAGE_MISSING_BYTES_H_
