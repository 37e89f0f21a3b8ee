// The records of one transaction: their sizes, their answers, and why some failed.
#ifndef LETHE_SRC_PIPELINE_OUTPUT_SENT_RECORDS_H_
#define LETHE_SRC_PIPELINE_OUTPUT_SENT_RECORDS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "src/pipeline/output/sink.h"

namespace lethe {

// Why a client has not written a record. Views, valid during the call.
struct WriteFailure {
  enum class Kind {
    // The record itself is refused, and would be refused again.
    kTooLarge,          // for the topic, or its segments
    kInvalid,           // else
    kInvalidSomehow,    // the broker does not say what is wrong
    kGoodAmongInvalid,  // it was in one batch with an invalid one
    // Records of this topic fail, whatever they are.
    kMayNotWrite,
    kNoPartition,
    kOfTopic,
    kOther,
  };
  Kind kind = Kind::kOther;
  absl::string_view why;
  absl::string_view topic = "";
  bool may_be_written = false;
};

// Thread safety: none, except for OnAnswer.
class SentRecords {
 public:
  // The most bytes on their way to the brokers: enough to keep them busy, and few enough to commit within the
  // transaction's time when they suddenly slow down.
  static constexpr int64_t kAheadBytes = int64_t{4} << 20;

  // Failures go into the report.
  explicit SentRecords(TransactionReport& report) : report_(report) {}

  void Begin();
  // Before a new client: none is there to count.
  void ForgetAnswers();

  // A record that is handed to the client; returns its number in the transaction.
  size_t Add(const OutputRecord& record);
  // The client has the last one.
  void NoteTaken() { ++CountOf(sent_.back().flow).sent; }
  // The client does not take the last one.
  void FailLast(const WriteFailure& failure) { OnFailure(sent_.size() - 1, failure); }

  void OnFailure(size_t number, const WriteFailure& failure);
  // A record of this flow was answered or purged; in the client's threads.
  void OnAnswer(int32_t flow) { CountOf(flow).answered.fetch_add(1, std::memory_order_relaxed); }

  int64_t bytes() const { return sent_.empty() ? 0 : sent_.back().end_bytes; }
  // At the end; about, since answers may come out of order.
  int64_t acknowledged() const { return bytes() - unanswered_at_end_; }
  // As Sink's.
  std::map<int32_t, TransactionSize> SizeByFlow() const;

  // True once for a while: it is time to wait until there is room.
  bool IsRoomDue();
  // Whether a record may follow while so many have no answer.
  bool HasRoom(size_t unanswered) const { return BytesOfLast(unanswered) <= kAheadBytes; }
  // That much time went by: adds it for the flows that have unanswered records.
  void NoteWait(absl::Duration step);
  // Before the abort, which answers all.
  void NoteEnd(size_t unanswered);
  // Whether the aborted transaction leaves records that may be in the broker's log. `is_unanswered`: some had
  // no answer before the abort.
  //
  // If one waited to be sent again, the client purges it when it aborts, and reuses its sequence numbers for
  // later records: the broker takes those for copies, acknowledges them and drops them (librdkafka 2.0.2, and
  // its sources of July 2026). A new producer has a new epoch. OnFailure learns which records may be there,
  // but only from the last attempt to send them, so every unanswered record counts.
  bool NeedsNewProducer(bool is_unanswered) const;

 private:
  struct Sent {
    RecordPlace place;
    int64_t end_bytes;  // up to its end in the transaction
    int64_t bytes;      // of key and value
    int64_t timestamp_ms;
    bool has_key;
    int32_t flow;
  };
  // What the transaction has of a flow.
  struct FlowSize {
    int64_t bytes = 0;
    int64_t records = 0;
    int64_t unanswered_at_end = 0;  // records
    absl::Duration waited;          // while some of them had no answer
  };
  // Records of a flow since its producer began. One that the client purged counts as answered. Flows whose
  // numbers share a place wait for each other's records.
  struct FlowCount {
    int64_t sent = 0;
    std::atomic<int64_t> answered{0};  // by the client's threads
    int64_t unanswered() const { return sent - answered.load(std::memory_order_relaxed); }
  };
  static constexpr size_t kFlowCounts = 1024;
  FlowCount& CountOf(int32_t flow) { return counts_[static_cast<size_t>(flow) % kFlowCounts]; }

  // Those of so many records at the end; about what has no answer.
  int64_t BytesOfLast(size_t records) const;
  void Refuse(const Sent& sent, const WriteFailure& failure);
  // A record failed for the sake of its topic.
  void Blame(const Sent& sent, const WriteFailure& failure);

  TransactionReport& report_;
  std::array<FlowCount, kFlowCounts> counts_;  // the producer's threads count until it ends
  std::vector<Sent> sent_;
  std::map<int32_t, FlowSize> flow_sizes_;
  FlowSize* flow_size_ = nullptr;  // of the record written last, whose flow is the next
  int64_t room_seen_at_ = 0;       // bytes
  int64_t unanswered_at_end_ = 0;  // bytes
  bool may_be_written_ = false;    // some failed record may have been written, without an answer
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OUTPUT_SENT_RECORDS_H_
