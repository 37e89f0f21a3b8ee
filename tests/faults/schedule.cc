#include "tests/faults/schedule.h"

#include <algorithm>
#include <array>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace lethe::test {
namespace {

struct KindOfFault {
  FaultKind kind;
  absl::string_view name;
  absl::Duration shortest;
  absl::Duration longest;
};

const std::vector<KindOfFault>& KindsOfFaults() {
  static const std::vector<KindOfFault> kinds = {
      {FaultKind::kKill, "kill lethe", absl::ZeroDuration(), absl::Seconds(2)},
      {FaultKind::kEnd, "end lethe", absl::ZeroDuration(), absl::Seconds(2)},
      {FaultKind::kFreeze, "freeze lethe", absl::Milliseconds(100), absl::Seconds(6)},
      {FaultKind::kJoin, "join", absl::ZeroDuration(), absl::ZeroDuration()},
      {FaultKind::kLeave, "leave", absl::ZeroDuration(), absl::ZeroDuration()},
      {FaultKind::kDamageSnapshots, "kill, and damage the snapshots of, lethe", absl::ZeroDuration(),
       absl::Seconds(2)},
      // For so long that there are others when they are put back, and that some cannot be written.
      {FaultKind::kOldSnapshots, "keep, and put back later, the snapshots of lethe", absl::Milliseconds(1200),
       absl::Seconds(3)},
      {FaultKind::kForeignSnapshots, "kill, and put foreign snapshots in the place of those of, lethe",
       absl::ZeroDuration(), absl::Seconds(2)},
      {FaultKind::kFullDisk, "fill the disk of lethe", absl::Milliseconds(1500), absl::Seconds(3)},
      {FaultKind::kBrokenDisk, "kill, and start on a broken disk, lethe", absl::Seconds(2), absl::Seconds(4)},
      {FaultKind::kCut, "cut connections of lethe", absl::ZeroDuration(), absl::ZeroDuration()},
      {FaultKind::kDelay, "delay connections of lethe", absl::Milliseconds(200), absl::Seconds(3)},
      {FaultKind::kStall, "stall connections of lethe", absl::Milliseconds(200), absl::Seconds(4)},
      {FaultKind::kSlow, "slow connections of lethe", absl::Seconds(1), absl::Seconds(4)},
      {FaultKind::kLoseReplies, "lose replies to lethe", absl::Milliseconds(50), absl::Seconds(3)},
      {FaultKind::kKillBroker, "kill broker", absl::ZeroDuration(), absl::Seconds(2)},
      {FaultKind::kStopBroker, "stop broker", absl::ZeroDuration(), absl::Seconds(2)},
      {FaultKind::kLoseAcks, "lose acknowledgements of the input", absl::Milliseconds(300), absl::Seconds(2)},
      {FaultKind::kAbortedInput, "abort a transaction in the input", absl::ZeroDuration(),
       absl::ZeroDuration()},
      {FaultKind::kAddPartitions, "add a partition", absl::ZeroDuration(), absl::ZeroDuration()},
      {FaultKind::kBadClock, "date the input wrongly", absl::Milliseconds(200), absl::Seconds(2)},
  };
  return kinds;
}

const KindOfFault& Of(FaultKind kind) {
  return *std::find_if(KindsOfFaults().begin(), KindsOfFaults().end(),
                       [&](const KindOfFault& k) { return k.kind == kind; });
}

struct Theme {
  absl::string_view name;
  int brokers;
  std::vector<FaultKind> kinds;
  BrokerRole role = BrokerRole::kAny;
  bool expires = false;
};

const std::vector<Theme>& Themes() {
  using enum FaultKind;
  static const std::vector<Theme> themes = {
      {"killed processes", 1, {kKill, kKill, kEnd}},
      {"zombies", 1, {kFreeze}},
      {"members that come and go", 1, {kJoin, kLeave, kEnd, kKill}},
      {"broken wires", 1, {kCut, kDelay, kStall, kLoseReplies}},
      {"a killed broker", 1, {kKillBroker, kStopBroker}},
      {"more partitions", 1, {kAddPartitions, kAddPartitions, kKill, kJoin, kEnd}},
      {"expiry", 1, {kKill, kEnd, kJoin, kLeave, kFreeze, kCut}, BrokerRole::kAny, true},
      {"everything on one broker",
       1,
       {kKill, kEnd, kFreeze, kJoin, kLeave, kCut, kDelay, kStall, kLoseReplies, kKillBroker,
        kAddPartitions}},
      {"a killed leader", 3, {kKillBroker, kKillBroker, kStopBroker, kKill}, BrokerRole::kLeader},
      {"a killed group coordinator",
       3,
       {kKillBroker, kKillBroker, kStopBroker, kKill},
       BrokerRole::kGroupCoordinator},
      {"a killed transaction coordinator",
       3,
       {kKillBroker, kKillBroker, kStopBroker, kCut},
       BrokerRole::kTransactionCoordinator},
      {"everything on three brokers",
       3,
       {kKill, kEnd, kFreeze, kJoin, kLeave, kCut, kDelay, kStall, kLoseReplies, kKillBroker, kStopBroker,
        kAddPartitions}},
  };
  return themes;
}

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}
  int Between(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  bool OneIn(int n) { return Between(1, n) == 1; }
  template <typename T>
  T Choose(std::initializer_list<T> of) {
    return *(of.begin() + Between(0, static_cast<int>(of.size()) - 1));
  }
  absl::Duration Between(absl::Duration low, absl::Duration high) {
    return low + absl::Milliseconds(Between(0, static_cast<int>(absl::ToInt64Milliseconds(high - low))));
  }

 private:
  std::mt19937_64
      random_;  // its values are the same everywhere; those of the standard's distributions are not
};

