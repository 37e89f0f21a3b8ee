#include "tests/simulation/play.h"

#include <malloc.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/simulation/figures.h"
#include "tests/simulation/process.h"
#include "tests/simulation/snapshot_log.h"
#include "tests/simulation/topic_in_play.h"

namespace lethe::simulation {
namespace {

constexpr size_t kMostInstances = 4;
// After the last fault all must come to an end within this.
constexpr absl::Duration kPatience = absl::Minutes(10);
constexpr absl::Duration kPatienceOfOperator = absl::Minutes(1);
constexpr int kRoundsOfGroup = 4;  // a rebalance may take three session timeouts
// Topics that are in no trouble, while another is.
constexpr absl::Duration kPatienceBesideTrouble = absl::Minutes(3);
constexpr int kStepsBetweenLooks = 32;
// By so much more, or less, than what is believed records are dated ahead: more than clocks differ.
constexpr absl::Duration kNearly = absl::Minutes(35);
// Two processes of one name, one of which rests, fence each other seldom.
constexpr int64_t kFewFences = 4;
// Within this all that is reported is renewed.
constexpr absl::Duration kReportsSettle = absl::Seconds(3);

// A record in the topic of a stranger.
constexpr char kOfStranger[] = R"({"id":"stranger"})";

// What the processes log belongs to the story.
class LogOfProcesses final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit LogOfProcesses(World& world) : world_(world) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const Actor* const who = world_.running();
    world_.Say("  ", who == nullptr ? "" : absl::StrCat(who->name(), ": "),
               absl::string_view(message.payload.data(), message.payload.size()));
  }
  void flush_() override {}

  World& world_;
};

class Game {
 public:
  Game(const Schedule& schedule, bool keeps_log)
      : schedule_(schedule),
        world_(schedule.seed, keeps_log),
        broker_(world_, schedule.seed),
        group_(world_,
               {.network = &broker_.network(),
                .keeps_former = schedule.epilogue == Epilogue::kSetBack,
                .is_cooperative = schedule.is_cooperative,
                .session_timeout = schedule.session_timeout,
                .heartbeat = schedule.session_timeout / 5,
                .rebalance_timeout = 3 * schedule.session_timeout},
               [this](const std::string& topic) { return broker_.CountPartitions(topic); }) {
    broker_.SetOld(schedule.are_brokers_old);
    if (schedule.routed_topics > 0) {
      GroupOptions options = group_.options();
      options.name = "routers";
      routing_group_.emplace(world_, std::move(options),
                             [this](const std::string& topic) { return broker_.CountPartitions(topic); });
    }
    for (int i = 0; i < schedule.topics; ++i) AddTopic();
  }

  Played Run();
  World& world() { return world_; }

 private:
  struct Instance {
    std::unique_ptr<Process> process;
    std::unique_ptr<Process> twin;  // a second one of its name
    bool is_wanted = false;
    bool is_killed = false;
    absl::Duration cut_until;
    absl::Duration still_until;
  };

  void Start(size_t i);
  std::unique_ptr<Process> MakeProcess(size_t i, std::function<void()> on_end);
  void Ended(size_t i, const Process* process);
  // A crash; it comes back after `delay` if it is wanted then.
  void Kill(size_t i, absl::Duration delay);
  void Begin(Fault fault);
  void BeginOfProcess(const Fault& fault, size_t i);
  void BeginOfTopic(const Fault& fault, TopicInPlay& topic);
  void AddTopic();
  void AddStranger();
  // Those that have come before the group had read what they would displace: then nobody can know which of
  // two is wanted, and neither is read. `all`: the others, too.
  void RemoveStrangers(bool all);
  // Of the processes that are to run in the end, if they share all partitions.
  bool HasEnoughMemory() const;
  void Heal();
  void WakeAll();
  size_t Running() const;
  // Topics in trouble are not waited for.
  bool IsDone() const;
  // By the group, of all topics, as a measure of progress.
  int64_t Committed() const;
  void AwaitDone(absl::Duration patience);
  void ResetStopped();
  // Whether a process says why a partition of the topic has stopped.
  bool IsSaid(const std::string& topic) const;
  void RunFor(absl::Duration duration);
  // What processes say when nothing happens any more.
  void LookAtReports();
  void CompareFigures();
  void End();
  void Judge();
  // In which all that is on its way comes in.
  absl::Duration TimeToSettle() const { return schedule_.transaction_timeout + absl::Seconds(5); }
  void PlayEpilogue();
  // The processes that run stand still for so long that the group removes them, and go on then; where none
  // runs, one is started after it.
  void StandStill(const std::function<void()>& meanwhile);
  // A log loses the end of what was judged, and grows again: nothing of it may be judged, and the other
  // topics go on.
  void CutLog();
  // Topics whose output has records are not read before the operator accepts that; the others go on.
  void LoseOffsets();
  // All that is behind the new offsets is judged as if the group had just come there.
  void SetOffsets();
  // The topic stops, and says so; the others go on.
  void CommitForeign();
  // From now on it is not waited for, nor judged.
  std::unique_ptr<TopicInPlay> SetApart(const TopicInPlay* topic);
  // The group comes to the end of what is left.
  void DeleteUnread();
  // The newcomer of the two ends, or it rests; what is judged is right anyway.
  void RunTwin();
  void MoveClocks(int64_t number);
  void Problem(std::string text) {
    world_.Say("PROBLEM: ", text);
    played_.problems.push_back(std::move(text));
  }

