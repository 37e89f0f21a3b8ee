// A finding about the cluster, for the log and for `lethe check`.
#ifndef LETHE_SRC_PIPELINE_PREFLIGHT_FINDING_H_
#define LETHE_SRC_PIPELINE_PREFLIGHT_FINDING_H_

#include <string>

#include "absl/strings/str_cat.h"

namespace lethe {

struct Finding {
  enum class Severity { kOk, kWarning, kError };
  Severity severity = Severity::kOk;
  std::string check;       // a word: partitions, retention
  std::string where;       // input topic orders
  std::string what;        // has 12 partitions
  std::string remedy;      // what to do about it; empty if it is fine
  std::string topic = {};  // the input that it concerns; empty: the whole process

  bool operator==(const Finding&) const = default;
  std::string Text() const { return absl::StrCat(where, " ", what, remedy.empty() ? "" : ": ", remedy); }
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_PREFLIGHT_FINDING_H_
