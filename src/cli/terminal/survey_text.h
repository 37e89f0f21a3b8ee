// The report of a survey, for people and for programs.
#ifndef LETHE_SRC_CLI_TERMINAL_SURVEY_TEXT_H_
#define LETHE_SRC_CLI_TERMINAL_SURVEY_TEXT_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "src/cli/terminal/terminal.h"
#include "src/pipeline/preflight/topic_facts.h"
#include "src/survey/survey.h"

namespace lethe {

struct SurveyText {
  std::string brokers;
  std::string input;
  // Properties of librdkafka as given: printable ones, and the names of secret ones.
  std::vector<std::pair<std::string, std::string>> properties = {};
  std::vector<std::string> secrets = {};
  bool id_was_given = false;
  bool has_registry = false;
  int32_t partitions = 0;
  TopicFacts topic = {};  // the input, as far as the cluster describes it
  int64_t in_topic = 0;
  int64_t to_read = 0;
  bool is_whole = true;  // false: the reading ended early
  SurveyReport report;
};

// The horizon to begin with: one step longer than what would have caught 99.9 % of the copies, and 10 minutes
// at least, because a short survey misses late copies. nullopt if there were no copies,
// or the report's times are wrong.
std::optional<absl::Duration> ProposedHorizon(const SurveyReport& report, const IdFigures& figures);

// In 80 columns.
void WriteSurvey(const SurveyText& text, const TextStyle& style, std::ostream& out);

// Whether values are framed, no registry was given, and no id was found without one: the registry may name
// fields.
bool WantsRegistry(const SurveyText& text);

// A topic of several.
struct SurveyedTopic {
  std::string input;
  std::optional<SurveyText> text;
  std::string error;  // why it was not read, or not to its end; empty: it was
};

// A line for each topic, then a list of topics for lethe.yaml.
void WriteSurveys(const std::vector<SurveyedTopic>& topics, const TextStyle& style, std::ostream& out);
// {"topics":[...]}: the object of each, or its `input` and `error`.
void WriteSurveysJson(const std::vector<SurveyedTopic>& topics, std::ostream& out);

// One object on one line; connectors/README.md has its members.
void WriteSurveyJson(const SurveyText& text, std::ostream& out);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_TERMINAL_SURVEY_TEXT_H_
