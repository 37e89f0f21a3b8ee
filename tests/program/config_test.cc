#include "src/cli/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "connectors/kafka/client/client.h"
#include "connectors/kafka/client/fixed_properties.h"
#include "src/cli/commands/survey_command.h"
#include "src/cli/config/effective.h"
#include "src/cli/config/reference.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using testing::TestWithParam;

constexpr char kSecret[] = "hunter2";
// Four lines, so that what a test adds begins on line 5.
constexpr char kRequired[] = "brokers: b:9092\ninput: in\noutput: out\nid: key\n";
constexpr char kForms[] =
    " (a field is key, value, header:NAME or json:/POINTER; or avro:/POINTER, framed.json:/POINTER, "
    "protobuf:/NAME or protobuf:/NUMBER; with key. before them, of the key)";
constexpr char kTopic[] = "expected the name of one topic: at most 249 letters, digits, '.', '_' or '-'";
constexpr char kHttp[] =
    "expected HOST:PORT, such as 127.0.0.1:9464 or [::1]:9464, or 0.0.0.0:9464 for all interfaces, or off";

absl::StatusOr<RunConfig> FromFile(const std::string& yaml, const RunFlags& flags = {}) {
  return MakeRunConfig(ConfigText{"lethe.yaml", yaml}, flags);
}

RunFlags Flags(std::vector<std::pair<std::string, std::string>> values, std::vector<std::string> kafka = {}) {
  RunFlags flags;
  flags.values = std::move(values);
  flags.kafka = std::move(kafka);
  return flags;
}

RunFlags RequiredFlags() {
  return Flags({{"brokers", "b:9092"}, {"input", "in"}, {"output", "out"}, {"id", "key"}});
}

// `yaml` is the whole file if `whole`, else what follows kRequired. The message is whole, so that what a user
// reads is seen here.
struct BadConfig {
  std::string name;
  std::string yaml;
  std::string message;
  bool whole = false;
};

class BadConfigTest : public TestWithParam<BadConfig> {};

