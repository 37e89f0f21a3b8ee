#include "src/cli/demo/adapt_demo.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "connectors/http/http_client.h"
#include "src/cli/demo/adapt_chart.h"
#include "src/cli/demo/child_process.h"
#include "src/cli/demo/demo_day.h"
#include "src/cli/demo/demo_events.h"
#include "src/cli/demo/demo_site.h"
#include "src/cli/demo/demo_traffic.h"
#include "src/cli/terminal/terminal.h"
#include "src/pipeline/clock/steady_time.h"
#include "src/text/format.h"

namespace lethe {
namespace {

constexpr double kTargetFpp = 1e-6;
// Sets m, which the published filter takes from the limit: so large that N = 1 does for the night.
constexpr char kMemory[] = "8MiB";
constexpr int64_t kMostOnTheWay = 6000;  // the embedded broker keeps some 4 MB of the one partition
constexpr int kSendAtOnce = 500;
constexpr absl::Duration kPatience = absl::Seconds(60);  // without any progress
constexpr absl::Duration kSampleEvery = absl::Milliseconds(100);
constexpr absl::Duration kPlainEvery = absl::Minutes(30);
constexpr int kFewestColumns = 60;
constexpr int kMostColumns = 110;

// The metrics of a daemon with one partition.
class Metrics {
 public:
  explicit Metrics(std::string text) : text_(std::move(text)) {}

  // The sum of all series with that name and part of their labels; nullopt if there is none.
  std::optional<double> Find(absl::string_view name, absl::string_view label = "") const {
    std::optional<double> sum;
    for (const absl::string_view line : absl::StrSplit(text_, '\n')) {
      double value = 0;
      if (!absl::StartsWith(line, name) || line.substr(name.size(), 1) != "{") continue;
      if (!absl::StrContains(line, label)) continue;
      if (absl::SimpleAtod(line.substr(line.rfind(' ') + 1), &value)) sum = sum.value_or(0) + value;
    }
    return sum;
  }
  double Get(absl::string_view name, absl::string_view label = "") const {
    return Find(name, label).value_or(0);
  }

 private:
  const std::string text_;
};

// A daemon with one of the engines.
struct Watched {
  std::string engine;
  DemoTopics topics;
  int port = 0;
  std::unique_ptr<ChildProcess> daemon;
  std::optional<DemoReader> reader;

  absl::StatusOr<Metrics> Ask() const {
    auto text = http::HttpGet("127.0.0.1", port, "/metrics");
    if (!text.ok()) return text.status();
    return Metrics(*std::move(text));
  }
};

AdaptFigures FiguresOf(const Metrics& metrics) {
  return {.fpp = std::max(metrics.Get("lethe_filter_fpp_modelled_ratio"),
                          metrics.Get("lethe_filter_fpp_interval_end_ratio")),
          .past_generations = metrics.Get("lethe_filter_past_generations"),
          .period = absl::Seconds(metrics.Get("lethe_filter_refresh_period_seconds")),
          .memory_bytes = metrics.Get("lethe_filter_memory_bytes")};
}

class AdaptDemo {
 public:
  explicit AdaptDemo(const AdaptDemoOptions& options)
      : options_(options),
        seed_(options.seed ? *options.seed : std::random_device()()),
        day_(options.events, seed_) {}

  absl::StatusOr<bool> Run();

 private:
  absl::Status Prepare();
  absl::Status StartEngine(const std::string& engine, const std::string& suffix, int port);
  absl::Status AwaitReady();
  absl::Status SendDay();
  absl::Status AwaitOutput();
  // Reads what has come out, and looks after the daemons.
  absl::Status Attend();
  // Whether both daemons keep up.
  absl::StatusOr<bool> HasRoom();
  absl::Status TakeSample();
  void Show();
  bool Report() const;

  absl::Span<const AdaptSample> Filled() const;

