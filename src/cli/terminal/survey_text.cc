#include "src/cli/terminal/survey_text.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "lethe/options.h"
#include "src/cli/terminal/json_text.h"
#include "src/cli/terminal/plain_text.h"
#include "src/engines/plan.h"
#include "src/pipeline/options/stage_options.h"
#include "src/text/format.h"

namespace lethe {
namespace {

constexpr int kColumns = 80;
constexpr int kBarColumns = 32;
constexpr double kNearlyAll = 0.999;
constexpr size_t kOneMinute = 3, kTenMinutes = 4;  // among kHorizons
static_assert(kHorizons[kOneMinute] == absl::Minutes(1) && kHorizons[kTenMinutes] == absl::Minutes(10));
// An id with more records than this share is named.
constexpr double kHeavy = 0.01;
// A share of lists to speak of.
constexpr double kNotable = 0.01;
constexpr char kWrongTimesRemedy[] = "Have the producers give Kafka its milliseconds.";

// As people say it, and as a flag takes it.
constexpr std::array<absl::string_view, kHorizons.size()> kHorizonNames = {
    "100 ms", "1 s", "10 s", "1 min", "10 min", "1 h", "6 h", "24 h", "7 days", "30 days"};

std::string FlagText(absl::Duration horizon) {
  const int64_t ms = absl::ToInt64Milliseconds(horizon);
  if (ms % 86'400'000 == 0 && ms > 86'400'000) return absl::StrCat(ms / 86'400'000, "d");
  if (ms % 3'600'000 == 0) return absl::StrCat(ms / 3'600'000, "h");
  if (ms % 60'000 == 0) return absl::StrCat(ms / 60'000, "m");
  return ms % 1000 == 0 ? absl::StrCat(ms / 1000, "s") : absl::StrCat(ms, "ms");
}

// Two units at most: "1 h 22 min".
std::string Span(absl::Duration duration) {
  const int64_t s = absl::ToInt64Seconds(duration);
  if (duration < absl::Seconds(10)) return absl::StrFormat("%.2g s", absl::ToDoubleSeconds(duration));
  if (s < 60) return absl::StrCat(s, " s");
  if (s < 3600) return absl::StrCat(s / 60, " min ", s % 60, " s");
  if (s < 86400) return absl::StrCat(s / 3600, " h ", s % 3600 / 60, " min");
  return absl::StrCat(s / 86400, " d ", s % 86400 / 3600, " h");
}

// Not rounded up to all, nor down to nothing.
std::string Percent(double share) {
  if (share == 1) return "100 %";
  if (share > 0 && share < 0.0001) return "<0.01 %";
  if (share < 1 && share > 0.9999) return ">99.99 %";
  return absl::StrFormat("%.*f %%", share >= 0.1 && (share < 0.9995 || share >= 1) ? 1 : 2, 100 * share);
}

std::string Share(const Estimate& share) {
  if (share.margin == 0) return Percent(share.value);
  const double margin = std::max(0.01, 100 * share.margin);
  return absl::StrFormat("%s \u00B1 %.*f", Percent(share.value), margin < 0.095 ? 2 : 1, margin);
}

std::string Count(double value) { return FormatCount(std::llround(value)); }
std::string Rate(double rate) { return rate < 10 ? absl::StrFormat("%.1f", rate) : Count(rate); }

double ShareOf(double part, int64_t whole) { return whole == 0 ? 0 : part / static_cast<double>(whole); }

// For a shell.
std::string Quoted(const std::string& text) {
  const bool is_plain = std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           absl::string_view("_@%+=:,./-").find(c) != absl::string_view::npos;
  });
  // A name from a record may contain control characters.
  if (Printable(text) != text) {
    return absl::StrCat("$'", Printable(absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}})), "'");
  }
  return is_plain && !text.empty() ? text
                                   : absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string Place(const Sighting& sighting) {
  return absl::StrCat("partition ", sighting.partition, " offset ", sighting.offset);
}

