// `lethe filter`: the stage between two pipes.
//
//   tail -F events.ndjson | lethe filter --id json:/id --horizon 1h > unique.ndjson
//   lethe filter --id json:/id --time json:/at monday.ndjson.gz tuesday.ndjson.gz > unique.ndjson
#ifndef LETHE_SRC_CLI_COMMANDS_FILTER_COMMAND_H_
#define LETHE_SRC_CLI_COMMANDS_FILTER_COMMAND_H_

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lethe/options.h"
#include "src/cli/config/setting.h"
#include "src/record/field_value.h"
#include "src/record/record_reader.h"
#include "src/reference/any_engine.h"

namespace lethe {

struct FilterCommandOptions {
  // Handling of a line whose id has passed within the horizon.
  enum class OnDuplicate {
    kDrop,
    kTag,  // written with a mark; see RunFilter
  };

  // Handling of a line that has no verdict.
  enum class WithoutId {
    kPass,
    kDrop,
    kFail,  // ends the command with an error
  };

  IdSpec id;                          // `value` and json: only; a line has no key and no headers
  std::optional<Field> time;          // likewise; without it, a line's time is the time of reading
  std::optional<TimeUnit> time_unit;  // of times that are numbers; nullopt: milliseconds, if they look so
  StageOptions stage;
  std::optional<Reference> reference;  // a filter in place of stage.engine
  OnDuplicate on_duplicate = OnDuplicate::kDrop;
  WithoutId on_missing_id = WithoutId::kPass;
  WithoutId on_malformed = WithoutId::kPass;
  ReportFormat format = ReportFormat::kText;  // of the summary
  bool quiet = false;                         // no summary
  AnyEngine engine() const { return {stage.engine, reference}; }
  std::vector<std::string> files;  // read one after the other; without any: in_fd
};

// Reads lines from the files, or from in_fd if there are none, and writes the unique ones to out_fd,
// unchanged and in order. An input is plain or gzip; its first bytes tell. A last line without a newline gets
// one if another line follows. Lines are written before a read that would wait. At the end, also after an
// error, `err` gets a summary, as text or as one JSON object: the numbers of lines that were read, unique,
// duplicate, without an id, malformed; the modelled FPP, memory, time.
//
// With kTag a duplicate is written, too. A JSON object gets a first member, {"lethe.verdict":"duplicate",...;
// before any other line comes the text `lethe.verdict=duplicate` and a tab.
//
// OK at the end of the input, once `stop_fd` is readable (-1: never), and when the reader of out_fd has gone
// away (the process ignores SIGPIPE from here on). If the engine does not keep the promise
// of include/lethe/filter.h, `err` says so at the start. InvalidArgument, before anything is written, for
// impossible options and unreadable files; FailedPrecondition for a line that kFail ends at, with all lines
// before it written; NoIdError() if there were lines and none had an id, or none a time; WrongTimesError() at
// the end of a hundred lines with times that are most likely of another unit, with all lines
// before it written; otherwise the error of reading or
// writing.
absl::Status RunFilter(const FilterCommandOptions& options, int in_fd, int out_fd, std::ostream& err,
                       int stop_fd = -1);

// RunFilter from the files or standard input to standard output, with the summary on standard error; the exit
// code. The first Ctrl-C ends the input; lines that were read are judged, written and counted.
int FilterCommand(const FilterCommandOptions& options);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_COMMANDS_FILTER_COMMAND_H_
