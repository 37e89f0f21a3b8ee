// Who may include whom: cli -> connectors -> include/lethe <- engine. Nothing points back.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace lethe {
namespace {

// Words that name what only connectors and the command line know.
constexpr absl::string_view kOutside[] = {"rdkafka", "httplib", "microhttpd", "yaml",
                                          "spdlog",  "fmt/",    "prometheus", "CLI/",
                                          "zlib",    "hiredis", "curl",       "gtest"};

bool IsOutside(absl::string_view name) {
  return absl::c_any_of(kOutside, [&](absl::string_view word) { return absl::StrContains(name, word); });
}

// Of the system and the standard library: <vector>, <unistd.h>, <sys/mman.h>.
bool IsSystem(absl::string_view name, bool in_angles) {
  return in_angles && !IsOutside(name) && (!absl::StrContains(name, '/') || absl::StartsWith(name, "sys/"));
}

bool StartsWithAny(absl::string_view name, std::vector<std::string> prefixes) {
  return absl::c_any_of(prefixes, [&](const std::string& prefix) { return absl::StartsWith(name, prefix); });
}

// Whether a file may include what is called so. `file` is its path from the top of the tree.
bool IsAllowed(absl::string_view file, absl::string_view name, bool in_angles) {
  if (absl::StartsWith(file, "src/cli/")) return !StartsWithAny(name, {"tests/"});
  if (absl::StartsWith(name, "src/cli/")) return false;
  if (StartsWithAny(name, {"absl/", "lethe/"}) || IsSystem(name, in_angles)) return true;
  if (absl::StartsWith(file, "include/")) {
    return file == "include/lethe/prometheus.h" && absl::StartsWith(name, "prometheus/");
  }
  // What the library is made of has no records, and no JSON.
  const bool reads_records =
      StartsWithAny(file, {"src/record/", "src/survey/", "src/verify/", "src/pipeline/", "connectors/"});
  if (StartsWithAny(name, {"src/record/", "src/survey/", "src/verify/"})) return reads_records;
  if (absl::StartsWith(name, "src/pipeline/")) {
    return StartsWithAny(file, {"src/pipeline/", "connectors/kafka/"});
  }
  // Nor filters that break the promise.
  if (absl::StartsWith(name, "src/reference/")) {
    return StartsWithAny(file, {"src/reference/"});
  }
  if (absl::StartsWith(name, "src/")) return true;
  // The loop of the daemon logs, and measures how small records become.
  if (absl::StartsWith(file, "src/pipeline/") && (name == "spdlog/spdlog.h" || name == "zstd.h")) return true;
  // Schemas are compiled off the hot path.
  if (absl::StartsWith(file, "src/record/") &&
      (name == "nlohmann/json.hpp" || absl::StartsWith(name, "google/protobuf/"))) {
    return true;
  }
  if (absl::StartsWith(file, "src/")) {
    return name == "xxhash.h" || absl::StartsWith(name, "boost/math/") ||
           (name == "simdjson.h" && reads_records);
  }
  // A connector includes itself, and the client library that it is there for.
  const std::vector<std::string> folders = absl::StrSplit(file, '/');
  if (absl::StartsWith(name, "connectors/")) {
    return absl::StartsWith(name, absl::StrCat("connectors/", folders.at(1), "/"));
  }
  return !absl::StartsWith(name, "tests/");
}

struct Include {
  std::string name;
  bool in_angles = false;
};

// The include on a line, with an empty name if there is none.
Include IncludeOn(absl::string_view line) {
  if (!absl::ConsumePrefix(&line, "#include ")) return {};
  const bool in_angles = absl::StartsWith(line, "<");
  line.remove_prefix(1);
  return {std::string(line.substr(0, line.find_first_of(">\""))), in_angles};
}

TEST(Layers, ArrowsPointOneWay) {
  int files = 0;
  int includes = 0;
  for (const char* top : {"include", "src", "connectors"}) {
    const std::filesystem::path root = LETHE_SOURCE_DIR;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / top)) {
      if (entry.path().extension() != ".h" && entry.path().extension() != ".cc") continue;
      ++files;
      const std::string file = entry.path().lexically_relative(root).string();
      std::ifstream text(entry.path());
      for (std::string line; std::getline(text, line);) {
        const Include include = IncludeOn(line);
        if (include.name.empty()) continue;
        ++includes;
        EXPECT_TRUE(IsAllowed(file, include.name, include.in_angles))
            << file << " must not include " << include.name;
      }
    }
  }
  EXPECT_GT(files, 80);
  EXPECT_GT(includes, 5 * files);
}

