#include "src/cli/filter_command.h"

#include <unistd.h>

#include <csignal>
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
#include "src/cli/command_line.h"
#include "src/cli/interrupt.h"
#include "src/cli/units.h"

namespace lethe {
namespace {

using OnDuplicate = FilterCommandOptions::OnDuplicate;

constexpr absl::string_view kObjectTag = "{\"lethe.verdict\":\"duplicate\"";
constexpr absl::string_view kTextTag = "lethe.verdict=duplicate\t";
constexpr absl::string_view kJsonSpace = " \t\r\n";

absl::Status CheckField(absl::string_view option, const Field& field) {
  if (field.kind == Field::Kind::kValue || field.kind == Field::Kind::kJson) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      option, " '", field.ToString(),
      "': a line has no key and no headers; say json:/POINTER for a place in its JSON, or value for "
      "the whole line"));
}

absl::Status Check(const FilterCommandOptions& options) {
  if (options.id.fields.empty())
    return absl::InvalidArgumentError("id: no field is given, for example json:/id");
  for (const Field& field : options.id.fields) {
    if (absl::Status status = CheckField("id", field); !status.ok()) return status;
  }
  return options.time ? CheckField("time", *options.time) : absl::OkStatus();
}

// What was seen at one of the exits that an operator should know of, and where first.
struct Oddities {
  int64_t count = 0;
  std::string first;

  void Add(int64_t line, absl::string_view reason) {
    if (count++ == 0) first = absl::StrCat(", first on line ", line, ": ", reason);
  }
};

// The engines that have a choice at the memory limit.
bool ExceedsFpp(const StageOptions& stage) {
  return (stage.engine == Engine::kSliced || stage.adaptation == Adaptation::kPaper) &&
         stage.at_memory_limit == AtMemoryLimit::kExceedFpp;
}

// The lines of one Read on their way through: judged together, written together.
class LineFilter {
 public:
  LineFilter(const FilterCommandOptions& options, Partition* partition, int out_fd)
      : reader_({.id = options.id, .time = options.time}),
        has_time_(options.time.has_value()),
        on_duplicate_(options.on_duplicate),
        second_opinion_(options.stage.second_opinion),
        pass_suspects_(options.stage.pass_suspects),
        limit_meaning_(ExceedsFpp(options.stage) ? "more good lines than the target may have been dropped"
                                                 : "duplicates may have passed within the horizon"),
        partition_(partition),
        out_(out_fd, "standard output") {}

  // Judges the lines and writes what passes. The lines must stay where they are meanwhile.
  absl::Status Pass(absl::Span<const absl::string_view> lines);
  void Summarize(absl::Duration elapsed, const MemoryBudget& memory, std::ostream& err) const;
  void SummarizeJson(absl::Duration elapsed, const MemoryBudget& memory, std::ostream& err) const;

 private:
  void Take(absl::string_view line, absl::Time now);
  void Judge();
  void WriteDuplicate(absl::string_view line);

  RecordReader reader_;
  const bool has_time_;
  const OnDuplicate on_duplicate_;
  const SecondOpinion second_opinion_;
  const bool pass_suspects_;
  const absl::string_view limit_meaning_;  // what has given way if the memory limit was reached
  Partition* const partition_;
  lines::LineWriter out_;

  // Lines with an id that are not judged yet, in order.
  std::vector<Event> events_;
  std::vector<absl::string_view> event_lines_;
  std::vector<Verdict> verdicts_;

  int64_t records_ = 0;
  Oddities missing_;
  Oddities malformed_;
};

absl::Status LineFilter::Pass(absl::Span<const absl::string_view> lines) {
  const absl::Time now = has_time_ ? absl::InfinitePast() : absl::Now();
  for (absl::string_view line : lines) Take(line, now);
  Judge();
  return out_.Flush();
}

// A line without an id passes, in its place: what is before it is judged first.
void LineFilter::Take(absl::string_view line, absl::Time now) {
  ++records_;
  absl::string_view text = line;
  if (text.back() == '\n') text.remove_suffix(1);
  const RecordFields& fields = reader_.Read({.key = std::nullopt, .value = text});
  const absl::Time time = has_time_ ? fields.time : now;
  if (fields.id_state == RecordFields::State::kPresent) {
    events_.push_back({partition_->Hash(fields.id), time});
    event_lines_.push_back(line);
    return;
  }
  Judge();
  (fields.id_state == RecordFields::State::kMissing ? missing_ : malformed_).Add(records_, fields.reason);
  partition_->Observe(time);
  out_.Append(line);
}

