#include "src/cli/run_command.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <time.h>
#include <unistd.h>

#include <iostream>
#include <memory>
#include <sstream>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "connectors/http/http_server.h"
#include "connectors/http/metrics_text.h"
#include "connectors/kafka/daemon.h"
#include "src/cli/command_line.h"
#include "src/cli/metrics.h"

namespace lethe {
namespace {

// What the contract of SIGTERM gives us, less a moment to end in.
constexpr time_t kStopSeconds = 4;

// Waits for SIGTERM or SIGINT in a thread of its own, and stops the daemon. Signals that end it must be
// blocked in all threads: make it first.
class SignalThread {
 public:
  explicit SignalThread(kafka::Daemon& daemon) {
    sigemptyset(&signals_);
    for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) sigaddset(&signals_, signal);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    thread_ = std::thread([this, &daemon] { Wait(daemon); });
  }

  // SIGUSR1 to the thread itself says that nothing is to be waited for any more.
  ~SignalThread() {
    pthread_kill(thread_.native_handle(), SIGUSR1);
    thread_.join();
  }

 private:
  void Wait(kafka::Daemon& daemon) {
    int signal = 0;
    sigwait(&signals_, &signal);
    if (signal == SIGUSR1) return;
    spdlog::info("{}: finishing the open transaction and leaving the group",
                 signal == SIGTERM ? "SIGTERM" : "SIGINT");
    daemon.Stop();
    const timespec deadline = {kStopSeconds, 0};
    if (sigtimedwait(&signals_, nullptr, &deadline) == SIGUSR1) return;
    spdlog::critical(
        "the broker did not answer in time: ending without having left the group; what was not "
        "committed will be read again");
    spdlog::shutdown();
    _exit(kExitFailed);
  }

  sigset_t signals_;
  std::thread thread_;
};

http::HttpRoutes Routes(const kafka::Daemon& daemon) {
  return {
      {"/metrics", [&daemon] { return http::MetricsText(Metrics(daemon.Report())); }},
      {"/healthz", [] { return http::HttpResponse{.body = "ok\n"}; }},
      {"/readyz",
       [&daemon] {
         const kafka::DaemonReport report = daemon.Report();
         if (report.not_ready.empty()) return http::HttpResponse{.body = "ready\n"};
         return http::HttpResponse{.status = 503,
                                   .body = absl::StrCat(absl::StrJoin(report.not_ready, "\n"), "\n")};
       }},
  };
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

int RunCommand(const RunConfig& config) {
  StartLog(config.log);
  auto daemon = kafka::Daemon::Create(config.daemon);
  if (!daemon.ok()) return Fail(daemon.status(), config);
  absl::Status status;
  {
    const SignalThread signals(**daemon);
    std::unique_ptr<http::HttpServer> server;
    if (config.http != "off") {
      auto started = http::HttpServer::Start(config.http, Routes(**daemon));
      if (!started.ok()) return Fail(started.status(), config);
      server = *std::move(started);
      spdlog::info("metrics at http://{}/metrics", config.http);
    }
    status = (*daemon)->Run();
  }
  if (!status.ok()) return Fail(status, config);
  spdlog::info("all committed, the group is left");
  return kExitOk;
}

}  // namespace lethe
