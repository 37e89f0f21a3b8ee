#include "src/pipeline/options/topic_list.h"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "src/assertion.h"
#include "src/pipeline/options/stage_options.h"

namespace lethe {
namespace {

constexpr size_t kLongestTopic = 249;  // Kafka's own limit
constexpr size_t kMostGroups = 10;     // $0, which is not written, to $9

// $1 to $9 stand for a group of the pattern.
bool IsGroupAt(absl::string_view text, size_t at) {
  return text[at] == '$' && at + 1 < text.size() && text[at + 1] >= '1' && text[at + 1] <= '9';
}
size_t GroupAt(absl::string_view text, size_t at) { return static_cast<size_t>(text[at + 1] - '0'); }

// The names of the topics that the options write, to read or to change.
void ForEachWritten(DaemonOptions& options, const std::function<void(std::string&)>& see) {
  see(options.output);
  if (!options.divert.empty()) see(options.divert);
  for (CounterOptions& counter : options.counters) see(counter.output);
}

size_t HighestGroup(absl::string_view text) {
  size_t highest = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (IsGroupAt(text, at)) highest = std::max(highest, GroupAt(text, at));
  }
  return highest;
}

// The regular expression of all names that the text may stand for; empty: it would be every name.
std::string FormOf(absl::string_view text) {
  std::string form = "^";
  bool has_letters = false;
  for (size_t at = 0; at < text.size(); ++at) {
    if (IsGroupAt(text, at)) {
      form += ".*";
      ++at;
      continue;
    }
    has_letters = true;
    if (text[at] == '.') form += '\\';  // the one character of names that means something there
    form += text[at];
  }
  return has_letters ? absl::StrCat(form, "$") : "";
}

// Whether the pattern's repetitions, such as {3} or {2,5}, multiply to more than names have letters: the
// compiled form grows with their product, and could take all memory.
bool RepeatsTooOften(absl::string_view pattern) {
  size_t product = 1;
  for (size_t at = pattern.find('{'); at != absl::string_view::npos; at = pattern.find('{', at + 1)) {
    size_t most = 1;
    size_t number = 0;
    for (size_t i = at + 1; i < pattern.size() && pattern[i] != '}'; ++i) {
      number = absl::ascii_isdigit(static_cast<unsigned char>(pattern[i]))
                   ? std::min<size_t>(10 * number + static_cast<size_t>(pattern[i] - '0'), kLongestTopic + 1)
                   : 0;
      most = std::max(most, number);
    }
    product *= most;
    if (product > kLongestTopic) return true;
  }
  return false;
}

// Why the two may not both be inputs: the later one is named first. Empty: they may.
std::string Clash(const DaemonOptions& later, const DaemonOptions& earlier) {
  const std::vector<std::string> written = WrittenTopics(later);
  const std::vector<std::string> before = WrittenTopics(earlier);
  const auto reads = [](const DaemonOptions& options, const std::string& topic) {
    const std::vector<std::string> inputs = options.inputs();
    return std::find(inputs.begin(), inputs.end(), topic) != inputs.end();
  };
  for (const std::string& input : later.inputs()) {
    if (!reads(earlier, input)) continue;
    return absl::StrCat(input, " -> ", later.output, ": the input is also that of ", earlier.output,
                        "; delete one of the two entries");
  }
  for (const std::string& topic : written) {
    if (reads(earlier, topic)) {
      return absl::StrCat(later.input, " -> ", topic, ": lethe reads ", topic, " and writes it to ",
                          earlier.output, "; no output may be an input");
    }
    // Diverted records say where they come from, so these may come together.
    if (topic == later.divert && topic == earlier.divert) continue;
    if (std::find(before.begin(), before.end(), topic) != before.end()) {
      return absl::StrCat(later.input, " -> ", topic, ": ", earlier.input,
                          " is written to it, too; give each input an output of its own");
    }
  }
  for (const std::string& input : later.inputs()) {
    if (std::find(before.begin(), before.end(), input) == before.end()) continue;
    return absl::StrCat(input, " -> ", later.output, ": lethe writes ", input, " from ", earlier.input,
                        "; no output may be an input");
  }
  return "";
}

// Finds clashes by the topics that two have in common, since a pattern may match thousands. The options
// outlive it.
class Neighbours {
 public:
  void Add(const DaemonOptions& options) {
    for (const std::string& topic : TopicsOf(options)) by_topic_[topic].push_back(&options);
    if (!options.divert.empty()) by_divert_[options.divert].push_back(&options);
  }
  // With one that was added, itself excepted; empty: there is none.
  std::string ClashOf(const DaemonOptions& options) const {
    for (const std::string& topic : TopicsOf(options)) {
      for (const auto* const found : {&by_topic_, &by_divert_}) {
        if (std::string clash = ClashIn(*found, topic, options); !clash.empty()) return clash;
      }
    }
    return ClashIn(by_topic_, options.divert, options);
  }

