#include "src/cli/config/config_file.h"

#include <sys/stat.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <sstream>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace lethe {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 20;
constexpr size_t kMaxValueFileBytes = size_t{1} << 16;
constexpr int kMaxDepth = 8;
constexpr int kMaxReferenceDepth = 4;  // each level is read again for each around it
constexpr int kMaxValues = 20'000;     // keys, values and aliases, of which each may repeat a whole section

absl::Status ErrorAt(absl::string_view name, int line, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(name, ":", line, ": ", what));
}

// The first line that is indented with a tab, from 1 on; 0: none.
int LineWithTab(absl::string_view yaml) {
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(yaml, '\n')) {
    ++number;
    if (absl::StrContains(line.substr(0, line.find_first_not_of(" \t")), '\t')) return number;
  }
  return 0;
}

int LineOf(const YAML::Mark& mark) { return mark.line + 1; }

ConfigEntry::Shape ShapeOf(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Scalar:
      return ConfigEntry::Shape::kText;
    case YAML::NodeType::Sequence:
      return ConfigEntry::Shape::kList;
    case YAML::NodeType::Map:
      return ConfigEntry::Shape::kMap;
    default:
      return ConfigEntry::Shape::kNothing;
  }
}

// Where a map is in the file.
struct MapPlace {
  std::string section = {};
  int item = -1;
  int topic = -1;
};

absl::Status Flatten(const std::string& name, const MapPlace& place, const YAML::Node& map,
                     std::vector<ConfigEntry>& entries);

// The key of which a list is another way to write NAME,NAME.
constexpr absl::string_view kInput = "input";

bool IsListOfTexts(const YAML::Node& node) {
  return node.IsSequence() && std::all_of(node.begin(), node.end(), [](const YAML::Node& each) {
           return ShapeOf(each) == ConfigEntry::Shape::kText;
         });
}

// What is in a list at the top level, or at that of a topic.
absl::Status FlattenItems(const std::string& name, const MapPlace& place, const ConfigEntry& of,
                          const YAML::Node& list, std::vector<ConfigEntry>& entries) {
  for (size_t i = 0; i < list.size(); ++i) {
    const YAML::Node& each = list[i];
    const int item = static_cast<int>(i);
    const bool is_topic = of.key == kTopics && place.topic < 0;
    const MapPlace inside = is_topic ? MapPlace{.topic = item} : MapPlace{of.key, item, place.topic};
    if (each.IsMap()) {
      if (absl::Status status = Flatten(name, inside, each, entries); !status.ok()) return status;
    } else {
      entries.push_back({.section = inside.section,
                         .key = "",
                         .shape = ShapeOf(each),
                         .text = "",
                         .line = LineOf(each.Mark()),
                         .item = inside.item,
                         .topic = inside.topic});
    }
  }
  return absl::OkStatus();
}

absl::Status Flatten(const std::string& name, const MapPlace& place, const YAML::Node& map,
                     std::vector<ConfigEntry>& entries) {
  std::map<std::string, int> lines;
  for (const auto& pair : map) {
    const int line = LineOf(pair.first.Mark());
    if (!pair.first.IsScalar()) return ErrorAt(name, line, "expected a key, found a list or a map");
    ConfigEntry entry;
    entry.section = place.section;
    entry.item = place.item;
    entry.topic = place.topic;
    entry.key = pair.first.Scalar();
    entry.shape = ShapeOf(pair.second);
    entry.line = line;
    if (entry.shape == ConfigEntry::Shape::kText) entry.text = pair.second.Scalar();
    if (place.section.empty() && entry.key == kInput && IsListOfTexts(pair.second)) {
      entry.shape = ConfigEntry::Shape::kText;
      for (const YAML::Node& each : pair.second) {
        absl::StrAppend(&entry.text, entry.text.empty() ? "" : ",", each.Scalar());
      }
    }
    const auto [earlier, is_new] = lines.emplace(entry.key, line);
    if (!is_new) entry.earlier = earlier->second;
    entries.push_back(entry);
    if (!place.section.empty() || !is_new) continue;
    absl::Status status;
    if (entry.shape == ConfigEntry::Shape::kMap) {
      status = Flatten(name, {entry.key, -1, place.topic}, pair.second, entries);
    } else if (entry.shape == ConfigEntry::Shape::kList) {
      status = FlattenItems(name, place, entry, pair.second, entries);
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// yaml-cpp's message, without quotes from the file: an unquoted password that begins with * is an
// alias to YAML, and its message names it.
std::string WithoutQuotes(const std::string& message) {
  if (absl::StartsWith(message, "the referenced anchor is not defined")) {
    return "a value that begins with * refers to an anchor, and there is none of that name: put it in quotes "
           "if the * belongs to it";
  }
  return absl::StrCat("not YAML: ", message.substr(0, message.find(':')));
}

class Refusal : public YAML::Exception {
  using YAML::Exception::Exception;
};

// Throws a Refusal at what no configuration has, before its nodes are in memory. yaml-cpp 0.7 finds documents
// without end behind `{a: b}, x`, where it loads all of them.
class Bounds : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) throw Refusal(mark, "a second YAML document; a configuration is one");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { Count(mark); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { Count(mark); }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t, const std::string&) override {
    Count(mark);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    Enter(mark);
  }
  void OnSequenceEnd() override { --depth_; }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    Enter(mark);
  }
  void OnMapEnd() override { --depth_; }

 private:
  void Count(const YAML::Mark& mark) {
    if (++values_ > kMaxValues) {
      throw Refusal(mark,
                    absl::StrCat("more than ", kMaxValues, " keys and values, which no configuration has"));
    }
  }
  void Enter(const YAML::Mark& mark) {
    Count(mark);
    if (++depth_ > kMaxDepth) {
      throw Refusal(mark,
                    absl::StrCat("lists and maps more than ", kMaxDepth, " deep; a configuration has 5"));
    }
  }

  int documents_ = 0;
  int depth_ = 0;
  int values_ = 0;
};

