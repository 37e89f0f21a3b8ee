#include "tests/simulation/schedule.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/simulation/dice.h"

namespace lethe::simulation {
namespace {

struct KindText {
  FaultKind kind;
  const char* name;
  absl::Duration longest;  // that it lasts
  bool has_target = true;
  bool has_number = false;
  bool has_topic = false;
  bool may_last = false;
};

const KindText& TextOf(FaultKind kind) {
  using enum FaultKind;
  static const KindText kTexts[] = {
      {kKill, "is killed", absl::Seconds(3)},
      {kKillAtCall, "is killed at a call", absl::Seconds(3), true, true},
      {kEnd, "is asked to end", absl::Seconds(3)},
      {kFreeze, "stands still", absl::Seconds(8)},
      {kStall, "stalls, and is removed from the group", absl::Seconds(2)},
      {kJoin, "joins", absl::ZeroDuration()},
      {kLeave, "leaves", absl::ZeroDuration()},
      {kExpel, "is expelled from the group", absl::ZeroDuration()},
      {kCut, "is cut off from the brokers", absl::Seconds(6)},
      {kLoseAnswers, "loses the answers to commits", absl::ZeroDuration(), true, true},
      {kRefuseCommits, "has commits refused", absl::ZeroDuration(), true, true},
      {kLateRequests, "has requests that come late or twice, and answers that are lost", absl::Seconds(6)},
      {kDamageSnapshots, "finds its snapshots damaged", absl::ZeroDuration()},
      {kLoseSnapshots, "finds its snapshots lost", absl::ZeroDuration()},
      {kAway, "no broker answers", absl::Seconds(4), false},
      {kSlowMarkers, "the ends of transactions reach the logs late", absl::Seconds(4), false},
      {kBrokerClock, "the brokers' clocks jump ahead", absl::ZeroDuration(), false},
      {kWallClock, "the clocks of all processes jump", absl::ZeroDuration(), false, true},
      {kAddTopic, "one more topic comes", absl::ZeroDuration(), false},
      {kAddPartition, "gets one more partition", absl::ZeroDuration(), false, false, true},
      {kRetention, "loses what no restart needs", absl::ZeroDuration(), false, false, true},
      {kDeleteMore, "loses what a restart needs, or what is not read yet", absl::ZeroDuration(), false, true,
       true},
      {kCutLog, "has a log that loses its end, and grows again", absl::Seconds(4), false, true, true},
      {kMissingOutput, "loses an output", absl::Seconds(8), false, true, true, true},
      {kRefusedOutput, "has an output that refuses", absl::Seconds(8), false, true, true, true},
      {kRecreate, "is deleted, and created again", absl::Seconds(6), false, true, true},
      {kForeignCommit, "has a commit of another program", absl::ZeroDuration(), false, true, true},
      {kAbortedInput, "has an aborted transaction", absl::ZeroDuration(), false, false, true},
      {kOpenInput, "has an open transaction", absl::Seconds(5), false, false, true},
      {kBadClock, "has records that are dated wrongly", absl::Seconds(2), false, false, true},
      {kFastClock, "has records that are dated ahead", absl::Seconds(2), false, true, true},
      {kUnreadable, "has a batch that cannot be read", absl::ZeroDuration(), false, true, true},
  };
  return *std::find_if(std::begin(kTexts), std::end(kTexts),
                       [&](const KindText& each) { return each.kind == kind; });
}

Fault MakeFault(Dice& dice, const Schedule& schedule) {
  using enum FaultKind;
  Fault fault;
  fault.kind = dice.Choose({kKill,          kKillAtCall,   kKillAtCall,    kKillAtCall,
                            kEnd,           kFreeze,       kFreeze,        kStall,
                            kStall,         kJoin,         kLeave,         kExpel,
                            kCut,           kLoseAnswers,  kRefuseCommits, kDamageSnapshots,
                            kLoseSnapshots, kAway,         kSlowMarkers,   kAddPartition,
                            kRetention,     kAbortedInput, kOpenInput,     kBadClock,
                            kUnreadable,    kUnreadable,   kUnreadable});
  // What one topic has, and others must not feel.
  if (dice.OneIn(schedule.topics > 1 ? 3 : 12)) {
    fault.kind =
        dice.Choose({kAddTopic, kMissingOutput, kRefusedOutput, kRecreate, kRecreate, kForeignCommit});
  }
  fault.at = dice.Between(absl::ZeroDuration(), schedule.lasts);
  const absl::Duration longest = TextOf(fault.kind).longest;
  // Most are short beside the timeouts, and some are not.
  fault.lasts = dice.Between(absl::ZeroDuration(), dice.OneIn(2) ? longest : longest / 4);
  fault.target = static_cast<int>(dice.Below(4));
  fault.topic = static_cast<int>(dice.Below(kMostTopics));
  fault.number = fault.kind == kKillAtCall ? dice.Between(1, dice.Choose({5, 40, 200})) : dice.Between(1, 3);
  return fault;
}

// By dice of its own: the other schedules stay as they were without it.
void SetScope(Schedule& schedule) {
  Dice dice(schedule.seed ^ 0x70b1c5);
  if (schedule.stopping_topic >= 0 || !dice.OneIn(5)) return;
  schedule.routed_topics = static_cast<int>(dice.Between(1, schedule.topics));
  schedule.ways = static_cast<int>(dice.Between(1, 2));
  if (schedule.horizon >= absl::Hours(24) || dice.OneIn(3)) return;
  schedule.is_backlog = true;
  if (dice.OneIn(2)) schedule.wild_of_hundred = 0;
  schedule.lasts = dice.Between(absl::Milliseconds(300), absl::Seconds(3));
}

// What was added later, by dice of its own, too.
void AddFault(Schedule& schedule, uint64_t number, FaultKind kind, int one_in) {
  Dice dice(schedule.seed ^ 0xadd5 ^ number << 16);
  if (!dice.OneIn(one_in)) return;
  Fault fault;
  fault.kind = kind;
  fault.at = dice.Between(absl::ZeroDuration(), schedule.lasts);
  const absl::Duration longest = TextOf(kind).longest;
  fault.lasts = dice.Between(absl::ZeroDuration(), dice.OneIn(2) ? longest : longest / 4);
  fault.target = static_cast<int>(dice.Below(4));
  fault.topic = static_cast<int>(dice.Below(kMostTopics));
  fault.number = dice.Between(1, 8);
  schedule.faults.push_back(fault);
}

void AddFaults(Schedule& schedule) {
  using enum FaultKind;
  uint64_t number = 0;
  for (const auto& [kind, one_in] : {std::pair(kLateRequests, 3),
                                     {kDeleteMore, 12},
                                     {kCutLog, 24},
                                     {kForeignCommit, 24},
                                     {kFastClock, 12},
                                     {kBrokerClock, 16},
                                     {kWallClock, 12}}) {
    AddFault(schedule, ++number, kind, one_in);
  }
}

Epilogue ChooseEpilogue(const Schedule& schedule) {
  using enum Epilogue;
  Dice dice(schedule.seed ^ 0xe91109);
  if (!dice.OneIn(8)) return kNone;
  return dice.Choose({kCutLogUnderLife, kReset, kResetUnderLife, kSetBack, kForeignCommit, kTwin});
}

const char* EpilogueText(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::kNone:
      return "";
    case Epilogue::kCutLog:
      return "; in the end a log is cut";
    case Epilogue::kCutLogUnderLife:
      return "; in the end a log is cut while processes stand still";
    case Epilogue::kLoseOffsets:
      return "; in the end offsets are deleted";
    case Epilogue::kReset:
      return "; in the end offsets are reset";
    case Epilogue::kResetUnderLife:
      return "; in the end offsets are reset while processes stand still";
    case Epilogue::kSetBack:
      return "; in the end offsets go back to former commits while processes stand still";
    case Epilogue::kForeignCommit:
      return "; in the end another lethe commits while processes stand still";
    case Epilogue::kTwin:
      return "; in the end two processes run as one instance";
    case Epilogue::kDeleteUnread:
      return "; in the end unread records are deleted, and nothing follows";
  }
  return "";
}

// What comes together by chance too rarely.
void AddRareMeetings(Schedule& schedule) {
  Dice dice(schedule.seed ^ 0x7a4e);
  if (dice.OneIn(25)) {
    // A topic is created again when its members have noticed, and its offsets are forgotten: its filters may
    // still be kept where it is assigned.
    schedule.routed_topics = 0;
    schedule.is_backlog = false;
    schedule.instances = 1;
    schedule.faults.push_back({.kind = FaultKind::kRecreate,
                               .at = dice.Between(schedule.lasts / 2, schedule.lasts),
                               .lasts = dice.Between(absl::Seconds(2), absl::Seconds(6)),
                               .topic = static_cast<int>(dice.Below(schedule.topics)),
                               .number = 2});
  } else if (dice.OneIn(25) && schedule.stopping_topic < 0) {
    // Routed topics of which some have no memory at first.
    schedule.routed_topics = schedule.topics;
    schedule.filters = static_cast<int>(dice.Between(1, schedule.topics));
  }
}

// All topics have the same options, as patterns want it; and none is gone, so that a stranger could have its
// place as if it had never been.
void AddStrangers(Schedule& schedule) {
  Dice dice(schedule.seed ^ 0x57a6e);
  const bool may_be = schedule.routed_topics == 0 && schedule.stopping_topic < 0 &&
                      std::none_of(schedule.faults.begin(), schedule.faults.end(),
                                   [](const Fault& each) { return each.kind == FaultKind::kRecreate; });
  if (dice.OneIn(6) && may_be) schedule.strangers = static_cast<int>(dice.Between(1, 3));
}

const char* PlaceText(SnapshotPlace place) {
  return place == SnapshotPlace::kNowhere  ? "no snapshots"
         : place == SnapshotPlace::kOfEach ? "snapshots of each instance"
                                           : "snapshots that all share";
}

// Stream time follows a burst closely, and a copy of the burst before may be just within the horizon.
void AddSilences(Schedule& schedule) {
  Dice dice(schedule.seed ^ 0x51e7ce);
  if (schedule.horizon >= absl::Hours(24) || dice.OneIn(2)) return;
  schedule.silence = schedule.horizon * dice.Choose({14, 15, 16, 18, 24}) / 16;
  schedule.step = schedule.horizon / 4000;
  // Eight horizons at most.
  const auto bursts = static_cast<int>(8 * schedule.horizon / schedule.silence);
  schedule.burst =
      std::max(static_cast<int>(dice.Between(60, 150)) * schedule.partitions, schedule.records / bursts + 1);
  schedule.copies_within = schedule.burst;
}

// What the processes are told beside that, by dice of their own again.
void SetOptions(Schedule& schedule) {
  Dice dice(schedule.seed ^ 0x0b7105);
  schedule.keeps_places = schedule.has_static_members && dice.OneIn(3);
  // A stranger's topic would be refused where it must be told from another.
  schedule.accepts_output = dice.OneIn(2) || schedule.strangers > 0;
  schedule.skips_deleted = dice.OneIn(3);
  // A replay would stop at what cannot be read, too.
  schedule.stops_at_short =
      dice.OneIn(4) && std::none_of(schedule.faults.begin(), schedule.faults.end(),
                                    [](const Fault& each) { return each.kind == FaultKind::kUnreadable; });
  schedule.names_input = dice.OneIn(6);
  schedule.is_exact = dice.OneIn(6);
  const bool resets = schedule.epilogue == Epilogue::kReset || schedule.epilogue == Epilogue::kResetUnderLife;
  if (schedule.stops_at_short && resets) schedule.epilogue = Epilogue::kNone;
  if (schedule.epilogue == Epilogue::kNone && dice.OneIn(20) && schedule.strangers == 0) {
    schedule.epilogue = Epilogue::kLoseOffsets;
    schedule.accepts_output = false;
  }
}

// Likewise, of what came later.
void SetMoreOptions(Schedule& schedule) {
  Dice dice(schedule.seed ^ 0x30f7);
  if (schedule.horizon < absl::Hours(24) && dice.OneIn(4)) schedule.past_of_hundred = dice.Choose({55, 90});
  if (schedule.past_of_hundred > 0 && dice.OneIn(2)) {
    // Before stream time begins, so many records fit into a horizon that an id which passes early is
    // forgotten where it is known by its own time, and comes again.
    schedule.is_past_first = true;
    schedule.burst = 0;
    schedule.step = schedule.horizon / 300;
    schedule.copies_of_ten = 6;
    schedule.copies_within = 200;
    schedule.snapshots = SnapshotPlace::kNowhere;
    schedule.faults.push_back({.kind = FaultKind::kKill,
                               .at = dice.Between(schedule.lasts / 4, schedule.lasts / 2),
                               .lasts = dice.Between(absl::ZeroDuration(), absl::Seconds(1))});
  }
  schedule.renews = dice.OneIn(6);
  // Whether one that is refused was a copy is not known.
  schedule.tags = schedule.oversized_of_hundred == 0 && dice.OneIn(6);
  if (schedule.epilogue == Epilogue::kNone && dice.OneIn(30)) {
    schedule.epilogue = Epilogue::kDeleteUnread;
    schedule.skips_deleted = true;
    schedule.stops_at_short = false;
  }
}

}  // namespace

