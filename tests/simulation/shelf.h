// Snapshots in memory.
#ifndef LETHE_TESTS_SIMULATION_SHELF_H_
#define LETHE_TESTS_SIMULATION_SHELF_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "src/pipeline/options/options.h"
#include "src/pipeline/snapshots/snapshots.h"

namespace lethe::simulation {

// The files of one folder; it outlives the processes that use it.
class Shelf {
 public:
  std::map<std::tuple<std::string, int32_t, std::string>, std::string> files;  // by topic, partition and id

  void Damage(uint64_t number);
};

// `pass` lets time go by in the thread that writes.
std::unique_ptr<SnapshotStore> OpenShelf(Shelf& shelf, const DaemonOptions& options, int32_t partitions,
                                         std::function<void()> pass);

}  // namespace lethe::simulation

#endif  // LETHE_TESTS_SIMULATION_SHELF_H_
