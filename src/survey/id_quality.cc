#include "src/survey/id_quality.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace lethe {
namespace {

constexpr double kGoodPresent = 0.99, kDoubtfulPresent = 0.9;
constexpr double kLeastBySchema = 0.1;
constexpr double kGoodChanged = 0.001, kDoubtfulChanged = 0.1;
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

// The last step of a name: "order_id" of json:/order/order_id.
std::string LastName(const IdSpec& id) {
  const std::string& name = id.fields.back().name;
  return absl::AsciiStrToLower(name.substr(name.find_last_of("/.:") + 1));
}

// One field that is a time by its name: events of one moment would share the id, however few the survey met.
bool IsTime(const IdSpec& id) {
  if (id.fields.size() != 1) return false;
  const std::string name = LastName(id);
  if (name == "ts" || name == "date") return true;
  for (const char* end : {"time", "timestamp", "_ts", "_at"}) {
    if (absl::EndsWith(name, end)) return true;
  }
  return absl::EndsWith(id.fields[0].name, "At");
}

// 0 for a usual name of an id, more for others.
int Unlikeliness(const IdSpec& id) {
  const std::string name = LastName(id);
  if (name == "id" || name == "uuid" || name == "guid") return 0;
  for (const char* hint : {"event", "message", "idempotency", "request", "msg"}) {
    if (absl::StrContains(name, hint) && absl::EndsWith(name, "id")) return 0;
  }
  if (absl::StrContains(name, "idempot") || absl::StrContains(name, "dedup")) return 0;
  if (absl::EndsWith(name, "id") || absl::StrContains(name, "uuid") || absl::StrContains(name, "key"))
    return 1;
  return 2;
}

}  // namespace

IdQuality QualityOf(const IdSpec& id, const IdEvidence& evidence) {
  const double present = evidence.present_share();
  const double changed = evidence.changed_share();
  // The records with a schema may be one kind of several in the topic, and the right id of theirs.
  if (id.needs_schema() && present >= kLeastBySchema && present < kDoubtfulPresent &&
      changed <= kGoodChanged) {
    return IdQuality::kDoubtful;
  }
  if (present >= kGoodPresent && changed <= kGoodChanged && !IsTime(id)) return IdQuality::kGood;
  if (present >= kDoubtfulPresent && changed <= kDoubtfulChanged) return IdQuality::kDoubtful;
  return IdQuality::kPoor;
}

IdOpinion OpinionOf(const IdSpec& id, const IdEvidence& evidence,
                    const std::optional<IdEvidence>& whole_value) {
  const IdQuality quality = QualityOf(id, evidence);
  if (evidence.present == 0) return {IdQuality::kPoor, "in no record"};
  const std::string presence = Presence(evidence);
  if (IsValue(id)) {
    return {std::max(quality, IdQuality::kDoubtful),
            "finds copies that are equal byte for byte, and takes two equal events for one"};
  }
  if (evidence.present_share() < kGoodPresent) {
    return {quality, absl::StrCat(presence, " only; the others would pass unjudged")};
  }
  if (evidence.changed_share() > kGoodChanged) {
    return {quality, absl::StrCat(Percent(evidence.changed_share()),
                                  " of the events share it with another that says something else")};
  }
  // A candidate that finds copies is an id; the other equal records are events with equal contents.
  if (whole_value && evidence.copies <= kNotable * evidence.records) {
    const double missed = whole_value->copies - evidence.copies;
    if (missed > kNotable * evidence.records) {
      return {IdQuality::kDoubtful,
              absl::StrCat("never twice the same, though ", Percent(missed / evidence.records),
                           " of the records are equal to another: new at each sending?")};
    }
  }
  if (IsTime(id)) return {quality, "a time by its name: takes events of the same moment for one"};
  if (evidence.copies == 0) return {quality, absl::StrCat(presence, ", and never twice the same")};
  return {quality,
          absl::StrCat(presence, evidence.changed == 0 ? "; copies are equal byte for byte"
                                                       : "; nearly all copies are equal byte for byte")};
}

bool IsPreferred(const IdSpec& x, IdQuality x_quality, const IdEvidence& x_evidence, const IdSpec& y,
                 IdQuality y_quality, const IdEvidence& y_evidence) {
  if (x_quality != y_quality) return x_quality < y_quality;
  // `value`, the last resort, comes before doubtful candidates only if it finds copies.
  if (IsValue(x) != IsValue(y)) {
    const IdEvidence& value = IsValue(x) ? x_evidence : y_evidence;
    return IsValue(x) == (value.copies > kNotable * value.records);
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
