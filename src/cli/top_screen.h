// What `lethe top` draws, as text.
#ifndef LETHE_SRC_CLI_TOP_SCREEN_H_
#define LETHE_SRC_CLI_TOP_SCREEN_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lethe {

struct TopScreenOptions {
  int width = 80;  // columns; lines are cut there
  int height = 24;
  bool colors = false;  // of ANSI terminals
};

// Keeps the counts of the last answer, from which the rates come. Not thread-safe.
class TopScreen {
 public:
  // `status` is an answer of /status, received at `now`. Lines end with a newline; there are at most `height`
  // of them. InvalidArgument if it is no such answer.
  absl::StatusOr<std::string> Draw(absl::string_view status, absl::Time now, const TopScreenOptions& options);

 private:
  struct Counts {
    int64_t unique = 0;
    int64_t duplicate = 0;
  };
  absl::Time last_ = absl::InfinitePast();
  std::map<int32_t, Counts> counts_;  // by partition
};

}  // namespace lethe

#endif  // LETHE_SRC_CLI_TOP_SCREEN_H_
