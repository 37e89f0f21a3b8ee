// Its check takes a jump to another stack for a mistake.
#undef _FORTIFY_SOURCE

#include "tests/simulation/fiber.h"

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace lethe::simulation {
namespace {

constexpr size_t kStackBytes = size_t{256} << 10;
constexpr size_t kGuardBytes = 4096;

// Stacks are used again: to map one takes longer than most of what runs on it.
std::vector<void*>& FreeStacks() {
  static thread_local std::vector<void*> free;
  return free;
}

void* NewStack() {
  if (!FreeStacks().empty()) {
    void* const stack = FreeStacks().back();
    FreeStacks().pop_back();
    return stack;
  }
  void* const stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert(stack != MAP_FAILED);
  mprotect(stack, kGuardBytes, PROT_NONE);
  return stack;
}

}  // namespace

struct Fiber::Stack {
  void* bytes = NewStack();
  ucontext_t begin;
  ucontext_t resumer;
  // A switch of contexts saves the mask of signals, too, which is a call to the kernel: it serves the first
  // switch only.
  jmp_buf own;
  jmp_buf back;
#if defined(__SANITIZE_ADDRESS__)
  void* fake = nullptr;
  void* resumer_fake = nullptr;
  const void* resumer_bottom = nullptr;
  size_t resumer_size = 0;
#endif
#if defined(__SANITIZE_THREAD__)
  void* tsan = __tsan_create_fiber(0);
  void* tsan_resumer = nullptr;
  ~Stack() { __tsan_destroy_fiber(tsan); }
#endif
};

Fiber::Fiber(std::function<void()> work) : work_(std::move(work)), stack_(std::make_unique<Stack>()) {
  getcontext(&stack_->begin);
  stack_->begin.uc_stack.ss_sp = stack_->bytes;
  stack_->begin.uc_stack.ss_size = kStackBytes;
  stack_->begin.uc_link = nullptr;
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&stack_->begin, reinterpret_cast<void (*)()>(&Fiber::Enter), 2,
              static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
}

Fiber::~Fiber() {
  assert(has_ended_ || !has_begun_);
  FreeStacks().push_back(stack_->bytes);
}

void Fiber::Enter(unsigned high, unsigned low) {
  auto* const self = reinterpret_cast<Fiber*>(uintptr_t{high} << 32 | low);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &self->stack_->resumer_bottom, &self->stack_->resumer_size);
#endif
  self->work_();
  self->has_ended_ = true;
  self->Yield();
}

void Fiber::Resume() {
  const bool is_first = !std::exchange(has_begun_, true);
  Stack& stack = *stack_;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&stack.resumer_fake, stack.bytes, kStackBytes);
#endif
#if defined(__SANITIZE_THREAD__)
  stack.tsan_resumer = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(stack.tsan, 0);
#endif
  is_running_ = true;
  if (_setjmp(stack.back) == 0) {
    if (is_first) {
      swapcontext(&stack.resumer, &stack.begin);
    } else {
      _longjmp(stack.own, 1);
    }
  }
  is_running_ = false;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(stack.resumer_fake, nullptr, nullptr);
#endif
}

void Fiber::Yield() {
  Stack& stack = *stack_;
#if defined(__SANITIZE_ADDRESS__)
  // One that has ended needs its fake stack no longer.
  __sanitizer_start_switch_fiber(has_ended_ ? nullptr : &stack.fake, stack.resumer_bottom,
                                 stack.resumer_size);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(stack.tsan_resumer, 0);
#endif
  if (_setjmp(stack.own) == 0) _longjmp(stack.back, 1);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(stack.fake, &stack.resumer_bottom, &stack.resumer_size);
#endif
}

}  // namespace lethe::simulation
