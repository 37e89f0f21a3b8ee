// Surveys a stream: where its id is, how many duplicates it has, and how late they come.
#ifndef LETHE_SURVEY_SURVEY_H_
#define LETHE_SURVEY_SURVEY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "src/record/record_reader.h"
#include "src/record/registry_frame.h"
#include "src/record/schema_source.h"
#include "src/survey/id_sample.h"

namespace lethe {

// Views, valid as long as the record.
struct SurveyRecord {
  RecordView record;
  // All headers of `record`.
  absl::Span<const std::pair<absl::string_view, std::optional<absl::string_view>>> headers;
  int32_t partition = 0;
  int64_t offset = 0;
  int64_t time_ms = -1;  // Unix; -1: it has none
};

struct SurveyOptions {
  std::optional<IdSpec> id;  // nullopt: search for it
  int64_t memory_bytes = int64_t{256} << 20;
  SchemaSource* schemas = nullptr;  // outlives the survey; never waits. Null: there is none
};

// Best first.
enum class IdQuality {
  kGood,      // nearly always there, and unique except for copies that are equal in key, value and headers
  kDoubtful,  // look at the figures
  kPoor,      // not an id
};

// A candidate for the id, and its effect on the stream.
struct IdCandidate {
  IdSpec id;
  IdQuality quality = IdQuality::kPoor;
  std::string remark;       // the reason; empty for a given id without objection
  int64_t later_place = 0;  // records whose id is from another place than the first
  int64_t partial = 0;      // records whose id lacks an optional part
  int64_t missing = 0;      // records without it
  int64_t tombstones = 0;   // of them: without a value
  int64_t malformed = 0;    // records whose JSON is broken, if it reads JSON
  // Of the records that could have it: those with a value, unless it reads the key alone.
  double present_share = 0;
  struct Unusable {
    int32_t partition = 0;
    int64_t offset = 0;
    std::string reason;
  };
  std::vector<Unusable> unusable;  // the first few records of both, but for tombstones
  IdFigures figures;
};

struct SurveyReport {
  int64_t records = 0;
  int64_t tombstones = 0;  // of them: without a value
  int64_t without_time = 0;
  // 99 of 100 records are between these times; both InfinitePast() if no record has one.
  absl::Time begin = absl::InfinitePast();
  absl::Time end = absl::InfinitePast();
  double rate = 0;  // records a second between them; 0 if they are the same
  // Most times are of another unit than Kafka's milliseconds, so times, rate and lateness mean nothing.
  // Empty: they are not.
  std::string wrong_times;
  RegistryFrames frames;
  std::string envelope;  // the one that was recognized by its names; empty: none
  // Of the first records, those that are lists of several events: lethe judges a record by one id.
  struct Lists {
    int64_t examined = 0;
    int64_t records = 0;
    int64_t events = 0;
    std::string pointer;  // to the list, in the first of them
  } lists;
  // Best first. If the id was given: that one alone.
  std::vector<IdCandidate> candidates;
};

// Memory is about the limit at most, plus 16 MiB for the first records, which give the candidates if no id is
// given, and the places that name a sending. Thread-compatible.
class Survey {
 public:
  explicit Survey(SurveyOptions options);
  ~Survey();

  void Add(const SurveyRecord& record);
  int64_t records() const;

  // Of the records added so far.
  SurveyReport Report();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lethe

#endif  // LETHE_SURVEY_SURVEY_H_