  const Schedule& schedule_;
  World world_;
  Broker broker_;
  Group group_;
  std::optional<Group> routing_group_;
  std::vector<std::unique_ptr<TopicInPlay>> topics_;
  std::map<std::string, bool> strangers_;  // by topic: whether the other one had been read before
  Dice strangers_dice_{schedule_.seed ^ 0x57a6e7};
  std::array<Instance, kMostInstances> instances_;
  Figures figures_;
  // Another program commits, too: whether an answer that was lost meant yes, nobody can tell then.
  bool others_commit_ = false;
  int started_ = 0;                                 // processes
  std::string last_error_;                          // with which a process has ended
  bool lacks_memory_ = schedule_.filters > 0;       // processes that are started now
  bool accepts_output_ = schedule_.accepts_output;  // likewise
  Played played_;
};

void Game::AddTopic() {
  topics_.push_back(std::make_unique<TopicInPlay>(
      TopicInPlay::Site{world_, broker_, group_, routing_group_ ? &*routing_group_ : nullptr, schedule_,
                        [this] { WakeAll(); }},
      static_cast<int>(topics_.size())));
}

void Game::AddStranger() {
  const auto of = strangers_dice_.Below(static_cast<int64_t>(topics_.size()));
  const std::string& wanted = topics_[static_cast<size_t>(of)]->names().input;
  const std::string topic = StrangerOf(wanted, strangers_dice_.OneIn(2), strangers_dice_.OneIn(2));
  if (strangers_.contains(topic)) return;
  bool was_read = false;
  for (int32_t p = 0; p < broker_.CountPartitions(wanted); ++p) {
    was_read = was_read || group_.CommittedNow(wanted, p).offset >= 0;
  }
  world_.Say("a stranger creates ", topic, was_read ? "" : ", before its like was read");
  strangers_[topic] = was_read;
  for (int32_t p = 0; const auto& log : broker_.CreateTopic(topic, schedule_.partitions).logs) {
    log->on_change = [this] { WakeAll(); };
    Record record;
    record.value = kOfStranger;
    record.timestamp_ms = absl::ToUnixMillis(kBegin);
    record.partition = p++;
    record.offset = 0;
    log->Append({.record = std::move(record)});
  }
}

void Game::RemoveStrangers(bool all) {
  std::erase_if(strangers_, [&](const auto& each) {
    if (each.second && !all) return false;
    world_.Say("an operator deletes ", each.first);
    broker_.Delete(each.first);
    return true;
  });
}

void Game::WakeAll() {
  for (Instance& each : instances_) {
    if (each.process != nullptr) each.process->Wake();
  }
}

void Game::Start(size_t i) {
  Instance& instance = instances_[i];
  if (!instance.is_wanted || instance.process != nullptr) return;
  world_.Say("instance ", i, " starts");
  ++started_;
  instance.is_killed = false;
  instance.process = MakeProcess(i, [this, i] { Ended(i, instances_[i].process.get()); });
}

std::unique_ptr<Process> Game::MakeProcess(size_t i, std::function<void()> on_end) {
  Instance& instance = instances_[i];
  return std::make_unique<Process>(
      Process::Site{world_, broker_, group_, routing_group_ ? &*routing_group_ : nullptr, schedule_,
                    [this, &instance] { return world_.now() < instance.cut_until; }, lacks_memory_,
                    accepts_output_},
      static_cast<int>(i), std::move(on_end));
}

