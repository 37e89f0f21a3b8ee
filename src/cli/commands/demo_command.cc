#include "src/cli/commands/demo_command.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "connectors/http/http_client.h"
#include "connectors/http/http_server.h"
#include "connectors/registry/patient_schemas.h"
#include "src/cli/demo/adapt_demo.h"
#include "src/cli/demo/child_process.h"
#include "src/cli/demo/demo_events.h"
#include "src/cli/demo/demo_pace.h"
#include "src/cli/demo/demo_site.h"
#include "src/cli/demo/demo_traffic.h"
#include "src/cli/terminal/exit_code.h"
#include "src/cli/terminal/json_text.h"
#include "src/cli/terminal/terminal.h"
#include "src/cli/verify/verify_text.h"
#include "src/cli/verify/verify_topic.h"
#include "src/pipeline/clock/steady_time.h"
#include "src/text/format.h"

namespace lethe {
namespace {

// Exact comparisons leave no room for chance: one event in a thousand million may be dropped wrongly.
constexpr double kTargetFpp = 1e-9;
constexpr int64_t kPaceEvents = 500'000;
constexpr char kDaemon[] = "daemon";
// Events on their way at a time, on the embedded broker, which keeps some 4 MB of a partition; and where the
// daemon is killed, so that each kill is in the middle of its work.
constexpr int64_t kMostOnTheWay = 12000;
constexpr int kSendAtOnce = 500;
constexpr absl::Duration kPatience = absl::Seconds(60);  // without any progress

struct DaemonFigures {
  double fpp_modelled = 0;
  int64_t filter_bytes = 0;
  int64_t process_bytes = 0;
  int64_t duplicates = 0;
};

class Demo {
 public:
  explicit Demo(const DemoOptions& options)
      : options_(options), seed_(options.seed ? *options.seed : std::random_device()()) {}

  // Whether all of it came out right.
  absl::StatusOr<bool> Run();

 private:
  absl::Status ReportPace() const;
  absl::Status Prepare();
  absl::Status StartDaemon();
  absl::Status SendAll(RetryingClients& clients);
  absl::Status AwaitOutput(const DemoTruth& truth);
  absl::Status CheckDaemon() { return site_->Check(kDaemon, *daemon_); }
  absl::Status Stalled(int64_t committed, int64_t sent) const;
  absl::Status KillDaemon();
  std::string ProgressNote() const;
  absl::StatusOr<DaemonFigures> Figures() const;
  bool Report(const DemoTruth& truth, const DaemonFigures& figures, absl::Duration took) const;
  // Whether both topics say the same.
  absl::StatusOr<bool> Verify() const;

  bool embedded() const { return options_.brokers.empty(); }
  bool paced() const { return embedded() || options_.kill > 0; }

