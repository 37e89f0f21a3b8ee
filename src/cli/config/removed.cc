#include "src/cli/config/removed.h"

#include "absl/strings/str_cat.h"

namespace lethe {
namespace {

constexpr Removed kRemoved[] = {
    {"adaptation", "0.2", "delete the line; engine published always adapts by its paper's Algorithm 3"},
    {"at_memory_limit", "0.2",
     "delete the line; at the limit the window shortens and no more unique events are lost than fpp says"},
    {"second_opinion", "0.2", "delete the line; to drop fewer unique events, lower fpp or set engine: exact"},
    {"on_suspect", "0.2", "delete the line; no record is judged suspect any more"},
    {"engine: sliced", "0.2", "set compact, which replaces it, or delete the line"},
    {"lethe top", "0.2", "open the status page, or read /status or /metrics"},
    {"lethe completion", "0.2", "run lethe help completion, which prints a script for bash"},
    {"lethe manual", "0.2", "run make install, or read lethe help"},
};

}  // namespace

absl::Span<const Removed> AllRemoved() { return kRemoved; }

std::string RemovedText(absl::string_view name) {
  for (const Removed& removed : kRemoved) {
    if (removed.name == name) {
      return absl::StrCat("removed; version ", removed.last_version,
                          " was the last with it: ", removed.instead);
    }
  }
  return "";
}

}  // namespace lethe
