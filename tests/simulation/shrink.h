// Makes a schedule that fails smaller, for people.
#ifndef LETHE_TESTS_SIMULATION_SHRINK_H_
#define LETHE_TESTS_SIMULATION_SHRINK_H_

#include <functional>

#include "tests/simulation/schedule.h"

namespace lethe::simulation {

// With as few faults, records, instances and other things as still fail; `fails` says whether one does.
Schedule Shrink(const Schedule& schedule, const std::function<bool(const Schedule&)>& fails);

}  // namespace lethe::simulation

#endif  // LETHE_TESTS_SIMULATION_SHRINK_H_