// What can be said of a survey, part by part.
class Writer {
 public:
  Writer(const SurveyText& text, const TextStyle& style, std::ostream& out)
      : text_(text), report_(text.report), style_(style), out_(out) {}

  void Write() {
    WriteHead();
    if (report_.records == 0) return;
    WriteKind();
    WriteFrames();
    if (!text_.id_was_given) WriteCandidates();
    const IdCandidate& best = report_.candidates.front();
    WriteDuplicates(best);
    if (best.figures.copies.value > 0 && report_.wrong_times.empty()) WriteLateness(best.figures);
    WriteNotes(best);
    WriteNext(best);
  }

 private:
  void WriteHead();
  void WriteKind();
  void WriteFrames();
  void WriteCandidates();
  void WriteDuplicates(const IdCandidate& candidate);
  void WriteUnusable(const IdCandidate& candidate);
  void WriteLateness(const IdFigures& figures);
  void WriteCaught(const IdFigures& figures, size_t last);
  void WriteLists();
  void WriteNotes(const IdCandidate& candidate);
  void WriteNext(const IdCandidate& candidate);

  void Heading(absl::string_view heading) { out_ << "\n" << style_.Bold(heading) << "\n"; }
  void Command(const std::vector<std::string>& parts);
  // One paragraph, broken between words, with `first` before it.
  void Paragraph(absl::string_view text, absl::string_view first = "", size_t indent = 0);
  void Figure(absl::string_view name, const std::string& count, const std::string& share,
              absl::string_view of) {
    out_ << absl::StreamFormat("  %-38s%13s  %s of %s\n", name, count, share, of);
  }

  const SurveyText& text_;
  const SurveyReport& report_;
  const TextStyle& style_;
  std::ostream& out_;
};

void Writer::Paragraph(absl::string_view text, absl::string_view first, size_t indent) {
  // `first` is as wide as the indent, colours apart.
  out_ << (first.empty() ? std::string(indent, ' ') : std::string(first))
       << Wrapped(Printable(text), kColumns - 1, static_cast<int>(indent)) << "\n";
}

