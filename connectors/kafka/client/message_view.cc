#include "connectors/kafka/client/message_view.h"

#include "lethe/event.h"

namespace lethe::kafka {

int64_t MessageView::timestamp_ms() const {
  rd_kafka_timestamp_type_t type;
  const int64_t timestamp = rd_kafka_message_timestamp(&message_, &type);
  return type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE ? -1 : timestamp;
}

absl::Time MessageView::time() const {
  const int64_t timestamp = timestamp_ms();
  return timestamp < 0 ? absl::InfinitePast() : absl::FromUnixMillis(timestamp);
}

const rd_kafka_headers_t* MessageView::headers() const {
  rd_kafka_headers_t* headers = nullptr;
  return rd_kafka_message_headers(&message_, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR ? headers : nullptr;
}

uint64_t MessageView::Hash() const {
  const RecordView view = record();
  const uint64_t key = view.key ? HashId(*view.key, 1).a : 0;
  return view.value ? HashId(*view.value, key).a : ~key;
}

std::optional<absl::string_view> MessageView::Last(const std::string& name) const {
  const rd_kafka_headers_t* all = headers();
  const void* value = nullptr;
  size_t size = 0;
  if (all == nullptr ||
      rd_kafka_header_get_last(all, name.c_str(), &value, &size) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return std::nullopt;
  }
  return Bytes(value, size);
}

}  // namespace lethe::kafka
