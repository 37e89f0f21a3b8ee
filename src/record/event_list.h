// Records that hold a list of events.
#ifndef LETHE_SRC_RECORD_EVENT_LIST_H_
#define LETHE_SRC_RECORD_EVENT_LIST_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "src/record/record_reader.h"

namespace lethe {

struct EventList {
  std::string pointer;        // to the list; empty: the record is one
  int64_t events = 0;         // 1 or more
  std::string envelope = "";  // Segment, Snowplow, OpenTelemetry logs ..., by the names in it; empty: another
};

// Finds lists of events in JSON: an array of objects as the whole record, or one of the names that envelopes
// give it (batch, events, records, messages, data, resourceLogs ...), if its elements have ids and the record
// around it has none. Thread-compatible.
class EventListFinder {
 public:
  EventListFinder();
  ~EventListFinder();

  std::optional<EventList> Find(absl::string_view json);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

// Whether the id is that of one element of the list, as json:/batch/0/messageId is.
bool IsOfOneElement(const IdSpec& id, const EventList& list);

}  // namespace lethe

#endif  // LETHE_SRC_RECORD_EVENT_LIST_H_
