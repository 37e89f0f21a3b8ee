#include "tests/faults/second_judge.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
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

struct Opinion {
  const char* whose;
  std::array<int64_t, kVerifyKinds.size()> counts;
  int64_t records;
  std::string places;  // of what was found
};

std::vector<std::string> Compare(const Opinion& opinion, const Judgement& judgement) {
  std::vector<std::string> disagreements;
  const auto compare = [&](const char* what, int64_t oracle, int64_t verify) {
    if (oracle == verify) return;
    disagreements.push_back(absl::StrCat("the JUDGES DISAGREE: ", what, ": ", oracle, " by the oracle, ",
                                         verify, " by ", opinion.whose, opinion.places));
  };
  const auto count = [&](VerifyKind kind) { return opinion.counts[static_cast<size_t>(kind)]; };
  compare("lost", judgement.lost, count(VerifyKind::kLost));
  compare("repeated", judgement.repeated, count(VerifyKind::kRepeated));
  compare("foreign", judgement.foreign, count(VerifyKind::kForeign));
  compare("changed", judgement.changed, count(VerifyKind::kChanged));
  compare("out of order", judgement.reordered, count(VerifyKind::kOutOfOrder));
  compare("undeliverable", judgement.undeliverable, count(VerifyKind::kUndeliverable));
  compare("undecided", 0, count(VerifyKind::kUndecided));
  compare("records", judgement.records, opinion.records);
  return disagreements;
}

}  // namespace

std::vector<std::string> Disagreements(const Evidence& evidence, const Judgement& judgement) {
  const VerifyReport report = SecondOpinion(evidence);
  Opinion opinion = {"verify's judge", report.counts, report.input_records, ""};
  for (const auto& examples : report.examples) {
    for (const VerifyExample& example : examples) {
      absl::StrAppend(&opinion.places, opinion.places.empty() ? ": " : ", ",
                      example.is_input ? "input " : "output ", example.partition, "/", example.offset);
    }
  }
  return Compare(opinion, judgement);
}

std::vector<std::string> DisagreementsOfCommand(const std::string& json, const Judgement& judgement) {
  simdjson::dom::parser parser;
  simdjson::dom::element topic;
  if (parser.parse(json).at_pointer("/topics/0").get(topic) != simdjson::SUCCESS) {
    return {absl::StrCat("lethe verify PRINTED no report: ", json)};
  }
  Opinion opinion = {"lethe verify", {}, topic["input_records"].get_int64().value(), ": " + json};
  for (size_t kind = 0; kind < kVerifyKinds.size(); ++kind) {
    opinion.counts[kind] = topic[std::string(kVerifyKinds[kind])]["count"].get_int64().value();
  }
  return Compare(opinion, judgement);
}

}  // namespace lethe::test
