#include "src/cli/config/reference.h"

#include <algorithm>
#include <map>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "connectors/kafka/client/fixed_properties.h"
#include "src/cli/config/config.h"
#include "src/cli/terminal/json_text.h"

namespace lethe {
namespace {

constexpr char kPageHead[] = R"(# Configuration of `lethe run`

<!-- Written by `lethe help configuration`; change src/cli/config/run_settings.cc, then run it again. -->

Set a key in the file of `--config` ([an example](OPERATIONS.md#configuration)), or as a flag (`lethe run --help`); a flag wins. In a value `${NAME}` is an environment variable, `${NAME:-default}` gives a default, `${file:/path}` is the content of a file (the path may have references), and `$$` is a plain `$`. `lethe run --print-config` prints the effective configuration and the source of each value.

Editors check the file with [lethe.schema.json](lethe.schema.json). For the YAML language server its first line is

```yaml
# yaml-language-server: $schema=/usr/local/share/lethe/lethe.schema.json
```

)";

constexpr char kTypes[] = R"(
## Types

- DURATION: whole numbers with units, the largest first: `100ms`, `30s`, `24h`, `7d`, `1h30m`
- SIZE: bytes, or a whole number with a unit: `512MiB`, `1GiB` (powers of 1024), `2GB` (of 1000)
- FIELD: a place in a record: `key`, `value`, `header:NAME`, `json:/pointer` (RFC 6901), or [another form](OPERATIONS.md#records-with-schemas)
- TOPIC: a name as Kafka takes it: at most 249 letters, digits, `.`, `_` or `-`

)";

constexpr char kCountersText[] = R"(## counters

A list of counters of unique records: in the file under `counters:`, as flags one `--counter KEY=VALUE,...` each. [How counters work](README.md#counters).

| key | type | default | meaning |
| --- | --- | --- | --- |
)";

constexpr char kTopicsText[] = R"(
## topics

Several inputs in one process: a list in the place of `input` and `output`. An entry needs both, and may set )";

constexpr char kTopicsRest[] =
    R"( and `counters`; else it has the values of the top level. A flag changes the latter. `group` is required.

```yaml
brokers: localhost:9092
group: lethe
id: json:/id
topics:
  - input: orders
    output: orders-unique
    horizon: 7d
  - input: ^clicks\.(.+)$
    output: clicks-unique.$1
    id: header:event-id
  - input: [payments-a, payments-b]
    output: payments
```

- A list as `input` merges topics: an event that comes by both passes once. It implies `scope: topic`.
- An `input` that begins with `^` is a pattern, a POSIX extended regular expression. `$1` to `$9` in `output`, `divert` and outputs of counters are its groups. It matches anywhere that it is not anchored: end it with `$`. New topics join within ten seconds.
- A topic with an entry by name does not follow a pattern. No pattern takes internal topics, or a name that has the form of an output.
- lethe refuses, with both names: a topic that two patterns match, two inputs with one output, an output that is an input. If patterns bring two such topics, it reads the one that the group has read before, else neither.

)";

constexpr char kKafkaText[] = R"(## kafka

Any property of librdkafka: in the file under `kafka:`, as a flag `--kafka NAME=VALUE`, except these:

)";

// A cell of a Markdown table.
std::string Cell(absl::string_view text) { return absl::StrReplaceAll(text, {{"|", "\\|"}}); }

std::string Code(absl::string_view text) { return text.empty() ? "" : absl::StrCat("`", Cell(text), "`"); }

bool IsChoice(absl::string_view type) {
  return absl::StrContains(type, '|') && std::none_of(type.begin(), type.end(), [](char c) {
           return absl::ascii_isupper(static_cast<unsigned char>(c));
         });
}

// Defaults that are words of explanation are not code.
template <class Options>
std::string Default(const Setting<Options>& setting) {
  if (setting.required) return "must be set";
  if (setting.fallback.empty()) return "none";
  return absl::StrContains(setting.fallback, ' ') ? std::string(setting.fallback) : Code(setting.fallback);
}

