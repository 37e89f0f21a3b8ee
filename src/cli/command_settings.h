// What can be set of each command but `lethe run`, whose settings are its configuration's (run_settings.cc).
#ifndef LETHE_SRC_CLI_COMMAND_SETTINGS_H_
#define LETHE_SRC_CLI_COMMAND_SETTINGS_H_

#include "absl/types/span.h"
#include "src/cli/check_command.h"
#include "src/cli/demo_command.h"
#include "src/cli/filter_command.h"
#include "src/cli/inspect_command.h"
#include "src/cli/plan_command.h"
#include "src/cli/setting.h"
#include "src/cli/top_command.h"

namespace lethe {

absl::Span<const Setting<FilterCommandOptions>> FilterSettings();
absl::Span<const Setting<DemoOptions>> DemoSettings();
absl::Span<const Setting<PlanCommandOptions>> PlanSettings();
absl::Span<const Setting<TopCommandOptions>> TopSettings();
absl::Span<const Setting<InspectCommandOptions>> InspectSettings();
absl::Span<const Setting<CheckCommandOptions>> CheckSettings();

}  // namespace lethe

#endif  // LETHE_SRC_CLI_COMMAND_SETTINGS_H_
