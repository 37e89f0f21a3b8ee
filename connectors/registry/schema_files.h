// Schemas that were fetched once, in a folder: a replay needs them again, and the registry may be away then.
// Those that were used last stay.
#ifndef LETHE_CONNECTORS_REGISTRY_SCHEMA_FILES_H_
#define LETHE_CONNECTORS_REGISTRY_SCHEMA_FILES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/record/schema_source.h"

namespace lethe::registry {

// One file each, <folder>/schemas/<hash of the URLs>/<id or GUID>.schema: SchemaToJson() as a piece of a
// snapshot's file, with its checksum. Ids of another registry mean other schemas, hence the hash. Without a
// folder it keeps nothing. Thread-compatible.
class SchemaFiles {
 public:
  // Of all files together, of which each counts as whole blocks.
  static constexpr int64_t kMostBytes = int64_t{64} << 20;

  SchemaFiles(const std::string& folder, const std::vector<std::string>& urls);

  // NotFound: it is not kept. Other errors: the file cannot be used, and is written again.
  absl::StatusOr<Schema> Load(const SchemaKey& key);
  // Deletes those that were not used for the longest time until there is room. `touched` says when a plan of
  // a schema was used last (SchemaPlan::touched()); 0: none is there.
  using Touched = std::function<int64_t(const SchemaKey&)>;
  absl::Status Keep(const SchemaKey& key, const Schema& schema, const Touched& touched);
  int64_t bytes() const { return bytes_; }

 private:
  struct File {
    int64_t bytes = 0;
    int64_t used = 0;                             // in ticks of plans; below 0: before this start
    std::optional<SchemaKey> key = std::nullopt;  // if it was used since
  };

  std::string Path(const SchemaKey& key) const;
  // Adds or replaces it.
  void Add(const std::string& path, const File& file);
  void Remove(const std::string& path);
  void MakeRoom(int64_t bytes, const Touched& touched);

  std::string folder_;                                // empty: none
  std::map<std::string, File> files_;                 // by their paths
  std::set<std::pair<int64_t, std::string>> by_use_;  // the same
  int64_t bytes_ = 0;                                 // of all
};

}  // namespace lethe::registry

#endif  // LETHE_CONNECTORS_REGISTRY_SCHEMA_FILES_H_
