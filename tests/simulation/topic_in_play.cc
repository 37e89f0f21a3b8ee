#include "tests/simulation/topic_in_play.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "src/pipeline/restore/commit_metadata.h"

namespace lethe::simulation {
namespace {

// The broker has the topic before anything is sent to it.
const std::string& Create(const TopicInPlay::Site& site, const TopicNames& names) {
  for (const std::string& topic : names.written()) site.broker.CreateTopic(topic, site.schedule.partitions);
  for (auto& log : site.broker.CreateTopic(names.input, site.schedule.partitions).logs) {
    log->on_change = site.on_change;
  }
  return names.input;
}

}  // namespace

TopicInPlay::TopicInPlay(const Site& site, int number)
    : site_(site),
      stops_(number == site.schedule.stopping_topic),
      names_(number),
      input_(site.world, site.broker, site.schedule, Create(site, names_)) {}

void TopicInPlay::AddPartition() {
  // The outputs first, so that nothing has to wait.
  for (const std::string& topic : names_.written()) {
    if (site_.broker.Find(topic) != nullptr) site_.broker.AddPartition(topic);
  }
  site_.broker.AddPartition(names_.input);
  site_.world.After(absl::Milliseconds(200), [group = &site_.group] { group->LookAtPartitions(); });
}

void TopicInPlay::Delete() {
  int32_t id = 0;
  for (auto& log : site_.broker.topic(names_.input).logs) {
    const auto metadata = CommitMetadata::Parse(site_.group.CommittedNow(names_.input, id++).metadata);
    if (metadata.ok()) log->DeleteBefore(metadata->restart);
  }
}

void TopicInPlay::TroubleOutput(FaultKind kind, int which, absl::Duration lasts, bool lasts_long) {
  const bool has_counter = site_.schedule.counting != Counting::kNothing && which % 2 > 0;
  const std::string& counted = site_.schedule.counting == Counting::kDeltas ? names_.deltas : names_.totals;
  const std::string topic = has_counter ? counted : names_.output;
  std::function<void()> end;
  if (kind == FaultKind::kRefusedOutput) {
    site_.broker.SetWritable(topic, false);
    end = [this, topic] { site_.broker.SetWritable(topic, true); };
  } else {
    // Totals that are gone are gone.
    if (topic == names_.totals || site_.broker.Find(topic) == nullptr) return;
    site_.broker.Delete(topic);
    end = [this, topic] { site_.broker.CreateTopic(topic, site_.broker.CountPartitions(names_.input)); };
  }
  if (!lasts_long) return site_.world.After(lasts, std::move(end));
  ++troubles_;
  repairs_.push_back(std::move(end));
}

void TopicInPlay::Repair() {
  for (const auto& repair : repairs_) repair();
  repairs_.clear();
  troubles_ = 0;
}

bool TopicInPlay::HasRecords(const Log& log, int64_t from, int64_t end) const {
  for (int64_t at = std::max(from, log.start()); at < end; ++at) {
    const Entry& entry = log.at(at);
    if (entry.kind == Entry::Kind::kRecord && site_.broker.is_committed(entry.transaction)) return true;
  }
  return false;
}

int64_t TopicInPlay::EndOf(int32_t partition) const {
  const Log& log = *site_.broker.FindLog(names_.input, partition);
  const int64_t end = log.stable_end();
  for (int64_t at = 0; stops_ && at < end; ++at) {
    const Entry& entry = log.at(at);
    if (entry.kind == Entry::Kind::kUnreadable) return at;
    if (entry.kind == Entry::Kind::kRecord && site_.broker.is_committed(entry.transaction) &&
        !absl::StrContains(*entry.record.value, "\"id\":")) {
      return at;
    }
  }
  return end;
}

bool TopicInPlay::IsDone() const {
  if (!input_.is_done() || input_.open_transactions() > 0) return false;
  for (int32_t id = 0; const auto& log : site_.broker.topic(names_.input).logs) {
    const int64_t end = EndOf(id);
    const int64_t committed = site_.group.CommittedNow(names_.input, id++).offset;
    // Before it stops, it commits behind the last record, not beyond what comes behind that.
    if (committed < end && (!stops_ || committed < 0 || HasRecords(*log, committed, end))) return false;
  }
  return true;
}

test::TopicEnds TopicInPlay::EndsOf(const std::string& topic) const {
  test::TopicEnds result;
  for (const auto& log : site_.broker.topic(topic).logs) {
    result.stable.push_back(log->stable_end());
    result.end.push_back(log->end());
  }
  return result;
}

test::Judgement TopicInPlay::Judge() const {
  const Broker& broker = site_.broker;
  test::Evidence evidence;
  evidence.horizon = site_.schedule.horizon;
  evidence.latest_time = kBegin + absl::Hours(1) + site_.world.now();
  if (site_.schedule.oversized_of_hundred > 0) evidence.output_takes_bytes = kOutputTakesBytes;
  const Topic& input = broker.topic(names_.input);
  evidence.input = broker.CommittedIn(input);
  evidence.output = broker.Committed(names_.output);
  evidence.output_ends = EndsOf(names_.output);
  evidence.deltas_are_counted = site_.schedule.counting == Counting::kDeltas;
  evidence.totals_are_counted = site_.schedule.counting == Counting::kTotals;
  evidence.deltas = broker.Committed(names_.deltas);
  evidence.delta_ends = EndsOf(names_.deltas);
  evidence.totals = broker.Committed(names_.totals);
  evidence.total_ends = EndsOf(names_.totals);
  for (int32_t p = 0; p < broker.CountPartitions(names_.input); ++p) {
    evidence.committed.push_back(site_.group.CommittedNow(names_.input, p).offset);
    evidence.input_ends.push_back(EndOf(p));
  }
  std::erase_if(evidence.input, [&](const Record& each) {
    return each.offset >= evidence.input_ends[static_cast<size_t>(each.partition)];
  });
  test::Judgement judgement = test::Judge(evidence);
  for (std::string& problem : judgement.problems)
    problem = absl::StrCat("topic ", names_.input, ": ", problem);
  return judgement;
}

}  // namespace lethe::simulation
