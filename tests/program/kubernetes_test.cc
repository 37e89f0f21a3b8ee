// The chart and the sidecar's example: their configuration is one that lethe takes, and their figures fit it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"
#include "src/cli/config/config.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

using testing::EndsWith;

namespace fs = std::filesystem;

const fs::path kFolder = LETHE_SOURCE_DIR "/connectors/kubernetes";
// OPERATIONS.md, "Memory": of each lane, and of the program itself.
constexpr int64_t kLaneMiB = 192;
constexpr int64_t kProgramMiB = 64;

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

absl::StatusOr<RunConfig> Parse(const std::string& yaml) {
  setenv("HOSTNAME", "orders-0", 1);
  return MakeRunConfig(ConfigText{"lethe.yaml", yaml}, RunFlags{});
}

int64_t MebiBytes(const YAML::Node& size) {
  std::string text = size.as<std::string>();
  EXPECT_THAT(text, EndsWith("Mi"));
  int64_t number = 0;
  EXPECT_TRUE(absl::SimpleAtoi(absl::StripSuffix(text, "Mi"), &number)) << text;
  return number;
}

TEST(Kubernetes, TheSidecarsConfigurationIsTakenAndFitsItsLimit) {
  const std::vector<YAML::Node> documents = YAML::LoadAll(ReadFile(kFolder / "sidecar.yaml"));
  ASSERT_EQ(documents.size(), 2u);
  const auto config = Parse(documents[0]["data"]["lethe.yaml"].as<std::string>());
  ASSERT_OK(config);
  EXPECT_EQ(config->daemon.process.instance, "orders-0");

  const YAML::Node pod = documents[1]["spec"]["template"]["spec"];
  const YAML::Node lethe = pod["initContainers"][0];
  // Kubernetes starts such a container before the others, and ends it after them.
  EXPECT_EQ(lethe["restartPolicy"].as<std::string>(), "Always");
  EXPECT_GE(MebiBytes(lethe["resources"]["limits"]["memory"]),
            (config->daemon.stage.memory_limit_bytes >> 20) + kLaneMiB + kProgramMiB);
  EXPECT_EQ(pod["volumes"][0]["configMap"]["name"].as<std::string>(),
            documents[0]["metadata"]["name"].as<std::string>());
}

TEST(Kubernetes, TheChartsValuesAreThoseOfItsSchemaAndAConfiguration) {
  const YAML::Node values = YAML::Load(ReadFile(kFolder / "lethe/values.yaml"));
  const auto schema = nlohmann::json::parse(ReadFile(kFolder / "lethe/values.schema.json"));
  std::set<std::string> stated;
  for (const auto& value : values) stated.insert(value.first.as<std::string>());
  std::set<std::string> allowed;
  for (const auto& [name, value] : schema["properties"].items()) allowed.insert(name);
  allowed.erase("global");  // Helm's own
  EXPECT_EQ(stated, allowed);

  YAML::Node config = values["config"];
  config["instance"] = "${HOSTNAME}";
  config["http"] = absl::StrCat("0.0.0.0:", values["http"]["port"].as<int>());
  const auto parsed = Parse(YAML::Dump(config));
  EXPECT_OK(parsed);
}

TEST(Kubernetes, TheChartBringsTheAlertsAndDashboards) {
  for (const char* file : {"alerts.yml", "overview.json", "adaptation.json", "pipeline.json"}) {
    EXPECT_EQ(ReadFile(kFolder / "lethe/files" / file),
              ReadFile(fs::path(LETHE_SOURCE_DIR "/dashboards") / file));
  }
}

}  // namespace
}  // namespace lethe
