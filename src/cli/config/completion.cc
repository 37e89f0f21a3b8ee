// Completion for bash, from the commands and flags.
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "src/cli/config/manual.h"

namespace lethe {
namespace {

// A flag, or, without a name, what stands for itself.
struct Argument {
  std::string name;
  std::string type;
  std::vector<std::string> words;  // that its value may be
  bool is_file = false;

  bool takes_value() const { return !type.empty(); }
};

Argument ArgumentOf(const CLI::Option& option) {
  Argument argument;
  argument.name = option.get_lnames().empty() ? "" : absl::StrCat("--", option.get_lnames().front());
  argument.type = option.get_type_name();
  argument.is_file = argument.type == "FILE" || argument.type == "FOLDER";
  // Words in small letters are said as they are.
  for (absl::string_view word : absl::StrSplit(argument.type, '|')) {
    const bool is_word = !word.empty() && absl::ascii_islower(static_cast<unsigned char>(word[0])) != 0;
    if (is_word) argument.words.emplace_back(word);
  }
  return argument;
}

struct CommandArguments {
  std::string name;
  std::vector<Argument> flags;
  std::vector<Argument> positionals;

  std::string Names() const {
    return absl::StrJoin(flags, " ",
                         [](std::string* out, const Argument& argument) { *out += argument.name; });
  }
};

std::vector<CommandArguments> ArgumentsOf(const CLI::App& program) {
  std::vector<CommandArguments> commands;
  for (const CLI::App* app : program.get_subcommands({})) {
    CommandArguments command = {app->get_name(), {}, {}};
    for (const CLI::Option* option : app->get_options()) {
      const Argument argument = ArgumentOf(*option);
      (argument.name.empty() ? command.positionals : command.flags).push_back(argument);
    }
    commands.push_back(std::move(command));
  }
  return commands;
}

std::string Reply(const Argument& argument) {
  if (argument.is_file) return "compopt -o filenames 2> /dev/null; COMPREPLY=($(compgen -f -- \"$word\"))";
  if (argument.words.empty()) return ":";
  return absl::StrCat("COMPREPLY=($(compgen -W \"", absl::StrJoin(argument.words, " "), "\" -- \"$word\"))");
}

}  // namespace

std::string BashCompletion(const CLI::App& program) {
  const std::vector<CommandArguments> commands = ArgumentsOf(program);
  const auto names = [&](absl::string_view separator) {
    return absl::StrJoin(commands, separator,
                         [](std::string* out, const CommandArguments& command) { *out += command.name; });
  };
  std::string values, flags;
  for (const CommandArguments& command : commands) {
    for (const Argument& flag : command.flags) {
      if (!flag.takes_value()) continue;
      absl::StrAppend(&values, "    \"", command.name, " ", flag.name, "\") ", Reply(flag), "; return ;;\n");
    }
    absl::StrAppend(&flags, "    ", command.name, ")\n");
    for (const Argument& positional : command.positionals) {
      absl::StrAppend(&flags, "      [[ $word == -* ]] || { ", Reply(positional), "; return; }\n");
    }
    absl::StrAppend(&flags, "      COMPREPLY=($(compgen -W \"", command.Names(), "\" -- \"$word\")) ;;\n");
  }
  return absl::StrCat(R"(# Completion of lethe for bash, written by `lethe help completion`.
_lethe() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=
  [[ $COMP_CWORD -gt 1 ]] && command=${COMP_WORDS[1]}
  COMPREPLY=()
  case "$command $before" in
)",
                      values, "  esac\n  case $command in\n    '') COMPREPLY=($(compgen -W \"", names(" "),
                      " --help --version\" -- \"$word\")) ;;\n", flags,
                      "  esac\n}\ncomplete -F _lethe lethe\n");
}

}  // namespace lethe