void LineFilter::Judge() {
  verdicts_.resize(events_.size());
  partition_->Judge(events_, absl::MakeSpan(verdicts_));
  for (size_t i = 0; i < verdicts_.size(); ++i) {
    switch (verdicts_[i]) {
      case Verdict::kUnique:
        out_.Append(event_lines_[i]);
        break;
      case Verdict::kDuplicate:
        if (on_duplicate_ == OnDuplicate::kTag) WriteDuplicate(event_lines_[i]);
        break;
      case Verdict::kSuspect:
        if (pass_suspects_) out_.Append(event_lines_[i]);
        break;
    }
  }
  events_.clear();
  event_lines_.clear();
}

void LineFilter::WriteDuplicate(absl::string_view line) {
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
                            on_duplicate_ == OnDuplicate::kTag ? "passed, tagged" : "dropped");
  if (second_opinion_ != SecondOpinion::kNone) {
    err << absl::StreamFormat("  suspects    %12d  %s\n", status.suspects,
                              pass_suspects_ ? "passed" : "dropped");
  }
  err << absl::StreamFormat("  missing id  %12d  passed%s\n", missing_.count, missing_.first)
      << absl::StreamFormat("  malformed   %12d  passed%s\n", malformed_.count, malformed_.first)
      << absl::StreamFormat("  false-positive rate %.2g modelled now, target %.2g\n",
                            status.filter.fpp_modelled, status.filter.fpp_target)
      << absl::StreamFormat("  memory %s of %s, %d ids\n", FormatBytes(memory.used_bytes()),
                            FormatBytes(memory.limit_bytes()), status.filter.ids);
  if (status.filter.limit_hits > 0) {
    err << absl::StreamFormat("  the memory limit was reached %d times: %s; raise it\n",
                              status.filter.limit_hits, limit_meaning_);
  }
  err.flush();
}

void LineFilter::SummarizeJson(absl::Duration elapsed, const MemoryBudget& memory, std::ostream& err) const {
  const PartitionStatus status = partition_->Status();
  err << absl::StreamFormat(
             "{\"records\":%d,\"unique\":%d,\"duplicates\":%d,\"suspects\":%d,\"missing_id\":%d,"
             "\"malformed\":%d,"
             "\"seconds\":%.6f,\"fpp_modelled\":%.17g,\"fpp_target\":%.17g,\"memory_bytes\":%d,"
             "\"memory_limit_bytes\":%d,\"ids\":%d,\"memory_limit_hits\":%d}\n",
             records_, status.unique, status.duplicates, status.suspects, missing_.count, malformed_.count,
             absl::ToDoubleSeconds(elapsed), status.filter.fpp_modelled, status.filter.fpp_target,
             memory.used_bytes(), memory.limit_bytes(), status.filter.ids, status.filter.limit_hits)
      << std::flush;
}

}  // namespace

absl::Status RunFilter(const FilterCommandOptions& options, int in_fd, int out_fd, std::ostream& err,
                       int stop_fd) {
  if (absl::Status status = Check(options); !status.ok()) return status;
  const absl::StatusOr<std::unique_ptr<DedupStage>> stage = DedupStage::Create(options.stage);
  if (!stage.ok()) return stage.status();
  const absl::StatusOr<std::unique_ptr<Partition>> partition = (*stage)->Open("standard input");
  if (!partition.ok()) return partition.status();
  std::signal(SIGPIPE, SIG_IGN);
  if (const absl::string_view broken = BrokenPromise(options.stage.engine); !broken.empty()) {
    err << "lethe filter: engine " << EngineName(options.stage.engine) << ": " << broken << std::endl;
  }

  const absl::Time start = absl::Now();
  lines::LineReader in(in_fd, "standard input", lines::LineReader::kDefaultMaxLineBytes, stop_fd);
  LineFilter filter(options, partition->get(), out_fd);
  absl::Status status;
  while (status.ok()) {
    const absl::StatusOr<absl::Span<const absl::string_view>> batch = in.Read();
    if (batch.ok() && batch->empty()) break;
    status = batch.ok() ? filter.Pass(*batch) : batch.status();
  }
  const absl::Duration elapsed = absl::Now() - start;
  if (options.summary == FilterCommandOptions::Summary::kJson) {
    filter.SummarizeJson(elapsed, (*stage)->memory(), err);
  } else {
    filter.Summarize(elapsed, (*stage)->memory(), err);
  }
  return absl::IsCancelled(status) ? absl::OkStatus() : status;
}

int FilterCommand(const FilterCommandOptions& options) {
  const Interrupt interrupt;
  const absl::Status status = RunFilter(options, STDIN_FILENO, STDOUT_FILENO, std::cerr, interrupt.fd());
  if (!status.ok()) return ReportError(status, std::cerr);
  return interrupt.requested() ? kExitInterrupted : kExitOk;
}

}  // namespace lethe
