// Help, man pages and completions, generated from the commands and flags.
#ifndef LETHE_SRC_CLI_CONFIG_MANUAL_H_
#define LETHE_SRC_CLI_CONFIG_MANUAL_H_

#include <CLI/CLI.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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

// In troff's man macros: of one command, or, if it is null, of the program.
std::string ManPage(const CLI::App& program, const CLI::App* command);

// A script for bash, zsh or fish. InvalidArgument for any other shell.
absl::StatusOr<std::string> Completion(const CLI::App& program, absl::string_view shell);

// All of it as files under a folder, where a prefix's `share` has them; and the schema of the configuration.
absl::Status WriteManual(const CLI::App& program, const std::string& folder);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_CONFIG_MANUAL_H_
