// Schemas that were fetched once, in a folder: a replay needs them again, and the registry may be away then.
#ifndef LETHE_CONNECTORS_REGISTRY_SCHEMA_FILES_H_
#define LETHE_CONNECTORS_REGISTRY_SCHEMA_FILES_H_

#include <string>
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
  SchemaFiles(const std::string& folder, const std::vector<std::string>& urls);

  // NotFound: it is not kept. Other errors: the file cannot be used, and is written again.
  absl::StatusOr<Schema> Load(const SchemaKey& key) const;
  absl::Status Keep(const SchemaKey& key, const Schema& schema) const;

 private:
  std::string Path(const SchemaKey& key) const;

  std::string folder_;  // empty: none
};

}  // namespace lethe::registry

#endif  // LETHE_CONNECTORS_REGISTRY_SCHEMA_FILES_H_
