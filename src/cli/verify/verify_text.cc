#include "src/cli/verify/verify_text.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "src/cli/terminal/json_text.h"
#include "src/cli/terminal/plain_text.h"
#include "src/pipeline/options/kafka_commands.h"
#include "src/pipeline/options/stage_options.h"
#include "src/text/format.h"

namespace lethe {
namespace {

using Outcome = VerifyReport::Outcome;

constexpr int kVerifyColumns = 80;

struct KindText {
  VerifyKind kind;
  absl::string_view name;
  absl::string_view meaning;  // if there is one
};
constexpr KindText kKindTexts[] = {
    {VerifyKind::kLost, "lost", "In the input, and neither they nor a copy of them are in the output."},
    {VerifyKind::kRepeated, "repeated", "In the output again within the horizon."},
    {VerifyKind::kForeign, "foreign", "In the output, and not in this partition of the input."},
    {VerifyKind::kChanged, "changed", "Key, value, headers or time are not those of the input."},
    {VerifyKind::kOutOfOrder, "out of order", "In the output behind a record that follows in the input."},
    {VerifyKind::kInSeveralPartitions, "in several partitions",
     "Ids that passed in another partition, too, within the horizon."},
    {VerifyKind::kUndeliverable, "undeliverable",
     "Not in the output, which rejects them: on_undeliverable. Raise its max.message.bytes, or divert them."},
    {VerifyKind::kUndecided, "undecided", "The logs do not have all that tells."},
};

std::string UtcText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", time, absl::UTCTimeZone());
}

std::string InputsOf(const VerifiedTopic& topic) { return absl::StrJoin(topic.options.inputs(), ", "); }

std::pair<std::string, int32_t> LogOf(const VerifiedTopic& topic, const VerifyExample& example) {
  if (!example.is_input) return {topic.options.output, example.partition};
  const VerifiedInput& input = topic.inputs[static_cast<size_t>(example.partition)];
  return {input.topic, input.partition};
}

std::string CommandFor(const VerifiedTopic& topic, const VerifyExample& example) {
  const auto [log, partition] = LogOf(topic, example);
  return absl::StrCat("kafka-console-consumer.sh --bootstrap-server ", topic.options.process.brokers,
                      topic.options.process.properties.empty() ? "" : " --consumer.config client.properties",
                      " --topic ", log, " --partition ", partition, " --offset ", example.offset,
                      " --max-messages 1 --isolation-level read_committed --property print.key=true "
                      "--property print.headers=true --property print.timestamp=true");
}

// Why it does not hold, where the table of findings does not say.
std::vector<std::string> ReasonsOf(const VerifyReport& report) {
  std::vector<std::string> reasons;
  if (report.lost_skipped > 0) {
    reasons.push_back(
        absl::StrCat("a reset of the group's offset skipped ", Several(report.lost_skipped, "record")));
  }
  if (const int64_t ids = report.count(VerifyKind::kInSeveralPartitions); ids > 0) {
    reasons.push_back(absl::StrCat(Several(ids, "id"), " passed in several partitions"));
  }
  if (report.lacks_ids()) {
    reasons.push_back(absl::StrCat(FormatCount(report.without_id + report.malformed), " of ",
                                   FormatCount(report.input_records),
                                   " records have no id, and were not deduplicated"));
  }
  if (report.has_doubtful_ids()) {
    reasons.push_back(absl::StrCat(FormatCount(report.differing),
                                   " dropped records differ from the record of their id that passed"));
  }
  return reasons;
}

// Ends the headline.
std::string Headline(absl::string_view verdict, const VerifyReport& report) {
  const std::vector<std::string> reasons = ReasonsOf(report);
  return absl::StrCat(verdict, reasons.empty() ? "" : ": ", absl::StrJoin(reasons, "; "), ".");
}

// What explains the findings, and what to do.
std::vector<std::string> NotesOf(const VerifiedTopic& topic) {
  std::vector<std::string> notes = topic.notes;
  const VerifyReport& report = topic.report;
  const double fpp = topic.options.stage.target_fpp;
  if (report.lost_skipped > 0) {
    const std::string input = LogOf(topic, report.examples[static_cast<size_t>(VerifyKind::kLost)][0]).first;
    const ProcessOptions& process = topic.options.scope == Scope::kTopic
                                        ? RoutingOptions(topic.options, input).process
                                        : topic.options.process;
    notes.push_back(absl::StrCat(
        FormatCount(report.lost_skipped),
        " lost records lie between the last one that the group judged and the offset that it was set to. "
        "Setting it back deduplicates them, and writes again what came to the output since the reset: ",
        ResetOffsets(process, process.group, {absl::StrCat(input, ":PARTITION")}, "--to-offset OFFSET")));
  }
  if (report.count(VerifyKind::kInSeveralPartitions) > 0) {
    notes.push_back(absl::StrCat(
        FormatCount(report.count(VerifyKind::kInSeveralPartitions)), " ids passed in several partitions, ",
        FormatCount(report.equal_in_several_partitions),
        " of them with equal key and value. scope: partition finds copies in their own partition only. Let "
        "the producers use the id as key, or set scope: topic."));
  }
  if (report.lacks_ids()) {
    notes.push_back(absl::StrCat("More than a tenth of the records has no id at ",
                                 topic.options.record.id.ToString(),
                                 ". If they should have one, correct id: lethe survey proposes one."));
  }
  if (report.has_doubtful_ids()) {
    notes.push_back(absl::StrCat(
        FormatCount(report.differing),
        " dropped records differ in key or value from the one of their id that passed, ",
        FormatCount(report.with_shared_id), " of them have an id that ",
        FormatCount(VerifyReport::kManyDiffering),
        " or more share. If they are different events, they are lost: correct id, or its producer "
        "(on_suspicious_id). Retries may differ in their sending time."));
  }
  if (report.passed_after_horizon > 0) {
    notes.push_back(absl::StrCat(FormatCount(report.passed_after_horizon),
                                 " copies passed, since they came more than the horizon after the record of "
                                 "their id that passed before. A longer horizon drops them."));
  }
  if (const int64_t lost = report.lost_by_id(); lost > 0) {
    const int64_t allowed = report.AllowedLosses(fpp);
    notes.push_back(absl::StrFormat(
        "Of the events with an id %s lost. "
        "False positives at the target fpp = %g explain up to %s (99 runs in 100): %s.",
        Several(lost, "record") + (lost == 1 ? " is" : " are"), fpp, FormatCount(allowed),
        lost <= allowed ? "the number is possible. A lower fpp, or on_duplicate: divert, loses fewer"
                        : "they do not explain this number"));
  }
  if (report.written_twice > 0) {
    notes.push_back(absl::StrCat(
        FormatCount(report.written_twice),
        " records are more often in the output than in the input. lethe writes no record twice with "
        "exactly_once: another group or another program writes to ",
        topic.options.output, ", or the group's offsets were reset. Stop the other one: ",
        KafkaCommand("kafka-consumer-groups.sh", topic.options.process, "--list"), " names the groups."));
  } else if (report.count(VerifyKind::kRepeated) > 0) {
    notes.push_back(
        "Copies pass within the horizon if history was short (lethe_short_history), memory was full "
        "(lethe_filter_window_seconds), or keys have moved (lethe_keys_moved): see the runbook.");
  }
  if (report.count(VerifyKind::kUndecided) > 0) {
    for (const auto& [is_cut, log] : {std::pair(topic.is_input_cut, InputsOf(topic)),
                                      std::pair(topic.is_output_cut, topic.options.output)}) {
      if (!is_cut) continue;
      notes.push_back(absl::StrCat("Retention has deleted records of ", log,
                                   " that tell. Raise its retention.ms above the horizon and the stretch, or "
                                   "verify a later stretch (--since)."));
    }
  }
  if (report.not_yet > 0) {
    notes.push_back(absl::StrCat(FormatCount(report.not_yet), " records wait for lethe: they are no loss."));
  }
  if (report.before_begin > 0) {
    notes.push_back(
        absl::StrCat(FormatCount(report.before_begin),
                     " records are from before the group's beginning, and neither they nor copies of them "
                     "are in the output."));
  }
  if (topic.aborted > 0) {
    notes.push_back(absl::StrCat("A reader without isolation.level=read_committed sees ",
                                 FormatCount(topic.aborted),
                                 " more records in the output, of aborted transactions: duplicates to it."));
  }
  if (topic.share < 1) {
    notes.push_back(
        absl::StrFormat("Of the ids %.2g %% were judged, chosen by a hash. --share 1 judges all, in "
                        "several passes; more --memory, in fewer.",
                        100 * topic.share));
  }
  if (topic.passes > 1 && topic.options.scope == Scope::kPartition) {
    notes.push_back("Order was compared among the ids of each pass.");
  }
  return notes;
}

std::string PlacesJson(const VerifiedTopic& topic, const std::vector<VerifyExample>& examples) {
  return absl::StrJoin(examples, ",", [&](std::string* json, const VerifyExample& example) {
    const auto [log, partition] = LogOf(topic, example);
    absl::StrAppend(json, "{\"topic\":", JsonString(log), ",\"partition\":", partition,
                    ",\"offset\":", example.offset, ",\"time_ms\":", example.time_ms);
    if (example.input_offset) absl::StrAppend(json, ",\"input_offset\":", *example.input_offset);
    absl::StrAppend(json, ",\"command\":", JsonString(CommandFor(topic, example)), "}");
  });
}

std::string TextsJson(const std::vector<std::string>& texts) {
  return absl::StrJoin(texts, ",", [](std::string* json, const std::string& text) {
    absl::StrAppend(json, JsonString(text));
  });
}

const char* OutcomeName(Outcome outcome) {
  return outcome == Outcome::kHolds ? "holds" : outcome == Outcome::kBroken ? "broken" : "undecided";
}

}  // namespace

