// How text looks where it goes to: a terminal, a pipe, a file.
#ifndef LETHE_SRC_CLI_TERMINAL_H_
#define LETHE_SRC_CLI_TERMINAL_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lethe {

// What a text may be drawn with.
struct TextStyle {
  bool colour = false;
  bool blocks = false;  // the block characters of Unicode

  // Colour if the file is a terminal that is not dumb, and NO_COLOR (no-color.org) is not set; blocks if the
  // locale is a UTF-8 one.
  static TextStyle Of(int fd);
  static TextStyle For(bool is_terminal);

  std::string Bold(absl::string_view text) const { return Paint("1", text); }
  std::string Dim(absl::string_view text) const { return Paint("2", text); }
  std::string Red(absl::string_view text) const { return Paint("31", text); }
  std::string Green(absl::string_view text) const { return Paint("32", text); }
  std::string Yellow(absl::string_view text) const { return Paint("33", text); }
  std::string Cyan(absl::string_view text) const { return Paint("36", text); }

  // `share` (0 to 1) of `width` columns, to an eighth of a column; one that is not 0 shows.
  std::string Bar(double share, int width) const;

 private:
  std::string Paint(absl::string_view code, absl::string_view text) const;
};

// Long work on stderr, if that is a terminal: a line that is drawn over again, and gone at the end.
class ProgressLine {
 public:
  // `unit` is what is counted, in the plural.
  explicit ProgressLine(absl::string_view unit);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Drawn ten times a second at most.
  void Show(int64_t done, int64_t total);

 private:
  const std::string unit_;
  const bool shows_;
  const TextStyle style_;
  const absl::Time begin_;
  absl::Time next_;
};

}  // namespace lethe

#endif  // LETHE_SRC_CLI_TERMINAL_H_
