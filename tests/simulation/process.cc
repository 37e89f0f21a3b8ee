#include "tests/simulation/process.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/engines/memory_parts.h"
#include "src/pipeline/options/stage_options.h"
#include "src/pipeline/output/source_pace.h"

namespace lethe::simulation {
namespace {

constexpr absl::Duration kLookForSnapshots = absl::Milliseconds(100);
constexpr absl::Duration kLookForTopics = absl::Seconds(3);
constexpr absl::Duration kAskSoonEvery = absl::Milliseconds(20);
constexpr absl::Duration kAskEvery = absl::Seconds(1);

Topics TopicsOf(const Broker& broker, const DaemonOptions& options) {
  Topics topics;
  topics.partitions = broker.CountPartitions(options.input);
  topics.output_partitions = broker.CountPartitions(options.output);
  topics.least_partitions = INT32_MAX;
  for (const std::string& topic : TopicsOfSamePartition(options)) {
    topics.least_partitions = std::min(topics.least_partitions, broker.CountPartitions(topic));
  }
  topics.input_max_bytes = topics.output_max_bytes = 1'000'000;
  topics.counter_max_bytes.assign(2, 1'000'000);
  return topics;
}

bool AreThere(const Broker& broker, const DaemonOptions& options) {
  std::vector<std::string> topics = WrittenTopics(options);
  for (const std::string& input : options.inputs()) topics.push_back(input);
  return std::all_of(topics.begin(), topics.end(),
                     [&](const std::string& topic) { return broker.Find(topic) != nullptr; });
}

}  // namespace

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

DaemonOptions OptionsOf(const Schedule& schedule, int instance, int topic, const TopicNames& names) {
  DaemonOptions options;
  options.input = names.input;
  options.output = names.output;
  if (topic < schedule.routed_topics) {
    options.scope = Scope::kTopic;
    if (schedule.ways > 1) options.merged = names.inputs;
  }
  options.process.group = "lethe";
  options.process.instance = absl::StrCat("i", instance);
  options.process.lanes = schedule.lanes;
  options.process.assignment = schedule.is_cooperative ? Assignment::kCooperative : Assignment::kEager;
  options.process.static_membership =
      schedule.has_static_members ? StaticMembership::kAfterCrash : StaticMembership::kNever;
  options.process.commit_interval = schedule.commit_interval;
  options.process.properties = {
      {"session.timeout.ms", absl::StrCat(absl::ToInt64Milliseconds(schedule.session_timeout))}};
  const bool stops = topic == schedule.stopping_topic;
  options.policies.on_unreadable = stops ? Action::kFail : Action::kDrop;
  options.policies.on_missing_id = stops ? Action::kFail : Action::kPass;
  options.record.id = *IdSpec::Parse("json:/id");
  options.stage.horizon = schedule.horizon;
  options.stage.target_fpp = 1e-12;
  options.stage.audit_share = 0;
  options.stage.memory_limit_bytes = int64_t{64} << 20;
  options.stage.hash_seed = schedule.seed + static_cast<uint64_t>(instance);
  options.process.snapshots.every = schedule.snapshots_every;
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

// As of connectors/kafka/daemon.h.
struct Process::Stage {
  Stage(const Process& process, DaemonOptions of_stage, Group& of)
      : options(std::move(of_stage)),
        group(of),
        claim(
            options,
            [this, &process]() -> absl::StatusOr<std::vector<NamedMember>> {
              if (!process.connection_.is_up() || process.site_.broker.is_away()) {
                return absl::UnavailableError("no answer");
              }
              return group.Members();
            },
            process.clock_),
        shared{options, flows, kept, claim, ends} {}
  // The partitions of a flow in all its lanes, as they have reported.
  std::vector<int32_t> Partitions(int32_t flow) const;

  const DaemonOptions options;
  Group& group;
  InstanceClaim claim;
  Flows flows;
  KeptPartitions kept;
  LogEnds ends;
  const Shared shared;
  std::vector<std::unique_ptr<Lane>> lanes;
};

struct Process::Lane {
  Lane(Process& process, Stage& stage, int lane)
      : thread(process.site_.world),
        state(lane, process.stop_, process.clock_),
        source(stage.options, stage.flows, lane, process.site_.broker, stage.group, process.connection_,
               thread),
        sink(stage.options, stage.flows, lane,
             {process.site_.schedule.transaction_timeout,
              process.site_.schedule.oversized_of_hundred > 0 ? kOutputTakesBytes : SIZE_MAX,
              process.site_.schedule.names_refused},
             process.site_.broker, source, state, thread),
        answers(process.site_.broker, stage.group, process.connection_, thread),
        worker({stage.shared, state, tasks, source, sink, answers}) {
    sink.may_recreate = [this] { return worker.membership().MayRecreateProducer(); };
    if (stage.options.half.routing) source.on_poll = [&, this] { process.SeePassedOver(stage, *this); };
  }

  Thread thread;
  WorkerState state;
  Tasks tasks;
  SimulatedSource source;
  SimulatedSink sink;
  Answers answers;
  Worker worker;
  std::unique_ptr<Actor> actor;
};

Process::Process(const Site& site, int instance, std::function<void()> on_end)
    : site_(site),
      on_end_(std::move(on_end)),
      instance_(instance),
      options_(OptionsFor(0)),
      clock_(site.world, kBegin, instance % 2 == 0 ? absl::ZeroDuration() : site.schedule.skew),
      snapshot_thread_(site.world),
      feed_thread_(site.world),
      self_(std::make_shared<Process*>(this)) {
  connection_.is_up = [this] { return !site_.is_cut() && site_.world.now() >= frozen_until_ && !is_dead(); };
  const bool is_routed = options_.scope == Scope::kTopic;
  stages_.push_back(
      std::make_unique<Stage>(*this, is_routed ? JudgingOptions(options_) : options_, site.group));
  if (is_routed) {
    stages_.push_back(
        std::make_unique<Stage>(*this, RoutingOptions(options_, options_.input), *site.routing_group));
  }
  memory_ = DedupStage::Create(stages_.front()->options.stage).value();
  if (site.schedule.is_list() || options_.inputs().size() > 1) {
    for (const auto& stage : stages_) stage->flows.SetList();
  }
  LookForTopics();
  for (const auto& stage : stages_) {
    for (int lane = 0; lane < options_.process.lanes; ++lane) {
      stage->lanes.push_back(std::make_unique<Lane>(*this, *stage, lane));
    }
    running_ += options_.process.lanes;
  }
  // Each wait is that of the thread that runs.
  clock_.wait = [this](absl::Duration duration) {
    for (const auto& stage : stages_) {
      for (const auto& lane : stage->lanes) {
        if (lane->thread.is_running()) return lane->thread.Sleep(duration);
      }
    }
  };
  ForEachLane([&](Lane& lane) {
    lane.actor = std::make_unique<Actor>(site_.world, [this, &lane] {
      lane.worker.Run();
      if (!lane.state.fatal.ok()) Stop();
      --running_;
      site_.world.After(absl::ZeroDuration(), on_end_);
    });
    lane.thread.SetActor(lane.actor.get());
  });
  for (const auto& stage : stages_) stage->claim.Look();
  if (is_routed) {
    feed_actor_ = std::make_unique<Actor>(site.world, [this] { RunFeed(); });
    feed_thread_.SetActor(feed_actor_.get());
  }
  if (site.schedule.snapshots != SnapshotPlace::kNowhere) {
    snapshot_actor_ = std::make_unique<Actor>(site.world, [this] { RunSnapshots(); });
    snapshot_thread_.SetActor(snapshot_actor_.get());
  }
}

Process::~Process() {
  *self_ = nullptr;
  // Its threads die before what they use.
  ForEachLane([](Lane& lane) {
    lane.actor.reset();
    lane.thread.SetActor(nullptr);
  });
  snapshot_actor_.reset();
  snapshot_thread_.SetActor(nullptr);
  feed_actor_.reset();
  feed_thread_.SetActor(nullptr);
}

template <class See>
void Process::ForEachLane(const See& see) const {
  for (const auto& stage : stages_) {
    for (const auto& lane : stage->lanes) see(*lane);
  }
}

void Process::RunSnapshots() {
  for (;;) {
    snapshot_thread_.Sleep(kLookForSnapshots);
    const Flows& flows = stages_.front()->flows;
    for (int32_t flow = 0; flow < flows.size(); ++flow) {
      while (flows.at(flow).snapshots->RunOne()) snapshot_thread_.Pass();
    }
  }
}

std::vector<int32_t> Process::Stage::Partitions(int32_t flow) const {
  std::vector<int32_t> partitions;
  for (const auto& lane : lanes) {
    for (const TopicPartition& each : lane->worker.ReportedPartitions()) {
      if (each.flow == flow) partitions.push_back(each.partition);
    }
  }
  return partitions;
}

void Process::RunFeed() {
  Stage& stage = *stages_.back();
  for (absl::Duration next_ask;;) {
    feed_thread_.Sleep(kAskSoonEvery);
    const bool is_due = site_.world.now() >= next_ask;
    if (is_due) next_ask = site_.world.now() + kAskEvery;
    for (const auto& [topic, sources] : sources_) {
      if (!sources->TakeAskSoon() && !is_due) continue;
      bool answered = true;
      for (int32_t flow = 0; flow < stage.flows.size(); ++flow) {
        if (stage.flows.at(flow).sources != sources.get()) continue;
        answered = Ask(stage, stage.flows.at(flow)) && answered;
      }
      sources->SetAnswered(answered);
    }
  }
}

bool Process::Ask(const Stage& stage, const Flow& flow) {
  const std::string& input = flow.options.input;
  if (!connection_.is_up() || site_.broker.is_away()) return false;
  const int32_t partitions = site_.broker.CountPartitions(input);
  flow.sources->SetCount(flow.number, partitions);
  // With the records of open transactions, which are still to come; and before the commits, so that a
  // partition that counts as at its end was there.
  std::map<TopicPartition, int64_t> ends;
  for (int32_t id = 0; id < partitions; ++id) {
    ends[{flow.number, id}] = site_.broker.FindLog(input, id)->end();
  }
  flow.sources->PutEnds(ends, clock_.Steady());
  feed_thread_.Pass();
  const auto committed = stage.group.Committed(input, partitions);
  if (!committed.ok()) return false;
  feed_thread_.Pass();
  const std::vector<int32_t> owned = stage.Partitions(flow.number);
  SourceStates others;
  for (int32_t id = 0; id < partitions; ++id) {
    if (std::find(owned.begin(), owned.end(), id) != owned.end()) continue;
    const CommittedOffset& each = (*committed)[static_cast<size_t>(id)];
    others.emplace_back(TopicPartition{flow.number, id},
                        CommittedState(std::max<int64_t>(each.offset, 0), each.metadata,
                                       ends[{flow.number, id}], clock_.Wall() + flow.options.max_future));
  }
  flow.sources->Put(others, clock_.Steady());
  return true;
}

void Process::SeePassedOver(const Stage& stage, const Lane& lane) const {
  for (const std::string& name : lane.worker.pace().PassedOver()) {
    const std::string input = name.substr(0, name.rfind('-'));
    site_.on_passed_over(stage.flows.Find(input)->options.output);
  }
}

DaemonOptions Process::OptionsFor(int topic) const {
  DaemonOptions options = OptionsOf(site_.schedule, instance_, topic, TopicNames(site_.schedule, topic));
  if (site_.lacks_memory) {
    options.stage.memory_limit_bytes =
        SmallestLimitBytes(options.stage, LimitsOf(options.engine()), site_.schedule.filters);
  }
  return options;
}

void Process::LookForTopics() {
  // It has one topic, which it is told by its name.
  if (!site_.schedule.is_list()) return AddTopic(options_);
  for (int topic = 0; connection_.is_up() && topic < kMostTopics; ++topic) {
    const DaemonOptions options = OptionsFor(topic);
    const std::string& judged = TopicNames(site_.schedule, topic).judged;
    if (stages_.front()->flows.Find(judged) == nullptr && AreThere(site_.broker, options)) AddTopic(options);
  }
  site_.world.After(kLookForTopics, [self = self_] {
    if (*self != nullptr) (*self)->LookForTopics();
  });
}

void Process::AddTopic(const DaemonOptions& options) {
  if (options.scope != Scope::kTopic) return AddFlow(*stages_.front(), options);
  AddFlow(*stages_.front(), JudgingOptions(options));
  for (const std::string& input : options.inputs()) {
    AddFlow(*stages_.back(), RoutingOptions(options, input));
  }
}

void Process::AddFlow(Stage& stage, const DaemonOptions& options) {
  // Routers remember no ids.
  auto flow = std::make_unique<Flow>(options, options.half.routing
                                                  ? DedupStage::Create(options.stage).value()
                                                  : DedupStage::Create(options.stage, *memory_).value());
  flow->SetTopics(TopicsOf(site_.broker, options));
  if (options.half.routing) {
    std::unique_ptr<RoutedSources>& sources = sources_[options.output];
    if (sources == nullptr) sources = std::make_unique<RoutedSources>();
    flow->sources = sources.get();
    sources->SetCount(stage.flows.size(), flow->topics.partitions);
  } else if (site_.schedule.snapshots != SnapshotPlace::kNowhere) {
    flow->snapshots = std::make_unique<Snapshots>(
        OpenShelf(site_.shelf, options, flow->topics.output_partitions, [this] { snapshot_thread_.Pass(); }),
        options.process.snapshots.every,
        SnapshotWriting{.clock = clock_,
                        .random = [this] { return static_cast<uint32_t>(site_.world.dice().Next()); }});
  }
  stage.flows.Add(std::move(flow));
}

void Process::Stop() {
  stop_.Request();
  ForEachLane([](Lane& lane) { lane.thread.Wake(); });
}

void Process::Stall(absl::Duration duration) {
  ForEachLane([&](Lane& lane) { lane.actor->Freeze(duration); });
}

void Process::Freeze(absl::Duration duration) {
  frozen_until_ = site_.world.now() + duration;
  ForEachLane([&](Lane& lane) { lane.actor->Freeze(duration); });
  if (feed_actor_ != nullptr) feed_actor_->Freeze(duration);
  if (snapshot_actor_ != nullptr) snapshot_actor_->Freeze(duration);
}

void Process::DieIn(int64_t calls, std::function<void()> on_death) {
  OneOf(calls).thread.DieIn(calls, std::move(on_death));
}

void Process::Wake() {
  ForEachLane([](Lane& lane) { lane.source.Wake(); });
}

Process::Lane& Process::OneOf(int64_t number) const {
  return *stages_[static_cast<size_t>(number) % stages_.size()]->lanes.front();
}

bool Process::is_dead() const {
  return std::any_of(stages_.begin(), stages_.end(), [](const auto& stage) {
    return !stage->lanes.empty() && stage->lanes.front()->thread.is_dead();
  });
}

absl::Status Process::fatal() const {
  absl::Status fatal;
  ForEachLane([&](const Lane& lane) { fatal.Update(lane.state.fatal); });
  return fatal;
}

void Process::Expel() {
  ForEachLane([](Lane& lane) { lane.source.group().Expel(lane.source.client()); });
}

void Process::LoseAnswers(int commits) { OneOf(commits).sink.LoseAnswers(commits); }
void Process::RefuseCommits(int commits) { OneOf(commits).sink.RefuseCommits(commits); }

std::string Process::Problems() const {
  std::string problems;
  ForEachLane([&](const Lane& lane) {
    for (const auto& [id, task] : lane.tasks) {
      if (!task->problem().empty()) absl::StrAppend(&problems, task->problem(), "; ");
    }
    if (!lane.state.waiting().empty()) absl::StrAppend(&problems, "waits: ", lane.state.waiting(), "; ");
  });
  return problems;
}

}  // namespace lethe::simulation