int ExitCodeOf(const VerifiedTopic& topic) {
  if (!topic.status.ok()) return 2;
  const Outcome outcome = topic.outcome();
  return outcome == Outcome::kHolds ? 0 : outcome == Outcome::kBroken ? 1 : 3;
}

int ExitCodeOf(const std::vector<VerifiedTopic>& topics) {
  int worst = 0;
  for (const VerifiedTopic& topic : topics) {
    const int code = ExitCodeOf(topic);
    if (worst == 0 || (code != 0 && code < worst)) worst = code;
  }
  return worst;
}

void WriteVerified(const VerifiedTopic& topic, const TextStyle& style, std::ostream& out) {
  const VerifyReport& report = topic.report;
  const std::string name = Printable(absl::StrCat(InputsOf(topic), " -> ", topic.options.output, ": "));
  const auto paragraph = [&](absl::string_view text) {
    out << "  " << Wrapped(Printable(text), kVerifyColumns - 1, 2) << "\n";
  };
  out << name;
  if (!topic.status.ok()) {
    out << style.Red("not judged.") << "\n";
    return;
  }
  switch (topic.outcome()) {
    case Outcome::kHolds:
      out << style.Green(report.count(VerifyKind::kLost) == 0
                             ? "each event came through once."
                             : "as promised: each event came through once, but for false positives.");
      break;
    case Outcome::kBroken:
      out << style.Red(Headline("the output is not as promised", report));
      break;
    case Outcome::kUndecided:
      out << style.Yellow(Headline("undecided", report));
      break;
  }
  out << "\n";
  paragraph(
      absl::StrCat(topic.since == absl::InfinitePast() ? "all records"
                                                       : absl::StrCat("records since ", UtcText(topic.since)),
                   ", by ", topic.options.record.id.ToString(), " in each ",
                   topic.options.scope == Scope::kTopic ? "topic" : "partition", ", horizon ",
                   DurationText(topic.options.stage.horizon), topic.options.stage.renew ? " (renewed)" : ""));
  paragraph(absl::StrCat("read with the history: ", FormatCount(topic.input_read), " records of the input, ",
                         FormatCount(topic.output_read), " of the output, in ", Several(topic.passes, "pass"),
                         topic.passes == 1 ? "" : "es", "; share of the ids: ", topic.share));
  const auto row = [&](absl::string_view text, int64_t count) {
    out << absl::StreamFormat("  %-40s%19s\n", text, FormatCount(count));
  };
  out << "\n";
  row("records of the input", report.input_records);
  row("  passed", report.passed);
  row("  copies of them", report.copies);
  if (report.without_id > 0) row("  without an id", report.without_id);
  if (report.malformed > 0) row("  malformed", report.malformed);
  for (const KindText& text : kKindTexts) {
    const int64_t count = report.count(text.kind);
    if (count == 0 && text.kind >= VerifyKind::kUndeliverable) continue;
    const std::string line = absl::StrFormat("  %-40s%19s", text.name, FormatCount(count));
    out << (count == 0 || text.kind >= VerifyKind::kUndeliverable ? line : style.Red(line)) << "\n";
  }
  for (const KindText& text : kKindTexts) {
    const std::vector<VerifyExample>& examples = report.examples[static_cast<size_t>(text.kind)];
    if (examples.empty()) continue;
    const bool is_all = report.count(text.kind) == static_cast<int64_t>(examples.size());
    std::map<std::pair<std::string, int32_t>, std::vector<int64_t>> offsets;
    for (const VerifyExample& example : examples) offsets[LogOf(topic, example)].push_back(example.offset);
    std::string heading(text.name);
    heading.front() = static_cast<char>(absl::ascii_toupper(static_cast<unsigned char>(heading.front())));
    out << "\n" << style.Bold(heading) << "\n";
    paragraph(absl::StrCat(text.meaning, is_all ? "" : absl::StrCat(" The first ", examples.size(), ":")));
    for (const auto& [log, places] : offsets) {
      paragraph(absl::StrCat(log.first, "-", log.second, " offset ", absl::StrJoin(places, ", ")));
    }
    out << "  " << style.Green(Printable(CommandFor(topic, examples.front()))) << "\n";
  }
  const std::vector<std::string> notes = NotesOf(topic);
  if (!notes.empty()) out << "\n";
  for (const std::string& note : notes) paragraph(note);
}

