// The settings of each command but `lethe run`, whose settings are its configuration (run_settings.cc).
#ifndef LETHE_SRC_CLI_COMMAND_SETTINGS_H_
#define LETHE_SRC_CLI_COMMAND_SETTINGS_H_

#include "absl/types/span.h"
#include "src/cli/commands/check_command.h"
#include "src/cli/commands/demo_command.h"
#include "src/cli/commands/filter_command.h"
#include "src/cli/commands/inspect_command.h"
#include "src/cli/commands/plan_command.h"
#include "src/cli/config/setting.h"

namespace lethe {

absl::Span<const Setting<FilterCommandOptions>> FilterSettings();
absl::Span<const Setting<DemoOptions>> DemoSettings();
absl::Span<const Setting<PlanCommandOptions>> PlanSettings();
absl::Span<const Setting<InspectCommandOptions>> InspectSettings();
absl::Span<const Setting<CheckCommandOptions>> CheckSettings();

}  // namespace lethe

#endif  // LETHE_SRC_CLI_COMMAND_SETTINGS_H_
