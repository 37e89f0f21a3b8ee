#include "src/cli/check_command.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "connectors/kafka/check.h"
#include "src/cli/json_text.h"
#include "src/cli/log.h"
#include "src/cli/plain_text.h"

namespace lethe {
namespace {

using kafka::Finding;
using Severity = Finding::Severity;

const char* Name(Severity severity) {
  switch (severity) {
    case Severity::kOk:
      return "ok";
    case Severity::kWarning:
      return "warning";
    case Severity::kError:
      return "error";
  }
  return "";
}

std::string Json(const Finding& finding) {
  return absl::StrCat("{\"severity\":\"", Name(finding.severity), "\",\"check\":", JsonString(finding.check),
                      ",\"where\":", JsonString(finding.where), ",\"what\":", JsonString(finding.what),
                      ",\"remedy\":", JsonString(finding.remedy), "}");
}

}  // namespace

int WriteFindings(const std::vector<Finding>& findings, const CheckCommandOptions& options,
                  std::ostream& out) {
  Severity worst = Severity::kOk;
  int counts[3] = {};
  std::string list;
  for (const Finding& finding : findings) {
    worst = std::max(worst, finding.severity);
    ++counts[static_cast<int>(finding.severity)];
    if (options.format == CheckCommandOptions::Format::kText) {
      // What a broker says may have several lines.
      std::string line = finding.Text();
      std::replace(line.begin(), line.end(), '\n', ' ');
      out << absl::StreamFormat("%-8s %-15s %s\n", Name(finding.severity), finding.check, Printable(line));
    } else {
      absl::StrAppend(&list, list.empty() ? "" : ",", Json(finding));
    }
  }
  if (options.format == CheckCommandOptions::Format::kText) {
    out << absl::StreamFormat("%d ok, %d warning%s, %d error%s\n", counts[0], counts[1],
                              counts[1] == 1 ? "" : "s", counts[2], counts[2] == 1 ? "" : "s");
  } else {
    out << "{\"findings\":[" << list << "],\"ok\":" << counts[0] << ",\"warnings\":" << counts[1]
        << ",\"errors\":" << counts[2] << "}\n";
  }
  return static_cast<int>(worst);
}

int RunCheck(const absl::StatusOr<RunConfig>& config, const CheckCommandOptions& options, std::ostream& out) {
  if (!config.ok()) {
    return WriteFindings({{Severity::kError, "configuration", "configuration",
                           absl::StrCat("is wrong: ", config.status().message()), "correct it"}},
                         options, out);
  }
  // What librdkafka says on the way is in the findings; of itself it is for who looks closer.
  LogOptions log = config->log;
  log.level = log.level == LogLevel::kInfo ? LogLevel::kError : log.level;
  StartLog(log);
  std::vector<Finding> findings = {{Severity::kOk, "configuration", "configuration", "can be read", ""}};
  if (!config->warning.empty()) {
    findings.push_back({Severity::kWarning, "configuration", "command line", config->warning, ""});
  }
  if (const absl::string_view broken = BrokenPromise(config->daemon.stage.engine); !broken.empty()) {
    findings.push_back({Severity::kWarning, "engine",
                        absl::StrCat("engine ", EngineName(config->daemon.stage.engine)), std::string(broken),
                        "use another engine if that matters"});
  }
  for (Finding& finding : kafka::Check(config->daemon)) findings.push_back(std::move(finding));
  return WriteFindings(findings, options, out);
}

}  // namespace lethe