void WriteVerifiedJson(const std::vector<VerifiedTopic>& topics, std::ostream& out) {
  out << "{\"topics\":[" << absl::StrJoin(topics, ",", [](std::string* json, const VerifiedTopic& topic) {
    const VerifyReport& report = topic.report;
    if (!topic.status.ok()) {
      absl::StrAppend(json, "{\"input\":", JsonString(InputsOf(topic)),
                      ",\"output\":", JsonString(topic.options.output),
                      ",\"error\":", JsonString(topic.status.message()), "}");
      return;
    }
    const std::string since =
        topic.since == absl::InfinitePast() ? "null" : absl::StrCat(absl::ToUnixMillis(topic.since));
    absl::StrAppend(
        json, "{\"input\":", JsonString(InputsOf(topic)), ",\"output\":", JsonString(topic.options.output),
        ",\"verdict\":\"", OutcomeName(topic.outcome()), "\",\"since_ms\":", since,
        ",\"share\":", topic.share, ",\"passes\":", topic.passes, ",\"input_read\":", topic.input_read,
        ",\"output_read\":", topic.output_read, ",\"input_records\":", report.input_records,
        ",\"output_records\":", report.output_records, ",\"passed\":", report.passed,
        ",\"copies\":", report.copies, ",\"late_copies\":", report.late,
        ",\"without_id\":", report.without_id, ",\"malformed\":", report.malformed,
        ",\"not_yet\":", report.not_yet, ",\"before_begin\":", report.before_begin,
        ",\"written_twice\":", report.written_twice, ",\"lost_without_id\":", report.lost_without_id,
        ",\"lost_skipped\":", report.lost_skipped,
        ",\"equal_in_several_partitions\":", report.equal_in_several_partitions,
        ",\"passed_after_horizon\":", report.passed_after_horizon, ",\"differing\":", report.differing,
        ",\"with_shared_id\":", report.with_shared_id, ",\"fpp\":", topic.options.stage.target_fpp,
        ",\"allowed_losses\":", report.AllowedLosses(topic.options.stage.target_fpp),
        ",\"aborted\":", topic.aborted, ",\"input_is_cut\":", topic.is_input_cut ? "true" : "false",
        ",\"output_is_cut\":", topic.is_output_cut ? "true" : "false");
    for (size_t kind = 0; kind < kVerifyKinds.size(); ++kind) {
      absl::StrAppend(json, ",\"", kVerifyKinds[kind], "\":{\"count\":", report.counts[kind], ",\"first\":[",
                      PlacesJson(topic, report.examples[kind]), "]}");
    }
    absl::StrAppend(json, ",\"reasons\":[", TextsJson(ReasonsOf(report)), "],\"notes\":[",
                    TextsJson(NotesOf(topic)), "]}");
  }) << "]}\n";
}

