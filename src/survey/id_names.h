// What the name of a place says of its being an id.
#ifndef LETHE_SURVEY_ID_NAMES_H_
#define LETHE_SURVEY_ID_NAMES_H_

#include "absl/strings/string_view.h"
#include "src/record/record_reader.h"

namespace lethe {

// A time or a position in a database's log: events of one moment, or of one transaction, share it, however
// few of them a survey meets.
bool IsMomentName(const Field& field);

// What ties several events together by its design: a trace, a span.
bool IsTraceName(const Field& field);
// Which sending of the record it is: an attempt, say.
bool IsNameOfSending(const Field& field);

// 0 for a usual name of an id, more for others; of several fields the most.
int Unlikeliness(const Field& field);
int Unlikeliness(const IdSpec& id);

// A header that a client's instrumentation writes at each sending, so that copies differ in it: it is no part
// of the event.
bool IsHeaderOfSending(absl::string_view name);

}  // namespace lethe

#endif  // LETHE_SURVEY_ID_NAMES_H_
