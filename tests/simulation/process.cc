#include "tests/simulation/process.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/engines/memory_parts.h"
#include "src/pipeline/options/stage_options.h"

// In the place of the C library's: a snapshot's thread gives way to others again and again. Here it is the
// only one, and on a busy machine would wait for all other programs.
extern "C" int sched_yield() noexcept { return 0; }

namespace lethe::simulation {
TopicNames::TopicNames(const Schedule& schedule, int topic)
    : input(1, static_cast<char>('a' + topic)),
      inputs({input}),
      judged(input),
      output(absl::StrCat(input, "-output")),
      deltas(absl::StrCat(input, "-deltas")),
      totals(absl::StrCat(input, "-totals")) {
  if (topic >= schedule.routed_topics) return;
  for (int way = 2; way <= schedule.ways; ++way) inputs.push_back(absl::StrCat(input, way));
  judged = RepartitionTopic(OptionsOf(schedule, 0, topic, *this));
}

std::string SnapshotTopicOf(const Schedule& schedule, int instance) {
  if (schedule.snapshots == SnapshotPlace::kNowhere) return "";
  return schedule.snapshots == SnapshotPlace::kOfAll ? "snapshots" : absl::StrCat("snapshots-i", instance);
}

DaemonOptions OptionsOf(const Schedule& schedule, int instance, int topic, const TopicNames& names) {
  DaemonOptions options;
  options.input = names.input;
  options.output = names.output;
  if (topic < schedule.routed_topics) {
    options.scope = Scope::kTopic;
    if (schedule.ways > 1) options.merged = names.inputs;
  }
  if (schedule.names_input) options.input_header = kInputHeader;
  options.process.group = "lethe";
  options.process.instance = absl::StrCat("i", instance);
  options.process.lanes = schedule.lanes;
  options.process.assignment = schedule.is_cooperative ? Assignment::kCooperative : Assignment::kEager;
  options.process.static_membership = !schedule.has_static_members ? StaticMembership::kNever
                                      : schedule.keeps_places      ? StaticMembership::kAlways
                                                                   : StaticMembership::kAfterCrash;
  options.process.commit_interval = schedule.commit_interval;
  options.process.properties = {
      {"session.timeout.ms", absl::StrCat(absl::ToInt64Milliseconds(schedule.session_timeout))}};
  const bool stops = topic == schedule.stopping_topic;
  options.policies.on_unreadable = stops ? Action::kFail : Action::kDrop;
  options.policies.on_missing_id = stops ? Action::kFail : Action::kPass;
  if (schedule.skips_deleted) options.policies.on_unread_deleted = OnUnreadDeleted::kContinue;
  if (schedule.stops_at_short) options.policies.on_short_history = OnShortHistory::kFail;
  options.record.id = *IdSpec::Parse("json:/id");
  options.stage.horizon = schedule.horizon;
  options.stage.target_fpp = 1e-12;
  options.stage.engine = schedule.is_exact ? Engine::kExact : Engine::kCompact;
  options.stage.shards = schedule.shards;
  options.stage.renew = schedule.renews;
  if (schedule.tags) options.policies.on_duplicate = Action::kTag;
  options.stage.audit_share = 0;
  options.stage.memory_limit_bytes = int64_t{64} << 20;
  options.stage.hash_seed = schedule.seed + static_cast<uint64_t>(instance);
  options.process.snapshots.every = schedule.snapshots_every;
  options.process.snapshots.topic = SnapshotTopicOf(schedule, instance);
  if (schedule.counting != Counting::kNothing) {
    CounterOptions counter;
    counter.name = schedule.counting == Counting::kTotals ? "totals" : "deltas";
    counter.mode = schedule.counting == Counting::kTotals ? CounterMode::kTotal : CounterMode::kDelta;
    counter.spec = {*Field::Parse("json:/country"), *Field::Parse("json:/amount")};
    counter.output = schedule.counting == Counting::kTotals ? names.totals : names.deltas;
    options.counters.push_back(std::move(counter));
  }
  return options;
}

std::string StrangerOf(const std::string& topic, bool shares_output, bool comes_first) {
  return absl::StrCat(shares_output ? (comes_first ? "0." : "t.") : (comes_first ? "1." : "u."), topic);
}

std::vector<DaemonOptions> PatternsOf(const DaemonOptions& options) {
  DaemonOptions shared = options;
  shared.input = "^([0t]\\.)?([a-c])$";
  // As TopicNames has them.
  shared.output = "$2-output";
  for (CounterOptions& counter : shared.counters) counter.output = absl::StrCat("$2-", counter.name);
  DaemonOptions into = options;
  into.input = "^[1u]\\.(.+)$";
  into.output = "$1";
  into.counters.clear();
  return {std::move(shared), std::move(into)};
}

Process::Process(const Site& site, int instance, std::function<void()> on_end)
    : site_(site),
      instance_(instance),
      clock_(site.world, kBegin, instance % 2 == 0 ? absl::ZeroDuration() : site.schedule.skew,
             absl::StrCat("i", instance)) {
  connection_.is_up = [this] { return !site_.is_cut() && site_.world.now() >= frozen_until_ && !is_dead(); };
  auto daemon = MakeDaemon();
  absl::Status made = daemon.status();
  if (daemon.ok()) daemon_ = *std::move(daemon);
  clock_.Start([this, made = std::move(made), on_end = std::move(on_end)] {
    ended_ = made.ok() ? daemon_->Run() : made;
    site_.world.After(absl::ZeroDuration(), on_end);
  });
}

Process::~Process() {
  // Its threads die before what they use.
  clock_.Kill();
}

absl::StatusOr<std::unique_ptr<Daemon>> Process::MakeDaemon() {
  auto connector = std::make_unique<SimulatedConnector>(
      SimulatedConnector::Site{site_.world,
                               site_.broker,
                               site_.group,
                               site_.routing_group,
                               connection_,
                               {site_.schedule.transaction_timeout,
                                site_.schedule.oversized_of_hundred > 0 ? kOutputTakesBytes : SIZE_MAX,
                                site_.schedule.names_refused}});
  connector_ = connector.get();
  const DaemonOptions options = OptionsFor(0);
  // What it is told by its name alone, or a list, of which some come later.
  std::vector<DaemonOptions> topics;
  if (site_.schedule.strangers > 0) {
    return Daemon::Create(std::move(connector), options, nullptr, PatternsOf(options), clock_);
  }
  const int count = site_.schedule.is_list() ? kMostTopics : options.inputs().size() > 1 ? 1 : 0;
  for (int topic = 0; topic < count; ++topic) topics.push_back(OptionsFor(topic));
  return Daemon::Create(std::move(connector), options, nullptr, std::move(topics), clock_);
}

DaemonOptions Process::OptionsFor(int topic) const {
  DaemonOptions options = OptionsOf(site_.schedule, instance_, topic, TopicNames(site_.schedule, topic));
  options.accept_nonempty_output = site_.accepts_output;
  if (site_.lacks_memory) {
    options.stage.memory_limit_bytes =
        SmallestLimitBytes(options.stage, LimitsOf(options.stage.engine), site_.schedule.filters);
  }
  return options;
}

void Process::Stop() {
  if (daemon_ == nullptr) return;
  daemon_->Stop();
  clock_.Look();
  Wake();
}

void Process::Stall(absl::Duration duration) {
  for (auto& lane : connector_->lanes()) lane.thread.Freeze(duration);
}

void Process::Freeze(absl::Duration duration) {
  frozen_until_ = site_.world.now() + duration;
  clock_.Freeze(duration);
}

void Process::DieIn(int64_t calls, std::function<void()> on_death) {
  SimulatedConnector::LaneClients* const lane = OneOf(calls);
  (lane != nullptr ? lane->thread : connector_->others()).DieIn(calls, std::move(on_death));
}

void Process::Wake() {
  for (auto& lane : connector_->lanes()) lane.source->Wake();
}

SimulatedConnector::LaneClients* Process::OneOf(int64_t number) const {
  const bool routes = site_.schedule.routed_topics > 0 && number % 2 == 1;
  SimulatedConnector::LaneClients* first = nullptr;
  for (auto& lane : connector_->lanes()) {
    if (lane.is_routing == routes) return &lane;
    if (first == nullptr) first = &lane;
  }
  return first;
}

bool Process::is_dead() const {
  if (connector_ == nullptr) return false;
  return connector_->others().is_dead() ||
         std::any_of(connector_->lanes().begin(), connector_->lanes().end(),
                     [](const auto& lane) { return lane.thread.is_dead(); });
}

void Process::Expel() {
  for (auto& lane : connector_->lanes()) lane.source->group().Expel(lane.source->client());
}

void Process::LoseAnswers(int commits) {
  if (auto* const lane = OneOf(commits); lane != nullptr) lane->sink->LoseAnswers(commits);
}

void Process::RefuseCommits(int commits) {
  if (auto* const lane = OneOf(commits); lane != nullptr) lane->sink->RefuseCommits(commits);
}

std::string Process::Problems() const {
  if (daemon_ == nullptr) return "";
  std::string problems;
  const auto add = [&](const std::string& problem) {
    if (!problem.empty()) absl::StrAppend(&problems, problem, "; ");
  };
  const DaemonReport report = daemon_->Report();
  for (const auto* lanes : {&report.lanes, &report.routing_lanes}) {
    for (const LaneReport& lane : *lanes) {
      for (const PartitionReport& partition : lane.partitions) add(partition.problem);
      for (const auto& [topic, why] : lane.gone) add(why);
      if (!lane.waiting.empty()) add(absl::StrCat("waits: ", lane.waiting));
    }
  }
  for (const TopicReport& topic : report.topics) {
    if (!topic.problem.empty()) add(absl::StrCat(topic.origin(), " is not read: ", topic.problem));
  }
  if (report.lanes.empty()) {
    for (const std::string& why : report.not_ready) add(why);
  }
  return problems;
}

bool Process::HasPending() const {
  if (daemon_ == nullptr) return false;
  for (const LaneReport& lane : daemon_->Report().lanes) {
    for (const PartitionReport& partition : lane.partitions) {
      const bool is_behind = partition.phase == Phase::kActive && partition.log.lag() > 0;
      if (partition.filter.pending > 0 || is_behind) return true;
    }
  }
  return false;
}

}  // namespace lethe::simulation
