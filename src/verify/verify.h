// Judges from two logs whether each event of the input came through to the output once. Exact: it has no
// filter in it, and shares nothing with the pipeline but the definition of stream time.
#ifndef LETHE_SRC_VERIFY_VERIFY_H_
#define LETHE_SRC_VERIFY_VERIFY_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "src/record/record_reader.h"
#include "src/record/schema_source.h"
#include "src/stage/stream_time.h"
#include "src/survey/survey.h"

namespace lethe {

// What lethe was told to do.
struct VerifyRules {
  IdSpec id;
  bool topic_scope = false;  // ids are unique in all partitions together; else in each
  absl::Duration horizon;    // a copy that comes within it must not pass
  absl::Duration window;     // one that comes after it must pass; between the two, either is right
  bool renew = false;        // a copy counts as the first
  double fpp = 0;
  enum class Fate { kWritten, kTagged, kDiverted, kDropped };
  Fate copies = Fate::kDropped;
  Fate without_id = Fate::kWritten;
  Fate malformed = Fate::kWritten;
  int64_t max_output_bytes = INT64_MAX;  // the output may reject a record whose key and value are larger
  std::string source_header;             // names the input in each output record; empty: none does
  bool ignores_time = false;             // the output has times of its own
  absl::Time latest = absl::InfiniteFuture();  // a record dated later counts as one without a time
};

// Ids are judged if their hash is in the range, so that memory stays bounded.
struct HashRange {
  uint64_t first = 0;
  uint64_t last = UINT64_MAX;
};

// A partition of one of the inputs, which are numbered one after the other.
struct VerifiedInput {
  static constexpr int64_t kNotKnown = -1;

  std::string topic;
  int32_t partition = 0;
  int64_t read_from = 0;
  // All records from this stream time on were read; INT64_MAX: retention has taken some, so from the time of
  // the first one. Of no effect if all of the log was read.
  int64_t known_since_ms = INT64_MAX;
  int64_t known_from = 0;         // retention may have deleted records before it while they were read
  int64_t judged_from = 0;        // records before it serve as history alone
  int64_t committed = INT64_MAX;  // what comes from here on is not judged yet; kNotKnown: the output tells
  int64_t origin = 0;             // the group began there, or was reset to it
  std::vector<int64_t> undeliverable = {};  // ascending offsets that the group has noted
};

struct VerifiedOutput {
  int64_t read_from = 0;
  int64_t known_from = 0;  // as of an input
  int64_t judged_from = 0;
  bool is_cut = false;  // retention may have deleted records of the time that was read
};

struct VerifyBounds {
  std::vector<VerifiedInput> inputs;
  std::vector<VerifiedOutput> outputs;
  // With topic scope: records from this stream time on are not judged yet, wherever they are.
  int64_t judged_until_ms = INT64_MAX;
};

enum class VerifyKind {
  kLost,                 // in the input, and neither it nor a copy is in the output
  kRepeated,             // in the output again, within the horizon
  kForeign,              // in the output, and not in the input
  kChanged,              // key, value, headers or time differ
  kOutOfOrder,           // in the output after a record that follows it in the input
  kInSeveralPartitions,  // ids that passed in another partition, too, within the horizon
  kUndeliverable,        // the output rejects it: on_undeliverable
  kUndecided,            // the logs lack what tells
};
inline constexpr std::array<absl::string_view, 8> kVerifyKinds = {
    "lost",          "repeated", "foreign", "changed", "out_of_order", "in_several_partitions",
    "undeliverable", "undecided"};

struct VerifyExample {
  bool is_input = false;  // the place is of the input, else of the output
  int32_t partition = 0;  // as numbered
  int64_t offset = 0;
  int64_t time_ms = 0;
  std::optional<int64_t> input_offset = std::nullopt;  // of what it should be, if the place is of the output
};

// Of the judged share, and of the records from `judged_from` on.
struct VerifyReport {
  static constexpr size_t kExamples = 100;  // of each kind, the earliest
  // So many dropped records of one id that differ make it one that different events share, as of
  // SharedIdWatch: retries, whose sending times differ, are fewer.
  static constexpr int64_t kManyDiffering = 100;

