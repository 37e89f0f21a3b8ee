// What of a configuration that is read again is applied, and what is only told.
#include "src/cli/reload.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace lethe {
namespace {

RunConfig Config(const std::string& more) {
  const absl::StatusOr<RunConfig> config = MakeRunConfig(
      ConfigText{"lethe.yaml", absl::StrCat("brokers: b\ninput: in\noutput: out\nid: key\n", more)}, {});
  EXPECT_TRUE(config.ok()) << config.status();
  return config.value_or(RunConfig());
}

std::string Told(const std::vector<ConfigChange>& changes) {
  std::string told;
  for (const ConfigChange& change : changes) {
    absl::StrAppend(&told, change.key, change.live ? absl::StrCat(" ", change.before, ">", change.after) : "",
                    ";");
  }
  return told;
}

TEST(Reload, NothingChanges) {
  EXPECT_EQ(Told(Changes(Config(""), Config(""))), "");
  // What is the default anyway is no change.
  EXPECT_EQ(Told(Changes(Config(""), Config("commit_interval: 100ms\nlog:\n  level: info\n"))), "");
}

TEST(Reload, WhatIsLiveIsToldWithItsValuesAndTheRestByName) {
  const RunConfig before = Config("horizon: 1h\nkafka:\n  sasl.password: hunter2\n  linger.ms: 5\n");
  const RunConfig after =
      Config("commit_interval: 50ms\nlog:\n  level: debug\nkafka:\n  sasl.password: hunter3\n  debug: all\n");
  EXPECT_EQ(Told(Changes(before, after)),
            "horizon;commit_interval 100ms>50ms;log.level info>debug;kafka.debug;kafka.linger.ms;"
            "kafka.sasl.password;");
}

TEST(Reload, WhatIsTakenOverIsNoChangeAnyMore) {
  RunConfig running = Config("horizon: 1h\ncommit_interval: 10ms\n");
  const RunConfig read = Config("horizon: 2h\nlog:\n  level: error\n");
  EXPECT_EQ(Told(Changes(running, read)), "horizon;commit_interval 10ms>100ms;log.level info>error;");
  TakeOver(read, running);
  EXPECT_EQ(running.daemon.commit_interval, absl::Milliseconds(100));
  EXPECT_EQ(running.log.level, LogLevel::kError);
  EXPECT_EQ(running.daemon.stage.horizon, absl::Hours(1));
  EXPECT_EQ(Told(Changes(running, read)), "horizon;");
}

}  // namespace
}  // namespace lethe
