// Rates candidates for the id.
#ifndef LETHE_SURVEY_ID_QUALITY_H_
#define LETHE_SURVEY_ID_QUALITY_H_

#include <optional>
#include <string>

#include "src/survey/survey.h"

namespace lethe {

// Estimated numbers of records.
struct IdEvidence {
  double records = 0;  // all
  double present = 0;  // have it
  double copies = 0;   // repeat an earlier one
  double changed = 0;  // of the copies: with another payload than the first

  double present_share() const { return records == 0 ? 0 : present / records; }
  // Share of events (records without exact copies) that share it with another event.
  double changed_share() const {
    const double events = present - (copies - changed);
    return events <= 0 ? 0 : changed / events;
  }
};

// Good: in 99 % of the records, and at most 1 in 1,000 events shares it. Doubtful: 90 %, and 1 in 10; or, by
// a schema, 10 % and 1 in 1,000.
IdQuality QualityOf(const IdSpec& id, const IdEvidence& evidence);

struct IdOpinion {
  IdQuality quality = IdQuality::kPoor;
  std::string remark;
};

// `whole_value`: the evidence of `value` during a search. It shows candidates that differ between exact
// copies.
IdOpinion OpinionOf(const IdSpec& id, const IdEvidence& evidence,
                    const std::optional<IdEvidence>& whole_value);

// Whether to propose x before y.
bool IsPreferred(const IdSpec& x, IdQuality x_quality, const IdEvidence& x_evidence, const IdSpec& y,
                 IdQuality y_quality, const IdEvidence& y_evidence);

}  // namespace lethe

#endif  // LETHE_SURVEY_ID_QUALITY_H_
