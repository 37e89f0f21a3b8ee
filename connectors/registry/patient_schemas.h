// Schemas for commands that read a topic once, and have nothing else to do meanwhile.
#ifndef LETHE_CONNECTORS_REGISTRY_PATIENT_SCHEMAS_H_
#define LETHE_CONNECTORS_REGISTRY_PATIENT_SCHEMAS_H_

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "connectors/registry/registry_options.h"
#include "src/record/schema_source.h"

namespace lethe::registry {

// Find waits for another source, `patience` at most, all waits together. A schema that does not come in time
// is kUnknown, and status() says so: records read after that do not count. For one thread.
class PatientSchemas final : public SchemaSource {
 public:
  PatientSchemas(std::unique_ptr<SchemaSource> source, absl::Duration patience)
      : source_(std::move(source)), patience_(patience) {}
  // Of this registry, with a patience that one unknown schema does not use up; null if it has no URL.
  static std::unique_ptr<PatientSchemas> Open(const RegistryOptions& options);

  SchemaLookup Find(const SchemaKey& key) override;
  SchemaFigures figures() const override { return source_->figures(); }

  // Unavailable: a schema did not come in time.
  const absl::Status& status() const { return status_; }

 private:
  const std::unique_ptr<SchemaSource> source_;
  absl::Duration patience_;
  absl::Status status_;
};

}  // namespace lethe::registry

#endif  // LETHE_CONNECTORS_REGISTRY_PATIENT_SCHEMAS_H_
