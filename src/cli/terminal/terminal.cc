#include "src/cli/terminal/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "src/pipeline/clock/steady_time.h"
#include "src/text/format.h"

namespace lethe {
namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody calls setenv
  return value == nullptr ? "" : value;
}

bool IsUtf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string locale = absl::AsciiStrToLower(Environment(name));
    if (!locale.empty()) return absl::StrContains(locale, "utf-8") || absl::StrContains(locale, "utf8");
  }
  return false;
}

}  // namespace

TextStyle TextStyle::Of(int fd) { return For(isatty(fd) != 0); }

TextStyle TextStyle::For(bool is_terminal) {
  const bool colour = is_terminal && Environment("NO_COLOR").empty() && Environment("TERM") != "dumb";
  return {.colour = colour, .blocks = IsUtf8()};
}

std::string TextStyle::Paint(absl::string_view code, absl::string_view text) const {
  return colour ? absl::StrCat("\033[", code, "m", text, "\033[0m") : std::string(text);
}

std::string TextStyle::Bar(double share, int width) const {
  const int eighths = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * 8 * width));
  const int drawn = share > 0 ? std::max(eighths, 1) : 0;
  std::string bar;
  if (!blocks) return std::string(static_cast<size_t>((drawn + 7) / 8), '#');
  for (int i = 0; i < drawn / 8; ++i) bar += "\u2588";
  constexpr const char* kParts[] = {"", "\u258F", "\u258E", "\u258D", "\u258C", "\u258B", "\u258A", "\u2589"};
  return bar + kParts[drawn % 8];
}

double Progress::Share() const {
  return total <= 0 ? 1 : std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0);
}

bool CanRedraw(int fd) { return isatty(fd) != 0 && Environment("TERM") != "dumb"; }

int TerminalWidth(int fd) {
  winsize size = {};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

int TerminalHeight(int fd) {
  winsize size = {};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}

std::string Wrapped(absl::string_view text, int columns, int indent) {
  const std::string margin(static_cast<size_t>(indent), ' ');
  std::string wrapped;
  size_t column = margin.size();
  for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (column > margin.size() && column + 1 + word.size() > static_cast<size_t>(columns)) {
      absl::StrAppend(&wrapped, "\n", margin);
      column = margin.size();
    } else if (column > margin.size()) {
      wrapped += ' ';
      ++column;
    }
    absl::StrAppend(&wrapped, word);
    column += word.size();
  }
  return wrapped;
}

std::string ProgressFigures(const Progress& progress) {
  const double share = progress.Share();
  std::string text = absl::StrFormat("%3.0f %%", std::floor(100 * share));
  if (!progress.unit.empty()) {
    absl::StrAppend(&text, ", ", FormatCount(progress.done), " of ", FormatCount(progress.total), " ",
                    progress.unit);
  }
  // The first figures give no meaningful rate.
  if (share > 0 && share < 1 && progress.elapsed >= absl::Milliseconds(250)) {
    const absl::Duration left = progress.elapsed * ((1 - share) / share);
    absl::StrAppend(&text, ", ", absl::FormatDuration(absl::Ceil(left, absl::Seconds(1))), " left");
  }
  if (!progress.note.empty()) absl::StrAppend(&text, ", ", progress.note);
  return text;
}

std::string DrawProgress(const Progress& progress, const TextStyle& style, int width) {
  constexpr int kBar = 20;
  const std::string bar = style.Bar(progress.Share(), kBar);
  // A block is three bytes and one column.
  const auto columns = static_cast<size_t>(std::count_if(
      bar.begin(), bar.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
  std::string text = absl::StrCat(std::string(kBar - columns, ' '), " ", ProgressFigures(progress));
  text.resize(std::min(text.size(), static_cast<size_t>(std::max(width, kBar)) - columns));
  return absl::StrCat(style.Cyan(bar), text);
}

ProgressLine::ProgressLine(absl::string_view unit)
    : unit_(unit),
      shows_(CanRedraw(STDERR_FILENO)),
      style_(TextStyle::Of(STDERR_FILENO)),
      begin_(SteadyNow()),
      next_(begin_ + absl::Milliseconds(300)) {}

void ProgressLine::Clear() {
  if (!is_drawn_) return;
  absl::FPrintF(stderr, "\r\033[K");
  std::fflush(stderr);
  is_drawn_ = false;
}

void ProgressLine::Show(int64_t done, int64_t total, absl::string_view note) {
  const absl::Time now = SteadyNow();
  if (!shows_ || now < next_) return;
  next_ = now + absl::Milliseconds(100);
  // The last column stays free: some terminals go to the next line when it is written.
  absl::FPrintF(
      stderr, "\r%s\033[K",
      DrawProgress(
          {.done = done, .total = total, .unit = unit_, .elapsed = now - begin_, .note = std::string(note)},
          style_, TerminalWidth(STDERR_FILENO) - 1));
  std::fflush(stderr);
  is_drawn_ = true;
}

}  // namespace lethe