bool OfABroker(FaultKind kind) { return kind == FaultKind::kKillBroker || kind == FaultKind::kStopBroker; }

Fault MakeFault(Dice& dice, FaultKind kind, const Theme& theme, const Schedule& schedule) {
  Fault fault;
  fault.kind = kind;
  fault.at = dice.Between(absl::Milliseconds(100), schedule.lasts);
  fault.lasts = dice.Between(Of(kind).shortest, Of(kind).longest);
  // Every second one stands still until the group has gone on without it.
  if (kind == FaultKind::kFreeze && dice.OneIn(2)) {
    fault.lasts = schedule.session_timeout + dice.Between(absl::Milliseconds(500), absl::Seconds(2));
  }
  fault.target = dice.Between(0, kMaxInstances - 1);
  if (OfABroker(kind)) {
    fault.role = theme.role != BrokerRole::kAny
                     ? theme.role
                     : dice.Choose({BrokerRole::kAny, BrokerRole::kLeader, BrokerRole::kGroupCoordinator,
                                    BrokerRole::kTransactionCoordinator});
  }
  return fault;
}

void AddFaults(Dice& dice, const Theme& theme, Schedule& schedule) {
  int broker_faults = 0;
  for (int count = dice.Between(2, 5); count > 0; --count) {
    const FaultKind kind =
        theme.kinds[static_cast<size_t>(dice.Between(0, static_cast<int>(theme.kinds.size()) - 1))];
    // A broker is away for seconds: two such faults are enough for one schedule.
    if (OfABroker(kind) && ++broker_faults > 2) continue;
    schedule.faults.push_back(MakeFault(dice, kind, theme, schedule));
  }
  if (broker_faults == 0 && theme.kinds[0] == FaultKind::kKillBroker) {
    schedule.faults.push_back(MakeFault(dice, FaultKind::kKillBroker, theme, schedule));
  }
  schedule.faults.push_back(MakeFault(dice, FaultKind::kLoseAcks, theme, schedule));
  if (dice.OneIn(2)) schedule.faults.push_back(MakeFault(dice, FaultKind::kLoseAcks, theme, schedule));
  if (broker_faults == 0 && dice.OneIn(2)) {
    schedule.faults.push_back(MakeFault(dice, FaultKind::kAbortedInput, theme, schedule));
  }
  std::stable_sort(schedule.faults.begin(), schedule.faults.end(),
                   [](const Fault& a, const Fault& b) { return a.at < b.at; });
}

// By dice of their own: all else in a schedule is as it would be without.
void AddSnapshots(Schedule& schedule) {
  using enum FaultKind;
  // Any other number would do, but with this one the dozen of `make test` has each kind.
  Dice dice(schedule.seed ^ 22000066);
  if (dice.OneIn(2)) return;
  schedule.snapshots =
      dice.Choose({SnapshotPlace::kFolderOfEach, SnapshotPlace::kFolderOfAll, SnapshotPlace::kTopic});
  // The first ones are taken when a second has gone by.
  schedule.lasts += absl::Seconds(2);
  for (int count = dice.Between(1, 2); count > 0; --count) {
    Fault& fault = schedule.faults.emplace_back();
    fault.kind = dice.Choose({kDamageSnapshots, kOldSnapshots, kForeignSnapshots, kFullDisk, kBrokenDisk});
    fault.at = dice.Between(absl::Milliseconds(1500), schedule.lasts);
    fault.lasts = dice.Between(Of(fault.kind).shortest, Of(fault.kind).longest);
    fault.target = dice.Between(0, kMaxInstances - 1);
    fault.seed = static_cast<uint64_t>(dice.Between(0, 1'000'000));
  }
  std::stable_sort(schedule.faults.begin(), schedule.faults.end(),
                   [](const Fault& a, const Fault& b) { return a.at < b.at; });
}