 private:
  using ByTopic = std::map<std::string, std::vector<const DaemonOptions*>>;

  // All but `divert`, which many may share.
  static std::vector<std::string> TopicsOf(const DaemonOptions& options) {
    std::vector<std::string> topics = options.inputs();
    for (const std::string& written : WrittenTopics(options)) {
      if (written != options.divert) topics.push_back(written);
    }
    return topics;
  }
  static std::string ClashIn(const ByTopic& found, const std::string& topic, const DaemonOptions& options) {
    const auto others = found.find(topic);
    if (others == found.end()) return "";
    for (const DaemonOptions* other : others->second) {
      if (other == &options) continue;
      if (std::string clash = Clash(options, *other); !clash.empty()) return clash;
    }
    return "";
  }

  ByTopic by_topic_;
  ByTopic by_divert_;
};

bool AllGoTogether(const std::vector<DaemonOptions>& inputs) {
  Neighbours all;
  for (const DaemonOptions& each : inputs) all.Add(each);
  return absl::c_all_of(inputs, [&](const DaemonOptions& each) { return all.ClashOf(each).empty(); });
}

}  // namespace

absl::StatusOr<TopicList> TopicList::Create(std::vector<DaemonOptions> entries) {
  TopicList list;
  std::map<std::string, const DaemonOptions*> inputs;
  for (DaemonOptions& options : entries) {
    const auto [other, is_new] = inputs.emplace(options.input, &options);
    if (!is_new) {
      return absl::InvalidArgumentError(absl::StrCat(options.input, " -> ", options.output,
                                                     ": the input is also that of ", other->second->output,
                                                     "; delete one of the two entries"));
    }
    list.own_.insert(options.process.snapshots.topic);
    if (options.scope == Scope::kTopic && !IsPattern(options.input))
      list.own_.insert(RepartitionTopic(options));
    if (IsPattern(options.input)) {
      if (absl::Status status = list.AddPattern(options); !status.ok()) return status;
      continue;
    }
    absl::Status status;
    ForEachWritten(options, [&](const std::string& topic) {
      list.own_.insert(topic);
      if (HighestGroup(topic) == 0 || !status.ok()) return;
      status = absl::InvalidArgumentError(absl::StrCat(
          options.input, " -> ", topic,
          ": $1 stands for a group of a pattern, and this input is a name; a pattern begins with ^"));
    });
    if (!status.ok()) return status;
    for (const DaemonOptions& earlier : list.named_) {
      if (const std::string clash = Clash(options, earlier); !clash.empty()) {
        return absl::InvalidArgumentError(clash);
      }
    }
    list.named_.push_back(options);
  }
  return list;
}

absl::Status TopicList::AddPattern(DaemonOptions options) {
  absl::StatusOr<Regex> input = Compile(options.input);
  if (!input.ok()) return input.status();
  Pattern pattern = {.options = std::move(options), .input = *std::move(input), .written = {}};
  const size_t groups = pattern.input->re_nsub;
  absl::Status status;
  ForEachWritten(pattern.options, [&](const std::string& topic) {
    if (!status.ok()) return;
    const std::string place = absl::StrCat(pattern.options.input, " -> ", topic);
    const size_t highest = HighestGroup(topic);
    if (highest > groups) {
      status = absl::InvalidArgumentError(
          absl::StrCat(place, ": the pattern has no group ", highest, "; put a part of it in parentheses"));
    } else if (highest == 0 && topic != pattern.options.divert) {
      status = absl::InvalidArgumentError(absl::StrCat(
          place, ": all topics of the pattern would be written to one; name a group of it, such as ",
          groups == 0 ? "PATTERN-unique.$1 for ^PATTERN\\.(.+)$" : absl::StrCat(topic, ".$1")));
    } else if (const std::string form = FormOf(topic); !form.empty()) {
      pattern.written.push_back(Compile(form).value());
    }
  });
  if (status.ok()) patterns_.push_back(std::move(pattern));
  return status;
}

