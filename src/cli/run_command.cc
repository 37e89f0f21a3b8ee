#include "src/cli/run_command.h"

#include <signal.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <time.h>
#include <unistd.h>

#include <iostream>
#include <memory>
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

}  // namespace

int RunCommand(const RunConfig& config) {
  // The log goes to stderr: stdout is for what a program reads.
  spdlog::set_default_logger(spdlog::stderr_color_mt("lethe"));
  spdlog::set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");
  auto daemon = kafka::Daemon::Create(config.daemon);
  if (!daemon.ok()) return ReportError(daemon.status(), std::cerr);
  absl::Status status;
  {
    const SignalThread signals(**daemon);
    std::unique_ptr<http::HttpServer> server;
    if (config.http != "off") {
      auto started = http::HttpServer::Start(config.http, Routes(**daemon));
      if (!started.ok()) return ReportError(started.status(), std::cerr);
      server = *std::move(started);
      spdlog::info("metrics at http://{}/metrics", config.http);
    }
    status = (*daemon)->Run();
  }
  const int code = status.ok() ? kExitOk : ReportError(status, std::cerr);
  if (status.ok()) spdlog::info("all committed, the group is left");
  spdlog::default_logger()->flush();
  std::cerr.flush();
  // Only the clients are left to be destroyed, and librdkafka 2.0.2 may wait for ever there if their topic was
  // deleted. They are closed, so nothing depends on it.
  _exit(code);
}

}  // namespace lethe