// Likewise, and for the same reason.
void AddTheRest(Schedule& schedule) {
  Dice dice(schedule.seed ^ 41000088);
  schedule.static_members = dice.OneIn(4);
  schedule.deletes_input = dice.OneIn(6);
  // Where nothing expires: time goes by in the repartition topic.
  schedule.topic_scope = dice.OneIn(5) && schedule.horizon > absl::Hours(1);
  // There a first life goes on.
  if (schedule.topic_scope) schedule.deletes_input = false;
}

// What ordinary production sends, in any theme: bulk retries, records that the output rejects, clocks that
// are wrong, connections that are slow. By dice of their own, too.
void AddWildTraffic(Schedule& schedule) {
  Dice dice(schedule.seed ^ 63000024);
  if (dice.OneIn(4)) schedule.most_copies = dice.Choose({12, 100});
  if (dice.OneIn(4)) schedule.oversized_per_mille = dice.Choose({1, 10, 100});
  const auto add = [&](FaultKind kind) {
    Fault& fault = schedule.faults.emplace_back();
    fault.kind = kind;
    // Also before there is an output.
    fault.at = dice.Between(absl::ZeroDuration(), schedule.lasts);
    fault.lasts = dice.Between(Of(kind).shortest, Of(kind).longest);
    fault.target = dice.Between(0, kMaxInstances - 1);
    fault.seed = static_cast<uint64_t>(dice.Between(0, 3));
  };
  if (dice.OneIn(3)) add(FaultKind::kBadClock);
  if (dice.OneIn(4)) add(FaultKind::kSlow);
  std::stable_sort(schedule.faults.begin(), schedule.faults.end(),
                   [](const Fault& a, const Fault& b) { return a.at < b.at; });
}

// What a router must not read at unequal pace. By dice of its own, too.
void AddBacklog(Schedule& schedule) {
  Dice dice(schedule.seed ^ 20000021);
  if (!dice.OneIn(6)) return;
  schedule.backlog_horizons = dice.Between(2, 10);
  schedule.topic_scope = true;
  schedule.deletes_input = false;
  schedule.from_the_start = true;
  schedule.partitions = std::max(schedule.partitions, 3);
  schedule.horizon = absl::Hours(1);
  schedule.wild_per_mille = schedule.oversized_per_mille = 0;
  const int64_t records = schedule.per_second * absl::ToInt64Seconds(schedule.lasts);
  schedule.step =
      absl::Milliseconds(schedule.backlog_horizons * absl::ToInt64Milliseconds(schedule.horizon) / records);
  // The latest copies come six times as late: within half a horizon.
  schedule.copies_within = static_cast<int>(records / schedule.backlog_horizons / 12);
  // What the producer writes again is out of order by itself.
  std::erase_if(schedule.faults, [](const Fault& fault) {
    using enum FaultKind;
    return fault.kind == kLoseAcks || fault.kind == kAbortedInput || fault.kind == kBadClock ||
           fault.kind == kAddPartitions;
  });
}

absl::string_view PlaceName(SnapshotPlace place) {
  switch (place) {
    case SnapshotPlace::kNowhere:
      return "nowhere";
    case SnapshotPlace::kFolderOfEach:
      return "to a folder of each";
    case SnapshotPlace::kFolderOfAll:
      return "to a folder of all";
    case SnapshotPlace::kTopic:
      return "to a topic";
  }
  return "";
}

absl::string_view ClockName(uint64_t seed) {
  constexpr std::array<absl::string_view, 4> kNames = {"10 years ahead", "in microseconds", "1970",
                                                       "10 years behind"};
  return kNames[seed % kNames.size()];
}

std::string TargetName(const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::kKillBroker:
    case FaultKind::kStopBroker:
      switch (fault.role) {
        case BrokerRole::kAny:
          return absl::StrCat(", number ", fault.target);
        case BrokerRole::kLeader:
          return absl::StrCat(", the leader of input partition ", fault.target);
        case BrokerRole::kGroupCoordinator:
          return ", the group's coordinator";
        case BrokerRole::kTransactionCoordinator:
          return absl::StrCat(", the transaction coordinator of instance ", fault.target);
      }
      return "";
    case FaultKind::kLoseAcks:
    case FaultKind::kAbortedInput:
    case FaultKind::kAddPartitions:
      return "";
    case FaultKind::kBadClock:
      return absl::StrCat(" (", ClockName(fault.seed), ")");
    default:
      return absl::StrCat(", instance ", fault.target);
  }
}

}  // namespace

absl::string_view FaultName(FaultKind kind) { return Of(kind).name; }

