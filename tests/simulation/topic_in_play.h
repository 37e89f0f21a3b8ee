// A topic of a schedule: what is sent, what happens to it, and what is to be expected of it.
#ifndef LETHE_TESTS_SIMULATION_TOPIC_IN_PLAY_H_
#define LETHE_TESTS_SIMULATION_TOPIC_IN_PLAY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/pipeline/report/report.h"
#include "tests/faults/judge.h"
#include "tests/simulation/broker.h"
#include "tests/simulation/figures.h"
#include "tests/simulation/group.h"
#include "tests/simulation/input.h"
#include "tests/simulation/process.h"
#include "tests/simulation/schedule.h"
#include "tests/simulation/world.h"

namespace lethe::simulation {

// Each topic is judged by itself. Not thread-safe.
class TopicInPlay {
 public:
  struct Site {
    World& world;
    Broker& broker;
    Group& group;
    Group* routing_group;  // null: there are no routers
    const Schedule& schedule;
    std::function<void()> on_change;  // of the input
  };
  // Creates the topic with all that is written for it, and begins to send.
  TopicInPlay(const Site& site, int number);

  const TopicNames& names() const { return names_; }
  Input& input() { return input_; }
  bool is_routed() const { return names_.judged != names_.input; }

  // One more, there and in what is written.
  void AddPartition();
  // Deletes below the restart point of each commit.
  void Delete();
  // Deletes some of what a restart needs, or what is not read yet, of one partition. Copies of what is gone
  // may pass then; what was not read makes it stop.
  void DeleteMore(int64_t number);
  // Likewise, all of a partition.
  void DeleteAll();
  // One log loses the end of what was judged, and grows again after so long: it must stop.
  void CutLog(int64_t number, absl::Duration after);
  // Likewise, while all is judged. Returns its partition, or -1 if nothing can be cut.
  int32_t CutLogNow();
  // Beyond where it ended.
  void GrowAgain();
  bool was_cut() const { return cut_.partition >= 0; }
  bool is_there() const { return site_.broker.Find(names_.input) != nullptr; }
  // Of `kind`; `which` of its outputs is by number.
  void TroubleOutput(FaultKind kind, int which, absl::Duration lasts, bool lasts_long);
  // Deletes it, and creates it again.
  void Recreate(absl::Duration after, bool forgets_offsets);
  // Of a format that this version does not know, of another output or id, of a restart point beyond it, or
  // without a word about it.
  void CommitForeign(int64_t kind);
  // Likewise, what must make it stop. False: it cannot be.
  bool StopByCommit(int64_t kind);
  // Whether one of these lasts, so that nothing is to be expected before Repair().
  bool is_in_trouble() const { return troubles_ > 0 || may_need_reset_; }
  void Repair();
  // Whether it may have stopped until an operator resets the group's offsets, while no process runs.
  bool may_need_reset() const { return may_need_reset_; }
  void Reset();
  bool may_be_reset() const {
    return !stops_ && !is_routed() && former_.empty() && is_there() && IsSettled();
  }
  // An operator sets the group forward or back in the log.
  void ResetTo(Dice& dice);
  // The group's offsets are deleted, and perhaps what it has written. Returns whether some of that is there.
  bool LoseOffsets(Dice& dice);
  // Whether the group has committed nothing of it.
  bool has_not_begun() const { return Committed() == -site_.broker.CountPartitions(names_.input); }
  // The group's offsets are those of an earlier commit: all behind that is judged again. False: there is
  // none.
  bool SetBack(Dice& dice);
  // What was judged of a log that had been cut; empty: nothing.
  std::string WhatWasJudgedOfCutLog() const;
  // Whether each commit says of which topic it is: no broker may have answered the question.
  bool has_ids() const;

  // Whether the group has committed all that is to be judged.
  bool IsDone() const;
  // By the groups, of all its partitions, as a measure of progress.
  int64_t Committed() const;

  // What processes report, when all is committed and nothing happens any more. Of a partition that two of
  // them claim nothing is expected.
  void SeeReports(const std::vector<DaemonReport>& reports);
  // After so much of what has happened, a rebuild of a filter is possible.
  void SetRebuilt(bool is_rebuilt) { is_rebuilt_ = is_rebuilt; }
  test::Judgement Judge() const;
  // Whether each record was judged once, and nothing that was judged is lost.
  bool is_judged_once() const {
    return former_.empty() && output_begin_.empty() && forgotten_.empty() && cut_.partition < 0;
  }
  // By the logs and this judgement: what processes should have counted together.
  CountsInLog JudgedCounts(const test::Judgement& judgement) const;
  CountsInLog RoutedCounts() const;

