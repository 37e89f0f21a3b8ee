// Any text as what a group's member left with an offset: nothing crashes, and what is accepted comes back the
// same when it is written and read again.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "src/pipeline/restore/commit_metadata.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<lethe::CommitMetadata> metadata = lethe::CommitMetadata::Parse(text);
  if (!metadata.ok()) return 0;
  const std::string written = metadata->ToString();
  const absl::StatusOr<lethe::CommitMetadata> again = lethe::CommitMetadata::Parse(written);
  if (!again.ok() || again->ToString() != written) {
    std::fprintf(stderr, "not the same again: %s\n", written.c_str());
    std::abort();
  }
  return 0;
}
