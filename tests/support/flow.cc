#include "tests/support/flow.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/support/free_port.h"
#include "tests/support/oracle.h"
#include "tests/support/pipeline.h"
#include "tests/support/shared_broker.h"

namespace lethe::test {
namespace {

constexpr absl::Duration kTimeout = absl::Minutes(1);

void Must(const absl::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

}  // namespace

SlowReading::SlowReading(int64_t bytes_per_second) : wire_(SharedWire()) {
  wire_.proxy.SetBytesPerSecond(bytes_per_second);
}
SlowReading::~SlowReading() { wire_.proxy.SetBytesPerSecond(0); }

Args SlowReading::args() const {
  return {"--brokers=" + wire_.bootstrap, "--kafka=queued.min.messages=1",
          "--kafka=fetch.message.max.bytes=3000"};
}

Flow::Flow(FlowOptions options)
    : options_(std::move(options)),
      input_(UniqueName("input")),
      output_(input_ + "-unique"),
      group_(input_ + "-group") {
  KafkaClient::Configs keep = {{"retention.ms", "-1"}};
  const auto configs = [&](const KafkaClient::Configs& more) {
    KafkaClient::Configs all = keep;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  Must(SharedClient().CreateTopic(input_, options_.partitions, configs(options_.input)));
  Must(SharedClient().CreateTopic(output_, options_.partitions, configs(options_.output)));
}

void Flow::Send(absl::Span<const Record> records) { Must(SharedClient().Produce(input_, records)); }

void Flow::SendIds(const std::string& prefix, int first, int last, int32_t partition) {
  std::vector<Record> records;
  for (int i = first; i <= last; ++i) records.push_back(WithId(absl::StrCat(prefix, i), partition));
  Send(records);
}

ProcessOptions Flow::Program(const Args& args, const std::string& command) const {
  Args all = {"--brokers=" + SharedBroker().bootstrap(),
              "--input=" + input_,
              "--output=" + output_,
              "--group=" + group_,
              "--instance=test",
              "--id=json:/id",
              "--horizon=30d",
              "--fpp=1e-9",
              "--http=off",
              "--kafka=session.timeout.ms=2000",
              "--kafka=heartbeat.interval.ms=200"};
  const auto name = [](const std::string& arg) { return arg.substr(0, arg.rfind('=') + 1); };
  for (const std::string& arg : args) {
    std::erase_if(all, [&](const std::string& own) { return !name(arg).empty() && name(own) == name(arg); });
    if (arg != name(arg)) all.push_back(arg);
  }
  ProcessOptions process;
  process.args = {options_.program, command};
  process.args.insert(process.args.end(), all.begin(), all.end());
  return process;
}

std::unique_ptr<Daemon> Flow::Start(const Args& args) {
  const int port = FreePort();
  Args with_http = {absl::StrCat("--http=127.0.0.1:", port)};
  with_http.insert(with_http.end(), args.begin(), args.end());
  return std::make_unique<Daemon>(Process::Start(Program(with_http)).value(), port);
}

Finished Flow::RunToEnd(const Args& args) {
  Args to_end = args;
  to_end.emplace_back("--exit-at-end");
  return test::RunToEnd(Program(to_end), kTimeout).value();
}

std::unique_ptr<Process> Flow::StartCommand(const std::string& command, const Args& args) {
  return Process::Start(Program(args, command)).value();
}

Finished Flow::RunCommand(const std::string& command, const Args& args) {
  return test::RunToEnd(Program(args, command), kTimeout).value();
}

std::vector<Record> Flow::Input() { return SharedClient().ReadSettled(input_).value(); }
std::vector<Record> Flow::Output() { return SharedClient().ReadSettled(output_).value(); }

std::vector<std::string> Flow::OutputIds() {
  std::vector<std::string> ids;
  for (const Record& record : Output()) ids.push_back(JsonId(record));
  return ids;
}

int64_t Flow::OutputSize() {
  const std::vector<int64_t> ends = SharedClient().EndOffsets(output_, Isolation::kReadUncommitted).value();
  return std::accumulate(ends.begin(), ends.end(), int64_t{0});
}

std::vector<CommittedOffset> Flow::Committed() { return SharedClient().Committed(group_, input_).value(); }

void Flow::ResetGroup(const std::vector<CommittedOffset>& offsets, const std::string& group) {
  const std::string& reset = group.empty() ? group_ : group;
  const auto operator_of =
      TransactionalProducer::Start(SharedBroker().bootstrap(), UniqueName("operator")).value();
  Must(operator_of->Begin());
  Must(operator_of->SendOffsets(reset, input_, offsets));
  Must(operator_of->Commit());
  // The answer to a commit comes before its offsets can be read.
  const auto done = [&] {
    return SharedClient().Committed(reset, input_).value().front().offset == offsets.front().offset;
  };
  if (!WaitUntil(done, kTimeout)) throw std::runtime_error("the group's offsets stay as they are");
}

testing::AssertionResult Flow::ExactlyOnce() {
  testing::AssertionResult deduplicated = Deduplicated(Input(), Output(), JsonId);
  if (!deduplicated) return deduplicated;
  const auto ends = SharedClient().EndOffsets(input_, Isolation::kReadCommitted).value();
  const std::vector<CommittedOffset> committed = Committed();
  for (size_t p = 0; p < ends.size(); ++p) {
    if (committed[p].offset == ends[p]) continue;
    return testing::AssertionFailure() << "partition " << p << " is committed up to " << committed[p].offset
                                       << " and ends at " << ends[p];
  }
  return testing::AssertionSuccess();
}

Args operator+(Args args, const Args& more) {
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

testing::AssertionResult EndsWell(const Finished& finished) {
  if (finished.exit_code == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "ended with " << finished.exit_code << ":\n" << finished.err;
}

testing::AssertionResult AwaitJudged(Daemon& daemon, int64_t records) {
  return daemon.Await([&] { return daemon.Metric("lethe_records_total") >= static_cast<double>(records); });
}

Record WithId(const std::string& id, int32_t partition, int64_t at) {
  Record record;
  record.key = "key of " + id;
  record.value = absl::StrCat(R"({"id":")", id, R"("})");
  record.partition = partition;
  record.timestamp_ms = at;
  return record;
}

std::string Incompressible(size_t size) {
  std::mt19937 random(1);
  std::string text(size, ' ');
  for (char& c : text) c = static_cast<char>('0' + random() % 64);
  std::replace(text.begin(), text.end(), '\\', '~');
  return text;
}

}  // namespace lethe::test