void Writer::WriteHead() {
  const std::string in_topic = FormatCount(text_.in_topic);
  // Kafka counts offsets, and some have no record: the markers of transactions, what compaction removed.
  const bool is_all = text_.to_read >= text_.in_topic;
  const char* const counted = is_all && report_.records != text_.in_topic ? " offsets; " : " records; ";
  std::string read =
      absl::StrCat(is_all ? "all " : "the newest ", FormatCount(report_.records),
                   is_all && report_.records != text_.in_topic ? " records were read" : " were read");
  if (!text_.is_whole) {
    read = absl::StrCat("ended early: ", FormatCount(report_.records), " of the newest ",
                        FormatCount(text_.to_read), " were read");
  }
  out_ << style_.Bold(text_.input) << "\n";
  Paragraph(absl::StrCat(Several(text_.partitions, "partition"), ", ", in_topic, counted, read, "."), "", 2);
  if (report_.records == 0) {
    Paragraph(text_.in_topic == 0 ? "The topic is empty."
                                  : "No record is in the requested part: read more of the topic, with "
                                    "--records all or a longer --last.",
              "", 2);
    return;
  }
  if (!report_.wrong_times.empty()) {
    Paragraph(absl::StrCat("The timestamps are wrong, so rates and horizons are unknown: as milliseconds ",
                           report_.wrong_times, ". ", kWrongTimesRemedy),
              absl::StrCat("  ", style_.Yellow("!"), " "), 4);
    return;
  }
  if (report_.begin == absl::InfinitePast()) {
    Paragraph("No record has a timestamp, so rates and horizons are unknown.", "", 2);
    return;
  }
  const absl::TimeZone utc = absl::UTCTimeZone();
  const bool same_day = absl::ToCivilDay(report_.begin, utc) == absl::ToCivilDay(report_.end, utc);
  Paragraph(
      absl::StrCat(absl::FormatTime("%Y-%m-%d %H:%M:%S", report_.begin, utc), " to ",
                   absl::FormatTime(same_day ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", report_.end, utc), " UTC, ",
                   Span(report_.end - report_.begin),
                   report_.rate > 0 ? absl::StrCat("; ", Rate(report_.rate), " records a second") : "", "."),
      "", 2);
}

// What the records are, as far as it is known of all their kind.
void Writer::WriteKind() {
  if (report_.tombstones > 0) {
    Paragraph(absl::StrCat(FormatCount(report_.tombstones),
                           " records are tombstones: they have no value, and no id in one."),
              "", 2);
  }
  if (!report_.envelope.empty()) Paragraph(absl::StrCat("Recognized: ", report_.envelope, "."), "", 2);
}

void Writer::WriteFrames() {
  const RegistryFrames& frames = report_.frames;
  const bool in_values = frames.value_share() >= RegistryFrames::kNotable;
  const bool in_keys = frames.key_share() >= RegistryFrames::kNotable;
  if (!in_values && !in_keys) return;
  // "The values", or "60 % of the values".
  const auto share = [](bool is_all, double of, const char* what) {
    return is_all ? absl::StrCat("The ", what) : absl::StrCat(Percent(of), " of the ", what);
  };
  Heading("Schema registry");
  const std::string mark = absl::StrCat("  ", style_.Yellow("!"), " ");
  if (in_values) {
    Paragraph(absl::StrCat(share(frames.in_values(), frames.value_share(), "values"), " begin with ",
                           FrameText(frames.value_schema()),
                           ": Avro, Protobuf or JSON Schema. --id json: does not read them: ",
                           kFramedValuesRemedy, "."),
              mark, 4);
    if (WantsRegistry(text_)) {
      Paragraph(
          "Survey again with --schema-registry URL: it then finds the fields of Avro and Protobuf by name.",
          mark, 4);
    }
  }
  if (in_keys) {
    Paragraph(absl::StrCat(share(frames.in_keys(), frames.key_share(), "keys"), " begin with ",
                           FrameText(frames.key_schema()), ". With --id key ", kFrameEffect, ": ",
                           kFramedKeysRemedy, "."),
              mark, 4);
  }
}

void Writer::WriteCandidates() {
  Heading("Where the id is");
  out_ << style_.Dim(absl::StrFormat("    %-40s%11s%11s%11s", "--id", "present", "repeated", "differing"))
       << "\n";
  for (const IdCandidate& candidate : report_.candidates) {
    const IdFigures& figures = candidate.figures;
    const std::string mark = candidate.quality == IdQuality::kGood       ? style_.Green("+")
                             : candidate.quality == IdQuality::kDoubtful ? style_.Yellow("?")
                                                                         : style_.Red("-");
    const std::string id = Printable(candidate.id.ToString());
    const bool is_best = &candidate == &report_.candidates.front();
    out_ << "  " << mark << " " << (is_best ? style_.Bold(id) : id);
    if (id.size() > 39)
      out_ << "\n    " << std::string(40, ' ');
    else
      out_ << std::string(40 - id.size(), ' ');
    out_ << absl::StreamFormat("%11s%11s%11s\n", Percent(candidate.present_share),
                               Percent(ShareOf(figures.copies.value, report_.records)),
                               Percent(ShareOf(figures.changed.value, report_.records)));
    Paragraph(candidate.remark, "", 6);
  }
  Paragraph(
      "present: of the records with a value; repeated: an earlier record has the same; "
      "differing: and another key, value or header (but for tracing headers). "
      "An id is present in every record, and differing in none.",
      "", 2);
}

void Writer::WriteDuplicates(const IdCandidate& candidate) {
  const IdFigures& figures = candidate.figures;
  Heading(absl::StrCat("Duplicates by --id ", Printable(candidate.id.ToString())));
  Estimate share = {ShareOf(figures.copies.value, report_.records),
                    ShareOf(figures.copies.margin, report_.records)};
  Figure("copies of an earlier record", Count(figures.copies.value), Share(share), "records");
  if (figures.copies.value > 0) {
    Figure("  that differ from the first one", Count(figures.changed.value), Share(figures.changed_share),
           "copies");
    Figure("  in another partition than the first", Count(figures.elsewhere.value),
           Share(figures.elsewhere_share), "copies");
  }
  const auto some = [&](const char* what, int64_t records) {
    if (records == 0) return;
    Figure(what, FormatCount(records), Percent(ShareOf(static_cast<double>(records), report_.records)),
           "records");
  };
  some("ids from a later place than the first", candidate.later_place);
  some("ids without an optional part", candidate.partial);
  const int64_t unusable = candidate.missing + candidate.malformed;
  Figure("records without a usable id", FormatCount(unusable),
         Percent(ShareOf(static_cast<double>(unusable), report_.records)), "records");
  if (candidate.tombstones > 0) {
    Figure("  of them tombstones", FormatCount(candidate.tombstones),
           Percent(ShareOf(static_cast<double>(candidate.tombstones), unusable)), "these");
  }
  for (const IdCandidate::Unusable& record : candidate.unusable) {
    Paragraph(absl::StrCat("partition ", record.partition, " offset ", record.offset, ": ", record.reason),
              "", 6);
  }
  if (figures.sampled_share < 1) {
    Paragraph(absl::StrFormat("Estimated from 1 in %.0f of the ids, which is what --memory holds, each with "
                              "all its records; 95 of 100 such surveys are within the margins.",
                              1 / figures.sampled_share),
              "", 2);
  }
}

void Writer::WriteLateness(const IdFigures& figures) {
  Heading("How late the copies come after the first");
  size_t last = 0;
  while (last + 1 < kHorizons.size() && figures.caught[last].value < figures.copies.value - 0.5) ++last;
  const double beyond = figures.copies.value - figures.caught.back().value;
  std::vector<std::pair<std::string, double>> rows;
  double most = beyond;
  for (size_t i = 0; i <= last; ++i) {
    const double in_row = figures.caught[i].value - (i == 0 ? 0 : figures.caught[i - 1].value);
    rows.emplace_back(absl::StrCat("up to ", kHorizonNames[i]), in_row);
    most = std::max(most, in_row);
  }
  out_ << style_.Dim(absl::StrFormat("  %*s%14s%14s", 16 + kBarColumns, "", "copies", "so far")) << "\n";
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto& [name, copies] = rows[i];
    const std::string bar = style_.Bar(copies / most, kBarColumns);
    const size_t columns = style_.blocks ? bar.size() / 3 : bar.size();
    out_ << absl::StreamFormat("  %-16s", name) << style_.Cyan(bar) << std::string(kBarColumns - columns, ' ')
         << absl::StreamFormat("%14s%14s\n", Count(copies), Percent(figures.caught_share[i].value));
  }
  if (beyond >= 0.5) {
    out_ << absl::StreamFormat("  %-16s", "later")
         << absl::StreamFormat("%*s%14s\n", kBarColumns, "", Count(beyond));
  }
  WriteCaught(figures, last);
}

