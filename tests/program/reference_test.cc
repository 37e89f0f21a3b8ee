// What is written from the settings: the reference and the schema in connectors/, and --print-config.
#include "src/cli/config/reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "src/cli/commands/reconcile_command.h"
#include "src/cli/commands/survey_command.h"
#include "src/cli/config/effective.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Reference, ThePageIsUpToDate) {
  EXPECT_EQ(ReadFile(LETHE_SOURCE_DIR "/connectors/configuration.md"), ConfigurationPage())
      << "write it again: build/lethe help configuration > connectors/configuration.md";
}

TEST(Reference, TheSchemaIsUpToDate) {
  EXPECT_EQ(ReadFile(LETHE_SOURCE_DIR "/connectors/lethe.schema.json"), ConfigurationSchema())
      << "write it again: build/lethe help schema > connectors/lethe.schema.json";
}

// As an editor does: the configurations of the documents are right by the schema, and these are not.
TEST(Reference, TheSchemaTellsRightFromWrong) {
  if (std::system("python3 -c 'import jsonschema, yaml' 2> /dev/null") != 0) {
    GTEST_SKIP() << "python3-jsonschema or python3-yaml is not installed";
  }
  const std::string program = absl::StrCat(R"(python3 - <<'END'
import json, re, sys, jsonschema, yaml
top = ")",
                                           LETHE_SOURCE_DIR, R"("
schema = json.load(open(top + "/connectors/lethe.schema.json"))
jsonschema.Draft7Validator.check_schema(schema)
validator = jsonschema.Draft7Validator(schema)
right = []
for page in ["README.md", "connectors/OPERATIONS.md", "connectors/redis/README.md"]:
    right += re.findall(r"```yaml\n(.*?)```", open(top + "/" + page).read(), re.S)
assert len(right) >= 4
right += ["fpp: ${FPP}", "http: off", "lanes: 2", "memory: 1048576", "horizon: 1h30m", "kafka: {linger.ms: 5}"]
wrong = ["horizn: 1h", "horizon: 1", "lanes: 65", "lanes: many", "start: newest", "memory: 1 GiB", "input: ''",
         "counters: {name: a}", "counters: [{name: a, key: key}]", "kafka: {group.id: x}", "log: x", "commit_interval: soon"]
bad = [text for text in right if not validator.is_valid(yaml.safe_load(text))]
bad += [text for text in wrong if validator.is_valid(yaml.safe_load(text))]
assert len(right) > 9
sys.exit("judged wrongly: %s" % bad if bad else 0)
END)");
  EXPECT_EQ(std::system(program.c_str()), 0);
}

// Whether a setting has all that the reference shows of it, and whether that is true.
template <class Options>
void ExpectComplete(const Setting<Options>& setting) {
  SCOPED_TRACE(setting.key);
  EXPECT_FALSE(setting.meaning.empty());
  Options options;
  // A switch has no value, and so neither a type nor an example.
  EXPECT_EQ(setting.type.empty(), setting.example.empty());
  // One that names a file is read before it is set.
  EXPECT_TRUE(absl::StartsWith(setting.example, "${") || setting.set(setting.example, options).ok())
      << setting.set(setting.example, options);
  // A default of one word is a value; others are explained.
  if (!setting.fallback.empty() && !absl::StrContains(setting.fallback, ' ') &&
      setting.fallback != "lethe-INPUT") {
    EXPECT_OK(setting.set(setting.fallback, options)) << setting.fallback;
  }
  const std::set<absl::string_view> quantities = {"NUMBER", "DURATION", "SIZE"};
  if (quantities.contains(setting.type)) {
    ASSERT_FALSE(setting.range.empty()) << "say what it may be, as in \"1 to 64\" or \"1ms or more\"";
  }
  if (setting.range.empty()) return;
  std::vector<absl::string_view> ends = absl::StrSplit(setting.range, " to ");
  if (ends.size() == 1) ends = {setting.range.substr(0, setting.range.find(" or more"))};
  for (absl::string_view end : ends) EXPECT_OK(setting.set(end, options)) << end;
  int64_t least = 0, most = 0;
  if (ends.size() == 2 && absl::SimpleAtoi(ends[0], &least) && absl::SimpleAtoi(ends[1], &most)) {
    EXPECT_FALSE(setting.set(absl::StrCat(least - 1), options).ok());
    EXPECT_FALSE(setting.set(absl::StrCat(most + 1), options).ok());
  }
}