// "1 to 64" as numbers.
std::optional<std::pair<double, double>> RangeBounds(absl::string_view range) {
  const std::vector<absl::string_view> ends = absl::StrSplit(range, " to ");
  double least = 0, most = 0;
  if (ends.size() != 2 || !absl::SimpleAtod(ends[0], &least) || !absl::SimpleAtod(ends[1], &most)) {
    return std::nullopt;
  }
  return std::make_pair(least, most);
}

constexpr absl::string_view kVariable = R"({"type":"string","pattern":"\\$\\{"})";

// The schema of a value; a text with a variable in it may be any value.
template <class Options>
std::string SchemaOf(const Setting<Options>& setting) {
  if (IsChoice(setting.type)) {
    const std::string words =
        absl::StrJoin(absl::StrSplit(setting.type, '|'), ",", [](std::string* out, absl::string_view word) {
          // YAML takes the two words for what they say.
          *out += word == "true" || word == "false" ? std::string(word) : JsonString(word);
        });
    return absl::StrCat("\"anyOf\":[{\"enum\":[", words, "]},", kVariable, "]");
  }
  if (setting.type == "NUMBER") {
    const auto bounds = RangeBounds(setting.range);
    // YAML 1.1 takes 1e-6 for a string.
    return absl::StrCat(
        "\"anyOf\":[{\"type\":\"number\"",
        bounds ? absl::StrCat(",\"minimum\":", bounds->first, ",\"maximum\":", bounds->second) : "",
        R"(},{"type":"string","pattern":"^[0-9.]+([eE][-+]?[0-9]+)?%?$"},)", kVariable, "]");
  }
  if (setting.type == "DURATION") {
    return absl::StrCat(R"("anyOf":[{"type":"string","pattern":"^([0-9]+(d|h|ms|m|s))+$"},)", kVariable, "]");
  }
  if (setting.type == "SIZE") {
    return absl::StrCat(
        R"("anyOf":[{"type":"integer","minimum":1},{"type":"string","pattern":"^[0-9]+([KMGT]iB|[kKMGT]?B)?$"},)",
        kVariable, "]");
  }
  if (absl::StartsWith(setting.type, "TOPIC[")) {
    return R"("anyOf":[{"type":"string","minLength":1},{"type":"array","minItems":1,"items":{"type":"string","minLength":1}}])";
  }
  // YAML 1.1 takes off for false.
  if (absl::EndsWith(setting.type, "|off")) return R"("type":["string","boolean"])";
  // A text that may look like a number or a truth value.
  if (setting.type == "TEXT" || absl::EndsWith(setting.type, "|1")) {
    return R"("type":["string","number","boolean"])";
  }
  return R"("type":"string","minLength":1)";
}

template <class Options>
std::string SchemaEntry(absl::string_view name, const Setting<Options>& setting) {
  std::string meaning(setting.meaning);
  if (setting.required) meaning += " (required, here or as a flag)";
  if (!setting.fallback.empty()) absl::StrAppend(&meaning, " [", setting.fallback, "]");
  return absl::StrCat(JsonString(name), ": {", "\"description\":", JsonString(meaning), ",\"examples\":[",
                      JsonString(setting.example), "],", SchemaOf(setting), "}");
}

}  // namespace

std::string ConfigurationPage() {
  std::string page = kPageHead;
  absl::StrAppend(&page, "| key | type | default | meaning |\n| --- | --- | --- | --- |\n");
  for (const Setting<RunConfig>& setting : RunSettings()) {
    absl::StrAppend(&page, "| `", setting.key, "` | ", Code(setting.type),
                    setting.range.empty() ? "" : absl::StrCat(", ", setting.range), " | ",
                    Cell(Default(setting)), " | ", Cell(setting.meaning), " |\n");
  }
  absl::StrAppend(&page, kTypes, kCountersText);
  for (const Setting<CounterConfig>& setting : CounterSettings()) {
    absl::StrAppend(&page, "| `", setting.key, "` | ", Code(setting.type), " | ", Cell(Default(setting)),
                    " | ", Cell(setting.meaning), " |\n");
  }
  std::vector<std::string> of_topic;
  for (const Setting<RunConfig>& setting : RunSettings()) {
    const bool is_always_set = setting.key == "input" || setting.key == "output";
    if (IsTopicSetting(setting.key) && !is_always_set) of_topic.push_back(Code(setting.key));
  }
  absl::StrAppend(&page, kTopicsText, absl::StrJoin(of_topic, ", "), kTopicsRest, kKafkaText);
  absl::string_view reason;  // of the line that is open
  for (const kafka::FixedProperty& fixed : kafka::FixedProperties()) {
    if (fixed.reason == reason) {
      absl::StrAppend(&page, ", ", Code(fixed.name));
    } else {
      absl::StrAppend(&page, reason.empty() ? "" : absl::StrCat(": ", reason, "\n"), "- ", Code(fixed.name));
    }
    reason = fixed.reason;
  }
  absl::StrAppend(&page, ": ", reason, "\n");
  return page;
}

