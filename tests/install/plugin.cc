// A shared library that embeds the stage, as the program in main.cc does: prints the ids that are new to it.
#include <iostream>

#include "lethe/stage.h"

int RunPlugin();

int RunPlugin() {
  lethe::StageOptions options;
  options.horizon = absl::Hours(1);
  options.memory_limit_bytes = 16 << 20;
  const auto stage = lethe::DedupStage::Create(options);
  if (!stage.ok()) {
    std::cerr << stage.status() << "\n";
    return 1;
  }
  const auto partition = (*stage)->Open("outside");
  if (!partition.ok()) {
    std::cerr << partition.status() << "\n";
    return 1;
  }
  for (const char* id : {"a", "b", "a", "c", "b"}) {
    const absl::StatusOr<lethe::Verdict> verdict = (*partition)->Judge(id, absl::UnixEpoch());
    if (verdict.ok() && *verdict == lethe::Verdict::kUnique) std::cout << id << "\n";
  }
  return 0;
}
