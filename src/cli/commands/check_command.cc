#include "src/cli/commands/check_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "connectors/http/http_client.h"
#include "connectors/http/http_server.h"
#include "connectors/kafka/preflight/probes.h"
#include "connectors/registry/patient_schemas.h"
#include "src/cli/terminal/json_text.h"
#include "src/cli/terminal/log.h"
#include "src/cli/terminal/plain_text.h"
#include "src/pipeline/clock/clock.h"
#include "src/pipeline/options/topic_list.h"
#include "src/pipeline/preflight/check.h"
#include "src/text/format.h"

namespace lethe {
namespace {

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
                      ",\"topic\":", finding.topic.empty() ? "null" : JsonString(finding.topic),
                      ",\"where\":", JsonString(finding.where), ",\"what\":", JsonString(finding.what),
                      ",\"remedy\":", JsonString(finding.remedy), "}");
}

std::string OnOneLine(absl::string_view text) {
  // A broker's message may have several lines.
  return Printable(absl::StrReplaceAll(text, {{"\n", " "}}));
}

constexpr int kSeverityColumns = 9;
constexpr int kCheckColumns = 16;

// The first two columns.
std::string Head(const Finding& finding, const TextStyle& style) {
  const std::string name = absl::StrFormat("%-*s", kSeverityColumns, Name(finding.severity));
  const std::string painted = finding.severity == Severity::kError     ? style.Red(name)
                              : finding.severity == Severity::kWarning ? style.Yellow(name)
                                                                       : style.Green(name);
  return absl::StrFormat("%s%-*s", painted, kCheckColumns, finding.check);
}

// On a terminal: broken between words. A command of Kafka is on a line of its own, unbroken, to be copied.
void WriteFolded(const Finding& finding, const FindingsLook& look, std::ostream& out) {
  constexpr int kIndent = kSeverityColumns + kCheckColumns;
  constexpr int kNarrow = 60;
  const bool is_narrow = look.columns < kNarrow;
  const int indent = is_narrow ? kSeverityColumns : kIndent;
  const std::string margin = absl::StrCat("\n", std::string(static_cast<size_t>(indent), ' '));
  const auto paragraph = [&](absl::string_view text) {
    const size_t command = std::min(text.find("kafka-topics.sh "), text.find("kafka-configs.sh "));
    if (command > 0) out << Wrapped(OnOneLine(text.substr(0, command)), look.columns - 1, indent);
    if (command == absl::string_view::npos) return;
    out << (command > 0 ? "\n  " : "  ") << look.style.Bold(OnOneLine(text.substr(command)));
  };
  out << Head(finding, look.style) << (is_narrow ? margin : "");
  paragraph(absl::StrCat(finding.where, " ", finding.what));
  if (!finding.remedy.empty()) {
    const bool is_command = absl::StartsWith(finding.remedy, "kafka-");
    out << (is_command ? "\n" : margin);
    paragraph(finding.remedy);
  }
  out << "\n";
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
  return status.is_object() && status.value("group", "") == daemon.process.group &&
         status.value("instance", "") == daemon.process.instance;
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

Finding LookAtLimit(const DaemonOptions& daemon, bool has_registry, const CgroupLimit& limit) {
  if (const absl::Status fits = FitsLimit(daemon, has_registry, limit); !fits.ok()) {
    return {Severity::kError, "memory", "cgroup", std::string(fits.message()), ""};
  }
  return {Severity::kOk, "memory", absl::StrCat("cgroup ", limit.file),
          absl::StrCat("has room for memory (", FormatBytes(daemon.stage.memory_limit_bytes), ") and the ",
                       FormatBytes(BytesBesideMemory(daemon, has_registry)), " beside it"),
          ""};
}

// As text, findings about several topics name theirs, and a topic without errors and warnings has one line.
std::vector<Finding> GroupByTopic(std::vector<Finding> findings) {
  struct Counts {
    int ok = 0;
    int others = 0;
  };
  std::map<std::string, Counts> topics;
  for (const Finding& finding : findings) {
    if (finding.topic.empty()) continue;
    ++(finding.severity == Severity::kOk ? topics[finding.topic].ok : topics[finding.topic].others);
  }
  if (topics.size() < 2) return findings;
  std::vector<Finding> shown;
  for (Finding& finding : findings) {
    if (!finding.topic.empty() && finding.severity == Severity::kOk) continue;
    if (!finding.topic.empty()) finding.where = absl::StrCat(finding.topic, ": ", finding.where);
    shown.push_back(std::move(finding));
  }
  for (const auto& [topic, counts] : topics) {
    if (counts.others > 0) continue;
    shown.push_back(
        {Severity::kOk, "topic", topic, absl::StrCat("passes ", counts.ok, " checks"), "", topic});
  }
  return shown;
}

std::vector<Finding> CheckCluster(const RunConfig& config, SchemaSource* schemas, Missing missing) {
  std::vector<DaemonOptions> topics = config.topics;
  for (DaemonOptions& topic : topics) topic.record.schemas = schemas;
  kafka::KafkaProbes probes;
  if (topics.size() == 1 && !IsPattern(topics.front().input) && topics.front().merged.empty()) {
    return Check(topics.front(), probes, SystemClock(), missing);
  }
  const auto list = TopicList::Create(std::move(topics));
  if (!list.ok()) {
    return {{Severity::kError, "topics", "topics",
             absl::StrCat("do not go together: ", list.status().message()), ""}};
  }
  ProgressLine progress("topics");
  return Check(
      config.daemon, *list, probes, SystemClock(),
      [&](int64_t done, int64_t total) { progress.Show(done, total); }, missing);
}

}  // namespace

