#include "src/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "connectors/kafka/client/library.h"
#include "src/cli/command_settings.h"
#include "src/cli/config/effective.h"
#include "src/cli/config/manual.h"
#include "src/cli/config/reference.h"
#include "src/cli/config/removed.h"
#include "src/cli/config/setting.h"
#include "src/cli/metrics/metrics_page.h"
#include "src/cli/terminal/exit_code.h"
#include "src/cli/terminal/plain_text.h"
#include "src/text/suggestion.h"

namespace lethe {
namespace {

constexpr char kVersion[] = "lethe " LETHE_VERSION;

constexpr char kProgramFooter[] =
    R"(Exit codes: 0 all is well; 1 it failed at run time; 2 the command line or the
configuration is wrong; 3 no record has the id, or the logs do not tell; 130 lethe filter was interrupted
(lethe help exit-codes).)";

constexpr char kRunFooter[] =
    R"(In the file the keys are the flags' names with _ for -; counters is a list, and kafka a section. ${NAME} stands for
an environment variable, ${NAME:-default} gives a default, ${file:PATH} is what is in a file. A flag wins over the
file.

Readers of the output must set isolation.level=read_committed.

Example:
  lethe run --config lethe.yaml --horizon 7d --kafka security.protocol=SSL
  lethe run --brokers localhost:9092 --input orders --output orders-unique --id json:/order/id)";

constexpr char kFilterFooter[] =
    R"(It reads the files one after the other, or standard input if none is named. Input that is compressed with
gzip is recognized and unpacked. The summary goes to stderr.

Exit codes: 0 all is well; 1 it failed at run time; 2 the command line is wrong; 3 no line had a usable id or time, so
nothing was deduplicated, or the times are of another unit; 130 it was interrupted.

Example:
  tail -F events.ndjson | lethe filter --id json:/id --horizon 1h > unique.ndjson
  lethe filter --id json:/id --time json:/time --quiet monday.ndjson.gz tuesday.ndjson > unique.ndjson)";

constexpr char kDemoFooter[] = R"(Example:
  lethe demo --events 1000000
  lethe demo --format avro
  lethe demo --adapt)";

constexpr char kPlanFooter[] = R"(Give three of rate, horizon, fpp and memory; the plan finds the fourth.

Example:
  lethe plan --rate 20k/s --horizon 24h --fpp 1e-6)";

constexpr char kInspectFooter[] = R"(It needs as much memory as the filter had.

Example:
  lethe inspect --format json orders-0.snapshot)";

constexpr char kCheckFooter[] =
    R"(It takes what run takes, writes no record, joins no group, and may look on while lethe runs. It prints
findings, errors first: error, warning or ok, what was looked at, where, and what to do.

Exit codes: 0 all is well; 1 there are warnings; 2 something is wrong that lethe does not run with.

Example:
  lethe check --config lethe.yaml
  lethe check --config lethe.yaml --create)";

constexpr char kSurveyFooter[] =
    R"(It reads without a trace: it joins no group, commits nothing, writes nothing. Ctrl-C prints what was found so
far.

Exit codes: 0 all is well; 1 it failed at run time; 2 the command line is wrong; 3 no record has the given --id.

Example:
  lethe survey --brokers localhost:9092 --input orders
  lethe survey --brokers localhost:9092 --input orders --id json:/order/id --last 24h)";

constexpr char kVerifyFooter[] =
    R"(It reads both topics (read_committed) and judges them without a filter: lost, repeated, foreign, changed and out of
order records, with their offsets. It needs Read, writes nothing, joins no group, and may run while lethe runs.

Exit codes: 0 each event came through once; 1 the output is not as promised; 2 an error, and nothing is known; 3
undecided: retention has deleted what tells, or the id is doubtful.

If lethe runs by flags alone, lethe run FLAGS --print-config writes the file.

Example:
  lethe verify --config lethe.yaml
  lethe verify --config lethe.yaml --topic orders --since 2026-11-22T18:00:00Z --share 1 --format json)";

constexpr char kReconcileFooter[] =
    R"(Each side reads its own topic, and the two speak over the standard input and output of --peer's command: no
port, no new credentials. Without --copy nothing is written, and the side with --serve must allow it: to copy
to the peer, its command needs --copy from-peer. Records are copied with key, value, headers and timestamp, in
one transaction, with a header lethe.copied_from=CLUSTER/TOPIC/PARTITION/OFFSET.

