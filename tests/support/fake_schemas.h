// A source of schemas whose answers the test chooses.
#ifndef LETHE_TESTS_SUPPORT_FAKE_SCHEMAS_H_
#define LETHE_TESTS_SUPPORT_FAKE_SCHEMAS_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/record/schema_source.h"

namespace lethe::test {

// What was not put is waited for. Thread safety: none.
class FakeSchemas final : public SchemaSource {
 public:
  SchemaLookup Find(const SchemaKey& key) override {
    ++finds;
    const auto found = answers_by_key_.find(key);
    if (found != answers_by_key_.end()) return found->second;
    return {SchemaLookup::State::kWaiting, nullptr, absl::StrCat(SchemaName(key), ": status 503")};
  }
  void Expect(const SchemaKey& key) override { expected.insert(key); }
  int64_t answers() const override { return answers_; }

  void Put(const SchemaKey& key, Schema schema) {
    answers_by_key_[key] = {SchemaLookup::State::kKnown, std::make_shared<const Schema>(std::move(schema)),
                            ""};
    ++answers_;
  }
  void PutUnknown(const SchemaKey& key) {
    answers_by_key_[key] = {SchemaLookup::State::kUnknown, nullptr, absl::StrCat(SchemaName(key), ": none")};
    ++answers_;
  }

  int64_t finds = 0;
  std::set<SchemaKey> expected;

 private:
  std::map<SchemaKey, SchemaLookup> answers_by_key_;
  int64_t answers_ = 0;
};

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_FAKE_SCHEMAS_H_
