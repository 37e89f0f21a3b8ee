// Every key of the configuration of `lethe run`: what it takes, what it means, and where it is put.
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "connectors/http/http_server.h"
#include "connectors/kafka/options/options.h"
#include "connectors/redis/redis_address.h"
#include "src/cli/config/config.h"
#include "src/cli/config/setting.h"
#include "src/cli/config/units.h"

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
absl::Status StoreKeptEngine(absl::string_view text, Engine& target) {
  if (const absl::StatusOr<Engine> engine = ParseEngine(text);
      engine.ok() && !BrokenPromise(*engine).empty()) {
    return BadValue(text, absl::StrCat("it breaks what lethe run promises; set compact, sliced, published or "
                                       "exact (lethe filter --engine ",
                                       text, " tries it out)"));
  }
  return StoreChoice<Engine, 4>(text,
                                {{{"compact", Engine::kCompact},
                                  {"sliced", Engine::kSliced},
                                  {"published", Engine::kPublished},
                                  {"exact", Engine::kExact}}},
                                target);
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

absl::Status StoreSnapshotPlace(absl::string_view text, kafka::SnapshotOptions& target) {
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

using kafka::Assignment;
using kafka::Delivery;
using kafka::OnShortHistory;
using kafka::OnUnreadDeleted;
using kafka::Scope;
using kafka::Start;
using kafka::StaticMembership;

// What can be done with a record that has no usable id.
absl::Status StoreActionWithoutId(absl::string_view text, Action& target) {
  return StoreChoice<Action, 4>(text,
                                {{{"pass", Action::kPass},
                                  {"drop", Action::kDrop},
                                  {"divert", Action::kDivert},
                                  {"fail", Action::kFail}}},
                                target);
}

// What is written to the output is known to the second opinion from then on.
absl::Status StoreActionOnSuspect(absl::string_view text, kafka::DaemonOptions& target) {
  Action& action = target.policies.on_suspect;
  const absl::Status stored = StoreChoice<Action, 4>(text,
                                                     {{{"pass", Action::kPass},
                                                       {"drop", Action::kDrop},
                                                       {"tag", Action::kTag},
                                                       {"divert", Action::kDivert}}},
                                                     action);
  target.stage.pass_suspects = target.policies.passes_suspects();
  return stored;
}

constexpr Setting<RunConfig> kSettings[] = {
    {"brokers", "HOST:PORT,...", "", true, "The Kafka cluster: one or more of its brokers", "localhost:9092",
     [](absl::string_view text, RunConfig& config) {
       return StoreText(text, "expected one or more brokers, such as localhost:9092", config.daemon.brokers);
     }},
    {"input", "TOPIC", "", true, "The topic that is read", "orders",
     [](absl::string_view text, RunConfig& config) { return StoreTopic(text, config.daemon.input); }},
    {"output", "TOPIC", "", true, "Output topic for unique records; it must exist", "orders-unique",
     [](absl::string_view text, RunConfig& config) { return StoreTopic(text, config.daemon.output); }},
    {"id", "FIELD[+FIELD...]", "", true,
     "Where a record's id is: key, value, header:NAME, json:/pointer, or several joined with +",
     "json:/order/id",
     [](absl::string_view text, RunConfig& config) {
       return StoreField(IdSpec::Parse(text), config.daemon.record.id);
     }},
    {"scope", "partition|topic", "partition", false,
     "Where copies are looked for: in the partition, for keyed records, or in the whole topic", "topic",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<Scope>(text, {{{"partition", Scope::kPartition}, {"topic", Scope::kTopic}}},
                                 config.daemon.scope);
     }},
    {"horizon", "DURATION", "24h", false, "How late a copy may come after the first", "24h",
     [](absl::string_view text, RunConfig& config) { return StoreHorizon(text, config.daemon.stage); },
     "1ms to 36525d"},
    {"max_future", "DURATION", "1h", false,
     "A record dated further ahead of this machine's clock counts as one without a timestamp", "10m",
     [](absl::string_view text, RunConfig& config) { return StoreMaxFuture(text, config.daemon.max_future); },
     "1s to 36525d"},
    {"fpp", "NUMBER", "1e-6", false, "The share of good events that may be taken for duplicates", "1e-6",
     [](absl::string_view text, RunConfig& config) { return StoreFpp(text, config.daemon.stage); },
     "1e-15 to 0.1"},
    {"memory", "SIZE", "1GiB", false, "The limit for all filters together", "1GiB",
     [](absl::string_view text, RunConfig& config) { return StoreMemory(text, config.daemon.stage); },
     "64KiB or more"},
    {"at_memory_limit", "shorten_window|exceed_fpp", "shorten_window", false,
     "What gives way at the memory limit: late copies pass, or more good events are dropped", "exceed_fpp",
     [](absl::string_view text, RunConfig& config) { return StoreAtMemoryLimit(text, config.daemon.stage); }},
    {"engine", "compact|sliced|published|exact", "compact", false,
     "The filter; exact has the fewest false positives, and sliced takes another fpp while it runs", "exact",
     [](absl::string_view text, RunConfig& config) {
       return StoreKeptEngine(text, config.daemon.stage.engine);
     }},
    {"adaptation", "budget|paper", "budget", false,
     "How the filter adapts to its load: the engine's own way, or, with published, its paper's", "paper",
     [](absl::string_view text, RunConfig& config) { return StoreAdaptation(text, config.daemon.stage); }},
    {"second_opinion", "none|opposite", "none", false,
     "Who is asked again about what the filter calls a duplicate: an array of ids, as many as fit; what it "
     "does not confirm is a suspect",
     "opposite",
     [](absl::string_view text, RunConfig& config) { return StoreSecondOpinion(text, config.daemon.stage); }},
    {"on_duplicate", "drop|tag|divert", "drop", false,
     "Handling of duplicates: tag passes them with a header that says so", "tag",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<Action, 3>(
           text, {{{"drop", Action::kDrop}, {"tag", Action::kTag}, {"divert", Action::kDivert}}},
           config.daemon.policies.on_duplicate);
     }},
    {"on_suspect", "pass|drop|tag|divert", "pass", false,
     "Handling of suspects: unique events, or copies of forgotten ids", "tag",
     [](absl::string_view text, RunConfig& config) { return StoreActionOnSuspect(text, config.daemon); }},
    {"on_missing_id", "pass|drop|divert|fail", "pass", false,
     "Handling of records without a usable id: fail stops the partition", "divert",
     [](absl::string_view text, RunConfig& config) {
       return StoreActionWithoutId(text, config.daemon.policies.on_missing_id);
     }},
    {"on_malformed", "pass|drop|divert|fail", "pass", false,
     "Handling of records whose JSON is broken, if the id is in the JSON", "divert",
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
     "Handling of record batches that cannot be fetched (corrupt, or too large once decompressed): fail "
     "stops "
     "the partition, drop skips the batch",
     "drop",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<Action, 2>(text, {{{"fail", Action::kFail}, {"drop", Action::kDrop}}},
                                     config.daemon.policies.on_unreadable);
     }},
    {"on_uncountable", "pass|divert", "pass", false,
     "Handling of a unique record that a counter cannot count: it is written all the same; divert also "
     "writes a copy to the divert topic",
     "divert",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<Action, 2>(text, {{{"pass", Action::kPass}, {"divert", Action::kDivert}}},
                                     config.daemon.policies.on_uncountable);
     }},
    {"divert", "TOPIC", "", false,
     "The topic for what is diverted; it must exist, with as many partitions as the input", "orders-diverted",
     [](absl::string_view text, RunConfig& config) { return StoreTopic(text, config.daemon.divert); }},
    {"group", "NAME", "lethe-INPUT", false, "The consumer group; its offsets and transactions bear the name",
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
    {"start", "earliest|latest", "earliest", false, "Where to start if the group has committed nothing",
     "latest",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<Start>(text, {{{"earliest", Start::kEarliest}, {"latest", Start::kLatest}}},
                                 config.daemon.start);
     }},
    {"delivery", "exactly_once|at_least_once", "exactly_once", false,
     "Whether a crash may repeat what was on its way", "at_least_once",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<Delivery>(
           text, {{{"exactly_once", Delivery::kExactlyOnce}, {"at_least_once", Delivery::kAtLeastOnce}}},
           config.daemon.delivery);
     }},
    {"lanes", "NUMBER", "1", false, "Pipelines in this process, each a consumer and a producer with a thread",
     "2",
     [](absl::string_view text, RunConfig& config) {
       return Store(text, ParseWhole<int>(text, 1, 64), config.daemon.lanes);
     },
     "1 to 64"},
    {"assignment", "eager|cooperative", "eager", false,
     "Whether all partitions stop when one moves to another instance, or that one alone", "cooperative",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<Assignment>(
           text, {{{"eager", Assignment::kEager}, {"cooperative", Assignment::kCooperative}}},
           config.daemon.assignment);
     }},
    {"static_membership", "true|crash|false", "crash if instance is set, else false", false,
     "When a restart within the group's session timeout keeps its partitions: always, after a crash only "
     "(a clean stop leaves the group at once), or never",
     "true",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<StaticMembership, 3>(text,
                                               {{{"true", StaticMembership::kAlways},
                                                 {"crash", StaticMembership::kAfterCrash},
                                                 {"false", StaticMembership::kNever}}},
                                               config.daemon.static_membership);
     }},
    {"commit_interval", "DURATION", "100ms", false, "How long a transaction stays open: delay against cost",
     "100ms",
     [](absl::string_view text, RunConfig& config) {
       return StoreCommitInterval(text, config.daemon.commit_interval);
     },
     "1ms to 10s"},
    {"on_short_history", "continue|fail", "continue", false,
     "Where the log does not reach back to the horizon, or that was raised: let the copies of what is not "
     "known pass, or stop",
     "fail",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<OnShortHistory>(
           text, {{{"continue", OnShortHistory::kContinue}, {"fail", OnShortHistory::kFail}}},
           config.daemon.on_short_history);
     }},
    {"on_unread_deleted", "fail|continue", "fail", false,
     "Where records were deleted before they were read: stop, or go on without them", "continue",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<OnUnreadDeleted>(
           text, {{{"fail", OnUnreadDeleted::kFail}, {"continue", OnUnreadDeleted::kContinue}}},
           config.daemon.on_unread_deleted);
     }},
    {"snapshots.to", "folder:PATH|topic:NAME|off", "off", false,
     "Where the filters are saved, so that a restart reads less again", "folder:/var/lib/lethe",
     [](absl::string_view text, RunConfig& config) {
       return StoreSnapshotPlace(text, config.daemon.snapshots);
     }},
    {"snapshots.every", "DURATION", "5m", false, "How often each partition's filter is saved", "5m",
     [](absl::string_view text, RunConfig& config) {
       return StoreSnapshotInterval(text, config.daemon.snapshots.every);
     },
     "1s or more"},
    {"counter.key", "FIELD", "", false,
     "Former way to write a single counter, with the name `counter`; use `counters`", "json:/country",
     [](absl::string_view text, RunConfig& config) {
       return StoreField(Field::Parse(text), config.former_counter.options.spec.key);
     }},
    {"counter.delta", "FIELD", "", false, "Of that counter", "json:/amount",
     [](absl::string_view text, RunConfig& config) {
       return StoreField(Field::Parse(text), config.former_counter.options.spec.delta);
     }},
    {"counter.output", "TOPIC", "", false, "Of that counter", "orders-by-country",
     [](absl::string_view text, RunConfig& config) {
       return StoreTopic(text, config.former_counter.options.output);
     }},
    {"http", "HOST:PORT|off", "127.0.0.1:9464", false, "Where metrics and health are served",
     "127.0.0.1:9464",
     [](absl::string_view text, RunConfig& config) { return StoreHttp(text, config.http); }},
    {"metrics", "partition|topic", "partition", false,
     "Metrics of each partition, or one figure for all that the process has of the topic", "topic",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<bool>(text, {{{"partition", true}, {"topic", false}}},
                                config.metrics_per_partition);
     }},
    {"log.level", "debug|info|warning|error", "info", false, "The least that is logged", "warning",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<LogLevel, 4>(text,
                                       {{{"debug", LogLevel::kDebug},
                                         {"info", LogLevel::kInfo},
                                         {"warning", LogLevel::kWarning},
                                         {"error", LogLevel::kError}}},
                                       config.log.level);
     }},
    {"log.format", "text|json", "text", false, "How the log is written: for people, or an object per line",
     "json",
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
    {"key", "FIELD", "", true, "What a unique record counts for", "json:/page",
     [](absl::string_view text, CounterConfig& config) {
       return StoreField(Field::Parse(text), config.options.spec.key);
     }},
    {"delta", "FIELD|1", "1", false, "The whole number that it counts; 1: each record counts one",
     "json:/amount",
     [](absl::string_view text, CounterConfig& config) {
       if (text != "1") return StoreField(Field::Parse(text), config.options.spec.delta);
       config.options.spec.delta.reset();
       return absl::OkStatus();
     }},
    {"when", "FIELD", "", false, "With `equals`: only records with that text here are counted", "json:/type",
     [](absl::string_view text, CounterConfig& config) {
       return StoreField(Field::Parse(text), config.when);
     }},
    {"equals", "TEXT", "", false, "With `when`: a string, a number as it is written, `true` or `false`",
     "like",
     [](absl::string_view text, CounterConfig& config) {
       return StoreText(text, "expected the text that the field `when` must have", config.equals.emplace());
     }},
    {"mode", "delta|total", "delta", false,
     "What is written at each commit: what a key has changed by, or what it has come to in the partition",
     "total",
     [](absl::string_view text, CounterConfig& config) {
       return StoreChoice<kafka::CounterMode>(
           text, {{{"delta", kafka::CounterMode::kDelta}, {"total", kafka::CounterMode::kTotal}}},
           config.options.mode);
     }},
    {"output", "TOPIC", "", true,
     "The topic that the counts are written to; of no other counter. lethe makes that of totals", "likes",
     [](absl::string_view text, CounterConfig& config) { return StoreTopic(text, config.options.output); }},
    {"store", "redis://HOST:PORT/DB", "", false,
     "With `mode: total`: a Redis that totals are brought to, for applications to read",
     "redis://127.0.0.1:6379/0",
     [](absl::string_view text, CounterConfig& config) {
       // What was found may have a password in it.
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

}  // namespace lethe
