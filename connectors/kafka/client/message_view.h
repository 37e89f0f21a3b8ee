// A librdkafka message as a record of the input.
#ifndef LETHE_CONNECTORS_KAFKA_CLIENT_MESSAGE_VIEW_H_
#define LETHE_CONNECTORS_KAFKA_CLIENT_MESSAGE_VIEW_H_

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "src/pipeline/task/input_record.h"

namespace lethe::kafka {

// Valid as long as the message. Headers are parsed only when asked for.
class MessageView : public InputHeaders {
 public:
  explicit MessageView(const rd_kafka_message_t& message) : message_(message) {}

  // Its headers are this view.
  InputRecord record() const;
  const rd_kafka_headers_t* headers() const;  // null if it has none

  void AppendTo(std::vector<HeaderView>& headers) const override;
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
