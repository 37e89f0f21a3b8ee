#include "connectors/registry/patient_schemas.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "connectors/registry/schema_registry.h"

namespace lethe::registry {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(10);
// Of a schema that the registry does not have; nothing is lost if it comes later.
constexpr absl::Duration kPatienceWithMissing = absl::Seconds(2);
// A command asks for each schema once, and nothing else of lethe waits for the registry meanwhile.
constexpr double kMostMisses = 2000;
constexpr absl::Duration kLookEvery = absl::Microseconds(500);
constexpr absl::Duration kSayAfter = absl::Seconds(1);

}  // namespace

std::unique_ptr<PatientSchemas> PatientSchemas::Open(const RegistryOptions& options, Say say) {
  if (options.urls.empty()) return nullptr;
  RegistryOptions patient = options;
  patient.patience = std::min(patient.patience, kPatienceWithMissing);
  patient.remembers_unknown = absl::InfiniteDuration();
  patient.most_misses = kMostMisses;
  return std::make_unique<PatientSchemas>(
      std::make_unique<SchemaRegistry>(std::move(patient), /*logs=*/false), kPatience, std::move(say));
}

SchemaLookup PatientSchemas::Find(const SchemaNeed& need) {
  if (const auto known = plans_.find(need); known != plans_.end()) {
    return {SchemaLookup::State::kKnown, known->second, ""};
  }
  if (!last_ || last_->first != need.key) {
    SchemaLookup lookup = FindWhole(need.key);
    const Schema* const schema = SchemaOf(lookup);
    if (schema == nullptr) return lookup;
    last_.emplace(need.key, ParsedSchema(*schema));
  }
  SchemaLookup lookup = {SchemaLookup::State::kKnown, need.use->Compile(need.key, last_->second), ""};
  if ((plan_bytes_ += lookup.plan->bytes()) > SchemaRegistry::kMostBytes) {
    plan_bytes_ = lookup.plan->bytes();
    plans_.clear();
  }
  plans_[need] = lookup.plan;
  return lookup;
}

SchemaLookup PatientSchemas::FindWhole(const SchemaKey& key) {
  SchemaLookup lookup = source_->Find(key);
  absl::Duration waited;
  for (const absl::Time begin = absl::Now(); lookup.state == SchemaLookup::State::kWaiting;
       lookup = source_->Find(key)) {
    waited = absl::Now() - begin;
    if (!status_.ok() || waited >= patience_) break;
    if (waited >= kSayAfter && say_ != nullptr) {
      say_(absl::StrCat("waiting for the schema registry, up to ", absl::FormatDuration(patience_),
                        lookup.why.empty() ? "" : ": ", lookup.why));
      say_ = nullptr;
    }
    absl::SleepFor(kLookEvery);
  }
  if (lookup.state != SchemaLookup::State::kWaiting) return lookup;
  if (status_.ok()) {
    status_ = absl::UnavailableError(
        absl::StrCat("the schema registry does not answer: ",
                     lookup.why.empty() ? absl::StrCat(SchemaName(key), ": no answer yet") : lookup.why));
  }
  return {SchemaLookup::State::kUnknown, nullptr, std::string(status_.message()), /*is_answer=*/false};
}

}  // namespace lethe::registry
