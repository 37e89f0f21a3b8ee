// A function that stops where it likes, and goes on later.
#ifndef LETHE_TESTS_SIMULATION_FIBER_H_
#define LETHE_TESTS_SIMULATION_FIBER_H_

#include <functional>
#include <memory>

namespace lethe::simulation {

// Runs on a stack of its own, in the thread that resumes it. Not thread-safe.
class Fiber {
 public:
  // `work` throws nothing.
  explicit Fiber(std::function<void()> work);
  // It has ended, or was never resumed.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs it until it yields or ends.
  void Resume();
  // Called inside of it: back to who has resumed it.
  void Yield();
  bool has_begun() const { return has_begun_; }
  bool has_ended() const { return has_ended_; }
  bool is_running() const { return is_running_; }

 private:
  struct Stack;
  static void Enter(unsigned high, unsigned low);

  const std::function<void()> work_;
  std::unique_ptr<Stack> stack_;
  bool has_begun_ = false;
  bool has_ended_ = false;
  bool is_running_ = false;
};

}  // namespace lethe::simulation

#endif  // LETHE_TESTS_SIMULATION_FIBER_H_
