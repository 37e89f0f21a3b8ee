#include "src/filter/compact_probe.h"

#if defined(__x86_64__)

#include <cpuid.h>

namespace lethe {
namespace {

// Clang 14 does not know this one by name: bit 5 of ECX (AMD64 Architecture Programmer's Manual, volume 3).
bool HasLzcnt() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx) != 0 && (ecx & (1U << 5)) != 0;
}

}  // namespace

bool RunsAvx2() {
  // Asked once: in a virtual machine each question takes a microsecond and more.
  static const bool runs = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi") != 0 &&
                           __builtin_cpu_supports("bmi2") != 0 && __builtin_cpu_supports("popcnt") != 0 &&
                           HasLzcnt();
  return runs;
}

}  // namespace lethe

#endif
