// Any keys and values in a snapshot topic, one a line: nothing crashes, what is accepted is written the same
// again, and no more is to be deleted than was seen.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/str_split.h"
#include "src/pipeline/snapshots/snapshot_records.h"

namespace {

void Require(bool holds, const std::string& line) {
  if (holds) return;
  std::fprintf(stderr, "wrong at: %s\n", line.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int64_t most = lethe::MostChunks(int64_t{1} << 20);
  lethe::SnapshotRemains remains({int64_t{1} << 40, ~uint64_t{0}}, most, int64_t{1} << 20);
  size_t seen = 0;
  for (const auto line : absl::StrSplit(absl::string_view(reinterpret_cast<const char*>(data), size), '\n')) {
    if (const auto key = lethe::SnapshotKey::Parse(line, most)) {
      Require(key->ToString() == line && key->chunk.value_or(0) < most, std::string(line));
    }
    if (const auto manifest = lethe::SnapshotManifest::Parse(line, most)) {
      Require(manifest->chunks > 0 && manifest->chunks <= most, std::string(line));
    }
    ++seen;
    if (!remains.See(line, line.size() % 7 == 0, static_cast<int64_t>(line.size()))) break;
  }
  size_t found = 0;
  for (const auto& [id, chunks] : remains.chunks()) found += chunks.size();
  Require(found <= seen && remains.chunks().size() <= seen, "the end");
  return 0;
}
