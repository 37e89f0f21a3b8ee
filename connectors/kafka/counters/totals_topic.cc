#include "connectors/kafka/counters/totals_topic.h"

#include "absl/strings/str_cat.h"
#include "connectors/kafka/client/log_reader.h"
#include "connectors/kafka/counters/counter_totals.h"
#include "src/pipeline/preflight/topic_facts.h"

namespace lethe::kafka {
namespace {

constexpr int kFeedTimeoutMs = 1000;
constexpr char kQueueKbytes[] = "16384";

}  // namespace

absl::Status TotalsTopic::Open(const std::map<int32_t, int64_t>& offsets) {
  auto consumer =
      MakeTotalsReader(options_, "read_committed", {{"queued.max.messages.kbytes", kQueueKbytes}});
  if (!consumer.ok()) return consumer.status();
  consumer_ = *std::move(consumer);
  rd_kafka_poll_set_consumer(consumer_.get());
  const PartitionListPtr list(rd_kafka_topic_partition_list_new(static_cast<int>(offsets.size())));
  for (const auto& [partition, offset] : offsets) {
    rd_kafka_topic_partition_list_add(list.get(), topic_.c_str(), partition)->offset = offset;
  }
  fetch_on_.emplace(consumer_.get());
  return ErrorStatus(rd_kafka_assign(consumer_.get(), list.get()), absl::StrCat("reading ", topic_));
}

void TotalsTopic::Close() {
  view_.reset();
  message_.reset();
  fetch_on_.reset();
  consumer_.reset();
}

std::optional<InputRecord> TotalsTopic::Poll(absl::Duration timeout) {
  view_.reset();
  message_ = fetch_on_->Poll(static_cast<int>(absl::ToInt64Milliseconds(timeout)));
  if (message_ == nullptr) return std::nullopt;
  const rd_kafka_resp_err_t code = message_->err;
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return view_.emplace(*message_).record();
  event_ = {};
  if (code == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
    event_.kind = SourceEvent::Kind::kEnd;
  } else if (!IsTransient(code) && code != RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED) {
    const absl::Status status = ErrorStatus(code, absl::StrCat("reading ", topic_));
    event_.why = std::string(WithGrant("totals", topic_, status).message());
  }
  return InputRecord{.partition = message_->partition, .offset = message_->offset, .event = &event_};
}

absl::StatusOr<std::map<int32_t, int64_t>> TotalsTopic::Ends(const std::vector<int32_t>& partitions) {
  if (asking_ == nullptr) {
    auto client = MakeTotalsReader(options_, "read_committed");
    if (!client.ok()) return client.status();
    asking_ = *std::move(client);
  }
  auto ends = AskOffsets(asking_.get(), {{topic_, partitions}}, absl::InfiniteFuture(),
                         absl::Milliseconds(kFeedTimeoutMs));
  if (!ends.ok()) return ends.status();
  return std::move((*ends)[topic_]);
}

absl::StatusOr<int64_t> TotalsTopic::HighWatermark(int32_t partition) {
  if (asking_of_all_ == nullptr) {
    auto client = MakeTotalsReader(options_, "read_uncommitted");
    if (!client.ok()) return client.status();
    asking_of_all_ = *std::move(client);
  }
  const auto bounds = BoundsOf(asking_of_all_.get(), topic_, partition, kFeedTimeoutMs);
  if (!bounds.ok()) return bounds.status();
  return bounds->end;
}

}  // namespace lethe::kafka
