// The daemon without a broker: what it says before it asks for one.
#include "connectors/kafka/daemon.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <memory>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace lethe::kafka {
namespace {

// The log of a daemon whose topics are refused before a broker is asked.
std::string LogWith(Engine engine) {
  std::ostringstream log;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
  DaemonOptions options;
  options.brokers = "127.0.0.1:1";
  options.input = options.output = "events";
  options.group = "daemon-test";
  options.instance = absl::StrCat("daemon-test-", getpid());
  options.stage.engine = engine;
  auto daemon = Daemon::Create(options);
  EXPECT_TRUE(daemon.ok()) << daemon.status();
  if (daemon.ok()) {
    EXPECT_EQ((*daemon)->Run().code(), absl::StatusCode::kInvalidArgument);
  }
  spdlog::set_default_logger(before);
  return log.str();
}

TEST(DaemonTest, AnEngineThatPromisesLessIsTakenWithAWarning) {
  for (const Engine engine : {Engine::kBloom, Engine::kRecycled, Engine::kOpposite}) {
    const std::string log = LogWith(engine);
    EXPECT_TRUE(absl::StrContains(
        log, absl::StrCat("[warning] engine ", EngineName(engine), ": ", BrokenPromise(engine))))
        << log;
  }
  for (const Engine engine : {Engine::kSliced, Engine::kPublished, Engine::kExact, Engine::kEpochTable}) {
    EXPECT_EQ(LogWith(engine), "") << EngineName(engine);
  }
}

}  // namespace
}  // namespace lethe::kafka