void Writer::WriteCaught(const IdFigures& figures, size_t last) {
  size_t nearly = 0;
  while (nearly < last && figures.caught_share[nearly].value < 0.99) ++nearly;
  std::string text = absl::StrCat("A horizon of ", kHorizonNames[nearly], " would have caught ",
                                  Share(figures.caught_share[nearly]), " of the copies");
  if (last != nearly) {
    absl::StrAppend(&text, ", one of ", kHorizonNames[last], " ", Share(figures.caught_share[last]));
  }
  absl::StrAppend(&text, "; the latest came ", Span(figures.latest), " after the first.");
  Paragraph(text, "", 2);
}

void Writer::WriteLists() {
  const SurveyReport::Lists& lists = report_.lists;
  if (ShareOf(static_cast<double>(lists.records), lists.examined) < kNotable) return;
  Heading("Lists of events");
  Paragraph(absl::StrCat(
                FormatCount(lists.records), " of the first ", FormatCount(lists.examined), " records hold ",
                FormatCount(lists.events), " events in lists",
                lists.pointer.empty() ? "" : absl::StrCat(" at ", lists.pointer),
                ": lethe judges a record as a whole, by one id. An event that is sent again in another list "
                "passes, and with the id of one event of the list the others are dropped with it. Let the "
                "producers, or a step before lethe, write a record for each event."),
            absl::StrCat("  ", style_.Yellow("!"), " "), 4);
}

