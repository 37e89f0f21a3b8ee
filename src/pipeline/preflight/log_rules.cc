#include "src/pipeline/preflight/log_rules.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "src/pipeline/options/kafka_commands.h"
#include "src/pipeline/preflight/memory_rules.h"
#include "src/pipeline/report/shared_id_watch.h"
#include "src/pipeline/restore/commit_metadata.h"
#include "src/pipeline/restore/restore_plan.h"
#include "src/text/format.h"

namespace lethe {
namespace {

using Severity = Finding::Severity;

// The size of a batch of one record without key, value and headers.
constexpr int64_t kBatchHead = 128;

// Retries of one event, which may differ in their time of sending, are fewer.
constexpr int64_t kFewDiffering = 10;

// Clocks with NTP differ less.
constexpr absl::Duration kMostAhead = absl::Seconds(5);

constexpr char kKeyRemedy[] =
    "have the producers key each record by its id, or by something that the id always comes with, or set "
    "scope: topic";

constexpr char kTimesRemedy[] = "have the producers give Kafka its milliseconds";

class LogRules {
 public:
  LogRules(const DaemonOptions& options, const TopicFacts& input, const LogSample& sample, absl::Time now)
      : options_(options), input_(input), sample_(sample), now_(now) {}

  std::vector<Finding> Apply() && {
    if (sample_.records == 0) {
      Add(Severity::kOk, "sample", "has no records yet: keys, ids, rate and clock cannot be looked at", "");
      return std::move(findings_);
    }
    Frames();
    Registry();
    Ids();
    Keys();
    Times();
    Clock();
    if (options_.scope == Scope::kPartition) {  // otherwise filters are rebuilt from a copy of the log
      Reach();
      RetentionBytes();
    }
    if (auto memory = ApplyMemoryRule(options_, input_.name, sample_.rate(), sample_.is_young())) {
      findings_.push_back(*std::move(memory));
    }
    return std::move(findings_);
  }

 private:
  void Add(Severity severity, const char* check, std::string what, std::string remedy) {
    findings_.push_back(
        {severity, check, absl::StrCat("input topic ", input_.name), std::move(what), std::move(remedy)});
  }

  // Asks for the schemas that the sample names.
  void Registry() {
    if (options_.record.schemas == nullptr) return;
    lacks_schemas_ = !sample_.schemas.empty();
    const auto add = [&](Severity severity, const std::string& what, const std::string& remedy) {
      findings_.push_back({severity, "schemas", "schema registry", what, remedy});
    };
    if (sample_.schemas.empty()) {
      add(Severity::kWarning, "was not asked: none of the newest input records names a schema",
          "see whether a schema registry's serializer writes them");
    }
    int lacking = 0;
    std::string example;
    for (const SchemaKey& key : sample_.schemas) {
      const SchemaLookup lookup = options_.record.schemas->Find(key);
      if (lookup.state == SchemaLookup::State::kKnown) {
        add(Severity::kOk, absl::StrCat("has ", SchemaName(key), " of the newest input records"), "");
        lacks_schemas_ = false;
      } else if (!lookup.is_answer) {  // for all further schemas, too
        return add(Severity::kError, absl::StrCat("gives no schema: ", lookup.why),
                   "correct url, user, password, token or ca_file under schema_registry");
      } else if (lacking++ == 0) {
        example = lookup.why;
      }
    }
    if (lacking == 0) return;
    // A warning only: every producer of the input can name any schema, and `run` handles it.
    add(Severity::kWarning,
        absl::StrCat(
            "lacks ", lacking, " of ", Several(static_cast<int64_t>(sample_.schemas.size()), "schema"),
            " that the newest input records name, for example ", example, ": such records are malformed"),
        "find who writes them; if another registry has these schemas, correct url under schema_registry");
  }

