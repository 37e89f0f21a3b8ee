#include "connectors/kafka/repartition/route.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "connectors/kafka/client/message_view.h"
#include "lethe/event.h"

namespace lethe::kafka {
namespace {

constexpr char kPartitionHeader[] = "lethe.routed.partition";
constexpr char kOffsetHeader[] = "lethe.routed.offset";

std::optional<int64_t> NumberAt(const rd_kafka_headers_t* headers, size_t index, absl::string_view wanted) {
  const char* name = nullptr;
  const void* value = nullptr;
  size_t size = 0;
  if (rd_kafka_header_get_all(headers, index, &name, &value, &size) != RD_KAFKA_RESP_ERR_NO_ERROR ||
      name != wanted || value == nullptr) {
    return std::nullopt;
  }
  int64_t number = 0;
  if (!absl::SimpleAtoi(absl::string_view(static_cast<const char*>(value), size), &number) || number < 0) {
    return std::nullopt;
  }
  return number;
}

}  // namespace

int32_t Route(const RecordFields& fields, const rd_kafka_message_t& message, int32_t partitions) {
  const auto hashed = [&](absl::string_view bytes) {
    return static_cast<int32_t>(HashId(bytes, 0).a % static_cast<uint64_t>(partitions));
  };
  if (fields.id_state == RecordFields::State::kPresent) return hashed(fields.id);
  const RecordView view = MessageView(message).record();
  return view.key ? hashed(*view.key) : message.partition % partitions;
}

void AddRoutedFrom(HeadersPtr& headers, const RoutedFrom& from) {
  AddHeader(headers, kPartitionHeader, absl::StrCat(from.partition));
  AddHeader(headers, kOffsetHeader, absl::StrCat(from.offset));
}

std::optional<RoutedFrom> ReadRoutedFrom(const rd_kafka_headers_t* headers) {
  const size_t count = headers == nullptr ? 0 : rd_kafka_header_cnt(headers);
  if (count < 2) return std::nullopt;
  const auto partition = NumberAt(headers, count - 2, kPartitionHeader);
  const auto offset = NumberAt(headers, count - 1, kOffsetHeader);
  if (!partition || *partition > INT32_MAX || !offset) return std::nullopt;
  return RoutedFrom{static_cast<int32_t>(*partition), *offset};
}

HeadersPtr WithoutRoutedFrom(const rd_kafka_headers_t* headers) {
  HeadersPtr rest;
  const size_t count = rd_kafka_header_cnt(headers) - 2;
  for (size_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    const void* value = nullptr;
    size_t size = 0;
    rd_kafka_header_get_all(headers, i, &name, &value, &size);
    if (rest == nullptr) rest.reset(rd_kafka_headers_new(count));
    rd_kafka_header_add(rest.get(), name, -1, value, static_cast<ssize_t>(size));
  }
  return rest;
}

}  // namespace lethe::kafka
