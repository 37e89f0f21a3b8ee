#include "src/cli/terminal.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "src/cli/units.h"

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

ProgressLine::ProgressLine(absl::string_view unit)
    : unit_(unit),
      shows_(isatty(STDERR_FILENO) != 0),
      style_(TextStyle::Of(STDERR_FILENO)),
      begin_(absl::Now()),
      next_(begin_ + absl::Milliseconds(300)) {}

ProgressLine::~ProgressLine() {
  if (shows_) absl::FPrintF(stderr, "\r\033[K");
}

void ProgressLine::Show(int64_t done, int64_t total) {
  const absl::Time now = absl::Now();
  if (!shows_ || now < next_) return;
  next_ = now + absl::Milliseconds(100);
  constexpr int kWidth = 24;
  const double share = total <= 0 ? 1 : static_cast<double>(done) / static_cast<double>(total);
  const std::string bar = style_.Bar(share, kWidth);
  // A block is three bytes and one column.
  const int columns = static_cast<int>(std::ceil(std::max(share * kWidth * 8, share > 0 ? 1.0 : 0.0) / 8));
  const double rate = static_cast<double>(done) / std::max(0.001, absl::ToDoubleSeconds(now - begin_));
  const double left = rate <= 0 ? 0 : static_cast<double>(total - done) / rate;
  absl::FPrintF(stderr, "\r%s%s %3.0f %%  %s of %s %s, %.0f s left\033[K", style_.Cyan(bar),
                std::string(static_cast<size_t>(std::max(0, kWidth - columns)), ' '), std::floor(100 * share),
                FormatCount(done), FormatCount(total), unit_, std::ceil(left));
  std::fflush(stderr);
}

}  // namespace lethe
