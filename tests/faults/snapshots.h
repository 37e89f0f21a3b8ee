// The snapshots that lethe has stored, and what befalls them while nobody looks.
#ifndef LETHE_TESTS_FAULTS_SNAPSHOTS_H_
#define LETHE_TESTS_FAULTS_SNAPSHOTS_H_

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/support/kafka_client.h"

namespace lethe::test {

struct StoredSnapshot {
  std::string series;  // of one partition of one group: all of its name that is before its id
  std::string id;
  std::string bytes;
  // Of its records, in a topic.
  int32_t partition = 0;
  int64_t timestamp_ms = 0;
};

// A folder or a topic of snapshots. Thread-compatible.
class SnapshotShelf {
 public:
  virtual ~SnapshotShelf() = default;
  // Those that are whole, by the names of their files or their manifests.
  virtual absl::StatusOr<std::vector<StoredSnapshot>> Load() = 0;
  // From now on these are there, and no others.
  virtual absl::Status Store(const std::vector<StoredSnapshot>& snapshots) = 0;
};
std::unique_ptr<SnapshotShelf> ShelfInFolder(std::string folder);
// Not in a topic that is compacted only: nothing can be deleted there.
std::unique_ptr<SnapshotShelf> ShelfInTopic(KafkaClient& client, std::string topic);

// What can befall them; the same seed does the same.
class SnapshotHarm {
 public:
  explicit SnapshotHarm(uint64_t seed) : random_(seed) {}

  // Each has bytes changed, is cut, or is gone.
  void Damage(std::vector<StoredSnapshot>& snapshots);
  // Each is, under its name, what another one of its partition was before; or all is as it was.
  void PutBack(const std::vector<StoredSnapshot>& before, std::vector<StoredSnapshot>& snapshots);
  // Each is whole, and says that it is of another topic, partition, id, horizon, target, number of shards, or
  // is of the other `renew`; or is that of another partition.
  absl::Status MakeForeign(std::vector<StoredSnapshot>& snapshots);

 private:
  size_t Below(size_t limit) { return static_cast<size_t>(random_() % limit); }

  std::mt19937_64 random_;
};

}  // namespace lethe::test

#endif  // LETHE_TESTS_FAULTS_SNAPSHOTS_H_