  // What a schema registry's serializers put before keys and values.
  void Frames() {
    const RegistryFrames& frames = sample_.frames;
    if (frames.in_values() && options_.record.id.reads_json()) {
      // Another place may have the id.
      Add(options_.record.id.places() > 1 ? Severity::kWarning : Severity::kError, "schema registry",
          absl::StrCat("has values that begin with ", FrameText(frames.value_schema()),
                       ": Avro, Protobuf or JSON Schema, and json: reads JSON without a frame"),
          std::string(kFramedValuesRemedy));
    }
    if (!frames.in_values() && frames.value_share() >= RegistryFrames::kNotable &&
        options_.record.id.reads_json()) {
      Add(Severity::kWarning, "schema registry",
          absl::StrFormat("has %s in %.0f %% of its values, which json: does not read",
                          FrameText(frames.value_schema()), 100 * frames.value_share()),
          std::string(kFramedValuesRemedy));
    }
    if (frames.in_values() && options_.record.id.reads_value()) {
      Add(Severity::kWarning, "schema registry",
          absl::StrCat("has values that begin with ", FrameText(frames.value_schema()), ": ", kFrameEffect),
          std::string(kFramedValuesRemedy));
    }
    if (frames.in_keys() && options_.record.id.reads_key()) {
      Add(Severity::kWarning, "schema registry",
          absl::StrCat("has keys that begin with ", FrameText(frames.key_schema()), ": ", kFrameEffect),
          std::string(kFramedKeysRemedy));
    }
  }

  void Ids() {
    if (lacks_schemas_) return;  // the error is the registry's
    Lists();
    SharedId();
    if (sample_.without_id + sample_.malformed == sample_.records) {
      return Add(Severity::kError, "ids",
                 absl::StrCat("has no usable id at ", options_.record.id.ToString(), " in any of ",
                              sample_.records, " of its newest records (", sample_.without_id,
                              " without it, ", sample_.malformed, " broken): nothing can be deduplicated"),
                 "set id to where the records have it");
    }
    if (sample_.without_id == 0 && sample_.malformed == 0) {
      return Add(Severity::kOk, "ids",
                 absl::StrCat("has an id at ", options_.record.id.ToString(), " in all of ", sample_.records,
                              " of its newest records", Apart()),
                 "");
    }
    const auto add = [&](int64_t records, const char* what, const char* policy, Action action,
                         const char* remedy) {
      if (records == 0) return;
      Add(Severity::kWarning, "ids",
          absl::StrCat("has ", what, " at ", options_.record.id.ToString(), " in ", records, " of ",
                       sample_.records, " of its newest records", Apart(), ": ", Fate(action), " (", policy,
                       ")"),
          remedy);
    };
    add(sample_.without_id, "no id", "on_missing_id", options_.policies.on_missing_id,
        "see whether the id is there under another name");
    add(sample_.malformed, "broken data instead of an id", "on_malformed", options_.policies.on_malformed,
        "see what writes such records");
  }

  void Lists() {
    if (sample_.lists == 0) return;
    const bool is_of_one = sample_.lists_by_one > 0;
    Add(is_of_one ? Severity::kError : Severity::kWarning, "ids",
        absl::StrCat("has lists of events, ", sample_.listed, " in ", sample_.lists, " of ", sample_.records,
                     " of its newest records, and lethe judges records: ",
                     is_of_one ? absl::StrCat("by ", options_.record.id.ToString(),
                                              ", the id of one event of a list, it drops the others with it")
                               : "it passes or drops a list as a whole",
                     ", and passes copies of an event in other lists"),
        "let the producers, or a step before lethe, write a record for each event");
  }

  // A constant or a default: all of its events but the first are taken for copies.
  void SharedId() {
    const bool is_most = sample_.differing >= kFewDiffering && 2 * sample_.differing >= sample_.records;
    if (!is_most && sample_.differing < SharedIdWatch::kEnough) return;
    Add(is_most ? Severity::kError : Severity::kWarning, "ids",
        absl::StrCat("has one id at ", options_.record.id.ToString(), " in ", sample_.differing + 1, " of ",
                     sample_.records, " of its newest records, which differ (", sample_.differing_example,
                     "): lethe takes all but the first for copies, and ",
                     Fate(options_.policies.on_suspicious_id), " (on_suspicious_id)"),
        "correct id, or the producer: lethe survey looks for a better id");
  }

  // Ids that are not as the first place and all its parts have them.
  std::string Apart() const {
    std::string kinds;
    if (sample_.later_place > 0)
      absl::StrAppend(&kinds, ", ", sample_.later_place, " of them from a later place");
    if (sample_.partial > 0)
      absl::StrAppend(&kinds, ", ", sample_.partial, " of them without an optional part");
    return kinds;
  }

  std::string Fate(Action action) const {
    switch (action) {
      case Action::kDrop:
        return "such records are dropped";
      case Action::kDivert:
        return absl::StrCat("such records go to topic ", options_.divert);
      case Action::kFail:
        return "the first of them to be read stops its partition";
      case Action::kPass:
      case Action::kTag:  // not for them
        break;
    }
    return "these records and their copies pass without a verdict";
  }

