// `lethe run` between topics of the shared broker, watched while it runs: its log, its metrics, its exit.
#ifndef LETHE_TESTS_SUPPORT_FLOW_H_
#define LETHE_TESTS_SUPPORT_FLOW_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tests/support/daemon.h"
#include "tests/support/kafka_client.h"
#include "tests/support/process.h"
#include "tests/support/shared_broker.h"

namespace lethe::test {

using Args = std::vector<std::string>;

// For a daemon that reads so many bytes a second, and each batch alone, as long as this lives.
class SlowReading {
 public:
  explicit SlowReading(int64_t bytes_per_second);
  ~SlowReading();
  SlowReading(const SlowReading&) = delete;
  SlowReading& operator=(const SlowReading&) = delete;

  Args args() const;

 private:
  const SharedWireToBroker wire_;
};

struct FlowOptions {
  std::string program;  // the path of lethe
  int partitions = 1;
  KafkaClient::Configs input;  // of the topics
  KafkaClient::Configs output;
};

// Topics and a group of its own. Records are JSON with their id at /id, unless --id says otherwise. Members
// throw an exception, which fails the test, where the broker does not do what it is asked.
class Flow {
 public:
  explicit Flow(FlowOptions options);

  const std::string& input() const { return input_; }
  const std::string& output() const { return output_; }
  const std::string& group() const { return group_; }

  void Send(absl::Span<const Record> records);
  // With ids prefix + first ... last.
  void SendIds(const std::string& prefix, int first, int last, int32_t partition = 0);

  // `args` come behind the flow's own, and replace those of the same name; one without a value only takes the
  // flow's own away ("--fpp=").
  std::unique_ptr<Daemon> Start(const Args& args = {});
  Finished RunToEnd(const Args& args = {});
  // Another command with the same flags: check.
  std::unique_ptr<Process> StartCommand(const std::string& command, const Args& args = {});
  Finished RunCommand(const std::string& command, const Args& args = {});

  std::vector<Record> Input();
  std::vector<Record> Output();
  // Of the values of Output(), by partition and order.
  std::vector<std::string> OutputIds();
  int64_t OutputSize();  // with what is not committed
  std::vector<CommittedOffset> Committed();
  // As an operator does: without metadata. For all partitions; nobody may be in the group. Of the flow's
  // group, if none is named.
  void ResetGroup(const std::vector<CommittedOffset>& offsets, const std::string& group = "");

  // Succeeds if the output is the input without its copies, and the group has committed all of it.
  testing::AssertionResult ExactlyOnce();

 private:
  ProcessOptions Program(const Args& args, const std::string& command = "run") const;

  const FlowOptions options_;
  const std::string input_;
  const std::string output_;
  const std::string group_;
};

Args operator+(Args args, const Args& more);

// Succeeds if the exit code is 0.
testing::AssertionResult EndsWell(const Finished& finished);

// Waits until lethe has judged this many records, of all partitions together.
testing::AssertionResult AwaitJudged(Daemon& daemon, int64_t records);

// A record with this id; `at` in Unix milliseconds, 0: now.
Record WithId(const std::string& id, int32_t partition = 0, int64_t at = 0);

// So many characters that may stand in a JSON string, and that no codec makes much smaller.
std::string Incompressible(size_t size);

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_FLOW_H_