void Writer::WriteNotes(const IdCandidate& candidate) {
  const IdFigures& figures = candidate.figures;
  std::vector<std::string> notes;
  WriteLists();
  if (candidate.quality == IdQuality::kPoor) {
    Heading("Note");
    Paragraph(absl::StrCat("This is not an id: ", candidate.remark, "."),
              absl::StrCat("  ", style_.Yellow("!"), " "), 4);
    return;
  }
  if (candidate.quality == IdQuality::kDoubtful) {
    notes.push_back(absl::StrCat("The id is doubtful: ", candidate.remark, "."));
  }
  if (!figures.changed_examples.empty()) {
    const CopyExample& example = figures.changed_examples.front();
    notes.push_back(absl::StrCat("Copies with another payload are dropped like the others. Look at ",
                                 Place(example.first), " and ", Place(example.copy),
                                 ": if they are two events, this is not an id; if they are one event that "
                                 "was sent again with a new time in it, all is well."));
  }
  if (!figures.elsewhere_examples.empty()) {
    const CopyExample& example = figures.elsewhere_examples.front();
    notes.push_back(absl::StrCat(
        "lethe finds a copy only in its first record's partition, and some are elsewhere (",
        Place(example.first), " and ", Place(example.copy),
        "): let the producer key its records by the id, or by a field that is equal for all copies, "
        "or run lethe with --scope topic, as below."));
  }
  if (figures.most > 10 && ShareOf(static_cast<double>(figures.most), report_.records) > kHeavy) {
    notes.push_back(absl::StrCat("One id is in ", FormatCount(figures.most), " records, first at ",
                                 Place(figures.most_first),
                                 ": a constant, or a default, would be dropped as a duplicate of itself."));
  }
  const absl::Duration span = report_.end - report_.begin;
  const std::optional<absl::Duration> horizon = ProposedHorizon(report_, figures);
  if (horizon && *horizon > span && report_.rate > 0 && text_.to_read < text_.in_topic) {
    notes.push_back(absl::StrCat("What was read spans ", Span(span),
                                 ", so later copies cannot show: --records all or --last ",
                                 FlagText(std::max(*horizon, absl::Hours(24))), " looks further back."));
  }
  if (report_.without_time > 0) {
    notes.push_back(absl::StrCat(FormatCount(report_.without_time), " records have no timestamp."));
  }
  if (notes.empty()) return;
  Heading("Note");
  for (const std::string& note : notes) Paragraph(note, absl::StrCat("  ", style_.Yellow("!"), " "), 4);
}

