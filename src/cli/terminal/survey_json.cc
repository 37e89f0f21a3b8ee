#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "src/cli/terminal/json_text.h"
#include "src/cli/terminal/survey_text.h"

namespace lethe {
namespace {

std::string JsonOf(const Estimate& estimate) {
  return absl::StrFormat("{\"value\":%.17g,\"margin\":%.17g}", estimate.value, estimate.margin);
}

std::string JsonOf(const Sighting& sighting) {
  return absl::StrFormat("{\"partition\":%d,\"offset\":%d}", sighting.partition, sighting.offset);
}

std::string JsonOf(const std::vector<CopyExample>& examples) {
  return absl::StrCat("[",
                      absl::StrJoin(examples, ",",
                                    [](std::string* out, const CopyExample& example) {
                                      absl::StrAppend(out, "{\"first\":", JsonOf(example.first),
                                                      ",\"copy\":", JsonOf(example.copy), "}");
                                    }),
                      "]");
}

std::string JsonOf(const SurveyReport& report, const IdCandidate& candidate) {
  constexpr absl::string_view kQualities[] = {"good", "doubtful", "poor"};
  const IdFigures& figures = candidate.figures;
  std::vector<std::string> horizons;
  for (size_t i = 0; i < kHorizons.size(); ++i) {
    horizons.push_back(absl::StrFormat("{\"horizon_ms\":%d,\"copies\":%s,\"share\":%s}",
                                       absl::ToInt64Milliseconds(kHorizons[i]), JsonOf(figures.caught[i]),
                                       JsonOf(figures.caught_share[i])));
  }
  const std::optional<absl::Duration> proposed = ProposedHorizon(report, figures);
  std::string unusable =
      absl::StrJoin(candidate.unusable, ",", [](std::string* out, const IdCandidate::Unusable& record) {
        absl::StrAppendFormat(out, "{\"partition\":%d,\"offset\":%d,\"reason\":%s}", record.partition,
                              record.offset, JsonString(record.reason));
      });
  return absl::StrCat(
      "{\"id\":", JsonString(candidate.id.ToString()), ",\"quality\":\"",
      kQualities[static_cast<size_t>(candidate.quality)], "\",\"remark\":", JsonString(candidate.remark),
      ",\"present\":", figures.records, ",\"later_place\":", candidate.later_place,
      ",\"partial\":", candidate.partial, ",\"missing\":", candidate.missing,
      ",\"tombstones\":", candidate.tombstones, ",\"malformed\":", candidate.malformed, ",\"unusable\":[",
      unusable, "],\"sampled_share\":", absl::StrFormat("%.17g", figures.sampled_share),
      ",\"copies\":", JsonOf(figures.copies), ",\"changed\":", JsonOf(figures.changed),
      ",\"changed_share\":", JsonOf(figures.changed_share), ",\"elsewhere\":", JsonOf(figures.elsewhere),
      ",\"elsewhere_share\":", JsonOf(figures.elsewhere_share), ",\"caught\":[", absl::StrJoin(horizons, ","),
      "],\"latest_ms\":", absl::ToInt64Milliseconds(figures.latest), ",\"most\":", figures.most,
      ",\"most_first\":", JsonOf(figures.most_first),
      ",\"changed_examples\":", JsonOf(figures.changed_examples),
      ",\"elsewhere_examples\":", JsonOf(figures.elsewhere_examples),
      ",\"proposed_horizon_ms\":", proposed ? absl::StrCat(absl::ToInt64Milliseconds(*proposed)) : "null",
      "}");
}

void WriteObject(const SurveyText& text, const std::string& error, std::ostream& out) {
  const SurveyReport& report = text.report;
  const bool is_timed = report.begin != absl::InfinitePast();
  const auto time = [&](absl::Time at) {
    return is_timed ? absl::StrCat(absl::ToUnixMillis(at)) : std::string("null");
  };
  out << "{\"input\":" << JsonString(text.input) << ",\"partitions\":" << text.partitions
      << ",\"in_topic\":" << text.in_topic << ",\"to_read\":" << text.to_read
      << ",\"whole\":" << (text.is_whole ? "true" : "false") << ",\"records\":" << report.records
      << ",\"tombstones\":" << report.tombstones
      << ",\"envelope\":" << (report.envelope.empty() ? std::string("null") : JsonString(report.envelope))
      << ",\"lists\":{\"examined\":" << report.lists.examined << ",\"records\":" << report.lists.records
      << ",\"events\":" << report.lists.events << ",\"pointer\":" << JsonString(report.lists.pointer) << "}"
      << ",\"without_time\":" << report.without_time << ",\"begin_ms\":" << time(report.begin)
      << ",\"end_ms\":" << time(report.end) << ",\"wrong_times\":"
      << (report.wrong_times.empty() ? std::string("null") : JsonString(report.wrong_times))
      << ",\"framed_keys\":" << (report.frames.in_keys() ? "true" : "false")
      << ",\"framed_values\":" << (report.frames.in_values() ? "true" : "false")
      << absl::StreamFormat(",\"framed_key_share\":%.4f,\"framed_value_share\":%.4f",
                            report.frames.key_share(), report.frames.value_share())
      << ",\"wants_schema_registry\":" << (WantsRegistry(text) ? "true" : "false")
      << absl::StreamFormat(",\"rate\":%.17g", report.rate) << ",\"ids\":["
      << absl::StrJoin(
             report.candidates, ",",
             [&](std::string* json, const IdCandidate& candidate) { *json += JsonOf(report, candidate); })
      << "]";
  if (!error.empty()) out << ",\"error\":" << JsonString(error);
  out << "}";
}

}  // namespace

void WriteSurveysJson(const std::vector<SurveyedTopic>& topics, std::ostream& out) {
  out << "{\"topics\":[";
  absl::string_view separator;
  for (const SurveyedTopic& topic : topics) {
    out << std::exchange(separator, ",");
    if (topic.text) {
      WriteObject(*topic.text, topic.error, out);
    } else {
      out << "{\"input\":" << JsonString(topic.input) << ",\"error\":" << JsonString(topic.error) << "}";
    }
  }
  out << "]}\n";
}

void WriteSurveyJson(const SurveyText& text, std::ostream& out) {
  WriteObject(text, "", out);
  out << "\n";
}

}  // namespace lethe
