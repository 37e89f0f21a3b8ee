#include "src/cli/commands/filter_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "connectors/lines/line_reader.h"
#include "connectors/lines/line_writer.h"
#include "lethe/stage.h"
#include "src/cli/terminal/exit_code.h"
#include "src/cli/terminal/interrupt.h"
#include "src/record/timestamp.h"
#include "src/text/format.h"

namespace lethe {
namespace {

using OnDuplicate = FilterCommandOptions::OnDuplicate;
using LineWithoutId = FilterCommandOptions::WithoutId;

constexpr absl::string_view kObjectTag = "{\"lethe.verdict\":\"duplicate\"";
constexpr absl::string_view kTextTag = "lethe.verdict=duplicate\t";
constexpr absl::string_view kTimes =
    "a time is RFC 3339, such as 2026-01-31T12:00:00Z, or Unix time in milliseconds or what --time-unit says";
// Times of so many lines are looked at together. Stream time starts after them, so that none of them was
// judged by a wrong time.
constexpr int64_t kTimesTogether = 100;
constexpr absl::string_view kJsonSpace = " \t\r\n";

absl::Status CheckField(absl::string_view option, const Field& field) {
  const bool is_of_line = field.kind == Field::Kind::kValue || field.kind == Field::Kind::kJson;
  if (is_of_line && !field.in_key) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(option, " '", field.ToString(),
                                                 "': a line has no key and no headers; say json:/POINTER for "
                                                 "a place in its JSON, or value for the whole line"));
}

absl::Status CannotRead(const std::string& file) {
  return absl::InvalidArgumentError(
      absl::ErrnoToStatus(errno, absl::StrCat(file, ": cannot be read")).message());
}

absl::Status Check(const FilterCommandOptions& options) {
  if (options.id.fields.empty())
    return absl::InvalidArgumentError("id: no field is given, for example json:/id");
  for (const Field& field : options.id.fields) {
    if (absl::Status status = CheckField("id", field); !status.ok()) return status;
  }
  for (const std::string& file : options.files) {
    if (access(file.c_str(), R_OK) != 0) return CannotRead(file);
  }
  if (options.time) return CheckField("time", *options.time);
  if (!options.time_unit) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "time_unit: name the place of the time, too, for example --time json:/time");
}

// The count of one kind of record that an operator should know of, and the first place.
struct Oddities {
  int64_t count = 0;
  std::string first;

  void Add(absl::string_view place, absl::string_view reason) {
    if (count++ == 0) first = absl::StrCat(", first on ", place, ": ", reason);
  }
};

const char* Handled(LineWithoutId action) {
  return action == LineWithoutId::kPass ? "passed" : action == LineWithoutId::kDrop ? "dropped" : "ends it";
}

// The lines of one Read on their way through: judged together, written together.
class LineFilter {
 public:
  LineFilter(const FilterCommandOptions& options, Partition* partition, int out_fd)
      : reader_({.id = options.id,
                 .time = options.time,
                 .time_unit = options.time_unit.value_or(TimeUnit::kMilliseconds)}),
        has_time_(options.time.has_value()),
        knows_unit_(options.time_unit.has_value()),
        time_(options.time ? options.time->ToString() : ""),
        on_duplicate_(options.on_duplicate),
        on_missing_id_(options.on_missing_id),
        on_malformed_(options.on_malformed),
        partition_(partition),
        out_(out_fd, "standard output") {}

  // The lines that follow are of this file; empty: of standard input.
  void Begin(absl::string_view file) {
    file_ = std::string(file);
    line_ = 0;
  }
  // Judges the lines and writes what passes. The lines must stay where they are meanwhile.
  absl::Status Pass(absl::Span<const absl::string_view> lines);
  void Summarize(absl::Duration elapsed, const MemoryBudget& memory, std::ostream& err) const;
  void SummarizeJson(absl::Duration elapsed, const MemoryBudget& memory, std::ostream& err) const;
  // NoIdError() or NoTimeError() if there were lines, and none had an id, or a time; WrongTimesError() of a
  // few lines.
  absl::Status CheckFields(const FilterCommandOptions& options);

 private:
  absl::Status Take(absl::string_view line, absl::Time now);
  absl::Status TakeWithoutId(absl::string_view line, const RecordFields& fields);
  // WrongTimesError() if most of the times that were collected are of another unit; begins others.
  absl::Status CheckUnit();
  std::string Place() const {
    return absl::StrCat("line ", line_, file_.empty() ? "" : absl::StrCat(" of ", file_));
  }
  void Judge();
  void Write(absl::string_view line);
  void WriteDuplicate(absl::string_view line);
  void EndLine(absl::string_view line) { lacks_newline_ = line.back() != '\n'; }
  // Before a line: the last of another file may have had no newline.
  void BeginLine() {
    if (lacks_newline_) out_.Append("\n");
  }

  RecordReader reader_;
  const bool has_time_;
  const bool knows_unit_;
  const std::string time_;  // its place
  const OnDuplicate on_duplicate_;
  const LineWithoutId on_missing_id_;
  const LineWithoutId on_malformed_;
  Partition* const partition_;
  lines::LineWriter out_;