void Game::Ended(size_t i, const Process* process) {
  Instance& instance = instances_[i];
  if (process == nullptr || !process->has_ended()) return;
  const absl::Status fatal = process->fatal();
  world_.Say("instance ", i, " has ended", fatal.ok() ? "" : ": ", std::string(fatal.message()));
  last_error_ = std::string(fatal.message());
  const DaemonReport report = process->Report();
  if (!others_commit_) figures_.Look(report);
  figures_.Add(report);
  instance.process.reset();
  // As its supervisor does.
  world_.After(absl::Seconds(2), [this, i] { Start(i); });
}

void Game::Kill(size_t i, absl::Duration delay) {
  world_.Say("instance ", i, " is killed");
  if (instances_[i].process != nullptr) figures_.Add(instances_[i].process->Report());
  instances_[i].process.reset();
  instances_[i].is_killed = true;
  world_.After(delay, [this, i] { Start(i); });
}

size_t Game::Running() const {
  size_t running = 0;
  for (const Instance& each : instances_) {
    running += static_cast<size_t>(each.process != nullptr) + static_cast<size_t>(each.twin != nullptr);
  }
  return running;
}

// Times that are believed, or are not, stay so.
void Game::MoveClocks(int64_t number) {
  const bool is_fast = std::any_of(topics_.begin(), topics_.end(),
                                   [](const auto& topic) { return topic->input().had_bad_clock(); });
  constexpr absl::Duration kJumps[] = {absl::Minutes(10), absl::Hours(3), absl::Hours(30), absl::Minutes(1)};
  const absl::Duration jump = is_fast ? absl::Minutes(1) : kJumps[number % 4];
  world_.MoveClocks(number % 2 == 0 ? jump : -jump);
}

void Game::Begin(Fault fault) {
  using enum FaultKind;
  // The story names those whom it meets.
  fault.topic %= static_cast<int>(topics_.size());
  const bool is_of_process = IsOfProcess(fault.kind);
  // The first that runs, from the target on.
  for (size_t k = 0; is_of_process && k < kMostInstances; ++k) {
    const size_t i = (static_cast<size_t>(fault.target) + k) % kMostInstances;
    if (instances_[i].process == nullptr) continue;
    fault.target = static_cast<int>(i);
    world_.Say("FAULT: ", FaultText(fault));
    return BeginOfProcess(fault, i);
  }
  world_.Say("FAULT", is_of_process ? " that meets nobody: " : ": ", FaultText(fault));
  switch (fault.kind) {
    case kAway:
      return broker_.GoAway(fault.lasts);
    case kSlowMarkers:
      broker_.SetMarkersSlow(true);
      return world_.After(fault.lasts, [this] { broker_.SetMarkersSlow(false); });
    case kBrokerClock:
      return broker_.TimeOutTransactions();
    case kWallClock:
      return MoveClocks(fault.number);
    case kAddTopic:
      if (topics_.size() < kMostTopics) AddTopic();
      return;
    case kAddPartition:
    case kRetention:
    case kDeleteMore:
    case kCutLog:
    case kFastClock:
    case kMissingOutput:
    case kRefusedOutput:
    case kRecreate:
    case kForeignCommit:
    case kAbortedInput:
    case kOpenInput:
    case kUnreadable:
    case kBadClock:
      return BeginOfTopic(fault, *topics_[static_cast<size_t>(fault.topic)]);
    case kJoin:
      for (size_t i = 0; i < kMostInstances; ++i) {
        if (instances_[i].is_wanted) continue;
        instances_[i].is_wanted = true;
        return Start(i);
      }
      return;
    default:
      return;
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
      instance.still_until = world_.now() + fault.lasts;
      return process.Freeze(fault.lasts);
    case kStall:
      instance.still_until = world_.now() + fault.lasts;
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
    case kLateRequests:
      return broker_.network().Trouble(absl::StrCat("i", i), fault.lasts);
    case kDamageSnapshots:
      return DamageSnapshots(broker_, SnapshotTopicOf(schedule_, static_cast<int>(i)),
                             static_cast<uint64_t>(fault.number));
    case kLoseSnapshots:
      return LoseSnapshots(broker_, SnapshotTopicOf(schedule_, static_cast<int>(i)));
    default:
      return;
  }
}

