// A source of schemas whose answers the test chooses.
#ifndef LETHE_TESTS_SUPPORT_FAKE_SCHEMAS_H_
#define LETHE_TESTS_SUPPORT_FAKE_SCHEMAS_H_

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/record/parsed_schema.h"
#include "src/record/schema_source.h"

namespace lethe::test {

// What was not put is waited for. Thread safety: none.
class FakeSchemas final : public SchemaSource {
 public:
  SchemaLookup Find(const SchemaNeed& need) override {
    ++finds;
    const auto found = schemas_.find(need.key);
    if (found == schemas_.end()) {
      return {SchemaLookup::State::kWaiting, nullptr, absl::StrCat(SchemaName(need.key), ": status 503")};
    }
    if (!found->second) {
      return {SchemaLookup::State::kUnknown, nullptr, absl::StrCat(SchemaName(need.key), ": none")};
    }
    std::shared_ptr<const SchemaPlan>& plan = plans_[need];
    if (plan == nullptr) {
      ParsedSchema parsed(*found->second);
      plan = need.use->Compile(need.key, parsed);
    }
    return {SchemaLookup::State::kKnown, plan, ""};
  }
  void Expect(const SchemaNeed& need) override { expected.insert(need.key); }
  int64_t answers() const override { return answers_; }

  void Put(const SchemaKey& key, Schema schema) {
    schemas_[key] = std::move(schema);
    std::erase_if(plans_, [&](const auto& each) { return each.first.key == key; });
    ++answers_;
  }
  void PutUnknown(const SchemaKey& key) {
    schemas_[key] = std::nullopt;
    ++answers_;
  }

  int64_t finds = 0;
  std::set<SchemaKey> expected;

 private:
  std::map<SchemaKey, std::optional<Schema>> schemas_;
  std::map<SchemaNeed, std::shared_ptr<const SchemaPlan>> plans_;
  int64_t answers_ = 0;
};

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_FAKE_SCHEMAS_H_
