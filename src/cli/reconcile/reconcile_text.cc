#include "src/cli/reconcile/reconcile_text.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "src/cli/terminal/json_text.h"
#include "src/cli/terminal/plain_text.h"
#include "src/text/format.h"

namespace lethe {
namespace {

constexpr int kColumns = 80;
constexpr int kBarColumns = 14;
constexpr size_t kMostPartitionsShown = 20;

std::string UtcText(int64_t ms) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::FromUnixMillis(ms), absl::UTCTimeZone());
}

std::string NameOf(const SideReport& side) {
  return Printable(absl::StrCat(side.facts.topic, " (cluster ", side.facts.cluster, ", ",
                                Several(side.facts.partitions, "partition"), ")"));
}

int64_t BeginOfBucket(const ReconcileAsk& window, size_t bucket) {
  return window.begin_ms + (window.end_ms - window.begin_ms) * static_cast<int64_t>(bucket) /
                               static_cast<int64_t>(SideReport::kBuckets);
}

class Writer {
 public:
  Writer(const ReconcileText& text, const TextStyle& style, std::ostream& out)
      : text_(text), style_(style), out_(out) {}

  void Write() {
    WriteHead();
    WriteCounts();
    if (text_.here.only + text_.there.only > 0) {
      WriteTimes();
      WritePartitions();
      WriteSamples("Only here", text_.here);
      WriteSamples("Only there", text_.there);
    }
    WriteNotes();
    WriteCosts();
  }

 private:
  void Heading(absl::string_view heading) { out_ << "\n" << style_.Bold(heading) << "\n"; }
  void Paragraph(absl::string_view text) {
    out_ << "  " << Wrapped(Printable(text), kColumns - 1, 2) << "\n";
  }
  void Row(absl::string_view name, const std::string& here, const std::string& there) {
    out_ << absl::StreamFormat("  %-38s%19s%20s\n", name, here, there);
  }
  void Counts(absl::string_view name, int64_t here, int64_t there) {
    Row(name, FormatCount(here), FormatCount(there));
  }
  void CountsIfAny(absl::string_view name, int64_t here, int64_t there) {
    if (here > 0 || there > 0) Counts(name, here, there);
  }
  void WriteHead();
  void WriteCounts();
  void WriteTimes();
  void WritePartitions();
  void WriteSamples(absl::string_view heading, const SideReport& side);
  void WriteNotes();
  void WriteCosts();

  const ReconcileText& text_;
  const TextStyle& style_;
  std::ostream& out_;
};

void Writer::WriteHead() {
  const bool was_equal = text_.here.only == 0 && text_.there.only == 0;
  const int64_t unsettled = text_.here.unsettled + text_.there.unsettled;
  out_ << (was_equal && unsettled > 0
               ? style_.Yellow(absl::StrCat("Nothing is missing so far; ", FormatCount(unsettled),
                                            unsettled == 1 ? " id at an edge" : " ids at the edges",
                                            " of the window ", unsettled == 1 ? "is" : "are",
                                            " on one side only."))
           : was_equal         ? style_.Green("Nothing is missing.")
           : text_.are_equal() ? style_.Green("Nothing is missing any more.")
                               : style_.Red("The two sides differ."))
       << "\n";
  Paragraph(absl::StrCat("here: ", NameOf(text_.here)));
  Paragraph(absl::StrCat("there: ", NameOf(text_.there)));
  Paragraph(absl::StrCat("by id: ", text_.id));
  Paragraph(absl::StrCat("window: ", UtcText(text_.window.begin_ms), " to ", UtcText(text_.window.end_ms),
                         " UTC; a record within ", DurationText(absl::Milliseconds(text_.window.settle_ms)),
                         " of its edges on the other side is not missing."));
}

