#include "tests/simulation/world.h"

#include <algorithm>
#include <utility>

namespace lethe::simulation {

void World::After(absl::Duration delay, std::function<void()> what) {
  const int64_t delay_us = absl::ToInt64Microseconds(delay);
  if (delay_us <= 0) return soon_.push_back({next_number_++, std::move(what)});
  if (free_.empty()) {
    free_.push_back(whats_.size());
    whats_.emplace_back();
  }
  const size_t place = free_.back();
  free_.pop_back();
  whats_[place] = std::move(what);
  later_.push_back({now_us_ + delay_us, next_number_++, place});
  std::push_heap(later_.begin(), later_.end());
}

bool World::Step() {
  const bool has_later = !later_.empty();
  if (!soon_.empty() &&
      !(has_later && later_.front().at_us == now_us_ && later_.front().number < soon_.front().number)) {
    const std::function<void()> what = std::move(soon_.front().what);
    soon_.pop_front();
    if (what) what();
    return true;
  }
  if (!has_later) return false;
  std::pop_heap(later_.begin(), later_.end());
  const Later next = later_.back();
  later_.pop_back();
  now_us_ = next.at_us;
  const std::function<void()> what = std::move(whats_[next.place]);
  free_.push_back(next.place);
  what();
  return true;
}

std::string World::Stamp() const { return absl::StrFormat("%10.6f  ", static_cast<double>(now_us_) / 1e6); }

Actor::Actor(World& world, std::function<void()> work, std::function<void()> after_turn)
    : world_(world),
      fiber_([work = std::move(work)] {
        try {
          work();
        } catch (const Death&) {
        }
      }),
      after_turn_(std::move(after_turn)),
      turn_(world.AddTurn(this)) {
  ResumeAfter(absl::ZeroDuration());
}

Actor::~Actor() {
  turn_.actor = nullptr;
  dies_ = true;
  if (fiber_.has_begun() && !fiber_.has_ended()) Run();
}

void Actor::Run() {
  Actor* const before = std::exchange(world_.running_, this);
  fiber_.Resume();
  world_.running_ = before;
}

void Actor::Sleep(absl::Duration duration) {
  Live();
  if (is_dying_) return;
  ++turn_.sleep;
  turn_.resumes_at = absl::InfiniteDuration();
  if (duration < absl::InfiniteDuration()) ResumeAfter(duration);
  fiber_.Yield();
  Live();
}

void Actor::Wake() {
  // Each record wakes all that read: most of that is of no effect.
  if (is_running() || has_ended() || turn_.resumes_at <= world_.now()) return world_.Pause();
  ResumeAfter(absl::ZeroDuration());
}

void Actor::Freeze(absl::Duration duration) {
  frozen_until_ = std::max(frozen_until_, world_.now() + duration);
}

void Actor::ResumeAfter(absl::Duration delay) {
  turn_.resumes_at = std::min(turn_.resumes_at, world_.now() + delay);
  world_.After(delay, [turn = &turn_, sleep = turn_.sleep] {
    Actor* const self = turn->actor;
    if (self == nullptr || turn->sleep != sleep || self->fiber_.has_ended()) return;
    turn->resumes_at = absl::InfiniteDuration();
    if (self->is_frozen()) return self->ResumeAfter(self->frozen_until_ - self->world_.now());
    ++turn->sleep;  // another wake for the same sleep comes too late
    self->Run();
    if (self->after_turn_) self->after_turn_();
  });
}

}  // namespace lethe::simulation
