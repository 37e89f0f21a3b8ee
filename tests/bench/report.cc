#include "tests/bench/report.h"

#include <sys/sysinfo.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "src/cli/terminal/terminal.h"
#include "tests/bench/clocks.h"

namespace lethe::bench {
namespace {

// Where a file has tables of that name: behind the line that begins them, and before the one that ends them.
struct Marks {
  size_t begin;
  size_t end;
};
absl::StatusOr<Marks> FindMarks(const std::string& path, absl::string_view name, absl::string_view text) {
  const std::string begin_mark = absl::StrCat("<!-- ", name, " -->\n");
  const std::string end_mark = absl::StrCat("<!-- end of ", name, " -->\n");
  const size_t begin = text.find(begin_mark);
  const size_t end = text.find(end_mark);
  if (begin == absl::string_view::npos || end == absl::string_view::npos || end < begin) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": has no lines ", begin_mark, " and ", end_mark));
  }
  return Marks{begin + begin_mark.size(), end};
}

// The value of the first line of /proc/cpuinfo with that name.
std::string ProcessorField(absl::string_view name) {
  const absl::StatusOr<std::string> text = ReadFile("/proc/cpuinfo");
  if (!text.ok()) return "unknown";
  for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
    const std::pair<absl::string_view, absl::string_view> field =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    if (absl::StripAsciiWhitespace(field.first) == name) {
      return std::string(absl::StripAsciiWhitespace(field.second));
    }
  }
  return "unknown";
}

std::string HugePages() {
  const absl::StatusOr<std::string> text = ReadFile("/sys/kernel/mm/transparent_hugepage/enabled");
  if (!text.ok()) return "unknown";
  const size_t begin = text->find('[');
  const size_t end = text->find(']');
  if (begin == std::string::npos || end == std::string::npos) return "unknown";
  return text->substr(begin + 1, end - begin - 1);
}

std::string KiBText(int name) { return absl::StrCat(sysconf(name) >> 10, " KiB"); }

}  // namespace

std::string Table::Markdown() const {
  std::string out = absl::StrCat("### ", heading, "\n\n", text, text.empty() ? "" : "\n\n");
  absl::StrAppend(&out, "| ", absl::StrJoin(columns, " | "), " |\n|");
  for (size_t i = 0; i < columns.size(); ++i) absl::StrAppend(&out, " --- |");
  absl::StrAppend(&out, "\n");
  for (const std::vector<std::string>& row : rows) {
    absl::StrAppend(&out, "| ", absl::StrJoin(row, " | "), " |\n");
  }
  return out;
}

std::string IdsText(double ids) {
  const double exponent = std::log10(ids);
  if (exponent == std::round(exponent)) return absl::StrFormat("10^%.0f", exponent);
  return absl::StrFormat("%.1e", ids);
}

std::string FigureText(double value) {
  if (value == 0) return "0";
  if (value < 0.05) return absl::StrFormat("%.2g", value);
  return absl::StrFormat("%.*f", value < 100 ? 1 : 0, value);
}

std::string FppText(const Figures& figures) {
  if (figures.false_hits >= 10) return absl::StrFormat("%.2g", figures.fpp);
  if (figures.fpp_modelled > 0) return absl::StrFormat("%.2g (model)", figures.fpp_modelled);
  return "0";
}

std::string MachineText() {
  struct sysinfo info {};
  sysinfo(&info);
  const double gib = static_cast<double>(info.totalram) * info.mem_unit / (1 << 30);
  return absl::StrFormat(
      "Machine: %s (family %s, model %s), %u processors, L2 %s, L3 %s, %.0f GiB of memory, transparent huge "
      "pages: %s. Compiler: %s %s, %s.",
      ProcessorField("model name"), ProcessorField("cpu family"), ProcessorField("model"),
      std::thread::hardware_concurrency(), KiBText(_SC_LEVEL2_CACHE_SIZE), KiBText(_SC_LEVEL3_CACHE_SIZE),
      gib, HugePages(),
#ifdef __clang__
      "clang",
#else
      "GCC",
#endif
      __VERSION__, absl::StripAsciiWhitespace(LETHE_BUILD));
}

bool BenchProgress::Begin(absl::string_view what, double seconds) {
  if (planning_) {
    planned_seconds_ += seconds;
    ++planned_steps_;
    return false;
  }
  done_seconds_ += std::exchange(current_seconds_, seconds);
  // As fast as it has been; at first, as the plan has it.
  const double elapsed =
      done_seconds_ < 5 ? done_seconds_ : static_cast<double>(WallNanos() - start_nanos_) * 1e-9;
  const Progress progress = {.done = std::llround(1000 * done_seconds_),
                             .total = std::llround(1000 * planned_seconds_),
                             .unit = "",
                             .elapsed = absl::Seconds(elapsed),
                             .note = absl::StrCat(++step_, " of ", planned_steps_, ": ", what)};
  if (CanRedraw(STDERR_FILENO)) {
    absl::FPrintF(stderr, "\r%s\033[K",
                  DrawProgress(progress, TextStyle::Of(STDERR_FILENO), TerminalWidth(STDERR_FILENO) - 1));
  } else {
    absl::FPrintF(stderr, "%s\n", ProgressFigures(progress));
  }
  return true;
}

void BenchProgress::EndPlan() {
  planning_ = false;
  start_nanos_ = WallNanos();
}

void BenchProgress::Clear() const {
  if (!planning_ && CanRedraw(STDERR_FILENO)) absl::FPrintF(stderr, "\r\033[K");
}

std::vector<std::string> JsonObjects(const std::vector<Figures>& all) {
  std::vector<std::string> objects;
  for (const Figures& f : all) {
    objects.push_back(
        absl::StrFormat("{\"layout\": \"%s\", \"window\": %.0f, \"generations\": %d, \"target_fpp\": %g, "
                        "\"bits_per_id\": %.2f, \"most_bits_per_id\": %.2f, \"fallen_share\": %.3f, "
                        "\"fpp\": %.4g, \"false_hits\": %.0f, \"fpp_modelled\": %.4g, "
                        "\"ns_batch\": %.2f, \"ns_from_nothing\": %.2f, \"ns_falling\": %.2f, "
                        "\"ns_single\": %.2f, \"slowest_us\": %.2f}",
                        f.layout, f.window, f.generations, f.target_fpp, f.bits_per_id, f.most_bits_per_id,
                        f.fallen_share, f.fpp, f.false_hits, f.fpp_modelled, f.ns_batch, f.ns_from_nothing,
                        f.ns_falling, f.ns_single, f.slowest_us));
  }
  return objects;
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  return text.str();
}

absl::Status WriteFile(const std::string& path, absl::string_view text) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) return absl::UnavailableError(absl::StrCat(path, ": cannot be written"));
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadTables(const std::string& path, absl::string_view name) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return text.status();
  const absl::StatusOr<Marks> marks = FindMarks(path, name, *text);
  if (!marks.ok()) return marks.status();
  return text->substr(marks->begin, marks->end - marks->begin);
}

absl::Status ReplaceTables(const std::string& path, absl::string_view name, absl::string_view text) {
  const absl::StatusOr<std::string> before = ReadFile(path);
  if (!before.ok()) return before.status();
  const absl::StatusOr<Marks> marks = FindMarks(path, name, *before);
  if (!marks.ok()) return marks.status();
  return WriteFile(
      path, absl::StrCat(before->substr(0, marks->begin), "\n", text, "\n", before->substr(marks->end)));
}

}  // namespace lethe::bench
