// Assertions: what the code takes for granted of itself.
#ifndef LETHE_SRC_ASSERTION_H_
#define LETHE_SRC_ASSERTION_H_

namespace lethe {

// Says on the standard error stream what does not hold, and ends the process at once. The brokers abort its
// open transaction then, and whatever it has written since the last commit is judged again by the next one:
// a state that is wrong is never committed, and a crash loses nothing. To go on with the other partitions
// would trust the same memory.
[[noreturn, gnu::cold, gnu::noinline]] void AssertionFailed(const char* condition, const char* file,
                                                            int line);

}  // namespace lethe

// In every build: for what costs nothing beside the work around it.
#define LETHE_ASSERT(condition)                      \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? static_cast<void>(0)                        \
       : ::lethe::AssertionFailed(#condition, __FILE_NAME__, __LINE__))

// For what runs for each id, or looks through much, and for all of the engine, which must be small in the
// programs that embed it: in builds with sanitizers, for fuzzing and for debugging.
#ifdef LETHE_DEBUG_ASSERTS
#define LETHE_DEBUG_ASSERT(condition) LETHE_ASSERT(condition)
#else
#define LETHE_DEBUG_ASSERT(condition) static_cast<void>(sizeof(static_cast<bool>(condition)))
#endif

#endif  // LETHE_SRC_ASSERTION_H_
