// A librdkafka message as a record of the engine's.
#ifndef LETHE_CONNECTORS_KAFKA_CLIENT_MESSAGE_VIEW_H_
#define LETHE_CONNECTORS_KAFKA_CLIENT_MESSAGE_VIEW_H_

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "src/record/record.h"

namespace lethe::kafka {

// Valid as long as the message. Headers are parsed only when asked for.
class MessageView : public RecordHeaders {
 public:
  explicit MessageView(const rd_kafka_message_t& message) : message_(message) {}

  RecordView record() const {
    return {Bytes(message_.key, message_.key_len), Bytes(message_.payload, message_.len), this};
  }

  // The value, empty if it is null: what two copies of an event should have in common.
  absl::string_view payload() const { return record().value.value_or(""); }
  // InfinitePast() if the record has none.
  absl::Time time() const;
  int64_t timestamp_ms() const;               // -1 if the record has none
  const rd_kafka_headers_t* headers() const;  // null if it has none
  // A hash of key and value, to recognize the record by.
  uint64_t Hash() const;

  std::optional<absl::string_view> Last(const std::string& name) const override;

 private:
  static std::optional<absl::string_view> Bytes(const void* data, size_t size) {
    if (data == nullptr) return std::nullopt;
    return absl::string_view(static_cast<const char*>(data), size);
  }

  const rd_kafka_message_t& message_;
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_CLIENT_MESSAGE_VIEW_H_