std::vector<Finding> CheckMachine(const RunConfig& config) {
  std::vector<Finding> findings;
  if (config.limit)
    findings.push_back(LookAtLimit(config.daemon, !config.schema_registry.urls.empty(), *config.limit));
  if (!config.daemon.process.snapshots.folder.empty()) {
    findings.push_back(LookAtSnapshotFolder(config.daemon.process.snapshots.folder));
  }
  if (config.http != "off") findings.push_back(LookAtHttp(config.http, config.daemon));
  return findings;
}

int WriteFindings(std::vector<Finding> findings, const CheckCommandOptions& options, const FindingsLook& look,
                  std::ostream& out) {
  absl::c_stable_sort(findings, [](const Finding& x, const Finding& y) { return x.severity > y.severity; });
  const Severity worst = findings.empty() ? Severity::kOk : findings.front().severity;
  int counts[3] = {};
  for (const Finding& finding : findings) ++counts[static_cast<int>(finding.severity)];
  if (options.format == ReportFormat::kText) findings = GroupByTopic(std::move(findings));
  std::string list;
  for (const Finding& finding : findings) {
    if (options.quiet && finding.severity == Severity::kOk) continue;
    if (options.format == ReportFormat::kJson) {
      absl::StrAppend(&list, list.empty() ? "" : ",", Json(finding));
    } else if (look.columns > 0) {
      WriteFolded(finding, look, out);
    } else {
      out << Head(finding, look.style) << OnOneLine(finding.Text()) << "\n";
    }
  }
  if (options.format == ReportFormat::kJson) {
    out << "{\"findings\":[" << list << "],\"ok\":" << counts[0] << ",\"warnings\":" << counts[1]
        << ",\"errors\":" << counts[2] << "}\n";
  } else if (!options.quiet) {
    out << absl::StrCat(counts[0], " ok, ", Several(counts[1], "warning"), ", ", Several(counts[2], "error"),
                        "\n");
  }
  return static_cast<int>(worst);
}

int RunCheck(const absl::StatusOr<RunConfig>& config, const CheckCommandOptions& options,
             const FindingsLook& look, std::ostream& out) {
  if (!config.ok()) {
    return WriteFindings({{Severity::kError, "configuration", "configuration",
                           absl::StrCat("is wrong: ", config.status().message()),
                           "correct the file or the flag that it names"}},
                         options, look, out);
  }
  // The findings say what librdkafka reports meanwhile; its own lines are for log level debug.
  LogOptions log = config->log;
  log.level = log.level == LogLevel::kInfo ? LogLevel::kError : log.level;
  StartLog(log);
  std::vector<Finding> findings = {{Severity::kOk, "configuration", "configuration", "can be read", ""}};
  if (!config->warning.empty()) {
    findings.push_back({Severity::kWarning, "configuration", "configuration", config->warning, ""});
  }
  for (Finding& finding : CheckMachine(*config)) findings.push_back(std::move(finding));
  const auto schemas = registry::PatientSchemas::Open(config->schema_registry, [&](const std::string& what) {
    if (!options.quiet) std::cerr << Printable(what) << std::endl;
  });
  const Missing missing = options.create ? Missing::kCreate : Missing::kReport;
  absl::c_move(CheckCluster(*config, schemas.get(), missing), std::back_inserter(findings));
  return WriteFindings(std::move(findings), options, look, out);
}

}  // namespace lethe
