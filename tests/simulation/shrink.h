// Makes a schedule that fails smaller, for people.
#ifndef LETHE_TESTS_SIMULATION_SHRINK_H_
#define LETHE_TESTS_SIMULATION_SHRINK_H_

#include <functional>

#include "absl/strings/string_view.h"
#include "tests/simulation/schedule.h"

namespace lethe::simulation {

// Whether the first problem of a schedule is of this kind (see KindOf): a smaller one that fails otherwise
// tells of something else.
std::function<bool(const Schedule&)> FailsLike(absl::string_view problem);

// With as few faults, records, instances and other things as still fail; `fails` says whether one does.
Schedule Shrink(const Schedule& schedule, const std::function<bool(const Schedule&)>& fails);

}  // namespace lethe::simulation

#endif  // LETHE_TESTS_SIMULATION_SHRINK_H_