// Of the project's own headers; the folders of the library and of the connectors.
TEST(Layers, NoFoldersIncludeEachOther) {
  std::map<std::string, std::map<std::string, std::string>> includes;  // folder, included, by which file
  const auto folder_of = [](absl::string_view path) {
    return std::filesystem::path(std::string(path)).parent_path().string();
  };
  const std::filesystem::path root = LETHE_SOURCE_DIR;
  for (const char* top : {"src", "connectors"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / top)) {
      if (entry.path().extension() != ".h" && entry.path().extension() != ".cc") continue;
      const std::string file = entry.path().lexically_relative(root).string();
      std::ifstream text(entry.path());
      for (std::string line; std::getline(text, line);) {
        const Include include = IncludeOn(line);
        if (!StartsWithAny(include.name, {"src/", "connectors/"})) continue;
        if (folder_of(include.name) == folder_of(file)) continue;
        includes[folder_of(file)].emplace(folder_of(include.name), file);
      }
    }
  }
  EXPECT_GT(includes.size(), 8u);
  std::set<std::string> done;
  std::set<std::string> open;  // on the way to the folder that is looked at
  const std::function<void(const std::string&)> visit = [&](const std::string& folder) {
    open.insert(folder);
    for (const auto& [other, file] : includes[folder]) {
      EXPECT_FALSE(open.contains(other)) << file << " includes " << other << ", which needs " << folder;
      if (!open.contains(other) && !done.contains(other)) visit(other);
    }
    open.erase(folder);
    done.insert(folder);
  };
  visit("src/cli");  // which needs all others
  EXPECT_GT(done.size(), 15u);
}

// What asks the system for the time, or waits, on a line.
std::string SystemTimeOn(absl::string_view line) {
  for (const char* name : {"SteadyNow", "absl::Now", "SleepFor", "sleep", "steady_clock", "system_clock",
                           "time(nullptr)", "stop.WaitFor", "stop_.WaitFor"}) {
    if (absl::StrContains(line, name)) return name;
  }
  return "";
}

// Else it could not be played by a test that owns the time.
TEST(Layers, ThePipelineHasItsTimeFromItsClock) {
  int files = 0;
  const std::filesystem::path root = LETHE_SOURCE_DIR;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "src/pipeline")) {
    if (!entry.is_regular_file() || entry.path().parent_path().filename() == "clock") continue;
    ++files;
    std::ifstream text(entry.path());
    for (std::string line; std::getline(text, line);) {
      EXPECT_EQ(SystemTimeOn(line), "") << entry.path() << ": " << line << ": take Clock";
    }
  }
  EXPECT_GT(files, 60);
  EXPECT_EQ(SystemTimeOn("  const absl::Time now = absl::Now();"), "absl::Now");
  EXPECT_EQ(SystemTimeOn("  const absl::Time now = clock_.Steady();"), "");
}

// The tables of text in a source that do not hash with SecretHash: keys of records, topics and files may be
// made to collide in any other hash.
std::vector<std::string> TablesWithoutSecret(const std::string& source) {
  static const std::regex kTable("(flat_hash_|node_hash_|unordered_)(multi)?(map|set)<");
  std::vector<std::string> found;
  for (std::sregex_iterator match(source.begin(), source.end(), kTable), end; match != end; ++match) {
    const auto from = static_cast<size_t>(match->position());
    size_t at = from + static_cast<size_t>(match->length());
    size_t key_end = 0;  // of the first argument
    for (int depth = 1; depth > 0 && at < source.size(); ++at) {
      if (source[at] == '<' || source[at] == '(') ++depth;
      if (source[at] == '>' || source[at] == ')') --depth;
      if (key_end == 0 && (depth == 0 || (depth == 1 && source[at] == ','))) key_end = at;
    }
    const std::string table = source.substr(from, at - from);
    if (!absl::StrContains(source.substr(from, key_end - from), "string")) continue;
    if (!absl::StrContains(table, "SecretHash")) found.push_back(table);
  }
  return found;
}

TEST(Layers, TablesOfTextHashWithASecret) {
  int with_secret = 0;
  const std::filesystem::path root = LETHE_SOURCE_DIR;
  for (const char* top : {"include", "src", "connectors"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / top)) {
      if (entry.path().extension() != ".h" && entry.path().extension() != ".cc") continue;
      std::ifstream text(entry.path());
      const std::string source(std::istreambuf_iterator<char>(text), {});
      for (const std::string& table : TablesWithoutSecret(source)) {
        ADD_FAILURE() << entry.path() << ": " << table << ": take SecretHashMap or SecretHashSet";
      }
      if (absl::StrContains(source, "SecretHashMap<") || absl::StrContains(source, "SecretHashSet ")) {
        ++with_secret;
      }
    }
  }
  EXPECT_GT(with_secret, 6);
}

