// A first look at a stream: how many duplicates it has, how late they come, and where its id is.
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
#include "src/survey/id_sample.h"

namespace lethe {

// A record and where it stands. Views, valid as long as the record.
struct SurveyRecord {
  RecordView record;
  // The same headers as `record` has, all of them by name.
  absl::Span<const std::pair<absl::string_view, std::optional<absl::string_view>>> headers;
  int32_t partition = 0;
  int64_t offset = 0;
  int64_t time_ms = -1;  // Unix; -1: it has none
};

struct SurveyOptions {
  std::optional<IdSpec> id;  // nullopt: it is looked for
  int64_t memory_bytes = int64_t{256} << 20;
};

// What speaks for an id, best first.
enum class IdQuality {
  kGood,      // nearly always there, and nearly always another one but for copies with an equal payload
  kDoubtful,  // it may be one: the figures must be looked at
  kPoor,      // it is none
};

// A candidate for the id, and its effect on the stream.
struct IdCandidate {
  IdSpec id;
  IdQuality quality = IdQuality::kPoor;
  std::string remark;     // why, for people; empty if it was given, and nothing speaks against it
  int64_t missing = 0;    // records without it
  int64_t malformed = 0;  // records whose JSON is broken, if it reads JSON
  struct Unusable {
    int32_t partition = 0;
    int64_t offset = 0;
    std::string reason;
  };
  std::vector<Unusable> unusable;  // the first few records of both
  IdFigures figures;
};

struct SurveyReport {
  int64_t records = 0;
  int64_t without_time = 0;
  // 99 of 100 records are between these times; both InfinitePast() if no record has one.
  absl::Time begin = absl::InfinitePast();
  absl::Time end = absl::InfinitePast();
  double rate = 0;  // records a second between them; 0 if they are the same
  // Best first. If the id was given: that one alone.
  std::vector<IdCandidate> candidates;
};

// Looks at each record once. Memory is at most about the limit, and 16 MiB for the first records, from which
// candidates for the id are taken when none is given. Thread-compatible.
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