bool OfSnapshots(FaultKind kind) {
  return kind >= FaultKind::kDamageSnapshots && kind <= FaultKind::kBrokenDisk;
}

int ThemeCount() { return static_cast<int>(Themes().size()); }

bool Schedule::countable() const {
  return instances == 1 && lanes == 1 && !topic_scope &&
         std::none_of(faults.begin(), faults.end(), [](const Fault& fault) {
           using enum FaultKind;
           return fault.kind == kKill || fault.kind == kEnd || fault.kind == kLeave || fault.kind == kJoin ||
                  OfSnapshots(fault.kind);
         });
}

Schedule MakeSchedule(uint64_t seed) {
  Dice dice(seed);
  const Theme& theme = Themes()[seed % Themes().size()];
  Schedule schedule;
  schedule.seed = seed;
  schedule.theme = std::string(theme.name);
  schedule.brokers = theme.brokers;
  schedule.partitions = dice.Between(1, 5);
  schedule.instances = dice.Between(1, kMaxInstances);
  schedule.lanes = dice.OneIn(3) ? 2 : 1;
  schedule.engine = dice.OneIn(4) ? "exact" : "compact";
  schedule.per_second = dice.Choose({300, 1000, 2500});
  schedule.commit_interval = dice.Choose({absl::Milliseconds(20), absl::Milliseconds(100), absl::Seconds(1)});
  schedule.session_timeout = dice.Choose({absl::Seconds(1), absl::Seconds(2), absl::Seconds(4)});
  schedule.transaction_timeout = dice.Choose({absl::Seconds(2), absl::Seconds(5), absl::Seconds(30)});
  // Not above the transaction's, or the client's requests outlive it.
  schedule.socket_timeout =
      std::min(schedule.transaction_timeout, dice.Choose({absl::Seconds(1), absl::Seconds(4)}));
  schedule.from_the_start = dice.OneIn(3);
  schedule.lasts = dice.Between(absl::Seconds(3), absl::Seconds(6));
  if (theme.expires || dice.OneIn(6)) {
    schedule.horizon = absl::Hours(1);
    // Some eight horizons in all.
    const int64_t records = schedule.per_second * absl::ToInt64Seconds(schedule.lasts);
    schedule.step = absl::Milliseconds(8 * absl::ToInt64Milliseconds(schedule.horizon) / records);
    schedule.copies_within = static_cast<int>(records / 10);
    schedule.wild_per_mille = dice.Choose({0, 10, 200});
  } else {
    schedule.horizon = absl::Hours(24 * 30);
    schedule.step = absl::Milliseconds(1);
  }
  AddFaults(dice, theme, schedule);
  schedule.assignment = dice.Choose({"eager", "eager", "cooperative"});
  AddSnapshots(schedule);
  AddTheRest(schedule);
  AddWildTraffic(schedule);
  AddBacklog(schedule);
  return schedule;
}

std::string Schedule::Outline() const {
  std::string text = absl::StrFormat(
      "%s: %d broker%s, %d partition%s, %d instance%s of %d lane%s, engine %s, horizon %s, %d events/s a "
      "step of %s "
      "apart (%d per mille wild, %d oversized, up to %d copies), commits every %s, timeouts: session %s, "
      "transaction %s, socket %s; "
      "assignment %s%s%s; snapshots %s; "
      "%s for %s%s\n",
      theme, brokers, brokers == 1 ? "" : "s", partitions, partitions == 1 ? "" : "s", instances,
      instances == 1 ? "" : "s", lanes, lanes == 1 ? "" : "s", engine, absl::FormatDuration(horizon),
      per_second, absl::FormatDuration(step), wild_per_mille, oversized_per_mille, most_copies,
      absl::FormatDuration(commit_interval), absl::FormatDuration(session_timeout),
      absl::FormatDuration(transaction_timeout), absl::FormatDuration(socket_timeout), assignment,
      static_members ? ", static members" : "", topic_scope ? ", scope topic" : "", PlaceName(snapshots),
      from_the_start ? "from the start" : "once it flows", absl::FormatDuration(lasts),
      deletes_input ? "; then the input is deleted, and recreated" : "");
  if (backlog_horizons > 0) {
    absl::StrAppendFormat(&text, "  a backlog of %d horizons, in uneven partitions\n", backlog_horizons);
  }
  for (const Fault& fault : faults) {
    absl::StrAppendFormat(
        &text, "  %6.2f s  %s%s%s\n", absl::ToDoubleSeconds(fault.at), FaultName(fault.kind),
        TargetName(fault),
        fault.lasts > absl::ZeroDuration() ? absl::StrCat(", for ", absl::FormatDuration(fault.lasts)) : "");
  }
  return text;
}

}  // namespace lethe::test