  // Lines with an id that are not judged yet, in order.
  std::vector<Event> events_;
  std::vector<absl::string_view> event_lines_;
  std::vector<Verdict> verdicts_;

  std::string file_;
  int64_t line_ = 0;  // of the file
  bool lacks_newline_ = false;
  int64_t records_ = 0;
  Oddities missing_;
  Oddities malformed_;
  Oddities timeless_;  // with a time that is asked for
  TimeUnitCheck times_;
};

absl::Status LineFilter::Pass(absl::Span<const absl::string_view> lines) {
  const absl::Time now = has_time_ ? absl::InfinitePast() : absl::Now();
  absl::Status taken;
  for (size_t i = 0; i < lines.size() && taken.ok(); ++i) taken = Take(lines[i], now);
  Judge();
  const absl::Status written = out_.Flush();
  return taken.ok() ? written : taken;
}

absl::Status LineFilter::Take(absl::string_view line, absl::Time now) {
  ++records_;
  ++line_;
  absl::string_view text = line;
  if (text.back() == '\n') text.remove_suffix(1);
  const RecordFields& fields = reader_.Read({.key = std::nullopt, .value = text});
  const absl::Time time = has_time_ ? fields.time : now;
  if (has_time_ && fields.time_state != RecordFields::State::kPresent) timeless_.Add(Place(), kTimes);
  if (fields.unix_time && !knows_unit_) {
    times_.Add(*fields.unix_time);
    if (times_.times() == kTimesTogether) {
      if (absl::Status unit = CheckUnit(); !unit.ok()) return unit;
    }
  }
  if (fields.id_state == RecordFields::State::kPresent) {
    events_.push_back({partition_->Hash(fields.id), time});
    event_lines_.push_back(line);
    return absl::OkStatus();
  }
  Judge();  // what passes keeps its place
  partition_->Observe(time).IgnoreError();
  return TakeWithoutId(line, fields);
}

absl::Status LineFilter::CheckUnit() {
  const TimeUnitCheck times = std::exchange(times_, {});
  if (!times.MostAreWrong()) return absl::OkStatus();
  return WrongTimesError(Place(), time_, times);
}

absl::Status LineFilter::TakeWithoutId(absl::string_view line, const RecordFields& fields) {
  const bool is_missing = fields.id_state == RecordFields::State::kMissing;
  const std::string place = Place();
  (is_missing ? missing_ : malformed_).Add(place, fields.reason);
  switch (is_missing ? on_missing_id_ : on_malformed_) {
    case LineWithoutId::kPass:
      Write(line);
      break;
    case LineWithoutId::kDrop:
      break;
    case LineWithoutId::kFail:
      return absl::FailedPreconditionError(absl::StrCat(place, ": ", fields.reason, "; correct it, or set ",
                                                        is_missing ? "--on-missing-id" : "--on-malformed",
                                                        " to pass or drop"));
  }
  return absl::OkStatus();
}

void LineFilter::Write(absl::string_view line) {
  BeginLine();
  out_.Append(line);
  EndLine(line);
}

void LineFilter::Judge() {
  verdicts_.resize(events_.size());
  partition_->Judge(events_, absl::MakeSpan(verdicts_)).IgnoreError();
  for (size_t i = 0; i < verdicts_.size(); ++i) {
    switch (verdicts_[i]) {
      case Verdict::kUnique:
        Write(event_lines_[i]);
        break;
      case Verdict::kDuplicate:
        if (on_duplicate_ == OnDuplicate::kTag) WriteDuplicate(event_lines_[i]);
        break;
    }
  }
  events_.clear();
  event_lines_.clear();
}

void LineFilter::WriteDuplicate(absl::string_view line) {
  BeginLine();
  EndLine(line);
  const size_t first = line.find_first_not_of(kJsonSpace);
  if (first == line.npos || line[first] != '{') {
    out_.Append(kTextTag);
    out_.Append(line);
    return;
  }
  absl::string_view members = line.substr(first + 1);
  out_.Append(line.substr(0, first));
  out_.Append(kObjectTag);
  const size_t member = members.find_first_not_of(kJsonSpace);
  if (member != members.npos && members[member] != '}') out_.Append(",");
  out_.Append(members);
}

