#include "src/cli/commands/verify_command.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "connectors/kafka/group/broker_client.h"
#include "connectors/registry/patient_schemas.h"
#include "src/cli/config/config_file.h"
#include "src/cli/config/units.h"
#include "src/cli/terminal/interrupt.h"
#include "src/cli/terminal/log.h"
#include "src/cli/terminal/plain_text.h"
#include "src/cli/terminal/terminal.h"
#include "src/cli/verify/verify_text.h"
#include "src/cli/verify/verify_topic.h"
#include "src/pipeline/options/topic_list.h"
#include "src/pipeline/preflight/inspect_topics.h"
#include "src/record/timestamp.h"

namespace lethe {
namespace {

constexpr int kExitError = 2;

absl::Status StoreSince(absl::string_view text, absl::Time& target) {
  absl::Duration ago;
  if (text == "all") {
    target = absl::InfinitePast();
  } else if (const std::optional<absl::Time> time = ParseRfc3339(text)) {
    target = *time;
  } else if (StoreValue({"DURATION", "1ms or more", ""}, text, ago).ok()) {
    target = absl::Now() - ago;
  } else {
    return BadValue(text, "expected a duration (2h), a date and time as RFC 3339 has them, or all");
  }
  return absl::OkStatus();
}

absl::Status StoreShare(absl::string_view text, std::optional<double>& target) {
  double share = 0;
  if (!absl::SimpleAtod(text, &share) || !(share > 0 && share <= 1)) {
    return BadValue(text, "expected a number above 0, and at most 1");
  }
  target = share;
  return absl::OkStatus();
}

constexpr Setting<VerifyCommandOptions> kVerifySettings[] = {
    {"config", "FILE", "", true, "The configuration of lethe run", "lethe.yaml",
     Value<At<&VerifyCommandOptions::config>>},
    {"topic", "TOPIC", "all of them", false, "Which topic of the configuration: an input, or an output",
     "orders", Value<At<&VerifyCommandOptions::topic>>},
    {"since", "DURATION|TIME|all", "2h", false,
     "Judge records from this time on, by their timestamps; older ones of a horizon are read, too",
     "2026-11-22T18:00:00Z", By<StoreSince, At<&VerifyCommandOptions::since>>},
    {"memory", "SIZE", "256MiB", false,
     "Memory limit for ids; if more are there, a share of them is judged, or with --share several passes are "
     "made",
     "1GiB", Value<At<&VerifyCommandOptions::memory_bytes>>, "1MiB or more"},
    {"share", "NUMBER", "what fits into memory", false, "Share of the ids that is judged, by a hash; 1: all",
     "0.1", By<StoreShare, At<&VerifyCommandOptions::share>>},
    {"textfile", "FILE", "", false,
     "Write metrics to this file, for node_exporter's textfile collector: it ends with .prom",
     "/var/lib/node_exporter/lethe.prom", Value<At<&VerifyCommandOptions::textfile>>},
    FormatSetting<VerifyCommandOptions>("How the report is printed", ""),
};

absl::StatusOr<RunConfig> ReadRunConfig(const std::string& path) {
  const absl::StatusOr<ConfigText> file = ReadConfigFile(path);
  if (!file.ok()) return file.status();
  return MakeRunConfig(*file, {});
}

// The topics of the configuration that are to be verified.
absl::StatusOr<std::vector<DaemonOptions>> TopicsOf(const RunConfig& config, const std::string& wanted) {
  auto list = TopicList::Create(config.topics);
  if (!list.ok()) return list.status();
  const auto brokers = kafka::BrokerClient::Make(config.daemon, Isolation::kReadCommitted);
  if (!brokers.ok()) return brokers.status();
  const auto found = FindInputs(**brokers, *list);
  if (!found.ok()) return found.status();
  std::vector<DaemonOptions> topics;
  std::vector<std::string> names;
  for (const DaemonOptions& topic : found->topics) {
    const std::vector<std::string> inputs = topic.inputs();
    names.insert(names.end(), inputs.begin(), inputs.end());
    const bool is_wanted = wanted.empty() || wanted == topic.output ||
                           std::find(inputs.begin(), inputs.end(), wanted) != inputs.end();
    if (is_wanted) topics.push_back(topic);
  }
  if (!topics.empty()) return topics;
  return absl::NotFoundError(
      wanted.empty() ? std::string("no topic matches the patterns of the configuration")
                     : absl::StrCat("--topic ", wanted, " is no topic of the configuration; it has ",
                                    absl::StrJoin(names, ", ")));
}

// Whole or not at all: a collector may read it at any moment.
absl::Status WriteTextfile(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".tmp";
  std::ofstream file(temporary, std::ios::trunc);
  file << text << std::flush;
  file.close();
  if (file.good() && std::rename(temporary.c_str(), path.c_str()) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("--textfile: writing ", path));
}

absl::Status Verify(const VerifyCommandOptions& options, std::ostream& out, std::ostream& err,
                    int& exit_code) {
  const auto config = ReadRunConfig(options.config);
  if (!config.ok()) return config.status();
  const auto schemas = registry::PatientSchemas::Open(
      config->schema_registry, [](const std::string& what) { spdlog::warn("{}", what); });
  const auto topics = TopicsOf(*config, options.topic);
  if (!topics.ok()) return topics.status();
  const std::atomic<bool>& interrupted = CatchInterrupts();
  std::vector<VerifiedTopic> verified;
  for (const DaemonOptions& topic : *topics) {
    ProgressLine progress("offsets");
    const auto one = VerifyTopic(
        topic, {.since = options.since,
                .memory_bytes = options.memory_bytes,
                .share = options.share,
                .schemas = schemas.get(),
                .go_on = [&](int64_t done, int64_t total) {
                  progress.Show(done, total,
                                absl::StrCat("topic ", verified.size() + 1, " of ", topics->size()));
                  return !interrupted.load() && (schemas == nullptr || schemas->status().ok());
                }});
    if (schemas != nullptr && !schemas->status().ok()) return schemas->status();
    // What cannot be said of one is no reason to say nothing of the others.
    if (absl::IsCancelled(one.status())) return one.status();
    VerifiedTopic& judged = verified.emplace_back();
    if (one.ok()) {
      judged = *one;
    } else {
      judged.options = topic;
      judged.status = one.status();
    }
  }
  exit_code = ExitCodeOf(verified);
  if (options.format == ReportFormat::kJson) {
    WriteVerifiedJson(verified, out);
  } else {
    for (const VerifiedTopic& topic : verified) {
      if (&topic != &verified.front()) out << "\n";
      WriteVerified(topic, TextStyle::Of(STDOUT_FILENO), out);
    }
  }
  out.flush();
  for (const VerifiedTopic& topic : verified) {
    if (topic.status.ok()) continue;
    err << "lethe: " << absl::StrJoin(topic.options.inputs(), ", ") << ": "
        << Printable(topic.status.message()) << "\n";
  }
  return options.textfile.empty() ? absl::OkStatus()
                                  : WriteTextfile(options.textfile, VerifiedMetrics(verified, absl::Now()));
}

}  // namespace

absl::Span<const Setting<VerifyCommandOptions>> VerifySettings() { return kVerifySettings; }

int RunVerify(const VerifyCommandOptions& options, std::ostream& out, std::ostream& err) {
  StartLog({.level = LogLevel::kWarning});
  int exit_code = 0;
  const absl::Status status = Verify(options, out, err, exit_code);
  if (status.ok()) return exit_code;
  err << "lethe: " << Printable(status.message()) << "\n";
  return kExitError;
}

}  // namespace lethe
