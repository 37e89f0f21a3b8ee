// A file that is nowhere but in memory.
#ifndef LETHE_SRC_PIPELINE_SNAPSHOTS_MEMORY_FILE_H_
#define LETHE_SRC_PIPELINE_SNAPSHOTS_MEMORY_FILE_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace lethe {

// Of a snapshot on its way to a topic, or from it. `status` says whether there is one.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(memfd_create("lethe-snapshot", MFD_CLOEXEC)) {}
  ~MemoryFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  absl::Status status() const {
    return descriptor_ >= 0 ? absl::OkStatus() : absl::ErrnoToStatus(errno, "no memory for a snapshot");
  }
  int descriptor() const { return descriptor_; }
  std::string path() const { return absl::StrCat("/proc/self/fd/", descriptor_); }
  int64_t size() const { return lseek(descriptor_, 0, SEEK_END); }
  // Whether all of it was read.
  bool Read(int64_t offset, std::string& to) const {
    return pread(descriptor_, to.data(), to.size(), offset) == static_cast<ssize_t>(to.size());
  }
  bool Write(int64_t offset, absl::string_view bytes) const {
    return pwrite(descriptor_, bytes.data(), bytes.size(), offset) == static_cast<ssize_t>(bytes.size());
  }

 private:
  const int descriptor_;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_SNAPSHOTS_MEMORY_FILE_H_