void LineFilter::Summarize(absl::Duration elapsed, const MemoryBudget& memory, std::ostream& err) const {
  const PartitionStatus status = partition_->Status();
  const double seconds = absl::ToDoubleSeconds(elapsed);
  const double rate = seconds > 0 ? static_cast<double>(records_) / seconds : 0;
  err << absl::StreamFormat("lethe filter: %d records in %.2f s (%.0f records/s)\n", records_, seconds, rate)
      << absl::StreamFormat("  unique      %12d  passed\n", status.unique)
      << absl::StreamFormat("  duplicates  %12d  %s\n", status.duplicates,
                            on_duplicate_ == OnDuplicate::kTag ? "passed, tagged" : "dropped")
      << absl::StreamFormat("  missing id  %12d  %s%s\n", missing_.count, Handled(on_missing_id_),
                            missing_.first)
      << absl::StreamFormat("  malformed   %12d  %s%s\n", malformed_.count, Handled(on_malformed_),
                            malformed_.first)
      << (has_time_ ? absl::StrFormat("  no time     %12d  judged at the time of those before%s\n",
                                      timeless_.count, timeless_.first)
                    : "")
      << absl::StreamFormat("  false-positive rate %.2g modelled now, target %.2g\n",
                            status.filter.fpp.modelled, status.filter.fpp.target)
      << absl::StreamFormat("  memory %s of %s, %d ids\n", FormatBytes(memory.used_bytes()),
                            FormatBytes(memory.limit_bytes()), status.filter.ids);
  if (status.filter.limit_hits > 0) {
    err << absl::StreamFormat(
        "  the memory limit was reached %d times: duplicates may have passed within the "
        "horizon; raise it\n",
        status.filter.limit_hits);
  }
  err.flush();
}

void LineFilter::SummarizeJson(absl::Duration elapsed, const MemoryBudget& memory, std::ostream& err) const {
  const PartitionStatus status = partition_->Status();
  err << absl::StreamFormat(
             "{\"records\":%d,\"unique\":%d,\"duplicates\":%d,\"missing_id\":%d,"
             "\"malformed\":%d,\"missing_time\":%d,\"seconds\":%.6f,\"fpp_modelled\":%.17g,\"fpp_target\":%."
             "17g,\"memory_bytes\":"
             "%d,\"memory_limit_bytes\":%d,\"ids\":%d,\"memory_limit_hits\":%d}\n",
             records_, status.unique, status.duplicates, missing_.count, malformed_.count, timeless_.count,
             absl::ToDoubleSeconds(elapsed), status.filter.fpp.modelled, status.filter.fpp.target,
             memory.used_bytes(), memory.limit_bytes(), status.filter.ids, status.filter.limit_hits)
      << std::flush;
}

absl::Status LineFilter::CheckFields(const FilterCommandOptions& options) {
  if (records_ == 0) return absl::OkStatus();
  // Behind others a few times say nothing.
  if (records_ <= kTimesTogether && times_.times() > 0) {
    if (absl::Status unit = CheckUnit(); !unit.ok()) return unit;
  }
  if (missing_.count + malformed_.count == records_) {
    return NoIdError(records_, options.id.ToString(), "nothing was deduplicated");
  }
  if (timeless_.count < records_) return absl::OkStatus();
  return NoTimeError(records_, options.time->ToString(), kTimes);
}

// Up to the end of the input.
absl::Status PassAll(int fd, absl::string_view name, int stop_fd, LineFilter& filter) {
  lines::LineReader in(fd, name, lines::LineReader::kDefaultMaxLineBytes, stop_fd);
  for (;;) {
    const absl::StatusOr<absl::Span<const absl::string_view>> batch = in.Read();
    if (!batch.ok()) return batch.status();
    if (batch->empty()) return absl::OkStatus();
    if (absl::Status passed = filter.Pass(*batch); !passed.ok()) return passed;
  }
}

}  // namespace

absl::Status RunFilter(const FilterCommandOptions& options, int in_fd, int out_fd, std::ostream& err,
                       int stop_fd) {
  if (absl::Status status = Check(options); !status.ok()) return status;
  const absl::StatusOr<std::unique_ptr<DedupStage>> stage = CreateStage(options.engine(), options.stage);
  if (!stage.ok()) return stage.status();
  const absl::StatusOr<std::unique_ptr<Partition>> partition = (*stage)->Open("standard input");
  if (!partition.ok()) return partition.status();
  std::signal(SIGPIPE, SIG_IGN);
  if (const absl::string_view broken = BrokenPromise(options.engine()); !broken.empty()) {
    err << "lethe filter: engine " << EngineName(options.engine()) << ": " << broken << std::endl;
  }

  const absl::Time start = absl::Now();
  LineFilter filter(options, partition->get(), out_fd);
  absl::Status status;
  if (options.files.empty()) status = PassAll(in_fd, "standard input", stop_fd, filter);
  for (size_t i = 0; i < options.files.size() && status.ok(); ++i) {
    const std::string& file = options.files[i];
    const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
      status = CannotRead(file);
      break;
    }
    filter.Begin(file);
    status = PassAll(fd, file, stop_fd, filter);
    close(fd);
  }
  const absl::Duration elapsed = absl::Now() - start;
  const auto summarize =
      options.format == ReportFormat::kJson ? &LineFilter::SummarizeJson : &LineFilter::Summarize;
  if (!options.quiet) (filter.*summarize)(elapsed, (*stage)->memory(), err);
  return status.ok() || absl::IsCancelled(status) ? filter.CheckFields(options) : status;
}

int FilterCommand(const FilterCommandOptions& options) {
  const Interrupt interrupt;
  const absl::Status status = RunFilter(options, STDIN_FILENO, STDOUT_FILENO, std::cerr, interrupt.fd());
  const int code = ReportError(status, std::cerr);
  return interrupt.requested() && (code == kExitOk || code == kExitNoId) ? kExitInterrupted : code;
}

}  // namespace lethe