  int64_t input_records = 0;
  int64_t output_records = 0;
  int64_t passed = 0;
  int64_t copies = 0;  // that did not pass, or are tagged or diverted
  int64_t late = 0;    // of these, from between horizon and window, or later after a restart or silence
  int64_t without_id = 0;
  int64_t malformed = 0;
  int64_t not_yet = 0;          // neither judged by the group nor in the output
  int64_t before_begin = 0;     // from before the group's beginning, and no copy of them is in the output
  int64_t written_twice = 0;    // of the repeated: in the output more often than in the input
  int64_t lost_without_id = 0;  // of the lost: no false positive explains them
  int64_t lost_skipped = 0;     // the same: the group's offset was set to behind them
  int64_t equal_in_several_partitions = 0;  // of the ids in several partitions: key and value are equal, too
  int64_t passed_after_horizon = 0;         // of the passed: their id passed longer ago than the horizon
  int64_t differing = 0;       // of the copies that were dropped: key or value differ from what passed
  int64_t with_shared_id = 0;  // of these: of an id that has kManyDiffering, and no more others
  std::array<int64_t, kVerifyKinds.size()> counts = {};
  std::array<std::vector<VerifyExample>, kVerifyKinds.size()> examples = {};

  int64_t count(VerifyKind kind) const { return counts[static_cast<size_t>(kind)]; }
  void Add(VerifyKind kind, const VerifyExample& example);
  VerifyReport& operator+=(const VerifyReport& more);

  // Of the lost, those that may be false positives.
  int64_t lost_by_id() const { return count(VerifyKind::kLost) - lost_without_id - lost_skipped; }
  // How many lost records the target explains, at most, but for one run in a hundred.
  int64_t AllowedLosses(double fpp) const;
  // More than a tenth of the records has no id, and was not deduplicated.
  bool lacks_ids() const { return 10 * (without_id + malformed) > input_records; }
  // The id is probably one that different events share.
  bool has_doubtful_ids() const {
    return with_shared_id > 0 || (differing >= kManyDiffering && 2 * differing > passed + copies);
  }
  enum class Outcome { kHolds, kBroken, kUndecided };
  Outcome OutcomeFor(double fpp) const;
};

// One pass over the logs. Records of one partition come in the order of their offsets. Not thread-safe.
class Verifier {
 public:
  static constexpr int64_t kBytesOfRecord = 41;  // of the judged share, of either log

  // `inputs`: the partitions in their order, without `committed` and later knowledge. `seed` is a secret
  // of this run, and the same in all passes. `expected`: records of the inputs in the range, to make room
  // for.
  Verifier(const VerifyRules& rules, const std::vector<VerifiedInput>& inputs, int32_t output_partitions,
           SchemaSource* schemas, uint64_t seed, HashRange range, int64_t expected = 0);

  void AddInput(int32_t partition, const SurveyRecord& record);  // the partition as numbered
  void AddOutput(const SurveyRecord& record);
  void AddDiverted(const SurveyRecord& record);

  // Once, at the end.
  VerifyReport Judge(const VerifyBounds& bounds);

 private:
  static constexpr int kPayloadShift = 44;  // the bits of a content from there on are of key and value alone

  enum State : uint64_t {
    kWritten = 1,         // in the output
    kMarked = 2,          // tagged or diverted as a copy, or diverted by its policy
    kWithoutId = 4,       // not judged by an id
    kMalformed = 8,       // the same, and broken
    kUndeliverable = 16,  // diverted as such, or too large
    kRepeated = 32,
  };
  struct Input {
    uint64_t id;  // hash
    uint64_t content;
    int64_t time_ms;  // stream time when it came
    int64_t
        own_ms;  // the same; of a record that was ahead of it, the latest timestamp of it and of two before
    uint64_t offset : 44;
    uint64_t partition : 14;
    uint64_t state : 6;

