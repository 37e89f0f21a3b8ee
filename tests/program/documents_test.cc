// All documents of the project: how long they are, and whether links lead somewhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "tests/support/pages.h"

namespace lethe {
namespace {

using testing::HasSubstr;

namespace fs = std::filesystem;

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Every *.md that belongs to the project: not those that a build or a tool has made.
std::vector<fs::path> Documents() {
  std::vector<fs::path> documents;
  for (const auto& entry : fs::directory_iterator(LETHE_SOURCE_DIR)) {
    if (entry.path().extension() == ".md") documents.push_back(entry.path());
  }
  for (const char* folder : {"connectors", "dashboards", "include", "src", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(LETHE_SOURCE_DIR) / folder)) {
      if (entry.path().extension() == ".md") documents.push_back(entry.path());
    }
  }
  return documents;
}

// What GitHub makes of a heading: "## Scope: `topic`" has the anchor scope-topic.
std::string Anchor(absl::string_view heading) {
  std::string anchor;
  for (const char c : absl::StripAsciiWhitespace(heading)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == ' ') {
      anchor += '-';
    } else if (absl::ascii_isalnum(byte) || c == '-' || c == '_' || byte >= 0x80) {
      anchor += absl::ascii_tolower(byte);
    }
  }
  return anchor;
}

std::set<std::string> Anchors(const std::string& page) {
  std::set<std::string> anchors;
  std::map<std::string, int> times;
  for (absl::string_view line : ProseLines(page)) {
    if (!absl::StartsWith(line, "#")) continue;
    line.remove_prefix(line.find_first_not_of('#'));
    const std::string anchor = Anchor(line);
    const int before = times[anchor]++;
    anchors.insert(before == 0 ? anchor : absl::StrCat(anchor, "-", before));
  }
  return anchors;
}

// A line without its inline code, in which `[](` may be C++.
std::string WithoutCode(absl::string_view line) {
  const std::vector<absl::string_view> parts = absl::StrSplit(line, '`');
  std::string text;
  for (size_t i = 0; i < parts.size(); i += 2) absl::StrAppend(&text, parts[i]);
  return text;
}

// Each `](target)` that does not lead to the network.
std::vector<std::string> LocalLinks(const std::string& page) {
  std::vector<std::string> links;
  for (const std::string& line : ProseLines(page)) {
    const std::string text = WithoutCode(line);
    for (size_t at = text.find("]("); at != std::string::npos; at = text.find("](", at)) {
      at += 2;
      const std::string link = text.substr(at, text.find(')', at) - at);
      if (!absl::StrContains(link, "://")) links.push_back(link);
    }
  }
  return links;
}

TEST(Documents, AnchorsAreThoseOfGitHub) {
  EXPECT_EQ(Anchor(" Quick start with your own Kafka"), "quick-start-with-your-own-kafka");
  EXPECT_EQ(Anchor(" Scope: `topic`"), "scope-topic");
  EXPECT_EQ(Anchor(" 10^5 ids, target 1e-06"), "105-ids-target-1e-06");
  EXPECT_EQ(Anchors("# A\n```\n# B\n```\n## A\n"), (std::set<std::string>{"a", "a-1"}));
  EXPECT_EQ(LocalLinks("[a](b.md#c) `[](d)` [e](https://f)\n```cpp\n[](int g) {}\n```\n"),
            std::vector<std::string>{"b.md#c"});
}

TEST(Documents, EveryLinkAndAnchorExists) {
  int links = 0, anchors = 0;
  for (const fs::path& document : Documents()) {
    SCOPED_TRACE(document);
    const std::string page = ReadFile(document);
    for (const std::string& link : LocalLinks(page)) {
      ++links;
      const size_t hash = link.find('#');
      const std::string path = link.substr(0, hash);
      const fs::path target = path.empty() ? document : document.parent_path() / path;
      if (!fs::exists(target)) {
        ADD_FAILURE() << link << ": there is no " << target;
      } else if (hash != std::string::npos && target.extension() == ".md") {
        ++anchors;
        EXPECT_TRUE(Anchors(ReadFile(target)).contains(link.substr(hash + 1))) << link;
      }
    }
  }
  EXPECT_GT(links, 80);
  EXPECT_GT(anchors, 30);
}

TEST(Documents, TheWayOfARecordNamesFunctionsThatExist) {
  const fs::path root = LETHE_SOURCE_DIR;
  std::set<std::string> files;
  for (const auto& [file, function] : NamedFunctions(ReadFile(root / "connectors/README.md"))) {
    files.insert(file);
    EXPECT_THAT(ReadFile(root / file), HasSubstr(absl::StrCat(" ", function, "(")))
        << file << " has no " << function;
  }
  EXPECT_GE(files.size(), 12u);
  EXPECT_LE(files.size(), 14u) << "a newcomer reads it in one sitting";
}

