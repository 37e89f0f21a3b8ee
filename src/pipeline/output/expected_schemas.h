// Schemas of records that are kept while another record waits for its own.
#ifndef LETHE_SRC_PIPELINE_OUTPUT_EXPECTED_SCHEMAS_H_
#define LETHE_SRC_PIPELINE_OUTPUT_EXPECTED_SCHEMAS_H_

#include <memory>
#include <optional>
#include <utility>

#include "src/pipeline/task/input_record.h"
#include "src/record/record_reader.h"

namespace lethe {

// Asks for them at once, so that a partition does not wait for one after the other. Not thread-safe.
class ExpectedSchemas {
 public:
  // Without schemas in the spec it does nothing.
  explicit ExpectedSchemas(RecordSpec spec) {
    if (spec.schemas == nullptr) return;
    asks_ = std::make_unique<Asks>(*spec.schemas);
    spec.schemas = asks_.get();
    reader_.emplace(std::move(spec));
  }

  void Add(RecordRun records) {
    if (!reader_) return;
    for (const InputRecord& record : records) {
      if (record.event == nullptr) reader_->Read(record.view());
    }
  }

 private:
  // Expects what a reader looks for.
  class Asks final : public SchemaSource {
   public:
    explicit Asks(SchemaSource& source) : source_(source) {}
    SchemaLookup Find(const SchemaNeed& need) override {
      source_.Expect(need);
      return {.state = SchemaLookup::State::kWaiting};
    }

   private:
    SchemaSource& source_;
  };

  std::unique_ptr<Asks> asks_;  // of the reader
  std::optional<RecordReader> reader_;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OUTPUT_EXPECTED_SCHEMAS_H_
