#include "tests/faults/second_judge.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/verify/verify.h"

namespace lethe::test {
namespace {

class HeadersOf : public RecordHeaders {
 public:
  explicit HeadersOf(const Record& record) : record_(record) {}
  std::optional<absl::string_view> Last(const std::string& name) const override {
    for (auto header = record_.headers.rbegin(); header != record_.headers.rend(); ++header) {
      if (header->first == name) return header->second;
    }
    return std::nullopt;
  }

 private:
  const Record& record_;
};

template <class Take>
void Show(const Record& record, const Take& take) {
  const HeadersOf last(record);
  std::vector<std::pair<absl::string_view, std::optional<absl::string_view>>> headers;
  for (const auto& [name, value] : record.headers) headers.emplace_back(name, value);
  take({{record.key, record.value, &last}, headers, record.partition, record.offset, record.timestamp_ms});
}

VerifyReport SecondOpinion(const Evidence& evidence) {
  VerifyRules rules;
  rules.id = IdSpec::Parse("json:/id").value();
  rules.topic_scope = evidence.topic_scope;
  rules.horizon = evidence.horizon;
  // Filters forget an id up to an eighth of the horizon late, routed ones later.
  rules.window = evidence.horizon * (evidence.topic_scope ? 6 : 5) / 4;
  rules.latest = evidence.latest_time;
  if (evidence.output_takes_bytes < static_cast<size_t>(INT64_MAX)) {
    rules.max_output_bytes = static_cast<int64_t>(evidence.output_takes_bytes);
  }
  VerifyBounds bounds;
  for (size_t p = 0; p < evidence.committed.size(); ++p) {
    bounds.inputs.push_back({.topic = "input", .partition = static_cast<int32_t>(p)});
    bounds.inputs.back().committed = evidence.committed[p];
  }
  size_t partitions = evidence.committed.size();
  for (const Record& record : evidence.output) {
    partitions = std::max(partitions, static_cast<size_t>(record.partition) + 1);
  }
  bounds.outputs.resize(partitions);
  Verifier verifier(rules, bounds.inputs, static_cast<int32_t>(partitions), nullptr, /*seed=*/1, {});
  for (const Record& record : evidence.input) {
    Show(record, [&](const SurveyRecord& shown) { verifier.AddInput(record.partition, shown); });
  }
  for (const Record& record : evidence.output) {
    Show(record, [&](const SurveyRecord& shown) { verifier.AddOutput(shown); });
  }
  return verifier.Judge(bounds);
}

}  // namespace

std::vector<std::string> Disagreements(const Evidence& evidence, const Judgement& judgement) {
  const VerifyReport report = SecondOpinion(evidence);
  std::vector<std::string> disagreements;
  const auto compare = [&](const char* what, int64_t oracle, int64_t verify) {
    if (oracle == verify) return;
    std::string places;
    for (const auto& examples : report.examples) {
      for (const VerifyExample& example : examples) {
        absl::StrAppend(&places, places.empty() ? ": " : ", ", example.is_input ? "input " : "output ",
                        example.partition, "/", example.offset);
      }
    }
    disagreements.push_back(absl::StrCat("the JUDGES DISAGREE: ", what, ": ", oracle, " by the oracle, ",
                                         verify, " by lethe verify", places));
  };
  compare("lost", judgement.lost, report.count(VerifyKind::kLost));
  compare("repeated", judgement.repeated, report.count(VerifyKind::kRepeated));
  compare("foreign", judgement.foreign, report.count(VerifyKind::kForeign));
  compare("changed", judgement.changed, report.count(VerifyKind::kChanged));
  compare("out of order", judgement.reordered, report.count(VerifyKind::kOutOfOrder));
  compare("undeliverable", judgement.undeliverable, report.count(VerifyKind::kUndeliverable));
  compare("undecided", 0, report.count(VerifyKind::kUndecided));
  compare("records", judgement.records, report.input_records);
  return disagreements;
}

}  // namespace lethe::test
