// Every key of the configuration of `lethe run`: its type, its meaning, and where it is stored.
#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "connectors/http/http_server.h"
#include "connectors/redis/redis_address.h"
#include "src/cli/config/config.h"
#include "src/cli/config/removed.h"
#include "src/cli/config/setting.h"
#include "src/cli/config/units.h"
#include "src/pipeline/options/options.h"

namespace lethe {
namespace {

// A transaction must be over well before the broker's own limit for it, which is 30 s.
absl::Status StoreCommitInterval(absl::string_view text, absl::Duration& target) {
  absl::StatusOr<absl::Duration> interval = ParseDuration(text);
  if (interval.ok() && (*interval < absl::Milliseconds(1) || *interval > absl::Seconds(10))) {
    return BadValue(text, "expected a duration from 1ms to 10s");
  }
  return Store(text, std::move(interval), target);
}

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
  AnyEngine engine = target.engine();
  absl::Status stored = StoreChoice<AnyEngine, 3>(
      text,
      {{{"compact", Engine::kCompact}, {"exact", Engine::kExact}, {"published", Reference::kPublished}}},
      engine);
  target.stage.engine = engine.own;
  target.reference = engine.reference;
  return stored;
}

absl::Status StoreMaxFuture(absl::string_view text, absl::Duration& target) {
  absl::StatusOr<absl::Duration> duration = ParseDuration(text);
  if (duration.ok() && (*duration < absl::Seconds(1) || *duration > absl::Hours(24 * 36525))) {
    return BadValue(text, "expected a duration from 1s to 36525d");
  }
  return Store(text, std::move(duration), target);
}

absl::Status StoreHttp(absl::string_view text, std::string& target) {
  if (text != "off") {
    if (absl::Status status = http::HttpAddress::Parse(text).status(); !status.ok()) {
      return BadValue(text, absl::StrCat(status.message(), ", or off"));
    }
  }
  target = std::string(text);
  return absl::OkStatus();
}

// Written more often than that, one snapshot would follow the other.
absl::Status StoreSnapshotInterval(absl::string_view text, absl::Duration& target) {
  absl::StatusOr<absl::Duration> interval = ParseDuration(text);
  if (interval.ok() && *interval < absl::Seconds(1)) return BadValue(text, "expected a duration from 1s up");
  return Store(text, std::move(interval), target);
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

// What can be done with a record that has no usable id.
absl::Status StoreActionWithoutId(absl::string_view text, Action& target) {
  return StoreChoice<Action, 4>(text,
                                {{{"pass", Action::kPass},
                                  {"drop", Action::kDrop},
                                  {"divert", Action::kDivert},
                                  {"fail", Action::kFail}}},
                                target);
}

constexpr Setting<RunConfig> kSettings[] = {
    {"brokers", "HOST:PORT,...", "", true, "The Kafka cluster: one or more of its brokers", "localhost:9092",
     [](absl::string_view text, RunConfig& config) {
       return StoreText(text, "expected one or more brokers, such as localhost:9092", config.daemon.brokers);
     }},
    {"input", "TOPIC[,TOPIC...]", "", true,
     "Input topic. Several, or a list of them, are merged: an event that comes by more than one passes once "
     "(with scope: topic)",
     "orders", [](absl::string_view text, RunConfig& config) { return StoreInput(text, config.daemon); }},
    {"input_header", "NAME", "", false, "Header of output records that names the input of the record",
     "source",
     [](absl::string_view text, RunConfig& config) {
       return StoreText(text, "expected the name of a header", config.daemon.input_header);
     }},
    {"output", "TOPIC", "", true, "Output topic for unique records; it must exist", "orders-unique",
     [](absl::string_view text, RunConfig& config) { return StoreTopicForm(text, config.daemon.output); }},
    {"id", "FIELD[+FIELD...]", "", true,
     "Place of the id in a record: key, value, header:NAME, json:/pointer, avro:/pointer, protobuf:/name or "
     "protobuf:/3/7 (field numbers), framed.json:/pointer (JSON of a schema registry), or several joined "
     "with +; key. before a form with a pointer: in the key",
     "json:/order/id",
     [](absl::string_view text, RunConfig& config) {
       return StoreField(IdSpec::Parse(text), config.daemon.record.id);
     }},
    {"scope", "partition|topic", "partition", false,
     "Where lethe looks for copies: in the same partition (records keyed by id), or in the whole topic",
     "topic",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<Scope>(text, {{{"partition", Scope::kPartition}, {"topic", Scope::kTopic}}},
                                 config.daemon.scope);
     }},
    {"horizon", "DURATION", "24h", false, "How late a copy may come after the first", "24h",
     [](absl::string_view text, RunConfig& config) { return StoreHorizon(text, config.daemon.stage); },
     "1ms to 36525d"},
    {"renew", "true|false", "false", false,
     "Whether a copy counts as the first: a record is unique if its id did not come for a horizon, not even "
     "as a copy",
     "true",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<bool>(text, {{{"true", true}, {"false", false}}}, config.daemon.stage.renew);
     }},
    {"max_future", "DURATION", "1h", false,
     "Limit of timestamps ahead of this machine's clock; later ones count as no timestamp", "10m",
     [](absl::string_view text, RunConfig& config) { return StoreMaxFuture(text, config.daemon.max_future); },
     "1s to 36525d"},
    {"fpp", "NUMBER", "1e-6", false, "Share of unique events that may be taken for duplicates", "1e-6",
     [](absl::string_view text, RunConfig& config) { return StoreFpp(text, config.daemon.stage); },
     "1e-15 to 0.1"},
    {"memory", "SIZE", "1GiB, in a cgroup half of its memory limit", false,
     "Memory limit for all filters together", "1GiB",
     [](absl::string_view text, RunConfig& config) { return StoreMemory(text, config.daemon.stage); },
     "64KiB or more"},
    {"engine", "compact|exact|published", "compact", false,
     "Filter engine; exact has the fewest false positives", "exact",
     [](absl::string_view text, RunConfig& config) { return StoreKeptEngine(text, config.daemon); }},
    {"on_duplicate", "drop|tag|divert", "drop", false,
     "Handling of duplicates: tag passes them with a header that says so", "tag",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<Action, 3>(
           text, {{{"drop", Action::kDrop}, {"tag", Action::kTag}, {"divert", Action::kDivert}}},
           config.daemon.policies.on_duplicate);
     }},
    {"on_missing_id", "pass|drop|divert|fail", "pass", false,
     "Handling of records without a usable id: fail stops the partition", "divert",
     [](absl::string_view text, RunConfig& config) {
       return StoreActionWithoutId(text, config.daemon.policies.on_missing_id);
     }},
    {"on_malformed", "pass|drop|divert|fail", "pass", false,
     "Handling of records with broken JSON, Avro or Protobuf, if the id is in it", "divert",
     [](absl::string_view text, RunConfig& config) {
       return StoreActionWithoutId(text, config.daemon.policies.on_malformed);
     }},
    {"on_undeliverable", "drop|divert|fail", "drop", false,
     "Handling of records that the output topic rejects for good, such as too large ones", "divert",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<Action, 3>(
           text, {{{"drop", Action::kDrop}, {"divert", Action::kDivert}, {"fail", Action::kFail}}},
           config.daemon.policies.on_undeliverable);
     }},
    {"on_unreadable", "fail|drop", "fail", false,
     "Handling of batches that are corrupt, or too large decompressed: fail stops the partition, drop skips "
     "the batch",
     "drop",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<Action, 2>(text, {{{"fail", Action::kFail}, {"drop", Action::kDrop}}},
                                     config.daemon.policies.on_unreadable);
     }},
    {"on_uncountable", "pass|divert", "pass", false,
     "Handling of unique records that a counter cannot count: pass writes them to the output; divert also "
     "writes a copy to the divert topic",
     "divert",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<Action, 2>(text, {{{"pass", Action::kPass}, {"divert", Action::kDivert}}},
                                     config.daemon.policies.on_uncountable);
     }},
    {"divert", "TOPIC", "", false,
     "Topic for diverted records; it must exist, with as many partitions as the input", "orders-diverted",
     [](absl::string_view text, RunConfig& config) { return StoreTopicForm(text, config.daemon.divert); }},
    {"group", "NAME", "lethe-INPUT", false, "Consumer group; its offsets and transactions carry the name",
     "lethe-orders",
     [](absl::string_view text, RunConfig& config) {
       return StoreText(text, "expected the name of a consumer group", config.daemon.group);
     }},
    {"instance", "NAME", "the host's name", false, "This process's name: stable, and unique in the group",
     "lethe-0",
     [](absl::string_view text, RunConfig& config) {
       return StoreText(text, "expected a name that is stable and unique in the group",
                        config.daemon.instance);
     }},
    {"start", "earliest|latest", "earliest", false, "Where to start without committed offsets", "latest",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<Start>(text, {{{"earliest", Start::kEarliest}, {"latest", Start::kLatest}}},
                                 config.daemon.start);
     }},
    {"delivery", "exactly_once|at_least_once", "exactly_once", false,
     "Whether a crash may repeat records in the output", "at_least_once",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<Delivery>(
           text, {{{"exactly_once", Delivery::kExactlyOnce}, {"at_least_once", Delivery::kAtLeastOnce}}},
           config.daemon.delivery);
     }},
    {"lanes", "NUMBER", "1", false, "Lanes in this process, each with a consumer, a producer and a thread",
     "2",
     [](absl::string_view text, RunConfig& config) {
       return Store(text, ParseWhole<int>(text, 1, 64), config.daemon.lanes);
     },
     "1 to 64"},
    {"assignment", "eager|cooperative", "eager", false,
     "Rebalance protocol: eager stops all partitions when one moves, cooperative only that one",
     "cooperative",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<Assignment>(
           text, {{{"eager", Assignment::kEager}, {"cooperative", Assignment::kCooperative}}},
           config.daemon.assignment);
     }},
    {"static_membership", "true|crash|false", "crash if instance is set, else false", false,
     "When a restart within the group's session timeout keeps its partitions: always, after a crash only (a "
     "clean stop leaves the group at once), or never",
     "true",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<StaticMembership, 3>(text,
                                               {{{"true", StaticMembership::kAlways},
                                                 {"crash", StaticMembership::kAfterCrash},
                                                 {"false", StaticMembership::kNever}}},
                                               config.daemon.static_membership);
     }},
    {"commit_interval", "DURATION", "100ms", false,
     "How long a transaction stays open: a longer one costs less and delays the output", "100ms",
     [](absl::string_view text, RunConfig& config) {
       return StoreCommitInterval(text, config.daemon.commit_interval);
     },
     "1ms to 10s"},
    {"on_short_history", "continue|fail", "continue", false,
     "If the log does not reach back one horizon, or the horizon was raised: continue, and copies of unknown "
     "ids may pass, or stop the partition",
     "fail",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<OnShortHistory>(
           text, {{{"continue", OnShortHistory::kContinue}, {"fail", OnShortHistory::kFail}}},
           config.daemon.on_short_history);
     }},
    {"on_unread_deleted", "fail|continue", "fail", false,
     "If retention deleted records before lethe read them: stop the partition, or continue without them",
     "continue",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<OnUnreadDeleted>(
           text, {{{"fail", OnUnreadDeleted::kFail}, {"continue", OnUnreadDeleted::kContinue}}},
           config.daemon.on_unread_deleted);
     }},
    {"snapshots.to", "folder:PATH|topic:NAME|off", "off", false,
     "Where filters are saved, for a shorter replay after a restart", "folder:/var/lib/lethe",
     [](absl::string_view text, RunConfig& config) {
       return StoreSnapshotPlace(text, config.daemon.snapshots);
     }},
    {"snapshots.every", "DURATION", "5m", false, "How often each partition's filter is saved", "5m",
     [](absl::string_view text, RunConfig& config) {
       return StoreSnapshotInterval(text, config.daemon.snapshots.every);
     },
     "1s or more"},
    RegistrySetting<RunConfig>("schema_registry.url"),
    RegistrySetting<RunConfig>("schema_registry.user"),
    RegistrySetting<RunConfig>("schema_registry.password"),
    RegistrySetting<RunConfig>("schema_registry.token"),
    RegistrySetting<RunConfig>("schema_registry.ca_file"),
    RegistrySetting<RunConfig>("schema_registry.timeout"),
    {"http", "HOST:PORT|off", "127.0.0.1:9464", false, "Address of metrics, health and the status page",
     "127.0.0.1:9464",
     [](absl::string_view text, RunConfig& config) { return StoreHttp(text, config.http); }},
    {"metrics", "partition|topic", "partition", false,
     "Metrics for each partition, or summed over the process's partitions of the topic", "topic",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<bool>(text, {{{"partition", true}, {"topic", false}}},
                                config.metrics_per_partition);
     }},
    {"log.level", "debug|info|warning|error", "info", false, "Lowest level that is logged", "warning",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<LogLevel, 4>(text,
                                       {{{"debug", LogLevel::kDebug},
                                         {"info", LogLevel::kInfo},
                                         {"warning", LogLevel::kWarning},
                                         {"error", LogLevel::kError}}},
                                       config.log.level);
     }},
    {"log.format", "text|json", "text", false, "Log format: text, or one JSON object per line", "json",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<LogFormat>(text, {{{"text", LogFormat::kText}, {"json", LogFormat::kJson}}},
                                     config.log.format);
     }},
};

