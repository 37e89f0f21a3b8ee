// Every key of the configuration of `lethe run`: its type, its meaning, and where it is stored.
#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "connectors/http/http_server.h"
#include "connectors/redis/redis_address.h"
#include "src/cli/config/config.h"
#include "src/cli/config/removed.h"
#include "src/cli/config/setting.h"
#include "src/cli/config/units.h"
#include "src/pipeline/options/options.h"
#include "src/reference/any_engine.h"

namespace lethe {
namespace {

constexpr absl::string_view kEngines = "compact|exact|published";

// The engines for comparisons break what the daemon promises.
absl::Status StoreKeptEngine(absl::string_view text, DaemonOptions& target) {
  const absl::StatusOr<AnyEngine> named = ParseEngine(text);
  if (named.ok() && !BrokenPromise(*named).empty()) {
    return BadValue(
        text,
        absl::StrCat(
            "it breaks the guarantees of lethe run; set compact, exact or published (lethe filter --engine ",
            text, " tries it out)"));
  }
  if (const std::string removed = RemovedText(absl::StrCat("engine: ", text)); !removed.empty()) {
    return BadValue(text, removed);
  }
  const absl::StatusOr<size_t> index = ChoiceIn(kEngines, text);
  if (!index.ok()) return BadValue(text, index.status().message());
  target.stage.engine = named->own;
  return absl::OkStatus();
}

absl::Status StoreHttp(absl::string_view text, std::string& target) {
  const absl::Status wrong = text == "off" ? absl::OkStatus() : http::HttpAddress::Parse(text).status();
  if (!wrong.ok()) return BadValue(text, absl::StrCat(wrong.message(), ", or off"));
  target = std::string(text);
  return absl::OkStatus();
}

absl::Status StoreSnapshotPlace(absl::string_view text, SnapshotOptions& target) {
  target.folder.clear();
  target.topic.clear();
  if (text == "off") return absl::OkStatus();
  absl::string_view place = text;
  if (absl::ConsumePrefix(&place, "topic:")) return StoreTopic(place, target.topic);
  if (!absl::ConsumePrefix(&place, "folder:") || place.empty()) {
    return BadValue(text, "expected folder:PATH, such as folder:/var/lib/lethe, or topic:NAME, or off");
  }
  target.folder = std::string(place);
  return absl::OkStatus();
}

// The text, which is a secret, is not shown.
absl::Status StoreSnapshotSecret(absl::string_view text, StageOptions& stage) {
  constexpr size_t kDigits = 32;
  HashKey& secret = stage.snapshot_secret;
  secret = {};
  if (text.empty()) return absl::OkStatus();
  if (text.size() != kDigits || !absl::c_all_of(text, absl::ascii_isxdigit) ||
      !absl::SimpleHexAtoi(text.substr(0, kDigits / 2), &secret.low) ||
      !absl::SimpleHexAtoi(text.substr(kDigits / 2), &secret.high) || (secret.low | secret.high) == 0) {
    return absl::InvalidArgumentError(
        "expected 32 hexadecimal digits, as `openssl rand -hex 16` prints them, not all of them 0");
  }
  return absl::OkStatus();
}

absl::Status StoreCounterName(absl::string_view text, std::string& target) {
  if (!IsTopicName(text)) return BadValue(text, "expected at most 249 letters, digits, '.', '_' or '-'");
  target = std::string(text);
  return absl::OkStatus();
}

absl::Status StoreDelta(absl::string_view text, std::optional<Field>& target) {
  if (text != "1") return StoreValue({}, text, target);
  target.reset();
  return absl::OkStatus();
}

// The text may contain a password.
absl::Status StoreStore(absl::string_view text, std::string& target) {
  if (absl::Status wrong = redis::RedisAddress::Parse(text).status(); !wrong.ok()) return wrong;
  target = std::string(text);
  return absl::OkStatus();
}

template <auto... kMembers>
using Daemon = At<&RunConfig::daemon, kMembers...>;
template <auto... kMembers>
using Process = Daemon<&DaemonOptions::process, kMembers...>;
template <auto kMember>
using Policy = Daemon<&DaemonOptions::policies, kMember>;
template <auto... kMembers>
using Counter = At<&CounterConfig::options, kMembers...>;

constexpr Setting<RunConfig> kSettings[] = {
    {"brokers", "HOST:PORT,...", "", true, "The Kafka cluster: one or more of its brokers", "localhost:9092",
     Value<Process<&ProcessOptions::brokers>>},
    {"input", "TOPIC[,TOPIC...]", "", true,
     "Input topic. Several, or a list of them, are merged: an event that comes by more than one passes once "
     "(with scope: topic)",
     "orders", By<StoreInput, Daemon<>>},
    {"input_header", "NAME", "", false, "Header of output records that names the input of the record",
     "source", Value<Daemon<&DaemonOptions::input_header>>},
    {"output", "TOPIC", "", true, "Output topic for unique records; it must exist", "orders-unique",
     By<StoreTopicForm, Daemon<&DaemonOptions::output>>},
    {"id", "FIELD[+FIELD...]", "", true,
     "Place of the id in a record: key, value, header:NAME, json:/pointer, avro:/pointer, protobuf:/name or "
     "protobuf:/3/7 (field numbers), framed.json:/pointer (JSON of a schema registry), or several joined "
     "with + (a ? behind optional ones), or the first of several: A or B; "
     "key. before a form with a pointer: in the key",
     "json:/order/id", Value<Daemon<&DaemonOptions::record, &RecordSpec::id>>},
    {"scope", "partition|topic", "partition", false,
     "Where lethe looks for copies: in the same partition (records keyed by id), or in the whole topic",
     "topic", Choice<Daemon<&DaemonOptions::scope>, Scope::kPartition, Scope::kTopic>},
    {"horizon", "DURATION", "24h", false, "How late a copy may come after the first", "24h",
     By<StoreHorizon, Daemon<&DaemonOptions::stage>>, "1ms to 36525d"},
    {"renew", "true|false", "false", false,
     "Whether a copy counts as the first: a record is unique if its id did not come for a horizon, not even "
     "as a copy",
     "true", Choice<Daemon<&DaemonOptions::stage, &StageOptions::renew>, true, false>},
    {"max_future", "DURATION", "1h; a sixteenth of a horizon below 16h", false,
     "Limit of timestamps ahead of this machine's clock; later ones count as no timestamp", "10m",
     Value<Daemon<&DaemonOptions::max_future>>, "1s to 36525d"},
    {"fpp", "NUMBER", "1e-6", false, "Share of unique events that may be taken for duplicates", "1e-6",
     By<StoreFpp, Daemon<&DaemonOptions::stage>>, "1e-15 to 0.1"},
    {"memory", "SIZE", "1GiB, in a cgroup half of its memory limit", false,
     "Memory limit for all filters together", "1GiB", By<StoreDaemonMemory, Daemon<&DaemonOptions::stage>>,
     "64KiB or more"},
    {"engine", kEngines, "compact", false, "Filter engine; exact has the fewest false positives", "exact",
     By<StoreKeptEngine, Daemon<>>},
    {"on_duplicate", "drop|tag|divert", "drop", false,
     "Handling of duplicates: tag passes them with a header that says so", "tag",
     Choice<Policy<&Policies::on_duplicate>, Action::kDrop, Action::kTag, Action::kDivert>},
    {"on_missing_id", "pass|drop|divert|fail", "pass", false,
     "Handling of records without a usable id: fail stops the partition", "divert",
     Choice<Policy<&Policies::on_missing_id>, Action::kPass, Action::kDrop, Action::kDivert, Action::kFail>},
    {"on_malformed", "pass|drop|divert|fail", "pass", false,
     "Handling of records with broken JSON, Avro or Protobuf, if the id is in it", "divert",
     Choice<Policy<&Policies::on_malformed>, Action::kPass, Action::kDrop, Action::kDivert, Action::kFail>},
    {"on_suspicious_id", "drop|pass|divert|fail", "drop", false,
     "Handling of copies that differ, once a hundred of one id did: the id may be a constant or a default. "
     "drop takes them for copies, with a warning and an alert",
     "divert",
     Choice<Policy<&Policies::on_suspicious_id>, Action::kDrop, Action::kPass, Action::kDivert,
            Action::kFail>},
    {"on_undeliverable", "drop|divert|fail", "divert if divert is set, else drop", false,
     "Handling of records that the output topic rejects for good, such as too large ones", "divert",
     Choice<Policy<&Policies::on_undeliverable>, Action::kDrop, Action::kDivert, Action::kFail>},
    {"on_unreadable", "fail|drop", "fail", false,
     "Handling of batches that are corrupt, or too large decompressed: fail stops the partition, drop skips "
     "the batch",
     "drop", Choice<Policy<&Policies::on_unreadable>, Action::kFail, Action::kDrop>},
    {"on_uncountable", "pass|divert", "pass", false,
     "Handling of unique records that a counter cannot count: pass writes them to the output; divert also "
     "writes a copy to the divert topic",
     "divert", Choice<Policy<&Policies::on_uncountable>, Action::kPass, Action::kDivert>},
    {"divert", "TOPIC", "", false,
     "Topic for diverted records; it must exist, with as many partitions as the input", "orders-diverted",
     By<StoreTopicForm, Daemon<&DaemonOptions::divert>>},
    {"group", "NAME", "lethe-INPUT", false, "Consumer group; its offsets and transactions carry the name",
     "lethe-orders", Value<Process<&ProcessOptions::group>>},
    {"instance", "NAME", "the host's name", false, "This process's name: stable, and unique in the group",
     "lethe-0", Value<Process<&ProcessOptions::instance>>},
    {"start", "earliest|latest", "earliest", false, "Where to start without committed offsets", "latest",
     Choice<Daemon<&DaemonOptions::start>, Start::kEarliest, Start::kLatest>},
    {"accept_nonempty_output", "true|false", "false", false,
     "Whether a group without committed offsets may read the whole input into an output that has records: "
     "they may be the same, and be repeated then",
     "true", Choice<Daemon<&DaemonOptions::accept_nonempty_output>, true, false>},
    {"delivery", "exactly_once|at_least_once", "exactly_once", false,
     "Whether a crash may repeat records in the output", "at_least_once",
     Choice<Process<&ProcessOptions::delivery>, Delivery::kExactlyOnce, Delivery::kAtLeastOnce>},
    {"lanes", "NUMBER", "1", false, "Lanes in this process, each with a consumer, a producer and a thread",
     "2", Value<Process<&ProcessOptions::lanes>>, "1 to 64"},
    {"assignment", "eager|cooperative", "eager", false,
     "Rebalance protocol: eager stops all partitions when one moves, cooperative only that one",
     "cooperative",
     Choice<Process<&ProcessOptions::assignment>, Assignment::kEager, Assignment::kCooperative>},
    {"static_membership", "true|crash|false", "crash if instance is set, else false", false,
     "When a restart within the group's session timeout keeps its partitions: always, after a crash only (a "
     "clean stop leaves the group at once), or never",
     "true",
     Choice<Process<&ProcessOptions::static_membership>, StaticMembership::kAlways,
            StaticMembership::kAfterCrash, StaticMembership::kNever>},
    {"commit_interval", "DURATION", "100ms", false,
     "How long a transaction stays open at most, but for a backlog, where it is ten times as long: a longer "
     "one costs less and delays the output. A stream without counters is committed earlier, as long as that "
     "takes a tenth of the time",
     "100ms", Value<Process<&ProcessOptions::commit_interval>>, "1ms to 10s"},
    {"on_short_history", "continue|fail", "continue", false,
     "If the log does not reach back one horizon, or the horizon was raised: continue, and copies of unknown "
     "ids may pass, or stop the partition",
     "fail", Choice<Policy<&Policies::on_short_history>, OnShortHistory::kContinue, OnShortHistory::kFail>},
    {"on_unread_deleted", "fail|continue", "fail", false,
     "If retention deleted records before lethe read them: stop the partition, or continue without them",
     "continue",
     Choice<Policy<&Policies::on_unread_deleted>, OnUnreadDeleted::kFail, OnUnreadDeleted::kContinue>},
    {"snapshots.to", "folder:PATH|topic:NAME|off", "off", false,
     "Where filters are saved, for a shorter replay after a restart", "folder:/var/lib/lethe",
     By<StoreSnapshotPlace, Process<&ProcessOptions::snapshots>>},
    {"snapshots.every", "DURATION", "5m", false, "How often each partition's filter is saved", "5m",
     Value<Process<&ProcessOptions::snapshots, &SnapshotOptions::every>>, "1s or more"},
    {"snapshots.secret", "TEXT", "", false,
     "32 hexadecimal digits without which snapshots do not tell the key of the ids' hash, from a file or the "
     "environment; the same for all instances",
     "${file:/etc/lethe/snapshots-secret}", By<StoreSnapshotSecret, Daemon<&DaemonOptions::stage>>},
    RegistrySetting<RunConfig>("schema_registry.url"),
    RegistrySetting<RunConfig>("schema_registry.user"),
    RegistrySetting<RunConfig>("schema_registry.password"),
    RegistrySetting<RunConfig>("schema_registry.token"),
    RegistrySetting<RunConfig>("schema_registry.ca_file"),
    RegistrySetting<RunConfig>("schema_registry.timeout"),
    {"http", "HOST:PORT|off", "127.0.0.1:9464", false, "Address of metrics, health and the status page",
     "127.0.0.1:9464", By<StoreHttp, At<&RunConfig::http>>},
    {"http_counters", "true|false", "true on a loopback address, else false", false,
     "Show the keys of counters on the status page and at /counters; `lethe counters` shows them in any "
     "case",
     "false", Choice<At<&RunConfig::http_counters>, true, false>},
    {"metrics", "partition|topic", "partition", false,
     "Metrics for each partition, or summed over the process's partitions of the topic", "topic",
     Choice<At<&RunConfig::metrics_per_partition>, true, false>},
    {"log.level", "debug|info|warning|error", "info", false, "Lowest level that is logged", "warning",
     Choice<At<&RunConfig::log, &LogOptions::level>, LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning,
            LogLevel::kError>},
    {"log.format", "text|json", "text", false, "Log format: text, or one JSON object per line", "json",
     Choice<At<&RunConfig::log, &LogOptions::format>, LogFormat::kText, LogFormat::kJson>},
};

constexpr Setting<CounterConfig> kCounterSettings[] = {
    {"name", "NAME", "", true, "The counter's name: letters, digits, `.`, `_` and `-`", "likes",
     By<StoreCounterName, Counter<&CounterOptions::name>>},
    {"key", "FIELD", "", true, "Key under which a unique record is counted", "json:/page",
     Value<Counter<&CounterOptions::spec, &CounterSpec::key>>},
    {"delta", "FIELD|1", "1", false, "Whole number to add; 1: each record counts one", "json:/amount",
     By<StoreDelta, Counter<&CounterOptions::spec, &CounterSpec::delta>>},
    {"when", "FIELD", "", false, "With `equals`: count only records with that text in this field",
     "json:/type", Value<At<&CounterConfig::when>>},
    {"equals", "TEXT", "", false, "With `when`: a string, a number as it is written, `true` or `false`",
     "like", Value<At<&CounterConfig::equals>>},
    {"mode", "delta|total", "delta", false,
     "Written at each commit: the change of each key, or its total in the partition", "total",
     Choice<Counter<&CounterOptions::mode>, CounterMode::kDelta, CounterMode::kTotal>},
    {"output", "TOPIC", "", true, "Output topic of this counter alone. lethe creates it for `mode: total`",
     "likes", By<StoreTopicForm, Counter<&CounterOptions::output>>},
    {"max_keys", "NUMBER", "1000000", false,
     "With `mode: total`: keys that are counted in each partition of the input, about 160 bytes of memory "
     "each; records with further keys are uncountable",
     "5000000", Value<Counter<&CounterOptions::max_keys>>, "1 to 1000000000"},
    {"store", "redis://HOST:PORT/DB", "", false,
     "With `mode: total`: Redis to which lethe writes totals, for applications to read",
     "redis://127.0.0.1:6379/0", By<StoreStore, Counter<&CounterOptions::store>>},
    {kStorePassword, "TEXT", "", false, "The password of the store, from a file or the environment",
     "${file:/etc/lethe/redis-password}", By<StoreSecret, Counter<&CounterOptions::store_password>>},
};

}  // namespace

absl::Span<const Setting<CounterConfig>> CounterSettings() { return kCounterSettings; }

std::string CounterFlagType() {
  std::string type;
  for (const Setting<CounterConfig>& setting : kCounterSettings) {
    if (setting.required) absl::StrAppend(&type, setting.key, "=", setting.type, ",");
  }
  return absl::StrCat(type, "...");
}

absl::Span<const Setting<RunConfig>> RunSettings() { return kSettings; }

bool IsTopicSetting(absl::string_view key) {
  constexpr absl::string_view kKeys =
      "input input_header output id scope horizon renew max_future fpp engine on_duplicate on_missing_id "
      "on_malformed on_suspicious_id on_undeliverable on_unreadable on_uncountable divert start "
      "accept_nonempty_output "
      "on_short_history "
      "on_unread_deleted snapshots snapshots.to snapshots.every";
  const std::vector<absl::string_view> keys = absl::StrSplit(kKeys, ' ');
  return absl::c_linear_search(keys, key);
}

}  // namespace lethe