void Writer::WriteCounts() {
  const SideReport& here = text_.here;
  const SideReport& there = text_.there;
  out_ << "\n";
  Row("", "here", "there");
  Counts("records", here.records, there.records);
  Counts("ids", here.ids, there.ids);
  Counts("ids missing on the other side", here.only, there.only);
  if (here.only > 0 || there.only > 0) {
    const auto time = [](const SideReport& side, int64_t ms) {
      return side.only == 0 ? std::string("-") : UtcText(ms);
    };
    Row("  the first of them", time(here, here.first_ms), time(there, there.first_ms));
    Row("  the last of them", time(here, here.last_ms), time(there, there.last_ms));
  }
  CountsIfAny("  copied to the other side", here.copied, there.copied);
  CountsIfAny("  deleted before they were copied", here.gone, there.gone);
  CountsIfAny("ids at the edges of the window alone", here.unsettled, there.unsettled);
  CountsIfAny("records without a usable id", here.without_id, there.without_id);
  CountsIfAny("records without a timestamp", here.without_time, there.without_time);
}

void Writer::WriteTimes() {
  Heading("When (UTC, by the records' timestamps)");
  int64_t most = 1;
  for (const SideReport* side : {&text_.here, &text_.there}) {
    for (const int64_t count : side->by_time) most = std::max(most, count);
  }
  const auto bar = [&](int64_t count) {
    return style_.Cyan(style_.Bar(static_cast<double>(count) / static_cast<double>(most), kBarColumns));
  };
  for (size_t i = 0; i < SideReport::kBuckets; ++i) {
    const int64_t here = text_.here.by_time[i];
    const int64_t there = text_.there.by_time[i];
    if (here == 0 && there == 0) continue;
    out_ << absl::StreamFormat("  from %s  here %11s  there %11s ", UtcText(BeginOfBucket(text_.window, i)),
                               FormatCount(here), FormatCount(there))
         << bar(here + there > 0 ? std::max(here, there) : 0) << "\n";
  }
}

void Writer::WritePartitions() {
  Heading("By partition");
  const auto count = [](const SideReport& side, size_t i) {
    return i < side.by_partition.size() ? side.by_partition[i] : 0;
  };
  size_t left = 0;
  size_t shown = 0;
  for (size_t i = 0; i < std::max(text_.here.by_partition.size(), text_.there.by_partition.size()); ++i) {
    const int64_t here = count(text_.here, i);
    const int64_t there = count(text_.there, i);
    if (here == 0 && there == 0) continue;
    if (++shown > kMostPartitionsShown) {
      ++left;
      continue;
    }
    Counts(absl::StrCat("partition ", i), here, there);
  }
  if (left > 0) Paragraph(absl::StrCat("and ", left, " more; --format json has them all"));
}

void Writer::WriteSamples(absl::string_view heading, const SideReport& side) {
  if (side.samples.empty()) return;
  Heading(
      absl::StrCat(heading, side.only > static_cast<int64_t>(side.samples.size()) ? ", for example" : ""));
  for (const SideReport::Sample& sample : side.samples) {
    out_ << absl::StreamFormat("  %s  %s-%d offset %d  %s\n", UtcText(sample.time_ms),
                               Printable(side.facts.topic), sample.partition, sample.offset,
                               Printable(sample.id));
  }
}

void Writer::WriteNotes() {
  std::vector<std::string> notes;
  if (text_.window.begin_ms > text_.asked_begin_ms) {
    notes.push_back(absl::StrCat("The window begins at ", UtcText(text_.window.begin_ms), " and not at ",
                                 UtcText(text_.asked_begin_ms),
                                 ": retention has deleted older records on one side."));
  }
  for (const SideReport* side : {&text_.here, &text_.there}) {
    if (side->emptied == 0) continue;
    notes.push_back(absl::StrCat(
        side->facts.topic, " of cluster ", side->facts.cluster, ": all records of ", side->emptied,
        " partitions were deleted, and count as missing if they were in the window."));
  }
  const ReconcileFacts& facts = text_.here.facts;
  if (facts.cluster == text_.there.facts.cluster && facts.topic == text_.there.facts.topic) {
    notes.push_back(
        "Both sides name the same cluster and topic. Unless two clusters have one id, the peer's --brokers "
        "or --topic is wrong, and the topic was compared with itself.");
  }
  if (notes.empty()) return;
  out_ << "\n";
  for (const std::string& note : notes) Paragraph(note);
}

