// Any bytes as a snapshot, and any change to a good one under the right checksums: nothing crashes, no memory
// is taken beyond the limit, and what is accepted can judge and be saved again.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lethe/stage.h"
#include "tests/support/snapshot_pieces.h"

namespace {

constexpr int64_t kStartMs = 1'700'000'000'000;
const lethe::SnapshotOrigin kOrigin = {.topic = "t"};

void Check(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

struct Sample {
  std::unique_ptr<lethe::DedupStage> stage;
  std::vector<std::string> pieces;
};

// Overwrites a file that has no disk.
class Scratch {
 public:
  Scratch() : fd_(memfd_create("snapshot", MFD_CLOEXEC)) {}
  std::string path() const { return absl::StrCat("/proc/self/fd/", fd_); }
  void Put(const std::string& bytes) const {
    Check(ftruncate(fd_, 0) == 0, "ftruncate");
    Check(pwrite(fd_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()), "pwrite");
  }

 private:
  const int fd_;
};

void JudgeSome(lethe::Partition& partition, int events, int64_t step_ms) {
  for (int i = 0; i < events; ++i) {
    partition.Judge(absl::StrCat(i % (events / 4 * 3)), absl::FromUnixMillis(kStartMs + i * step_ms))
        .status()
        .IgnoreError();
  }
}

Sample MakeSample(int events) {
  Sample sample;
  sample.stage = *lethe::DedupStage::Create({.horizon = absl::Seconds(10),
                                             .target_fpp = 1e-2,
                                             .memory_limit_bytes = 1 << 20,
                                             .audit_share = 0.1,
                                             .hash_seed = 7});
  const auto partition = *sample.stage->Open("p");
  JudgeSome(*partition, events, 5);
  const std::string path = absl::StrCat("/dev/shm/lethe-snapshot-fuzz-", getpid());
  Check(partition->Save(path, kOrigin, {}).ok(), "saving");
  std::string bytes(1 << 22, '\0');
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file));
  std::fclose(file);
  unlink(path.c_str());
  sample.pieces = lethe::PiecesOf(bytes);
  Check(lethe::Sealed(sample.pieces) == bytes, "taking it apart");
  return sample;
}

void Try(lethe::DedupStage& stage, const std::string& bytes) {
  static const Scratch scratch;
  scratch.Put(bytes);
  {
    const absl::StatusOr<lethe::RestoredPartition> restored = stage.Restore("q", scratch.path(), kOrigin);
    if (restored.ok()) {
      JudgeSome(*restored->partition, 400, 40);
      restored->partition->Status();
      // A count may go over its bounds, and then it says so.
      restored->partition->Save(absl::StrCat("/dev/shm/lethe-snapshot-fuzz-", getpid()), kOrigin, {})
          .IgnoreError();
    }
    Check(stage.memory().used_bytes() <= stage.memory().limit_bytes(), "more memory than the limit");
  }
  Check(stage.memory().used_bytes() == 0, "memory was not given back");
}

// The data is a list of changes: which piece, where (field and byte), and eight bytes.
std::string Changed(std::vector<std::string> pieces, const uint8_t* data, size_t size) {
  constexpr size_t kChange = 3 + 8;
  for (; size >= kChange; data += kChange, size -= kChange) {
    std::string& piece = pieces[data[0] % pieces.size()];
    const size_t fields = piece.size() / 8;
    if (fields == 0) continue;
    std::memcpy(&piece[(data[1] + 256u * data[2]) % fields * 8], data + 3, 8);
  }
  return lethe::Sealed(pieces);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto* samples = new std::vector<Sample>([] {
    std::vector<Sample> made;
    for (const int events : {0, 90, 400, 9000, 30000}) made.push_back(MakeSample(events));
    return made;
  }());
  if (size == 0) return 0;
  const Sample& sample = (*samples)[data[0] % samples->size()];
  if (data[0] >= 0xf0) {
    Try(*sample.stage, std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  } else {
    Try(*sample.stage, Changed(sample.pieces, data + 1, size - 1));
  }
  return 0;
}