// The files that a rule names: from the folder of the page, or from the top.
TEST(Documents, TheRulesOfExactlyOnceNameFilesThatExist) {
  const fs::path root = LETHE_SOURCE_DIR;
  int files = 0;
  for (const std::string& line : ProseLines(ReadFile(root / "connectors/kafka/EXACTLY_ONCE.md"))) {
    const std::vector<std::string> parts = absl::StrSplit(line, '`');
    for (size_t i = 1; i < parts.size(); i += 2) {
      if (!absl::EndsWith(parts[i], ".cc") && !absl::EndsWith(parts[i], ".h")) continue;
      ++files;
      EXPECT_TRUE(fs::exists(root / parts[i]) || fs::exists(root / "connectors/kafka" / parts[i]))
          << parts[i];
    }
  }
  EXPECT_GT(files, 15);
}

// A command that is copied runs as it is. `commands_test` runs them.
TEST(Documents, CommandsOfKafkaAreCompleteInPagesAndMessages) {
  const fs::path root = LETHE_SOURCE_DIR;
  std::vector<fs::path> files = Documents();
  for (const char* folder : {"src", "connectors/kafka", "connectors/registry"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (entry.path().extension() == ".cc") files.push_back(entry.path());
    }
  }
  const std::regex command(R"(kafka-[a-z-]+\.sh (?!"|--bootstrap-server ))");
  int found = 0;
  for (const fs::path& file : files) {
    const std::string text = ReadFile(file);
    found += absl::StrContains(text, ".sh --bootstrap-server ") ? 1 : 0;
    for (std::sregex_iterator at(text.begin(), text.end(), command), end; at != end; ++at) {
      ADD_FAILURE() << file << ": " << text.substr(static_cast<size_t>(at->position()), 80);
    }
  }
  EXPECT_GT(found, 3);
}

// As `wc -w` counts.
int CountWords(const fs::path& document) {
  std::istringstream words(ReadFile(document));
  int count = 0;
  for (std::string word; words >> word;) ++count;
  return count;
}

// What does not fit belongs into the README of the folder that it concerns.
TEST(Documents, TheReadmeHasAtMost1500Words) {
  EXPECT_LE(CountWords(fs::path(LETHE_SOURCE_DIR) / "README.md"), 1500);
}

// Who adds a text shortens another. The list of changes grows with each version.
TEST(Documents, TheyHaveAtMost30000WordsBesideTheChanges) {
  int count = 0;
  for (const fs::path& document : Documents()) {
    if (document.filename() != "CHANGELOG.md") count += CountWords(document);
  }
  EXPECT_LE(count, 30'000);
}

// A text with each version of lethe that it names replaced: of images, of files that a user takes, of the
// chart, and what find_package asks for.
std::string WithVersion(const std::string& text, const std::string& version) {
  static const std::regex kThree(
      R"re((lethe[:_ -]v?|lethe(?:-dev|\d)_|\n(?:appV|v)ersion: "?)\d+\.\d+\.\d+)re");
  static const std::regex kTwo(R"re((find_package\(lethe )\d+\.\d+(?=\D))re");
  const std::string with_three = std::regex_replace(text, kThree, "$01" + version);
  return std::regex_replace(with_three, kTwo, "$01" + version.substr(0, version.rfind('.')));
}

TEST(Documents, VersionsAreFound) {
  for (const auto& [old, expected] : std::map<std::string, std::string>{
           {"image: lethe:0.2.0", "image: lethe:1.4.10"},
           {"lethe_0.2.0_amd64.deb", "lethe_1.4.10_amd64.deb"},
           {"lethe-0.2.0-py3-none", "lethe-1.4.10-py3-none"},
           {"liblethe1_0.2.0_amd64.deb", "liblethe1_1.4.10_amd64.deb"},
           {"a\nappVersion: \"0.2.0\"\nversion: 0.2.0\n", "a\nappVersion: \"1.4.10\"\nversion: 1.4.10\n"},
           {"find_package(lethe 0.2 REQUIRED)", "find_package(lethe 1.4 REQUIRED)"},
           {"librdkafka 2.0.2, lethe 127 ids, 10.1.0.0", "librdkafka 2.0.2, lethe 127 ids, 10.1.0.0"}}) {
    EXPECT_EQ(WithVersion(old, "1.4.10"), expected);
  }
}

// It is in CMakeLists.txt alone; who raises it has the rest written with LETHE_WRITE=1.
TEST(Documents, NoOtherVersionIsNamed) {
  const fs::path root = LETHE_SOURCE_DIR;
  const std::string build = ReadFile(root / "CMakeLists.txt");
  std::smatch present;
  ASSERT_TRUE(std::regex_search(build, present, std::regex(R"(project\(lethe VERSION (\S+))")));
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  for (const char* folder : {".ci", "connectors", "dashboards", "include", "src", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  int named = 0;
  for (const fs::path& file : files) {
    static const std::set<std::string> kTexts = {"",    ".md", ".yaml", ".yml", ".txt", ".cmake",
                                                 ".in", ".py", ".sh",   ".h",   ".c"};
    if (!kTexts.contains(file.extension()) || file.filename() == "CHANGELOG.md") continue;
    const std::string text = ReadFile(file);
    const std::string expected = WithVersion(text, present[1].str());
    named += text != WithVersion(text, "9.9.9") ? 1 : 0;
    if (text != expected && std::getenv("LETHE_WRITE") != nullptr) std::ofstream(file) << expected;
    EXPECT_TRUE(text == expected) << file << " names another version than " << present[1].str();
  }
  EXPECT_GE(named, 5);
}

}  // namespace
}  // namespace lethe
