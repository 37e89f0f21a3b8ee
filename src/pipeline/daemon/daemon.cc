#include "src/pipeline/daemon/daemon.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "src/pipeline/assign/assigner.h"
#include "src/pipeline/options/stage_options.h"
#include "src/pipeline/preflight/inspect_topics.h"
#include "src/pipeline/preflight/own_topics.h"
#include "src/pipeline/snapshots/snapshot_folder.h"
#include "src/pipeline/snapshots/snapshot_topic.h"
#include "src/text/format.h"

namespace lethe {
namespace {

constexpr absl::Duration kLookAtLanesEvery = absl::Milliseconds(20);
constexpr absl::Duration kTrimEvery = absl::Seconds(10);
// New topics join within ten seconds: this, what it takes to inspect them, and a rebalance.
constexpr absl::Duration kFindEvery = absl::Seconds(3);
// How long the end waits for topics that are about to be readable.
constexpr absl::Duration kNewTopicsPatience = absl::Seconds(15);
// How often the ends of the partitions are asked for, while a lane may stand still.
constexpr int kAsksInPatience = 3;
constexpr absl::Duration kAskUnansweredAgainAfter = absl::Seconds(2);  // without an answer
// Together with the rest of the shutdown, less than the time promised after SIGTERM.
constexpr absl::Duration kStorePatience = absl::Seconds(1);

}  // namespace

Daemon::Daemon(std::unique_ptr<Connector> connector, DaemonOptions options, OpenStore open_store,
               const Clock& clock)
    : connector_(std::move(connector)),
      options_(std::move(options)),
      open_store_(std::move(open_store)),
      clock_(clock),
      judging_(options_.scope == Scope::kTopic ? JudgingOptions(options_) : options_, *connector_, clock_) {}

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Create(std::unique_ptr<Connector> connector,
                                                       DaemonOptions options, OpenStore open_store,
                                                       std::vector<DaemonOptions> topics,
                                                       const Clock& clock) {
  const bool is_list =
      topics.size() > 1 ||
      (!topics.empty() && (IsPattern(topics.front().input) || !topics.front().merged.empty()));
  if (topics.empty()) topics.push_back(options);
  for (const DaemonOptions& topic : topics) {
    if (absl::Status status = Validate(topic.stage); !status.ok()) return status;
  }
  std::unique_ptr<Daemon> daemon(
      new Daemon(std::move(connector), std::move(options), std::move(open_store), clock));
  const auto routed =
      absl::c_find_if(topics, [](const DaemonOptions& each) { return each.scope == Scope::kTopic; });
  if (routed != topics.end()) {
    daemon->lanes_.push_back(
        &daemon->routing_.emplace(RoutingOptions(*routed, routed->input), *daemon->connector_, clock));
  }
  auto memory = DedupStage::Create(daemon->judging_.options().stage);
  if (!memory.ok()) return memory.status();
  daemon->memory_ = *std::move(memory);
  if (!is_list) return daemon;
  for (Lanes* lanes : daemon->lanes_) lanes->flows().SetList();
  auto list = TopicList::Create(std::move(topics));
  if (!list.ok()) return list.status();
  daemon->finder_.emplace(
      *std::move(list), daemon->judging_.flows(), daemon->Maker(),
      [owner = daemon.get()](const DaemonOptions& topic, Topics found, bool is_logged) {
        return topic.half.routing ? owner->AddRouter(topic, std::move(found))
                                  : owner->AddFlow(topic, std::move(found), is_logged);
      },
      daemon->clock_);
  return daemon;
}

absl::Status Daemon::Run() {
  if (absl::Status locked = instance_lock_.Take(options_.process); !locked.ok()) return locked;
  if (absl::Status found = FindTopics(); !found.ok()) {
    return absl::IsCancelled(found) ? absl::OkStatus() : found;
  }
  absl::Status status = RunToStop();
  if (!status.ok()) stop_.Request();
  // Before the lanes end: snapshots that they leave to be removed wait for this thread.
  if (snapshot_thread_) snapshot_thread_->GiveUpWriting();
  for (Lanes* lanes : lanes_) lanes->Join();
  is_unanswered_ = !judging_.Connect().ok() || !judging_.brokers()->CountBrokers().ok();
  if (source_feed_) source_feed_->Join();
  if (snapshot_thread_) snapshot_thread_->Stop();
  // With exit_at_end a user waits for the end, so wait for a store that is away; else the next owner fills
  // it.
  const absl::Duration patience =
      options_.process.exit_at_end && status.ok() ? absl::InfiniteDuration() : kStorePatience;
  for (TotalsFeed* feed : Feeds()) {
    feed->Finish(patience, [&] { return !hurried_.requested() || patience < absl::InfiniteDuration(); });
  }
  {
    const MutexLock lock(mutex_);
    if (!first_error_.ok()) status = first_error_;
  }
  if (absl::IsAlreadyExists(status)) PauseForWinner();
  return status;
}

void Daemon::PauseForWinner() const {
  spdlog::error("ending in {}: another process has this instance",
                absl::FormatDuration(absl::Trunc(judging_.pause(), absl::Milliseconds(100))));
  clock_.WaitFor(hurried_, judging_.pause());
}

MakeBrokers Daemon::Maker() {
  return [this](const DaemonOptions& options, Isolation isolation) {
    return connector_->MakeBrokers(options, isolation);
  };
}

absl::Status Daemon::Await(const DaemonOptions& options,
                           absl::FunctionRef<absl::Status(Brokers& brokers)> ask) {
  const auto brokers = connector_->MakeBrokers(options, IsolationOf(options));
  if (!brokers.ok()) return brokers.status();
  return AwaitTopics(options, **brokers, stop_, clock_, [&] {
    absl::Status answer = ask(**brokers);
    const MutexLock lock(mutex_);
    awaited_ = std::string(answer.message());
    return answer;
  });
}

absl::StatusOr<Topics> Daemon::AwaitInspected(const DaemonOptions& options) {
  Topics topics;
  absl::Status asked = Await(options, [&](Brokers& brokers) -> absl::Status {
    auto answer = InspectTopics(options, brokers, clock_.Wall());
    if (!answer.ok()) return answer.status();
    topics = *std::move(answer);
    return absl::OkStatus();
  });
  if (!asked.ok()) return asked;
  return topics;
}

absl::Status Daemon::FindTopics() {
  if (finder_) {
    const absl::Time give_up = clock_.Steady() + kNewTopicsPatience;
    return Await(options_, [&](Brokers& brokers) -> absl::Status {
      if (absl::Status looked = finder_->Look(brokers); !looked.ok()) return looked;
      // No later look counts.
      const bool waits = options_.process.exit_at_end && finder_->expects_more() && clock_.Steady() < give_up;
      return waits ? absl::UnavailableError("topics that were created a moment ago") : absl::OkStatus();
    });
  }
  if (absl::c_linear_search(WrittenTopics(options_), options_.input)) {
    return absl::InvalidArgumentError(
        absl::StrCat("topic ", options_.input, " is input and output at once: it would feed itself"));
  }
  if (routing_) {
    if (absl::Status connected = routing_->Connect(); !connected.ok()) return connected;
  }
  // Before anything is created.
  absl::Time give_up = absl::InfiniteFuture();
  const absl::Status begins = Await(options_, [&](Brokers& brokers) -> absl::Status {
    if (const auto input = brokers.CountPartitions(options_.input); absl::IsUnavailable(input.status())) {
      return input.status();
    }
    const auto ask = [&](const std::string& topic, int32_t) { return brokers.AskCommitted(topic); };
    if (absl::Status scope = CheckScope(judging_.options(), 0, ask); !scope.ok()) {
      return MayGoOn(scope, clock_, give_up) ? absl::OkStatus() : scope;
    }
    const absl::Status refused = RefuseWritten(options_, brokers, routing_ ? routing_->brokers() : nullptr);
    return MayGoOn(refused, clock_, give_up) ? absl::OkStatus() : refused;
  });
  if (!begins.ok()) return begins;
  if (routing_) {
    absl::Status made = Await(routing_->options(),
                              [&](Brokers& routers) { return EnsureRepartitionTopic(options_, routers); });
    if (!made.ok()) return made;
    if (routing_->Connect().ok() && judging_.Connect().ok()) {
      WarnOfLoss(options_, *routing_->brokers(), *judging_.brokers());
    }
    auto topics = AwaitInspected(routing_->options());
    if (!topics.ok()) return topics.status();
    if (absl::Status added = AddRouter(routing_->options(), *std::move(topics)); !added.ok()) return added;
  }
  absl::Status made = Await(judging_.options(), [&](Brokers& brokers) {
    absl::Status totals = EnsureTotalsTopics(judging_.options(), brokers);
    return totals.ok() ? EnsureSnapshots(judging_.options(), brokers) : totals;
  });
  if (!made.ok()) return made;
  auto topics = AwaitInspected(judging_.options());
  if (!topics.ok()) return topics.status();
  return AddFlow(judging_.options(), *std::move(topics), true);
}

absl::Status Daemon::InspectRouted() {
  for (int32_t number = 0; number < judging_.flows().size(); ++number) {
    Flow& flow = judging_.flows().at(number);
    if (flow.options.half.routed_from.empty()) continue;
    auto topics = AwaitInspected(flow.options);
    if (!topics.ok()) return topics.status();
    flow.SetTopics(*std::move(topics));
  }
  return absl::OkStatus();
}

absl::Status Daemon::AddRouter(const DaemonOptions& options, Topics topics) {
  auto filters = DedupStage::Create(options.stage);
  if (!filters.ok()) return filters.status();
  auto flow = std::make_unique<Flow>(options, *std::move(filters));
  flow->SetTopics(std::move(topics));
  const MutexLock lock(mutex_);
  std::unique_ptr<RoutedSources>& sources = sources_[options.output];
  if (sources == nullptr) sources = std::make_unique<RoutedSources>(&asked_soon_);
  flow->sources = sources.get();
  // Before the lanes see it: what no one has spoken of holds the others.
  sources->SetCount(routing_->flows().size(), flow->topics.partitions);
  routing_->flows().Add(std::move(flow));
  return absl::OkStatus();
}

absl::Status Daemon::EnsureSnapshots(const DaemonOptions& options, Brokers& brokers) {
  const std::string& topic = options.process.snapshots.topic;
  if (topic.empty() || snapshot_partitions_) return absl::OkStatus();
  const auto made = EnsureSnapshotTopic(options, brokers);
  if (absl::IsUnavailable(made.status())) return made.status();
  if (!made.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("snapshots cannot go to topic ", topic, ": ", made.status().message(),
                     absl::IsPermissionDenied(made.status()) ? "; or create it" : "; create it",
                     ", with cleanup.policy=compact, or set snapshots.to to a folder, or off"));
  }
  snapshot_partitions_ = *made;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<SnapshotStore>> Daemon::OpenSnapshots(const DaemonOptions& options) {
  if (!options.process.snapshots.folder.empty()) return OpenSnapshotFolder(options);
  if (options.process.snapshots.topic.empty()) return nullptr;
  if (absl::Status connected = judging_.Connect(); !connected.ok()) return connected;
  if (absl::Status made = EnsureSnapshots(options, *judging_.brokers()); !made.ok()) return made;
  auto log = connector_->OpenSnapshots(options);
  if (!log.ok()) return log.status();
  return MakeSnapshotTopic(options, *std::move(log), *snapshot_partitions_);
}

absl::Status Daemon::AddFlow(const DaemonOptions& options, Topics topics, bool is_logged) {
  auto filters = DedupStage::Create(options.stage, *memory_);
  if (!filters.ok()) return filters.status();
  auto flow = std::make_unique<Flow>(options, *std::move(filters));
  flow->SetTopics(std::move(topics));
  auto store = OpenSnapshots(flow->options);
  if (!store.ok()) return store.status();
  if (*store != nullptr) {
    if (snapshot_thread_ == nullptr) snapshot_thread_ = std::make_unique<SnapshotThread>(clock_);
    flow->snapshots = std::make_unique<Snapshots>(
        *std::move(store), options.process.snapshots.every,
        SnapshotWriting{.topic = options.input, .thread = snapshot_thread_.get(), .clock = clock_});
  }
  const auto level = is_logged ? spdlog::level::info : spdlog::level::debug;
  spdlog::log(level, "{} ({}) -> {}, group {}, id {}, horizon {}, false-positive target {}", options.input,
              Several(flow->topics.partitions, "partition"), options.output, options.process.group,
              options.record.id.ToString(), DurationText(StatedHorizon(options)), options.stage.target_fpp);
  for (const std::string& warning : flow->topics.warnings)
    spdlog::log(is_logged ? spdlog::level::warn : spdlog::level::debug, "{}", warning);
  const MutexLock lock(mutex_);
  if (!options.counters.empty()) {
    watches_.push_back(std::make_unique<CounterWatch>(options.counters, options_.process.lanes));
    flow->counter_watch = watches_.back().get();
  }
  const Flow& added = judging_.flows().Add(std::move(flow));
  for (const CounterOptions& counter : options.counters) {
    if (counter.store.empty() || open_store_ == nullptr) continue;
    feeds_.push_back(std::make_unique<TotalsFeed>(
        added.options, counter, open_store_(counter, options.origin()),
        connector_->OpenTotals(added.options, counter.output),
        [this, number = added.number] { return judging_.Partitions(number); }, stop_, clock_));
    feeds_.back()->Start();
  }
  return absl::OkStatus();
}

void Daemon::Start(Lanes& lanes) {
  lanes.Start(stop_, [this](const absl::Status& status) {
    const MutexLock lock(mutex_);
    if (first_error_.ok()) first_error_ = status;
    if (!status.ok()) stop_.Request();
  });
}

absl::Status Daemon::RunToStop() {
  std::vector<std::string> problems;
  if (routing_) {
    source_feed_ = std::make_unique<SourceFeed>(
        routing_->options(), routing_->flows(), Maker(),
        [this](int32_t flow) { return routing_->Partitions(flow); }, asked_soon_, stop_, clock_);
    Start(*routing_);
  }
  if (routing_ && options_.process.exit_at_end) {
    AwaitEnd(*routing_, problems);
    // The deduplicators end where the routers have come to.
    if (absl::Status inspected = InspectRouted(); !inspected.ok()) {
      return absl::IsCancelled(inspected) ? absl::OkStatus() : inspected;
    }
  }
  Start(judging_);
  if (options_.process.exit_at_end) {
    AwaitEnd(judging_, problems);
    if (finder_) {
      for (const auto& [topic, why] : finder_->Problems()) {
        problems.push_back(absl::StrCat(topic, " is not read: ", why));
      }
    }
    Trim();
    for (TotalsFeed* feed : Feeds()) feed->KeepOwned();
    stop_.Request();
  }
  absl::Time next_trim = clock_.Steady() + kTrimEvery;
  absl::Time next_ask = clock_.Steady() + options_.process.stall_patience / kAsksInPatience;
  bool is_answered = true;
  while (!clock_.WaitFor(stop_, finder_ ? kFindEvery : next_ask - clock_.Steady())) {
    if (finder_ && is_answered && judging_.Connect().ok()) {
      // Without an answer, the next question for the ends says so.
      finder_->Look(*judging_.brokers()).IgnoreError();
    }
    if (clock_.Steady() < next_ask) continue;
    is_answered = AskEnds();
    next_ask = clock_.Steady() +
               (is_answered ? options_.process.stall_patience / kAsksInPatience : kAskUnansweredAgainAfter);
    instance_lock_.CloseQuestions();
    if (clock_.Steady() < next_trim) continue;
    Trim();
    next_trim = clock_.Steady() + kTrimEvery;
  }
  return problems.empty() ? absl::OkStatus() : absl::FailedPreconditionError(absl::StrJoin(problems, "; "));
}

void Daemon::AwaitEnd(const Lanes& lanes, std::vector<std::string>& problems) {
  while (!clock_.WaitFor(stop_, kLookAtLanesEvery)) {
    const std::vector<LaneReport> reports = lanes.Reports();
    if (!absl::c_all_of(reports, [](const LaneReport& lane) { return lane.at_end; })) continue;
    for (TopicProblem& problem : Problems(reports)) problems.push_back(std::move(problem.text));
    return;
  }
}

std::vector<TotalsFeed*> Daemon::Feeds() const {
  std::vector<TotalsFeed*> feeds;
  const MutexLock lock(mutex_);
  for (const std::unique_ptr<TotalsFeed>& feed : feeds_) feeds.push_back(feed.get());
  return feeds;
}

bool Daemon::AskEnds() {
  bool is_answered = true;
  for (Lanes* lanes : lanes_) is_answered = lanes->AskEnds() && is_answered;
  return is_answered;
}

void Daemon::Trim() {
  if (!routing_ || !judging_.Connect().ok()) return;
  trimmer_.Trim(*judging_.brokers(), judging_.flows(), judging_.Reports());
}

absl::Duration Daemon::SilentFor() const {
  absl::Duration longest = absl::ZeroDuration();
  for (const Lanes* lanes : lanes_) longest = std::max(longest, lanes->SilentFor());
  return longest;
}

bool Daemon::OnlyLeaves() const {
  return absl::c_all_of(lanes_, [](const Lanes* lanes) { return lanes->OnlyLeave(); });
}

bool Daemon::LeavesUnfinished() const {
  return absl::c_any_of(lanes_, [](const Lanes* lanes) { return lanes->LeaveUnfinished(); });
}

CountersView Daemon::Counters(size_t top, const std::optional<std::string>& topic) {
  for (int32_t number = 0; number < judging_.flows().size(); ++number) {
    const Flow& flow = judging_.flows().at(number);
    if (flow.counter_watch == nullptr || (topic && flow.options.input != *topic)) continue;
    CountersView view = flow.counter_watch->View(top);
    view.all_partitions = flow.topics.partitions;
    return view;
  }
  return {};
}

DaemonReport Daemon::Report() const {
  DaemonReport report;
  report.brokers = options_.process.brokers;
  report.first = {judging_.options().input,
                  options_.output,
                  EngineName(options_.stage.engine),
                  options_.stage.horizon,
                  options_.stage.target_fpp,
                  /*problem=*/"",
                  judging_.options().half.routed_from};
  report.group = options_.process.group;
  report.instance = options_.process.instance;
  report.memory_used_bytes = memory_->memory().used_bytes();
  report.memory_limit_bytes = memory_->memory().limit_bytes();
  if (options_.record.schemas != nullptr) report.schemas = options_.record.schemas->figures();
  std::vector<std::string> reasons;
  std::vector<TopicProblem> problems;
  const MutexLock lock(mutex_);
  for (int32_t number = 0; number < judging_.flows().size(); ++number) {
    const Flow& flow = judging_.flows().at(number);
    const DaemonOptions& options = flow.options;
    if (flow.snapshots != nullptr) report.snapshots += flow.snapshots->counts();
    if (!finder_) continue;
    report.topics.push_back(
        {options.input, options.output, EngineName(options.stage.engine), StatedHorizon(options),
         options.stage.target_fpp, /*problem=*/"", options.half.routed_from,
         finder_->IsNamed(options.half.routed_from.empty() ? options.input : options.half.routed_from[0])});
  }
  if (!finder_) {
    report.topics = {report.first};
  } else {
    for (const auto& [topic, why] : finder_->Problems()) {
      TopicReport& unread = report.topics.emplace_back();
      unread.input = topic;
      unread.problem = why;
      unread.is_named = finder_->IsNamed(topic);
      problems.push_back({topic, absl::StrCat(topic, " is not read: ", why)});
    }
  }
  report.lanes = judging_.Reports();
  for (const Lanes* lanes : lanes_) {
    for (std::string& name : lanes->ForeignMembers()) report.foreign_members.push_back(std::move(name));
  }
  for (const std::unique_ptr<TotalsFeed>& feed : feeds_) report.stores.push_back(feed->Report());
  if (routing_) {
    report.routing_lanes = routing_->Reports();
    routing_->AddReasons(report.routing_lanes, reasons, problems);
  }
  if (report.lanes.empty()) {
    reasons.push_back(report.routing_lanes.empty()
                          ? absl::StrCat("waiting for the brokers at ", options_.process.brokers,
                                         awaited_.empty() ? "" : ": ", awaited_)
                          : "the inputs are routed to their ends first");
  }
  judging_.AddReasons(report.lanes, reasons, problems);
  SetReadiness(reasons, problems, report);
  // Without lanes it waits for a first answer.
  const bool waits = report.lanes.empty() && report.routing_lanes.empty();
  if (waits || !absl::c_all_of(lanes_, [](const Lanes* lanes) { return lanes->AreAnswered(); })) {
    SetUnanswered(report);
  }
  return report;
}

}  // namespace lethe