void Writer::WriteNext(const IdCandidate& candidate) {
  const IdFigures& figures = candidate.figures;
  const std::optional<absl::Duration> horizon = ProposedHorizon(report_, figures);
  const std::string flag = FlagText(horizon.value_or(absl::Hours(24)));
  Heading("Next");
  if (candidate.quality == IdQuality::kPoor) {
    Paragraph(text_.id_was_given ? "Without --id, lethe survey looks for one."
                                 : "No examined field is an id. If you know one, name it with --id.",
              "", 2);
    return;
  }
  Paragraph(!report_.wrong_times.empty()
                ? std::string("Correct the timestamps first. 24h is the default horizon.")
            : horizon ? absl::StrCat("To begin with, a horizon of ", flag,
                                     ": longer than needed here, because a short survey misses late copies.")
                      : std::string("No copy was seen here; 24h is the default horizon."),
            "", 2);
  const double unique = report_.rate * (1 - ShareOf(figures.copies.value, report_.records));
  if (report_.rate > 0) {
    Command({"lethe plan", absl::StrFormat("--rate %.*f", unique < 10 ? 2 : 0, unique),
             absl::StrCat("--horizon ", flag), "--fpp 1e-6"});
  }
  const std::string output = Quoted(absl::StrCat(text_.input, "-unique"));
  TopicFacts created = TopicLike(text_.topic, output);
  created.partitions = text_.partitions;
  Command(CreateCommand(Quoted(text_.brokers), created));
  std::vector<std::string> run = {"lethe run",
                                  absl::StrCat("--brokers ", Quoted(text_.brokers)),
                                  absl::StrCat("--input ", Quoted(text_.input)),
                                  absl::StrCat("--output ", output),
                                  absl::StrCat("--id ", Quoted(candidate.id.ToString())),
                                  absl::StrCat("--horizon ", flag)};
  if (figures.elsewhere.value > 0) run.push_back("--scope topic");
  for (const auto& [name, value] : text_.properties) {
    run.push_back(absl::StrCat("--kafka ", Quoted(absl::StrCat(name, "=", value))));
  }
  Command(run);
  if (text_.secrets.empty()) return;
  Paragraph(absl::StrCat("Secrets are left out above: add ", absl::StrJoin(text_.secrets, ", "),
                         " under `kafka:` in the configuration file, as ${file:PATH} or ${VARIABLE}."),
            "", 2);
}

// For a shell, continued on the next line where it is too long for one.
void Writer::Command(const std::vector<std::string>& parts) {
  std::string line = "   ";
  for (const std::string& part : parts) {
    if (line.size() + 1 + part.size() + 2 > kColumns && line.size() > 8) {
      out_ << style_.Green(absl::StrCat(line, " \\")) << "\n";
      line = "       ";
    }
    absl::StrAppend(&line, " ", part);
  }
  out_ << style_.Green(line) << "\n";
}

}  // namespace

std::optional<absl::Duration> ProposedHorizon(const SurveyReport& report, const IdFigures& figures) {
  if (figures.copies.value == 0 || !report.wrong_times.empty()) return std::nullopt;
  size_t needed = 0;
  while (needed + 1 < kHorizons.size() && figures.caught_share[needed].value < kNearlyAll) ++needed;
  return kHorizons[std::max(kTenMinutes, std::min(needed + 1, kHorizons.size() - 1))];
}

bool WantsRegistry(const SurveyText& text) {
  const std::vector<IdCandidate>& ids = text.report.candidates;
  if (text.has_registry || text.report.frames.value_share() < RegistryFrames::kNotable) return false;
  const bool is_json = !ids.empty() && ids.front().quality == IdQuality::kGood &&
                       ids.front().id.fields.front().kind == Field::Kind::kFramedJson;
  return !is_json;
}

void WriteSurvey(const SurveyText& text, const TextStyle& style, std::ostream& out) {
  Writer(text, style, out).Write();
}

namespace {

// Unique events a second, for the memory of a horizon. The records of a whole topic that is younger than the
// horizon may be a burst: that many are known, and no more.
double UniqueRate(const SurveyText& text, double copies, absl::Duration horizon) {
  const SurveyReport& report = text.report;
  const double rate = report.rate * (1 - copies);
  if (text.to_read < text.in_topic || report.end - report.begin >= horizon) return rate;
  const absl::Duration age = std::max(absl::Now() - report.begin, report.end - report.begin);
  const double seconds = absl::ToDoubleSeconds(std::clamp(age, absl::Seconds(1), horizon));
  return std::min(rate, static_cast<double>(report.records) * (1 - copies) / seconds);
}

}  // namespace