Exit codes: 0 nothing is missing, or nothing any more; 1 something is; 2 an error, and nothing is known.

Large differences are found by the Distributed Bloom Filter, for which its authors state a pending patent
(EP19020580.7). With --method table it is not used, on either side.

Example:
  lethe reconcile --brokers a:9092 --topic orders --id json:/order/id --last 24h --peer 'ssh site-b lethe reconcile --serve --brokers b:9092 --topic orders --id json:/order/id')";

constexpr char kCountersFooter[] =
    R"(It takes topics of both modes, and leaves no trace in them. With --follow it goes on, and prints every second
what has changed; Ctrl-C ends it.

Example:
  lethe counters --brokers localhost:9092 --topic likes --top 20
  lethe counters --brokers localhost:9092 --topic likes --format csv > likes.csv)";

constexpr char kHelpFooter[] = R"(Example:
  lethe help exit-codes
  lethe help configuration
  lethe help metrics
  source <(lethe help completion))";

// CLI11 takes every flag as text, any number of times; the settings interpret it.
CLI::Option* AddFlag(CLI::App& command, const std::string& name, absl::string_view type,
                     const std::string& description) {
  return command.add_option(name)
      ->description(description)
      ->type_name(std::string(type))
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

CLI::Option* AddSwitch(CLI::App& command, const std::string& name, const std::string& description) {
  return command.add_flag(name)->description(description)->disable_flag_override();
}

// The text of a flag that may be given once; nullopt if it was not.
absl::StatusOr<std::optional<std::string>> Text(const CLI::Option& flag) {
  if (flag.count() == 0) return std::nullopt;
  if (flag.count() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(flag.get_name(), ": given ", flag.count(), " times"));
  }
  return flag.results().front();
}

template <class Options>
std::string Description(const Setting<Options>& setting) {
  if (setting.required) return absl::StrCat(setting.meaning, " (required)");
  if (setting.fallback.empty()) return std::string(setting.meaning);
  return absl::StrCat(setting.meaning, " [", setting.fallback, "]");
}

template <class Options>
std::string Names(const Setting<Options>& setting) {
  const std::string flag = FlagOf(setting.key);
  return setting.former.empty() ? flag : absl::StrCat(flag, ",", FlagOf(setting.former));
}

// A command and the texts that its flags were given.
template <class Options>
class SettingFlags {
 public:
  SettingFlags(CLI::App& command, absl::Span<const Setting<Options>> settings) {
    for (const Setting<Options>& setting : settings) {
      CLI::Option* flag = setting.type.empty()
                              ? AddSwitch(command, Names(setting), Description(setting))
                              : AddFlag(command, Names(setting), setting.type, Description(setting));
      if (setting.many && flag->get_positional()) flag->expected(-1);
      flags_.emplace_back(&setting, flag);
    }
  }

  // By the settings' keys.
  absl::StatusOr<std::vector<std::pair<std::string, std::string>>> Given() const {
    std::vector<std::pair<std::string, std::string>> given;
    for (const auto& [setting, flag] : flags_) {
      const absl::StatusOr<std::optional<std::string>> text = Text(*flag);
      if (!text.ok()) return text.status();
      if (*text) given.emplace_back(setting->key, **text);
    }
    return given;
  }

  absl::StatusOr<Options> Parse() const {
    Options options;
    for (const auto& [setting, flag] : flags_) {
      if (setting->type.empty() || setting->many) {
        for (const std::string& each : flag->results()) {
          if (absl::Status status = setting->set(each, options); !status.ok()) return status;
        }
        continue;
      }
      const absl::StatusOr<std::optional<std::string>> text = Text(*flag);
      if (!text.ok()) return text.status();
      if (!*text && setting->required) {
        return absl::InvalidArgumentError(
            absl::StrCat("missing ", FlagOf(setting->key), ", for example ", setting->example));
      }
      if (!*text) continue;
      const absl::StatusOr<std::string> value = FlagValue(setting->key, **text);
      const absl::Status status = value.ok() ? setting->set(*value, options) : value.status();
      if (!status.ok()) {
        return absl::InvalidArgumentError(absl::StrCat(FlagOf(setting->key), ": ", status.message()));
      }
    }
    return options;
  }

 private:
  std::vector<std::pair<const Setting<Options>*, CLI::Option*>> flags_;
};

