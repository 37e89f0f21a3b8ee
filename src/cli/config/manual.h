// Help and completion, generated from the commands and flags.
#ifndef LETHE_SRC_CLI_CONFIG_MANUAL_H_
#define LETHE_SRC_CLI_CONFIG_MANUAL_H_

#include <CLI/CLI.hpp>
#include <string>

#include "absl/strings/string_view.h"

namespace lethe {

// A command's footer ends with this line, and examples, each on an indented line.
inline constexpr absl::string_view kExample = "Example:\n";

// `lethe --help`: the commands by use, with an example each, in so many columns.
std::string ProgramHelp(const CLI::App& program, int columns);

// `lethe COMMAND --help`, in so many columns: purpose, flags, examples.
std::string CommandHelp(const CLI::App& command, int columns);

// `lethe help exit-codes`.
std::string ExitCodes();

// `lethe help completion`: a script for bash.
std::string BashCompletion(const CLI::App& program);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_CONFIG_MANUAL_H_