TEST_P(BadConfigTest, SaysWhereWhatAndHow) {
  const BadConfig& bad = GetParam();
  const absl::StatusOr<RunConfig> config = FromFile(bad.whole ? bad.yaml : kRequired + bad.yaml);
  ASSERT_FALSE(config.ok());
  EXPECT_THAT(config.status(), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(std::string(config.status().message()), absl::StrCat("lethe.yaml:", bad.message));
}

constexpr bool kWhole = true;

const BadConfig kBadYaml[] = {
    {"NotAMap", "a string\n", "1: expected 'key: value' lines", kWhole},
    {"AList", "# a comment\n- a\n- b\n", "2: expected 'key: value' lines", kWhole},
    {"OpenList", "input: [\n", "3: not YAML: end of sequence flow not found", kWhole},
    {"Tab", "\tinput: x\n", "1: not YAML: indented with a tab: use spaces", kWhole},
    {"TabInASection", "log:\n  level: info\n\tformat: json\n", "3: not YAML: indented with a tab: use spaces",
     kWhole},
    {"WrongIndent", "input: a\n output: b\n", "2: not YAML: illegal map value", kWhole},
    {"OpenQuote", "group: \"a\nhorizon: 7d\n", "5: a quote is opened, and not closed"},
    {"OpenSingleQuote", "group: 'a\nhorizon: 7d\n", "5: a quote is opened, and not closed"},
    {"Utf16", std::string("\xff\xfei\0n\0p\0u\0t\0:\0 \0x\0\n\0", 20),
     "1: not text in UTF-8: it has a zero byte; save it as UTF-8", kWhole},
    {"ZeroByte", std::string("group: x\n\0", 10),
     "6: not text in UTF-8: it has a zero byte; save it as UTF-8"},
    {"SecondDocument", "---\nx: 1\n", "5: a second YAML document; a configuration is one"},
    // yaml-cpp finds documents without end behind the comma.
    {"CommaBehindAMap", "{brokers: a}, x\n", "1: a second YAML document; a configuration is one", kWhole},
    {"CommaBehindAList", "[a], x\n", "1: a second YAML document; a configuration is one", kWhole},
    {"DeepLists", "group: " + std::string(20'000, '[') + "\n",
     "5: lists and maps more than 8 deep; a configuration has 5"},
    {"DeepMaps", "group: " + std::string(20'000, '{') + "\n",
     "5: lists and maps more than 8 deep; a configuration has 5"},
    {"ManyValues", "group: [" + std::string(30'000, ',') + "]\n",
     "5: more than 20000 keys and values, which no configuration has"},
    {"KeyIsAList", "? [a]\n: b\n", "5: expected a key, found a list or a map"},
    {"Duplicate", "input: other\n", "5: input: the key is already on line 2"},
    {"DuplicateInSection", "kafka:\n  linger.ms: 1\n  linger.ms: 2\n",
     "7: kafka.linger.ms: the key is already on line 6"},
    {"DuplicateSection", "kafka: {linger.ms: 1}\nkafka: {c: d}\n", "6: kafka: the key is already on line 5"},
    {"Alias", "group: *b\n",
     "5: a value that begins with * refers to an anchor, and there is none of that name: put it in quotes if "
     "the * "
     "belongs to it"},
};

const BadConfig kBadKeys[] = {
    {"QuoteThatAnotherCloses", "group: \"a\nhorizon: \"7d\"\n", "5: a quote is opened, and not closed"},
    {"QuoteOverTwoLinesIsNone", "group: \"a\n  b\"\nhorizon: \"7d\n", "7: a quote is opened, and not closed"},
    {"RetriesAtTopLevel", "retries: 3\n",
     "5: retries: unknown key; a property of librdkafka goes under 'kafka:'"},
    {"JavasTrustStore", "kafka:\n  ssl.truststore.location: a.jks\n",
     "6: kafka.ssl.truststore.location: a property of Kafka's Java clients, which librdkafka does not have; "
     "set ssl.ca.location to a PEM file of the certificates (keytool -exportcert -rfc "
     "writes one)"},
    {"JavasBatch", "kafka:\n  max.request.size: 1\n",
     "6: kafka.max.request.size: a property of Kafka's Java clients, which librdkafka does not have; set "
     "message.max.bytes"},
    {"ManyAtOnce", "horizn: 1h\nfpp: x\nlog:\n  level: loud\nid_: key\n",
     "5: horizn: unknown key; did you mean horizon?\n"
     "lethe.yaml:6: fpp: \"x\" is not valid: expected a number from 1e-15 to 0.1, such as 1e-6 or 0.1%\n"
     "lethe.yaml:8: log.level: \"loud\" is not valid: expected debug, info, warning or error\n"
     "lethe.yaml:9: id_: unknown key; did you mean id?"},
    {"JavasLogin", "kafka:\n  sasl.jaas.config: hunter2\n",
     "6: kafka.sasl.jaas.config: a property of Kafka's Java clients, which librdkafka does not have; set "
     "sasl.mechanism, sasl.username and sasl.password; for Kerberos sasl.kerberos.principal and "
     "sasl.kerberos.keytab; for OAuth sasl.oauthbearer.method: oidc and its client id, secret and endpoint"},
    {"EveryKindAtOnce",
     "brokers: b\ninput: [a, [b]]\nfpp: 1e-6\nfpp: 1e-7\nlog: loud\nkafak: {x: 1, y: 2}\nhorizon: soon\n",
     "2: input: expected a single value, found a list\n"
     "lethe.yaml:4: fpp: the key is already on line 3\n"
     "lethe.yaml:5: log: expected a section of keys, found a single value\n"
     "lethe.yaml:6: kafak: unknown key; did you mean kafka?\n"
     "lethe.yaml:7: horizon: \"soon\" is not valid: expected a duration such as 100ms, 24h, 7d or 1h30m\n"
     "lethe.yaml: missing output (or --output), for example orders-unique; id (or --id), for example "
     "json:/order/id",
     kWhole},
    {"ValuesThatDoNotAgreeAtOnce",
     "on_malformed: divert\nkafka: {transaction.timeout.ms: 1000}\ncommit_interval: 5s\n"
     "counters:\n  - {name: a, key: key, output: in}\n  - {name: b, key: key}\n",
     "10: counters[1]: missing output, for example likes\n"
     "lethe.yaml:9: counters[0].output: \"in\" is also the input; expected another topic\n"
     "lethe.yaml:5: on_malformed: divert needs a topic: set divert (or --divert), for example "
     "orders-diverted\n"
     "lethe.yaml:6: kafka.transaction.timeout.ms: expected more than commit_interval, which is 5s"},
    {"Misspelt", "comit_interval: 1s\n", "5: comit_interval: unknown key; did you mean commit_interval?"},
    {"MisspeltSection", "kafak:\n  a: b\n", "5: kafak: unknown key; did you mean kafka?"},
    {"MisspeltInSection", "log:\n  levle: info\n", "6: log.levle: unknown key; did you mean log.level?"},
    {"Unknown", "colour: red\n",
     "5: colour: unknown key; the keys are brokers, input, input_header, output, id, scope, horizon, renew, "
     "max_future, "
     "fpp, "
     "memory, "
     "engine, on_duplicate, on_missing_id, on_malformed, "
     "on_suspicious_id, on_undeliverable, on_unreadable, on_uncountable, divert, group, instance, start, "
     "accept_nonempty_output, delivery, lanes, assignment, static_membership, commit_interval, "
     "on_short_history, on_unread_deleted, "
     "http, http_counters, metrics, snapshots, "
     "schema_registry, log, counters, topics, kafka"},
    {"UnknownInSection", "log:\n  colour: key\n",
     "6: log.colour: unknown key; the keys are log.level, log.format"},
    {"PropertyAtTopLevel", "linger.ms: 5\n",
     "5: linger.ms: unknown key; a property of librdkafka goes under 'kafka:'"},
    {"SnapshotsAtTopLevel", "snapshots.to: off\n", "5: snapshots.to: unknown key; did you mean snapshots?"},
    {"UnknownInSnapshots", "snapshots: {evry: 5m}\n",
     "5: snapshots.evry: unknown key; did you mean snapshots.every?"},
    {"LogAtTopLevel", "log.level: info\n", "5: log.level: unknown key; write level under 'log:'"},
    {"SectionIsAText", "log: info\n", "5: log: expected a section of keys, found a single value"},
    {"SectionIsEmpty", "kafka:\n", "5: kafka: expected a section of keys, found nothing"},
    {"PropertyThatThereIsNot", "kafka:\n  sasl.pasword: hunter2\n",
     "6: kafka.sasl.pasword: librdkafka has no property sasl.pasword; did you mean sasl.password?"},
    {"PropertyLikeNoOther", "kafka: {x: 1}\n",
     "5: kafka.x: librdkafka has no property x; its CONFIGURATION.md lists them"},
    {"PropertyOutOfRange", "kafka:\n  linger.ms: -5\n",
     "6: kafka.linger.ms: librdkafka property linger.ms: the value is not accepted; allowed is 0..900000"},
    {"TextIsAList", "horizon: [24h]\n", "5: horizon: expected a single value, found a list"},
    {"TextIsAMap", "horizon: {a: b}\n", "5: horizon: expected a single value, found a section of keys"},
    {"TextIsEmpty", "horizon:\n", "5: horizon: expected a single value, found nothing"},
    {"TextIsNull", "horizon: ~\n", "5: horizon: expected a single value, found nothing"},
    {"Missing", "brokers: b:9092\ninput: in\n",
     " missing output (or --output), for example orders-unique; id (or --id), for example json:/order/id",
     kWhole},
};

const BadConfig kBadValues[] = {
    {"DurationWithoutUnit", "horizon: 24\n",
     "5: horizon: \"24\" is not valid: expected a duration with a unit (ms, s, m, h, d): say 24h if hours "
     "are meant"},
    {"Duration", "commit_interval: soon\n",
     "5: commit_interval: \"soon\" is not valid: expected a duration such as 100ms, 24h, 7d or 1h30m"},
    {"LongCommitInterval", "commit_interval: 1m\n",
     "5: commit_interval: \"1m\" is not valid: expected a duration from 1ms to 10s"},
    {"NoMaxFuture", "max_future: 0s\n",
     "5: max_future: \"0s\" is not valid: expected a duration from 1s to 36525d"},
    {"NoCommitInterval", "commit_interval: 0s\n",
     "5: commit_interval: \"0s\" is not valid: expected a duration from 1ms to 10s"},
    {"Size", "memory: 1G\n", "5: memory: \"1G\" is not valid: expected a size such as 1GiB"},
    {"Share", "fpp: 1x%\n",
     "5: fpp: \"1x%\" is not valid: expected a number from 1e-15 to 0.1, such as 1e-6 or 0.1%"},
    {"NoShare", "fpp: 0\n",
     "5: fpp: \"0\" is not valid: expected a number from 1e-15 to 0.1, such as 1e-6 or 0.1%"},
    {"LittleMemory", "memory: 65535\n",
     "5: memory: \"65535\" is not valid: expected a size of 64KiB or more"},
    {"Number", "lanes: two\n", "5: lanes: \"two\" is not valid: expected a whole number from 1 to 64"},
    {"NumberTooSmall", "lanes: 0\n", "5: lanes: \"0\" is not valid: expected a whole number from 1 to 64"},
    {"Engine", "engine: slice\n", "5: engine: \"slice\" is not valid: expected compact, exact or published"},
    {"EngineForComparisons", "engine: bloom\n",
     "5: engine: \"bloom\" is not valid: it breaks the guarantees of lethe run; set compact, exact or "
     "published (lethe filter --engine bloom tries it out)"},
    {"EngineThatForgetsAllAtOnce", "engine: recycled\n",
     "5: engine: \"recycled\" is not valid: it breaks the guarantees of lethe run; set compact, exact or "
     "published (lethe filter --engine recycled tries it out)"},
    {"EngineOfFewIds", "engine: opposite\n",
     "5: engine: \"opposite\" is not valid: it breaks the guarantees of lethe run; set compact, exact or "
     "published (lethe filter --engine opposite tries it out)"},
    {"EngineAndTarget", "fpp: 1e-13\nengine: published\n",
     "6: engine: target_fpp: 1e-13 is too low for the engine published; the nearest that can be is 1e-12"},
    {"OnDuplicate", "on_duplicate: pass\n",
     "5: on_duplicate: \"pass\" is not valid: expected drop, tag or divert"},
    {"OnMissingId", "on_missing_id: tag\n",
     "5: on_missing_id: \"tag\" is not valid: expected pass, drop, divert or fail"},
    {"OnUndeliverable", "on_undeliverable: pass\n",
     "5: on_undeliverable: \"pass\" is not valid: expected drop, divert or fail"},
    {"OnUnreadable", "on_unreadable: divert\n",
     "5: on_unreadable: \"divert\" is not valid: expected fail or drop"},
    {"Scope", "scope: all\n", "5: scope: \"all\" is not valid: expected partition or topic"},
    {"ScopeOfAGroupThatIsNoTopic", "group: a b\nscope: topic\n",
     "6: scope: topic needs an internal topic, and \"a b-in-repartition\" is not a topic name; choose a "
     "shorter "
     "group, of letters, digits, '.', '_' and '-'"},
    {"DivertToNowhere", "on_malformed: divert\n",
     "5: on_malformed: divert needs a topic: set divert (or --divert), for example orders-diverted"},
    {"DivertIntoOutput", "on_malformed: divert\ndivert: out\n",
     "6: divert: \"out\" is also the output; expected another topic"},
    {"Start", "start: newest\n", "5: start: \"newest\" is not valid: expected earliest or latest"},
    {"Delivery", "delivery: maybe\n",
     "5: delivery: \"maybe\" is not valid: expected exactly_once or at_least_once"},
    {"Assignment", "assignment: sticky\n",
     "5: assignment: \"sticky\" is not valid: expected eager or cooperative"},
    {"StaticMembership", "static_membership: yes\n",
     "5: static_membership: \"yes\" is not valid: expected true, crash or false"},
    {"OnShortHistory", "on_short_history: warn\n",
     "5: on_short_history: \"warn\" is not valid: expected continue or fail"},
    {"OnUnreadDeleted", "on_unread_deleted: drop\n",
     "5: on_unread_deleted: \"drop\" is not valid: expected fail or continue"},
    {"SnapshotsNowhere", "snapshots: {to: 'folder:'}\n",
     "5: snapshots.to: \"folder:\" is not valid: expected folder:PATH, such as folder:/var/lib/lethe, or "
     "topic:NAME, or off"},
    {"SnapshotsIntoOutput", "snapshots: {to: 'topic:out'}\n",
     "5: snapshots.to: \"out\" is also the output; expected another topic"},
    {"SnapshotsTooOften", "snapshots: {every: 10ms}\n",
     "5: snapshots.every: \"10ms\" is not valid: expected a duration of 1s or more"},
    {"HttpPortAlone", "http: 9464\n", absl::StrCat("5: http: \"9464\" is not valid: ", kHttp)},
    {"HttpNoHost", "http: :9464\n", absl::StrCat("5: http: \":9464\" is not valid: ", kHttp)},
    {"HttpNoBrackets", "http: ::1:9464\n", absl::StrCat("5: http: \"::1:9464\" is not valid: ", kHttp)},
    {"HttpPortTooLarge", "http: localhost:99999\n",
     absl::StrCat("5: http: \"localhost:99999\" is not valid: ", kHttp)},
    {"Group", "group: ''\n", "5: group: \"\" is not valid: expected NAME, such as lethe-orders"},
    {"Instance", "instance: ''\n", "5: instance: \"\" is not valid: expected NAME, such as lethe-0"},
    {"Brokers", "brokers: ''\ninput: in\noutput: out\nid: key\n",
     "1: brokers: \"\" is not valid: expected HOST:PORT,..., such as localhost:9092", kWhole},
    {"Topic", "input: a b\nbrokers: b\noutput: out\nid: key\n",
     absl::StrCat("1: input: \"a b\" is not valid: ", kTopic), kWhole},
    {"EmptyTopic", "input: ''\nbrokers: b\noutput: out\nid: key\n",
     absl::StrCat("1: input: \"\" is not valid: ", kTopic), kWhole},
    {"LongTopic", absl::StrCat("output: ", std::string(250, 'x'), "\nbrokers: b\ninput: in\nid: key\n"),
     absl::StrCat("1: output: \"", std::string(80, 'x'), "...\" is not valid: ", kTopic), kWhole},
    {"SameTopics", "brokers: b\ninput: a\noutput: a\nid: key\n",
     "3: output: \"a\" is also the input; expected another topic", kWhole},
    {"CountersIntoInput", "counters:\n  - name: a\n    key: key\n    output: in\n",
     "8: counters[0].output: \"in\" is also the input; expected another topic"},
    {"CountersIntoOneTopic",
     "counters:\n  - {name: a, key: key, output: x}\n  - {name: b, key: key, output: x}\n",
     "7: counters[1].output: \"x\" is also the output of counter a; expected another topic"},
    {"CountersOfOneName",
     "counters:\n  - {name: a, key: key, output: x}\n  - {name: a, key: key, output: y}\n",
     "7: counters[1]: another counter has the name \"a\""},
    {"CounterName", "counters:\n  - {name: a/b, key: key, output: x}\n",
     "6: counters[0].name: \"a/b\" is not valid: expected at most 249 letters, digits, '.', '_' or '-'"},
    {"CounterMode", "counters:\n  - {name: a, key: key, output: x, mode: sum}\n",
     "6: counters[0].mode: \"sum\" is not valid: expected delta or total"},
    {"TotalsAtLeastOnce",
     "delivery: at_least_once\ncounters:\n  - {name: a, key: key, output: x, mode: total}\n",
     "7: counters[0]: mode: total needs delivery: exactly_once, because records replayed after a crash would "
     "be counted twice; use mode: delta"},
    {"CounterStoreOfDeltas", "counters:\n  - {name: a, key: key, output: x, store: \"redis://h\"}\n",
     "6: counters[0]: a store needs mode: total, which can be brought there again"},
    {"CounterStoreAddress", "counters:\n  - {name: a, key: key, output: x, store: \"http://h\"}\n",
     "6: counters[0].store: expected redis://HOST, redis://HOST:PORT or "
     "redis://USER@HOST:PORT/DATABASE, such as redis://127.0.0.1:6379/0"},
    {"CounterStoreWithPassword", "counters:\n  - {name: a, key: key, output: x, store: \"redis://u:p@h\"}\n",
     "6: counters[0].store: expected no password in the address, where it would be printed: put it "
     "into store_password"},
    {"CounterStoreWithTls", "counters:\n  - {name: a, key: key, output: x, store: \"rediss://h\"}\n",
     "6: counters[0].store: lethe speaks no TLS to Redis: use redis:// in a trusted network, or to a "
     "local stunnel"},
    {"CounterPasswordWithoutStore",
     "counters:\n  - {name: a, key: key, output: x, mode: total, store_password: hush}\n",
     "6: counters[0]: store_password needs a store, such as redis://127.0.0.1:6379/0"},
    {"CounterDelta", "counters:\n  - {name: a, key: key, output: x, delta: amount}\n",
     absl::StrCat("6: counters[0].delta: field 'amount': there is no such field; did you mean json:/amount?",
                  kForms)},
    {"CounterWithoutKey", "counters:\n  - name: a\n    output: x\n",
     "6: counters[0]: missing key, for example json:/page"},
    {"CounterWhenAlone", "counters:\n  - {name: a, key: key, output: x, when: json:/type}\n",
     "6: counters[0]: `when` and `equals` go together: a field, and what must be there"},
    {"CounterMisspelt", "counters:\n  - {name: a, kye: key}\n",
     "6: counters[0].kye: unknown key; did you mean key?"},
    {"CounterIsAList", "counters:\n  - {name: [a]}\n",
     "6: counters[0].name: expected a single value, found a list"},
    {"CounterIsAText", "counters:\n  - likes\n",
     "6: counters[0]: expected a counter's keys, found a single value"},
    {"CountersAreAMap", "counters: {name: a}\n",
     "5: counters: expected a list of counters, found a section of keys"},
    {"CounterIntoOutput", "counters: [{name: a, key: key, output: out}]\n",
     "5: counters[0].output: \"out\" is also the output; expected another topic"},
    {"IdPointer", "id: json:id\nbrokers: b\ninput: in\noutput: out\n",
     absl::StrCat("1: id: field 'json:id': a JSON pointer starts with '/'; did you mean json:/id?", kForms),
     kWhole},
    {"IdForm", "id: $.order.id\nbrokers: b\ninput: in\noutput: out\n",
     absl::StrCat("1: id: field '$.order.id': there is no such field; did you mean json:/order/id?", kForms),
     kWhole},
    {"CounterField", "counters:\n  - key: country\n",
     absl::StrCat("6: counters[0].key: field 'country': there is no such field; did you mean json:/country?",
                  kForms)},
};

const BadConfig kBadVariables[] = {
    {"NotSet", "group: a-${LETHE_TEST_UNSET}\n",
     "5: group: the environment variable LETHE_TEST_UNSET is not set; set it, or write "
     "${LETHE_TEST_UNSET:-default}"},
    {"BadName", "group: ${LETHE TEST}\n",
     "5: group: expected ${NAME}, ${NAME:-default} or ${file:PATH} after a $; write $$ for a single $"},
    {"NoName", "group: ${}\n",
     "5: group: expected ${NAME}, ${NAME:-default} or ${file:PATH} after a $; write $$ for a single $"},
    {"Open", "group: ${LETHE\n", "5: group: a ${ without its }; write $${ if it is meant literally"},
};

std::string NameOf(const testing::TestParamInfo<BadConfig>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Yaml, BadConfigTest, testing::ValuesIn(kBadYaml), NameOf);
INSTANTIATE_TEST_SUITE_P(Keys, BadConfigTest, testing::ValuesIn(kBadKeys), NameOf);
INSTANTIATE_TEST_SUITE_P(Values, BadConfigTest, testing::ValuesIn(kBadValues), NameOf);
INSTANTIATE_TEST_SUITE_P(Variables, BadConfigTest, testing::ValuesIn(kBadVariables), NameOf);

TEST(Config, NoMoreThanTwentyErrorsAreShown) {
  std::string yaml;
  for (int i = 0; i < 30; ++i) absl::StrAppend(&yaml, "horizon", i, "x: 1h\n");
  const std::string message(FromFile(yaml).status().message());
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 20) << message;
  EXPECT_THAT(message, EndsWith("\nand 11 more"));  // with that of what is missing
}

TEST(Config, TheErrorsOfAllTopicsAndFlagsAreShownTogether) {
  RunFlags flags = Flags({{"fpp", "x%"}, {"lanes", "two"}});
  EXPECT_EQ(
      FromFile("brokers: b\ngroup: g\nhorizon: soon\ntopics:\n"
               "  - {input: a, output: x, renew: maybe}\n  - orders\n  - {input: b, output: y}\n",
               flags)
          .status()
          .message(),
      "lethe.yaml:3: horizon: \"soon\" is not valid: expected a duration such as 100ms, 24h, 7d or 1h30m\n"
      "--fpp: \"x%\" is not valid: expected a number from 1e-15 to 0.1, such as 1e-6 or 0.1%\n"
      "--lanes: \"two\" is not valid: expected a whole number from 1 to 64\n"
      "lethe.yaml:5: topics[0].renew: \"maybe\" is not valid: expected true or false\n"
      "lethe.yaml: topics[0]: missing id (or --id), for example json:/order/id\n"
      "lethe.yaml:6: topics[1]: expected the keys of a topic, found a single value\n"
      "lethe.yaml: topics[2]: missing id (or --id), for example json:/order/id");
}

TEST(Config, ErrorsOfTheStageAreReportedWithTheLine) {
  for (const auto& [key, text] : {std::pair("horizon", "0s"),
                                  {"horizon", "999999d"},
                                  {"fpp", "0.999"},
                                  {"fpp", "1e-16"},
                                  {"memory", "0"}}) {
    const absl::Status status = FromFile(absl::StrCat(kRequired, key, ": ", text, "\n")).status();
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kInvalidArgument,
                         StartsWith(absl::StrCat("lethe.yaml:5: ", key, ": \"", text, "\" is not valid: "))));
  }
}

TEST(Config, TheLimitOfFutureTimesFollowsAShortHorizon) {
  const auto max_future = [](const std::string& more) {
    return FromFile(kRequired + more)->daemon.max_future;
  };
  EXPECT_EQ(max_future("horizon: 30m\n"), absl::Minutes(30) / 16);
  EXPECT_EQ(max_future("horizon: 5s\n"), absl::Seconds(1));
  EXPECT_EQ(max_future("horizon: 48h\n"), absl::Hours(1));
  EXPECT_EQ(max_future("horizon: 30m\nmax_future: 2h\n"), absl::Hours(2));
}

// They may be of persons, and whoever reaches the port reads the page.
// Nothing is lost where it can be kept.
TEST(Config, UndeliverableRecordsAreDivertedWhereThereIsATopicForThem) {
  const std::string required = "brokers: a:1\ninput: in\noutput: out\nid: key\n";
  EXPECT_EQ(FromFile(required)->daemon.policies.on_undeliverable, Action::kDrop);
  const auto diverts = FromFile(required + "divert: other\n");
  EXPECT_EQ(diverts->daemon.policies.on_undeliverable, Action::kDivert);
  EXPECT_EQ(diverts->daemon.divert, "other");
  const auto drops = FromFile(required + "divert: other\non_undeliverable: drop\n");
  EXPECT_EQ(drops->daemon.policies.on_undeliverable, Action::kDrop);
}

TEST(Config, CounterKeysAreShownToThisMachineAlone) {
  const auto shows = [](const std::string& more) { return FromFile(kRequired + more)->shows_counter_keys(); };
  EXPECT_TRUE(shows(""));
  EXPECT_TRUE(shows("http: localhost:1\n"));
  EXPECT_TRUE(shows("http: \"[::1]:1\"\n"));
  EXPECT_FALSE(shows("http: 0.0.0.0:9464\n"));
  EXPECT_FALSE(shows("http: \"[::]:1\"\n"));
  EXPECT_FALSE(shows("http: 10.0.0.7:1\n"));
  EXPECT_FALSE(shows("http: 127.example.com:1\n"));
  EXPECT_TRUE(shows("http: 0.0.0.0:9464\nhttp_counters: true\n"));
  EXPECT_FALSE(shows("http_counters: false\n"));
}

TEST(Config, WarnsIfTheRegistrysSecretLeavesTheMachineUnencrypted) {
  const auto warns = [](const std::string& url, const std::string& secret) {
    const auto config = FromFile(absl::StrCat("brokers: b:9092\ninput: in\noutput: out\nid: avro:/id\n",
                                              "schema_registry: {url: \"", url, "\", ", secret, "}\n"));
    EXPECT_OK(config);
    if (!config.ok()) return false;
    EXPECT_THAT(config->warning, Not(HasSubstr("hunter2")));
    EXPECT_EQ(!config->warning.empty(), absl::StrContains(config->warning, "http://registry:8081"));
    return !config->warning.empty();
  };
  const std::string password = "user: u, password: hunter2", token = "token: hunter2", none = "timeout: 5s";
  EXPECT_TRUE(warns("http://registry:8081", password));
  EXPECT_TRUE(warns("http://registry:8081", token));
  EXPECT_TRUE(warns("https://other:8081,http://registry:8081", token));
  EXPECT_FALSE(warns("http://registry:8081", none));
  EXPECT_FALSE(warns("https://registry:8081", password));
  for (const char* host : {"127.0.0.1", "localhost", "[::1]"}) {
    EXPECT_FALSE(warns(absl::StrCat("http://", host, ":8081"), password)) << host;
  }
}

TEST(Config, RequiredAloneGivesTheDefaults) {
  const absl::StatusOr<RunConfig> config = FromFile(kRequired);
  ASSERT_OK(config);
  const DaemonOptions& daemon = config->daemon;
  EXPECT_EQ(daemon.process.brokers, "b:9092");
  EXPECT_EQ(daemon.input, "in");
  EXPECT_EQ(daemon.output, "out");
  EXPECT_EQ(daemon.record.id.ToString(), "key");
  EXPECT_EQ(daemon.process.group, "lethe-in");
  char host[256] = "";
  ASSERT_EQ(gethostname(host, sizeof(host) - 1), 0);
  EXPECT_EQ(daemon.process.instance, host);
  EXPECT_EQ(daemon.start, Start::kEarliest);
  EXPECT_EQ(daemon.process.delivery, Delivery::kExactlyOnce);
  EXPECT_EQ(daemon.process.lanes, 1);
  EXPECT_EQ(daemon.process.commit_interval, absl::Milliseconds(100));
  EXPECT_FALSE(daemon.process.exit_at_end);
  EXPECT_EQ(daemon.stage.horizon, absl::Hours(24));
  EXPECT_EQ(daemon.stage.target_fpp, 1e-6);
  EXPECT_EQ(daemon.stage.memory_limit_bytes, int64_t{1} << 30);
  EXPECT_EQ(daemon.stage.engine, Engine::kCompact);
  EXPECT_EQ(daemon.process.assignment, Assignment::kEager);
  EXPECT_EQ(daemon.process.static_membership, StaticMembership::kNever);
  EXPECT_FALSE(daemon.accept_nonempty_output);
  EXPECT_EQ(daemon.policies.on_short_history, OnShortHistory::kContinue);
  EXPECT_EQ(daemon.policies.on_unread_deleted, OnUnreadDeleted::kFail);
  EXPECT_EQ(daemon.process.snapshots.folder, "");
  EXPECT_EQ(daemon.process.snapshots.every, absl::Minutes(5));
  EXPECT_EQ(daemon.policies.on_duplicate, Action::kDrop);
  EXPECT_EQ(daemon.policies.on_missing_id, Action::kPass);
  EXPECT_EQ(daemon.policies.on_malformed, Action::kPass);
  EXPECT_EQ(daemon.policies.on_suspicious_id, Action::kDrop);
  EXPECT_EQ(daemon.max_future, absl::Hours(1));
  EXPECT_EQ(daemon.policies.on_undeliverable, Action::kDrop);
  EXPECT_EQ(daemon.policies.on_unreadable, Action::kFail);
  EXPECT_EQ(daemon.divert, "");
  EXPECT_EQ(daemon.scope, Scope::kPartition);
  EXPECT_TRUE(daemon.counters.empty());
  EXPECT_EQ(daemon.policies.on_uncountable, Action::kPass);
  EXPECT_TRUE(daemon.process.properties.empty());
  EXPECT_EQ(config->http, "127.0.0.1:9464");
}

void ExpectEverySetting(const absl::StatusOr<RunConfig>& config) {
  ASSERT_OK(config);
  const DaemonOptions& daemon = config->daemon;
  EXPECT_EQ(daemon.process.brokers, "a:1,b:2");
  EXPECT_EQ(daemon.input, "in.x");
  EXPECT_EQ(daemon.output, "out_x");
  EXPECT_EQ(daemon.record.id.ToString(), "json:/client+header:seq");
  EXPECT_EQ(daemon.process.group, "g");
  EXPECT_EQ(daemon.process.instance, "i-1");
  EXPECT_EQ(daemon.start, Start::kLatest);
  EXPECT_EQ(daemon.process.delivery, Delivery::kAtLeastOnce);
  EXPECT_EQ(daemon.process.lanes, 3);
  EXPECT_EQ(daemon.process.commit_interval, absl::Milliseconds(250));
  EXPECT_EQ(daemon.stage.horizon, absl::Hours(7 * 24));
  EXPECT_TRUE(daemon.stage.renew);
  EXPECT_EQ(daemon.stage.target_fpp, 1e-4);
  EXPECT_EQ(daemon.stage.memory_limit_bytes, 512 << 20);
  EXPECT_EQ(daemon.stage.engine, Engine::kPublished);
  EXPECT_EQ(daemon.policies.on_duplicate, Action::kTag);
  EXPECT_EQ(daemon.policies.on_missing_id, Action::kDrop);
  EXPECT_EQ(daemon.policies.on_malformed, Action::kFail);
  EXPECT_EQ(daemon.policies.on_suspicious_id, Action::kDivert);
  EXPECT_EQ(daemon.policies.on_undeliverable, Action::kDivert);
  EXPECT_EQ(daemon.policies.on_unreadable, Action::kDrop);
  EXPECT_EQ(daemon.divert, "diverted");
  EXPECT_EQ(daemon.scope, Scope::kTopic);
  EXPECT_EQ(daemon.input_header, "source");
  EXPECT_EQ(daemon.policies.on_uncountable, Action::kDivert);
  ASSERT_EQ(daemon.counters.size(), 2u);
  const CounterOptions& likes = daemon.counters[0];
  EXPECT_EQ(likes.name, "likes");
  EXPECT_EQ(likes.output, "likes-by-page");
  EXPECT_EQ(likes.mode, CounterMode::kDelta);
  EXPECT_EQ(likes.spec.key.ToString(), "json:/page");
  EXPECT_FALSE(likes.spec.delta);
  ASSERT_TRUE(likes.spec.when);
  EXPECT_EQ(likes.spec.when->field.ToString(), "json:/type");
  EXPECT_EQ(likes.spec.when->text, "like");
  EXPECT_EQ(daemon.counters[1].name, "money");
  EXPECT_EQ(daemon.counters[1].spec.delta->ToString(), "json:/amount");
  EXPECT_FALSE(daemon.counters[1].spec.when);
  EXPECT_EQ(daemon.process.assignment, Assignment::kCooperative);
  EXPECT_EQ(daemon.process.static_membership, StaticMembership::kAlways);
  EXPECT_TRUE(daemon.accept_nonempty_output);
  EXPECT_EQ(daemon.policies.on_short_history, OnShortHistory::kFail);
  EXPECT_EQ(daemon.policies.on_unread_deleted, OnUnreadDeleted::kContinue);
  EXPECT_EQ(daemon.process.snapshots.folder, "/var/lib/lethe");
  EXPECT_EQ(daemon.process.snapshots.every, absl::Minutes(10));
  EXPECT_EQ(config->http, "[::1]:0");
  EXPECT_FALSE(config->shows_counter_keys());
  EXPECT_FALSE(config->metrics_per_partition);
  EXPECT_EQ(config->log.level, LogLevel::kWarning);
  EXPECT_EQ(config->log.format, LogFormat::kJson);
  EXPECT_EQ(daemon.process.properties,
            (std::vector<Property>{{"security.protocol", "SSL"}, {"linger.ms", "5"}, {"client.rack", ""}}));
}

TEST(Config, EveryKeyOfTheFileArrives) {
  ExpectEverySetting(FromFile(R"(
brokers: a:1,b:2
input: in.x
output: out_x
id: json:/client+header:seq
group: g
instance: i-1
start: latest
accept_nonempty_output: true
delivery: at_least_once
lanes: 3
commit_interval: 250ms
horizon: 7d
renew: true
max_future: 5m
fpp: 1e-4
memory: 512MiB
engine: published
assignment: cooperative
static_membership: true
on_short_history: fail
on_unread_deleted: continue
on_duplicate: tag
on_missing_id: drop
on_malformed: fail
on_suspicious_id: divert
on_undeliverable: divert
on_unreadable: drop
on_uncountable: divert
divert: diverted
scope: topic
input_header: source
snapshots:
  to: folder:/var/lib/lethe
  every: 10m
counters:
  - name: likes
    key: json:/page
    when: json:/type
    equals: like
    output: likes-by-page
    delta: 1
  - {name: money, key: key, delta: json:/amount, output: money-by-key}
http: '[::1]:0'
http_counters: false
metrics: topic
log:
  level: warning
  format: json
kafka:
  security.protocol: SSL
  linger.ms: 5
  client.rack: ''
)"));
}

TEST(Config, EveryFlagArrives) {
  RunFlags flags = Flags({{"brokers", "a:1,b:2"},
                          {"input", "in.x"},
                          {"output", "out_x"},
                          {"id", "json:/client+header:seq"},
                          {"group", "g"},
                          {"instance", "i-1"},
                          {"start", "latest"},
                          {"accept_nonempty_output", "true"},
                          {"delivery", "at_least_once"},
                          {"lanes", "3"},
                          {"commit_interval", "250ms"},
                          {"horizon", "7d"},
                          {"renew", "true"},
                          {"max_future", "5m"},
                          {"fpp", "1e-4"},
                          {"memory", "512MiB"},
                          {"engine", "published"},
                          {"assignment", "cooperative"},
                          {"static_membership", "true"},
                          {"on_short_history", "fail"},
                          {"on_unread_deleted", "continue"},
                          {"snapshots.to", "folder:/var/lib/lethe"},
                          {"snapshots.every", "10m"},
                          {"on_duplicate", "tag"},
                          {"on_missing_id", "drop"},
                          {"on_malformed", "fail"},
                          {"on_suspicious_id", "divert"},
                          {"on_undeliverable", "divert"},
                          {"on_unreadable", "drop"},
                          {"on_uncountable", "divert"},
                          {"divert", "diverted"},
                          {"scope", "topic"},
                          {"input_header", "source"},
                          {"http", "[::1]:0"},
                          {"http_counters", "false"},
                          {"metrics", "topic"},
                          {"log.level", "warning"},
                          {"log.format", "json"}},
                         {"security.protocol=SSL", "linger.ms=5", "client.rack="});
  // TheSchemaRegistry tests those of its section, of which some exclude others; TheSecretOfSnapshots tests
  // it.
  EXPECT_EQ(flags.values.size() + 7, RunSettings().size()) << "a setting is not tested";
  flags.exit_at_end = true;
  flags.counters = {"name=likes,key=json:/page,when=json:/type,equals=like,output=likes-by-page",
                    "name=money,key=key,delta=json:/amount,output=money-by-key"};
  const absl::StatusOr<RunConfig> config = MakeRunConfig(std::nullopt, flags);
  ExpectEverySetting(config);
  EXPECT_TRUE(config->daemon.process.exit_at_end);
}

TEST(Config, TheFingerprintIsThatOfWhatHolds) {
  const auto fingerprint = [](const std::string& more) {
    const absl::StatusOr<RunConfig> config = FromFile(absl::StrCat(kRequired, more));
    EXPECT_OK(config);
    return config.ok() ? config->fingerprint : "";
  };
  const std::string plain = fingerprint("");
  EXPECT_EQ(plain.size(), 16u);
  // A default that is written, a name of one's own, another secret.
  for (const char* same : {"horizon: 24h\n", "instance: a\n", "http: 127.0.0.1:1\n"}) {
    EXPECT_EQ(fingerprint(same), plain) << same;
  }
  EXPECT_EQ(fingerprint("kafka:\n  sasl.password: a\n"), fingerprint("kafka:\n  sasl.password: b\n"));
  for (const char* other : {"horizon: 25h\n", "lanes: 2\n", "kafka:\n  linger.ms: 1\n",
                            "counters:\n  - {name: a, key: key, output: x}\n"}) {
    EXPECT_NE(fingerprint(other), plain) << other;
  }
}

TEST(Config, ACounterOnTheCommandLineWinsOverThatOfItsName) {
  RunFlags flags;
  flags.counters = {"name=b,key=value,output=z"};
  const auto config =
      FromFile(absl::StrCat(kRequired,
                            "counters:\n  - {name: a, key: key, output: x}\n"
                            "  - {name: b, key: key, delta: json:/n, output: y, mode: total}\n"),
               flags);
  ASSERT_OK(config);
  ASSERT_EQ(config->daemon.counters.size(), 2u);
  EXPECT_EQ(config->daemon.counters[0].output, "x");
  EXPECT_EQ(config->daemon.counters[1].output, "z");
  EXPECT_EQ(config->daemon.counters[1].mode, CounterMode::kDelta);
  EXPECT_FALSE(config->daemon.counters[1].spec.delta);
}

TEST(Config, ACounterFlagIsRefusedWithWhatIsExpected) {
  for (const char* bad : {"likes", "name", "name=a,kye=key", "name=a,key=key,key=key,output=x",
                          "name=a,key=key", "name=a,key=key,output=x,when=key"}) {
    RunFlags flags = RequiredFlags();
    flags.counters = {bad};
    const auto config = MakeRunConfig(std::nullopt, flags);
    EXPECT_THAT(config.status(), StatusIs(absl::StatusCode::kInvalidArgument, StartsWith("--counter: ")))
        << bad;
  }
  RunFlags secret = RequiredFlags();
  secret.counters = {"name=a,key=key,output=x,mode=total,store=redis://h,store_password=hush"};
  const auto refused = MakeRunConfig(std::nullopt, secret);
  EXPECT_THAT(refused.status().message(), HasSubstr("${file:PATH}"));
  EXPECT_THAT(refused.status().message(), Not(HasSubstr("hush")));
  RunFlags many = RequiredFlags();
  for (int i = 0; i < 17; ++i) many.counters.push_back(absl::StrCat("name=", i, ",key=key,output=o", i));
  EXPECT_THAT(MakeRunConfig(std::nullopt, many).status().message(), HasSubstr("at most 16 counters"));
}

// Where an instance is named, a process that crashed takes its own place in the group again.
TEST(Config, StaticMembershipFollowsTheInstanceUnlessItIsSet) {
  const auto membership = [](const std::string& more) {
    std::vector<EffectiveValue> effective;
    const auto config =
        MakeRunConfig(ConfigText{"lethe.yaml", absl::StrCat(kRequired, more)}, RunFlags{}, &effective);
    EXPECT_OK(config);
    const auto value = std::find_if(effective.begin(), effective.end(),
                                    [](const auto& each) { return each.key == "static_membership"; });
    return std::make_pair(config->daemon.process.static_membership, value->text);
  };
  EXPECT_EQ(membership(""), std::make_pair(StaticMembership::kNever, std::string("false")));
  EXPECT_EQ(membership("instance: a\n"), std::make_pair(StaticMembership::kAfterCrash, std::string("crash")));
  EXPECT_EQ(membership("static_membership: crash\n"),
            std::make_pair(StaticMembership::kAfterCrash, std::string("crash")));
  EXPECT_EQ(membership("instance: a\nstatic_membership: false\n"),
            std::make_pair(StaticMembership::kNever, std::string("false")));
  EXPECT_EQ(membership("instance: a\nstatic_membership: true\n"),
            std::make_pair(StaticMembership::kAlways, std::string("true")));
}

TEST(Config, TheTableOfSettingsTellsTheTruth) {
  const RunConfig defaults;
  for (const Setting<RunConfig>& setting : RunSettings()) {
    SCOPED_TRACE(std::string(setting.key));
    RunConfig config;
    // One that names a file is read before it is set.
    EXPECT_TRUE(absl::StartsWith(setting.example, "${") || setting.set(setting.example, config).ok());
    EXPECT_EQ(setting.required && !setting.fallback.empty(), false);
    // Those depend on the input, on the host and its memory limit, and on other keys.
    if (setting.fallback.empty() || setting.key == "group" || setting.key == "instance" ||
        setting.key == "max_future" || setting.key == "memory" || setting.key == "static_membership" ||
        setting.key == "http_counters" || setting.key == "on_undeliverable") {
      continue;
    }
    config = RunConfig();
    EXPECT_OK(setting.set(setting.fallback, config));
    EXPECT_EQ(config.http, defaults.http);
    EXPECT_EQ(config.metrics_per_partition, defaults.metrics_per_partition);
    EXPECT_EQ(config.log.level, defaults.log.level);
    EXPECT_EQ(config.log.format, defaults.log.format);
    EXPECT_EQ(config.daemon.start, defaults.daemon.start);
    EXPECT_EQ(config.daemon.process.delivery, defaults.daemon.process.delivery);
    EXPECT_EQ(config.daemon.process.lanes, defaults.daemon.process.lanes);
    EXPECT_EQ(config.daemon.scope, defaults.daemon.scope);
    EXPECT_EQ(config.daemon.policies.on_duplicate, defaults.daemon.policies.on_duplicate);
    EXPECT_EQ(config.daemon.policies.on_missing_id, defaults.daemon.policies.on_missing_id);
    EXPECT_EQ(config.daemon.policies.on_malformed, defaults.daemon.policies.on_malformed);
    EXPECT_EQ(config.daemon.policies.on_suspicious_id, defaults.daemon.policies.on_suspicious_id);
    EXPECT_EQ(config.daemon.policies.on_undeliverable, defaults.daemon.policies.on_undeliverable);
    EXPECT_EQ(config.daemon.policies.on_unreadable, defaults.daemon.policies.on_unreadable);
    EXPECT_EQ(config.daemon.process.commit_interval, defaults.daemon.process.commit_interval);
    EXPECT_EQ(config.daemon.stage.horizon, defaults.daemon.stage.horizon);
    EXPECT_EQ(config.daemon.max_future, defaults.daemon.max_future);
    EXPECT_EQ(config.daemon.stage.target_fpp, defaults.daemon.stage.target_fpp);
    EXPECT_EQ(config.daemon.stage.memory_limit_bytes, defaults.daemon.stage.memory_limit_bytes);
    EXPECT_EQ(config.daemon.stage.engine, defaults.daemon.stage.engine);
    EXPECT_EQ(config.daemon.process.assignment, defaults.daemon.process.assignment);
    EXPECT_EQ(config.daemon.policies.on_short_history, defaults.daemon.policies.on_short_history);
    EXPECT_EQ(config.daemon.policies.on_unread_deleted, defaults.daemon.policies.on_unread_deleted);
    EXPECT_EQ(config.daemon.process.snapshots.folder, defaults.daemon.process.snapshots.folder);
    EXPECT_EQ(config.daemon.process.snapshots.every, defaults.daemon.process.snapshots.every);
  }
}

TEST(Config, AFlagWins) {
  const absl::StatusOr<RunConfig> config =
      FromFile(absl::StrCat(kRequired, "horizon: 1h\nkafka:\n  linger.ms: 5\n  compression.codec: lz4\n"),
               Flags({{"input", "other"}, {"horizon", "2h"}}, {"linger.ms=7", "client.rack=c=d"}));
  ASSERT_OK(config);
  EXPECT_EQ(config->daemon.input, "other");
  EXPECT_EQ(config->daemon.process.group, "lethe-other");
  EXPECT_EQ(config->daemon.output, "out");
  EXPECT_EQ(config->daemon.stage.horizon, absl::Hours(2));
  EXPECT_EQ(
      config->daemon.process.properties,
      (std::vector<Property>{{"linger.ms", "7"}, {"compression.codec", "lz4"}, {"client.rack", "c=d"}}));
}

TEST(Config, BadFlagsAreNamed) {
  RunFlags flags = RequiredFlags();
  flags.values.emplace_back("commit_interval", "100");
  EXPECT_EQ(MakeRunConfig(std::nullopt, flags).status().message(),
            "--commit-interval: \"100\" is not valid: expected a duration with a unit (ms, s, m, h, d): say "
            "100h if "
            "hours are meant");
  EXPECT_EQ(MakeRunConfig(std::nullopt, Flags({{"input", "in"}, {"id", "key"}})).status().message(),
            "missing --brokers, for example localhost:9092; --output, for example orders-unique");
  EXPECT_EQ(FromFile(kRequired, Flags({{"output", "in"}})).status().message(),
            "--output: \"in\" is also the input; expected another topic");
  flags = RequiredFlags();
  for (const std::string property : {"noequals", "=value", ""}) {
    flags.kafka = {property};
    EXPECT_EQ(MakeRunConfig(std::nullopt, flags).status().message(),
              "--kafka: expected NAME=VALUE, such as security.protocol=SSL");
  }
  flags.kafka = {"sasl.pasword=hunter2"};
  EXPECT_EQ(MakeRunConfig(std::nullopt, flags).status().message(),
            "--kafka sasl.pasword: librdkafka has no property sasl.pasword; did you mean sasl.password?");
  flags.kafka = {"linger.ms=1", "client.rack=2", "linger.ms=1"};
  EXPECT_EQ(MakeRunConfig(std::nullopt, flags).status().message(), "--kafka linger.ms: given twice");
}

TEST(Config, FixedPropertiesAreRefusedWithTheReason) {
  for (const kafka::FixedProperty& fixed : kafka::FixedProperties()) {
    const std::string name(fixed.name);
    EXPECT_EQ(FromFile(absl::StrCat(kRequired, "kafka:\n  ", name, ": x\n")).status().message(),
              absl::StrCat("lethe.yaml:6: kafka.", name, ": this property cannot be set: ", fixed.reason));
    RunFlags flags = RequiredFlags();
    flags.kafka = {name + "=x"};
    EXPECT_EQ(MakeRunConfig(std::nullopt, flags).status().message(),
              absl::StrCat("--kafka ", name, ": this property cannot be set: ", fixed.reason));
  }
  for (const char* name :
       {"isolation.level", "enable.auto.commit", "enable.auto.offset.store", "auto.offset.reset", "group.id",
        "transactional.id", "enable.idempotence", "acks", "enable.partition.eof", "bootstrap.servers",
        "partition.assignment.strategy", "group.protocol", "group.instance.id"}) {
    EXPECT_TRUE(kafka::WhyFixed(name).has_value()) << name;
  }
  EXPECT_FALSE(kafka::WhyFixed("sasl.password").has_value());
}

// Those names of librdkafka that are given instead exist.
TEST(Config, PropertiesOfJavasClientsAreRefusedWithLibrdkafkas) {
  const std::pair<const char*, const char*> instead[] = {
      {"ssl.truststore.certificates", "ssl.ca.pem"},
      {"ssl.keystore.certificate.chain", "ssl.certificate.pem"},
      {"ssl.keystore.key", "ssl.key.pem"},
      {"fetch.max.wait.ms", "fetch.wait.max.ms"},
      {"max.request.size", "message.max.bytes"},
      {"buffer.memory", "queue.buffering.max.kbytes"},
      {"send.buffer.bytes", "socket.send.buffer.bytes"},
      {"receive.buffer.bytes", "socket.receive.buffer.bytes"},
      {"default.api.timeout.ms", "socket.timeout.ms"},
      {"compression.zstd.level", "compression.level"},
      {"max.poll.records", "queued.min.messages"},
      {"socket.connection.setup.timeout.max.ms", "socket.connection.setup.timeout.ms"}};
  for (const auto& [javas, ours] : instead) {
    const absl::Status status = FromFile(absl::StrCat(kRequired, "kafka:\n  ", javas, ": 1\n")).status();
    EXPECT_THAT(status.message(), HasSubstr("Java clients")) << javas;
    EXPECT_THAT(status.message(), HasSubstr(ours)) << javas;
    EXPECT_TRUE(kafka::IsProperty(ours)) << ours;
  }
  for (const char* javas : {"sasl.jaas.config", "key.deserializer", "partitioner.class", "ssl.protocol"}) {
    EXPECT_THAT(FromFile(absl::StrCat(kRequired, "kafka:\n  ", javas, ": 1\n")).status().message(),
                HasSubstr("Java clients"))
        << javas;
  }
}

TEST(Config, VariablesOfTheEnvironmentAreExpanded) {
  setenv("LETHE_TEST_SET", "x-y", 1);
  setenv("LETHE_TEST_EMPTY", "", 1);
  unsetenv("LETHE_TEST_UNSET");
  const std::pair<std::string, std::string> cases[] = {
      {"${LETHE_TEST_SET}", "x-y"},
      {"a-${LETHE_TEST_SET}-b-${LETHE_TEST_SET}", "a-x-y-b-x-y"},
      {"${LETHE_TEST_UNSET:-z}", "z"},
      {"a${LETHE_TEST_UNSET:-}b", "ab"},
      {"${LETHE_TEST_EMPTY:-z}", "z"},
      {"a${LETHE_TEST_EMPTY}b", "ab"},
      {"${LETHE_TEST_SET:-z}", "x-y"},
      {"$$", "$"},
      {"$${LETHE_TEST_SET}", "${LETHE_TEST_SET}"},
      {"$a$", "$a$"},
      {"plain", "plain"},
  };
  for (const auto& [text, expanded] : cases) {
    const absl::StatusOr<RunConfig> config = FromFile(absl::StrCat(kRequired, "group: '", text, "'\n"));
    ASSERT_OK(config);
    EXPECT_EQ(config->daemon.process.group, expanded) << text;
  }
  // A value is a value, whatever is in it: it adds no keys, and is not expanded again.
  setenv("LETHE_TEST_SET", "${LETHE_TEST_EMPTY}\ninput: other", 1);
  const absl::StatusOr<RunConfig> config = FromFile(absl::StrCat(kRequired, "group: ${LETHE_TEST_SET}\n"));
  ASSERT_OK(config);
  EXPECT_EQ(config->daemon.process.group, "${LETHE_TEST_EMPTY}\ninput: other");
  EXPECT_EQ(config->daemon.input, "in");
}

TEST(Config, NoErrorShowsASecret) {
  setenv("LETHE_TEST_SECRET", kSecret, 1);
  const std::string yaml[] = {
      "sasl.password: hunter2\n",
      "kafka: hunter2\n",
      "kafka: [hunter2]\n",
      "kafka:\n  sasl.password: [hunter2]\n",
      "kafka:\n  sasl.password: {a: hunter2}\n",
      "kafka:\n  sasl.password: *hunter2\n",
      "kafka:\n  sasl.password: &hunter2\n",
      "kafka:\n  sasl.password: \"\\hunter2\"\n",
      "kafka:\n  sasl.password: \"hunter2\n",
      "kafka:\n  sasl.password: !hunter2 !x y\n",
      "kafka:\n  sasl.password: %hunter2\n",
      "kafka:\n  sasl.password: @hunter2\n",
      "kafka:\n  sasl.password: a: hunter2\n",
      "kafka:\n  sasl.password: hunter2\n  sasl.password: hunter2\n",
      "kafka:\n  sasl.password: ${LETHE_TEST_UNSET}hunter2\n",
      "kafka:\n  sasl.password: ${hunter 2:-hunter2}\n",
      "kafka:\n  sasl.password: hunter2${\n",
      "kafka:\n  group.id: ${LETHE_TEST_SECRET}\n",
      "kafka:\n  ssl.key.pem: hunter2\nhorizon: x\n",
  };
  for (const std::string& tail : yaml) {
    const absl::StatusOr<RunConfig> config = FromFile(kRequired + tail);
    ASSERT_FALSE(config.ok()) << tail;
    EXPECT_THAT(config.status().message(), Not(HasSubstr(kSecret)));
  }
  for (const std::string property : {"=hunter2", "hunter2", "group.id=hunter2"}) {
    RunFlags flags = RequiredFlags();
    flags.kafka = {property};
    const absl::StatusOr<RunConfig> config = MakeRunConfig(std::nullopt, flags);
    ASSERT_FALSE(config.ok());
    EXPECT_THAT(config.status().message(), Not(HasSubstr(kSecret)));
  }
}

TEST(Config, SecretsArriveAsTheyAre) {
  setenv("LETHE_TEST_SECRET", "p$a${b}: #'\"", 1);
  const absl::StatusOr<RunConfig> config =
      FromFile(absl::StrCat(kRequired, "kafka:\n  sasl.password: ${LETHE_TEST_SECRET}\n"));
  ASSERT_OK(config);
  EXPECT_EQ(config->daemon.process.properties, (std::vector<Property>{{"sasl.password", "p$a${b}: #'\""}}));
}

TEST(Config, TheSecretOfSnapshots) {
  constexpr absl::string_view kDigits = "0123456789abcdef00000000000000Ff";
  setenv("LETHE_TEST_SECRET", std::string(kDigits).c_str(), 1);
  const std::string yaml =
      absl::StrCat(kRequired, "snapshots: {to: 'topic:s', secret: '${LETHE_TEST_SECRET}'}\n");
  std::vector<EffectiveValue> effective;
  const auto config = MakeRunConfig(ConfigText{"lethe.yaml", yaml}, {}, &effective);
  ASSERT_OK(config);
  EXPECT_EQ(config->daemon.stage.snapshot_secret.low, 0x0123456789abcdef);
  EXPECT_EQ(config->daemon.stage.snapshot_secret.high, 0xff);
  EXPECT_THAT(EffectiveYaml(effective), Not(HasSubstr(kDigits.substr(0, 16))));
  EXPECT_EQ(config->fingerprint,
            FromFile(absl::StrCat(kRequired, "snapshots: {to: 'topic:s'}\n"))->fingerprint)
      << "a fingerprint tells nothing of a secret";
  for (const absl::string_view wrong : {absl::string_view("hunter2"), kDigits.substr(1),
                                        absl::string_view("00000000000000000000000000000000"),
                                        absl::string_view("0x23456789abcdef00000000000000ff")}) {
    const auto refused = FromFile(absl::StrCat(kRequired, "snapshots: {secret: '", wrong, "'}\n"));
    EXPECT_TRUE(absl::IsInvalidArgument(refused.status())) << wrong;
    EXPECT_THAT(refused.status().message(), Not(HasSubstr(wrong)));
  }
  RunFlags flags = RequiredFlags();
  flags.values.emplace_back("snapshots.secret", kDigits);
  EXPECT_TRUE(absl::IsInvalidArgument(MakeRunConfig(std::nullopt, flags).status())) << "on the command line";
}

TEST(Config, TheSchemaRegistry) {
  setenv("LETHE_TEST_SECRET", kSecret, 1);
  const std::string yaml = absl::StrCat(kRequired,
                                        "snapshots: {to: 'folder:/snapshots'}\n"
                                        "schema_registry:\n"
                                        "  url: https://a:8081/,https://b/apis/ccompat/v7\n"
                                        "  user: lethe\n"
                                        "  password: ${LETHE_TEST_SECRET}\n"
                                        "  ca_file: /ca.pem\n"
                                        "  timeout: 3s\n");
  std::vector<EffectiveValue> effective;
  const auto config = MakeRunConfig(ConfigText{"lethe.yaml", yaml}, {}, &effective);
  ASSERT_OK(config);
  const registry::RegistryOptions& registry = config->schema_registry;
  EXPECT_EQ(registry.urls, (std::vector<std::string>{"https://a:8081", "https://b/apis/ccompat/v7"}));
  EXPECT_EQ(registry.user, "lethe");
  EXPECT_EQ(registry.password, kSecret);
  EXPECT_EQ(registry.ca_file, "/ca.pem");
  EXPECT_EQ(registry.timeout, absl::Seconds(3));
  EXPECT_EQ(registry.folder, "/snapshots");
  EXPECT_THAT(config->warning, HasSubstr("no field needs a schema"));
  for (const EffectiveValue& value : effective) EXPECT_NE(value.text, kSecret) << value.key;

  RunFlags flags = RequiredFlags();
  flags.values.emplace_back("schema_registry.url", "http://a");
  flags.values.emplace_back("schema_registry.token", "${LETHE_TEST_SECRET}");
  const auto by_flags = MakeRunConfig(std::nullopt, flags);
  ASSERT_OK(by_flags);
  EXPECT_EQ(by_flags->schema_registry.token, kSecret);
  EXPECT_EQ(by_flags->fingerprint, [&] {
    setenv("LETHE_TEST_SECRET", "another", 1);
    return MakeRunConfig(std::nullopt, flags)->fingerprint;
  }()) << "a fingerprint tells nothing of a secret";
  flags.values.back().second = kSecret;
  const auto exposed = MakeRunConfig(std::nullopt, flags);
  EXPECT_TRUE(absl::IsInvalidArgument(exposed.status()));
  EXPECT_THAT(exposed.status().message(), Not(HasSubstr(kSecret)));

  for (const char* wrong :
       {"{user: a, password: b}", "{url: 'http://a', user: a}", "{ca_file: /x}",
        "{url: 'http://a', password: b}", "{url: 'http://u:hunter2@a'}",
        "{url: 'http://a', user: a, password: b, token: c}", "{url: 'http://a', timeout: 1ms}"}) {
    const auto refused = FromFile(absl::StrCat(kRequired, "schema_registry: ", wrong, "\n"));
    EXPECT_TRUE(absl::IsInvalidArgument(refused.status())) << wrong;
    EXPECT_THAT(refused.status().message(), Not(HasSubstr(kSecret)));
  }
}

// 32 fields of the id, 3 of each of 16 counters.
TEST(Config, MoreFieldsThanOneValueMayHaveAreRefused) {
  const auto with = [](int counters) {
    std::string yaml = "brokers: b:9092\ninput: in\noutput: out\nid: json:/0";
    for (int i = 1; i < 32; ++i) absl::StrAppend(&yaml, "+json:/", i);
    absl::StrAppend(&yaml, "\ncounters:\n");
    for (int i = 0; i < counters; ++i) {
      absl::StrAppend(&yaml, "  - {name: c", i, ", key: json:/k", i, ", delta: json:/d", i, ", when: json:/w",
                      i, ", equals: x, output: o", i, "}\n");
    }
    return FromFile(yaml).status();
  };
  EXPECT_OK(with(10));
  EXPECT_TRUE(absl::IsInvalidArgument(with(11)));
  EXPECT_THAT(with(11).message(), HasSubstr("65 fields"));
}

TEST(Config, ASecretOnTheCommandLineIsWarnedOf) {
  const auto warning = [](const std::string& property) {
    RunFlags flags = RequiredFlags();
    flags.kafka = {property};
    const absl::StatusOr<RunConfig> config = MakeRunConfig(std::nullopt, flags);
    EXPECT_OK(config);
    return config.ok() ? config->warning : "";
  };
  EXPECT_THAT(warning("sasl.password=hunter2"), HasSubstr("sasl.password"));
  EXPECT_THAT(warning("sasl.password=hunter2"), Not(HasSubstr("hunter2")));
  EXPECT_FALSE(warning("ssl.key.password=hunter2").empty());
  EXPECT_EQ(warning("ssl.key.location=/etc/lethe/key.pem"), "");
  EXPECT_EQ(warning("security.protocol=SSL"), "");
  EXPECT_EQ(FromFile(absl::StrCat(kRequired, "kafka:\n  sasl.password: hunter2\n"))->warning, "");
}

// Where there is no file, too: `lethe survey` needs the password of the brokers.
TEST(Config, ThePropertiesOfFlagsHaveReferences) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / absl::StrCat("lethe-flag-test-", getpid());
  std::ofstream(path) << "hunter2\n";
  setenv("LETHE_TEST_USER", "lethe", 1);
  const std::string password = absl::StrCat("sasl.password=${file:", path.string(), "}");
  RunFlags flags = RequiredFlags();
  flags.kafka = {"sasl.username=${LETHE_TEST_USER}", password, "client.rack=a=$$b"};
  std::vector<EffectiveValue> effective;
  const auto config = MakeRunConfig(std::nullopt, flags, &effective);
  ASSERT_OK(config);
  EXPECT_EQ(config->daemon.process.properties,
            (std::vector<Property>{
                {"sasl.username", "lethe"}, {"sasl.password", "hunter2"}, {"client.rack", "a=$b"}}));
  EXPECT_EQ(config->warning, "");
  for (const EffectiveValue& value : effective) EXPECT_NE(value.text, "hunter2") << value.key;

  const Setting<SurveyCommandOptions>* kafka = nullptr;
  for (const auto& setting : SurveySettings()) kafka = setting.key == "kafka" ? &setting : kafka;
  ASSERT_NE(kafka, nullptr);
  SurveyCommandOptions survey;
  ASSERT_OK(kafka->set(password, survey));
  ASSERT_OK(kafka->set("ssl.key.password=literal", survey));
  EXPECT_EQ(survey.properties.values.front(), (Property{"sasl.password", "hunter2"}));
  EXPECT_EQ(survey.properties.exposed, std::vector<std::string>{"ssl.key.password"});

  unsetenv("LETHE_TEST_USER");
  EXPECT_EQ(MakeRunConfig(std::nullopt, flags).status().message(),
            "--kafka sasl.username: the environment variable LETHE_TEST_USER is not set; set it, or write "
            "${LETHE_TEST_USER:-default}");
  std::filesystem::remove(path);
}

TEST(Config, ValuesComeFromFiles) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / absl::StrCat("lethe-value-test-", getpid());
  std::filesystem::create_directory(folder);
  const std::string path = folder / "password";
  const auto config = [&] {
    return FromFile(absl::StrCat(kRequired, "kafka:\n  sasl.password: ${file:", path, "}\n"));
  };
  const std::string place = "lethe.yaml:6: kafka.sasl.password: ";
  EXPECT_EQ(config().status().message(),
            absl::StrCat(place, path, ": the value cannot be read: No such file or directory"));
  for (const auto& [content, value] : std::vector<std::pair<std::string, std::string>>{
           {"hunter2", "hunter2"}, {"hunter2\n", "hunter2"}, {"hunter2\r\n", "hunter2"}, {"a\n\n", "a\n"}}) {
    std::ofstream(path) << content;
    ASSERT_OK(config());
    EXPECT_EQ(config()->daemon.process.properties, (std::vector<Property>{{"sasl.password", value}}));
  }
  // As systemd names the folder of a unit's credentials.
  setenv("LETHE_TEST_FOLDER", folder.c_str(), 1);
  std::ofstream(path) << "hunter2";
  const auto nested = FromFile(
      absl::StrCat(kRequired, "kafka:\n  sasl.password: a${file:${LETHE_TEST_FOLDER}/password}${NONE:-b}\n"));
  ASSERT_OK(nested);
  EXPECT_EQ(nested->daemon.process.properties, (std::vector<Property>{{"sasl.password", "ahunter2b"}}));
  unsetenv("LETHE_TEST_FOLDER");
  EXPECT_EQ(
      FromFile(absl::StrCat(kRequired, "kafka:\n  sasl.password: ${file:${LETHE_TEST_FOLDER}/password}\n"))
          .status()
          .message(),
      absl::StrCat(place,
                   "the environment variable LETHE_TEST_FOLDER is not set; set it, or write "
                   "${LETHE_TEST_FOLDER:-default}"));
  std::ofstream(path) << "\n";
  EXPECT_EQ(config().status().message(), absl::StrCat(place, path, ": the file is empty"));
  std::ofstream(path) << std::string((1 << 16) + 1, 'x');
  EXPECT_EQ(config().status().message(),
            absl::StrCat(place, path, ": larger than 64 KiB, which no value is"));
  std::filesystem::remove_all(folder);
}

// Who may write the configuration, or a part of it, can neither stop the program in an open() nor keep it
// busy.
TEST(Config, ValuesComeFromRegularFilesAlone) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / absl::StrCat("lethe-fifo-test-", getpid());
  std::filesystem::create_directory(folder);
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const std::string link = folder / "link";
  std::filesystem::create_symlink("/dev/zero", link);
  for (const std::string& path : {pipe, link, std::string("/dev/zero"), folder.string()}) {
    const auto config = FromFile(absl::StrCat(kRequired, "kafka:\n  sasl.password: ${file:", path, "}\n"));
    EXPECT_THAT(config.status(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(path)));
  }
  // As in a Kubernetes volume.
  std::ofstream(folder / "file") << "hunter2";
  std::filesystem::remove(link);
  std::filesystem::create_symlink("file", link);
  EXPECT_OK(FromFile(absl::StrCat(kRequired, "kafka:\n  sasl.password: ${file:", link, "}\n")));
  std::filesystem::remove_all(folder);
}

TEST(Config, ReferencesAreBounded) {
  const auto code = [](const std::string& value) {
    return FromFile(absl::StrCat(kRequired, "kafka:\n  sasl.password: ", value, "\n")).status().code();
  };
  constexpr int kLevels = 100'000;
  std::string nested;
  for (int i = 0; i < kLevels; ++i) nested += "${file:";
  nested += std::string(kLevels, '}');
  EXPECT_EQ(code(nested), absl::StatusCode::kInvalidArgument);

  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / absl::StrCat("lethe-repeat-test-", getpid());
  std::ofstream(path) << std::string(1 << 10, 'x');
  const std::string once = absl::StrCat("${file:", path.string(), "}");
  std::string many;
  for (int i = 0; i < 64; ++i) many += once;
  EXPECT_EQ(code(many), absl::StatusCode::kOk);
  EXPECT_EQ(code(many + once), absl::StatusCode::kInvalidArgument);
  std::filesystem::remove(path);
}

TEST(Config, AnyEndOfTheFileIsFine) {
  for (const std::string end :
       {"", "\n", "...", "...\n", "# the end", "\r\n", "http: |-\n  off", "http: off"}) {
    EXPECT_OK(FromFile(absl::StrCat("---\n", kRequired, end))) << end << FromFile(kRequired + end).status();
  }
}

TEST(ReadConfigFile, SaysWhyItCannot) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / absl::StrCat("lethe-config-test-", getpid());
  std::filesystem::create_directory(folder);
  const std::string path = folder / "lethe.yaml";
  EXPECT_EQ(ReadConfigFile(path).status().message(),
            absl::StrCat(path, ": the configuration cannot be read: No such file or directory"));
  EXPECT_EQ(ReadConfigFile(folder).status().message(),
            absl::StrCat(folder.string(), ": the configuration cannot be read: Is a directory"));
  std::ofstream(path) << kRequired;
  const absl::StatusOr<ConfigText> text = ReadConfigFile(path);
  ASSERT_OK(text);
  EXPECT_EQ(text->yaml, kRequired);
  EXPECT_EQ(text->name, path);
  std::ofstream(path) << std::string((1 << 20) + 1, '#');
  EXPECT_EQ(ReadConfigFile(path).status().message(),
            absl::StrCat(path, ": larger than 1 MiB, which no configuration is"));
  std::filesystem::remove_all(folder);
}