// The line of the first mistake; 0: there is none.
int LineOfMistake(const std::string& yaml) {
  try {
    Bounds bounds;
    std::istringstream stream(yaml);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(bounds)) {
    }
  } catch (const YAML::Exception& error) {
    return LineOf(error.mark);
  }
  return 0;
}

// The quote that a value begins with and that the line does not close; '\0': none.
char OpenQuote(absl::string_view line) {
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '"' && line[i] != '\'') continue;
    const size_t before = i == 0 ? line.npos : line.find_last_not_of(" \t", i - 1);
    if (before != line.npos && !absl::StrContains(":-[{,", line[before])) continue;
    const char quote = line[i];
    for (++i; i < line.size() && line[i] != quote; ++i) i += quote == '"' && line[i] == '\\';
    if (i >= line.size()) return quote;
  }
  return '\0';
}

// The line of a quote whose end is missing. YAML reports it where another quote follows, or the file ends:
// with the quote closed on its own line, that mistake is gone, or is further down. 0: it is another mistake.
int LineWithOpenQuote(const std::string& yaml, int mistake) {
  int left = 20;  // each is another look at the whole file
  std::vector<std::string> lines = absl::StrSplit(yaml, '\n');
  for (size_t i = 0; i < lines.size() && static_cast<int>(i) < mistake; ++i) {
    const char quote = OpenQuote(lines[i]);
    if (quote == '\0') continue;
    if (--left < 0) return 0;
    lines[i].push_back(quote);
    const int next = LineOfMistake(absl::StrJoin(lines, "\n"));
    if (next == 0 || next > mistake) return static_cast<int>(i) + 1;
    lines[i].pop_back();
  }
  return 0;
}

bool IsVariableName(absl::string_view name) {
  if (name.empty() || absl::ascii_isdigit(static_cast<unsigned char>(name[0]))) return false;
  for (const char c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  }
  return true;
}

// At most one byte more than `most_bytes`, of the file's beginning.
absl::StatusOr<std::string> ReadBeginning(const std::string& path, absl::string_view what,
                                          size_t most_bytes) {
  const auto cannot = [&] {
    return absl::ErrnoToStatus(errno, absl::StrCat(path, ": the ", what, " cannot be read"));
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (file == nullptr) return cannot();
  std::string text(most_bytes + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0) return cannot();
  return text;
}

// A pipe would wait for a writer, and a device may never end.
absl::Status CheckRegular(const std::string& path) {
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat(path, ": the value cannot be read"));
  }
  if (S_ISREG(status.st_mode)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": not a regular file; values are read from regular files only"));
}

// The content of a file without its last end of line, which editors and `echo` add.
absl::StatusOr<std::string> ValueFile(const std::string& path) {
  if (absl::Status regular = CheckRegular(path); !regular.ok()) return regular;
  absl::StatusOr<std::string> value = ReadBeginning(path, "value", kMaxValueFileBytes);
  if (!value.ok()) return value;
  if (value->size() > kMaxValueFileBytes) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": larger than 64 KiB, which no value is"));
  }
  if (absl::EndsWith(*value, "\n")) value->pop_back();
  if (absl::EndsWith(*value, "\r")) value->pop_back();
  if (value->empty()) return absl::InvalidArgumentError(absl::StrCat(path, ": the file is empty"));
  return value;
}

absl::StatusOr<std::string> Expand(absl::string_view text, int depth);

// The position of the } that ends a reference, or npos. References may be nested.
size_t EndOfReference(absl::string_view text) {
  int open = 1;
  for (size_t i = 0; i < text.size(); ++i) {
    if (absl::StartsWith(text.substr(i), "${")) ++open;
    if (text[i] == '}' && --open == 0) return i;
  }
  return absl::string_view::npos;
}

