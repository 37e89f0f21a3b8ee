// What a shared liblethe++ exports: the names in these headers, and nothing else.
#ifndef LETHE_EXPORT_H_
#define LETHE_EXPORT_H_

// LETHE_SHARED comes with the CMake target and with pkg-config if the library was built with
// BUILD_SHARED_LIBS. The static one marks nothing, so that a plugin with it exports nothing of lethe.
#if defined(LETHE_SHARED)
#define LETHE_EXPORT __attribute__((visibility("default")))
#else
#define LETHE_EXPORT
#endif

#endif  // LETHE_EXPORT_H_
