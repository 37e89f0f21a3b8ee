// The example of the library's page: it is compiled and run, and the page shows just this.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "lethe/reconcile.h"
#include "tests/support/peer_pipe.h"
#include "tests/support/status_matchers.h"

// [example]
// Ids that the other side lacks. It runs the same with `initiates` turned round, and learns what this side
// lacks.
absl::StatusOr<std::vector<std::string>> MissingThere(lethe::PeerChannel& channel, bool initiates,
                                                      const std::vector<std::string>& ids) {
  lethe::ReconcileOptions options;
  options.initiates = initiates;
  options.subject = "orders by order number";  // both sides must say the same
  absl::StatusOr<lethe::Reconciliation> peers = lethe::Reconciliation::Begin(channel, options);
  if (!peers.ok()) return peers.status();
  std::map<uint64_t, std::string> by_key;
  std::vector<uint64_t> keys;
  for (const std::string& id : ids) {
    keys.push_back(peers->Key(id));
    by_key[keys.back()] = id;
  }
  absl::StatusOr<lethe::Difference> difference = peers->Compare(keys);
  if (!difference.ok()) return difference.status();
  std::vector<std::string> missing;
  for (const uint64_t key : difference->only_here) missing.push_back(by_key[key]);
  return missing;
}
// [/example]

namespace lethe {
namespace {

TEST(ReconcileExampleTest, EachSideNamesWhatTheOtherLacks) {
  auto [here, there] = test::PeerPipe::Make();
  absl::StatusOr<std::vector<std::string>> other;
  std::thread peer([&, channel = there.get()] { other = MissingThere(*channel, false, {"a", "b", "d"}); });
  const absl::StatusOr<std::vector<std::string>> own = MissingThere(*here, true, {"a", "b", "c"});
  peer.join();
  ASSERT_OK(own);
  ASSERT_OK(other);
  EXPECT_EQ(*own, std::vector<std::string>{"c"});
  EXPECT_EQ(*other, std::vector<std::string>{"d"});
}

TEST(ReconcileExampleTest, ThePageShowsIt) {
  const auto read = [](const std::string& path) {
    std::ifstream file(LETHE_SOURCE_DIR "/" + path);
    EXPECT_TRUE(file.good()) << path;
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  };
  const std::string source = read("tests/unit/reconcile_example_test.cc");
  const std::string begin = "// [example]\n";
  const size_t first = source.find(begin) + begin.size();
  const std::string example = source.substr(first, source.find("// [/example]\n") - first);
  EXPECT_NE(read("include/lethe/README.md").find("```cpp\n" + example + "```\n"), std::string::npos)
      << example;
}

}  // namespace
}  // namespace lethe
