// Plays a schedule, and judges what it leaves behind.
#ifndef LETHE_TESTS_FAULTS_RUN_H_
#define LETHE_TESTS_FAULTS_RUN_H_

#include <array>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/faults/judge.h"
#include "tests/faults/schedule.h"
#include "tests/faults/site.h"
#include "tests/faults/snapshots.h"
#include "tests/faults/traffic.h"
#include "tests/support/process.h"

namespace lethe::test {

// A process says this of a snapshot that it could not write.
inline constexpr char kUnwritten[] = "could not save a snapshot of partition ";

// What the processes said of what befell them: that the faults have had an effect.
struct News {
  int64_t aborted = 0;    // transactions, so that their records were judged again
  int64_t fenced = 0;     // producers that were recreated
  int64_t restored = 0;   // partitions that began with a snapshot
  int64_t refused = 0;    // that met one that could not be used
  int64_t unwritten = 0;  // snapshots that could not be written

  News& operator+=(const News& more);
  std::string ToString() const;
};

// One schedule, once. What happens is written to `folder`: events.log, the logs of the processes, and, if
// something is wrong, the topics and the brokers' logs. Thread-compatible.
class Run {
 public:
  Run(const Schedule& schedule, Site& site, std::string program, std::string folder);

  // What is wrong, in words, is in the judgement; an error is a fault of the harness itself.
  absl::StatusOr<Judgement> Play();

  const News& news() const { return news_; }

 private:
  struct Instance {
    std::unique_ptr<Process> process;
    bool wanted = false;  // it is to run when no fault keeps it from that
    bool ending = false;  // it was asked to end
    bool frozen = false;
    int http_port = 0;
    std::string log;
    size_t said_before = 0;  // bytes of the log when it started
    std::unique_ptr<SnapshotShelf> shelf;
    std::optional<FailingCall> broken_disk;
  };
  // What a fault has hit.
  struct Hit {
    int instance = -1;
    Process* process = nullptr;             // to compare only
    std::vector<StoredSnapshot> snapshots;  // that were kept aside
  };

  void Say(const std::string& what);
  void Problem(const std::string& what);
  absl::Status Prepare();
  absl::Status PrepareSnapshots();
  absl::Status StartInstance(int i);
  // Where it saves its filters.
  std::string SnapshotsOf(int i) const;
  absl::Status PlayFaults();
  absl::Status Begin(const Fault& fault, Hit& hit);
  absl::Status BeginOfBroker(const Fault& fault);
  absl::Status AddPartition();
  absl::Status AbortInput();
  absl::Status BeginOfSnapshots(const Fault& fault, Hit& hit);
  absl::Status Finish(const Fault& fault, const Hit& hit);
  // A fault that began late, or whose victim had first to join, lasts until it has had an effect.
  void AwaitBite(const Fault& fault, const Hit& hit);
  absl::Status FinishOfSnapshots(const Fault& fault, const Hit& hit);
  absl::Status Kill(Instance& instance);
  absl::Status StartIfWanted(int i);
  // The first instance from `from` on that has a snapshot which counts, so that something is harmed.
  int AwaitSnapshots(int from);
  absl::Status HarmSnapshots(const Fault& fault, const Hit& hit);
  // The first instance from `from` on that runs, or that does not. -1: there is none.
  int Choose(int from, bool running) const;
  int Running() const;
  absl::Status Terminate(Instance& instance);
  // It was asked to end: waits until it has, and sees that it ended well.
  void AwaitEnd(int i);
  void LookForDeaths();
  absl::Status Drain();
  absl::Status StartTraffic();
  // Ends the traffic, and returns when the group has committed all of it; a problem if it does not.
  absl::Status EndInput();
  absl::Status AwaitCommitted(const std::string& group, const std::string& topic,
                              const std::vector<Record>& records);
  // Reads what is out since the last life.
  absl::Status ReadOutput();
  // Deletes the input when nothing is left to be read of it, and recreates it: what comes then is a life of
  // its own, with ids of the last one, which are new again.
  absl::Status BeginAnotherLife();
  // So many partitions are somebody's.
  int Owned() const;
  absl::StatusOr<std::vector<Record>> ReadSettled(const std::string& topic);
  CountedVerdicts Counted() const;
  void CountNews();
  // What `lethe verify` prints of the topics.
  std::string AskVerify() const;
  void KeepTopics() const;

  const Schedule& schedule_;
  Site& site_;
  const std::string program_;
  const std::string folder_;
  const std::string input_, output_, counters_, totals_, snapshots_, group_;
  const std::string routed_;  // the repartition topic, of Scope::kTopic
  std::ofstream events_;
  absl::Time begin_;
  int partitions_;
  std::array<Instance, kMaxInstances> instances_;
  std::unique_ptr<Traffic> traffic_;
  bool healed_ = false;         // brokers and wires, for good
  bool was_restarted_ = false;  // one that ended of its own, as it may
  std::vector<std::string> problems_;
  Evidence evidence_;  // of the present life of the input
  std::vector<Evidence> past_lives_;
  News news_;
};

}  // namespace lethe::test

#endif  // LETHE_TESTS_FAULTS_RUN_H_
