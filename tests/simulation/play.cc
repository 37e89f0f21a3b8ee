#include "tests/simulation/play.h"

#include <malloc.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/simulation/input.h"
#include "tests/simulation/process.h"

namespace lethe::simulation {
namespace {

constexpr size_t kMostInstances = 4;
// After the last fault all must come to an end within this.
constexpr absl::Duration kPatience = absl::Minutes(10);
constexpr int kStepsBetweenLooks = 32;

// What the processes log belongs to the story.
class LogOfProcesses final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit LogOfProcesses(World& world) : world_(world) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    world_.Say("  ", absl::string_view(message.payload.data(), message.payload.size()));
  }
  void flush_() override {}

  World& world_;
};

class Game {
 public:
  Game(const Schedule& schedule, bool keeps_log)
      : schedule_(schedule),
        world_(schedule.seed, keeps_log),
        broker_(world_),
        group_(world_,
               {.topic = kInput,
                .is_cooperative = schedule.is_cooperative,
                .session_timeout = schedule.session_timeout,
                .heartbeat = schedule.session_timeout / 5,
                .rebalance_timeout = 3 * schedule.session_timeout},
               [this] { return static_cast<int32_t>(broker_.topic(kInput).logs.size()); }) {
    for (const char* topic : {kInput, kOutput, kDeltas, kTotals}) {
      broker_.CreateTopic(topic, schedule.partitions);
    }
    for (auto& log : broker_.topic(kInput).logs) log->on_change = [this] { WakeAll(); };
    input_ = std::make_unique<Input>(world_, broker_, schedule_);
  }

  Played Run();
  World& world() { return world_; }

 private:
  struct Instance {
    std::unique_ptr<Process> process;
    Shelf own;
    bool is_wanted = false;
    absl::Duration cut_until;
  };

  void Start(size_t i);
  void Ended(size_t i, const Process* process);
  // A crash; it comes back after `delay` if it is wanted then.
  void Kill(size_t i, absl::Duration delay);
  void Begin(const Fault& fault);
  void BeginOfProcess(const Fault& fault, size_t i);
  void Delete();
  void Heal();
  void WakeAll();
  size_t Running() const;
  bool IsDone() const;
  void RunFor(absl::Duration duration);
  void End();
  void Judge();
  void Truncate();
  void Problem(std::string text) {
    world_.Say("PROBLEM: ", text);
    played_.problems.push_back(std::move(text));
  }

  const Schedule& schedule_;
  World world_;
  Broker broker_;
  Group group_;
  Shelf shared_;
  std::unique_ptr<Input> input_;
  std::array<Instance, kMostInstances> instances_;
  Played played_;
};

void Game::WakeAll() {
  for (Instance& each : instances_) {
    if (each.process != nullptr) each.process->Wake();
  }
}

void Game::Start(size_t i) {
  Instance& instance = instances_[i];
  if (!instance.is_wanted || instance.process != nullptr) return;
  world_.Say("instance ", i, " starts");
  Shelf& shelf = schedule_.snapshots == SnapshotPlace::kOfAll ? shared_ : instance.own;
  instance.process = std::make_unique<Process>(
      Process::Site{world_, broker_, group_, shelf, schedule_,
                    [this, &instance] { return world_.now() < instance.cut_until; }},
      static_cast<int>(i), [this, i] { Ended(i, instances_[i].process.get()); });
}

void Game::Ended(size_t i, const Process* process) {
  Instance& instance = instances_[i];
  if (process == nullptr || !process->has_ended()) return;
  const absl::Status fatal = process->fatal();
  world_.Say("instance ", i, " has ended", fatal.ok() ? "" : ": ", std::string(fatal.message()));
  instance.process.reset();
  // As its supervisor does.
  world_.After(absl::Seconds(2), [this, i] { Start(i); });
}

void Game::Kill(size_t i, absl::Duration delay) {
  world_.Say("instance ", i, " is killed");
  instances_[i].process.reset();
  world_.After(delay, [this, i] { Start(i); });
}

size_t Game::Running() const {
  return static_cast<size_t>(std::count_if(instances_.begin(), instances_.end(),
                                           [](const Instance& each) { return each.process != nullptr; }));
}