std::string ConfigurationSchema() {
  std::vector<std::string> entries;
  std::map<std::string, std::vector<std::string>> sections;
  for (const Setting<RunConfig>& setting : RunSettings()) {
    const std::vector<std::string> path = absl::StrSplit(setting.key, '.');
    if (path.size() == 1) {
      entries.push_back(SchemaEntry(setting.key, setting));
    } else {
      sections[path[0]].push_back(SchemaEntry(path[1], setting));
    }
  }
  std::map<std::string, std::string> section_texts;
  for (const auto& [name, inside] : sections) {
    section_texts[name] = entries.emplace_back(absl::StrCat(
        JsonString(name), ": {\"type\":\"object\",\"additionalProperties\":false,\"properties\":{\n    ",
        absl::StrJoin(inside, ",\n    "), "}}"));
  }
  std::vector<std::string> of_counter, required;
  for (const Setting<CounterConfig>& setting : CounterSettings()) {
    of_counter.push_back(SchemaEntry(setting.key, setting));
    if (setting.required) required.push_back(JsonString(setting.key));
  }
  entries.push_back(absl::StrCat(
      R"("counters": {"description":"What unique records count","type":"array","maxItems":16,"items":)",
      R"({"type":"object","additionalProperties":false,"required":[)", absl::StrJoin(required, ","),
      "],\"properties\":{\n    ", absl::StrJoin(of_counter, ",\n    "), "}}}"));
  std::vector<std::string> of_topic = {entries.back()};
  for (const Setting<RunConfig>& setting : RunSettings()) {
    const bool is_of_section = absl::StrContains(setting.key, '.');
    if (IsTopicSetting(setting.key) && !is_of_section) of_topic.push_back(SchemaEntry(setting.key, setting));
  }
  of_topic.push_back(section_texts.at("snapshots"));
  entries.push_back(absl::StrCat(
      R"("topics": {"description":"Input topics, each with its own output","type":"array","items":)",
      R"({"type":"object","additionalProperties":false,"required":["input","output"],"properties":{)",
      "\n    ", absl::StrJoin(of_topic, ",\n    "), "}}}"));
  std::vector<std::string> fixed;
  for (const kafka::FixedProperty& property : kafka::FixedProperties()) {
    fixed.push_back(absl::StrCat(JsonString(property.name), ": false"));
  }
  entries.push_back(
      absl::StrCat("\"kafka\": {\"description\":\"Properties of "
                   "librdkafka\",\"type\":\"object\",\"additionalProperties\":{\"type\":[\"string\","
                   "\"number\",\"boolean\"]},\"properties\":{\n    ",
                   absl::StrJoin(fixed, ",\n    "), "}}"));
  return absl::StrCat(
      "{\"$schema\": \"http://json-schema.org/draft-07/schema#\",\n",
      "\"$comment\": \"Written by `lethe help schema`; change src/cli/config/run_settings.cc, then run it "
      "again.\",\n",
      "\"title\": \"Configuration of lethe run\",\n\"type\": \"object\",\n\"additionalProperties\": false,\n",
      "\"properties\": {\n  ", absl::StrJoin(entries, ",\n  "), "\n}}\n");
}

}  // namespace lethe