std::string VerifiedMetrics(const std::vector<VerifiedTopic>& topics, absl::Time now) {
  std::string found, result, share, time;
  for (const VerifiedTopic& topic : topics) {
    const std::string labels = absl::StrCat("group=", JsonString(topic.options.process.group),
                                            ",topic=", JsonString(InputsOf(topic)));
    absl::StrAppend(&result, "lethe_verify_result{", labels, "} ", ExitCodeOf(topic), "\n");
    absl::StrAppend(&time, "lethe_verify_timestamp_seconds{", labels, "} ", absl::ToUnixSeconds(now), "\n");
    if (!topic.status.ok()) continue;
    for (size_t kind = 0; kind < kVerifyKinds.size(); ++kind) {
      absl::StrAppend(&found, "lethe_verify_records{", labels, ",kind=\"", kVerifyKinds[kind], "\"} ",
                      topic.report.counts[kind], "\n");
    }
    absl::StrAppend(&share, "lethe_verify_share_ratio{", labels, "} ", topic.share, "\n");
  }
  return absl::StrCat(
      "# HELP lethe_verify_records Records that lethe verify found, by kind, in the judged share.\n"
      "# TYPE lethe_verify_records gauge\n",
      found,
      "# HELP lethe_verify_result 0: each event came through once; 1: the output is not as promised; 2: it "
      "could not be judged; 3: undecided.\n"
      "# TYPE lethe_verify_result gauge\n",
      result,
      "# HELP lethe_verify_share_ratio Share of the ids that was judged.\n"
      "# TYPE lethe_verify_share_ratio gauge\n",
      share,
      "# HELP lethe_verify_timestamp_seconds When lethe verify ended, in Unix seconds.\n"
      "# TYPE lethe_verify_timestamp_seconds gauge\n",
      time);
}

}  // namespace lethe