void Game::Begin(const Fault& fault) {
  using enum FaultKind;
  world_.Say("FAULT: ", FaultText(fault));
  switch (fault.kind) {
    case kAway:
      return broker_.GoAway(fault.lasts);
    case kSlowMarkers:
      broker_.SetMarkersSlow(true);
      return world_.After(fault.lasts, [this] { broker_.SetMarkersSlow(false); });
    case kAddPartition:
      // The outputs first, so that nothing has to wait.
      for (const char* topic : {kOutput, kDeltas, kTotals, kInput}) broker_.AddPartition(topic);
      return world_.After(absl::Milliseconds(200), [this] { group_.LookAtPartitions(); });
    case kRetention:
      return Delete();
    case kAbortedInput:
      return input_->SendInTransaction(absl::ZeroDuration(), /*commits=*/false);
    case kOpenInput:
      return input_->SendInTransaction(fault.lasts, fault.number > 1);
    case kUnreadable:
      return input_->SendUnreadable(fault.number);
    case kBadClock:
      return input_->SetBadClock(fault.number, world_.now() + fault.lasts);
    case kJoin:
      for (size_t i = 0; i < kMostInstances; ++i) {
        if (instances_[i].is_wanted) continue;
        instances_[i].is_wanted = true;
        return Start(i);
      }
      return;
    default:
      break;
  }
  // The first that runs, from the target on.
  for (size_t k = 0; k < kMostInstances; ++k) {
    const size_t i = (static_cast<size_t>(fault.target) + k) % kMostInstances;
    if (instances_[i].process != nullptr) return BeginOfProcess(fault, i);
  }
}

void Game::BeginOfProcess(const Fault& fault, size_t i) {
  using enum FaultKind;
  Instance& instance = instances_[i];
  Process& process = *instance.process;
  switch (fault.kind) {
    case kKill:
      return Kill(i, fault.lasts);
    case kKillAtCall:
      return process.DieIn(fault.number, [this, i, lasts = fault.lasts] { Kill(i, lasts); });
    case kEnd:
      return process.Stop();
    case kLeave:
      if (Running() == 1) return;
      instance.is_wanted = false;
      return process.Stop();
    case kFreeze:
      return process.Freeze(fault.lasts);
    case kStall:
      process.Stall(fault.lasts);
      return process.Expel();
    case kExpel:
      return process.Expel();
    case kCut:
      instance.cut_until = world_.now() + fault.lasts;
      return;
    case kLoseAnswers:
      return process.LoseAnswers(static_cast<int>(fault.number));
    case kRefuseCommits:
      return process.RefuseCommits(static_cast<int>(fault.number));
    case kDamageSnapshots:
      shared_.Damage(static_cast<uint64_t>(fault.number));
      instance.own.Damage(static_cast<uint64_t>(fault.number));
      return;
    case kLoseSnapshots:
      shared_.files.clear();
      instance.own.files.clear();
      return;
    default:
      return;
  }
}

// Below the restart point of each commit.
void Game::Delete() {
  int32_t id = 0;
  for (auto& log : broker_.topic(kInput).logs) {
    const auto metadata = CommitMetadata::Parse(group_.CommittedNow(kInput, id++).metadata);
    if (metadata.ok()) log->DeleteBefore(metadata->restart);
  }
}

void Game::Heal() {
  broker_.SetMarkersSlow(false);
  for (size_t i = 0; i < kMostInstances; ++i) instances_[i].cut_until = absl::ZeroDuration();
  if (std::none_of(instances_.begin(), instances_.end(),
                   [](const Instance& each) { return each.is_wanted; })) {
    instances_[0].is_wanted = true;
  }
  for (size_t i = 0; i < kMostInstances; ++i) Start(i);
}

bool Game::IsDone() const {
  if (!input_->is_done() || input_->open_transactions() > 0) return false;
  for (int32_t id = 0; const auto& log : broker_.topic(kInput).logs) {
    if (group_.CommittedNow(kInput, id++).offset < log->stable_end()) return false;
  }
  return true;
}

Played Game::Run() {
  for (int i = 0; i < schedule_.instances; ++i) {
    instances_[static_cast<size_t>(i)].is_wanted = true;
    Start(static_cast<size_t>(i));
  }
  absl::Duration faults_end = schedule_.lasts;
  for (const Fault& fault : schedule_.faults) {
    world_.After(fault.at, [this, &fault] { Begin(fault); });
    faults_end = std::max(faults_end, fault.at + fault.lasts);
  }
  world_.After(faults_end, [this] { Heal(); });
  RunFor(faults_end);
  while (!IsDone() && world_.now() < faults_end + kPatience) {
    for (int i = 0; i < kStepsBetweenLooks; ++i) world_.Step();
  }
  for (size_t i = 0; !IsDone() && i < kMostInstances; ++i) {
    const Process* const process = instances_[i].process.get();
    Problem(absl::StrCat(
        "not all is committed in the end; instance ", i,
        process == nullptr ? " does not run" : " says: ", process == nullptr ? "" : process->Problems()));
  }
  End();
  Judge();
  if (schedule_.truncates && played_.problems.empty()) Truncate();
  played_.took = world_.now();
  played_.happened = world_.said();
  played_.log = world_.log();
  return std::move(played_);
}

