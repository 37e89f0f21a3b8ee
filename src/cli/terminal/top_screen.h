// The screen of `lethe top`, as text.
#ifndef LETHE_SRC_CLI_TERMINAL_TOP_SCREEN_H_
#define LETHE_SRC_CLI_TERMINAL_TOP_SCREEN_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lethe {

struct TopScreenOptions {
  int width = 80;  // columns; lines are cut there
  int height = 24;
  bool colors = false;    // of ANSI terminals
  bool has_keys = false;  // the last line says which
};

// Keeps the counts of the last answer, from which the rates come, and where the user has scrolled to. Not
// thread-safe.
class TopScreen {
 public:
  enum class Sort { kPartition, kLag, kUnique, kDuplicate, kFpp };

  struct Rates {
    std::optional<double> unique;
    std::optional<double> duplicate;
  };

  // Of all partitions.
  struct Totals {
    Rates rates;
    int64_t suspects = 0;
    size_t active = 0;
    double lag = 0;
    double ids = 0;
    double memory = 0;
    double fpp = 0;  // the worst
  };

  // `status` is an answer of /status, received at `now`. Lines end with a newline; there are at most `height`
  // of them. InvalidArgument if it is no such answer.
  absl::StatusOr<std::string> Draw(absl::string_view status, absl::Time now, const TopScreenOptions& options);

  // The same answer again, after one of these.
  absl::StatusOr<std::string> Redraw(const TopScreenOptions& options);
  void Scroll(int partitions) {
    first_ = partitions < 0 ? first_ - std::min(first_, static_cast<size_t>(-partitions))
                            : first_ + static_cast<size_t>(partitions);
  }
  void SortByNext();

 private:
  struct Counts {
    int64_t unique = 0;
    int64_t duplicate = 0;
  };
  absl::Status Take(absl::string_view status, absl::Time now);

  absl::Time last_ = absl::InfinitePast();
  std::map<int32_t, Counts> counts_;  // by partition
  std::map<int32_t, Rates> rates_;    // since the answer before
  Totals totals_;
  std::string status_;  // the last answer
  size_t first_ = 0;    // of the partitions, as sorted, that is drawn first
  Sort sort_ = Sort::kPartition;
};

}  // namespace lethe

#endif  // LETHE_SRC_CLI_TERMINAL_TOP_SCREEN_H_
