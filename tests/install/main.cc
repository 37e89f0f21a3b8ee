// A program that embeds the stage, built against an installed copy: prints the ids that are new to it.
#include <iostream>

#include "lethe/stage.h"

int main() {
  const auto stage = lethe::DedupStage::Create({.horizon = absl::Hours(1), .memory_limit_bytes = 16 << 20});
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
    if ((*partition)->Judge(id, absl::UnixEpoch()) == lethe::Verdict::kUnique) std::cout << id << "\n";
  }
  return 0;
}
