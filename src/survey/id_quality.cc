#include "src/survey/id_quality.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "src/survey/id_names.h"
#include "src/text/format.h"

namespace lethe {
namespace {

constexpr double kGoodPresent = 0.99, kDoubtfulPresent = 0.9;
constexpr double kLeastBySchema = 0.1;
constexpr double kFewChanged = 0.001, kDoubtfulChanged = 0.1;
// A significant share of exact copies.
constexpr double kNotable = 0.001;

bool IsValue(const IdSpec& id) { return id.fields.size() == 1 && id.fields[0].kind == Field::Kind::kValue; }

std::string Percent(double share) {
  if (share >= 1) return "100 %";
  if (share > 0.9999) return "more than 99.99 %";
  return absl::StrFormat("%.*f %%", share < 0.001 ? 3 : share < 0.1 ? 2 : 1, 100 * share);
}

std::string Presence(const IdEvidence& evidence) {
  return evidence.present >= evidence.records
             ? "in every record"
             : absl::StrCat("in ", Percent(evidence.present_share()), " of the records");
}

bool Any(const IdSpec& id, bool (*is)(const Field&)) {
  return std::any_of(id.fields.begin(), id.fields.end(), is);
}

// With another field, such as the key, a place in a log or a time tells events apart.
bool IsMoment(const IdSpec& id, const IdEvidence& evidence) {
  return evidence.why_envelope.empty() &&
         (evidence.is_moment || (id.fields.size() == 1 && Any(id, IsMomentName)));
}

bool IsTrace(const IdSpec& id, const IdEvidence& evidence) {
  return evidence.why_envelope.empty() && id.fields.size() == 1 && Any(id, IsTraceName);
}

// An id that finds copies is one; other records that are equal but for it are events with equal contents.
bool IsNewAtEachSending(const IdEvidence& evidence) {
  const double notable = kNotable * evidence.records;
  return evidence.copies <= notable && evidence.equal_but_for_it - evidence.copies > notable;
}

std::string Lost(const IdEvidence& evidence) {
  return absl::StrCat(FormatCount(std::llround(evidence.changed)),
                      " records differ from the first one with their id, and would be dropped: ",
                      Percent(evidence.changed_share()), " of the events");
}

}  // namespace

IdQuality QualityOf(const IdSpec& id, const IdEvidence& evidence) {
  const double present = evidence.present_share();
  const double changed = evidence.changed_share();
  if (IsMoment(id, evidence) || IsTrace(id, evidence)) return IdQuality::kPoor;
  // The records with a schema may be one kind of several in the topic, and the right id of theirs.
  if (id.needs_schema() && present >= kLeastBySchema && present < kDoubtfulPresent &&
      changed <= kFewChanged) {
    return IdQuality::kDoubtful;
  }
  if (present < kDoubtfulPresent || changed > kDoubtfulChanged) return IdQuality::kPoor;
  // Whether a place names a sending is for people to say.
  const bool is_good = present >= kGoodPresent && evidence.changed == 0 && evidence.of_sending.empty() &&
                       !IsNewAtEachSending(evidence);
  return is_good ? IdQuality::kGood : IdQuality::kDoubtful;
}

IdOpinion OpinionOf(const IdSpec& id, const IdEvidence& evidence) {
  const IdQuality quality = QualityOf(id, evidence);
  if (evidence.present == 0) return {IdQuality::kPoor, "in no record"};
  const std::string presence = Presence(evidence);
  const std::string envelope = evidence.why_envelope.empty() ? "" : absl::StrCat(evidence.why_envelope, "; ");
  if (IsMoment(id, evidence)) {
    return {quality, "a time, or a place in a log: takes events of the same moment for one"};
  }
  if (IsTrace(id, evidence)) return {quality, "names a trace, which several events share"};
  if (evidence.changed > 0) return {quality, absl::StrCat(envelope, Lost(evidence))};
  if (IsValue(id)) {
    return {std::max(quality, IdQuality::kDoubtful),
            "finds copies that are equal byte for byte, and takes two equal events for one"};
  }
  if (evidence.present_share() < kGoodPresent) {
    return {quality, absl::StrCat(envelope, presence, " only; the others would pass unjudged")};
  }
  if (IsNewAtEachSending(evidence)) {
    return {quality, absl::StrCat("never twice the same, though ",
                                  Percent((evidence.equal_but_for_it - evidence.copies) / evidence.records),
                                  " of the records are equal to another but for it: new at each sending?")};
  }
  if (evidence.copies == 0) return {quality, absl::StrCat(envelope, presence, ", and never twice the same")};
  if (!evidence.of_sending.empty()) {
    return {quality, absl::StrCat(envelope, presence, "; copies differ only in ", evidence.of_sending,
                                  ": if that is of the sending and not of the event, this is the id")};
  }
  return {quality, absl::StrCat(envelope, presence, "; copies are equal byte for byte")};
}

bool IsPreferred(const IdSpec& x, IdQuality x_quality, const IdEvidence& x_evidence, const IdSpec& y,
                 IdQuality y_quality, const IdEvidence& y_evidence) {
  const auto is_of_envelope = [](const IdEvidence& evidence, IdQuality quality) {
    return !evidence.why_envelope.empty() && quality != IdQuality::kPoor;
  };
  const bool is_x = is_of_envelope(x_evidence, x_quality);
  if (is_x != is_of_envelope(y_evidence, y_quality)) return is_x;
  if (x_quality != y_quality) return x_quality < y_quality;
  // `value`, the last resort, comes before doubtful candidates only if it finds exact copies.
  if (IsValue(x) != IsValue(y)) {
    const IdEvidence& value = IsValue(x) ? x_evidence : y_evidence;
    return IsValue(x) == (value.copies - value.changed > kNotable * value.records);
  }
  const auto rank = [](const IdSpec& id, const IdEvidence& evidence) {
    const double found =
        evidence.records == 0 ? 0 : std::round(evidence.copies / evidence.records / kNotable);
    const std::string text = id.ToString();
    return std::make_tuple(-found, id.fields.size(), Unlikeliness(id), -evidence.present,
                           std::count(text.begin(), text.end(), '/'), text.size(), text);
  };
  return rank(x, x_evidence) < rank(y, y_evidence);
}

}  // namespace lethe
