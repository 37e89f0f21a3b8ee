// The configuration of the daemon, from a YAML file and from flags.
#ifndef LETHE_SRC_CLI_CONFIG_CONFIG_H_
#define LETHE_SRC_CLI_CONFIG_CONFIG_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "connectors/registry/registry_options.h"
#include "src/cli/config/config_file.h"
#include "src/cli/config/container.h"
#include "src/cli/config/setting.h"
#include "src/cli/terminal/log.h"
#include "src/pipeline/options/options.h"

namespace lethe {

// One of `counters`, as it was written.
struct CounterConfig {
  CounterOptions options;
  std::optional<Field> when;
  std::optional<std::string> equals;
};

struct RunConfig {
  // Of the input; where there are several, what they have in common, and the first one's own.
  DaemonOptions daemon;
  // Of each entry of `topics`; else of the one input. An input may be a pattern (TopicList).
  std::vector<DaemonOptions> topics;
  registry::RegistryOptions schema_registry;
  // Where metrics and health are served: host:port, or "off".
  std::string http = "127.0.0.1:9464";
  // Whether it serves the keys of counters. Not set: if the address is of this machine alone.
  std::optional<bool> http_counters = std::nullopt;
  bool shows_counter_keys() const;
  // Metrics of each partition; otherwise of the topic.
  bool metrics_per_partition = true;
  std::string fingerprint;  // FingerprintOf() the effective configuration
  LogOptions log;
  std::string warning;               // about how it was given; empty: none
  std::optional<CgroupLimit> limit;  // of this process's memory
};

// Every key that takes one value; `counters`, a list, and `kafka`, a section of any number of them, are
// apart.
absl::Span<const Setting<RunConfig>> RunSettings();

// The keys of each of them.
absl::Span<const Setting<CounterConfig>> CounterSettings();
// The one of these that is a secret.
inline constexpr absl::string_view kStorePassword = "store_password";
// Whether an entry of `topics` may set the key.
bool IsTopicSetting(absl::string_view key);
// What `--counter` takes: "name=TEXT,key=FIELD,...".
std::string CounterFlagType();

// What the command line says, as text.
struct RunFlags {
  std::vector<std::pair<std::string, std::string>> values;  // by the key of the setting
  std::vector<std::string> kafka;                           // NAME=VALUE
  std::vector<std::string> counters = {};                   // KEY=VALUE,...
  bool exit_at_end = false;
};

// A value of the effective configuration, and its source.
struct EffectiveValue {
  // As that of a setting; "kafka.NAME" is a property of librdkafka, "counters[0].key" of the first counter,
  // "topics[0].horizon" of the first topic.
  std::string key;
  std::string text;    // empty if it is a secret
  std::string origin;  // "default", "lethe.yaml:3", "lethe.yaml:3, from the environment", "--horizon"
  bool is_secret = false;
};

// The file, if there is one, with the flags on top: a flag wins, but over what an entry of `topics` says. The
// file must be right also where a flag wins. InvalidArgument names the file and line, or the flag, the value
// (never one of `kafka`, which may be a secret) and the expected form. `effective`, if given, gets all
// effective values: those of the top level, then the sections. `limit` is that of the process's memory.
absl::StatusOr<RunConfig> MakeRunConfig(const std::optional<ConfigText>& file, const RunFlags& flags,
                                        std::vector<EffectiveValue>* effective = nullptr,
                                        const std::optional<CgroupLimit>& limit = std::nullopt);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_CONFIG_CONFIG_H_
