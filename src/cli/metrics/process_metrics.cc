#include "src/cli/metrics/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace lethe {
namespace {

constexpr MetricDefinition kDefinitions[] = {
    {"process_cpu_seconds_total", kCounter, "", "seconds", "Processor time, user and system.",
     "Near the number of lanes: the lanes are busy all the time; add lanes or instances."},
    {"process_resident_memory_bytes", kGauge, "", "bytes", "Resident memory of the process.",
     "Above `lethe_memory_used_bytes` by what the clients queue: some 100 MiB a lane. Far more: report it."},
    {"process_virtual_memory_bytes", kGauge, "", "bytes", "Address space of the process.",
     "Nothing: address space costs nothing."},
    {"process_start_time_seconds", kGauge, "", "Unix time", "When the process was started.",
     "It changes often: the process is restarted; its log ends with the reason."},
    {"process_open_fds", kGauge, "", "files", "Open file descriptors.",
     "Near the limit: raise it (`ulimit -n`)."},
    {"process_max_fds", kGauge, "", "files", "The limit of open file descriptors.", "Raise `ulimit -n`."},
};

// The fields of /proc/self/stat after the program's name, which may hold spaces: `state` is the first.
std::vector<std::string> StatFields() {
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 > text.size()) return {};
  return absl::StrSplit(text.substr(name_end + 2), ' ');
}

// `number` as proc(5) counts the fields, from 1.
std::optional<double> StatField(const std::vector<std::string>& fields, size_t number) {
  double value = 0;
  const size_t index = number - 3;
  if (index >= fields.size() || !absl::SimpleAtod(fields[index], &value)) return std::nullopt;
  return value;
}

std::optional<double> BootTime() {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);) {
    double seconds = 0;
    if (absl::StartsWith(line, "btime ") && absl::SimpleAtod(line.substr(6), &seconds)) return seconds;
  }
  return std::nullopt;
}

std::optional<double> OpenFiles() {
  std::error_code error;
  double files = 0;
  for (std::filesystem::directory_iterator it("/proc/self/fd", error), end; !error && it != end;
       it.increment(error)) {
    ++files;
  }
  if (error) return std::nullopt;
  return files - 1;  // one is the folder itself
}

std::optional<double> FileLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  return static_cast<double>(limit.rlim_cur);
}

}  // namespace

absl::Span<const MetricDefinition> ProcessDefinitions() { return kDefinitions; }

std::vector<prometheus::MetricFamily> ProcessMetrics() {
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  const double page = static_cast<double>(sysconf(_SC_PAGESIZE));
  const std::vector<std::string> fields = StatFields();
  const std::optional<double> user = StatField(fields, 14);
  const std::optional<double> system = StatField(fields, 15);
  const std::optional<double> start = StatField(fields, 22);
  const std::optional<double> virtual_bytes = StatField(fields, 23);
  const std::optional<double> resident_pages = StatField(fields, 24);
  const std::optional<double> boot = BootTime();
  const std::optional<double> values[] = {
      user && system ? std::optional((*user + *system) / ticks) : std::nullopt,
      resident_pages ? std::optional(*resident_pages * page) : std::nullopt,
      virtual_bytes,
      start && boot ? std::optional(*boot + *start / ticks) : std::nullopt,
      OpenFiles(),
      FileLimit(),
  };
  std::vector<prometheus::MetricFamily> families;
  for (size_t i = 0; i < std::size(kDefinitions); ++i) {
    families.push_back(NewFamily(kDefinitions[i]));
    if (values[i]) AddSample(*values[i], {}, &families.back());
  }
  return families;
}

}  // namespace lethe
