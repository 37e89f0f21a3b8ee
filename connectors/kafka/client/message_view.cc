#include "connectors/kafka/client/message_view.h"

namespace lethe::kafka {

InputRecord MessageView::record() const {
  rd_kafka_timestamp_type_t type;
  const int64_t timestamp_ms = rd_kafka_message_timestamp(&message_, &type);
  return {message_.partition,
          message_.offset,
          Bytes(message_.key, message_.key_len),
          Bytes(message_.payload, message_.len),
          type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE ? -1 : timestamp_ms,
          this};
}

const rd_kafka_headers_t* MessageView::headers() const {
  rd_kafka_headers_t* headers = nullptr;
  return rd_kafka_message_headers(&message_, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR ? headers : nullptr;
}

void MessageView::AppendTo(std::vector<HeaderView>& headers) const {
  ForEachHeader([&](absl::string_view name, std::optional<absl::string_view> value) {
    headers.push_back({name, value});
  });
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