void Game::BeginOfTopic(const Fault& fault, TopicInPlay& topic) {
  using enum FaultKind;
  switch (fault.kind) {
    case kAddPartition:
      return topic.AddPartition();
    case kRetention:
      return topic.Delete();
    case kMissingOutput:
    case kRefusedOutput:
      return topic.TroubleOutput(fault.kind, fault.target, fault.lasts, LastsLong(fault));
    case kRecreate:
      return topic.Recreate(fault.lasts, fault.number > 1);
    case kForeignCommit:
      others_commit_ = true;
      return topic.CommitForeign(4 * fault.number + fault.target);
    case kDeleteMore:
      return topic.DeleteMore(fault.number);
    case kCutLog:
      return topic.CutLog(fault.number, absl::Seconds(2) + fault.lasts);
    case kFastClock:
      if (absl::AbsDuration(world_.clocks_ahead()) > absl::Minutes(1)) return;
      return topic.input().SetFastClock(absl::Hours(1) + (fault.number % 2 == 0 ? -kNearly : kNearly),
                                        world_.now() + fault.lasts);
    case kAbortedInput:
      return topic.input().SendInTransaction(absl::ZeroDuration(), /*commits=*/false);
    case kOpenInput:
      return topic.input().SendInTransaction(fault.lasts, fault.number > 1);
    case kUnreadable:
      // In the place of what was cut there would be nothing to compare.
      if (!topic.was_cut()) topic.input().SendUnreadable(fault.number);
      return;
    default:
      return topic.input().SetBadClock(fault.number, world_.now() + fault.lasts);
  }
}

bool Game::HasEnoughMemory() const {
  int partitions = 0;
  for (const auto& topic : topics_) {
    partitions += std::max(broker_.CountPartitions(topic->names().judged), schedule_.partitions);
  }
  const auto wanted = static_cast<int>(std::count_if(instances_.begin(), instances_.end(),
                                                     [](const Instance& each) { return each.is_wanted; }));
  const int lanes = std::max(wanted, 1) * schedule_.lanes;
  return schedule_.lanes * ((partitions + lanes - 1) / lanes) <= schedule_.filters;
}

void Game::Heal() {
  RemoveStrangers(/*all=*/false);
  // In every second schedule those that run must do with what they have, if that is enough.
  const bool is_in_trouble =
      std::any_of(topics_.begin(), topics_.end(), [](const auto& topic) { return topic->is_in_trouble(); });
  lacks_memory_ = lacks_memory_ && schedule_.seed % 2 == 0 && !is_in_trouble && HasEnoughMemory();
  if (schedule_.filters > 0 && !lacks_memory_) {
    for (Instance& each : instances_) {
      if (each.process != nullptr) each.process->Stop();
    }
  }
  broker_.SetMarkersSlow(false);
  for (size_t i = 0; i < kMostInstances; ++i) instances_[i].cut_until = absl::ZeroDuration();
  if (std::none_of(instances_.begin(), instances_.end(),
                   [](const Instance& each) { return each.is_wanted; })) {
    instances_[0].is_wanted = true;
  }
  for (size_t i = 0; i < kMostInstances; ++i) Start(i);
}

int64_t Game::Committed() const {
  int64_t sum = 0;
  for (const auto& topic : topics_) sum += topic->Committed();
  return sum;
}

bool Game::IsDone() const {
  return std::all_of(topics_.begin(), topics_.end(),
                     [](const auto& topic) { return topic->is_in_trouble() || topic->IsDone(); });
}

void Game::AwaitDone(absl::Duration patience) {
  const absl::Duration give_up = world_.now() + patience;
  while (!IsDone() && world_.now() < give_up) {
    for (int i = 0; i < kStepsBetweenLooks; ++i) world_.Step();
  }
  if (IsDone()) return;
  std::string why = "not all is committed: the END IS NOT REACHED:";
  for (const auto& topic : topics_) {
    if (topic->is_in_trouble()) absl::StrAppend(&why, " topic ", topic->names().input, " is in trouble;");
    if (!topic->IsDone()) absl::StrAppend(&why, " topic ", topic->names().input, " is not done;");
  }
  for (size_t i = 0; i < kMostInstances; ++i) {
    if (const Process* const process = instances_[i].process.get()) {
      absl::StrAppend(&why, " instance ", i, " says: ", process->Problems());
    }
  }
  Problem(std::move(why));
}

