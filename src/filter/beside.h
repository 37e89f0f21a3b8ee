// A thread that works beside a filter's owner.
#ifndef LETHE_SRC_FILTER_BESIDE_H_
#define LETHE_SRC_FILTER_BESIDE_H_

#include <functional>
#include <thread>

namespace lethe {

// Runs `work` in a thread on the other processors than the caller's, if there are any: the caller is not to
// wait for its processor. Without a thread, or memory for one, what is returned is not joinable, and `work`
// is not run.
std::thread Beside(std::function<void()> work);

}  // namespace lethe

#endif  // LETHE_SRC_FILTER_BESIDE_H_
