// `lethe run` between topics of the shared broker, run to its end or killed on the way, and judged.
#ifndef LETHE_TESTS_SUPPORT_PIPELINE_H_
#define LETHE_TESTS_SUPPORT_PIPELINE_H_

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tests/support/kafka_client.h"
#include "tests/support/oracle.h"
#include "tests/support/process.h"

namespace lethe::test {

struct PipelineOptions {
  std::string program;  // the path of lethe
  std::string name;     // of the topics and the group, made unique
  int partitions = 4;
  std::string counter_key;  // fields, as for --counter-key and --counter-delta
  std::string counter_delta;
};

// Records are JSON with their id at /id. Thread-compatible.
class Pipeline {
 public:
  // Creates the topics.
  static absl::StatusOr<std::unique_ptr<Pipeline>> Create(PipelineOptions options);

  absl::Status Send(absl::Span<const Record> records);

  // Starts lethe, and returns when it has come to the end of the input. It must end with 0.
  absl::Status RunToEnd();

  // Sends `records` bit by bit while lethe runs. Once new output has appeared lethe is killed, at a moment
  // that `random` chooses, and started again at once, until it has been killed `kills` times in the middle of
  // the stream. Then it runs to the end of all records. FailedPrecondition if there are too few of them.
  absl::Status RunKilled(int kills, absl::Span<const Record> records, std::mt19937_64& random);

  // Succeeds if the committed output is the input without its copies, the sums of the counter topic are
  // `totals`, and the group has committed the whole input.
  testing::AssertionResult ExactlyOnce(const Totals& totals);

 private:
  explicit Pipeline(PipelineOptions options);
  ProcessOptions Program(bool exit_at_end) const;
  absl::StatusOr<int64_t> OutputSize();
  absl::Status AwaitNewOutput(int64_t before, Process& lethe);

  const PipelineOptions options_;
  const std::string input_;
  const std::string output_;
  const std::string counters_;
  const std::string group_;
};

// The id of a record of a Pipeline.
std::string JsonId(const Record& record);

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_PIPELINE_H_