Played Game::Run() {
  for (int i = 0; i < schedule_.instances; ++i) {
    instances_[static_cast<size_t>(i)].is_wanted = true;
    Start(static_cast<size_t>(i));
  }
  for (int i = 0; i < schedule_.strangers; ++i) {
    world_.After(strangers_dice_.Between(absl::ZeroDuration(), schedule_.lasts), [this] { AddStranger(); });
  }
  absl::Duration faults_end = schedule_.lasts;
  for (const Fault& fault : schedule_.faults) {
    world_.After(fault.at, [this, &fault] { Begin(fault); });
    faults_end = std::max(faults_end, fault.at + fault.lasts);
  }
  world_.After(faults_end, [this] { Heal(); });
  RunFor(faults_end);
  const bool is_beside =
      std::any_of(topics_.begin(), topics_.end(), [](const auto& topic) { return topic->is_in_trouble(); });
  // Each record that is refused without a name takes some transactions of its own.
  const int oversized = schedule_.topics * schedule_.records * schedule_.oversized_of_hundred / 100;
  AwaitDone(is_beside ? kPatienceBesideTrouble + oversized * schedule_.commit_interval : kPatience);
  for (const auto& topic : topics_) topic->Repair();
  AwaitDone(kPatience);
  ResetStopped();
  LookAtReports();
  const bool lives_on =
      schedule_.epilogue == Epilogue::kCutLogUnderLife || schedule_.epilogue > Epilogue::kReset;
  if (lives_on) {
    RunFor(TimeToSettle());
  } else {
    End();
  }
  Judge();
  CompareFigures();
  // What comes now has reports of its own, and filters may be rebuilt in it.
  for (const auto& topic : topics_) {
    topic->SeeReports({});
    topic->SetRebuilt(true);
  }
  if (schedule_.epilogue != Epilogue::kNone && played_.problems.empty()) PlayEpilogue();
  played_.took = world_.now();
  played_.happened = world_.said();
  played_.log = world_.log();
  return std::move(played_);
}

bool Game::IsSaid(const std::string& topic) const {
  std::string problems = absl::StrCat("; ", last_error_, "; ");
  for (const Instance& each : instances_) {
    if (each.process != nullptr) absl::StrAppend(&problems, each.process->Problems());
  }
  return absl::StrContains(problems, absl::StrCat(topic, "-")) ||
         absl::StrContains(problems, absl::StrCat("; ", topic, " is not read"));
}

// A topic that was created again, say, is read from its begin, or stops and says so, and an operator resets
// the group's offsets.
void Game::ResetStopped() {
  const auto may_stop = [](const auto& topic) { return topic->may_need_reset() && !topic->IsDone(); };
  int64_t committed = 0;
  absl::Duration give_up = world_.now() + kPatienceOfOperator;
  while (world_.now() < give_up && std::any_of(topics_.begin(), topics_.end(), may_stop)) {
    const int64_t sum = Committed();
    if (std::exchange(committed, sum) != sum) give_up = world_.now() + kPatienceOfOperator;
    for (int i = 0; i < kStepsBetweenLooks; ++i) world_.Step();
  }
  std::vector<TopicInPlay*> stopped;
  for (const auto& topic : topics_) {
    if (may_stop(topic)) stopped.push_back(topic.get());
  }
  if (stopped.empty()) return;
  for (const TopicInPlay* topic : stopped) {
    const std::string& name = topic->names().input;
    // Between two generations there may be nobody to say it, and with the next the topic may go on.
    give_up = world_.now() + kRoundsOfGroup * schedule_.session_timeout;
    while (!IsSaid(name) && !topic->IsDone() && world_.now() < give_up) world_.Step();
    if (!IsSaid(name) && !topic->IsDone() && topic->has_ids())
      Problem(absl::StrCat("topic ", name, " has stopped, and NOBODY SAYS WHY"));
  }
  std::erase_if(stopped, [](const TopicInPlay* topic) { return topic->IsDone(); });
  if (stopped.empty()) return;
  std::array<bool, kMostInstances> was_wanted;
  for (size_t i = 0; i < kMostInstances; ++i) was_wanted[i] = instances_[i].is_wanted;
  End();
  // Without the group's offsets nobody knows which of two is wanted.
  RemoveStrangers(/*all=*/true);
  for (TopicInPlay* topic : stopped) {
    if (std::string judged = topic->WhatWasJudgedOfCutLog(); !judged.empty()) Problem(std::move(judged));
    topic->Reset();
  }
  played_.resets += static_cast<int64_t>(stopped.size());
  lacks_memory_ = false;
  accepts_output_ = true;
  for (size_t i = 0; i < kMostInstances; ++i) {
    instances_[i].is_wanted = was_wanted[i];
    Start(i);
  }
  AwaitDone(kPatience);
}