// The group of a command in the help.
std::string GroupOf(const std::string& command) {
  for (const char* name : {"survey", "plan", "demo", "check"}) {
    if (command == name) return "Before the first run";
  }
  for (const char* name : {"run", "filter"}) {
    if (command == name) return "Deduplicate";
  }
  for (const char* name : {"help", "version"}) {
    if (command == name) return "About lethe";
  }
  return "Look into what runs";
}

// A command of the program: its flags, and the action after they are parsed.
struct Command {
  CLI::App* app = nullptr;
  std::function<absl::StatusOr<int>()> start;
};

CLI::App& AddCommand(CLI::App& program, const std::string& name, const std::string& meaning,
                     const char* footer) {
  CLI::App* command = program.add_subcommand(name, meaning);
  command->footer(footer);
  command->group(GroupOf(name));
  return *command;
}

// A command that takes settings only. `check` looks at what they are together.
template <class Options>
Command AddCommand(CLI::App& program, const std::string& name, const std::string& meaning, const char* footer,
                   absl::Span<const Setting<Options>> settings, const std::function<int(const Options&)>& run,
                   absl::Status (*check)(const Options&) = nullptr) {
  CLI::App& app = AddCommand(program, name, meaning, footer);
  const SettingFlags<Options> flags(app, settings);
  return {&app, [=]() -> absl::StatusOr<int> {
            const absl::StatusOr<Options> options = flags.Parse();
            if (!options.ok()) return options.status();
            if (check != nullptr) {
              if (absl::Status checked = check(*options); !checked.ok()) return checked;
            }
            return run(*options);
          }};
}

absl::StatusOr<std::optional<ConfigText>> ReadConfig(const CLI::Option& flag) {
  const absl::StatusOr<std::optional<std::string>> path = Text(flag);
  if (!path.ok()) return path.status();
  if (!*path) return std::nullopt;
  absl::StatusOr<ConfigText> text = ReadConfigFile(**path);
  if (!text.ok()) return text.status();
  return *std::move(text);
}

// The flags that `run` and `check` have in common, and the configuration that they make.
class RunArguments {
 public:
  explicit RunArguments(CLI::App& app)
      : file_(AddFlag(app, "--config", "FILE", "A YAML file with the same settings")),
        flags_(app, RunSettings()),
        counters_(AddFlag(app, "--counter", CounterFlagType(),
                          "One of `counters`, in place of that of its name; may be given several times")),
        properties_(
            AddFlag(app, "--kafka", "NAME=VALUE", "A property of librdkafka; may be given several times")) {}

  absl::StatusOr<RunConfig> Make(bool exit_at_end, std::vector<EffectiveValue>* effective = nullptr) const {
    const absl::StatusOr<std::optional<ConfigText>> file = ReadConfig(*file_);
    if (!file.ok()) return file.status();
    absl::StatusOr<std::vector<std::pair<std::string, std::string>>> given = flags_.Given();
    if (!given.ok()) return given.status();
    return MakeRunConfig(*file,
                         {*std::move(given), properties_->results(), counters_->results(), exit_at_end},
                         effective, MemoryLimitOfCgroup());
  }

 private:
  CLI::Option* file_;
  SettingFlags<RunConfig> flags_;
  CLI::Option* counters_;
  CLI::Option* properties_;
};

Command AddRun(CLI::App& program, const std::function<int(const RunConfig&)>& run, std::ostream& out) {
  CLI::App& app =
      AddCommand(program, "run", "Deduplicate a Kafka topic into another, until stopped", kRunFooter);
  const RunArguments arguments(app);
  CLI::Option* exit_at_end =
      AddSwitch(app, "--exit-at-end", "End at the offsets where the input ended at the start");
  CLI::Option* print =
      AddSwitch(app, "--print-config",
                "Print the effective configuration and the source of each value, instead of running");
  return {&app, [=, &out]() -> absl::StatusOr<int> {
            if (print->count() > 0) {
              std::vector<EffectiveValue> effective;
              const absl::StatusOr<RunConfig> printed = arguments.Make(exit_at_end->count() > 0, &effective);
              if (!printed.ok()) return printed.status();
              out << EffectiveYaml(effective);
              return kExitOk;
            }
            const absl::StatusOr<RunConfig> made = arguments.Make(exit_at_end->count() > 0);
            if (!made.ok()) return made.status();
            return run(*made);
          }};
}