bool IsOfProcess(FaultKind kind) { return TextOf(kind).has_target && kind != FaultKind::kJoin; }

std::string FaultText(const Fault& fault) {
  const KindText& text = TextOf(fault.kind);
  return absl::StrCat(text.has_target  ? absl::StrCat("instance ", fault.target, " ")
                      : text.has_topic ? absl::StrCat("topic ", fault.topic, " ")
                                       : "",
                      text.name, text.has_number ? absl::StrCat(" (", fault.number, ")") : "",
                      text.may_last && LastsLong(fault) ? ", for good"
                      : fault.lasts > absl::ZeroDuration() && text.longest > absl::ZeroDuration()
                          ? absl::StrCat(", for ", absl::FormatDuration(fault.lasts))
                          : "");
}

std::string Schedule::Story() const {
  std::string text = absl::StrCat(
      "seed ", seed, ": ", topics, " topics of ", partitions, " partitions, ", instances, " instances of ",
      lanes, " lanes, ",
      routed_topics > 0 ? absl::StrCat(routed_topics, " of the topics routed, of ", ways, " inputs each",
                                       is_backlog ? " with a backlog, " : ", ")
                        : "",
      filters > 0 ? absl::StrCat("with memory for ", filters, " filters, ") : "",
      is_cooperative ? "cooperative" : "eager",
      !has_static_members ? ""
      : keeps_places      ? ", static members that keep their places"
                          : ", static members",
      is_exact ? ", exact" : "", renews ? ", copies renew" : "", tags ? ", copies tagged" : "",
      shards > 1 ? absl::StrCat(", ", shards, " shards") : "", names_input ? ", inputs named" : "",
      accepts_output ? "" : ", outputs begin empty", skips_deleted ? ", deleted records are skipped" : "",
      stops_at_short ? ", a short history stops" : "", "; ", records, " records each in ",
      absl::FormatDuration(lasts), ", a step of ", absl::FormatDuration(step), " apart",
      burst > 0 ? absl::StrCat(", in bursts of ", burst, " every ", absl::FormatDuration(silence)) : "",
      ", horizon ", absl::FormatDuration(horizon), "; ", copies_of_ten, " of ten are copies, of the last ",
      copies_within, "; of a hundred ", wild_of_hundred, " have wild times, ",
      past_of_hundred > 0
          ? absl::StrCat(past_of_hundred, " are of the past ", is_past_first ? "at first, " : "for a while, ")
          : "",
      without_id_of_hundred, " no id, ", oversized_of_hundred, " are too large",
      names_refused ? " (named)" : "",
      counting == Counting::kNothing  ? ""
      : counting == Counting::kDeltas ? "; counted as deltas"
                                      : "; counted as totals",
      "; commits each ", absl::FormatDuration(commit_interval), ", timeouts: session ",
      absl::FormatDuration(session_timeout), ", transaction ", absl::FormatDuration(transaction_timeout),
      "; ", PlaceText(snapshots),
      skew == absl::ZeroDuration() ? "" : absl::StrCat("; clocks differ by ", absl::FormatDuration(skew)),
      stopping_topic < 0 ? "" : absl::StrCat("; topic ", stopping_topic, " stops where it may"),
      strangers > 0 ? absl::StrCat("; ", strangers, " topics of strangers") : "", EpilogueText(epilogue),
      are_brokers_old ? "; old brokers" : "", "\n");
  for (const Fault& fault : faults) {
    absl::StrAppendFormat(&text, "%10.6f  %s\n", absl::ToDoubleSeconds(fault.at), FaultText(fault));
  }
  return text;
}

