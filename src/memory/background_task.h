// A thread that works in the background of a filter's owner.
#ifndef LETHE_SRC_MEMORY_BACKGROUND_TASK_H_
#define LETHE_SRC_MEMORY_BACKGROUND_TASK_H_

#include <functional>
#include <thread>

namespace lethe {

// Runs `work` in a thread on other processors than the caller's, if there are any, so that the caller does
// not wait for its processor. If no thread can be started, the result is not joinable and `work` does not
// run.
std::thread StartBackgroundTask(std::function<void()> work);

}  // namespace lethe

#endif  // LETHE_SRC_MEMORY_BACKGROUND_TASK_H_
