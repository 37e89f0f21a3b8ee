#include "src/cli/config/manual.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "src/cli/terminal/terminal.h"

namespace lethe {
namespace {

std::vector<const CLI::App*> CommandsOf(const CLI::App& program) { return program.get_subcommands({}); }

// A command's footer: its text, and its examples.
std::pair<std::string, std::string> FooterOf(const CLI::App& command) {
  const std::string footer = command.get_footer();
  const size_t split = footer.find(kExample.data());
  if (split == std::string::npos) return {footer, ""};
  return {std::string(absl::StripAsciiWhitespace(footer.substr(0, split))),
          footer.substr(split + kExample.size())};
}

std::string FirstExample(const CLI::App& command) {
  const std::string examples = FooterOf(command).second;
  const std::vector<absl::string_view> lines = absl::StrSplit(examples, '\n');
  return std::string(absl::StripAsciiWhitespace(lines.front()));
}

// Paragraphs are parted by an empty line; the other newlines are of the source.
std::string Paragraphs(absl::string_view text, int columns) {
  std::string wrapped;
  for (absl::string_view paragraph : absl::StrSplit(text, "\n\n")) {
    absl::StrAppend(&wrapped, wrapped.empty() ? "" : "\n",
                    Wrapped(absl::StrReplaceAll(paragraph, {{"\n", " "}}), columns), "\n");
  }
  return wrapped;
}

// A command that can be copied: where it is broken, a backslash says that it goes on.
std::string ShellLines(absl::string_view command, int columns, int indent) {
  const std::string margin(static_cast<size_t>(indent), ' ');
  // The backslash, and what lines that go on are indented by.
  const std::string lines = Wrapped(command, columns - 6, indent);
  return absl::StrCat(margin, absl::StrReplaceAll(lines, {{"\n", " \\\n    "}}));
}

}  // namespace

std::string ProgramHelp(const CLI::App& program, int columns) {
  std::string help =
      absl::StrCat(Wrapped(program.get_description(), columns), "\n\nUsage: lethe COMMAND [FLAGS]\n");
  std::string group;
  for (const CLI::App* command : CommandsOf(program)) {
    if (command->get_group() != group) {
      group = command->get_group();
      absl::StrAppend(&help, "\n", group, ":\n");
    }
    std::string name = command->get_name();
    name.resize(12, ' ');
    absl::StrAppend(&help, "  ", name, Wrapped(command->get_description(), columns, 14), "\n");
    if (const std::string example = FirstExample(*command); !example.empty()) {
      absl::StrAppend(&help, ShellLines(example, columns, 6), "\n");
    }
  }
  return absl::StrCat(help, "\n",
                      Wrapped("Flags: --help (also of each command: lethe run --help), --version", columns),
                      "\n", Paragraphs(program.get_footer(), columns));
}

std::string CommandHelp(const CLI::App& command, int columns) {
  std::string help = absl::StrCat(Wrapped(command.get_description(), columns), "\n\nUsage: lethe ",
                                  command.get_name(), " [FLAGS]");
  std::string flags;
  for (const CLI::Option* option : command.get_options()) {
    const bool is_positional = option->get_positional();
    if (is_positional) {
      const bool is_many = option->get_allow_extra_args();
      absl::StrAppend(&help, " [", option->get_name(), is_many ? "...]" : "]");
    }
    const std::string type = option->get_type_name();
    const std::string name = absl::StrCat(
        "  ", option->get_name(), type.empty() || type == option->get_name() ? "" : absl::StrCat(" ", type));
    // A narrow terminal has no room for two columns.
    const int indent = columns < 60 ? 6 : 30;
    const bool fits = name.size() + 2 <= static_cast<size_t>(indent);
    absl::StrAppend(&flags, name,
                    fits ? std::string(static_cast<size_t>(indent) - name.size(), ' ')
                         : absl::StrCat("\n", std::string(static_cast<size_t>(indent), ' ')),
                    Wrapped(option->get_description(), columns, indent), "\n");
  }
  absl::StrAppend(&help, "\n\n", flags);
  const auto [text, examples] = FooterOf(command);
  if (!text.empty()) absl::StrAppend(&help, "\n", Paragraphs(text, columns));
  if (examples.empty()) return help;
  absl::StrAppend(&help, "\n", kExample);
  for (absl::string_view example : absl::StrSplit(examples, '\n', absl::SkipEmpty())) {
    absl::StrAppend(&help, ShellLines(absl::StripAsciiWhitespace(example), columns, 2), "\n");
  }
  return help;
}

std::string ExitCodes() {
  return R"(0    All is well: the work is done, or SIGTERM or SIGINT ended it. What was
     begun is finished, or aborted, as the last line of lethe run then says:
     the next start replays it, and nothing is lost.
1    It failed at run time: a broker, a file or a topic. The last line of
     stderr says what, and what to do. lethe demo: the output is not what it
     should be. lethe check: there are warnings. lethe reconcile: something
     is missing on one of the sides. lethe verify: the output is not as
     promised.
2    The command line or the configuration is wrong: nothing was read or
     written. The message names the flag, or the file and line. lethe check:
     something is wrong that lethe does not run with. lethe reconcile,
     lethe verify: any error.
3    lethe filter, lethe survey: no record has a usable id at --id, so nothing
     was deduplicated, or found out. lethe verify: undecided, since the logs
     do not have all that tells, or the id is doubtful.
130  lethe filter was interrupted (Ctrl-C): what it had read is written, and
     the summary printed.
128 + N  Signal N killed it, as shells say it.
)";
}

}  // namespace lethe