TEST(Reference, EverySettingSaysAllOfItself) {
  for (const Setting<RunConfig>& setting : RunSettings()) ExpectComplete(setting);
  for (const Setting<SurveyCommandOptions>& setting : SurveySettings()) ExpectComplete(setting);
  for (const Setting<ReconcileCommandOptions>& setting : ReconcileSettings()) ExpectComplete(setting);
  for (const Setting<CounterConfig>& setting : CounterSettings()) ExpectComplete(setting);
}

std::vector<EffectiveValue> Effective(const std::string& yaml, const RunFlags& flags = {}) {
  std::vector<EffectiveValue> values;
  const absl::StatusOr<RunConfig> config = MakeRunConfig(ConfigText{"lethe.yaml", yaml}, flags, &values);
  EXPECT_OK(config);
  return values;
}

TEST(PrintConfig, SaysWhereEachValueCameFrom) {
  setenv("LETHE_TEST_TOPIC", "in", 1);
  setenv("LETHE_TEST_SECRET", "hunter2", 1);
  const std::string yaml = R"(brokers: "b:9092"
input: ${LETHE_TEST_TOPIC}
output: out
id: json:/a b
horizon: 2h
counters:
  - {name: a, key: key, output: counts}
  - name: b
    key: json:/n
    output: ${LETHE_TEST_TOPIC}-b
kafka:
  sasl.password: ${LETHE_TEST_SECRET}
  sasl.username: ${LETHE_TEST_SECRET}
  ssl.key.password: hunter2
  security.protocol: SASL_SSL
)";
  RunFlags flags;
  flags.values = {{"horizon", "3h"}, {"instance", "i"}};
  flags.kafka = {"client.rack=a$b"};
  const std::string printed = EffectiveYaml(Effective(yaml, flags));
  for (const char* line :
       {"brokers: b:9092  # lethe.yaml:1\n", "input: in  # lethe.yaml:2, from the environment\n",
        "id: \"json:/a b\"  # lethe.yaml:4\n", "horizon: 3h  # --horizon\n", "lanes: 1  # default\n",
        "group: lethe-in  # default\n", "instance: i  # --instance\n",
        "counters:\n  - name: a  # lethe.yaml:7\n    key: key  # lethe.yaml:7\n    output: counts  # "
        "lethe.yaml:7\n"
        "  - name: b  # lethe.yaml:8\n    key: json:/n  # lethe.yaml:9\n"
        "    output: in-b  # lethe.yaml:10, from the environment\n",
        "kafka:\n  sasl.password: \"(hidden)\"  # lethe.yaml:12, from the environment\n",
        "  sasl.username: \"(hidden)\"", "  ssl.key.password: \"(hidden)\"  # lethe.yaml:14\n",
        "  security.protocol: SASL_SSL  # lethe.yaml:15\n", "  client.rack: a$$b  # --kafka\n"}) {
    EXPECT_THAT(printed, HasSubstr(line));
  }
  EXPECT_THAT(printed, Not(HasSubstr("hunter2")));
}

TEST(PrintConfig, SaysTheSameWhenItIsRead) {
  const std::string yaml =
      "brokers: b\ninput: in\noutput: out\nid: 'json:/a\"b: #c'\ninstance: '*x'\nhttp: off\nlanes: 3\n"
      "counters: [{name: a, key: json:/x y, when: key, equals: '5', output: x}, {name: b, key: key, output: "
      "y}]\n"
      "kafka: {client.rack: 'true', ssl.ca.location: '$$5'}\n";
  const std::string printed = EffectiveYaml(Effective(yaml));
  const std::vector<EffectiveValue> first = Effective(yaml), second = Effective(printed);
  ASSERT_EQ(first.size(), second.size());
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].key, second[i].key);
    EXPECT_EQ(first[i].text, second[i].text) << first[i].key;
  }
}

}  // namespace
}  // namespace lethe
