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

constexpr int64_t kMostFileBytes = int64_t{64} << 20;

}  // namespace

SchemaFiles::SchemaFiles(const std::string& folder, const std::vector<std::string>& urls) {
  if (folder.empty()) return;
  std::vector<std::string> sorted = urls;
  std::sort(sorted.begin(), sorted.end());
  const uint64_t hash = FixedHash(absl::StrJoin(sorted, ",")).a;
  folder_ = absl::StrCat(folder, "/schemas/", absl::Hex(hash, absl::kZeroPad16));
}

std::string SchemaFiles::Path(const SchemaKey& key) const {
  const std::string name = SchemaName(key);
  return absl::StrCat(folder_, "/", name.substr(name.rfind(' ') + 1), ".schema");
}

absl::StatusOr<Schema> SchemaFiles::Load(const SchemaKey& key) const {
  if (folder_.empty()) return absl::NotFoundError("no schemas are kept");
  auto file = SnapshotReader::Open(Path(key));
  if (!file.ok()) return file.status();
  const int64_t size = file->file_bytes() - kChecksumBytes;
  if (size < 0 || size > kMostFileBytes) return file->Damaged("a schema of a few KiB");
  std::string json(static_cast<size_t>(size), '\0');
  if (absl::Status read = file->ReadPiece(absl::MakeSpan(json), "the schema"); !read.ok()) return read;
  auto schema = SchemaFromJson(json);
  return schema.ok() ? std::move(schema) : file->Annotate(schema.status());
}

absl::Status SchemaFiles::Keep(const SchemaKey& key, const Schema& schema) const {
  if (folder_.empty()) return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) return absl::InternalError(absl::StrCat(folder_, ": ", error.message()));
  auto file = SnapshotWriter::Create(Path(key));
  if (!file.ok()) return file.status();
  if (absl::Status written = file->WritePiece(SchemaToJson(schema)); !written.ok()) return written;
  return file->Finish();
}

}  // namespace lethe::registry