absl::StatusOr<TopicList::Regex> TopicList::Compile(const std::string& pattern) {
  if (RepeatsTooOften(pattern)) {
    return absl::InvalidArgumentError(absl::StrCat(pattern.substr(0, kLongestTopic),
                                                   ": its repetitions, such as {3}, multiply to more than ",
                                                   kLongestTopic, ", the length of a name; use * or +"));
  }
  for (const absl::string_view digits : {"\\d", "\\D"}) {
    if (!absl::StrContains(pattern, digits)) continue;
    return absl::InvalidArgumentError(absl::StrCat(pattern, ": ", digits, " is the letter ", digits.substr(1),
                                                   " in a POSIX extended regular expression: write ",
                                                   digits == "\\d" ? "[0-9]" : "[^0-9]"));
  }
  auto regex = std::make_unique<regex_t>();
  if (const int code = regcomp(regex.get(), pattern.c_str(), REG_EXTENDED); code != 0) {
    std::array<char, 256> why = {};
    regerror(code, regex.get(), why.data(), why.size());
    return absl::InvalidArgumentError(
        absl::StrCat(pattern, ": not a POSIX extended regular expression: ", why.data()));
  }
  return Regex(regex.release(), [](const regex_t* compiled) {
    auto* owned = const_cast<regex_t*>(compiled);  // NOLINT(cppcoreguidelines-pro-type-const-cast): regfree
    regfree(owned);
    std::default_delete<regex_t>()(owned);
  });
}

bool TopicList::Matches(const Regex& regex, const std::string& topic) {
  return regexec(regex.get(), topic.c_str(), 0, nullptr, 0) == 0;
}

DaemonOptions TopicList::OptionsOf(const Pattern& pattern, const std::string& topic) {
  std::array<regmatch_t, kMostGroups> groups = {};
  static_cast<void>(regexec(pattern.input.get(), topic.c_str(), groups.size(), groups.data(), 0));
  DaemonOptions options = pattern.options;
  options.input = topic;
  ForEachWritten(options, [&](std::string& written) {
    std::string name;
    for (size_t at = 0; at < written.size(); ++at) {
      if (!IsGroupAt(written, at)) {
        name += written[at];
        continue;
      }
      const regmatch_t& group = groups[GroupAt(written, at++)];
      if (group.rm_so < 0) continue;  // a part that this topic does not have
      name.append(topic, static_cast<size_t>(group.rm_so), static_cast<size_t>(group.rm_eo - group.rm_so));
    }
    written = std::move(name);
  });
  return options;
}

bool TopicList::IsOwn(const std::string& topic) const {
  if (absl::StartsWith(topic, "__") || own_.contains(topic)) return true;
  return std::any_of(patterns_.begin(), patterns_.end(), [&](const Pattern& pattern) {
    // This group may have had `scope: topic`.
    const bool is_repartition = absl::StartsWith(topic, absl::StrCat(pattern.options.process.group, "-")) &&
                                absl::EndsWith(topic, "-repartition");
    return is_repartition || std::any_of(pattern.written.begin(), pattern.written.end(),
                                         [&](const Regex& written) { return Matches(written, topic); });
  });
}

bool TopicList::IsNamed(const std::string& input) const {
  return absl::c_any_of(
      named_, [&](const DaemonOptions& options) { return absl::c_linear_search(options.inputs(), input); });
}

TopicList::Candidate TopicList::CandidateOf(const std::vector<const Pattern*>& matching,
                                            const std::string& topic) {
  if (matching.size() > 1) {
    return {{},
            absl::StrCat(topic, ": both ", matching[0]->options.input, " and ", matching[1]->options.input,
                         " match it; narrow one, or give it an entry by name")};
  }
  Candidate candidate = {OptionsOf(*matching.front(), topic), ""};
  for (const std::string& written : WrittenTopics(candidate.options)) {
    if (written == topic) {
      candidate.why_not =
          absl::StrCat(topic, " -> ", written, ": it would be its own output; change the output");
    } else if (written.empty() || written.size() > kLongestTopic) {
      candidate.why_not = absl::StrCat(topic, " -> ", written, ": expected a name of 1 to ", kLongestTopic,
                                       " characters; change the output");
    } else {
      continue;
    }
    break;
  }
  return candidate;
}