  void Keys() {
    if (input_.partitions < 2) {
      return Add(Severity::kOk, "keys", "has one partition: copies meet in it whatever their keys", "");
    }
    if (options_.scope == Scope::kTopic) {
      return Add(Severity::kOk, "keys", "may have any keys: with scope: topic copies meet whatever they are",
                 "");
    }
    if (sample_.copies_elsewhere > 0) {
      return Add(Severity::kWarning, "keys",
                 absl::StrCat("has copies in different partitions (", sample_.copies_elsewhere, " of ",
                              sample_.records, " of its newest records; ", sample_.example,
                              "), and lethe cannot match these copies"),
                 kKeyRemedy);
    }
    if (sample_.copies_with_another_key > 0) {
      return Add(Severity::kWarning, "keys",
                 absl::StrCat("has copies of an id with different keys (", sample_.copies_with_another_key,
                              " of ", sample_.records, " of its newest records; ", sample_.example,
                              "), which met in one partition by chance"),
                 kKeyRemedy);
    }
    if (sample_.without_key > 0) {
      return Add(Severity::kWarning, "keys",
                 absl::StrCat("has no key in ", sample_.without_key, " of ", sample_.records,
                              " of its newest records: their copies may land in different partitions, "
                              "where lethe cannot match them"),
                 kKeyRemedy);
    }
    Add(Severity::kOk, "keys",
        absl::StrCat("has a key in all of ", sample_.records,
                     " of its newest records, and no id with two of them"),
        "");
  }

  // A clock is never wrong by decades.
  void Times() {
    if (!sample_.times.MostAreWrong()) return;
    const bool is_certain = !sample_.times.LikelyUnit().empty();
    Add(is_certain ? Severity::kError : Severity::kWarning, "times",
        absl::StrCat("has wrong timestamps: of those of its newest records as milliseconds ",
                     sample_.times.Text(),
                     ": the horizon is measured by them, so unique events may be dropped, or copies pass"),
        is_certain ? kTimesRemedy
                   : absl::StrCat(kTimesRemedy, "; nothing, if the events are as old as that"));
  }

  // Only a clock that is ahead can be seen: a record that is behind may just be old. Kafka's answers carry no
  // time of the broker, except in records with LogAppendTime.
  void Clock() {
    const bool by_broker = input_.config.contains("message.timestamp.type") &&
                           input_.config.at("message.timestamp.type") == "LogAppendTime";
    if (sample_.times.MostAreWrong()) return;
    const absl::Duration ahead = sample_.newest - now_;
    if (ahead <= kMostAhead) {
      return Add(Severity::kOk, "clock", "has no timestamp ahead of this machine's clock", "");
    }
    Add(Severity::kWarning, "clock",
        absl::StrCat("has a record that is ", DurationText(ahead),
                     " ahead of this machine's clock, by the clock of ",
                     by_broker ? "the broker" : "its producer"),
        "set the clocks by NTP; many records ahead of the clock shorten the horizon of others");
  }

  // Whether the log still has what a restart needs, whatever deleted it.
  void Reach() {
    bool starts = true;  // all partitions
    for (const LogSample::Partition& partition : sample_.partitions) {
      starts = starts && !partition.is_stopped;
      if (partition.is_stopped) continue;
      // A restart reads from the horizon before the next record to judge.
      const absl::Duration needed = options_.stage.horizon + partition.lag;
      if (partition.is_planned || partition.start == 0 || partition.first_record <= now_ - needed) continue;
      return Add(Severity::kWarning, "reach",
                 absl::StrCat("begins at offset ", partition.start, " in partition ", partition.partition,
                              ", which is ", DurationText(now_ - partition.first_record),
                              " ago and less than ", Needed(partition.lag),
                              ": after a restart older ids are not known, and their retries pass"),
                 "raise retention.ms and retention.bytes");
    }
    if (starts) Add(Severity::kOk, "reach", "holds all records that a restart replays", "");
  }

