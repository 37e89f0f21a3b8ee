#include "src/filter/compact_probe.h"

#if defined(__x86_64__)

#include <cpuid.h>

namespace lethe {
namespace {

// What the processor has, by the AMD64 Architecture Programmer's Manual, volume 3, appendix E; and whether
// the system keeps the registers of AVX (bits 1 and 2 of XCR0). Not __builtin_cpu_supports, which links
// tables of all processors.
bool HasAvx2() {
  const auto has = [](unsigned bits, unsigned wanted) { return (bits & wanted) == wanted; };
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || !has(ecx, bit_OSXSAVE | bit_AVX | bit_POPCNT))
    return false;
  unsigned kept = 0;
  __asm__("xgetbv" : "=a"(kept), "=d"(edx) : "c"(0));
  if (!has(kept, 0x6)) return false;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0 || !has(ebx, bit_BMI | bit_AVX2 | bit_BMI2)) {
    return false;
  }
  return __get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx) != 0 && has(ecx, bit_LZCNT);
}

}  // namespace

bool RunsAvx2() {
  // Asked once: in a virtual machine each question takes a microsecond and more.
  static const bool runs = HasAvx2();
  return runs;
}

}  // namespace lethe

#endif
