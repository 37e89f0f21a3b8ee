// Records in memory, as a survey reads them.
#ifndef LETHE_TESTS_SUPPORT_SURVEY_SAMPLES_H_
#define LETHE_TESTS_SUPPORT_SURVEY_SAMPLES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "src/survey/survey.h"

namespace lethe::test {

struct Sample {
  std::optional<std::string> key;
  std::map<std::string, std::string> headers;
  std::optional<std::string> value;
};

class SampleHeaders : public RecordHeaders {
 public:
  explicit SampleHeaders(const std::map<std::string, std::string>& headers) : headers_(headers) {}
  std::optional<absl::string_view> Last(const std::string& name) const override {
    const auto found = headers_.find(name);
    return found == headers_.end() ? std::nullopt : std::optional<absl::string_view>(found->second);
  }

 private:
  const std::map<std::string, std::string>& headers_;
};

inline void AddTo(Survey& survey, const Sample& sample, int64_t offset, int64_t time_ms) {
  const SampleHeaders headers(sample.headers);
  std::vector<std::pair<absl::string_view, std::optional<absl::string_view>>> all;
  for (const auto& [name, text] : sample.headers) all.emplace_back(name, text);
  SurveyRecord record;
  record.record = {.key = sample.key, .value = sample.value, .headers = &headers};
  record.headers = all;
  record.offset = offset;
  record.time_ms = time_ms;
  survey.Add(record);
}

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_SURVEY_SAMPLES_H_
