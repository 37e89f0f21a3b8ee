// Whether something is an id, from how it behaves.
#ifndef LETHE_SURVEY_ID_QUALITY_H_
#define LETHE_SURVEY_ID_QUALITY_H_

#include <optional>
#include <string>

#include "src/survey/survey.h"

namespace lethe {

// Numbers of records; estimates, so not whole.
struct IdEvidence {
  double records = 0;  // all
  double present = 0;  // have it
  double copies = 0;   // have the same as one before
  double changed = 0;  // of the copies: with another payload than the first

  double present_share() const { return records == 0 ? 0 : present / records; }
  // Of the records that have it, less exact copies: how many share it with another that says something else.
  double changed_share() const {
    const double events = present - (copies - changed);
    return events <= 0 ? 0 : changed / events;
  }
};

// Good: in 99 % of the records, and at most 1 in 1,000 says something else than another with the same id.
// Doubtful: 90 %, and 1 in 10.
IdQuality QualityOf(const IdEvidence& evidence);

struct IdOpinion {
  IdQuality quality = IdQuality::kPoor;
  std::string remark;
};

// `whole_value` is the evidence of the id `value`, if ids are being looked for: an id that is another one in
// each exact copy is not an id, and `value` itself is the last resort.
IdOpinion OpinionOf(const IdSpec& id, const IdEvidence& evidence,
                    const std::optional<IdEvidence>& whole_value);

// Whether to propose x before y.
bool IsPreferred(const IdSpec& x, IdQuality x_quality, const IdEvidence& x_evidence, const IdSpec& y,
                 IdQuality y_quality, const IdEvidence& y_evidence);

}  // namespace lethe

#endif  // LETHE_SURVEY_ID_QUALITY_H_