 private:
  // All before the offset is gone.
  void DeleteBefore(int32_t partition, int64_t offset);
  // Whether no transaction is about to commit offsets of it.
  bool IsSettled() const;
  // A former topic of the name, and what the group had committed of it when it was deleted.
  struct Life {
    const Topic* input = nullptr;
    int64_t sendings_begin = 0;
    std::vector<int64_t> committed = {};
  };
  // What the group has judged of a former topic, as far as it came.
  test::Judgement JudgeFormer(const Life& life, int64_t sendings_end) const;
  // Of the output what has passed, without what lethe adds to it.
  std::vector<Record> WithoutAdded(std::vector<Record> output) const;
  // Whether all copies are in the output, once each and tagged.
  void JudgeTagged(test::Judgement& judgement) const;
  // What was deleted before anybody read it.
  void EraseUnread(test::Evidence& evidence) const;
  // Adds when ids are forgotten, and what was reported of those that are held.
  void AddHeld(test::Evidence& evidence) const;
  test::Evidence EvidenceOf(const Topic& input, int64_t sendings_begin, int64_t sendings_end) const;
  // Where the partition stops by policy, or its end.
  int64_t EndOf(int32_t partition) const;
  // Whether a record that is to be judged is in the log from the offset on.
  bool HasRecords(const Log& log, int64_t from, int64_t end) const;
  // Whether the group has committed all of the topic.
  bool IsRead(const Group& group, const std::string& topic) const;
  test::Judgement JudgeRouted() const;
  // Adds the offsets that cannot be read, below what the group has committed.
  void AddUnreadable(const Group& group, const std::string& topic, CountsInLog& counts) const;
  // Records dated later count as those without a time.
  absl::Time LatestTime() const;
  // Whether a partition of an input stood still for so long, with records to read, that the others need not
  // have waited for it: disorder has no bound then.
  bool StoodStill() const;
  bool IsOfPresentTopic(const CommittedOffset& committed) const;
  void LookAtPartitionsSoon();
  test::TopicEnds EndsOf(const std::string& topic) const;
  // Where the last commit of each says that the log is its own; -1: nowhere.
  int64_t LastJudged(int32_t partition) const;
  void BeginLife();
  // Of what was judged since copies were forgotten none passes twice.
  void JudgeSinceForgotten(const test::Evidence& evidence, test::Judgement& judgement) const;
  // By partition, the ids that these sendings, which are all from before the group's present offsets, have
  // passed before a reset: a kept filter or a snapshot may know them.
  std::set<std::pair<int32_t, std::string>> KnownBeforeReset(const std::set<int64_t>& sendings) const;
  // Erases the events with these ids that came before one of them has passed since.
  void EraseKnown(const std::set<std::pair<int32_t, std::string>>& known, test::Evidence& evidence) const;

  const Site site_;
  const bool stops_;
  const TopicNames names_;
  Input input_;
  std::vector<std::function<void()>> repairs_;
  int troubles_ = 0;
  std::vector<Life> former_;
  int64_t sendings_begin_ = 0;  // of the present topic
  bool may_need_reset_ = false;
  bool is_rebuilt_ = true;
  std::map<int32_t, PartitionReport> reported_;
  std::vector<std::string> misreported_;
  // After a reset: where the input and the output that count begin, by partition.
  std::vector<int64_t> input_begin_;
  std::vector<int64_t> output_begin_;
  bool former_counts_ = false;  // what was written before, of the input before, counts, too
  // Copies of what was judged below these offsets may pass, by partition.
  std::map<int32_t, int64_t> forgotten_;
  std::set<std::pair<int32_t, int64_t>> deleted_unread_;  // partitions and offsets
  // The log that was cut: its partition, where it ended, and the next sending then.
  struct Cut {
    int32_t partition = -1;
    int64_t end = 0;
    int64_t sendings = 0;
    bool is_growing = false;
  };
  Cut cut_;
};

}  // namespace lethe::simulation

#endif  // LETHE_TESTS_SIMULATION_TOPIC_IN_PLAY_H_
