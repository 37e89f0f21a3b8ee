#include "src/cli/commands/run_command.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "connectors/http/http_server.h"
#include "connectors/http/responses.h"
#include "connectors/kafka/connector.h"
#include "connectors/redis/redis_address.h"
#include "connectors/redis/redis_store.h"
#include "connectors/registry/schema_registry.h"
#include "src/cli/metrics/metrics.h"
#include "src/cli/service/closing_lines.h"
#include "src/cli/service/counters_json.h"
#include "src/cli/service/periodic.h"
#include "src/cli/service/restore_line.h"
#include "src/cli/service/service_manager.h"
#include "src/cli/service/status_history.h"
#include "src/cli/service/status_json.h"
#include "src/cli/terminal/exit_code.h"
#include "src/pipeline/clock/steady_time.h"
#include "src/pipeline/daemon/daemon.h"
#include "src/pipeline/report/remarks.h"
#include "src/text/format.h"

namespace lethe {
namespace {

// A lane that was silent for so long hangs.
constexpr absl::Duration kLongestSilence = absl::Seconds(30);
// The documented five seconds after SIGTERM, less a moment to end in.
constexpr absl::Duration kStopPatience = absl::Seconds(4);
// `timeout`, shells and some supervisors signal a process and its group, so that one request comes twice.
constexpr absl::Duration kSameRequest = absl::Seconds(1);

// Waits for signals in a thread of its own: SIGTERM, SIGINT and the end of its terminal stop the daemon.
// Signals must be blocked in all threads: make it first.
class SignalThread {
 public:
  SignalThread(Daemon& daemon, const ServiceManager& manager) : daemon_(daemon), manager_(manager) {
    sigemptyset(&signals_);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) sigaddset(&signals_, signal);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    thread_ = std::thread([this] { Wait(); });
  }

  // SIGUSR1 to the thread itself ends its waiting.
  ~SignalThread() {
    pthread_kill(thread_.native_handle(), SIGUSR1);
    thread_.join();
  }

 private:
  void Wait() {
    // The kernel sends a SIGHUP of its own when the terminal is closed in which lethe runs: nobody could end
    // it there any more.
    siginfo_t info = {};
    int signal = sigwaitinfo(&signals_, &info);
    for (; signal < 0 || (signal == SIGHUP && info.si_code != SI_KERNEL);
         signal = sigwaitinfo(&signals_, &info)) {
      if (signal == SIGHUP) spdlog::warn("SIGHUP: ignored; restart lethe to apply a changed configuration");
    }
    if (signal == SIGUSR1) return;
    spdlog::info("{}: finishing the open transaction, then ending", signal == SIGTERM ? "SIGTERM"
                                                                    : signal == SIGINT
                                                                        ? "SIGINT"
                                                                        : "the terminal was closed");
    manager_.Say("STOPPING=1");
    daemon_.Stop();
    const absl::Time asked = SteadyNow();
    bool is_hurried = false;
    for (absl::Duration left = kStopPatience; left > absl::ZeroDuration() && !is_hurried;
         left = asked + kStopPatience - SteadyNow()) {
      const timespec timeout = absl::ToTimespec(left);
      const int next = sigtimedwait(&signals_, nullptr, &timeout);
      if (next == SIGUSR1) return;
      is_hurried = (next == SIGTERM || next == SIGINT) && SteadyNow() - asked >= kSameRequest;
    }
    const bool all_is_out = daemon_.OnlyLeaves();
    if (all_is_out) {
      spdlog::warn("{}", Farewell(daemon_.Report(), {.unanswered = true}));
    } else {
      spdlog::critical(
          "{}: ending without leaving the group; the next start replays uncommitted records",
          is_hurried ? "a second signal asked to end at once" : "the broker did not answer in time");
    }
    SetLogFooter("");
    spdlog::shutdown();
    _exit(all_is_out ? kExitOk : kExitFailed);
  }

