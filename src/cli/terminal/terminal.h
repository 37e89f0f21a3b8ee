// How text looks where it goes to: a terminal, a pipe, a file.
#ifndef LETHE_SRC_CLI_TERMINAL_TERMINAL_H_
#define LETHE_SRC_CLI_TERMINAL_TERMINAL_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lethe {

// The style in which a text is drawn.
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

// Whether a line can be drawn over again there: a terminal that is not dumb.
bool CanRedraw(int fd);

// Columns of the terminal; 80 if it does not say.
int TerminalWidth(int fd);

// Lines of the terminal; 24 if it does not say.
int TerminalHeight(int fd);

// The text broken between words, so that no line is longer than `columns` but for a word that is. The caller
// has written `indent` columns of the first line; the others begin with as many spaces. No newline at the
// end.
std::string Wrapped(absl::string_view text, int columns, int indent = 0);

// How far a long work is.
struct Progress {
  int64_t done = 0;
  int64_t total = 0;
  absl::string_view unit = "";  // the counted things, in the plural; empty: only the share is shown
  absl::Duration elapsed = absl::ZeroDuration();  // since it began with none done
  std::string note = "";                          // additional text

  double Share() const;  // 1 if there is nothing to do
};

// The share, how many of how many, the time left and the note.
std::string ProgressFigures(const Progress& progress);

// The same behind a bar: a line without its end, which is cut at `width` columns. Unit and note are ASCII.
std::string DrawProgress(const Progress& progress, const TextStyle& style, int width);

// Long work on stderr, if that is a terminal: a line that is drawn over again, and gone at the end. Not
// thread-safe.
class ProgressLine {
 public:
  // `unit` names the counted things, in the plural.
  explicit ProgressLine(absl::string_view unit);
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Drawn ten times a second at most, and not for work that is done at once.
  void Show(int64_t done, int64_t total, absl::string_view note = "");

  // Before something else is written.
  void Clear();

 private:
  const std::string unit_;
  const bool shows_;
  const TextStyle style_;
  const absl::Time begin_;
  absl::Time next_;
  bool is_drawn_ = false;
};

}  // namespace lethe

#endif  // LETHE_SRC_CLI_TERMINAL_TERMINAL_H_
