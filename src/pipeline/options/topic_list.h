// The inputs of one process: topics by name, and patterns of names.
#ifndef LETHE_SRC_PIPELINE_OPTIONS_TOPIC_LIST_H_
#define LETHE_SRC_PIPELINE_OPTIONS_TOPIC_LIST_H_

#include <regex.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/pipeline/options/options.h"

namespace lethe {

// Whether an input is a pattern of names: a POSIX extended regular expression, as librdkafka takes them.
inline bool IsPattern(absl::string_view input) { return !input.empty() && input.front() == '^'; }

// Decides which topics of the cluster are inputs, and what belongs to each.
//
// Invariant: no topic that lethe writes is an input, and no two inputs write to the same output or counter.
// A named topic belongs to its own entry, also where a pattern matches it. A pattern does not take internal
// topics, nor any that have the form of a topic that lethe writes, whether lethe has written it or not: so
// the answer does not depend on which inputs are there.
//
// Thread safety: const.
class TopicList {
 public:
  // The options of each entry. Where `input` is a pattern, $1 to $9 in `output`, `divert` and the outputs of
  // counters stand for its groups. InvalidArgument: two entries do not go together, or an entry cannot be
  // met; names them.
  static absl::StatusOr<TopicList> Create(std::vector<DaemonOptions> entries);

  struct Refused {
    std::string topic;
    std::string why;  // with what to do
  };
  struct Unmatched {
    std::string pattern;
    std::vector<std::string> left_out;  // topics that it matches, and does not take
  };
  struct Inputs {
    std::vector<DaemonOptions> topics;
    size_t named = 0;                  // the first so many have an entry by name
    std::vector<Refused> refused;      // topics that a pattern matches, and that must not be read
    std::vector<Unmatched> unmatched;  // patterns that match no other topic
  };
  // Of each, whether the group has committed offsets of what it judges for these options; else why it is not
  // known.
  using HasCommits =
      std::function<std::vector<absl::StatusOr<bool>>(const std::vector<const DaemonOptions*>& inputs)>;
  // The inputs among the topics of the cluster; those with a name in any case. `present` are inputs already.
  //
  // Where two do not go together, the names do not tell which is the stranger's: a stranger who may create
  // topics chooses them. So one that is an input already comes first, then one with commits; of two that are
  // equal in this, or if it is not known, neither is an input. `has_commits` is asked once, of such topics
  // alone.
  Inputs Match(const std::set<std::string>& existing, const std::set<std::string>& present,
               const HasCommits& has_commits) const;

  // Whether an entry names it.
  bool IsNamed(const std::string& input) const;
  bool has_patterns() const { return !patterns_.empty(); }

 private:
  using Regex = std::shared_ptr<const regex_t>;

  struct Pattern {
    DaemonOptions options;
    Regex input;
    std::vector<Regex> written;  // the forms of the topics that it writes
  };

  absl::Status AddPattern(DaemonOptions options);
  static absl::StatusOr<Regex> Compile(const std::string& pattern);
  static bool Matches(const Regex& regex, const std::string& topic);
  // The options of a topic that the pattern matches.
  static DaemonOptions OptionsOf(const Pattern& pattern, const std::string& topic);
  // Whether no pattern may take the topic.
  bool IsOwn(const std::string& topic) const;
  // The options of a topic that patterns match, or why it can be no input, whatever others there are.
  struct Candidate {
    DaemonOptions options;
    std::string why_not;
  };
  static Candidate CandidateOf(const std::vector<const Pattern*>& matching, const std::string& topic);

  std::vector<DaemonOptions> named_;
  std::vector<Pattern> patterns_;
  std::set<std::string> own_;  // what lethe writes for `named_`, and its other topics
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OPTIONS_TOPIC_LIST_H_
