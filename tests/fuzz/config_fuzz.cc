// Any bytes as a configuration file: nothing crashes or takes memory without bound, and what is accepted can
// be printed. Any bytes as the value of each key, too, and so as each unit.
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "src/cli/config/config.h"
#include "src/cli/config/units.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto settings = lethe::RunSettings();
  if (data[0] < settings.size()) {
    lethe::RunConfig config;
    settings[data[0]].set(rest, config).IgnoreError();
    return 0;
  }
  lethe::ParseDuration(rest).IgnoreError();
  lethe::ParseBytes(rest).IgnoreError();
  lethe::ParseShare(rest).IgnoreError();
  lethe::ParseRate(rest).IgnoreError();
  lethe::MakeRunConfig(lethe::ConfigText{"lethe.yaml", rest}, {}, nullptr).IgnoreError();
  return 0;
}
