// Any bytes as a snapshot, whose checksums are not compared in this build: nothing crashes, no memory is
// taken beyond the limit, and what is accepted can judge and be saved again.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

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

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto stage = *lethe::DedupStage::Create(lethe::SmallStage());
  static const int file = memfd_create("snapshot", MFD_CLOEXEC);
  Check(ftruncate(file, 0) == 0, "ftruncate");
  Check(pwrite(file, data, size, 0) == static_cast<ssize_t>(size), "pwrite");
  {
    const absl::StatusOr<lethe::RestoredPartition> restored =
        stage->Restore("q", absl::StrCat("/proc/self/fd/", file), lethe::kSmallOrigin);
    if (restored.ok()) {
      lethe::JudgeSome(*restored->partition, 400, absl::Milliseconds(40));
      restored->partition->Status();
      // A count may go over its bounds, and then it says so.
      restored->partition
          ->Save(absl::StrCat("/dev/shm/lethe-snapshot-fuzz-", getpid()), lethe::kSmallOrigin, {})
          .IgnoreError();
    }
    Check(stage->memory().used_bytes() <= stage->memory().limit_bytes(), "more memory than the limit");
  }
  Check(stage->memory().used_bytes() == 0, "memory was not given back");
  return 0;
}
