// The switch of the mistakes that are put back.
#ifndef LETHE_TESTS_SIMULATION_MUTATIONS_MUTATED_H_
#define LETHE_TESTS_SIMULATION_MUTATIONS_MUTATED_H_

#include "absl/strings/string_view.h"

namespace lethe::simulation {

// The mistake that is made now; empty: none.
inline absl::string_view mutation;

inline bool IsMutated(absl::string_view name) { return mutation == name; }

}  // namespace lethe::simulation

#endif  // LETHE_TESTS_SIMULATION_MUTATIONS_MUTATED_H_
