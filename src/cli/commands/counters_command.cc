#include "src/cli/commands/counters_command.h"

#include <signal.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "connectors/kafka/client/fixed_properties.h"
#include "connectors/kafka/topics/topic_reader.h"
#include "lethe/counters.h"
#include "lethe/secret_hash.h"
#include "src/cli/config/units.h"
#include "src/cli/terminal/interrupt.h"
#include "src/cli/terminal/json_text.h"
#include "src/cli/terminal/log.h"
#include "src/cli/terminal/plain_text.h"
#include "src/cli/terminal/terminal.h"
#include "src/pipeline/clock/steady_time.h"
#include "src/survey/survey.h"
#include "src/text/format.h"

namespace lethe {
namespace {

using Output = CountersCommandOptions::Output;
using Entry = std::pair<std::string, absl::int128>;

constexpr absl::Duration kFollowEvery = absl::Seconds(1);

constexpr Setting<CountersCommandOptions> kCountersSettings[] = {
    BrokersSetting<CountersCommandOptions>("The Kafka cluster: one or more of its brokers"),
    {"topic", "TOPIC", "", true, "The output of a counter, of either mode", "likes",
     By<StoreTopic, At<&CountersCommandOptions::topic>>},
    {"top", "NUMBER", "every key", false, "Print the NUMBER largest totals", "20",
     Value<At<&CountersCommandOptions::top>>, "1 or more"},
    {"format", "table|json|csv", "table", false,
     "How keys and totals are printed; json: an object for each key, on a line of its own", "csv",
     Choice<At<&CountersCommandOptions::output>, Output::kTable, Output::kJson, Output::kCsv>},
    SwitchSetting<CountersCommandOptions, &CountersCommandOptions::follow>(
        "follow", "Keep running and print changes every second"),
    KafkaSetting<CountersCommandOptions>(),
};

class Printer {
 public:
  Printer(const CountersCommandOptions& options, std::ostream& out) : options_(options), out_(out) {
    if (options.output == Output::kCsv) out_ << "key,total\n";
  }

  void Print(const std::vector<Entry>& entries) {
    size_t widest = 0;
    for (const Entry& entry : entries) widest = std::max(widest, Digits(entry.second).size());
    for (const auto& [key, total] : entries) {
      const std::string digits = Digits(total);
      switch (options_.output) {
        case Output::kTable:
          out_ << std::string(widest - digits.size(), ' ') << digits << "  " << Printable(key) << "\n";
          break;
        case Output::kJson:
          out_ << "{\"key\":" << JsonString(key) << ",\"total\":" << digits << "}\n";
          break;
        case Output::kCsv:
          out_ << CsvCell(key) << "," << digits << "\n";
          break;
      }
    }
    out_.flush();
  }

 private:
  const CountersCommandOptions& options_;
  std::ostream& out_;
};

// The totals, and which of them were printed.
class Counted {
 public:
  explicit Counted(const CountersCommandOptions& options) : options_(options) {}

  void Add(const SurveyRecord& record) {
    const absl::Status added = reader_.Add(record.record.key, record.record.value);
    if (added.ok()) return;
    if (++refused_ > 1) return;
    first_refused_ =
        absl::StrCat(options_.topic, "-", record.partition, " offset ", record.offset, ": ", added.message());
  }

  // All, or the top ones, that were not printed with this total yet.
  std::vector<Entry> TakeChanged() {
    const size_t most = options_.top ? static_cast<size_t>(*options_.top) : reader_.totals().size();
    std::vector<Entry> changed = reader_.Top(most);
    if (!options_.follow) return changed;
    std::erase_if(changed, [this](const Entry& entry) {
      const auto [printed, is_new] = printed_.try_emplace(entry.first, entry.second);
      return !is_new && std::exchange(printed->second, entry.second) == entry.second;
    });
    return changed;
  }

  absl::Status status() const {
    if (refused_ == 0) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(
        refused_, " records of ", options_.topic, " are none of a counter's and were left out, the first: ",
        first_refused_, "; name the output of a counter, and let nothing else write to it"));
  }

 private:
  const CountersCommandOptions& options_;
  CounterReader reader_;
  int64_t refused_ = 0;
  std::string first_refused_;
  SecretHashMap<absl::int128> printed_;
};

}  // namespace

absl::Span<const Setting<CountersCommandOptions>> CountersSettings() { return kCountersSettings; }

absl::Status RunCounters(const CountersCommandOptions& options, std::ostream& out) {
  // stdout is for the totals, and librdkafka's messages about reconnecting help no one.
  StartLog({.level = LogLevel::kWarning});
  const std::string warning = kafka::SecretsOnCommandLine(options.properties.exposed);
  if (!warning.empty()) spdlog::warn("{}", warning);
  const kafka::ReadOptions read = {.brokers = options.brokers,
                                   .topic = options.topic,
                                   .properties = options.properties.values,
                                   .name = "counters",
                                   .follow = options.follow};
  const std::atomic<bool>& interrupted = CatchInterrupts();
  const absl::StatusOr<std::unique_ptr<kafka::TopicReader>> reader =
      kafka::TopicReader::Open(read, [&] { return !interrupted.load(); });
  if (!reader.ok()) return reader.status();
  Counted counted(options);
  Printer printer(options, out);
  absl::Status status;
  {
    ProgressLine progress("records");
    absl::Time next = SteadyNow();
    status = (*reader)->Read([&](const SurveyRecord& record) { counted.Add(record); },
                             [&](int64_t done) {
                               if (interrupted.load()) return false;
                               if (done < (*reader)->to_read()) {
                                 progress.Show(done, (*reader)->to_read());
                               } else if (options.follow && SteadyNow() >= next) {
                                 progress.Clear();
                                 next = SteadyNow() + kFollowEvery;
                                 printer.Print(counted.TakeChanged());
                               }
                               return true;
                             });
  }
  printer.Print(counted.TakeChanged());
  return status.ok() ? counted.status() : status;
}

}  // namespace lethe
