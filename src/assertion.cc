#include "src/assertion.h"

#include <cstdio>
#include <cstdlib>

namespace lethe {

void AssertionFailed(const char* condition, const char* file, int line) {
  std::fprintf(
      stderr,
      "lethe: %s:%d: %s does not hold: this is a fault of lethe's. It ends here, so that nothing is "
      "committed that may be wrong; a restart goes on from the last commit. Please report this line.\n",
      file, line, condition);
  std::abort();
}

}  // namespace lethe
