// A record from any source.
#ifndef LETHE_SRC_RECORD_RECORD_H_
#define LETHE_SRC_RECORD_RECORD_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace lethe {

// The connector implements it.
class RecordHeaders {
 public:
  virtual ~RecordHeaders() = default;
  // The value of the last header of that name (Kafka allows several); nullopt if there is none or it is
  // null. Valid as long as the record.
  virtual std::optional<absl::string_view> Last(const std::string& name) const = 0;
};

// Views of a record's parts, nullopt where the part is null. Valid as long as the record.
struct RecordView {
  std::optional<absl::string_view> key = std::nullopt;
  std::optional<absl::string_view> value = std::nullopt;
  const RecordHeaders* headers = nullptr;
};

}  // namespace lethe

#endif  // LETHE_SRC_RECORD_RECORD_H_