    static Input At(uint64_t id, int32_t partition, uint64_t content, int64_t offset, int64_t time_ms = 0,
                    uint64_t state = 0) {
      Input input = {id, content, time_ms, time_ms, 0, 0, 0};
      input.offset = static_cast<uint64_t>(offset) & ((uint64_t{1} << 44) - 1);
      input.partition = static_cast<uint64_t>(partition) & ((uint64_t{1} << 14) - 1);
      input.Set(state);
      return input;
    }
    void Set(uint64_t bits) { state = (state | bits) & ((uint64_t{1} << 6) - 1); }
    uint64_t Place() const { return uint64_t{partition} << 44 | offset; }
    bool is_used() const { return (state & (kWritten | kMarked)) != 0; }
    // The order in which records are looked for.
    auto Key() const { return std::tuple(id, uint64_t{partition}, content, uint64_t{offset}); }
  };
  struct Output {
    uint64_t id;
    uint64_t content;  // once it was looked for: the place of the input's record, or none
    int64_t time_ms;
    int64_t place;  // twice the offset, and one more if it is tagged

    int64_t offset() const { return place / 2; }
    bool is_tagged() const { return place % 2 != 0; }
  };
  struct Diverted {
    uint64_t id;
    int32_t partition;
    int64_t offset;
    bool is_undeliverable;
  };
  struct Identity {
    uint64_t id = 0;
    uint64_t content = 0;
    uint64_t state = 0;
    bool is_tagged = false;
  };
  struct Run {
    size_t begin = 0;
    size_t end = 0;
  };
  // What is known of an input partition.
  struct Known {
    int64_t since_ms = INT64_MIN;       // all records that the group has judged are
    int64_t read_since_ms = INT64_MIN;  // all records are; the output may have some of before
    bool is_cut = false;                // there were others before
    // Whether these were written is out of sight.
    int64_t unseen_before = 0;  // an offset
    int64_t unseen_until_ms = INT64_MIN;
    int64_t seen_since_ms = INT64_MIN;  // of the first one that was, if the output is cut
    // Records before the group's beginning, or reset, that are in the output for certain: the first and the
    // last. An earlier life of the group has written them.
    int64_t earlier_from = INT64_MAX;
    int64_t earlier_to = INT64_MAX;
    bool may_have_earlier = false;  // the output has records that were not read
  };
  // The last timestamps of an input partition, and of its records (places in inputs_) those since then, and
  // those that stream time has not come to: since how many timestamps.
  struct Recent {
    std::array<int64_t, 3> times_ms = {kNoStreamTime, kNoStreamTime, kNoStreamTime};
    std::vector<size_t> untimed;
    std::vector<std::pair<size_t, size_t>> ahead;
  };
  // Of an id, up to the record that is judged.
  struct History {
    const Input* seen = nullptr;    // its last record
    const Input* passed = nullptr;  // the last that passed
    int64_t begun_ms = 0;           // since when there was a record in every window
  };