TEST(Layers, TablesWithoutASecretAreFound) {
  using Tables = std::vector<std::string>;
  for (const char* table :
       {"absl::flat_hash_map<std::string, int>", "std::unordered_map<std::string, Place>",
        "absl::flat_hash_set<absl::string_view>", "absl::node_hash_map<std::pair<int, std::string>, int>",
        "std::unordered_multimap<\n  std::string, std::vector<int>>"}) {
    EXPECT_EQ(TablesWithoutSecret(absl::StrCat("  ", table, " table_;\n")).size(), 1u) << table;
  }
  for (const char* table : {"absl::flat_hash_map<int, std::string>", "absl::flat_hash_set<uint64_t>",
                            "absl::flat_hash_map<std::string, Value, SecretHash, std::equal_to<>>",
                            "std::map<std::string, int>"}) {
    EXPECT_EQ(TablesWithoutSecret(absl::StrCat("  ", table, " table_;\n")), Tables()) << table;
  }
}

TEST(Layers, TheRulesAreStrict) {
  const struct {
    const char* file;
    const char* line;
    bool is_allowed;
  } cases[] = {
      {"include/lethe/stage.h", "#include <vector>", true},
      {"include/lethe/stage.h", "#include \"absl/time/time.h\"", true},
      {"include/lethe/stage.h", "#include \"src/stage/shard.h\"", false},
      {"include/lethe/stage.h", "#include \"xxhash.h\"", false},
      {"include/lethe/stage.h", "#include <prometheus/collectable.h>", false},
      {"include/lethe/prometheus.h", "#include <prometheus/collectable.h>", true},
      {"src/filter/hash.cc", "#include \"xxhash.h\"", true},
      {"src/fpp/confidence.cc", "#include <boost/math/special_functions/gamma.hpp>", true},
      {"src/stage/stage.cc", "#include <boost/asio.hpp>", false},
      {"src/memory/line_memory.cc", "#include <sys/mman.h>", true},
      {"src/record/json_scanner.cc", "#include \"simdjson.h\"", true},
      {"src/pipeline/worker.cc", "#include <spdlog/spdlog.h>", true},
      {"src/stage/stage.cc", "#include <spdlog/spdlog.h>", false},
      {"src/stage/stage.cc", "#include \"simdjson.h\"", false},
      {"src/stage/stage.cc", "#include \"src/record/record.h\"", false},
      {"src/stage/stage.cc", "#include \"src/reference/any_engine.h\"", false},
      {"src/engines/published_engine.cc", "#include \"src/published/adaptive_fbf.h\"", true},
      {"src/pipeline/options/options.h", "#include \"src/reference/any_engine.h\"", false},
      {"src/survey/survey.h", "#include \"src/record/record_reader.h\"", true},
      {"src/stage/stage.cc", "#include <librdkafka/rdkafka.h>", false},
      {"src/stage/stage.cc", "#include <rdkafka.h>", false},
      {"src/stage/stage.cc", "#include <httplib.h>", false},
      {"src/stage/stage.cc", "#include \"yaml-cpp/yaml.h\"", false},
      {"src/stage/stage.cc", "#include <spdlog/spdlog.h>", false},
      {"src/stage/stage.cc", "#include \"prometheus/registry.h\"", false},
      {"src/stage/stage.cc", "#include \"src/pipeline/worker.h\"", false},
      {"src/stage/stage.cc", "#include \"src/cli/config/units.h\"", false},
      {"src/pipeline/worker.cc", "#include \"src/record/record.h\"", true},
      {"src/pipeline/worker.cc", "#include <librdkafka/rdkafka.h>", false},
      {"connectors/kafka/connector.cc", "#include <librdkafka/rdkafka.h>", true},
      {"connectors/kafka/connector.cc", "#include \"connectors/kafka/output/output.h\"", true},
      {"connectors/kafka/connector.cc", "#include \"connectors/http/http_server.h\"", false},
      {"src/pipeline/worker.cc", "#include \"connectors/kafka/output/output.h\"", false},
      {"src/pipeline/worker.cc", "#include \"src/cli/config/config.h\"", false},
      {"src/cli/main.cc", "#include \"connectors/kafka/connector.h\"", true},
      {"src/cli/main.cc", "#include \"tests/support/oracle.h\"", false},
  };
  for (const auto& [file, line, is_allowed] : cases) {
    const Include include = IncludeOn(line);
    EXPECT_EQ(IsAllowed(file, include.name, include.in_angles), is_allowed) << file << ": " << line;
  }
}

}  // namespace
}  // namespace lethe
