#include "tests/simulation/world.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace lethe::simulation {

void World::After(absl::Duration delay, std::function<void()> what) {
  things_.push_back(
      {now_us_ + std::max<int64_t>(absl::ToInt64Microseconds(delay), 0), next_number_++, std::move(what)});
  std::push_heap(things_.begin(), things_.end());
}

bool World::Step() {
  if (things_.empty()) return false;
  std::pop_heap(things_.begin(), things_.end());
  Thing next = std::move(things_.back());
  things_.pop_back();
  now_us_ = next.at_us;
  next.what();
  return true;
}

std::string World::Stamp() const { return absl::StrFormat("%10.6f  ", static_cast<double>(now_us_) / 1e6); }

Actor::Actor(World& world, std::function<void()> work)
    : world_(world),
      fiber_([work = std::move(work)] {
        try {
          work();
        } catch (const Death&) {
        }
      }),
      turn_(std::make_shared<Turn>(Turn{this})) {
  ResumeAfter(absl::ZeroDuration());
}

Actor::~Actor() {
  turn_->actor = nullptr;
  dies_ = true;
  if (fiber_.has_begun() && !fiber_.has_ended()) fiber_.Resume();
}

void Actor::Sleep(absl::Duration duration) {
  Live();
  ++turn_->sleep;
  if (duration < absl::InfiniteDuration()) ResumeAfter(duration);
  fiber_.Yield();
  Live();
}

void Actor::Wake() { ResumeAfter(absl::ZeroDuration()); }

void Actor::Freeze(absl::Duration duration) {
  frozen_until_ = std::max(frozen_until_, world_.now() + duration);
}

void Actor::ResumeAfter(absl::Duration delay) {
  world_.After(delay, [turn = turn_, sleep = turn_->sleep] {
    Actor* const self = turn->actor;
    if (self == nullptr || turn->sleep != sleep || self->fiber_.has_ended()) return;
    if (self->is_frozen()) return self->ResumeAfter(self->frozen_until_ - self->world_.now());
    ++turn->sleep;  // another wake for the same sleep comes too late
    self->fiber_.Resume();
  });
}

}  // namespace lethe::simulation
