// Any bytes as a record of a counter's topic, its key before the first newline: nothing crashes, and a total
// that is accepted comes back the same when it is written and read again.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "lethe/counters.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const size_t newline = text.find('\n');
  if (newline == std::string::npos) return 0;
  const std::string key = text.substr(0, newline);
  const std::string value = text.substr(newline + 1);
  lethe::CounterReader reader;
  reader.Add(key, value).IgnoreError();
  reader.Add(key, std::nullopt).IgnoreError();
  const absl::StatusOr<lethe::CounterTotal> total = lethe::CounterTotal::Parse(key, value);
  if (!total.ok()) return 0;
  const absl::StatusOr<lethe::CounterTotal> again =
      lethe::CounterTotal::Parse(total->RecordKey(), total->RecordValue());
  if (!again.ok() || again->RecordKey() != total->RecordKey() ||
      again->RecordValue() != total->RecordValue()) {
    std::fprintf(stderr, "not the same again: %s\n", total->RecordKey().c_str());
    std::abort();
  }
  return 0;
}