void Game::RunFor(absl::Duration duration) {
  const absl::Duration end = world_.now() + duration;
  while (world_.now() <= end) world_.Step();
}

void Game::LookAtReports() {
  for (const auto& topic : topics_) topic->SeeReports({});
  if (!IsDone()) return;
  // A process that got no answer to a commit counts it later.
  const auto is_in_doubt = [](const Instance& each) {
    return each.process != nullptr && each.process->HasPending();
  };
  const absl::Duration last = world_.now() + TimeToSettle();
  int64_t committed = 0;
  do {
    committed = Committed();
    RunFor(kReportsSettle);
    // A transaction that a late request has opened ends late, too, and its end in the log is committed.
  } while (world_.now() < last &&
           (Committed() != committed || std::any_of(instances_.begin(), instances_.end(), is_in_doubt)));
  std::vector<DaemonReport> reports;
  for (const Instance& each : instances_) {
    if (each.process == nullptr) continue;
    reports.push_back(each.process->Report());
    // Nobody knows what one that stands still would say.
    if (world_.now() < each.still_until + kReportsSettle) return;
  }
  if (!others_commit_) {
    for (const DaemonReport& report : reports) figures_.Look(report);
  }
  const bool is_rebuilt = started_ > 1 || group_.generation() > 1;
  for (const auto& topic : topics_) {
    topic->SetRebuilt(is_rebuilt);
    topic->SeeReports(reports);
  }
}

void Game::CompareFigures() {
  CountsInLog judged;
  CountsInLog routed;
  for (const auto& topic : topics_) {
    if (!topic->is_judged_once()) return;
    judged += topic->JudgedCounts(topic->Judge());
    routed += topic->RoutedCounts();
  }
  // Where all processes end as they should, and learn of all that they commit.
  const bool is_exact = std::all_of(schedule_.faults.begin(), schedule_.faults.end(), [](const Fault& each) {
    using enum FaultKind;
    const auto harmless = {kRetention, kAddPartition, kAbortedInput, kOpenInput, kBadClock, kUnreadable};
    return std::find(harmless.begin(), harmless.end(), each.kind) != harmless.end();
  });
  Figures figures = figures_;
  for (const Instance& each : instances_) {
    if (each.process != nullptr) figures.Add(each.process->Report());
  }
  figures.Compare("judged records", figures.judged(), judged, is_exact);
  figures.Compare("routed records", figures.routed(), routed, is_exact);
  for (const std::string& problem : figures.problems()) Problem(problem);
}

void Game::End() {
  for (Instance& each : instances_) {
    each.is_wanted = false;
    if (each.process != nullptr) each.process->Stop();
    if (each.twin != nullptr) each.twin->Stop();
  }
  const absl::Duration begin = world_.now();
  while (Running() > 0 && world_.now() < begin + absl::Minutes(1)) world_.Step();
  if (Running() > 0) Problem("a process that is asked to end does NOT END");
  RunFor(TimeToSettle());
}

void Game::PlayEpilogue() {
  // One whose last commit is another program's would stop only now.
  if (std::any_of(topics_.begin(), topics_.end(), [](const auto& each) { return each->may_need_reset(); }))
    return;
  switch (schedule_.epilogue) {
    case Epilogue::kNone:
      return;
    case Epilogue::kCutLog:
    case Epilogue::kCutLogUnderLife:
      return CutLog();
    case Epilogue::kLoseOffsets:
      return LoseOffsets();
    case Epilogue::kReset:
    case Epilogue::kResetUnderLife:
    case Epilogue::kSetBack:
      return SetOffsets();
    case Epilogue::kForeignCommit:
      return CommitForeign();
    case Epilogue::kTwin:
      return RunTwin();
    case Epilogue::kDeleteUnread:
      return DeleteUnread();
  }
}