  const AdaptDemoOptions options_;
  const uint64_t seed_;
  DemoDay day_;
  // Of yesterday, so that the pages show the times of the day, and no record is of the future.
  const absl::Time midnight_ =
      absl::FromUnixSeconds((absl::ToUnixSeconds(absl::Now()) / 86'400 - 1) * 86'400);
  std::unique_ptr<DemoSite> site_;
  std::vector<Watched> watched_;  // published, compact
  std::optional<DemoSender> sender_;
  std::vector<AdaptSample> samples_;
  std::vector<Metrics> last_;  // of each daemon
  absl::Time next_sample_;
  absl::Duration plain_from_;
  bool is_drawn_ = false;
};

absl::Status AdaptDemo::StartEngine(const std::string& engine, const std::string& suffix, int port) {
  Watched watched;
  watched.engine = engine;
  watched.topics = {.input = absl::StrCat("day-", suffix),
                    .output = absl::StrCat("day-", engine, "-", suffix),
                    .counters = "",
                    .group = absl::StrCat("lethe-demo-", engine, "-", suffix),
                    .partitions = 1};
  watched.port = port;
  const bool is_first = watched_.empty();
  absl::Status made = site_->CreateTopics({watched.topics.output}, 1);
  if (made.ok() && is_first) made = site_->CreateTopics({watched.topics.input}, 1);
  if (!made.ok()) return made;
  auto reader = DemoReader::Connect(site_->brokers(), watched.topics);
  if (!reader.ok()) return reader.status();
  watched.reader.emplace(*std::move(reader));
  auto daemon = site_->StartDaemon(engine, {"--engine",   engine,
                                            "--input",    watched.topics.input,
                                            "--output",   watched.topics.output,
                                            "--group",    watched.topics.group,
                                            "--instance", engine,
                                            "--id",       "json:/id",
                                            "--horizon",  DurationText(DemoDay::kHorizon),
                                            "--fpp",      absl::StrCat(kTargetFpp),
                                            "--memory",   kMemory,
                                            "--http",     absl::StrCat("127.0.0.1:", port)});
  if (!daemon.ok()) return daemon.status();
  watched.daemon = *std::move(daemon);
  watched_.push_back(std::move(watched));
  return absl::OkStatus();
}

absl::Status AdaptDemo::Prepare() {
  auto site = DemoSite::Create(options_.brokers);
  if (!site.ok()) return site.status();
  site_ = *std::move(site);
  const std::string suffix = absl::StrCat(absl::Hex(std::random_device()(), absl::kZeroPad8));
  for (const char* engine : {"published", "compact"}) {
    const int nth = static_cast<int>(watched_.size());
    absl::StatusOr<int> port =
        options_.port.has_value() ? *options_.port + nth : FreePort(static_cast<uint16_t>(kDemoPort + nth));
    if (!port.ok()) return port.status();
    if (absl::Status started = StartEngine(engine, suffix, *port); !started.ok()) return started;
  }
  auto sender = DemoSender::Connect(site_->brokers(), watched_[0].topics.input);
  if (!sender.ok()) return sender.status();
  sender_.emplace(*std::move(sender));
  return AwaitReady();
}

absl::Status AdaptDemo::AwaitReady() {
  const absl::Time deadline = SteadyNow() + kPatience;
  for (const Watched& watched : watched_) {
    for (;;) {
      const auto metrics = watched.Ask();
      if (metrics.ok() && metrics->Get("lethe_ready") == 1) break;
      if (absl::Status well = Attend(); !well.ok()) return well;
      if (SteadyNow() > deadline) {
        return absl::UnavailableError(absl::StrCat("the daemon is not ready after 60 s; its last log line: ",
                                                   site_->LastLogLine(watched.engine)));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status AdaptDemo::Attend() {
  for (Watched& watched : watched_) {
    if (absl::Status read = watched.reader->Poll(); !read.ok()) return read;
    if (absl::Status well = site_->Check(watched.engine, *watched.daemon); !well.ok()) return well;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> AdaptDemo::HasRoom() {
  for (Watched& watched : watched_) {
    const auto committed = watched.reader->CommittedOffsets();
    const auto behind = watched.reader->Behind();
    if (!committed.ok()) return committed.status();
    if (!behind.ok()) return behind.status();
    if (day_.sent() - *committed >= kMostOnTheWay || *behind >= kMostOnTheWay) return false;
  }
  return true;
}

absl::Status AdaptDemo::SendDay() {
  absl::Time before = SteadyNow();
  absl::Time last_room = before;
  absl::Duration clock;  // stands still while a daemon does not keep up
  std::optional<DemoDay::Sending> next = day_.Next();
  while (next.has_value()) {
    const auto has_room = HasRoom();
    if (!has_room.ok()) return has_room.status();
    const absl::Time now = SteadyNow();
    if (*has_room) {
      clock += (now - before) * absl::FDivDuration(DemoDay::kLength, options_.day);
      last_room = now;
    } else if (now - last_room > kPatience) {
      return absl::UnavailableError(absl::StrCat(
          "no progress for 60 s; the daemons' last log lines: ", site_->LastLogLine(watched_[0].engine), "; ",
          site_->LastLogLine(watched_[1].engine)));
    }
    before = now;
    for (int i = 0; *has_room && i < kSendAtOnce && next.has_value() && next->at <= clock; ++i) {
      DemoEvent event;
      event.id = next->id;
      event.value = absl::StrCat(R"({"id":")", next->id, R"("})");
      absl::Status sent = sender_->Send(event, absl::ToUnixMillis(midnight_ + next->at));
      if (!sent.ok()) return sent;
      next = day_.Next();
    }
    if (next.has_value()) clock = std::min(clock, next->at + absl::Minutes(1));  // no faster than it is sent
    if (absl::Status well = Attend(); !well.ok()) return well;
    if (absl::Status seen = TakeSample(); !seen.ok()) return seen;
  }
  return sender_->Flush();
}

absl::Status AdaptDemo::AwaitOutput() {
  const absl::Time deadline = SteadyNow() + kPatience;
  for (;;) {
    if (absl::Status well = Attend(); !well.ok()) return well;
    if (absl::Status seen = TakeSample(); !seen.ok()) return seen;
    bool is_done = true;
    for (size_t i = 0; i < watched_.size(); ++i) {
      const auto behind = watched_[i].reader->Behind();
      if (!behind.ok()) return behind.status();
      const auto sent = static_cast<double>(day_.sent());
      is_done = is_done && *behind == 0 && last_[i].Get("lethe_committed_offset") >= sent;
    }
    if (is_done) return absl::OkStatus();
    if (SteadyNow() > deadline) {
      return absl::UnavailableError(absl::StrCat("the output is not complete after 60 s; last log line: ",
                                                 site_->LastLogLine(watched_[0].engine)));
    }
  }
}

absl::Status AdaptDemo::TakeSample() {
  if (SteadyNow() < next_sample_) return absl::OkStatus();
  next_sample_ = SteadyNow() + kSampleEvery;
  std::vector<Metrics> metrics;
  for (const Watched& watched : watched_) {
    auto answer = watched.Ask();
    if (!answer.ok()) return answer.status();
    metrics.push_back(*std::move(answer));
  }
  last_ = std::move(metrics);
  const double stream_time = last_[0].Find("lethe_stream_time_seconds").value_or(-INFINITY);
  if (!std::isfinite(stream_time)) return absl::OkStatus();
  const absl::Duration at = std::clamp(absl::UnixEpoch() + absl::Seconds(stream_time) - midnight_,
                                       absl::ZeroDuration(), DemoDay::kLength);
  if (!samples_.empty() && at <= samples_.back().at) return absl::OkStatus();
  samples_.push_back({.at = at,
                      .load = DemoDay::Load(at, options_.events),
                      .published = FiguresOf(last_[0]),
                      .compact = FiguresOf(last_[1])});
  Show();
  return absl::OkStatus();
}

void AdaptDemo::Show() {
  const int width = std::min(TerminalWidth(STDOUT_FILENO) - 1, kMostColumns);
  const bool draws = CanRedraw(STDOUT_FILENO) && width >= kFewestColumns &&
                     TerminalHeight(STDOUT_FILENO) > kAdaptChartLines + 1;
  if (draws) {
    const std::string chart = DrawAdaptChart(samples_, kTargetFpp, TextStyle::Of(STDOUT_FILENO), width);
    absl::PrintF("%s%s", is_drawn_ ? absl::StrFormat("\033[%dA", kAdaptChartLines) : "",
                 absl::StrReplaceAll(chart, {{"\n", "\033[K\n"}}));
    is_drawn_ = true;
  } else if (samples_.back().at >= plain_from_) {
    if (plain_from_ == absl::ZeroDuration()) absl::PrintF("%s\n", AdaptLineTitle());
    absl::PrintF("%s\n", AdaptLine(samples_.back()));
    plain_from_ = absl::Floor(samples_.back().at, kPlainEvery) + kPlainEvery;
  }
  std::fflush(stdout);
}

// Once the filters are filled.
absl::Span<const AdaptSample> AdaptDemo::Filled() const {
  const auto from = std::find_if(samples_.begin(), samples_.end(),
                                 [](const AdaptSample& sample) { return sample.at > 2 * DemoDay::kHorizon; });
  return absl::MakeConstSpan(samples_).subspan(static_cast<size_t>(from - samples_.begin()));
}

// What a filter did in the day.
struct Course {
  double first_past = 0, least_past = 0, most_past = 0, last_past = 0;
  absl::Duration first_period, least_period, most_period, last_period;
  double most_fpp = 0;
  double first_memory = 0, most_memory = 0, last_memory = 0;
};

Course CourseOf(absl::Span<const AdaptSample> samples, AdaptFigures AdaptSample::*of) {
  const AdaptFigures& first = samples.front().*of;
  const AdaptFigures& last = samples.back().*of;
  Course course = {.first_past = first.past_generations,
                   .least_past = first.past_generations,
                   .last_past = last.past_generations,
                   .first_period = first.period,
                   .least_period = first.period,
                   .most_period = first.period,
                   .last_period = last.period,
                   .first_memory = first.memory_bytes,
                   .last_memory = last.memory_bytes};
  for (const AdaptSample& sample : samples) {
    const AdaptFigures& figures = sample.*of;
    course.least_past = std::min(course.least_past, figures.past_generations);
    course.most_past = std::max(course.most_past, figures.past_generations);
    course.least_period = std::min(course.least_period, figures.period);
    course.most_period = std::max(course.most_period, figures.period);
    course.most_fpp = std::max(course.most_fpp, figures.fpp);
    course.most_memory = std::max(course.most_memory, figures.memory_bytes);
  }
  return course;
}

std::string PeriodText(absl::Duration period) { return DurationText(absl::Trunc(period, absl::Seconds(1))); }

std::string MemoryText(double bytes) { return FormatBytes(static_cast<int64_t>(bytes)); }

bool AdaptDemo::Report() const {
  struct Outcome {
    Course course;
    std::string steps;
    int64_t twice = 0;
    int64_t lost = 0;
  };
  std::vector<Outcome> outcomes;
  const absl::Span<const AdaptSample> samples = Filled();
  const auto steps = [&](size_t i, absl::string_view kind) {
    return static_cast<int64_t>(
        last_[i].Get("lethe_adaptation_steps_total", absl::StrCat("kind=\"", kind, "\"")));
  };
  for (size_t i = 0; i < watched_.size(); ++i) {
    Outcome outcome;
    outcome.course = CourseOf(samples, i == 0 ? &AdaptSample::published : &AdaptSample::compact);
    outcome.steps = i == 0 ? absl::StrCat(steps(i, "scale_up"), " up, ", steps(i, "scale_down"), " down")
                           : absl::StrCat(steps(i, "unfold"), " up, ", steps(i, "fold"), " down");
    const SecretHashMap<int64_t>& copies = watched_[i].reader->copies();
    for (const std::string& id : day_.ids()) outcome.lost += copies.contains(id) ? 0 : 1;
    for (const auto& [id, count] : copies) outcome.twice += count - (day_.ids().contains(id) ? 1 : 0);
    outcomes.push_back(std::move(outcome));
  }
  const auto row = [](absl::string_view name, absl::string_view a, absl::string_view b) {
    absl::PrintF("  %-30s %22s %22s\n", name, a, b);
  };
  const auto rows = [&](absl::string_view name, const auto& text) {
    row(name, text(outcomes[0]), text(outcomes[1]));
  };
  absl::PrintF("\n");
  row("", "published", "compact");
  rows("N: first, most, last", [](const Outcome& outcome) {
    const Course& course = outcome.course;
    return absl::StrFormat("%.0f, %.0f, %.0f", course.first_past, course.most_past, course.last_past);
  });
  rows("t: longest, shortest, last", [](const Outcome& outcome) {
    const Course& course = outcome.course;
    return absl::StrCat(PeriodText(course.most_period), ", ", PeriodText(course.least_period), ", ",
                        PeriodText(course.last_period));
  });
  rows(absl::StrFormat("FPP: highest (target %.0e)", kTargetFpp),
       [](const Outcome& outcome) { return absl::StrFormat("%.1e", outcome.course.most_fpp); });
  rows("memory: first, most", [](const Outcome& outcome) {
    return absl::StrCat(MemoryText(outcome.course.first_memory), ", ",
                        MemoryText(outcome.course.most_memory));
  });
  rows("steps", [](const Outcome& outcome) { return outcome.steps; });
  rows("duplicates passed", [](const Outcome& outcome) { return FormatCount(outcome.twice); });
  rows("events lost", [](const Outcome& outcome) { return FormatCount(outcome.lost); });
  row("events sent, and unique", FormatCount(day_.sent()),
      FormatCount(static_cast<int64_t>(day_.ids().size())));

  // More than the target explains but once in a million runs.
  const double expected = kTargetFpp * static_cast<double>(day_.ids().size());
  const double most_lost = expected + 5 * std::sqrt(expected) + 4;
  bool is_right = true;
  for (const Outcome& outcome : outcomes) {
    is_right = is_right && outcome.twice == 0 && static_cast<double>(outcome.lost) <= most_lost &&
               outcome.course.most_fpp <= kTargetFpp;
  }
  const Course& published = outcomes[0].course;
  const Course& compact = outcomes[1].course;
  if (!is_right) {
    absl::PrintF("\nWRONG: this must not happen. Please report it with the lines above.\n");
  } else if (published.most_past == published.first_past) {
    absl::PrintF("\nThe load was too small to move N: raise --events.\n");
  } else {
    const std::string seen = absl::StrFormat(
        "While the load rose and fell, published took N from %.0f to %.0f and back to %.0f, and t from %s to "
        "%s and back to %s; compact took N from %.0f to %.0f, t from %s to %s, and its memory from %s to "
        "%s. The FPP of both stayed under the target.",
        published.first_past, published.most_past, published.last_past, PeriodText(published.first_period),
        PeriodText(published.least_period), PeriodText(published.last_period), compact.least_past,
        compact.most_past, PeriodText(compact.most_period), PeriodText(compact.least_period),
        MemoryText(compact.first_memory), MemoryText(compact.most_memory));
    absl::PrintF("\n%s\n", Wrapped(seen, 80));
  }
  return is_right;
}

absl::StatusOr<bool> AdaptDemo::Run() {
  absl::PrintF("lethe demo --adapt: a day in %s, with a horizon of %s, on %s (seed %d)\n",
               DurationText(options_.day), DurationText(DemoDay::kHorizon),
               options_.brokers.empty() ? "an embedded broker" : options_.brokers,
               static_cast<int64_t>(seed_));
  std::fflush(stdout);
  if (absl::Status prepared = Prepare(); !prepared.ok()) return prepared;
  absl::PrintF("status pages: published http://127.0.0.1:%d/  compact http://127.0.0.1:%d/\n\n",
               watched_[0].port, watched_[1].port);
  std::fflush(stdout);
  if (absl::Status sent = SendDay(); !sent.ok()) return sent;
  if (absl::Status out = AwaitOutput(); !out.ok()) return out;
  const bool is_right = Report();
  if (options_.serve) {
    absl::PrintF("\nThe status pages stay until you press Enter or Ctrl-C.\n");
    site_->AwaitUser();
  }
  for (Watched& watched : watched_) {
    if (const int code = watched.daemon->Terminate(absl::Seconds(10)); code != 0) {
      return absl::InternalError(absl::StrCat("the daemon ended with exit code ", code, " on SIGTERM"));
    }
  }
  return is_right;
}

}  // namespace

absl::StatusOr<bool> RunAdaptDemo(const AdaptDemoOptions& options) { return AdaptDemo(options).Run(); }

}  // namespace lethe