  void RetentionBytes() {
    const int64_t limit = input_.Number("retention.bytes", -1);
    if (limit < 0) {
      if (!input_.config.empty()) Add(Severity::kOk, "retention.bytes", "has no limit by size", "");
      return;
    }
    const double record = static_cast<double>(sample_.bytes) / static_cast<double>(sample_.records);
    double busiest = 0;  // the limit is one of each partition
    absl::Duration lag;
    for (const LogSample::Partition& partition : sample_.partitions) {
      busiest = std::max(busiest, partition.rate);
      lag = std::max(lag, partition.lag);
    }
    if (busiest * record <= 0) return;
    const absl::Duration kept = absl::Seconds(static_cast<double>(limit) / (busiest * record));
    const std::string what = absl::StrFormat(
        "keeps %s of a partition (retention.bytes), some %s of it at the present rate (more, if it is "
        "compressed)",
        FormatBytes(limit), DurationText(kept));
    const absl::Duration needed = options_.stage.horizon + lag;
    if (kept >= needed) return Add(Severity::kOk, "retention.bytes", what, "");
    Add(Severity::kWarning, "retention.bytes", absl::StrCat(what, ", less than ", Needed(lag)),
        absl::StrFormat("raise retention.bytes to %.0f",
                        1.5 * busiest * record * absl::ToDoubleSeconds(needed)));
  }

  // How far back the log must reach.
  std::string Needed(absl::Duration lag) const {
    const std::string horizon = absl::StrCat("the horizon of ", DurationText(options_.stage.horizon));
    if (lag == absl::ZeroDuration()) return horizon;
    return absl::StrCat(horizon, " and the lag of the group of ", DurationText(lag));
  }

  const DaemonOptions& options_;
  const TopicFacts& input_;
  const LogSample& sample_;
  const absl::Time now_;
  bool lacks_schemas_ = false;  // all that the sample names
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> ApplyLogRules(const DaemonOptions& options, const TopicFacts& input,
                                   const LogSample& sample, absl::Time now) {
  return LogRules(options, input, sample, now).Apply();
}

std::vector<Finding> ApplyRestartRules(const DaemonOptions& options,
                                       const std::vector<CommittedOffset>& committed, absl::Time now,
                                       LogSample& sample) {
  std::vector<Finding> findings;
  int64_t offsets = 0;
  int planned = 0;
  for (size_t i = 0; i < std::min(committed.size(), sample.partitions.size()); ++i) {
    LogSample::Partition& partition = sample.partitions[i];
    const auto metadata = CommitMetadata::Parse(committed[i].metadata);
    const int64_t next = committed[i].offset;
    if (!metadata.ok() || partition.start > next || partition.end < next) continue;
    RestoreFacts facts;
    facts.metadata = *metadata;
    facts.committed = next;
    facts.log_start = partition.start;
    facts.horizon = options.stage.horizon;
    facts.times = LogTimesOf(partition.first_record, now - partition.lag, now);
    const SnapshotOptions& snapshots = options.process.snapshots;
    const bool has_store = !snapshots.folder.empty() || !snapshots.topic.empty();
    const auto snapshot = SnapshotId::Parse(metadata->snapshot);
    if (has_store && snapshot) facts.snapshot = snapshot->offset;
    const RestorePlan plan = PlanRestore(facts);
    partition.is_planned = true;
    ++planned;
    offsets += facts.committed - plan.from;
    if (plan.source != RestoreSource::kLog || plan.missing.empty()) continue;
    findings.push_back({Severity::kWarning, "reach", absl::StrCat("partition ", options.input, "-", i),
                        absl::StrCat("has a short history: ", plan.missing,
                                     ": after a restart, retries of events before that pass"),
                        plan.remedy});
  }
  if (planned > 0) {
    findings.push_back({Severity::kOk, "restart", absl::StrCat("group ", options.process.group),
                        absl::StrCat("reads ", offsets, " offsets of ", Several(planned, "partition"),
                                     " again after a restart"),
                        ""});
  }
  return findings;
}

Finding ApplySizeRule(const ProcessOptions& process, const TopicFacts& output, const LogSample& sample) {
  const int64_t limit = output.max_batch_bytes();
  const std::string where = absl::StrCat("output topic ", output.name);
  const std::string what = absl::StrCat("takes up to ", limit, " bytes at once; the largest of the newest ",
                                        sample.records, " input records has ", sample.largest_bytes);
  if (sample.largest_bytes + kBatchHead <= limit) return {Severity::kOk, "record size", where, what, ""};
  return {Severity::kWarning, "record size", where,
          absl::StrCat(what, ": it is delivered only if compression makes it fit"),
          AlterTopic(process, output.name,
                     absl::StrCat("max.message.bytes=", sample.largest_bytes + kBatchHead))};
}

}  // namespace lethe
