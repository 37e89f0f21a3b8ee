#include "tests/simulation/process.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/engines/memory_parts.h"
#include "src/pipeline/options/stage_options.h"

namespace lethe::simulation {
namespace {

constexpr absl::Duration kLookForSnapshots = absl::Milliseconds(100);
constexpr absl::Duration kLookForTopics = absl::Seconds(3);

Topics TopicsOf(const Broker& broker, const DaemonOptions& options) {
  Topics topics;
  topics.partitions = broker.CountPartitions(options.input);
  topics.output_partitions = topics.least_partitions = broker.CountPartitions(options.output);
  topics.input_max_bytes = topics.output_max_bytes = 1'000'000;
  topics.counter_max_bytes.assign(2, 1'000'000);
  return topics;
}

bool AreThere(const Broker& broker, const DaemonOptions& options) {
  std::vector<std::string> topics = WrittenTopics(options);
  topics.push_back(options.input);
  return std::all_of(topics.begin(), topics.end(),
                     [&](const std::string& topic) { return broker.Find(topic) != nullptr; });
}

}  // namespace

TopicNames::TopicNames(int topic)
    : input(1, static_cast<char>('a' + topic)),
      output(absl::StrCat(input, "-output")),
      deltas(absl::StrCat(input, "-deltas")),
      totals(absl::StrCat(input, "-totals")) {}

DaemonOptions OptionsOf(const Schedule& schedule, int instance, int topic) {
  const TopicNames names(topic);
  DaemonOptions options;
  options.input = names.input;
  options.output = names.output;
  options.group = "lethe";
  options.instance = absl::StrCat("i", instance);
  options.lanes = schedule.lanes;
  options.assignment = schedule.is_cooperative ? Assignment::kCooperative : Assignment::kEager;
  options.static_membership =
      schedule.has_static_members ? StaticMembership::kAfterCrash : StaticMembership::kNever;
  options.commit_interval = schedule.commit_interval;
  options.properties = {
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
  options.snapshots.every = schedule.snapshots_every;
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

struct Process::Lane {
  Lane(Process& process, int lane)
      : thread(process.site_.world),
        state(lane, process.stop_, process.clock_),
        source(process.options_, process.flows_, lane, process.site_.broker, process.site_.group,
               process.connection_, thread),
        sink(process.options_, process.flows_, lane,
             {process.site_.schedule.transaction_timeout,
              process.site_.schedule.oversized_of_hundred > 0 ? kOutputTakesBytes : SIZE_MAX,
              process.site_.schedule.names_refused},
             process.site_.broker, source, state, thread),
        answers(process.site_.broker, process.site_.group, process.connection_, thread),
        worker({*process.shared_, state, tasks, source, sink, answers}) {
    sink.may_recreate = [this] { return worker.membership().MayRecreateProducer(); };
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
      claim_(
          options_,
          [this]() -> absl::StatusOr<std::vector<NamedMember>> {
            if (!connection_.is_up() || site_.broker.is_away()) return absl::UnavailableError("no answer");
            return site_.group.Members();
          },
          clock_),
      memory_(DedupStage::Create(options_.stage).value()),
      snapshot_thread_(site.world),
      self_(std::make_shared<Process*>(this)) {
  connection_.is_up = [this] { return !site_.is_cut() && site_.world.now() >= frozen_until_ && !is_dead(); };
  LookForTopics();
  shared_ = std::make_unique<Shared>(Shared{options_, flows_, kept_, claim_, ends_});
  for (int lane = 0; lane < options_.lanes; ++lane) lanes_.push_back(std::make_unique<Lane>(*this, lane));
  running_ = options_.lanes;
  // Each wait is that of the thread that runs.
  clock_.wait = [this](absl::Duration duration) {
    for (const auto& lane : lanes_) {
      if (lane->thread.is_running()) return lane->thread.Sleep(duration);
    }
  };
  for (const auto& lane : lanes_) {
    lane->actor = std::make_unique<Actor>(site.world, [this, at = lane.get()] {
      at->worker.Run();
      --running_;
      site_.world.After(absl::ZeroDuration(), on_end_);
    });
    lane->thread.SetActor(lane->actor.get());
  }
  claim_.Look();
  if (site.schedule.snapshots != SnapshotPlace::kNowhere) {
    snapshot_actor_ = std::make_unique<Actor>(site.world, [this] { RunSnapshots(); });
    snapshot_thread_.SetActor(snapshot_actor_.get());
  }
}

Process::~Process() {
  *self_ = nullptr;
  // Its threads die before what they use.
  for (const auto& lane : lanes_) {
    lane->actor.reset();
    lane->thread.SetActor(nullptr);
  }
  snapshot_actor_.reset();
  snapshot_thread_.SetActor(nullptr);
}

void Process::RunSnapshots() {
  for (;;) {
    snapshot_thread_.Sleep(kLookForSnapshots);
    for (int32_t flow = 0; flow < flows_.size(); ++flow) {
      while (flows_.at(flow).snapshots->RunOne()) snapshot_thread_.Pass();
    }
  }
}

DaemonOptions Process::OptionsFor(int topic) const {
  DaemonOptions options = OptionsOf(site_.schedule, instance_, topic);
  if (site_.lacks_memory) {
    options.stage.memory_limit_bytes =
        SmallestLimitBytes(options.stage, LimitsOf(options.engine()), site_.schedule.filters);
  }
  return options;
}

void Process::LookForTopics() {
  // It has one topic, which it is told by its name.
  if (!site_.schedule.is_list()) return AddFlow(options_);
  for (int topic = 0; connection_.is_up() && topic < kMostTopics; ++topic) {
    const DaemonOptions options = OptionsFor(topic);
    if (flows_.Find(options.input) == nullptr && AreThere(site_.broker, options)) AddFlow(options);
  }
  site_.world.After(kLookForTopics, [self = self_] {
    if (*self != nullptr) (*self)->LookForTopics();
  });
}

void Process::AddFlow(const DaemonOptions& options) {
  auto flow = std::make_unique<Flow>(options, DedupStage::Create(options.stage, *memory_).value());
  flow->SetTopics(TopicsOf(site_.broker, options));
  if (site_.schedule.snapshots != SnapshotPlace::kNowhere) {
    flow->snapshots = std::make_unique<Snapshots>(
        OpenShelf(site_.shelf, options, flow->topics.output_partitions, [this] { snapshot_thread_.Pass(); }),
        options.snapshots.every, SnapshotWriting{.clock = clock_, .random = [this] {
                                                   return static_cast<uint32_t>(site_.world.dice().Next());
                                                 }});
  }
  flows_.Add(std::move(flow));
}

void Process::Stop() {
  stop_.Request();
  for (const auto& lane : lanes_) lane->thread.Wake();
}

void Process::Stall(absl::Duration duration) {
  for (const auto& lane : lanes_) lane->actor->Freeze(duration);
}

void Process::Freeze(absl::Duration duration) {
  frozen_until_ = site_.world.now() + duration;
  for (const auto& lane : lanes_) lane->actor->Freeze(duration);
  if (snapshot_actor_ != nullptr) snapshot_actor_->Freeze(duration);
}

void Process::DieIn(int64_t calls, std::function<void()> on_death) {
  lanes_.front()->thread.DieIn(calls, std::move(on_death));
}

void Process::Wake() {
  for (const auto& lane : lanes_) lane->source.Wake();
}

bool Process::is_dead() const { return !lanes_.empty() && lanes_.front()->thread.is_dead(); }

absl::Status Process::fatal() const {
  for (const auto& lane : lanes_) {
    if (!lane->state.fatal.ok()) return lane->state.fatal;
  }
  return absl::OkStatus();
}

void Process::Expel() {
  for (const auto& lane : lanes_) site_.group.Expel(lane->source.client());
}

void Process::LoseAnswers(int commits) { lanes_.front()->sink.LoseAnswers(commits); }
void Process::RefuseCommits(int commits) { lanes_.front()->sink.RefuseCommits(commits); }

std::string Process::Problems() const {
  std::string problems;
  for (const auto& lane : lanes_) {
    for (const auto& [id, task] : lane->tasks) {
      if (!task->problem.empty()) absl::StrAppend(&problems, task->problem, "; ");
    }
    if (!lane->state.waiting().empty()) absl::StrAppend(&problems, "waits: ", lane->state.waiting(), "; ");
  }
  return problems;
}

}  // namespace lethe::simulation
