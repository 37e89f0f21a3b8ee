// Any bytes as a file of lines, plain or gzip: nothing crashes, no line is longer than allowed, and plain
// lines joined are the file.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "connectors/lines/line_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kMaxLineBytes = 4096;
  static const int file = memfd_create("lines", MFD_CLOEXEC);
  if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  lseek(file, 0, SEEK_SET);
  lethe::lines::LineReader reader(file, "fuzz", kMaxLineBytes);
  const bool is_gzip = size >= 2 && data[0] == 0x1f && data[1] == 0x8b;
  std::string all;
  while (true) {
    const auto lines = reader.Read();
    if (!lines.ok()) return 0;
    if (lines->empty()) break;
    for (const absl::string_view line : *lines) {
      if (line.size() > kMaxLineBytes + 1) std::abort();
      if (!is_gzip) absl::StrAppend(&all, line);
    }
  }
  if (!is_gzip && all != std::string(reinterpret_cast<const char*>(data), size)) {
    std::fprintf(stderr, "the lines are not the file\n");
    std::abort();
  }
  return 0;
}