void Game::StandStill(const std::function<void()>& meanwhile) {
  const bool is_alive = Running() > 0;
  for (Instance& each : instances_) {
    if (each.process != nullptr) each.process->Freeze(4 * schedule_.session_timeout);
  }
  // The group has removed them by then.
  if (is_alive) RunFor(2 * schedule_.session_timeout);
  meanwhile();
  lacks_memory_ = lacks_memory_ && is_alive;
  if (is_alive) return RunFor(3 * schedule_.session_timeout);
  instances_[0].is_wanted = true;
  Start(0);
}

void Game::CutLog() {
  TopicInPlay* cut = nullptr;
  int32_t id = -1;
  StandStill([&] {
    for (const auto& topic : topics_) {
      if (cut == nullptr && (id = topic->CutLogNow()) >= 0) cut = topic.get();
    }
    for (const auto& topic : topics_) topic.get() == cut ? cut->GrowAgain() : topic->input().SendTo(0);
  });
  const std::unique_ptr<TopicInPlay> apart = SetApart(cut);
  RunFor(3 * schedule_.session_timeout + absl::Seconds(5));
  AwaitDone(kPatience);
  if (apart != nullptr) {
    if (std::string judged = apart->WhatWasJudgedOfCutLog(); !judged.empty()) Problem(std::move(judged));
  }
  End();
  if (!topics_.empty()) Judge();
}

std::unique_ptr<TopicInPlay> Game::SetApart(const TopicInPlay* topic) {
  std::unique_ptr<TopicInPlay> apart;
  for (auto& each : topics_) {
    if (each.get() == topic) apart = std::move(each);
  }
  std::erase(topics_, nullptr);
  return apart;
}

void Game::CommitForeign() {
  others_commit_ = true;
  TopicInPlay* of = nullptr;
  StandStill([&] {
    for (const auto& topic : topics_) {
      if (of == nullptr && group_.Members().empty() &&
          topic->StopByCommit(static_cast<int64_t>(schedule_.seed / 8)))
        of = topic.get();
      topic->input().SendTo(0);
    }
  });
  const std::unique_ptr<TopicInPlay> apart = SetApart(of);
  RunFor(3 * schedule_.session_timeout + absl::Seconds(5));
  AwaitDone(kPatience);
  if (apart != nullptr) {
    const std::string& name = apart->names().input;
    if (apart->IsDone()) Problem(absl::StrCat(name, " is READ ON after a commit that is not its own"));
    if (!IsSaid(name)) Problem(absl::StrCat(name, " has stopped, and NOBODY SAYS WHY"));
  }
  End();
  if (!topics_.empty()) Judge();
}

void Game::LoseOffsets() {
  Dice dice(schedule_.seed ^ 0x105e0f);
  std::vector<std::unique_ptr<TopicInPlay>> refused;
  lacks_memory_ = accepts_output_ = false;
  for (auto& topic : topics_) {
    if (topic->may_be_reset() && dice.OneIn(2) && topic->LoseOffsets(dice))
      refused.push_back(std::move(topic));
  }
  std::erase(topics_, nullptr);
  const auto start = [this] {
    last_error_.clear();
    instances_[0].is_wanted = true;
    Start(0);
    AwaitDone(kPatience);
    RunFor(TimeToSettle());
  };
  for (const auto& topic : topics_) topic->input().SendTo(0);
  start();
  for (const auto& topic : refused) {
    const std::string& output = topic->names().output;
    if (!topic->has_not_begun()) Problem(absl::StrCat("the input is WRITTEN AGAIN to ", output));
    if (!IsSaid(topic->names().input)) Problem(absl::StrCat(output, " is refused, and NOBODY SAYS WHY"));
  }
  End();
  if (!topics_.empty()) Judge();
  if (refused.empty() || !played_.problems.empty()) return;
  std::move(refused.begin(), refused.end(), std::back_inserter(topics_));
  accepts_output_ = true;
  start();
  End();
  Judge();
}

void Game::SetOffsets() {
  others_commit_ = true;
  Dice dice(schedule_.seed ^ 0x5e70ff);
  StandStill([&] {
    for (const auto& topic : topics_) {
      for (int64_t count = dice.Between(1, 4); count > 0; --count) topic->input().SendTo(0);
      // Brokers set the offsets of a group without members alone.
      if (!topic->may_be_reset() || !group_.Members().empty()) continue;
      if (schedule_.epilogue != Epilogue::kSetBack) topic->ResetTo(dice);
      if (schedule_.epilogue == Epilogue::kSetBack) topic->SetBack(dice);
    }
  });
  AwaitDone(kPatience);
  for (const auto& topic : topics_) topic->input().SendTo(0);
  AwaitDone(kPatience);
  End();
  Judge();
}