constexpr char kOfAll[] = "brokers: b:9092\ngroup: g\nid: json:/id\nhorizon: 2d\n";

absl::StatusOr<RunConfig> WithTopics(const std::string& topics, const RunFlags& flags = {}) {
  return FromFile(absl::StrCat(kOfAll, "topics:\n", topics), flags);
}

TEST(Config, ATransactionMustNotEndBeforeItsCommit) {
  const std::string file = "brokers: b:1\nid: key\ninput: a\noutput: b\ncommit_interval: 2s\n";
  EXPECT_OK(FromFile(file + "kafka:\n  transaction.timeout.ms: 2001\n"));
  const absl::Status status = FromFile(file + "kafka:\n  transaction.timeout.ms: 2000\n").status();
  EXPECT_THAT(status.message(), HasSubstr("lethe.yaml:7: kafka.transaction.timeout.ms"));
}

TEST(ConfigTopics, EachEntryHasItsOwnValuesOnTopOfThoseOfAll) {
  const absl::StatusOr<RunConfig> config = WithTopics(
      "  - {input: orders, output: orders-unique, horizon: 7d, on_duplicate: tag, snapshots: {to: "
      "topic:snaps}}\n"
      "  - input: \"^clicks\\\\.(.+)$\"\n"
      "    output: clicks-unique.$1\n"
      "    id: header:event-id\n"
      "    counters: [{name: pages, key: json:/page, output: pages.$1}]\n"
      "counters: [{name: all, key: key, output: all}]\n");
  ASSERT_OK(config);
  ASSERT_EQ(config->topics.size(), 2u);
  const DaemonOptions& orders = config->topics[0];
  EXPECT_EQ(orders.input, "orders");
  EXPECT_EQ(orders.output, "orders-unique");
  EXPECT_EQ(orders.stage.horizon, absl::Hours(7 * 24));
  EXPECT_EQ(orders.policies.on_duplicate, Action::kTag);
  EXPECT_EQ(orders.record.id.ToString(), "json:/id");
  ASSERT_EQ(orders.counters.size(), 1u);
  EXPECT_EQ(orders.counters[0].name, "all");
  const DaemonOptions& clicks = config->topics[1];
  EXPECT_EQ(clicks.input, "^clicks\\.(.+)$");
  EXPECT_EQ(clicks.output, "clicks-unique.$1");
  EXPECT_EQ(clicks.stage.horizon, absl::Hours(48));
  EXPECT_EQ(orders.process.snapshots.topic, "snaps");
  EXPECT_EQ(clicks.process.snapshots.topic, "");
  EXPECT_EQ(clicks.policies.on_duplicate, Action::kDrop);
  EXPECT_EQ(clicks.record.id.ToString(), "header:event-id");
  ASSERT_EQ(clicks.counters.size(), 1u);
  EXPECT_EQ(clicks.counters[0].output, "pages.$1");
  for (const DaemonOptions& each : config->topics) {
    EXPECT_EQ(each.process.group, "g");
    EXPECT_EQ(each.process.brokers, "b:9092");
    EXPECT_FALSE(each.process.instance.empty());
  }
}

