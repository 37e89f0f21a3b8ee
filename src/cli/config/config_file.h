// A configuration file as it stands: its entries with their lines, before anything is known of their meaning.
#ifndef LETHE_SRC_CLI_CONFIG_CONFIG_FILE_H_
#define LETHE_SRC_CLI_CONFIG_CONFIG_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace lethe {

struct ConfigText {
  std::string name;  // for errors: the path as the user gave it
  std::string yaml;
};

// NotFound, PermissionDenied or another error of the system, or InvalidArgument if it is no file of
// reasonable size.
absl::StatusOr<ConfigText> ReadConfigFile(const std::string& path);

// One `key: value`. A map at the top level is a section: it is an entry itself, and its own entries follow
// it with its key as their `section`. So do those of the maps in a list at the top level, with their place in
// it; an item that is no map is an entry without a key. The maps in the list `topics` have entries like the
// whole file, each with its place in that list.
struct ConfigEntry {
  enum class Shape { kText, kNothing, kList, kMap };
  std::string section;
  std::string key;
  Shape shape = Shape::kText;
  std::string text;  // of a kText; ${...} are still in it
  int line = 0;      // of the key, from 1
  int item = -1;     // of the list that the section is, from 0; -1: it is none
  int topic = -1;    // of the list `topics`, from 0; -1: it is in none
  int earlier = 0;   // the line where the key is already; 0: it is not

  // "section.key", or "key".
  std::string Key() const { return section.empty() ? key : absl::StrCat(section, ".", key); }
  // The same with its place in lists: "section[item].key", and "topics[topic]." in front.
  std::string Path() const;
};

inline constexpr char kTopics[] = "topics";

// The entries in the order of the file. InvalidArgument with name:line if it is not YAML, not a map, has
// several documents, or more depth or values than any configuration. No error shows a value.
absl::StatusOr<std::vector<ConfigEntry>> ParseConfigText(const ConfigText& text);

// ${NAME} becomes the environment variable NAME, ${NAME:-default} the default if it is unset or empty,
// ${file:PATH} the content of the file without its last line end, $$ a single $; any other $ stays. PATH may
// contain references.
// InvalidArgument names the variable that is not set, or the file, never a value.
absl::StatusOr<std::string> ExpandReferences(absl::string_view text);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_CONFIG_CONFIG_FILE_H_