constexpr Setting<CounterConfig> kCounterSettings[] = {
    {"name", "NAME", "", true, "The counter's name: letters, digits, `.`, `_` and `-`", "likes",
     [](absl::string_view text, CounterConfig& config) {
       if (!IsTopicName(text)) {
         return BadValue(text, "expected at most 249 letters, digits, '.', '_' or '-'");
       }
       config.options.name = std::string(text);
       return absl::OkStatus();
     }},
    {"key", "FIELD", "", true, "Key under which a unique record is counted", "json:/page",
     [](absl::string_view text, CounterConfig& config) {
       return StoreField(Field::Parse(text), config.options.spec.key);
     }},
    {"delta", "FIELD|1", "1", false, "Whole number to add; 1: each record counts one", "json:/amount",
     [](absl::string_view text, CounterConfig& config) {
       if (text != "1") return StoreField(Field::Parse(text), config.options.spec.delta);
       config.options.spec.delta.reset();
       return absl::OkStatus();
     }},
    {"when", "FIELD", "", false, "With `equals`: count only records with that text in this field",
     "json:/type",
     [](absl::string_view text, CounterConfig& config) {
       return StoreField(Field::Parse(text), config.when);
     }},
    {"equals", "TEXT", "", false, "With `when`: a string, a number as it is written, `true` or `false`",
     "like",
     [](absl::string_view text, CounterConfig& config) {
       return StoreText(text, "expected the text that the field `when` must have", config.equals.emplace());
     }},
    {"mode", "delta|total", "delta", false,
     "Written at each commit: the change of each key, or its total in the partition", "total",
     [](absl::string_view text, CounterConfig& config) {
       return StoreChoice<CounterMode>(
           text, {{{"delta", CounterMode::kDelta}, {"total", CounterMode::kTotal}}}, config.options.mode);
     }},
    {"output", "TOPIC", "", true, "Output topic of this counter alone. lethe creates it for `mode: total`",
     "likes",
     [](absl::string_view text, CounterConfig& config) {
       return StoreTopicForm(text, config.options.output);
     }},
    {"max_keys", "NUMBER", "1000000", false,
     "With `mode: total`: keys that are counted in each partition of the input, about 160 bytes of memory "
     "each; records with further keys are uncountable",
     "5000000",
     [](absl::string_view text, CounterConfig& config) {
       return Store(text, ParseWhole<size_t>(text, 1, 1'000'000'000), config.options.max_keys);
     },
     "1 to 1000000000"},
    {"store", "redis://HOST:PORT/DB", "", false,
     "With `mode: total`: Redis to which lethe writes totals, for applications to read",
     "redis://127.0.0.1:6379/0",
     [](absl::string_view text, CounterConfig& config) {
       // The text may contain a password.
       if (absl::Status wrong = redis::RedisAddress::Parse(text).status(); !wrong.ok()) return wrong;
       config.options.store = std::string(text);
       return absl::OkStatus();
     }},
    {kStorePassword, "TEXT", "", false, "The password of the store, from a file or the environment",
     "${file:/etc/lethe/redis-password}",
     [](absl::string_view text, CounterConfig& config) {
       config.options.store_password = std::string(text);
       return absl::OkStatus();
     }},
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
  constexpr absl::string_view kKeys[] = {"input",
                                         "input_header",
                                         "output",
                                         "id",
                                         "scope",
                                         "horizon",
                                         "renew",
                                         "max_future",
                                         "fpp",
                                         "engine",
                                         "on_duplicate",
                                         "on_missing_id",
                                         "on_malformed",
                                         "on_undeliverable",
                                         "on_unreadable",
                                         "on_uncountable",
                                         "divert",
                                         "start",
                                         "on_short_history",
                                         "on_unread_deleted",
                                         "snapshots",
                                         "snapshots.to",
                                         "snapshots.every"};
  return absl::c_linear_search(kKeys, key);
}

}  // namespace lethe