TEST(ConfigTopics, SeveralInputsOfAnEntryAreMerged) {
  const absl::StatusOr<RunConfig> config = WithTopics(
      "  - {input: [west, east], output: all, input_header: from}\n  - {input: a, output: x, scope: "
      "topic}\n");
  ASSERT_OK(config);
  const DaemonOptions& all = config->topics.at(0);
  EXPECT_EQ(all.input, "west");
  EXPECT_EQ(all.merged, (std::vector<std::string>{"west", "east"}));
  EXPECT_EQ(all.scope, Scope::kTopic);
  EXPECT_EQ(all.input_header, "from");
  EXPECT_EQ(config->topics.at(1).merged, std::vector<std::string>());
  EXPECT_EQ(config->topics.at(1).scope, Scope::kTopic);
  const absl::StatusOr<RunConfig> one =
      FromFile("brokers: b:1\nid: key\ninput: west,east\noutput: all\n", Flags({{"input", "a,b"}}));
  ASSERT_OK(one);
  EXPECT_EQ(one->daemon.merged, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(one->daemon.process.group, "lethe-all") << "the list may change";
}

TEST(ConfigTopics, AFlagChangesWhatAllHaveInCommon) {
  const absl::StatusOr<RunConfig> config = WithTopics(
      "  - {input: a, output: x, horizon: 7d}\n  - {input: b, output: y}\n", Flags({{"horizon", "3h"}}));
  ASSERT_OK(config);
  EXPECT_EQ(config->topics.at(0).stage.horizon, absl::Hours(7 * 24));
  EXPECT_EQ(config->topics.at(1).stage.horizon, absl::Hours(3));
}

TEST(ConfigTopics, OneInputIsAListOfOne) {
  const absl::StatusOr<RunConfig> config = FromFile(kRequired);
  ASSERT_OK(config);
  ASSERT_EQ(config->topics.size(), 1u);
  EXPECT_EQ(config->topics[0].input, "in");
  EXPECT_EQ(config->topics[0].process.group, "lethe-in");
}

TEST(ConfigTopics, TheFingerprintHasThem) {
  const auto one = WithTopics("  - {input: a, output: x}\n");
  const auto other = WithTopics("  - {input: a, output: x, fpp: 1e-7}\n");
  ASSERT_OK(one);
  ASSERT_OK(other);
  EXPECT_NE(one->fingerprint, other->fingerprint);
  EXPECT_EQ(one->fingerprint, WithTopics("  - {input: a, output: x}\n")->fingerprint);
}

TEST(ConfigTopics, TheEffectiveConfigurationCanBeReadAgain) {
  std::vector<EffectiveValue> effective;
  const std::string yaml = absl::StrCat(kOfAll,
                                        "topics:\n  - {input: a, output: x, horizon: 7d}\n"
                                        "  - {input: ^b(.+), output: y$1, counters: [{name: n, key: key, "
                                        "output: n$1}, {name: m, key: key, output: m$1}]}\n");
  ASSERT_OK(MakeRunConfig(ConfigText{"lethe.yaml", yaml}, {}, &effective));
  const std::string printed = EffectiveYaml(effective);
  EXPECT_THAT(printed, HasSubstr("horizon: 7d  # lethe.yaml:6"));
  const absl::StatusOr<RunConfig> again = FromFile(printed);
  ASSERT_OK(again) << printed;
  ASSERT_EQ(again->topics.size(), 2u);
  EXPECT_EQ(again->topics[0].stage.horizon, absl::Hours(7 * 24));
  EXPECT_EQ(again->topics[1].input, "^b(.+)");
  ASSERT_EQ(again->topics[1].counters.size(), 2u);
  EXPECT_EQ(again->topics[1].counters[1].output, "m$1");
}

TEST(ConfigTopics, ARegistryThatOneOfThemNeedsIsNotCalledUnused) {
  const std::string registry = "schema_registry: {url: http://r:8081}\n";
  const auto unused = WithTopics("  - {input: a, output: x}\n  - {input: b, output: y}\n" + registry);
  const auto used =
      WithTopics("  - {input: a, output: x}\n  - {input: b, output: y, id: avro:/id}\n" + registry);
  ASSERT_OK(unused);
  ASSERT_OK(used);
  EXPECT_THAT(unused->warning, HasSubstr("no field needs a schema"));
  EXPECT_EQ(used->warning, "");
}

TEST(ConfigTopics, WhatIsWrongIsNamedWithItsPlace) {
  const std::pair<std::string, std::string> bad[] = {
      {"  - {input: a, output: x, group: h}\n", "lethe.yaml:6: topics[0].group: all topics have"},
      {"  - {input: a, output: x, kafka: {acks: 1}}\n", "lethe.yaml:6: topics[0].kafka: all topics have"},
      {"  - {input: a, output: x, horizn: 1h}\n", "topics[0].horizn: unknown key; did you mean horizon?"},
      {"  - {input: a, output: x, horizon: 1y}\n", "lethe.yaml:6: topics[0].horizon: \"1y\" is not valid"},
      {"  - {input: a, output: x}\n  - {output: y}\n", "lethe.yaml: topics[1]: missing input, for example"},
      {"  - orders\n", "lethe.yaml:6: topics[0]: expected the keys of a topic, found a single value"},
      {"  - {input: [a, [b]], output: x}\n", "topics[0].input: expected a single value, found a list"},
      {"  - {input: [a, a], output: x}\n", "topics[0].input: \"a,a\" is not valid: \"a\" comes twice"},
      {"  - {input: [a, ^b], output: x}\n", "a pattern cannot be merged with other inputs"},
      {"  - {input: [a, x], output: x}\n", "topics[0].output: \"x\" is also the input"},
      {"  - {input: [a, b], output: x, scope: partition}\n",
       "topics[0].scope: several inputs need scope: topic"},
      {"  - {input: a, output: x}\n  - {input: b, output: x}\n",
       "lethe.yaml:7: topics[1].input: b -> x: a is written"},
      {"  - {input: a, output: x}\n  - {input: b, output: a}\n  - {input: c, output: x}\n",
       "lethe.yaml:7: topics[1].input: b -> a: lethe reads a"},
      {"  - {input: ^a(.+), output: x}\n",
       "lethe.yaml:6: topics[0].input: ^a(.+) -> x: all topics of the pattern"},
      {"  - {input: a, output: x}\ninput: b\n", "lethe.yaml:7: input: with `topics` each entry has its own"},
      {"  - {input: a, output: x, topics: []}\n", "topics[0].topics: unknown key"},
      {"  - {input: a, output: x, on_duplicate: divert}\n",
       "lethe.yaml:6: topics[0].on_duplicate: divert needs a topic"},
      {"  - {input: a, output: x, counters: [{name: n}]}\n", "lethe.yaml:6: topics[0].counters[0]: missing"},
  };
  for (const auto& [topics, message] : bad) {
    const absl::StatusOr<RunConfig> config = WithTopics(topics);
    EXPECT_THAT(config.status().message(), HasSubstr(message)) << topics;
  }
  EXPECT_THAT(FromFile("brokers: b:1\nid: key\ntopics: [{input: a, output: x}]\n").status().message(),
              HasSubstr("missing group (or --group)"));
  EXPECT_THAT(FromFile("brokers: b:1\nid: key\ninput: ^a\noutput: x\n").status().message(),
              HasSubstr("lethe.yaml:3: input: a pattern of topics goes into the list `topics`"));
}

}  // namespace
}  // namespace lethe
