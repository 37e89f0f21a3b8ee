// Schemas for commands that read a topic once, and have nothing else to do meanwhile.
#ifndef LETHE_CONNECTORS_REGISTRY_PATIENT_SCHEMAS_H_
#define LETHE_CONNECTORS_REGISTRY_PATIENT_SCHEMAS_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "connectors/registry/registry_options.h"
#include "src/record/parsed_schema.h"
#include "src/record/schema_source.h"

namespace lethe::registry {

// Find waits for another source, `patience` at most. If a schema does not come in time, status() says so, and
// from then on all new ones are kUnknown at once, for that reason: records that need them do not count. For
// one thread.
class PatientSchemas final : public SchemaSource {
 public:
  using Say = std::function<void(const std::string&)>;

  PatientSchemas(std::unique_ptr<SchemaSource> source, absl::Duration patience, Say say)
      : source_(std::move(source)), patience_(patience), say_(std::move(say)) {}
  // Of this registry; null if it has no URL. `say` is told, once, when it takes longer than a second.
  static std::unique_ptr<PatientSchemas> Open(const RegistryOptions& options, Say say);

  SchemaLookup Find(const SchemaNeed& need) override;
  SchemaFigures figures() const override { return source_->figures(); }

  // Unavailable: a schema did not come in time.
  const absl::Status& status() const { return status_; }

 private:
  SchemaLookup FindWhole(const SchemaKey& key);

  const std::unique_ptr<SchemaSource> source_;
  const absl::Duration patience_;
  Say say_;
  absl::Status status_;
  // Many uses may look for the same schema, one after the other.
  std::map<SchemaNeed, std::shared_ptr<const SchemaPlan>> plans_;
  size_t plan_bytes_ = 0;
  // The last one: a message or a place of it may be needed next.
  std::optional<std::pair<SchemaKey, ParsedSchema>> last_;
};

}  // namespace lethe::registry

#endif  // LETHE_CONNECTORS_REGISTRY_PATIENT_SCHEMAS_H_
