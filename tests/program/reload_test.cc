// The keys of a reloaded configuration that take effect, and those that need a restart.
#include "src/cli/config/reload.h"

#include <gtest/gtest.h>

#include <memory>

#include "absl/strings/match.h"
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
    absl::StrAppend(
        &told, change.key,
        change.before.empty()
            ? ""
            : absl::StrCat(" ", change.before, change.is_applied ? ">" : " stays, not ", change.after),
        ";");
  }
  return told;
}

// A daemon that is not run asks nothing of its brokers.
class ReloadTest : public testing::Test {
 protected:
  void RunsWith(const std::string& more) {
    running_ = Config(more);
    auto daemon = kafka::Daemon::Create(running_.daemon);
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    daemon_ = *std::move(daemon);
  }
  std::vector<ConfigChange> Read(const std::string& more) { return Reload(Config(more), running_, *daemon_); }

  RunConfig running_;
  std::unique_ptr<kafka::Daemon> daemon_;
};

TEST_F(ReloadTest, NothingChanges) {
  RunsWith("");
  EXPECT_EQ(Told(Read("")), "");
  // What is the default anyway is no change.
  EXPECT_EQ(Told(Read("commit_interval: 100ms\nlog:\n  level: info\n")), "");
  EXPECT_EQ(running_.fingerprint, Config("").fingerprint);
}

TEST_F(ReloadTest, AppliedChangesAreLoggedWithValuesAndTheOthersByName) {
  RunsWith("horizon: 1h\nkafka:\n  sasl.password: hunter2\n  linger.ms: 5\n");
  EXPECT_EQ(
      Told(Read("commit_interval: 50ms\nlog:\n  level: debug\nkafka:\n  sasl.password: hunter3\n  debug: "
                "all\n")),
      "horizon;commit_interval 100ms>50ms;log.level info>debug;kafka.debug;kafka.linger.ms;"
      "kafka.sasl.password;");
}

TEST_F(ReloadTest, AnAppliedChangeIsNoChangeAnyMore) {
  RunsWith("horizon: 1h\ncommit_interval: 10ms\n");
  const std::string read = "horizon: 2h\nlog:\n  level: error\n";
  EXPECT_EQ(Told(Read(read)), "horizon;commit_interval 10ms>100ms;log.level info>error;");
  EXPECT_EQ(running_.daemon.commit_interval, absl::Milliseconds(100));
  EXPECT_EQ(running_.log.level, LogLevel::kError);
  EXPECT_EQ(running_.daemon.stage.horizon, absl::Hours(1));
  EXPECT_EQ(Told(Read(read)), "horizon;");
}

TEST_F(ReloadTest, TheFingerprintIsThatOfWhatRuns) {
  RunsWith("memory: 1GiB\n");
  Read("memory: 2GiB\non_missing_id: drop\nhorizon: 1h\n");
  EXPECT_EQ(running_.fingerprint, Config("memory: 2GiB\non_missing_id: drop\n").fingerprint);
  EXPECT_NE(running_.fingerprint, Config("").fingerprint);
}

TEST_F(ReloadTest, TheMemoryLimit) {
  RunsWith("memory: 64MiB\n");
  EXPECT_EQ(Told(Read("memory: 256MiB\n")), "memory 64MiB>256MiB;");
  EXPECT_EQ(daemon_->Report().memory_limit_bytes, 256 << 20);
  EXPECT_EQ(Told(Read("memory: 1MiB\n")), "memory 256MiB>1MiB;");
  EXPECT_EQ(daemon_->Report().memory_limit_bytes, 1 << 20);
}

TEST_F(ReloadTest, TheTargetAsFarAsFiltersCanFollow) {
  RunsWith("engine: sliced\nfpp: 1e-6\n");
  EXPECT_EQ(Told(Read("engine: sliced\nfpp: 2e-7\n")), "fpp 1e-6>2e-7;");
  EXPECT_EQ(daemon_->Report().fpp_target, 2e-7);
  const std::vector<ConfigChange> other = Read("engine: sliced\nfpp: 1e-4\n");
  EXPECT_EQ(Told(other), "fpp 2e-7 stays, not 1e-4;");
  EXPECT_EQ(other[0].why_not,
            "a filter for 2e-07 keeps an id in 5 lines, one for 0.0001 in 4: ids in the filter would not be "
            "found; restart with a filter rebuilt from the log");
  EXPECT_EQ(daemon_->Report().fpp_target, 2e-7);

  RunsWith("engine: exact\n");
  EXPECT_TRUE(
      absl::StrContains(Read("engine: exact\nfpp: 2e-6\n")[0].why_not, "the engine exact takes its form"));
}

TEST_F(ReloadTest, Policies) {
  RunsWith("second_opinion: opposite\n");
  EXPECT_EQ(Told(Read("second_opinion: opposite\non_duplicate: tag\non_suspect: drop\non_missing_id: fail\n"
                      "on_malformed: drop\non_undeliverable: fail\non_unreadable: drop\n")),
            "on_duplicate drop>tag;on_suspect pass>drop;on_missing_id pass>fail;on_malformed pass>drop;"
            "on_undeliverable drop>fail;on_unreadable fail>drop;");
  EXPECT_EQ(running_.daemon.policies.on_missing_id, Action::kFail);
  EXPECT_FALSE(running_.daemon.stage.pass_suspects);
}

TEST_F(ReloadTest, DivertsOnlyToTheTopicOfTheStart) {
  RunsWith("");
  EXPECT_EQ(Told(Read("on_malformed: divert\ndivert: there\n")),
            "on_malformed pass stays, not divert;divert;");
  RunsWith("on_duplicate: divert\ndivert: there\n");
  EXPECT_EQ(Told(Read("on_malformed: divert\ndivert: there\n")),
            "on_duplicate divert>drop;on_malformed pass>divert;");
  EXPECT_EQ(Told(Read("on_malformed: divert\non_missing_id: divert\ndivert: elsewhere\n")),
            "on_missing_id pass stays, not divert;divert;");
  // The lanes that route records have no such topic open.
  RunsWith("scope: topic\non_duplicate: divert\ndivert: there\n");
  EXPECT_EQ(Told(Read("scope: topic\non_duplicate: divert\non_malformed: divert\non_undeliverable: divert\n"
                      "divert: there\n")),
            "on_malformed pass>divert;on_undeliverable drop stays, not divert;");
}

}  // namespace
}  // namespace lethe