void WriteSurveys(const std::vector<SurveyedTopic>& topics, const TextStyle& style, std::ostream& out) {
  constexpr size_t kLeastColumns = 5;
  constexpr double kLeastRate = 0.01;  // of a topic whose records have one time
  constexpr int64_t kLeastMiB = 64;
  int64_t memory_bytes = 0;
  size_t columns = kLeastColumns;
  for (const SurveyedTopic& topic : topics) columns = std::max(columns, topic.input.size());
  const int width = static_cast<int>(columns);
  out << style.Bold(absl::StrFormat("%-*s  %11s  %15s  %s", width, "Topic", "Records", "Copies", "Best id"))
      << "\n";
  std::string list;
  std::string left_out;
  for (const SurveyedTopic& topic : topics) {
    const bool has_records = topic.text && topic.text->report.records > 0;
    std::string why = topic.error.empty() ? "" : absl::StrCat("error: ", Printable(topic.error));
    if (has_records && !topic.text->report.wrong_times.empty()) {
      absl::StrAppend(&why, why.empty() ? "" : "; ", "wrong timestamps: ", topic.text->report.wrong_times);
    }
    if (!has_records) {
      out << absl::StreamFormat("%-*s  %11s  %15s  %s\n", width, topic.input, topic.text ? "0" : "-", "-",
                                why);
      absl::StrAppend(&left_out, "  # ", topic.input, why.empty() ? ": no records" : ": not read", "\n");
      continue;
    }
    const SurveyReport& report = topic.text->report;
    const IdCandidate& best = report.candidates.front();
    const IdFigures& figures = best.figures;
    const auto records = static_cast<double>(report.records);
    const Estimate share = {figures.copies.value / records, figures.copies.margin / records};
    const std::string id = best.id.ToString();
    const bool is_usable = best.quality != IdQuality::kPoor;
    // The sign of a margin has two bytes, and one column.
    const int share_width = share.margin == 0 ? 15 : 16;
    out << absl::StreamFormat("%-*s  %11s  %*s  %s%s%s\n", width, topic.input, Count(records), share_width,
                              is_usable ? Share(share) : "-", Printable(id),
                              is_usable ? "" : " (poor: name another with --id)",
                              why.empty() ? "" : absl::StrCat("; ", why));
    if (!is_usable) {
      absl::StrAppend(&left_out, "  # ", topic.input, ": no id found\n");
    } else {
      const absl::Duration horizon = ProposedHorizon(report, figures).value_or(absl::Hours(24));
      const bool is_scattered = figures.elsewhere.value > 0;
      absl::StrAppend(&list, "  - {input: ", topic.input, ", output: ", topic.input,
                      "-unique, id: ", JsonString(id), ", horizon: ", FlagText(horizon),
                      is_scattered ? ", scope: topic" : "", "}\n");
      PlanRequest request;
      const absl::Duration held = is_scattered ? horizon + 2 * LeadOf(horizon) : horizon;
      request.horizon = held;
      request.rate = std::max(UniqueRate(*topic.text, share.value, held), kLeastRate);
      request.target_fpp = StageOptions().target_fpp;
      if (const auto plan = MakePlan(request); plan.ok()) memory_bytes += plan->memory_bytes;
    }
  }
  if (list.empty()) return;
  constexpr int64_t kMiB = int64_t{1} << 20;
  memory_bytes = std::max((memory_bytes + kMiB - 1) / kMiB, kLeastMiB) * kMiB;
  out << "\n"
      << style.Bold("For lethe.yaml") << "\nmemory: " << BytesSetting(memory_bytes)
      << "  # for all of them, by their rates\ntopics:\n"
      << list << left_out;
}

}  // namespace lethe