  Daemon& daemon_;
  const ServiceManager& manager_;
  sigset_t signals_;
  std::thread thread_;
};

ServiceState StateOf(const Daemon& daemon, absl::Duration patience) {
  const DaemonReport report = daemon.Report();
  size_t partitions = 0;
  for (const LaneReport& lane : report.lanes) partitions += lane.partitions.size();
  ServiceState state;
  state.alive = daemon.SilentFor() < patience;
  if (report.not_ready.empty()) {
    state.status = absl::StrCat("judging ", partitions, " partitions of ", report.first.input);
  } else {
    const size_t more = report.not_ready.size() - 1;
    state.status =
        absl::StrCat(report.not_ready.front(), more == 0 ? "" : absl::StrCat(" (and ", more, " more)"));
  }
  return state;
}

// What /status?partition=N asks for, with history=1 or without.
// Of the first topic, unless the query names one.
std::optional<StatusDetail> Detail(const http::HttpQuery& query, const DaemonReport& report,
                                   const StatusHistory& history) {
  const auto text = query.find("partition");
  StatusDetail detail;
  if (text == query.end() || !absl::SimpleAtoi(text->second, &detail.partition)) return std::nullopt;
  const auto topic = query.find("topic");
  detail.topic = topic == query.end() ? report.first.input : topic->second;
  if (const auto wanted = query.find("history"); wanted != query.end() && wanted->second == "1") {
    detail.history = history.Of(detail.topic, detail.partition);
    detail.now = absl::Now();
  }
  return detail;
}

// What /counters?top=N asks for.
size_t TopOf(const http::HttpQuery& query) {
  constexpr size_t kFew = 20, kMost = 1000;
  const auto text = query.find("top");
  size_t top = 0;
  if (text == query.end() || !absl::SimpleAtoi(text->second, &top)) return kFew;
  return std::min(top, kMost);
}

// The topic that ?topic=NAME asks for, as it is judged: the name may be that of an input or of its output.
// NotFound: it is not served. nullopt: none is named.
absl::StatusOr<std::optional<std::string>> TopicOf(const http::HttpQuery& query, const DaemonReport& report) {
  const auto asked = query.find("topic");
  if (asked == query.end()) return std::nullopt;
  if (asked->second.empty()) return std::string();  // the page asks for no partitions
  for (const TopicReport& topic : report.topics) {
    if (topic.input == asked->second || topic.output == asked->second ||
        absl::c_linear_search(topic.routed_from, asked->second))
      return topic.input;
  }
  return absl::NotFoundError(
      absl::StrCat("no topic ", asked->second, ": /status lists those that are read\n"));
}

http::HttpResponse NotFound(const absl::Status& why) {
  return {.status = 404, .body = std::string(why.message())};
}

http::HttpRoutes Routes(Daemon& daemon, const StatusHistory& history, const RunConfig& config) {
  return {
      {"/", [](const http::HttpQuery&) { return http::Page(); }},
      {"/metrics",
       [&daemon, &config](const http::HttpQuery&) {
         return http::MetricsText(
             Metrics(daemon.Report(), {config.metrics_per_partition, config.fingerprint}));
       }},
      {"/status",
       [&daemon, &history](const http::HttpQuery& query) {
         const DaemonReport report = daemon.Report();
         const auto topic = TopicOf(query, report);
         if (!topic.ok()) return NotFound(topic.status());
         return http::HttpResponse{.content_type = "application/json",
                                   .body = StatusJson(report, Detail(query, report, history), *topic)};
       }},
      {"/counters",
       [&daemon, &config](const http::HttpQuery& query) {
         const DaemonReport report = daemon.Report();
         const auto topic = TopicOf(query, report);
         if (!topic.ok()) return NotFound(topic.status());
         const CountersView view = daemon.Counters(TopOf(query), *topic);
         return http::HttpResponse{.content_type = "application/json",
                                   .body = CountersJson(view, report.stores, config.shows_counter_keys())};
       }},
      {"/healthz", [&daemon](const http::HttpQuery&) { return Health(daemon.SilentFor()); }},
      {"/readyz",
       [&daemon](const http::HttpQuery&) {
         const DaemonReport report = daemon.Report();
         std::vector<std::string> lines = report.not_ready;
         if (lines.empty()) lines.emplace_back(report.but_for.empty() ? "ready" : "ready but for");
         lines.insert(lines.end(), report.but_for.begin(), report.but_for.end());
         const std::vector<std::string> remarks = Remarks(report);
         lines.insert(lines.end(), remarks.begin(), remarks.end());
         return http::HttpResponse{.status = report.not_ready.empty() ? 200 : 503,
                                   .body = absl::StrCat(absl::StrJoin(lines, "\n"), "\n")};
       }},
  };
}

// The address was checked with the configuration.
std::unique_ptr<CounterStore> OpenStore(const CounterOptions& counter, const std::string& input) {
  return std::make_unique<redis::RedisStore>(
      redis::RedisStoreOptions{.address = redis::RedisAddress::Parse(counter.store).value(),
                               .password = counter.store_password,
                               .totals = counter.output,
                               .input = input});
}

// The last line, in the form of the others.
int Fail(const absl::Status& status, const RunConfig& config) {
  std::ostringstream text;
  const int code = ReportError(status, text);
  if (config.log.format == LogFormat::kText) {
    std::cerr << text.str();
  } else {
    spdlog::critical("{}", std::string(status.message()));
  }
  return code;
}

}  // namespace

