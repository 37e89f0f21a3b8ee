// The messages of the two sides of `lethe reconcile`, besides the comparisons of lethe/reconcile.h.
#ifndef LETHE_SRC_CLI_RECONCILE_RECONCILE_MESSAGES_H_
#define LETHE_SRC_CLI_RECONCILE_RECONCILE_MESSAGES_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "lethe/reconcile.h"
#include "src/survey/survey.h"

namespace lethe {

// A message is one of these words (MessageWriter::Word), and what the comment says. I is the initiator, P
// the other; in order:
enum class ReconcileWord : uint64_t {
  kAsk = 1,  // I: ReconcileAsk
  kFacts,    // both: ReconcileFacts. Then for each pass, when its part of the log is read:
  kReady,    // both: from when on its log is whole, Unix milliseconds. Then a comparison.
  // Where records are copied, after each comparison:
  kRecords,  // from the side that has them: AppendRecord() of each
  kEnd,      // from it: how many they were
  kCopied,   // from the side that lacked them: how many it has committed
  kReport,   // both, at the end: SideReport
  kAlive,    // at any time between the others: how many records are read, and of how many
  kFailed,   // instead of any other: why it ends, for people
};

// Times are Unix milliseconds. Compared are the ids of records in [begin_ms, end_ms); an id is missing if the
// other side has it nowhere in [begin_ms - settle_ms, end_ms + settle_ms).
struct ReconcileAsk {
  int64_t begin_ms = 0;
  int64_t end_ms = 0;
  int64_t settle_ms = 0;
  bool to_peer = false;    // whether P gets its missing records
  bool from_peer = false;  // whether I does
  ReconcileMethod method = ReconcileMethod::kAuto;

  // Below 0 there are no records, and brokers understand something else.
  int64_t wide_begin_ms() const { return std::max<int64_t>(begin_ms - settle_ms, 0); }
  int64_t wide_end_ms() const { return end_ms + settle_ms; }
};

struct ReconcileFacts {
  // Each pass reads the whole window of the log once.
  static constexpr int64_t kMostPasses = 1000;

  std::string cluster;
  std::string topic;
  int64_t partitions = 0;
  int64_t passes = 1;  // that its memory needs
};

// The records that one side has and the other lacks.
struct SideReport {
  struct Sample {
    std::string id;  // for people; cut if it is long
    int32_t partition = 0;
    int64_t offset = 0;
    int64_t time_ms = 0;
  };
  static constexpr size_t kBuckets = 24;  // equal parts of the window
  static constexpr size_t kSamples = 5;
  static constexpr size_t kSampleBytes = 200;  // of an id

  ReconcileFacts facts;
  int64_t records = 0;  // compared
  int64_t ids = 0;      // different ones of these
  int64_t without_id = 0;
  int64_t without_time = 0;
  int64_t emptied = 0;    // partitions with all records deleted
  int64_t only = 0;       // ids that the other side lacks
  int64_t unsettled = 0;  // those at the edges of the window, which are not called missing
  int64_t first_ms = 0;   // of `only`
  int64_t last_ms = 0;
  std::vector<int64_t> by_partition;  // of `only`
  std::vector<int64_t> by_time;       // of `only`, kBuckets
  std::vector<Sample> samples;        // the earliest of `only`
  int64_t copied = 0;                 // of `only`, to the other side
  int64_t gone = 0;                   // of `only`, deleted here before they were copied
};

// False: it is no such message, or has a text, a count or a time that no topic has, and `to` may be anything
// of its type. What is read takes no more memory than a few times the message.
std::string Encode(const ReconcileAsk& ask);
bool Decode(absl::string_view bytes, ReconcileAsk& to);
std::string Encode(const ReconcileFacts& facts);
bool Decode(absl::string_view bytes, ReconcileFacts& to);
std::string Encode(const SideReport& report);
bool Decode(absl::string_view bytes, SideReport& to);
std::string Encode(const std::vector<int64_t>& numbers);
bool Decode(absl::string_view bytes, std::vector<int64_t>& to);

void AppendRecord(const SurveyRecord& record, std::string& bytes);
// Calls `take` for each; views into `bytes`. False if it ends early or is none.
bool ReadRecords(absl::string_view bytes, const std::function<bool(const SurveyRecord&)>& take);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_RECONCILE_RECONCILE_MESSAGES_H_