bool Schedule::is_list() const {
  return topics > 1 || strangers > 0 || std::any_of(faults.begin(), faults.end(), [](const Fault& each) {
           return each.kind == FaultKind::kAddTopic;
         });
}

Schedule MakeSchedule(uint64_t seed) {
  Dice dice(seed ^ 0x51e77e);
  Schedule schedule;
  schedule.seed = seed;
  schedule.topics = dice.OneIn(2) ? 1 : static_cast<int>(dice.Between(2, 3));
  schedule.partitions = static_cast<int>(dice.Between(1, schedule.topics > 1 ? 2 : 4));
  schedule.instances = static_cast<int>(dice.Between(1, 3));
  schedule.lanes = dice.OneIn(4) ? 2 : 1;
  schedule.is_cooperative = dice.OneIn(2);
  // Not both: a static member that restarts between two rounds of a cooperative rebalance gets its place back
  // without a round, and what it was to give away has no owner.
  schedule.has_static_members = dice.OneIn(4) && !schedule.is_cooperative;
  schedule.commit_interval =
      dice.Choose({absl::ZeroDuration(), absl::Milliseconds(20), absl::Milliseconds(100), absl::Seconds(1)});
  schedule.session_timeout = dice.Choose({absl::Seconds(1), absl::Seconds(2), absl::Seconds(4)});
  schedule.transaction_timeout = dice.Choose({absl::Seconds(1), absl::Seconds(3), absl::Seconds(10)});
  // lethe refuses the shortest one with the longest interval.
  if (schedule.transaction_timeout <= schedule.commit_interval)
    schedule.transaction_timeout = absl::Seconds(3);
  schedule.lasts = dice.Between(absl::Seconds(1), absl::Seconds(6));
  schedule.copies_of_ten = dice.Choose({1, 3, 6});
  if (dice.OneIn(4)) {
    // Time goes by: some eight horizons.
    schedule.partitions = std::min(schedule.partitions, schedule.topics > 1 ? 1 : 2);
    schedule.records = static_cast<int>(dice.Between(300, 600)) * schedule.partitions;
    // In the larger one stream time is hours behind the last record.
    schedule.horizon = dice.Choose({absl::Hours(1), absl::Hours(6)});
    schedule.step = 8 * schedule.horizon / schedule.records;
    schedule.copies_within = schedule.records / dice.Choose({4, 10});
    schedule.wild_of_hundred = dice.Choose({0, 1, 20});
  } else {
    schedule.records = static_cast<int>(dice.Between(10, 120)) / schedule.topics;
    schedule.horizon = absl::Hours(24);
    schedule.step = absl::Milliseconds(1);
    schedule.copies_within = dice.Choose({5, 100});
  }
  if (dice.OneIn(4)) schedule.without_id_of_hundred = 5;
  if (dice.OneIn(6)) {
    schedule.oversized_of_hundred = dice.Choose({1, 10});
    schedule.names_refused = dice.OneIn(2);
  }
  schedule.counting =
      dice.Choose({Counting::kNothing, Counting::kNothing, Counting::kDeltas, Counting::kTotals});
  schedule.snapshots = dice.Choose(
      {SnapshotPlace::kNowhere, SnapshotPlace::kNowhere, SnapshotPlace::kOfEach, SnapshotPlace::kOfAll});
  schedule.skew = dice.Choose({absl::ZeroDuration(), absl::Minutes(-20), absl::Minutes(20)});
  schedule.snapshots_every = dice.Choose({absl::Milliseconds(100), absl::Seconds(1)});
  schedule.epilogue = dice.OneIn(8) ? Epilogue::kCutLog : ChooseEpilogue(schedule);
  if (dice.OneIn(5)) {
    const int all = schedule.topics * schedule.partitions;
    schedule.filters = static_cast<int>(dice.Between(std::max(1, all / 2), all));
  }
  if (schedule.topics > 1 && dice.OneIn(6)) {
    schedule.stopping_topic = static_cast<int>(dice.Below(schedule.topics));
    schedule.without_id_of_hundred = 5;
  }
  SetScope(schedule);
  for (int64_t count = dice.Between(0, 6); count > 0; --count) {
    schedule.faults.push_back(MakeFault(dice, schedule));
  }
  AddFaults(schedule);
  AddRareMeetings(schedule);
  AddStrangers(schedule);
  AddSilences(schedule);
  SetOptions(schedule);
  SetMoreOptions(schedule);
  schedule.are_brokers_old = Dice(seed ^ 0x391).OneIn(2);
  std::stable_sort(schedule.faults.begin(), schedule.faults.end(),
                   [](const Fault& a, const Fault& b) { return a.at < b.at; });
  return schedule;
}

}  // namespace lethe::simulation
