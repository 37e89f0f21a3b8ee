// The memory limit of the process's cgroup, and what `memory` makes of it.
#include "src/cli/config/container.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "src/cli/commands/check_command.h"
#include "src/cli/commands/run_command.h"
#include "src/cli/config/config.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMiB = int64_t{1} << 20;

// A root with /proc and /sys.
class FakeRoot {
 public:
  FakeRoot() {
    static int count = 0;
    path_ = fs::temp_directory_path() / absl::StrCat("lethe-cgroup-", getpid(), "-", ++count);
  }
  ~FakeRoot() { fs::remove_all(path_); }

  FakeRoot& Write(const std::string& file, const std::string& text) {
    const fs::path path = path_ / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
    return *this;
  }
  // -1: there is none.
  int64_t Limit() const {
    const auto limit = MemoryLimitOfCgroup(path_);
    return limit ? limit->bytes : -1;
  }

 private:
  fs::path path_;
};

TEST(Cgroup, TheLeastLimitOfThePathCounts) {
  FakeRoot root;
  root.Write("proc/self/cgroup", "0::/kubepods.slice/pod1/lethe")
      .Write("sys/fs/cgroup/kubepods.slice/memory.max", "max")
      .Write("sys/fs/cgroup/kubepods.slice/pod1/memory.max", "300000000")
      .Write("sys/fs/cgroup/kubepods.slice/pod1/lethe/memory.max", "500000000");
  EXPECT_EQ(root.Limit(), 300000000);
  root.Write("sys/fs/cgroup/kubepods.slice/memory.max", "200000000");
  EXPECT_EQ(root.Limit(), 200000000);
  root.Write("sys/fs/cgroup/kubepods.slice/pod1/lethe/memory.max", "100000000");
  EXPECT_EQ(root.Limit(), 100000000);
}

TEST(Cgroup, OfANamespaceTheMountIsTheContainers) {
  for (const std::string path : {"/", "/not/mounted/here", "/../sibling"}) {
    FakeRoot root;
    root.Write("proc/self/cgroup", absl::StrCat("0::", path)).Write("sys/fs/cgroup/memory.max", "123456789");
    EXPECT_EQ(root.Limit(), 123456789) << path;
  }
}

TEST(Cgroup, VersionOneToo) {
  FakeRoot root;
  root.Write("proc/self/cgroup", "5:cpu,cpuacct:/docker/1\n4:memory:/docker/1\n0::/")
      .Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712")
      .Write("sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "400000000");
  EXPECT_EQ(root.Limit(), 400000000);
}

TEST(Cgroup, WithoutProcTheMountIsAsked) {
  FakeRoot root;
  EXPECT_EQ(root.Limit(), -1);
  root.Write("sys/fs/cgroup/memory.max", "123456789");
  EXPECT_EQ(root.Limit(), 123456789);
}

TEST(Cgroup, NoLimitIsNone) {
  FakeRoot root;
  root.Write("proc/self/cgroup", "4:memory:/a\n0::/a")
      .Write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712")
      .Write("sys/fs/cgroup/a/memory.max", "max");
  EXPECT_EQ(root.Limit(), -1);
}

absl::StatusOr<RunConfig> Make(const std::string& more, int64_t limit_mib,
                               std::vector<EffectiveValue>* effective = nullptr) {
  return MakeRunConfig(
      ConfigText{"lethe.yaml", absl::StrCat("brokers: b:1\ninput: i\noutput: o\nhttp: 'off'\n",
                                            absl::StrContains(more, "id: ") ? "" : "id: key\n", more)},
      RunFlags{}, effective, CgroupLimit{limit_mib * kMiB, "memory.max"});
}

TEST(Container, MemoryIsHalfOfTheLimitUnlessItIsStated) {
  std::vector<EffectiveValue> effective;
  const auto config = Make("", 2048, &effective);
  ASSERT_OK(config);
  EXPECT_EQ(config->daemon.stage.memory_limit_bytes, 1024 * kMiB);
  for (const EffectiveValue& value : effective) {
    if (value.key != "memory") continue;
    EXPECT_EQ(value.text, "1GiB");
    EXPECT_EQ(value.origin, "half of memory.max");
  }
  EXPECT_EQ(Make("memory: 64MiB\n", 2048)->daemon.stage.memory_limit_bytes, 64 * kMiB);
}

// Memory in MiB, and the least limit that it fits.
struct Budget {
  std::string more;
  int64_t least_mib;
};

TEST(Container, RunAndCheckRefuseMemoryThatDoesNotFit) {
  for (const Budget& budget : std::vector<Budget>{
           {"memory: 256MiB\n", 256 + 192 + 64},
           {"memory: 256MiB\nlanes: 2\n", 256 + 2 * 192 + 64},
           {"memory: 256MiB\nscope: topic\n", 256 + 384 + 64},
           {"memory: 256MiB\nsnapshots: {to: 'topic:s'}\n", 256 + 192 + 64 + 64},
           {"memory: 256MiB\nid: avro:/id\nschema_registry: {url: 'http://127.0.0.1:1'}\n",
            256 + 192 + 64 + 64},
           {"", 511},  // half of it, in whole MiB
       }) {
    const auto fits = Make(budget.more, budget.least_mib);
    ASSERT_OK(fits);
    ASSERT_EQ(CheckMachine(*fits).size(), 1u);
    EXPECT_EQ(CheckMachine(*fits)[0].severity, Finding::Severity::kOk) << budget.more;
    const auto too_small = Make(budget.more, budget.least_mib - 1);
    ASSERT_OK(too_small);
    EXPECT_EQ(CheckMachine(*too_small)[0].severity, Finding::Severity::kError) << budget.more;
    ASSERT_FALSE(
        FitsLimit(too_small->daemon, !too_small->schema_registry.urls.empty(), *too_small->limit).ok())
        << budget.more;
    EXPECT_EQ(RunCommand(*too_small), 2) << budget.more;
  }
}

}  // namespace
}  // namespace lethe
