#include "connectors/registry/patient_schemas.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "connectors/registry/schema_registry.h"

namespace lethe::registry {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(45);
constexpr absl::Duration kLookEvery = absl::Milliseconds(2);

}  // namespace

std::unique_ptr<PatientSchemas> PatientSchemas::Open(const RegistryOptions& options) {
  if (options.urls.empty()) return nullptr;
  return std::make_unique<PatientSchemas>(std::make_unique<SchemaRegistry>(options), kPatience);
}

SchemaLookup PatientSchemas::Find(const SchemaKey& key) {
  SchemaLookup lookup = source_->Find(key);
  for (; lookup.state == SchemaLookup::State::kWaiting && patience_ > absl::ZeroDuration();
       patience_ -= kLookEvery) {
    absl::SleepFor(kLookEvery);
    lookup = source_->Find(key);
  }
  if (lookup.state != SchemaLookup::State::kWaiting) return lookup;
  lookup.state = SchemaLookup::State::kUnknown;
  if (lookup.why.empty()) lookup.why = absl::StrCat(SchemaName(key), ": no answer yet");
  if (status_.ok()) {
    status_ = absl::UnavailableError(absl::StrCat("the schema registry does not answer: ", lookup.why));
  }
  return lookup;
}

}  // namespace lethe::registry
