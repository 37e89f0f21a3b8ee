// Any bytes as a snapshot, whose checksums are not compared in this build: nothing crashes, no memory is
// taken beyond the limit, and what is accepted can judge and be saved again.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lethe/snapshot.h"
#include "lethe/stage.h"
#include "tests/support/small_snapshots.h"

namespace {

void Check(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

}  // namespace

// The first byte says which engine is to take the rest.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto* stages = new std::vector<std::unique_ptr<lethe::DedupStage>>([] {
    std::vector<std::unique_ptr<lethe::DedupStage>> made;
    for (const lethe::StageOptions& options : lethe::SmallStages()) {
      made.push_back(*lethe::DedupStage::Create(options));
    }
    return made;
  }());
  static const int file = memfd_create("snapshot", MFD_CLOEXEC);
  if (size == 0) return 0;
  lethe::DedupStage& stage = *(*stages)[data[0] % stages->size()];
  Check(ftruncate(file, 0) == 0, "ftruncate");
  Check(pwrite(file, data + 1, size - 1, 0) == static_cast<ssize_t>(size - 1), "pwrite");
  {
    const absl::StatusOr<lethe::RestoredPartition> restored =
        stage.Restore("q", absl::StrCat("/proc/self/fd/", file), lethe::kSmallOrigin);
    if (restored.ok()) {
      lethe::JudgeSome(*restored->partition, 400, absl::Milliseconds(40));
      restored->partition->Status();
      // A count may go over its bounds, and then it says so.
      restored->partition
          ->Save(absl::StrCat("/dev/shm/lethe-snapshot-fuzz-", getpid()), lethe::kSmallOrigin, {})
          .IgnoreError();
    }
    Check(stage.memory().used_bytes() <= stage.memory().limit_bytes(), "more memory than the limit");
  }
  Check(stage.memory().used_bytes() == 0, "memory was not given back");
  return 0;
}