Command AddCheck(
    CLI::App& program,
    const std::function<int(const absl::StatusOr<RunConfig>&, const CheckCommandOptions&)>& check) {
  CLI::App& app =
      AddCommand(program, "check", "Check whether run would work with this configuration", kCheckFooter);
  const RunArguments arguments(app);
  const SettingFlags<CheckCommandOptions> flags(app, CheckSettings());
  return {&app, [=]() -> absl::StatusOr<int> {
            const absl::StatusOr<CheckCommandOptions> options = flags.Parse();
            if (!options.ok()) return options.status();
            return check(arguments.Make(/*exit_at_end=*/false), *options);
          }};
}

absl::StatusOr<std::string> HelpOn(const std::string& topic, CLI::App& program) {
  if (topic == "exit-codes") return ExitCodes();
  if (topic == "configuration") return ConfigurationPage();
  if (topic == "schema") return ConfigurationSchema();
  if (topic == "metrics") return MetricsPage();
  if (topic == "completion") return BashCompletion(program);
  std::vector<std::string> topics = {"exit-codes", "configuration", "metrics", "schema", "completion"};
  for (CLI::App* command : program.get_subcommands({})) {
    topics.push_back(command->get_name());
  }
  const std::optional<std::string> nearest = Nearest(topic, topics);
  return absl::InvalidArgumentError(
      absl::StrCat("no help on ", topic,
                   nearest ? absl::StrCat("; did you mean ", *nearest, "?")
                           : absl::StrCat("; topics: ", absl::StrJoin(topics, ", "))));
}

Command AddHelp(CLI::App& program, int columns, std::ostream& out) {
  CLI::App& app = AddCommand(program, "help", "Explain a command or a topic", kHelpFooter);
  CLI::Option* topic =
      AddFlag(app, "TOPIC", "COMMAND|exit-codes|configuration|metrics|schema|completion", "What to explain");
  return {&app, [=, &program, &out]() -> absl::StatusOr<int> {
            const absl::StatusOr<std::optional<std::string>> name = Text(*topic);
            if (!name.ok()) return name.status();
            const absl::StatusOr<std::string> help =
                *name ? HelpOn(**name, program) : ProgramHelp(program, columns);
            if (!help.ok()) return help.status();
            out << *help;
            return kExitOk;
          }};
}

Command AddVersion(CLI::App& program, std::ostream& out) {
  CLI::App& app =
      AddCommand(program, "version", "Print the version, and that of librdkafka with its features",
                 "Example:\n  lethe version");
  return {&app, [&out]() -> absl::StatusOr<int> {
            out << kVersion << "\n" << kafka::LibraryText() << "\n";
            return kExitOk;
          }};
}

// The error for arguments that CLI11 could not place. Only the names of flags are shown: anything
// else may be a secret that missed its flag.
absl::Status Unplaced(const CLI::App& app, const std::vector<std::string>& unplaced) {
  const std::string& first = unplaced.front();
  if (!absl::StartsWith(first, "-")) {
    return absl::InvalidArgumentError(
        "unexpected argument without a flag; a value follows its flag, and a value with spaces needs quotes");
  }
  const std::string name = first.substr(0, first.find('='));
  const std::string key = absl::StrReplaceAll(absl::StripPrefix(name, "--"), {{"-", "_"}});
  if (const std::string removed = RemovedText(key); !removed.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", removed));
  }
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) names.push_back(option->get_name());
  const std::optional<std::string> nearest = Nearest(name, names);
  if (nearest == name) return absl::InvalidArgumentError(absl::StrCat(name, " belongs behind the command"));
  return absl::InvalidArgumentError(
      absl::StrCat("unknown flag ", name, nearest ? absl::StrCat("; did you mean ", *nearest, "?") : ""));
}

int UsageError(const std::string& where, absl::string_view what, std::ostream& err) {
  err << where << ": " << what << "\nSee " << where << " --help.\n";
  return kExitUsage;
}

// The program and the command in which it was when parsing ended.
std::string Where(const CLI::App& program) {
  const std::vector<CLI::App*> chosen = program.get_subcommands();
  return chosen.empty() ? "lethe" : absl::StrCat("lethe ", chosen.front()->get_name());
}

