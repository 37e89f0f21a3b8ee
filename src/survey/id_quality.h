// Rates candidates for the id.
#ifndef LETHE_SURVEY_ID_QUALITY_H_
#define LETHE_SURVEY_ID_QUALITY_H_

#include <string>

#include "absl/strings/string_view.h"
#include "src/survey/survey.h"

namespace lethe {

// Estimated numbers of records, and what else is known of an id.
struct IdEvidence {
  double records = 0;  // all that could have it: of an id in values, those with a value
  double present = 0;  // of these
  double copies = 0;   // repeat an earlier one
  double changed = 0;  // of the copies: in another record than the first, by key, value and headers
  // Records that repeat an earlier one but for the key and headers of this id; 0 if it has none of these.
  double equal_but_for_it = 0;
  double events = 0;               // with an id and without exact copies
  bool is_moment = false;          // a time by its contents
  absl::string_view why_envelope;  // it is the id of the envelope; empty: it is not
  // What copies of the id may differ in: places that seem to name a sending. Empty: nothing.
  absl::string_view of_sending;

  double present_share() const { return records == 0 ? 0 : present / records; }
  // Share of events that share it with another event.
  double changed_share() const { return events <= 0 ? 0 : changed / events; }
};

// Good: in 99 % of the records, and no two events share it. Doubtful: in 90 %, and 1 in 10; or, by a schema,
// 10 % and 1 in 1,000; or new at each sending. Times, places in a database's log, traces and spans are poor.
IdQuality QualityOf(const IdSpec& id, const IdEvidence& evidence);

struct IdOpinion {
  IdQuality quality = IdQuality::kPoor;
  std::string remark;
};

IdOpinion OpinionOf(const IdSpec& id, const IdEvidence& evidence);

// Whether to propose x before y.
bool IsPreferred(const IdSpec& x, IdQuality x_quality, const IdEvidence& x_evidence, const IdSpec& y,
                 IdQuality y_quality, const IdEvidence& y_evidence);

}  // namespace lethe

#endif  // LETHE_SURVEY_ID_QUALITY_H_