void Game::RunFor(absl::Duration duration) {
  const absl::Duration end = world_.now() + duration;
  while (world_.now() <= end) world_.Step();
}

void Game::End() {
  for (Instance& each : instances_) {
    each.is_wanted = false;
    if (each.process != nullptr) each.process->Stop();
  }
  const absl::Duration begin = world_.now();
  while (Running() > 0 && world_.now() < begin + absl::Minutes(1)) world_.Step();
  if (Running() > 0) Problem("a process that is asked to end does not");
  // What is on its way comes in.
  RunFor(schedule_.transaction_timeout + absl::Seconds(5));
}

// While no process runs, a log loses the end of what was judged, and grows again: nothing of it may be
// judged.
void Game::Truncate() {
  for (int32_t id = 0; const auto& log : broker_.topic(kInput).logs) {
    const CommittedOffset committed = group_.CommittedNow(kInput, id);
    const auto metadata = CommitMetadata::Parse(committed.metadata);
    const Log& output = *broker_.topic(kOutput).logs[static_cast<size_t>(id)];
    if (!metadata.ok() || metadata->record_before < std::max(log->start(), metadata->restart)) {
      ++id;
      continue;
    }
    const int64_t written = output.end();
    log->Truncate(metadata->record_before);
    while (log->end() < committed.offset + 3) input_->SendTo(id);
    world_.Say("input-", id, " was truncated to ", metadata->record_before, ", and has grown again");
    instances_[0].is_wanted = true;
    Start(0);
    RunFor(3 * schedule_.session_timeout + absl::Seconds(5));
    if (group_.CommittedNow(kInput, id).offset != committed.offset || output.end() != written) {
      Problem(absl::StrCat("input-", id, " is another log from offset ", metadata->record_before,
                           " on, and was judged"));
    }
    return End();
  }
}

void Game::Judge() {
  test::Evidence evidence;
  evidence.horizon = schedule_.horizon;
  evidence.latest_time = kBegin + absl::Hours(1) + world_.now();
  if (schedule_.oversized_of_hundred > 0) evidence.output_takes_bytes = kOutputTakesBytes;
  evidence.input = broker_.Committed(kInput, /*from_the_beginning=*/true);
  evidence.output = broker_.Committed(kOutput, true);
  const auto ends = [this](const char* topic) {
    test::TopicEnds result;
    for (const auto& log : broker_.topic(topic).logs) {
      result.stable.push_back(log->stable_end());
      result.end.push_back(log->end());
    }
    return result;
  };
  evidence.output_ends = ends(kOutput);
  evidence.deltas_are_counted = schedule_.counting == Counting::kDeltas;
  evidence.totals_are_counted = schedule_.counting == Counting::kTotals;
  evidence.deltas = broker_.Committed(kDeltas, true);
  evidence.delta_ends = ends(kDeltas);
  evidence.totals = broker_.Committed(kTotals, true);
  evidence.total_ends = ends(kTotals);
  for (size_t p = 0; p < broker_.topic(kInput).logs.size(); ++p) {
    evidence.committed.push_back(group_.CommittedNow(kInput, static_cast<int32_t>(p)).offset);
    evidence.input_ends.push_back(broker_.topic(kInput).logs[p]->end());
  }
  played_.judgement = test::Judge(evidence);
  for (const std::string& problem : played_.judgement.problems) Problem(problem);
}

}  // namespace

Played Play(const Schedule& schedule, bool keeps_log) {
  // What one schedule gives back serves the next: the system's pages would take as long as the schedule.
  static const bool keeps_memory =
      mallopt(M_MMAP_THRESHOLD, 64 << 20) != 0 && mallopt(M_TRIM_THRESHOLD, 1 << 30) != 0;
  static_cast<void>(keeps_memory);
  Game game(schedule, keeps_log);
  if (!keeps_log) return game.Run();
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("processes", std::make_shared<LogOfProcesses>(game.world())));
  Played played = game.Run();
  spdlog::set_default_logger(before);
  return played;
}

}  // namespace lethe::simulation