  Identity IdentityOf(const SurveyRecord& record, int32_t partition, bool is_output);
  uint64_t ContentOf(const SurveyRecord& record, bool is_output, bool& is_tagged) const;
  bool IsInRange(uint64_t id) const { return id >= range_.first && id <= range_.last; }
  void SortInputs();
  Run FindRun(uint64_t id, int32_t partition, uint64_t first, uint64_t last) const;
  void Match(int32_t partition);
  size_t MatchOne(const Output& output, int32_t partition, int64_t next, bool is_first, bool is_judged);
  size_t Choose(const Run& equal, const Run& all, int64_t next, bool is_tagged);
  const Input* LastPass(const Run& equal, const Run& all, size_t chosen) const;
  void MarkDiverted();
  void GuessCommitted();
  // A record of the partition has moved its stream time to `now_ms`.
  void NoteTime(Recent& recent, int64_t own_ms, int64_t now_ms);
  // Whether the record is judged by its own time, at stream time `now_ms`.
  bool IsAhead(const Input& input, int64_t now_ms) const {
    return input.own_ms > now_ms + absl::ToInt64Milliseconds(rules_.horizon / 16);
  }
  int64_t PassedAt(const Input& input) const {
    return IsAhead(input, input.time_ms) ? input.own_ms : input.time_ms;
  }
  bool IsWithinHorizon(const Input& before, const Input& input) const;
  // The record may be as young as this, and as old as it was.
  void SetOwn(Input& input, int64_t latest_ms);
  int64_t EarliestOwn(const Input& input) const;
  // Whether a filter may still know the id of `before`.
  bool MayBeKept(const Input* before, const Input& input) const;
  static bool HasEqualPayload(const Input& x, const Input& y) {
    return x.content >> kPayloadShift == y.content >> kPayloadShift;
  }
  bool IsJudged(const Input& input) const;
  void FindEarlier();
  bool IsBeforeBegin(const Input& input) const;
  // A record of before the group's beginning that is not in the output, and no copy of it is.
  void JudgeBeforeBegin(const Input& input, bool is_judged);
  bool IsKnown(const Input& input, bool is_judged);
  bool IsOutOfSight(const Input& input) const;
  bool IsUndeliverable(const Input& input) const;
  void JudgeWithoutId(const Input& input);
  void JudgeById(const Run& group);
  void JudgeInOrder(absl::Span<Input* const> order);
  void CountInSeveralPartitions();
  bool JudgeCopy(const Input& input, const History& history, absl::Span<Input* const> order, bool is_judged);
  void CountCopy(const Input& input, const Input* passed, bool is_late);
  bool PassedWithinWindow(int64_t time_ms) const;
  static VerifyExample PlaceOf(const Input& input);
  void AddRepeated();

  const VerifyRules rules_;
  const uint64_t seed_;
  const HashRange range_;
  const int64_t window_ms_;
  // How far the order of the output may differ from that of the input where either begins.
  const int64_t edge_ms_;
  RecordReader reader_;
  std::map<std::pair<std::string, int32_t>, int32_t> numbers_;  // of input partitions
  std::vector<std::vector<int32_t>> same_partition_;            // numbers, by the output's partition
  std::vector<StreamTime> clocks_;
  std::vector<std::optional<int64_t>> begins_;  // offsets where the group has begun, unless it is passed
  std::vector<int64_t> first_times_ms_;
  std::vector<Recent> recent_;
  // Of records whose own time is uncertain, by Place(): the earliest it may be; own_ms is the latest.
  absl::flat_hash_map<uint64_t, int64_t> earliest_own_ms_;
  // Where stream time passed over a record, by Place(): to where.
  absl::flat_hash_map<uint64_t, int64_t> overtaken_ms_;
  std::vector<Input> inputs_;
  std::vector<std::vector<Output>> outputs_;
  std::vector<Diverted> diverted_;

  // While it judges.
  VerifyBounds bounds_;
  std::vector<Known> known_;
  std::vector<uint32_t> buckets_;  // where the ids begin that share their first bits
  int bucket_shift_ = 0;
  int64_t since_ms_ = INT64_MIN;      // since when all inputs are known
  std::map<size_t, size_t> cursors_;  // of long runs: up to where all are used
  std::vector<Input*> order_;         // the records of an id, by the scope and their time
  std::vector<int64_t> passes_ms_;    // in the scope
  int64_t dropped_ = 0;               // copies of the id
  int64_t differing_ = 0;             // of them
  VerifyReport report_;
};

}  // namespace lethe

#endif  // LETHE_SRC_VERIFY_VERIFY_H_
