#include "src/cli/terminal/exit_code.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "src/cli/terminal/plain_text.h"
#include "src/text/format.h"

namespace lethe {

namespace {

constexpr absl::string_view kNoId = "lethe/no-id";

}  // namespace

absl::Status NoIdError(int64_t records, absl::string_view id, absl::string_view effect) {
  absl::Status error = absl::FailedPreconditionError(
      absl::StrCat("WARNING: none of the ", FormatCount(records), " records has a usable id at ", id, ": ",
                   effect, "; correct --id"));
  error.SetPayload(kNoId, absl::Cord());
  return error;
}

absl::Status NoTimeError(int64_t records, absl::string_view time, absl::string_view times) {
  absl::Status error = absl::FailedPreconditionError(absl::StrCat(
      "WARNING: none of the ", FormatCount(records), " records has a usable time at ", time, " (", times,
      "): lethe took all of them for records of one moment, and unique ones that came after the "
      "horizon may have been dropped; correct --time"));
  error.SetPayload(kNoId, absl::Cord());
  return error;
}

absl::Status WrongTimesError(absl::string_view place, absl::string_view time, const TimeUnitCheck& times) {
  const absl::string_view unit = times.LikelyUnit();
  absl::Status error = absl::FailedPreconditionError(absl::StrCat(
      place, ": of the times at ", time, " as milliseconds ", times.Text(), "; set ",
      unit.empty() ? "" : absl::StrCat("--time-unit ", unit, ", or "), "--time-unit ms if they are right"));
  error.SetPayload(kNoId, absl::Cord());
  return error;
}

int ReportError(const absl::Status& status, std::ostream& err) {
  if (status.ok()) return kExitOk;
  err << "lethe: " << Printable(status.message()) << "\n";
  if (status.GetPayload(kNoId)) return kExitNoId;
  return status.code() == absl::StatusCode::kInvalidArgument ? kExitUsage : kExitFailed;
}

}  // namespace lethe