  const DemoOptions options_;
  const uint64_t seed_;
  DemoTopics topics_;
  int port_ = 0;
  int kills_ = 0;
  int64_t records_at_kill_ = 0;  // what had come out, and what may be on its way out
  std::unique_ptr<DemoSite> site_;
  std::unique_ptr<http::HttpServer> registry_;  // of the schemas of --format avro
  std::unique_ptr<ChildProcess> daemon_;
  std::optional<DemoSender> sender_;
  std::optional<DemoReader> reader_;
  std::optional<ProgressLine> progress_;
};

std::function<http::HttpResponse(const http::HttpQuery&)> SchemaAnswer(const std::string& schema) {
  return [schema](const http::HttpQuery&) {
    return http::HttpResponse{.content_type = "application/json",
                              .body = absl::StrCat("{\"schema\":", JsonString(schema), "}")};
  };
}

// The first figure is of lethe itself: in what follows the brokers set the pace.
absl::Status Demo::ReportPace() const {
  const auto pace = MeasurePace(kPaceEvents, kTargetFpp, seed_);
  if (!pace.ok()) return pace.status();
  absl::PrintF("lethe alone, no broker: %s records/s on one core (reads the id from JSON, judges it)\n",
               FormatCount(static_cast<int64_t>(pace->records_per_second)));
  absl::PrintF("                        %s ids take %.1f MiB\n", FormatCount(pace->ids),
               static_cast<double>(pace->filter_bytes) / (1 << 20));
  return absl::OkStatus();
}

absl::Status Demo::Prepare() {
  auto site = DemoSite::Create(options_.brokers);
  if (!site.ok()) return site.status();
  site_ = *std::move(site);
  if (options_.avro) {
    auto registry = http::HttpServer::Start("127.0.0.1:0", {{"/schemas/ids/1", SchemaAnswer(kDemoSchema1)},
                                                            {"/schemas/ids/2", SchemaAnswer(kDemoSchema2)}});
    if (!registry.ok()) return registry.status();
    registry_ = *std::move(registry);
  }
  const std::string suffix = absl::StrCat(absl::Hex(std::random_device()(), absl::kZeroPad8));
  topics_ = {absl::StrCat("edits-", suffix), absl::StrCat("edits-clean-", suffix),
             absl::StrCat("edits-counters-", suffix), absl::StrCat("lethe-demo-", suffix)};
  absl::Status made =
      site_->CreateTopics({topics_.input, topics_.output, topics_.counters}, topics_.partitions);
  if (!made.ok()) return made;
  auto sender = DemoSender::Connect(site_->brokers(), topics_.input);
  if (!sender.ok()) return sender.status();
  sender_.emplace(*std::move(sender));
  auto reader = DemoReader::Connect(site_->brokers(), topics_);
  if (!reader.ok()) return reader.status();
  reader_.emplace(*std::move(reader));
  const auto port =
      options_.port ? absl::StatusOr<int>(*options_.port) : FreePort(options_.serve ? kDemoPort : 0);
  if (!port.ok()) return port.status();
  port_ = *port;
  return StartDaemon();
}

absl::Status Demo::StartDaemon() {
  const std::string format = options_.avro ? "avro" : "json";
  std::vector<std::string> flags = {"--input",
                                    topics_.input,
                                    "--output",
                                    topics_.output,
                                    "--group",
                                    topics_.group,
                                    "--instance",
                                    "demo",
                                    "--id",
                                    format + ":/id",
                                    "--horizon",
                                    "24h",
                                    "--fpp",
                                    absl::StrCat(kTargetFpp),
                                    "--counter",
                                    absl::StrCat("name=edits,key=", format, ":/channel,delta=", format,
                                                 ":/delta,output=", topics_.counters),
                                    "--http",
                                    absl::StrCat("127.0.0.1:", port_)};
  if (options_.avro) {
    flags.insert(flags.end(), {"--schema-registry", absl::StrCat("http://127.0.0.1:", registry_->port())});
  }
  auto daemon = site_->StartDaemon(kDaemon, flags);
  if (!daemon.ok()) return daemon.status();
  daemon_ = *std::move(daemon);
  return absl::OkStatus();
}

absl::Status Demo::Stalled(int64_t committed, int64_t sent) const {
  return absl::UnavailableError(
      absl::StrCat("no progress for 60 s: ", FormatCount(committed), " of ", FormatCount(sent),
                   " records are committed; the daemon's last log line: ", site_->LastLogLine(kDaemon)));
}

absl::Status Demo::KillDaemon() {
  daemon_->Kill();
  ++kills_;
  records_at_kill_ = reader_->records() + kMostOnTheWay / 4;
  return StartDaemon();
}

std::string Demo::ProgressNote() const {
  const std::string out = absl::StrCat(FormatCount(reader_->records()), " came out");
  return kills_ == 0 ? out : absl::StrCat(out, ", killed ", kills_, "x");
}

absl::Status Demo::SendAll(RetryingClients& clients) {
  const absl::Time start = SteadyNow();
  absl::Time last_progress = start;
  int64_t committed = 0;
  for (bool more = true; more;) {
    const int64_t sent = clients.truth().sent;
    bool room = options_.rate == 0 ||
                static_cast<double>(sent) <=
                    static_cast<double>(options_.rate) * absl::ToDoubleSeconds(SteadyNow() - start);
    if (paced()) {
      const auto now_committed = reader_->CommittedOffsets();
      const auto behind = reader_->Behind();
      if (!now_committed.ok()) return now_committed.status();
      if (!behind.ok()) return behind.status();
      if (*now_committed > committed) last_progress = SteadyNow();
      committed = *now_committed;
      room = room && sent - committed < kMostOnTheWay && *behind < kMostOnTheWay;
    }
    for (int i = 0; room && i < kSendAtOnce; ++i) {
      std::optional<DemoEvent> event = clients.Next();
      more = event.has_value();
      if (!more) break;
      // Clients of both versions send, as in the middle of an upgrade.
      if (options_.avro) event->value = DemoAvro(*event, 1 + i % 2);
      if (absl::Status sent_it = sender_->Send(*event); !sent_it.ok()) return sent_it;
      last_progress = SteadyNow();
    }
    if (absl::Status read = reader_->Poll(); !read.ok()) return read;
    if (absl::Status alive = CheckDaemon(); !alive.ok()) return alive;
    if (SteadyNow() - last_progress > kPatience) return Stalled(committed, sent);
    // Spread over the run, and not before something has come out since the last time.
    if (kills_ < options_.kill && reader_->records() > records_at_kill_ &&
        sent > options_.events * (kills_ + 1) / (options_.kill + 1)) {
      if (absl::Status killed = KillDaemon(); !killed.ok()) return killed;
    }
    progress_->Show(sent, options_.events + options_.events / 10, ProgressNote());
  }
  return sender_->Flush();
}

absl::Status Demo::AwaitOutput(const DemoTruth& truth) {
  absl::Time last_progress = SteadyNow();
  int64_t last = -1;
  for (;;) {
    if (absl::Status read = reader_->Poll(); !read.ok()) return read;
    if (absl::Status alive = CheckDaemon(); !alive.ok()) return alive;
    const auto committed = reader_->CommittedOffsets();
    const auto behind = reader_->Behind();
    if (!committed.ok()) return committed.status();
    if (!behind.ok()) return behind.status();
    if (*committed >= truth.sent && *behind == 0) return absl::OkStatus();
    if (*committed + reader_->records() > last) last_progress = SteadyNow();
    last = *committed + reader_->records();
    if (SteadyNow() - last_progress > kPatience) {
      return Stalled(*committed, truth.sent);
    }
    progress_->Show(truth.sent, truth.sent, ProgressNote());
  }
}

absl::StatusOr<DaemonFigures> Demo::Figures() const {
  const auto metrics = http::HttpGet("127.0.0.1", port_, "/metrics");
  if (!metrics.ok()) return metrics.status();
  DaemonFigures figures;
  figures.process_bytes = daemon_->PeakMemoryBytes();
  for (const absl::string_view line : absl::StrSplit(*metrics, '\n')) {
    double value = 0;
    const size_t space = line.rfind(' ');
    if (space == absl::string_view::npos || !absl::SimpleAtod(line.substr(space + 1), &value)) continue;
    if (absl::StartsWith(line, "lethe_filter_fpp_modelled_ratio{")) {
      figures.fpp_modelled = std::max(figures.fpp_modelled, value);
    } else if (absl::StartsWith(line, "lethe_memory_used_bytes{")) {
      figures.filter_bytes = static_cast<int64_t>(value);
    } else if (absl::StartsWith(line, "lethe_records_total{") && absl::StrContains(line, "\"duplicate\"")) {
      figures.duplicates += static_cast<int64_t>(value);
    }
  }
  return figures;
}

bool Demo::Report(const DemoTruth& truth, const DaemonFigures& figures, absl::Duration took) const {
  const auto unique = static_cast<int64_t>(truth.ids.size());
  int64_t lost = 0;
  for (const std::string& id : truth.ids) lost += reader_->copies().contains(id) ? 0 : 1;
  int64_t twice = 0;
  for (const auto& [id, copies] : reader_->copies()) twice += copies - (truth.ids.contains(id) ? 1 : 0);
  int wrong = 0;
  int wrong_without = 0;
  std::string largest;
  for (const auto& [channel, total] : truth.totals) {
    const auto found = reader_->counters().find(channel);
    wrong += found == reader_->counters().end() || found->second != total ? 1 : 0;
    const int64_t without = truth.totals_without_dedup.at(channel);
    wrong_without += without != total ? 1 : 0;
    if (largest.empty() || std::abs(without - total) >
                               std::abs(truth.totals_without_dedup.at(largest) - truth.totals.at(largest))) {
      largest = channel;
    }
  }
  const auto row = [](absl::string_view name, absl::string_view a, absl::string_view b, absl::string_view c) {
    absl::PrintF("  %-32s %14s %14s %14s\n", name, a, b, c);
  };
  const double seconds = absl::ToDoubleSeconds(took);
  absl::PrintF("\n");
  row("", "without lethe", "with lethe", "truth");
  row("events", FormatCount(truth.sent), FormatCount(reader_->records()), FormatCount(unique));
  row("duplicates passed", FormatCount(truth.sent - unique), FormatCount(twice), "0");
  row("events lost", "0", FormatCount(lost), "0");
  if (!truth.totals.empty()) {
    const auto found = reader_->counters().find(largest);
    row(absl::StrCat("counters wrong, of ", truth.totals.size()), absl::StrCat(wrong_without),
        absl::StrCat(wrong), "0");
    row(absl::StrCat("counter ", largest), FormatCount(truth.totals_without_dedup.at(largest)),
        FormatCount(found == reader_->counters().end() ? 0 : found->second),
        FormatCount(truth.totals.at(largest)));
  }
  absl::PrintF("\n");
  absl::PrintF("  duplicates dropped    %s%s\n", FormatCount(truth.sent - reader_->records()),
               kills_ > 0
                   ? absl::StrFormat(" (%s of them since the last start)", FormatCount(figures.duplicates))
                   : "");
  absl::PrintF("  false positives       target %.0e, modelled %.1e, measured %d in %s\n", kTargetFpp,
               figures.fpp_modelled, lost, FormatCount(unique));
  absl::PrintF("  memory                filters %.1f MiB, process at most %.0f MiB\n",
               static_cast<double>(figures.filter_bytes) / (1 << 20),
               static_cast<double>(figures.process_bytes) / (1 << 20));
  absl::PrintF("  time                  %.1f s, %s events/s, bounded by %s\n", seconds,
               FormatCount(static_cast<int64_t>(static_cast<double>(truth.sent) / seconds)),
               options_.rate > 0 ? "--rate"
               : embedded()      ? "the embedded broker, a mock for tests"
                                 : "this demo, which sends and compares on the same machine");
  absl::PrintF("  delivery              %s\n",
               embedded() ? "at least once: the embedded broker has no transactions; make demo-kafka has them"
                          : "exactly once");
  if (kills_ > 0) absl::PrintF("  killed with SIGKILL   %d times, and started again\n", kills_);
  return lost == 0 && twice == 0 && wrong == 0;
}

absl::StatusOr<bool> Demo::Verify() const {
  DaemonOptions daemon;
  daemon.process.brokers = site_->brokers();
  daemon.process.group = topics_.group;
  if (embedded()) daemon.process.delivery = Delivery::kAtLeastOnce;
  daemon.input = topics_.input;
  daemon.output = topics_.output;
  const absl::StatusOr<IdSpec> id = IdSpec::Parse(options_.avro ? "avro:/id" : "json:/id");
  if (!id.ok()) return id.status();
  daemon.record.id = *id;
  daemon.stage.target_fpp = kTargetFpp;
  registry::RegistryOptions registry;
  if (options_.avro) registry.urls = {absl::StrCat("http://127.0.0.1:", registry_->port())};
  const auto schemas = registry::PatientSchemas::Open(registry, [](const std::string&) {});
  const absl::StatusOr<VerifiedTopic> verified = VerifyTopic(daemon, {.schemas = schemas.get()});
  if (!verified.ok()) return verified.status();
  const VerifyReport& report = verified->report;
  const VerifyReport::Outcome outcome = report.OutcomeFor(kTargetFpp);
  // The embedded broker deletes the oldest records of a large topic.
  const bool is_cut = embedded() && verified->is_input_cut && outcome == VerifyReport::Outcome::kUndecided &&
                      !report.lacks_ids() && !report.has_doubtful_ids();
  const bool holds = is_cut || outcome == VerifyReport::Outcome::kHolds;
  absl::PrintF("  lethe verify          %s\n",
               holds ? absl::StrFormat("both topics, without a filter: %s events, each once%s",
                                       FormatCount(report.passed),
                                       is_cut ? " (the broker has deleted what tells of the others)" : "")
                     : "the topics say otherwise:");
  if (!holds) WriteVerified(*verified, TextStyle::Of(STDOUT_FILENO), std::cout);
  return holds;
}

absl::StatusOr<bool> Demo::Run() {
  absl::PrintF("lethe demo: clients lose acknowledgements, and send again (seed %d)\n",
               static_cast<int64_t>(seed_));
  if (!options_.avro) {
    if (absl::Status paced = ReportPace(); !paced.ok()) return paced;
  }
  if (absl::Status prepared = Prepare(); !prepared.ok()) return prepared;
  absl::PrintF("%s -> lethe -> %s, on %s\n", topics_.input, topics_.output,
               embedded() ? "an embedded broker" : options_.brokers);
  if (options_.avro) {
    absl::PrintF("Avro in two versions of its schema, from a registry at 127.0.0.1:%d\n", registry_->port());
  }
  if (options_.serve) absl::PrintF("status page: http://127.0.0.1:%d/\n", port_);
  std::fflush(stdout);
  RetryingClients clients(GeneratedEvents(options_.events, seed_), seed_);
  const absl::Time start = SteadyNow();
  progress_.emplace("sent");
  if (absl::Status sent = SendAll(clients); !sent.ok()) return sent;
  if (absl::Status out = AwaitOutput(clients.truth()); !out.ok()) return out;
  progress_.reset();
  const absl::Duration took = SteadyNow() - start;
  const auto figures = Figures();
  if (!figures.ok()) return figures.status();
  bool right = Report(clients.truth(), *figures, took);
  const absl::StatusOr<bool> verified = Verify();
  if (!verified.ok()) return verified.status();
  right = right && *verified;
  absl::PrintF("\n%s\n", right ? "Nothing was lost, and no duplicate passed."
                               : "WRONG: this must not happen. Please report it with the lines above.");
  if (!options_.serve) absl::PrintF("lethe demo --serve keeps the live status page up.\n");
  if (options_.serve) {
    absl::PrintF("\nThe status page stays at http://127.0.0.1:%d/ until you press Enter or Ctrl-C.\n", port_);
    site_->AwaitUser();
  }
  if (const int code = daemon_->Terminate(absl::Seconds(10)); code != kExitOk) {
    return absl::InternalError(absl::StrCat("the daemon ended with exit code ", code, " on SIGTERM"));
  }
  return right;
}

}  // namespace

absl::Status CheckDemo(const DemoOptions& options) {
  if (!options.adapt || (options.rate == 0 && options.kill == 0 && !options.avro)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--adapt has a load of its own, and no kills: leave out --rate, --kill and --format");
}

int DemoCommand(const DemoOptions& options) {
  spdlog::set_level(spdlog::level::err);  // the clients' messages would disturb the table
  auto right = options.adapt ? RunAdaptDemo({.events = options.events,
                                             .brokers = options.brokers,
                                             .seed = options.seed,
                                             .day = options.day,
                                             .port = options.port,
                                             .serve = options.serve})
                             : Demo(options).Run();
  if (!right.ok()) return ReportError(right.status(), std::cerr);
  return *right ? kExitOk : kExitFailed;
}

}  // namespace lethe