void Game::DeleteUnread() {
  StandStill([&] {
    for (const auto& topic : topics_) {
      topic->input().SendTo(0);
      topic->DeleteAll();
    }
  });
  AwaitDone(kPatience);
  End();
  Judge();
}

void Game::RunTwin() {
  const auto first = std::find_if(instances_.begin(), instances_.end(),
                                  [](const Instance& each) { return each.process != nullptr; });
  if (first == instances_.end()) return End();
  const auto i = static_cast<size_t>(first - instances_.begin());
  world_.Say("a second process runs as instance ", i);
  // The one that ends is not started again.
  first->is_wanted = false;
  first->twin = MakeProcess(i, [this, first] {
    if (first->twin == nullptr || !first->twin->has_ended()) return;
    world_.Say("the second process has ended: ", std::string(first->twin->fatal().message()));
    first->twin.reset();
  });
  const auto send_for = [this](absl::Duration duration) {
    // In all of it less time goes by than until the present.
    const absl::Duration each =
        schedule_.horizon < absl::Hours(24) ? absl::Seconds(2) : absl::Milliseconds(400);
    for (absl::Duration end = world_.now() + duration; world_.now() < end; RunFor(each)) {
      for (const auto& topic : topics_) {
        // Hours would go by in each step: disorder is not bounded then.
        const bool is_unordered = topic->is_routed() && schedule_.horizon < absl::Hours(24);
        if (topic->is_there() && !is_unordered) topic->input().SendAnywhere();
      }
    }
  };
  send_for(absl::Minutes(1));
  const int64_t epochs = broker_.SumOfEpochs();
  send_for(absl::Seconds(30));
  // Where transactions are rare, fences are not in a row, and the two go on
  // (src/pipeline/assign/instance_claim.h).
  const bool is_busy = schedule_.horizon >= absl::Hours(24);
  const bool do_both_stay = first->process != nullptr && first->twin != nullptr;
  if (is_busy && do_both_stay && broker_.SumOfEpochs() > epochs + kFewFences) {
    Problem(absl::StrCat("two processes run as instance ", i, ", and FENCE EACH OTHER again and again"));
  }
  if (first->process == nullptr && !first->is_killed && first->twin == nullptr) {
    Problem(absl::StrCat("two processes ran as instance ", i, ", and NONE HAS STAYED: ", last_error_));
  }
  // One that was killed is started again, if the other has left the place to it.
  if (first->is_killed && Running() == 0) {
    first->is_wanted = true;
    Start(i);
  }
  AwaitDone(kPatience);
  End();
  Judge();
}

void Game::Judge() {
  played_.judgement = {};
  for (const auto& topic : topics_) {
    played_.judgement += topic->Judge();
    for (const std::string& name : {topic->names().input, topic->names().output}) {
      for (const Record& record : broker_.Committed(name)) {
        if (record.value != kOfStranger) continue;
        Problem(absl::StrCat(name, "-", record.partition, "/", record.offset, " is a stranger's"));
      }
    }
  }
  for (const std::string& problem : played_.judgement.problems) Problem(problem);
}

}  // namespace

std::string KindOf(absl::string_view problem) {
  const auto is_loud = [](absl::string_view word) {
    return word.size() > 1 &&
           std::all_of(word.begin(), word.end(), [](unsigned char c) { return absl::ascii_isupper(c); });
  };
  std::string kind;
  for (const absl::string_view word : absl::StrSplit(problem, absl::ByAnyChar(" :,;\n"), absl::SkipEmpty())) {
    if (is_loud(word)) {
      absl::StrAppend(&kind, kind.empty() ? "" : " ", word);
    } else if (!kind.empty()) {
      break;
    }
  }
  return kind;
}

namespace {

// An assertion that fails ends the process: then this says in which schedule.
char played[64];

void NamePlayed(uint64_t seed) {
  std::snprintf(played, sizeof played, "in the schedule of seed %" PRIu64 "\n", seed);
  static const auto before = std::signal(SIGABRT, [](int) {
    if (write(STDERR_FILENO, played, std::strlen(played)) < 0) return;
  });
  static_cast<void>(before);
}

}  // namespace

Played Play(const Schedule& schedule, bool keeps_log) {
  NamePlayed(schedule.seed);
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
