#include "tests/faults/run.h"

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "src/pipeline/clock/steady_time.h"
#include "tests/faults/second_judge.h"
#include "tests/support/daemon.h"
#include "tests/support/free_port.h"

namespace lethe::test {
namespace {

// All generous: other work may share the cores. A healthy run comes nowhere near them.
constexpr absl::Duration kFirstOutput = absl::Minutes(2);
constexpr absl::Duration kEnd = absl::Minutes(1);
constexpr absl::Duration kCommitted = absl::Minutes(3);
constexpr absl::Duration kLook = absl::Milliseconds(100);
constexpr absl::Duration kWireDelay = absl::Milliseconds(150);
constexpr int kAbortedRecords = 30;
constexpr int64_t kSlowBytesPerSecond = 50'000;
constexpr absl::Duration kMaxFuture = absl::Hours(1);
constexpr char kFenced[] = "runs as instance";

std::string Line(const Record& record) {
  return absl::StrFormat("%d\t%d\t%d\t%s\t%s\n", record.partition, record.offset, record.timestamp_ms,
                         record.key.value_or("(null)"), record.value.value_or("(null)"));
}

}  // namespace

News& News::operator+=(const News& more) {
  aborted += more.aborted;
  fenced += more.fenced;
  restored += more.restored;
  refused += more.refused;
  unwritten += more.unwritten;
  return *this;
}

std::string News::ToString() const {
  return absl::StrFormat(
      "%d transactions aborted, %d producers recreated, %d filters from snapshots, %d snapshots refused, %d "
      "not "
      "written",
      aborted, fenced, restored, refused, unwritten);
}

Run::Run(const Schedule& schedule, Site& site, std::string program, std::string folder)
    : schedule_(schedule),
      site_(site),
      program_(std::move(program)),
      folder_(std::move(folder)),
      input_(absl::StrCat("input-", schedule.seed, "-", absl::ToUnixMillis(absl::Now()))),
      output_(input_ + "-unique"),
      counters_(input_ + "-counters"),
      totals_(input_ + "-totals"),
      snapshots_(input_ + "-snapshots"),
      group_(input_ + "-group"),
      routed_(absl::StrCat(group_, "-", input_, "-repartition")),
      events_(folder_ + "/events.log"),
      begin_(absl::Now()),
      partitions_(schedule.partitions) {
  events_ << schedule_.Outline() << std::flush;
}

void Run::Say(const std::string& what) {
  events_ << absl::FormatTime("%H:%M:%E3S", absl::Now(), absl::LocalTimeZone())
          << absl::StrFormat(" %7.3f  ", absl::ToDoubleSeconds(absl::Now() - begin_)) << what << std::endl;
}

void Run::Problem(const std::string& what) {
  Say(what);
  problems_.push_back(what);
}

absl::StatusOr<Judgement> Run::Play() {
  absl::Status status = Prepare();
  if (status.ok()) status = PlayFaults();
  if (status.ok()) status = Drain();
  const bool played = status.ok();
  Judgement judgement;
  const auto judge = [&](const Evidence& evidence) {
    const Judgement one = Judge(evidence);
    judgement += one;
    const std::vector<std::string> disagreements = Disagreements(evidence, one);
    judgement.problems.insert(judgement.problems.end(), disagreements.begin(), disagreements.end());
  };
  if (played) judge(evidence_);
  for (const Evidence& past : past_lives_) judge(past);
  // Of an earlier input nobody could ask it any more.
  if (played && past_lives_.empty()) {
    const std::vector<std::string> disagreements = DisagreementsOfCommand(AskVerify(), judgement);
    judgement.problems.insert(judgement.problems.end(), disagreements.begin(), disagreements.end());
  }
  judgement.problems.insert(judgement.problems.begin(), problems_.begin(), problems_.end());
  for (const std::string& problem : judgement.problems) Say(problem);
  if (!played) Say(status.ToString());
  if (!played || !judgement.problems.empty()) {
    KeepTopics();
    site_.KeepLogs(folder_);
  }
  for (Instance& instance : instances_) instance.process.reset();
  traffic_.reset();
  CountNews();
  std::vector<std::string> topics = {input_, output_, counters_};
  if (schedule_.counts_totals()) topics.push_back(totals_);
  if (schedule_.snapshots == SnapshotPlace::kTopic) topics.push_back(snapshots_);
  if (schedule_.topic_scope) topics.push_back(routed_);
  // The brokers' folders stay small, however many schedules there are.
  for (const std::string& topic : topics) {
    const absl::Status deleted = site_.client().DeleteTopic(topic);
    if (status.ok()) status = deleted;
  }
  if (!status.ok()) return status;
  return judgement;
}

absl::Status Run::Prepare() {
  if (absl::Status healed = site_.Heal(); !healed.ok()) return healed;
  for (const std::string& topic : {input_, output_, counters_}) {
    KafkaClient::Configs configs = {{"retention.ms", "-1"}};
    if (topic == output_ && schedule_.oversized_per_mille > 0) {
      configs.emplace_back("max.message.bytes", absl::StrCat(kOutputMaxMessageBytes));
    }
    const absl::Status created = site_.client().CreateTopic(topic, partitions_, configs);
    if (!created.ok()) return created;
  }
  if (absl::Status prepared = PrepareSnapshots(); !prepared.ok()) return prepared;
  if (absl::Status started = StartTraffic(); !started.ok()) return started;
  if (schedule_.backlog_horizons > 0) {
    const int64_t all = schedule_.per_second * absl::ToInt64Seconds(schedule_.lasts);
    WaitUntil([&] { return traffic_->sent() >= all; }, kFirstOutput);
    if (absl::Status stopped = traffic_->Stop(); !stopped.ok()) return stopped;
    Say(absl::StrCat("a backlog of ", traffic_->sent(), " records"));
  }
  for (int i = 0; i < schedule_.instances; ++i) {
    instances_[static_cast<size_t>(i)].wanted = true;
    if (absl::Status started = StartInstance(i); !started.ok()) return started;
  }
  if (schedule_.from_the_start) return absl::OkStatus();
  absl::Status asked;
  const bool flows = WaitUntil(
      [&] {
        const auto ends = site_.client().EndOffsets(output_, Isolation::kReadUncommitted);
        asked = ends.status();
        LookForDeaths();
        return !asked.ok() || !problems_.empty() ||
               std::accumulate(ends->begin(), ends->end(), int64_t{0}) > 0;
      },
      kFirstOutput);
  if (asked.ok() && !flows) Problem("no output, before anything went wrong");
  Say("it flows");
  return asked;
}

absl::Status Run::StartTraffic() {
  TrafficOptions options;
  options.bootstrap = site_.producer_wire().bootstrap;
  options.topic = input_;
  options.partitions = partitions_;
  options.seed = schedule_.seed;
  options.per_second = schedule_.per_second;
  options.step = schedule_.step;
  options.wild_per_mille = schedule_.wild_per_mille;
  options.copies_within = schedule_.copies_within;
  options.most_copies = schedule_.most_copies;
  options.oversized_per_mille = schedule_.oversized_per_mille;
  options.scattered = schedule_.backlog_horizons > 0;
  // Hours go by in a second there, and the stream is not to reach the future.
  if (schedule_.step > absl::Milliseconds(1)) options.begins_ago = absl::Hours(24 * 365);
  auto traffic = Traffic::Start(options);
  if (traffic.ok()) traffic_ = std::move(*traffic);
  return traffic.status();
}

absl::Status Run::StartInstance(int i) {
  Instance& instance = instances_[static_cast<size_t>(i)];
  instance.http_port = FreePort();
  instance.log = absl::StrCat(folder_, "/lethe-", i, ".log");
  ProcessOptions options;
  options.args = {program_,
                  "run",
                  "--brokers=" + site_.wire(i).bootstrap,
                  "--input=" + input_,
                  "--output=" + output_,
                  "--group=" + group_,
                  absl::StrCat("--instance=", i),
                  absl::StrCat("--lanes=", schedule_.lanes),
                  "--id=json:/id",
                  "--engine=" + schedule_.engine,
                  "--horizon=" + absl::FormatDuration(schedule_.horizon),
                  "--max-future=" + absl::FormatDuration(kMaxFuture),
                  "--fpp=1e-9",
                  "--commit-interval=" + absl::FormatDuration(schedule_.commit_interval),
                  "--counter=name=deltas,key=json:/country,delta=json:/amount,output=" + counters_,
                  absl::StrCat("--http=127.0.0.1:", instance.http_port)};
  const auto milliseconds = [&](const char* property, absl::Duration value) {
    options.args.push_back(absl::StrCat("--kafka=", property, "=", absl::ToInt64Milliseconds(value)));
  };
  milliseconds("session.timeout.ms", schedule_.session_timeout);
  milliseconds("heartbeat.interval.ms", schedule_.session_timeout / 8);
  milliseconds("transaction.timeout.ms", schedule_.transaction_timeout);
  milliseconds("socket.timeout.ms", schedule_.socket_timeout);
  milliseconds("topic.metadata.refresh.interval.ms", absl::Milliseconds(500));
  milliseconds("reconnect.backoff.max.ms", absl::Milliseconds(500));
  options.args.push_back("--assignment=" + schedule_.assignment);
  // The way that a clean stop goes is the only difference between the first two.
  const char* kept = schedule_.seed % 2 == 0 ? "true" : "crash";
  options.args.push_back(absl::StrCat("--static-membership=", schedule_.static_members ? kept : "false"));
  if (schedule_.topic_scope) options.args.push_back("--scope=topic");
  // Of a start after the input has gone, with the group's offsets.
  if (schedule_.deletes_input) options.args.push_back("--accept-nonempty-output=true");
  if (schedule_.counts_totals()) {
    options.args.push_back("--counter=name=totals,mode=total,key=json:/country,delta=json:/amount,output=" +
                           totals_);
  }
  if (schedule_.snapshots != SnapshotPlace::kNowhere) {
    options.args.push_back("--snapshots-to=" + SnapshotsOf(i));
    options.args.push_back("--snapshots-every=1s");
  }
  options.failing_call = instance.broken_disk;
  options.stderr_file = instance.log;
  std::error_code none_yet;
  const auto size = std::filesystem::file_size(instance.log, none_yet);
  const size_t said_before = none_yet ? 0 : static_cast<size_t>(size);
  auto process = Process::Start(options);
  if (!process.ok()) return process.status();
  instance.process = *std::move(process);
  instance.said_before = said_before;
  instance.ending = instance.frozen = false;
  Say(absl::StrCat("lethe ", i, " starts, pid ", instance.process->pid()));
  return absl::OkStatus();
}

int Run::Choose(int from, bool running) const {
  for (int n = 0; n < kMaxInstances; ++n) {
    const int i = (from + n) % kMaxInstances;
    const Instance& instance = instances_[static_cast<size_t>(i)];
    if (running ? instance.process != nullptr && !instance.ending
                : !instance.wanted && instance.process == nullptr) {
      return i;
    }
  }
  return -1;
}

int Run::Running() const {
  return static_cast<int>(std::count_if(instances_.begin(), instances_.end(), [](const Instance& instance) {
    return instance.process != nullptr && !instance.ending;
  }));
}

absl::Status Run::PlayFaults() {
  begin_ = absl::Now();
  struct Moment {
    const Fault* fault;
    size_t hit;
    bool begins;
  };
  std::multimap<absl::Duration, Moment> moments;
  std::vector<Hit> hits(schedule_.faults.size());
  for (size_t i = 0; i < schedule_.faults.size(); ++i) {
    const Fault& fault = schedule_.faults[i];
    moments.emplace(fault.at, Moment{&fault, i, true});
    moments.emplace(fault.at + fault.lasts, Moment{&fault, i, false});
  }
  moments.emplace(schedule_.lasts, Moment{nullptr, 0, true});
  for (const auto& [at, moment] : moments) {
    WaitUntil([&, at = at] { return absl::Now() >= begin_ + at; }, absl::InfiniteDuration());
    LookForDeaths();
    if (moment.fault == nullptr) continue;
    const absl::Status done =
        moment.begins ? Begin(*moment.fault, hits[moment.hit]) : Finish(*moment.fault, hits[moment.hit]);
    if (!done.ok())
      return absl::Status(done.code(), absl::StrCat(FaultName(moment.fault->kind), ": ", done.message()));
  }
  return absl::OkStatus();
}

absl::Status Run::Begin(const Fault& fault, Hit& hit) {
  const bool joins = fault.kind == FaultKind::kJoin;
  hit.instance = Choose(fault.target % kMaxInstances, !joins);
  if (hit.instance < 0 || (fault.kind == FaultKind::kLeave && Running() < 2)) {
    hit.instance = -1;
    if (fault.kind <= FaultKind::kLoseReplies) return absl::OkStatus();
  }
  if (OfSnapshots(fault.kind)) return BeginOfSnapshots(fault, hit);
  if (fault.kind <= FaultKind::kLoseReplies) Say(absl::StrCat(FaultName(fault.kind), " ", hit.instance));
  Instance* instance = hit.instance < 0 ? nullptr : &instances_[static_cast<size_t>(hit.instance)];
  if (instance != nullptr) hit.process = instance->process.get();
  TcpProxy* wire = hit.instance < 0 ? nullptr : site_.wire(hit.instance).proxy.get();
  switch (fault.kind) {
    case FaultKind::kKill:
      return Kill(*instance);
    case FaultKind::kLeave:
      instance->wanted = false;
      return Terminate(*instance);
    case FaultKind::kEnd:
      return Terminate(*instance);
    case FaultKind::kFreeze:
      instance->frozen = true;
      return instance->process->Signal(SIGSTOP);
    case FaultKind::kJoin:
      instance->wanted = true;
      return StartInstance(hit.instance);
    case FaultKind::kCut:
      wire->Cut();
      return absl::OkStatus();
    case FaultKind::kDelay:
      wire->SetDelay(kWireDelay);
      return absl::OkStatus();
    case FaultKind::kStall:
      wire->SetStalled(true);
      return absl::OkStatus();
    case FaultKind::kSlow:
      wire->SetBytesPerSecond(kSlowBytesPerSecond);
      return absl::OkStatus();
    case FaultKind::kLoseReplies:
      wire->SetLosingReplies(true);
      return absl::OkStatus();
    case FaultKind::kBadClock:
      Say(std::string(FaultName(fault.kind)));
      traffic_->SetBadClock(fault.seed);
      return absl::OkStatus();
    case FaultKind::kLoseAcks:
      Say(std::string(FaultName(fault.kind)));
      site_.producer_wire().proxy->SetLosingReplies(true);
      return absl::OkStatus();
    case FaultKind::kKillBroker:
    case FaultKind::kStopBroker:
      return BeginOfBroker(fault);
    case FaultKind::kAbortedInput:
      return AbortInput();
    case FaultKind::kAddPartitions:
      return AddPartition();
    default:
      return absl::OkStatus();
  }
}

absl::Status Run::Finish(const Fault& fault, const Hit& hit) {
  Instance* instance = hit.instance < 0 ? nullptr : &instances_[static_cast<size_t>(hit.instance)];
  TcpProxy* wire = hit.instance < 0 ? nullptr : site_.wire(hit.instance).proxy.get();
  if (OfSnapshots(fault.kind)) return FinishOfSnapshots(fault, hit);
  switch (fault.kind) {
    case FaultKind::kKill:
      return instance == nullptr ? absl::OkStatus() : StartIfWanted(hit.instance);
    case FaultKind::kEnd:
    case FaultKind::kLeave:
      if (instance == nullptr || instance->process.get() != hit.process) return absl::OkStatus();
      AwaitEnd(hit.instance);
      return instance->wanted ? StartInstance(hit.instance) : absl::OkStatus();
    case FaultKind::kFreeze:
      if (instance == nullptr || instance->process == nullptr || instance->process.get() != hit.process) {
        return absl::OkStatus();
      }
      // One that was asked to end meanwhile goes on already, or has ended.
      if (!std::exchange(instance->frozen, false)) return absl::OkStatus();
      Say(absl::StrCat("lethe ", hit.instance, " goes on"));
      return instance->process->Signal(SIGCONT);
    case FaultKind::kDelay:
      if (wire != nullptr) wire->SetDelay(absl::ZeroDuration());
      return absl::OkStatus();
    case FaultKind::kStall:
      if (wire != nullptr) wire->SetStalled(false);
      return absl::OkStatus();
    case FaultKind::kSlow:
      if (wire != nullptr) wire->SetBytesPerSecond(0);
      return absl::OkStatus();
    case FaultKind::kLoseReplies:
      if (wire != nullptr) wire->SetLosingReplies(false);
      return absl::OkStatus();
    case FaultKind::kBadClock:
      traffic_->SetBadClock(std::nullopt);
      return absl::OkStatus();
    case FaultKind::kLoseAcks:
      site_.producer_wire().proxy->SetLosingReplies(false);
      return absl::OkStatus();
    case FaultKind::kKillBroker:
    case FaultKind::kStopBroker:
      Say("the broker starts again");
      return site_.Relaunch();
    default:
      return absl::OkStatus();
  }
}

absl::Status Run::Kill(Instance& instance) {
  const absl::Status killed = instance.process->Signal(SIGKILL);
  instance.process.reset();
  return killed;
}

absl::Status Run::StartIfWanted(int i) {
  const Instance& instance = instances_[static_cast<size_t>(i)];
  return instance.wanted && instance.process == nullptr ? StartInstance(i) : absl::OkStatus();
}

absl::Status Run::BeginOfBroker(const Fault& fault) {
  if (absl::Status settled = site_.Settle(); !settled.ok()) return settled;
  absl::StatusOr<int> id = fault.target % schedule_.brokers + 1;
  switch (fault.role) {
    case BrokerRole::kAny:
      break;
    case BrokerRole::kLeader:
      id = site_.Leader(input_, fault.target % partitions_);
      break;
    case BrokerRole::kGroupCoordinator:
      id = site_.GroupCoordinator(group_);
      break;
    case BrokerRole::kTransactionCoordinator:
      id = site_.TransactionCoordinator(absl::StrCat(group_, "/", fault.target, "/0"));
      break;
  }
  // Who has no leader at this moment, or is not there yet, is not to be found.
  if (!id.ok() || *id < 1) id = fault.target % schedule_.brokers + 1;
  Say(absl::StrCat(FaultName(fault.kind), " ", *id));
  return site_.TakeDown(*id, fault.kind == FaultKind::kKillBroker);
}

absl::Status Run::AddPartition() {
  if (absl::Status settled = site_.Settle(); !settled.ok()) return settled;
  ++partitions_;
  Say(absl::StrCat("add a partition: ", partitions_));
  std::vector<std::string> topics = {output_, counters_, input_};
  if (schedule_.counts_totals()) {
    topics.insert(topics.begin(), totals_);
    // lethe makes it when it starts.
    WaitUntil([&] { return site_.client().KnownPartitions(totals_).ok(); }, kEnd);
  }
  for (const std::string& topic : topics) {
    if (absl::Status added = site_.client().AddPartitions(topic, partitions_); !added.ok()) return added;
  }
  traffic_->SetPartitions(partitions_);
  return absl::OkStatus();
}

absl::Status Run::AbortInput() {
  if (absl::Status settled = site_.Settle(); !settled.ok()) return settled;
  Say("abort a transaction in the input");
  auto producer = TransactionalProducer::Start(site_.bootstrap(), input_ + "-aborted");
  if (!producer.ok()) return producer.status();
  absl::Status status = (*producer)->Begin();
  if (status.ok()) status = (*producer)->Produce(input_, traffic_->Upcoming(kAbortedRecords));
  return status.ok() ? (*producer)->Abort() : status;
}

absl::Status Run::Terminate(Instance& instance) {
  // One that stands still is asked too, and cannot answer before it goes on.
  instance.ending = true;
  absl::Status asked = instance.process->Signal(SIGTERM);
  if (asked.ok() && std::exchange(instance.frozen, false)) asked = instance.process->Signal(SIGCONT);
  return asked;
}

void Run::AwaitEnd(int i) {
  Instance& instance = instances_[static_cast<size_t>(i)];
  const absl::Time begin = SteadyNow();
  const absl::StatusOr<int> code = instance.process->Wait(kEnd);
  if (!code.ok()) {
    Problem(absl::StrCat("lethe ", i, " did not end when asked to: ", code.status().message()));
  } else {
    Say(absl::StrFormat("lethe %d has ended with %d, %s later", i, *code,
                        absl::FormatDuration(SteadyNow() - begin)));
    // While brokers and wires are broken it may have to give up: nothing is lost by that.
    const bool gave_up = !healed_ && *code == 1 &&
                         absl::StrContains(instance.process->Stderr(), "the broker did not answer in time");
    const bool not_begun =
        *code == 128 + SIGTERM && instance.process->Stderr().size() == instance.said_before;
    if (*code != 0 && !gave_up && !not_begun)
      Problem(absl::StrCat("lethe ", i, " ended with ", *code, " when asked to"));
  }
  instance.process.reset();
}

void Run::LookForDeaths() {
  for (int i = 0; i < kMaxInstances; ++i) {
    Instance& instance = instances_[static_cast<size_t>(i)];
    if (instance.process == nullptr || instance.ending || instance.process->Running()) continue;
    const int code = instance.process->Wait(kEnd).value_or(-1);
    // Requests of an earlier life that were held up on the wire: who starts processes starts this one again.
    const bool fenced = schedule_.static_members && code == 1 &&
                        absl::StrContains(instance.process->Stderr().substr(instance.said_before), kFenced);
    instance.process.reset();
    if (fenced) {
      Say(absl::StrCat("lethe ", i, " was fenced by others of its name, and ended"));
      was_restarted_ = true;
      if (absl::Status started = StartInstance(i); started.ok()) continue;
    }
    Problem(absl::StrCat("lethe ", i, " ended of its own, with ", code));
    instance.wanted = false;
  }
}

absl::Status Run::Drain() {
  Say("the faults end");
  for (int i = 0; i < kMaxInstances; ++i) {
    Instance& instance = instances_[static_cast<size_t>(i)];
    if (instance.process != nullptr && std::exchange(instance.frozen, false)) {
      if (absl::Status went_on = instance.process->Signal(SIGCONT); !went_on.ok()) return went_on;
    }
    if (instance.process != nullptr && instance.ending) AwaitEnd(i);
  }
  if (absl::Status healed = site_.Heal(); !healed.ok()) return healed;
  healed_ = true;
  for (int i = 0; i < kMaxInstances; ++i) {
    if (absl::Status started = StartIfWanted(i); !started.ok()) return started;
  }
  if (absl::Status ended = EndInput(); !ended.ok()) return ended;
  if (schedule_.countable() && !was_restarted_ && problems_.empty()) {
    const auto all = static_cast<int64_t>(evidence_.input.size());
    WaitUntil(
        [&] {
          evidence_.counted = Counted();
          return evidence_.counted->unique + evidence_.counted->duplicate + evidence_.counted->missing_id +
                     evidence_.counted->undeliverable ==
                 all;
        },
        absl::Seconds(10));
  }
  if (schedule_.deletes_input && problems_.empty()) {
    if (absl::Status begun = BeginAnotherLife(); !begun.ok()) return begun;
    if (absl::Status ended = EndInput(); !ended.ok()) return ended;
  }
  for (Instance& instance : instances_) {
    if (instance.process == nullptr) continue;
    if (absl::Status asked = Terminate(instance); !asked.ok()) return asked;
  }
  for (int i = 0; i < kMaxInstances; ++i) {
    if (instances_[static_cast<size_t>(i)].process == nullptr) continue;
    AwaitEnd(i);
  }
  return ReadOutput();
}

absl::Status Run::EndInput() {
  if (schedule_.backlog_horizons == 0) {
    if (absl::Status stopped = traffic_->Stop(); !stopped.ok()) return stopped;
  }
  Say(absl::StrCat("the input ends: ", traffic_->sent(), " records sent, ", traffic_->given_up(),
                   " given up"));
  auto input = ReadSettled(input_);
  if (!input.ok()) return input.status();
  evidence_.horizon = schedule_.horizon;
  evidence_.topic_scope = schedule_.topic_scope;
  evidence_.scattered = schedule_.backlog_horizons > 0;
  evidence_.latest_time = absl::Now() + kMaxFuture;
  if (schedule_.oversized_per_mille > 0) evidence_.output_takes_bytes = kOutputMaxMessageBytes;
  evidence_.input = *std::move(input);
  const auto ends = site_.client().EndOffsets(input_, Isolation::kReadUncommitted);
  if (!ends.ok()) return ends.status();
  evidence_.input_ends = *ends;
  if (!schedule_.topic_scope) return AwaitCommitted(group_, input_, evidence_.input);
  if (absl::Status done = AwaitCommitted(group_ + "-repartition", input_, evidence_.input); !done.ok()) {
    return done;
  }
  const std::vector<int64_t> committed = evidence_.committed;
  const auto routed = ReadSettled(routed_);
  if (!routed.ok()) return routed.status();
  const absl::Status done = AwaitCommitted(group_, routed_, *routed);
  evidence_.committed = committed;
  return done;
}

std::string Run::AskVerify() const {
  const std::string config = absl::StrCat(folder_, "/lethe.yaml");
  std::ofstream(config) << "brokers: " << site_.bootstrap() << "\ninput: " << input_
                        << "\noutput: " << output_ << "\ngroup: " << group_
                        << "\nid: json:/id\nhorizon: " << absl::FormatDuration(schedule_.horizon)
                        << "\nmax_future: " << absl::FormatDuration(kMaxFuture)
                        << "\nengine: " << schedule_.engine
                        << "\nscope: " << (schedule_.topic_scope ? "topic" : "partition") << "\nfpp: 1e-9\n";
  ProcessOptions verify;
  verify.args = {program_, "verify",  "--config", config,     "--since",
                 "all",    "--share", "1",        "--format", "json"};
  const absl::StatusOr<Finished> finished = RunToEnd(verify, absl::Minutes(2));
  if (!finished.ok()) return std::string(finished.status().message());
  return absl::StrCat(finished->out, finished->err);
}

absl::Status Run::ReadOutput() {
  evidence_.totals_are_counted = schedule_.counts_totals();
  for (const auto& [topic, records, ends] : {std::tuple{output_, &evidence_.output, &evidence_.output_ends},
                                             {counters_, &evidence_.deltas, &evidence_.delta_ends},
                                             {totals_, &evidence_.totals, &evidence_.total_ends}}) {
    if (topic == totals_ && !schedule_.counts_totals()) continue;
    auto all = ReadSettled(topic);
    if (!all.ok()) return all.status();
    const auto stable = site_.client().EndOffsets(topic, Isolation::kReadCommitted);
    const auto end = site_.client().EndOffsets(topic, Isolation::kReadUncommitted);
    if (!stable.ok()) return stable.status();
    if (!end.ok()) return end.status();
    *ends = {*stable, *end};
    *records = *std::move(all);
  }
  if (past_lives_.empty()) return absl::OkStatus();
  const auto is_past = [](const TopicEnds& past) {
    return [&past](const Record& record) {
      return record.offset < past.end[static_cast<size_t>(record.partition)];
    };
  };
  std::erase_if(evidence_.output, is_past(past_lives_.back().output_ends));
  std::erase_if(evidence_.deltas, is_past(past_lives_.back().delta_ends));
  return absl::OkStatus();
}

int Run::Owned() const {
  int owned = 0;
  for (const Instance& instance : instances_) {
    if (instance.process == nullptr) continue;
    const std::string metrics = HttpGet(instance.http_port, "/metrics").body;
    for (const absl::string_view line : absl::StrSplit(metrics, '\n')) {
      if (absl::StartsWith(line, "lethe_partition_failed{")) ++owned;
    }
  }
  return owned;
}

absl::Status Run::BeginAnotherLife() {
  if (absl::Status read = ReadOutput(); !read.ok()) return read;
  past_lives_.push_back(std::exchange(evidence_, {}));
  Say("the input is deleted");
  if (absl::Status deleted = site_.client().DeleteTopic(input_); !deleted.ok()) return deleted;
  // A topic that has grown beyond the old offsets before anybody saw that it is another cannot be told from
  // the old one, which is said where guarantees are.
  const bool noticed = WaitUntil(
      [&] {
        LookForDeaths();
        return !problems_.empty() || Owned() == 0;
      },
      kCommitted);
  if (!noticed) Problem("that the input is gone is not noticed");
  Say("the input is recreated");
  const absl::Status made = site_.client().CreateTopic(input_, partitions_, {{"retention.ms", "-1"}});
  if (!made.ok()) return made;
  if (absl::Status started = StartTraffic(); !started.ok()) return started;
  WaitUntil([&] { return traffic_->sent() >= schedule_.per_second; }, kEnd);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Record>> Run::ReadSettled(const std::string& topic) {
  auto records = site_.client().ReadSettled(topic);
  // The judge says so too, of what can be read.
  if (absl::IsDeadlineExceeded(records.status())) {
    Problem(std::string(records.status().message()));
    return site_.client().ReadAll(topic, Isolation::kReadCommitted);
  }
  return records;
}

absl::Status Run::AwaitCommitted(const std::string& group, const std::string& topic,
                                 const std::vector<Record>& records) {
  std::vector<int64_t> ends(static_cast<size_t>(partitions_), 0);
  for (const Record& record : records) ends[static_cast<size_t>(record.partition)] = record.offset + 1;
  absl::Status asked;
  std::vector<int64_t> committed;
  const auto done = [&] {
    absl::SleepFor(kLook);  // each look is a new member of the broker's
    LookForDeaths();
    const auto answer = site_.client().Committed(group, topic);
    asked = answer.status();
    if (!asked.ok()) return true;
    committed.clear();
    for (const CommittedOffset& offset : *answer) committed.push_back(offset.offset);
    for (size_t p = 0; p < ends.size(); ++p) {
      if (ends[p] > 0 && committed[p] < ends[p]) return Running() == 0;
    }
    return true;
  };
  const bool settled = WaitUntil(done, kCommitted);
  if (!asked.ok()) return asked;
  evidence_.committed = committed;
  if (settled) {
    Say("all is committed");
  } else {
    std::string where;
    for (size_t p = 0; p < ends.size(); ++p) {
      if (ends[p] > 0 && committed[p] < ends[p])
        absl::StrAppend(&where, " ", p, ": ", committed[p], " of ", ends[p]);
    }
    Problem(absl::StrCat("lethe is STUCK: of ", topic, " not committed after ",
                         absl::FormatDuration(kCommitted), ":", where));
  }
  return absl::OkStatus();
}

void Run::CountNews() {
  for (int i = 0; i < kMaxInstances; ++i) {
    std::ifstream log(absl::StrCat(folder_, "/lethe-", i, ".log"));
    for (std::string line; std::getline(log, line);) {
      const auto says = [&](absl::string_view text) { return absl::StrContains(line, text) ? 1 : 0; };
      news_.aborted += says(" records aborted, to be judged again");
      news_.fenced += says("the producer is lost: ");
      news_.restored += says(" is loaded, with ");
      news_.refused += says(" is not used: ");
      news_.unwritten += says(kUnwritten);
    }
  }
}

CountedVerdicts Run::Counted() const {
  CountedVerdicts counted;
  for (const Instance& instance : instances_) {
    if (instance.process == nullptr) continue;
    const auto count = [&](const char* verdict) {
      return static_cast<int64_t>(
          MetricSum(HttpGet(instance.http_port, "/metrics").body, "lethe_records_total", {verdict}));
    };
    counted.unique += count("verdict=\"unique\"");
    counted.duplicate += count("verdict=\"duplicate\"");
    counted.missing_id += count("verdict=\"missing_id\"");
    counted.undeliverable += count("verdict=\"undeliverable\"");
  }
  return counted;
}

void Run::KeepTopics() const {
  for (const std::string& topic : {input_, output_, counters_}) {
    std::ofstream file(absl::StrCat(folder_, "/",
                                    topic == input_    ? "input"
                                    : topic == output_ ? "output"
                                                       : "counters",
                                    ".tsv"));
    const auto records = site_.client().ReadAll(topic, Isolation::kReadCommitted);
    if (!records.ok()) file << records.status() << "\n";
    if (records.ok())
      std::for_each(records->begin(), records->end(), [&](const Record& r) { file << Line(r); });
  }
}

}  // namespace lethe::test
