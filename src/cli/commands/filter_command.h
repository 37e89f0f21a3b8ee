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
#include "src/record/record_reader.h"

namespace lethe {

struct FilterCommandOptions {
  // What becomes of a line whose id was passed within the horizon.
  enum class OnDuplicate {
    kDrop,
    kTag,  // it stays in the output, marked; see RunFilter
  };

  // Handling of a line that has no verdict.
  enum class WithoutId {
    kPass,
    kDrop,
    kFail,  // it ends the command, as an error
  };

  enum class Summary { kText, kJson, kNone };

  IdSpec id;                  // `value` and json: only; a line has no key and no headers
  std::optional<Field> time;  // likewise; without it, a line's time is the time of reading
  StageOptions stage;
  OnDuplicate on_duplicate = OnDuplicate::kDrop;
  WithoutId on_missing_id = WithoutId::kPass;
  WithoutId on_malformed = WithoutId::kPass;
  Summary summary = Summary::kText;
  std::vector<std::string> files;  // read one after the other; without any: in_fd
};

// Reads lines from the files, or, if none is named, from in_fd, up to the end, and writes those that are
// unique to out_fd, in order and as they are. Each input is plain or gzip, which is seen by its first bytes.
// A last line without a newline gets one if another line follows.
// Lines that were read are written before the next read that would wait. At the end, also after an error,
// `err` gets a summary, as text or as one JSON object: what was read, unique, duplicate, suspect (with a
// second opinion), without an id, malformed; the modelled FPP, memory, time.
//
// With kTag a duplicate stays. A JSON object gets a first member, {"lethe.verdict":"duplicate",...; before
// any other line comes the text `lethe.verdict=duplicate` and a tab.
//
// OK at the end of the input, once `stop_fd` is readable (-1: never), and when the reader of out_fd has gone
// away (the process ignores SIGPIPE from here on). An engine that does not keep the promise of
// include/lethe/filter.h is told in `err` at the start. InvalidArgument for options that cannot be met and
// for files that cannot be read, before anything is written; FailedPrecondition for a line that kFail ends
// at, with what is before it written; otherwise the error that reading or writing had.
absl::Status RunFilter(const FilterCommandOptions& options, int in_fd, int out_fd, std::ostream& err,
                       int stop_fd = -1);

// RunFilter from the files or standard input to standard output, with the summary on standard error; the exit
// code. The first Ctrl-C ends the input; what was read is judged, written and told.
int FilterCommand(const FilterCommandOptions& options);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_COMMANDS_FILTER_COMMAND_H_