void Writer::WriteCosts() {
  out_ << "\n";
  const auto bytes = [](uint64_t count) { return FormatBytes(static_cast<int64_t>(count)); };
  const std::string method =
      text_.table_rounds + text_.filter_rounds == 0
          ? std::string("checksums alone")
          : absl::StrCat("checksums, ", Several(text_.table_rounds, "lookup table"), " and ",
                         Several(text_.filter_rounds, "Distributed Bloom Filter"));
  Paragraph(absl::StrCat("Compared by ", method, " in ", bytes(text_.compare_bytes),
                         "; with tables alone it takes about ", bytes(text_.bytes_by_tables),
                         ", with filters alone ", bytes(text_.bytes_by_filters),
                         ", and sending the hashes of all ids ", bytes(text_.bytes_of_all_keys), ". ",
                         absl::StrFormat("%.1f s, ", absl::ToDoubleSeconds(text_.elapsed)),
                         text_.passes == 1 ? "1 pass, " : absl::StrCat(text_.passes, " passes, "),
                         bytes(text_.bytes), " between the two sides."));
}

std::string JsonOf(const std::vector<int64_t>& numbers) {
  return absl::StrCat("[", absl::StrJoin(numbers, ","), "]");
}

std::string JsonOf(const SideReport& side) {
  const auto time = [&](int64_t ms) { return side.only == 0 ? std::string("null") : absl::StrCat(ms); };
  const std::string samples =
      absl::StrJoin(side.samples, ",", [](std::string* json, const SideReport::Sample& sample) {
        absl::StrAppend(json, "{\"id\":", JsonString(sample.id), ",\"partition\":", sample.partition,
                        ",\"offset\":", sample.offset, ",\"time_ms\":", sample.time_ms, "}");
      });
  return absl::StrCat(
      "{\"cluster\":", JsonString(side.facts.cluster), ",\"topic\":", JsonString(side.facts.topic),
      ",\"partitions\":", side.facts.partitions, ",\"records\":", side.records, ",\"ids\":", side.ids,
      ",\"without_id\":", side.without_id, ",\"without_time\":", side.without_time,
      ",\"emptied_partitions\":", side.emptied, ",\"only\":", side.only, ",\"unsettled\":", side.unsettled,
      ",\"first_ms\":", time(side.first_ms), ",\"last_ms\":", time(side.last_ms),
      ",\"by_partition\":", JsonOf(side.by_partition), ",\"by_time\":", JsonOf(side.by_time),
      ",\"samples\":[", samples, "],\"copied\":", side.copied, ",\"gone\":", side.gone, "}");
}

}  // namespace

void WriteReconcile(const ReconcileText& text, const TextStyle& style, std::ostream& out) {
  Writer(text, style, out).Write();
}

void WriteReconcileJson(const ReconcileText& text, std::ostream& out) {
  out << "{\"equal\":" << (text.are_equal() ? "true" : "false") << ",\"id\":" << JsonString(text.id)
      << ",\"begin_ms\":" << text.window.begin_ms << ",\"end_ms\":" << text.window.end_ms
      << ",\"asked_begin_ms\":" << text.asked_begin_ms << ",\"settle_ms\":" << text.window.settle_ms
      << ",\"here\":" << JsonOf(text.here) << ",\"there\":" << JsonOf(text.there)
      << ",\"passes\":" << text.passes << ",\"table_rounds\":" << text.table_rounds
      << ",\"filter_rounds\":" << text.filter_rounds << ",\"compare_bytes\":" << text.compare_bytes
      << ",\"bytes\":" << text.bytes << ",\"bytes_by_tables\":" << text.bytes_by_tables
      << ",\"bytes_by_filters\":" << text.bytes_by_filters
      << ",\"bytes_of_all_keys\":" << text.bytes_of_all_keys
      << absl::StreamFormat(",\"seconds\":%.3f}\n", absl::ToDoubleSeconds(text.elapsed));
}

}  // namespace lethe
