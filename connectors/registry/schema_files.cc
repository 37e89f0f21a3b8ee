#include "connectors/registry/schema_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "connectors/registry/schema_answer.h"
#include "src/snapshot/snapshot_file.h"
#include "src/text/fixed_hash.h"

namespace lethe::registry {
namespace {

namespace fs = std::filesystem;

// Of one schema, which has 1 MiB and its references as much, in JSON.
constexpr int64_t kMostFileBytes = int64_t{16} << 20;
constexpr int64_t kBlockBytes = 4096;

int64_t WholeBlocks(int64_t bytes) {
  return std::max<int64_t>((bytes + kBlockBytes - 1) / kBlockBytes, 1) * kBlockBytes;
}

}  // namespace

SchemaFiles::SchemaFiles(const std::string& folder, const std::vector<std::string>& urls) {
  if (folder.empty()) return;
  std::vector<std::string> sorted = urls;
  std::sort(sorted.begin(), sorted.end());
  const uint64_t hash = FixedHash(absl::StrJoin(sorted, ",")).a;
  folder_ = absl::StrCat(folder, "/schemas/", absl::Hex(hash, absl::kZeroPad16));
  std::vector<std::pair<fs::file_time_type, std::pair<std::string, int64_t>>> found;
  std::error_code error;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    const auto bytes = static_cast<int64_t>(at->file_size(ignored));
    if (ignored || at->path().extension() != ".schema") continue;
    found.push_back({at->last_write_time(ignored), {at->path().string(), bytes}});
  }
  std::sort(found.begin(), found.end());
  int64_t used = -static_cast<int64_t>(found.size());
  for (const auto& [written, file] : found) Add(file.first, {WholeBlocks(file.second), used++});
  MakeRoom(0, nullptr);
}

std::string SchemaFiles::Path(const SchemaKey& key) const {
  const std::string name = SchemaName(key);
  return absl::StrCat(folder_, "/", name.substr(name.rfind(' ') + 1), ".schema");
}

void SchemaFiles::Add(const std::string& path, const File& file) {
  Remove(path);
  bytes_ += file.bytes;
  by_use_.emplace(file.used, path);
  files_.emplace(path, file);
}

void SchemaFiles::Remove(const std::string& path) {
  const auto found = files_.find(path);
  if (found == files_.end()) return;
  bytes_ -= found->second.bytes;
  by_use_.erase({found->second.used, path});
  files_.erase(found);
}

void SchemaFiles::MakeRoom(int64_t bytes, const Touched& touched) {
  while (bytes_ + bytes > kMostBytes && !by_use_.empty()) {
    const std::string path = by_use_.begin()->second;
    File file = files_.at(path);
    std::error_code ignored;
    const int64_t used = file.key ? touched(*file.key) : 0;
    if (used > file.used) {  // by its plan, of which the file knows only now
      file.used = used;
      Add(path, file);
      fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
      continue;
    }
    fs::remove(path, ignored);
    Remove(path);
  }
}

absl::StatusOr<Schema> SchemaFiles::Load(const SchemaKey& key) {
  if (folder_.empty()) return absl::NotFoundError("no schemas are kept");
  const std::string path = Path(key);
  auto file = SnapshotReader::Open(path);
  if (!file.ok()) return file.status();
  const int64_t size = file->file_bytes() - kChecksumBytes;
  if (size < 0 || size > kMostFileBytes) return file->Damaged("a schema of a few KiB");
  std::string json(static_cast<size_t>(size), '\0');
  if (absl::Status read = file->ReadPiece(absl::MakeSpan(json), "the schema"); !read.ok()) return read;
  auto schema = SchemaFromJson(json);
  if (!schema.ok()) return file->Annotate(schema.status());
  Add(path, {WholeBlocks(file->file_bytes()), SchemaPlan::Tick(), key});
  std::error_code ignored;
  fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
  return schema;
}

absl::Status SchemaFiles::Keep(const SchemaKey& key, const Schema& schema, const Touched& touched) {
  if (folder_.empty()) return absl::OkStatus();
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) return absl::InternalError(absl::StrCat(folder_, ": ", error.message()));
  const std::string path = Path(key);
  const std::string json = SchemaToJson(schema);
  const int64_t bytes = WholeBlocks(static_cast<int64_t>(json.size()) + kChecksumBytes);
  Remove(path);
  MakeRoom(bytes, touched);
  auto file = SnapshotWriter::Create(path);
  if (!file.ok()) return file.status();
  absl::Status written = file->WritePiece(json);
  if (written.ok()) written = file->Finish();
  if (written.ok()) Add(path, {bytes, SchemaPlan::Tick(), key});
  return written;
}

}  // namespace lethe::registry
