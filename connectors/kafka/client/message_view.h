// A librdkafka message as a record of the input.
#ifndef LETHE_CONNECTORS_KAFKA_CLIENT_MESSAGE_VIEW_H_
#define LETHE_CONNECTORS_KAFKA_CLIENT_MESSAGE_VIEW_H_

#include <librdkafka/rdkafka.h>

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
  // Calls `use` with the name and value of each header.
  template <class Use>
  void ForEachHeader(const Use& use) const {
    const rd_kafka_headers_t* const all = headers();
    const char* name = nullptr;
    const void* value = nullptr;
    size_t size = 0;
    for (size_t i = 0; all != nullptr &&
                       rd_kafka_header_get_all(all, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR;
         ++i) {
      use(absl::string_view(name), Bytes(value, size));
    }
  }

  void AppendTo(std::vector<HeaderView>& headers) const override;
  std::optional<absl::string_view> Last(const std::string& name) const override;

 private:
  const rd_kafka_headers_t* headers() const;  // null if it has none
  static std::optional<absl::string_view> Bytes(const void* data, size_t size) {
    if (data == nullptr) return std::nullopt;
    return absl::string_view(static_cast<const char*>(data), size);
  }

  const rd_kafka_message_t& message_;
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_CLIENT_MESSAGE_VIEW_H_
