// Completions of shells, from the commands and flags.
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "src/cli/config/manual.h"

namespace lethe {
namespace {

// A flag, or, without a name, what stands for itself.
struct Argument {
  std::string name;
  std::string meaning;
  std::string type;
  std::vector<std::string> words;  // that its value may be
  bool is_file = false;
  bool is_many = false;  // positional, and may be given several times

  bool takes_value() const { return !type.empty(); }
};

Argument ArgumentOf(const CLI::Option& option) {
  Argument argument;
  argument.name = option.get_lnames().empty() ? "" : absl::StrCat("--", option.get_lnames().front());
  argument.meaning = option.get_description();
  argument.type = option.get_type_name();
  argument.is_many = option.get_positional() && option.get_allow_extra_args();
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
  std::string meaning;
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
    CommandArguments command = {app->get_name(), app->get_description(), {}, {}};
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

std::string Bash(const std::vector<CommandArguments>& commands) {
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
  return absl::StrCat(R"(# Completion of lethe for bash, written by `lethe completion bash`.
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

// In single quotes, for zsh's _arguments: brackets and colons have a meaning there.
std::string ZshText(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"'", "'\\''"}, {"[", "\\["}, {"]", "\\]"}, {":", "\\:"}});
}

std::string ZshValue(const Argument& argument) {
  const std::string values = argument.is_file ? "_files"
                             : argument.words.empty()
                                 ? " "
                                 : absl::StrCat("(", absl::StrJoin(argument.words, " "), ")");
  return absl::StrCat(":", ZshText(argument.type), ":", values);
}

std::string Zsh(const std::vector<CommandArguments>& commands) {
  std::string names, cases;
  for (const CommandArguments& command : commands) {
    absl::StrAppend(&names, "    '", command.name, ":", ZshText(command.meaning), "'\n");
    absl::StrAppend(&cases, "    ", command.name, ") _arguments");
    for (const Argument& flag : command.flags) {
      absl::StrAppend(&cases, " \\\n      '", flag.name, "[", ZshText(flag.meaning), "]",
                      flag.takes_value() ? ZshValue(flag) : "", "'");
    }
    for (const Argument& positional : command.positionals) {
      absl::StrAppend(&cases, " \\\n      '", positional.is_many ? "*" : "1", ZshValue(positional), "'");
    }
    absl::StrAppend(&cases, " ;;\n");
  }
  return absl::StrCat(
      "#compdef lethe\n# Completion of lethe for zsh, written by `lethe completion zsh`.\n",
      "_lethe() {\n  local -a commands\n  commands=(\n", names,
      "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n",
      "  shift words\n  (( CURRENT-- ))\n  case $words[1] in\n", cases, "  esac\n}\ncompdef _lethe lethe\n");
}

std::string FishText(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

std::string Fish(const std::vector<CommandArguments>& commands) {
  std::string script =
      "# Completion of lethe for fish, written by `lethe completion fish`.\ncomplete -c lethe -f\n";
  for (const CommandArguments& command : commands) {
    absl::StrAppend(&script, "complete -c lethe -n __fish_use_subcommand -a ", command.name, " -d ",
                    FishText(command.meaning), "\n");
    const std::string within =
        absl::StrCat("complete -c lethe -n '__fish_seen_subcommand_from ", command.name, "'");
    const auto value = [](const Argument& argument) {
      if (argument.is_file) return std::string(" -r -F");
      return argument.words.empty() ? std::string(" -x")
                                    : absl::StrCat(" -x -a '", absl::StrJoin(argument.words, " "), "'");
    };
    for (const Argument& flag : command.flags) {
      absl::StrAppend(&script, within, " -l ", flag.name.substr(2), flag.takes_value() ? value(flag) : "",
                      " -d ", FishText(flag.meaning), "\n");
    }
    for (const Argument& positional : command.positionals) {
      if (positional.is_file) absl::StrAppend(&script, within, " -F\n");
      if (!positional.words.empty()) {
        absl::StrAppend(&script, within, " -a '", absl::StrJoin(positional.words, " "), "'\n");
      }
    }
  }
  return script;
}

}  // namespace

absl::StatusOr<std::string> Completion(const CLI::App& program, absl::string_view shell) {
  const std::vector<CommandArguments> commands = ArgumentsOf(program);
  if (shell == "bash") return Bash(commands);
  if (shell == "zsh") return Zsh(commands);
  if (shell == "fish") return Fish(commands);
  return absl::InvalidArgumentError("expected bash, zsh or fish");
}

}  // namespace lethe