// `inside` is what stands between ${ and }.
absl::StatusOr<std::string> Variable(absl::string_view inside, int depth) {
  if (absl::ConsumePrefix(&inside, "file:")) {
    const absl::StatusOr<std::string> path = Expand(inside, depth + 1);
    return path.ok() ? ValueFile(*path) : path.status();
  }
  const size_t split = inside.find(":-");
  const std::string name(inside.substr(0, split));
  if (!IsVariableName(name)) {
    return absl::InvalidArgumentError(
        "expected ${NAME}, ${NAME:-default} or ${file:PATH} after a $; write $$ for a single $");
  }
  const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): nobody calls setenv
  if (split != absl::string_view::npos) {
    return value == nullptr || *value == '\0' ? std::string(inside.substr(split + 2)) : std::string(value);
  }
  if (value == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("the environment variable ", name,
                                                   " is not set; set it, or write ${", name, ":-default}"));
  }
  return std::string(value);
}

absl::StatusOr<std::string> Expand(absl::string_view text, int depth) {
  if (depth > kMaxReferenceDepth) {
    return absl::InvalidArgumentError(
        absl::StrCat("references more than ", kMaxReferenceDepth, " deep, which no value has"));
  }
  std::string expanded;
  while (true) {
    const size_t dollar = text.find('$');
    absl::StrAppend(&expanded, text.substr(0, dollar));
    if (dollar == absl::string_view::npos) return expanded;
    text.remove_prefix(dollar + 1);
    if (absl::ConsumePrefix(&text, "{")) {
      const size_t end = EndOfReference(text);
      if (end == absl::string_view::npos) {
        return absl::InvalidArgumentError("a ${ without its }; write $${ if it is meant literally");
      }
      absl::StatusOr<std::string> value = Variable(text.substr(0, end), depth);
      if (!value.ok()) return value.status();
      if (expanded.size() + value->size() > kMaxValueFileBytes) {
        return absl::InvalidArgumentError("its references give more than 64 KiB, which no value is");
      }
      expanded += *value;
      text.remove_prefix(end + 1);
    } else {
      expanded += '$';
      absl::ConsumePrefix(&text, "$");
    }
  }
}

}  // namespace

std::string ConfigEntry::Path() const {
  std::string path = topic < 0 ? "" : absl::StrCat(kTopics, "[", topic, "]");
  const auto append = [&](absl::string_view part) {
    if (!part.empty()) absl::StrAppend(&path, path.empty() ? "" : ".", part);
  };
  append(item < 0 ? section : absl::StrCat(section, "[", item, "]"));
  append(key);
  return path;
}

absl::StatusOr<ConfigText> ReadConfigFile(const std::string& path) {
  absl::StatusOr<std::string> yaml = ReadBeginning(path, "configuration", kMaxFileBytes);
  if (!yaml.ok()) return yaml.status();
  if (yaml->size() > kMaxFileBytes) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": larger than 1 MiB, which no configuration is"));
  }
  return ConfigText{path, *std::move(yaml)};
}

absl::StatusOr<std::vector<ConfigEntry>> ParseConfigText(const ConfigText& text) {
  std::vector<ConfigEntry> entries;
  // UTF-16 is full of them. yaml-cpp would read it, with the end of the document below as two letters.
  if (const size_t zero = text.yaml.find('\0'); zero != std::string::npos) {
    const auto end = text.yaml.begin() + static_cast<std::ptrdiff_t>(zero);
    return ErrorAt(text.name, 1 + static_cast<int>(std::count(text.yaml.begin(), end, '\n')),
                   "not text in UTF-8: it has a zero byte; save it as UTF-8");
  }
  // The end of the document is written out, since yaml-cpp lets the end of the file close an open quote,
  // and all lines behind the quote would be lost in it.
  const std::string yaml = absl::StrCat(text.yaml, "\n...\n");
  try {
    Bounds bounds;
    std::istringstream stream(yaml);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(bounds)) {
    }
    const YAML::Node document = YAML::Load(yaml);
    if (document.IsNull()) return entries;
    if (!document.IsMap()) {
      return ErrorAt(text.name, LineOf(document.Mark()), "expected 'key: value' lines");
    }
    if (absl::Status status = Flatten(text.name, {}, document, entries); !status.ok()) return status;
  } catch (const Refusal& refusal) {
    return ErrorAt(text.name, LineOf(refusal.mark), refusal.msg);
  } catch (const YAML::Exception& error) {
    if (const int line = LineWithTab(yaml); line > 0) {
      return ErrorAt(text.name, line, "not YAML: indented with a tab: use spaces");
    }
    if (const int line = LineWithOpenQuote(yaml, LineOf(error.mark)); line > 0) {
      return ErrorAt(text.name, line, "a quote is opened, and not closed");
    }
    return ErrorAt(text.name, LineOf(error.mark), WithoutQuotes(error.msg));
  }
  return entries;
}

absl::StatusOr<std::string> ExpandReferences(absl::string_view text) { return Expand(text, 0); }

}  // namespace lethe
