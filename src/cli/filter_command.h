// `lethe filter`: the stage between two pipes.
//
//   tail -F events.ndjson | lethe filter --id json:/id --horizon 1h > unique.ndjson
#ifndef LETHE_SRC_CLI_FILTER_COMMAND_H_
#define LETHE_SRC_CLI_FILTER_COMMAND_H_

#include <optional>
#include <ostream>

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

  enum class Summary { kText, kJson };

  IdSpec id;                  // `value` and json: only; a line has no key and no headers
  std::optional<Field> time;  // likewise; without it, a line's time is that of its reading
  StageOptions stage;
  OnDuplicate on_duplicate = OnDuplicate::kDrop;
  Summary summary = Summary::kText;
};

// Reads lines from in_fd (plain, or gzip, which is seen by its first bytes) up to its end, and writes those
// that are unique to out_fd, in order and as they are. A line with no usable id, or a malformed one, passes.
// What was read is written before the next read that would wait. At the end, also after an error, `err` gets
// a summary, as text or as one JSON object: what was read, unique, duplicate, suspect (with a second
// opinion), without an id, malformed; the modelled FPP, memory, time.
//
// With kTag a duplicate stays. A JSON object gets a first member, {"lethe.verdict":"duplicate",...; before
// any other line comes the text `lethe.verdict=duplicate` and a tab.
//
// OK at the end of the input, once `stop_fd` is readable (-1: never), and when the reader of out_fd has gone
// away (the process ignores SIGPIPE from here on). An engine that does not keep the promise of
// include/lethe/filter.h is told in `err` at the start. InvalidArgument for options that cannot be met;
// otherwise the error that reading or writing had.
absl::Status RunFilter(const FilterCommandOptions& options, int in_fd, int out_fd, std::ostream& err,
                       int stop_fd = -1);

// RunFilter from standard input to standard output, with the summary on standard error; the exit code. The
// first Ctrl-C ends the input; what was read is judged, written and told.
int FilterCommand(const FilterCommandOptions& options);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_FILTER_COMMAND_H_
