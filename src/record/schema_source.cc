#include "src/record/schema_source.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "src/record/parsed_schema.h"

namespace lethe {
namespace {

class Whole final : public SchemaPlan {
 public:
  explicit Whole(Schema the_schema)
      : SchemaPlan(BytesOf(the_schema), /*is_usable=*/true), schema(std::move(the_schema)) {}
  const Schema schema;

 private:
  static size_t BytesOf(const Schema& schema) {
    size_t bytes = sizeof(Whole) + schema.text.capacity();
    for (const Schema::Reference& each : schema.references) {
      bytes += sizeof(each) + each.name.capacity() + each.text.capacity();
    }
    return bytes;
  }
};

class WholeUse final : public SchemaUse {
 public:
  WholeUse() : SchemaUse("") {}
  std::shared_ptr<const SchemaPlan> Compile(const SchemaKey&, ParsedSchema& schema) const override {
    return std::make_shared<const Whole>(schema.schema());
  }
};

}  // namespace

std::shared_ptr<const SchemaUse> WholeSchema() {
  static const auto* const kUse = new std::shared_ptr<const SchemaUse>(std::make_shared<WholeUse>());
  return *kUse;
}

const Schema* SchemaOf(const SchemaLookup& lookup) {
  const auto* const whole = dynamic_cast<const Whole*>(lookup.plan.get());
  return whole == nullptr ? nullptr : &whole->schema;
}

std::string SchemaName(const SchemaKey& key) {
  if (const auto* id = std::get_if<int32_t>(&key)) return absl::StrCat("schema id ", *id);
  const auto& bytes = std::get<1>(key);
  const std::string hex =
      absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  return absl::StrCat("schema GUID ", hex.substr(0, 8), "-", hex.substr(8, 4), "-", hex.substr(12, 4), "-",
                      hex.substr(16, 4), "-", hex.substr(20));
}

}  // namespace lethe