TopicList::Inputs TopicList::Match(const std::set<std::string>& existing,
                                   const std::set<std::string>& present,
                                   const HasCommits& has_commits) const {
  Inputs inputs = {.topics = named_, .named = named_.size(), .refused = {}, .unmatched = {}};
  std::set<const Pattern*> matched;
  std::vector<DaemonOptions> candidates;
  std::vector<std::string> left_out;
  std::set<std::string> topics = existing;
  topics.insert(present.begin(), present.end());  // one that was deleted may come back
  for (const std::string& topic : topics) {
    if (IsNamed(topic) || IsOwn(topic)) {
      left_out.push_back(topic);
      continue;
    }
    std::vector<const Pattern*> matching;
    for (const Pattern& pattern : patterns_) {
      if (Matches(pattern.input, topic)) matching.push_back(&pattern);
    }
    if (matching.empty()) continue;
    matched.insert(matching.begin(), matching.end());
    Candidate candidate = CandidateOf(matching, topic);
    if (candidate.why_not.empty()) {
      candidates.push_back(std::move(candidate.options));
    } else {
      inputs.refused.push_back({topic, std::move(candidate.why_not)});
    }
  }
  // Those of a rank are inputs, or not, before the next is looked at.
  enum Rank { kPresent, kWithCommits, kNew, kRanks };
  std::array<std::vector<const DaemonOptions*>, kRanks> ranks;
  std::vector<const DaemonOptions*> in_doubt;
  std::map<const DaemonOptions*, absl::Status> unknown;
  Neighbours all;
  for (const DaemonOptions& each : named_) all.Add(each);
  for (const DaemonOptions& each : candidates) all.Add(each);
  for (const DaemonOptions& each : candidates) {
    if (present.contains(each.input)) {
      ranks[kPresent].push_back(&each);
    } else if (!all.ClashOf(each).empty()) {
      in_doubt.push_back(&each);
    } else {
      ranks[kNew].push_back(&each);
    }
  }
  if (!in_doubt.empty()) {
    const std::vector<absl::StatusOr<bool>> committed = has_commits(in_doubt);
    for (size_t i = 0; i < in_doubt.size(); ++i) {
      Rank rank = kNew;
      if (!committed[i].ok()) unknown.emplace(in_doubt[i], committed[i].status());
      if (committed[i].value_or(true)) rank = kWithCommits;
      ranks[rank].push_back(in_doubt[i]);
    }
  }
  Neighbours taken;
  for (const DaemonOptions& each : named_) taken.Add(each);
  for (std::vector<const DaemonOptions*>& rank : ranks) {
    std::erase_if(rank, [&](const DaemonOptions* each) {
      std::string clash = taken.ClashOf(*each);
      if (clash.empty()) return false;
      inputs.refused.push_back({each->input, std::move(clash)});
      return true;
    });
    Neighbours equals;
    for (const DaemonOptions* each : rank) equals.Add(*each);
    for (const DaemonOptions* each : rank) {
      std::string why;
      if (const auto asked = unknown.find(each); asked != unknown.end()) {
        why = absl::StrCat(all.ClashOf(*each), "; whether the group has read it before is not known yet: ",
                           asked->second.message());
        taken.Add(*each);
      } else if (why = equals.ClashOf(*each); !why.empty()) {
        absl::StrAppend(
            &why,
            "; lethe reads neither, since it cannot know which one you want: delete the other one, "
            "or give yours an entry by name");
      } else {
        taken.Add(*each);
        inputs.topics.push_back(*each);
      }
      if (!why.empty()) inputs.refused.push_back({each->input, std::move(why)});
    }
  }
  for (const Pattern& pattern : patterns_) {
    if (matched.contains(&pattern)) continue;
    Unmatched& unmatched = inputs.unmatched.emplace_back(Unmatched{pattern.options.input, {}});
    absl::c_copy_if(left_out, std::back_inserter(unmatched.left_out),
                    [&](const std::string& topic) { return Matches(pattern.input, topic); });
  }
  LETHE_DEBUG_ASSERT(AllGoTogether(inputs.topics));
  return inputs;
}

}  // namespace lethe
