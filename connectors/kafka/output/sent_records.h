// The records of one transaction: their sizes, their answers, and why some failed.
#ifndef LETHE_CONNECTORS_KAFKA_OUTPUT_SENT_RECORDS_H_
#define LETHE_CONNECTORS_KAFKA_OUTPUT_SENT_RECORDS_H_

#include <librdkafka/rdkafka.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "src/pipeline/output/sink.h"

namespace lethe::kafka {

// Thread safety: none, except for OnAnswer.
class SentRecords {
 public:
  // Failures go into the report.
  explicit SentRecords(TransactionReport& report) : report_(report) {}

  void Begin();
  // Before a new client: none is there to count.
  void ForgetAnswers();

  // A record that is handed to the client with the returned tag.
  void* Add(const OutputRecord& record);
  // The client has the last one.
  void NoteTaken() { ++CountOf(sent_.back().flow).sent; }
  // The client does not take the last one.
  void RefuseLast(rd_kafka_resp_err_t code, const std::string& why) { Refuse(sent_.back(), code, why); }
  void FailLast(rd_kafka_resp_err_t code, const std::string& topic);

  // The delivery report of a record that failed.
  void OnFailure(const rd_kafka_message_t& message);
  // A record was answered or purged; in the client's threads.
  void OnAnswer(const rd_kafka_message_t& message);

  int64_t bytes() const { return sent_.empty() ? 0 : sent_.back().end_bytes; }
  // Those of so many records at the end; about what has no answer, since answers may come out of order.
  int64_t BytesOfLast(size_t records) const;
  // Some failed record may have been written, without an answer.
  bool may_be_written() const { return may_be_written_; }

  // That much time went by: adds it for the flows that have unanswered records.
  void NoteWait(absl::Duration step);
  // Before the abort, which answers all.
  void NoteEnd();
  // As Sink's.
  std::map<int32_t, TransactionSize> SizeByFlow() const;

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
  // Sent, and answered or purged, of a flow since the producer was made. Two flows may share a place: then
  // both wait for both.
  struct FlowCount {
    int64_t sent = 0;
    std::atomic<int64_t> answered{0};  // by the client's threads
    int64_t unanswered() const { return sent - answered.load(std::memory_order_relaxed); }
  };
  static constexpr size_t kFlowCounts = 1024;
  FlowCount& CountOf(int32_t flow) { return counts_[static_cast<size_t>(flow) % kFlowCounts]; }

  void Refuse(const Sent& sent, rd_kafka_resp_err_t code, const std::string& why);
  void Fail(rd_kafka_resp_err_t code);
  // A record failed for the sake of its topic.
  void Blame(const Sent& sent, rd_kafka_resp_err_t code, const std::string& topic);

  TransactionReport& report_;
  std::array<FlowCount, kFlowCounts> counts_;  // the producer's threads count until it ends
  std::vector<Sent> sent_;
  std::map<int32_t, FlowSize> flow_sizes_;
  FlowSize* flow_size_ = nullptr;  // of the record written last, whose flow is the next
  bool may_be_written_ = false;
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_OUTPUT_SENT_RECORDS_H_
