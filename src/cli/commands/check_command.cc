#include "src/cli/commands/check_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "connectors/http/http_client.h"
#include "connectors/http/http_server.h"
#include "connectors/kafka/preflight/check.h"
#include "src/cli/terminal/json_text.h"
#include "src/cli/terminal/log.h"
#include "src/cli/terminal/plain_text.h"

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

// Leaves no trace: the file that is tried has no name, and is gone when it is closed.
absl::Status TryWritingIn(const std::string& folder) {
  const int file = open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (file >= 0) {
    close(file);
    return absl::OkStatus();
  }
  // Not every file system has files without a name.
  const bool cannot_tell = errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT;
  if (cannot_tell && faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno, folder);
}

// `run` makes the folder if it is missing, and those above it.
Finding LookAtSnapshotFolder(const std::string& folder) {
  std::error_code error;
  std::filesystem::path there = std::filesystem::absolute(folder, error);
  while (there.has_relative_path() && !std::filesystem::exists(there, error)) there = there.parent_path();
  const bool is_there = std::filesystem::exists(folder, error);
  const std::string where = absl::StrCat("snapshot folder ", folder);
  if (absl::Status tried = TryWritingIn(there.string()); !tried.ok()) {
    return {
        Severity::kError, "snapshots", where,
        absl::StrCat(is_there ? "cannot be written: " : "cannot be made: ", tried.message()),
        absl::StrCat("let this user write to ", there.string(), ", or name another folder in snapshots.to")};
  }
  return {Severity::kOk, "snapshots", where,
          is_there ? "can be written" : absl::StrCat("is made at the start, in ", there.string()), ""};
}

// While lethe runs the address is taken: by this instance, as its status says.
bool AnswersAsItself(const std::string& address, const DaemonOptions& daemon) {
  const absl::StatusOr<http::HttpAddress> parsed = http::HttpAddress::Parse(address);
  if (!parsed.ok()) return false;
  const absl::StatusOr<std::string> answer = http::HttpGet(parsed->host, parsed->port, "/status");
  if (!answer.ok()) return false;
  const auto status = nlohmann::json::parse(*answer, nullptr, /*allow_exceptions=*/false);
  return status.is_object() && status.value("group", "") == daemon.group &&
         status.value("instance", "") == daemon.instance;
}

Finding LookAtHttp(const std::string& address, const DaemonOptions& daemon) {
  const std::string where = absl::StrCat("http ", address);
  const absl::Status bound = http::HttpServer::Start(address, {}).status();
  if (bound.ok()) return {Severity::kOk, "http", where, "can be listened to", ""};
  if (AnswersAsItself(address, daemon)) {
    return {Severity::kOk, "http", where, "is answered by this instance, which runs", ""};
  }
  return {Severity::kError, "http", where, absl::StrCat("cannot be listened to: ", bound.message()),
          "name another address with http, or off"};
}

}  // namespace

std::vector<Finding> CheckMachine(const RunConfig& config) {
  std::vector<Finding> findings;
  if (!config.daemon.snapshots.folder.empty()) {
    findings.push_back(LookAtSnapshotFolder(config.daemon.snapshots.folder));
  }
  if (config.http != "off") findings.push_back(LookAtHttp(config.http, config.daemon));
  return findings;
}

int WriteFindings(const std::vector<Finding>& findings, const CheckCommandOptions& options,
                  std::ostream& out) {
  Severity worst = Severity::kOk;
  int counts[3] = {};
  std::string list;
  for (const Finding& finding : findings) {
    worst = std::max(worst, finding.severity);
    ++counts[static_cast<int>(finding.severity)];
    if (options.format == ReportFormat::kText) {
      // A broker's message may have several lines.
      std::string line = finding.Text();
      std::replace(line.begin(), line.end(), '\n', ' ');
      out << absl::StreamFormat("%-8s %-15s %s\n", Name(finding.severity), finding.check, Printable(line));
    } else {
      absl::StrAppend(&list, list.empty() ? "" : ",", Json(finding));
    }
  }
  if (options.format == ReportFormat::kText) {
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
                           absl::StrCat("is wrong: ", config.status().message()),
                           "correct the file or the flag that it names"}},
                         options, out);
  }
  // The findings say what librdkafka reports meanwhile; its own lines are for log level debug.
  LogOptions log = config->log;
  log.level = log.level == LogLevel::kInfo ? LogLevel::kError : log.level;
  StartLog(log);
  std::vector<Finding> findings = {{Severity::kOk, "configuration", "configuration", "can be read", ""}};
  if (!config->warning.empty()) {
    findings.push_back({Severity::kWarning, "configuration", "command line", config->warning, ""});
  }
  for (Finding& finding : CheckMachine(*config)) findings.push_back(std::move(finding));
  for (Finding& finding : kafka::Check(config->daemon)) findings.push_back(std::move(finding));
  return WriteFindings(findings, options, out);
}

}  // namespace lethe