http::HttpResponse Health(absl::Duration silent) {
  if (silent < kLongestSilence) return {.body = "ok\n"};
  return {.status = 503,
          .body = absl::StrCat("a lane hangs: no sign of life for ", DurationText(silent), "\n")};
}

int RunCommand(const RunConfig& config) {
  StartLog(config.log);
  if (!config.warning.empty()) spdlog::warn("{}", config.warning);
  if (config.limit) {
    if (absl::Status fits = FitsLimit(config.daemon, !config.schema_registry.urls.empty(), *config.limit);
        !fits.ok())
      return Fail(fits, config);
  }
  signal(SIGXFSZ, SIG_IGN);  // a snapshot that the limit of a file's size stops is an error, and no end
  DaemonOptions options = config.daemon;
  std::vector<DaemonOptions> topics = config.topics;
  std::unique_ptr<registry::SchemaRegistry> schemas;
  if (!config.schema_registry.urls.empty()) {
    schemas = std::make_unique<registry::SchemaRegistry>(config.schema_registry);
    options.record.schemas = schemas.get();
    for (DaemonOptions& topic : topics) topic.record.schemas = schemas.get();
  }
  const bool stays = options.process.static_membership == StaticMembership::kAlways;
  auto daemon = Daemon::Create(std::make_unique<kafka::KafkaConnector>(), std::move(options), OpenStore,
                               std::move(topics));
  if (!daemon.ok()) return Fail(daemon.status(), config);
  absl::Status status;
  const ServiceManager manager;
  {
    const SignalThread signals(**daemon, manager);
    StatusHistory history;
    std::optional<Periodic> sampler;
    std::unique_ptr<http::HttpServer> server;
    if (config.http != "off") {
      auto started = http::HttpServer::Start(config.http, Routes(**daemon, history, config));
      if (!started.ok()) return Fail(started.status(), config);
      sampler.emplace(StatusHistory::kEvery, [&] { history.Add((*daemon)->Report(), absl::Now()); });
      server = *std::move(started);
      spdlog::info("status page at http://{0}/, metrics at http://{0}/metrics", config.http);
    }
    const ServiceReports reports(
        manager, [&] { return StateOf(**daemon, std::min(manager.watchdog() / 2, kLongestSilence)); });
    const RestoreLine restore_line([&] { return (*daemon)->Report(); });
    status = (*daemon)->Run();
  }
  const DaemonReport report = (*daemon)->Report();
  if (const std::string totals = Totals(report); !totals.empty()) spdlog::info("{}", totals);
  if (status.ok()) {
    const Ending ending = {(*daemon)->LeavesUnfinished(), (*daemon)->IsUnanswered(), stays};
    spdlog::log(ending.unfinished || ending.unanswered ? spdlog::level::warn : spdlog::level::info, "{}",
                Farewell(report, ending));
  }
  const int code = status.ok() ? kExitOk : Fail(status, config);  // the last line
  spdlog::shutdown();
  std::cerr.flush();
  // Only the clients are left to be destroyed, and librdkafka 2.0.2 may wait for ever there if their topic
  // was deleted. They are closed, so nothing depends on it.
  _exit(code);
}

}  // namespace lethe