int NoCommand(const CLI::App& program, int columns, std::ostream& err) {
  const std::vector<std::string> unplaced = program.remaining();
  if (unplaced.empty()) {
    err << ProgramHelp(program, columns);
    return kExitUsage;
  }
  if (absl::StartsWith(unplaced.front(), "-")) {
    return UsageError("lethe", Unplaced(program, unplaced).message(), err);
  }
  const std::string command_line = absl::StrCat("lethe ", unplaced.front());
  if (const std::string removed = RemovedText(command_line); !removed.empty()) {
    return UsageError("lethe", absl::StrCat(unplaced.front(), ": ", removed), err);
  }
  std::vector<std::string> names;
  for (const CLI::App* command : program.get_subcommands({})) names.push_back(command->get_name());
  const std::optional<std::string> nearest = Nearest(unplaced.front(), names);
  return UsageError("lethe",
                    absl::StrCat("unknown command ", unplaced.front(),
                                 nearest ? absl::StrCat("; did you mean ", *nearest, "?") : ""),
                    err);
}

}  // namespace

int RunCommandLine(const std::vector<std::string>& args, const Commands& commands, std::ostream& out,
                   std::ostream& err, int columns) {
  CLI::App program("Deduplicates event streams within a horizon, in bounded memory", "lethe");
  program.footer(kProgramFooter);
  program.set_version_flag("--version", kVersion, "Print the version and exit");
  program.allow_extras();
  std::vector<Command> all;
  const auto add = [&](const char* name, const char* meaning, const char* footer, const auto& settings,
                       const auto& run, auto... check) {
    if (run) all.push_back(AddCommand(program, name, meaning, footer, settings, run, check...));
  };
  add("survey", "Examine a topic: its id, its duplicates and how late they come", kSurveyFooter,
      SurveySettings(), commands.survey);
  add("plan", "Compute the memory that a stream needs, or what fits in a limit", kPlanFooter, PlanSettings(),
      commands.plan);
  add("demo", "Send events twice, deduplicate them, and count", kDemoFooter, DemoSettings(), commands.demo,
      CheckDemo);
  if (commands.check) all.push_back(AddCheck(program, commands.check));
  if (commands.run) all.push_back(AddRun(program, commands.run, out));
  add("filter", "Deduplicate the lines of files or of a pipe", kFilterFooter, FilterSettings(),
      commands.filter);
  add("counters", "Print the totals of a counter", kCountersFooter, CountersSettings(), commands.counters);
  add("inspect", "Describe a snapshot", kInspectFooter, InspectSettings(), commands.inspect);
  add("verify", "Prove from the logs that each event came through once", kVerifyFooter, VerifySettings(),
      commands.verify);
  add("reconcile", "Find and copy missing records between two topics (rsync for topics)", kReconcileFooter,
      ReconcileSettings(), commands.reconcile, CheckReconcile);
  all.push_back(AddHelp(program, columns, out));
  all.push_back(AddVersion(program, out));
  try {
    // CLI11 wants them last first.
    std::vector<std::string> reversed(args.rbegin(), args.rend());
    const bool explains_command = args.size() == 2 && args[0] == "help" &&
                                  std::any_of(all.begin(), all.end(), [&](const Command& command) {
                                    return command.app->get_name() == args[1];
                                  });
    // Two commands to CLI11.
    if (explains_command) reversed = {"--help", args[1]};
    program.parse(reversed);
  } catch (const CLI::Success& asked) {
    if (dynamic_cast<const CLI::CallForHelp*>(&asked) != nullptr) {
      const std::vector<CLI::App*> chosen = program.get_subcommands();
      out << (chosen.empty() ? ProgramHelp(program, columns) : CommandHelp(*chosen.front(), columns));
      return kExitOk;
    }
    return program.exit(asked, out, err);
  } catch (const CLI::ParseError& error) {
    return UsageError(Where(program), error.what(), err);
  }
  const std::vector<CLI::App*> chosen = program.get_subcommands();
  if (chosen.empty()) return NoCommand(program, columns, err);
  const std::string where = Where(program);
  if (chosen.size() > 1) return UsageError(where, "one command at a time", err);
  if (const std::vector<std::string> unplaced = program.remaining(/*recurse=*/true); !unplaced.empty()) {
    return UsageError(where, Unplaced(*chosen.front(), unplaced).message(), err);
  }
  const auto command =
      std::find_if(all.begin(), all.end(), [&](const Command& c) { return c.app == chosen.front(); });
  const absl::StatusOr<int> code = command->start();
  if (!code.ok()) return UsageError(where, code.status().message(), err);
  return *code;
}

}  // namespace lethe
