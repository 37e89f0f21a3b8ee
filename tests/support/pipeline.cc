#include "tests/support/pipeline.h"

#include <signal.h>
#include <simdjson.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/support/shared_broker.h"

namespace lethe::test {
namespace {

constexpr absl::Duration kTimeout = absl::Minutes(2);
constexpr size_t kLastWords = 4000;

std::string LastWords(const Process& process) {
  const std::string text = process.Stderr();
  return text.substr(text.size() - std::min(text.size(), kLastWords));
}

absl::StatusOr<Totals> SumOf(const std::vector<Record>& deltas) {
  Totals totals;
  for (const Record& record : deltas) {
    int64_t delta = 0;
    if (!record.key || !record.value || !absl::SimpleAtoi(*record.value, &delta)) {
      return absl::InvalidArgumentError(absl::StrCat("no counter at ", record.partition, "/", record.offset,
                                                     ": key ", record.key.value_or("(null)"), ", value ",
                                                     record.value.value_or("(null)")));
    }
    totals[*record.key] += delta;
  }
  return totals;
}

}  // namespace

std::string JsonId(const Record& record) {
  static thread_local simdjson::dom::parser parser;
  std::string_view id;
  if (!record.value || parser.parse(*record.value)["id"].get_string().get(id)) return "";
  return std::string(id);
}

Pipeline::Pipeline(PipelineOptions options)
    : options_(std::move(options)),
      input_(UniqueName(options_.name)),
      output_(input_ + "-unique"),
      counters_(input_ + "-counters"),
      group_(input_ + "-group") {}

absl::StatusOr<std::unique_ptr<Pipeline>> Pipeline::Create(PipelineOptions options) {
  std::unique_ptr<Pipeline> pipeline(new Pipeline(std::move(options)));
  for (const std::string& topic : {pipeline->input_, pipeline->output_, pipeline->counters_}) {
    const absl::Status created =
        SharedClient().CreateTopic(topic, pipeline->options_.partitions, {{"retention.ms", "-1"}});
    if (!created.ok()) return created;
  }
  return pipeline;
}

absl::Status Pipeline::Send(absl::Span<const Record> records) {
  return SharedClient().Produce(input_, records);
}

ProcessOptions Pipeline::Program(bool exit_at_end) const {
  ProcessOptions process;
  process.args = {options_.program, "run", "--brokers=" + SharedBroker().bootstrap(), "--input=" + input_,
                  "--output=" + output_, "--group=" + group_, "--instance=test", "--id=json:/id",
                  "--horizon=30d", "--fpp=1e-9", "--http=off",
                  "--counter=name=counter,key=" + options_.counter_key + ",delta=" + options_.counter_delta +
                      ",output=" + counters_,

                  // The partitions of one that was killed are free after so long.
                  "--kafka=session.timeout.ms=3000", "--kafka=heartbeat.interval.ms=500"};
  if (exit_at_end) process.args.push_back("--exit-at-end");
  return process;
}

absl::Status Pipeline::RunToEnd() {
  const absl::StatusOr<std::unique_ptr<Process>> lethe = Process::Start(Program(/*exit_at_end=*/true));
  if (!lethe.ok()) return lethe.status();
  const absl::StatusOr<int> code = (*lethe)->Wait(kTimeout);
  if (code.ok() && *code == 0) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(code.ok() ? absl::StrCat("lethe ended with ", *code) : code.status().message(),
                   "; its last words:\n", LastWords(**lethe)));
}

absl::StatusOr<int64_t> Pipeline::OutputSize() {
  const auto ends = SharedClient().EndOffsets(output_, Isolation::kReadUncommitted);
  if (!ends.ok()) return ends.status();
  return std::accumulate(ends->begin(), ends->end(), int64_t{0});
}

absl::Status Pipeline::AwaitNewOutput(int64_t before, Process& lethe) {
  // The end of a transaction that was left open puts a marker into each partition, which is no output.
  const int64_t wanted = before + options_.partitions;
  absl::StatusOr<int64_t> size;
  const bool moved = WaitUntil(
      [&] {
        size = OutputSize();
        return !size.ok() || *size > wanted || !lethe.Running();
      },
      kTimeout);
  if (!size.ok()) return size.status();
  if (moved && lethe.Running()) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(moved ? "lethe ended before it was killed" : "lethe writes no output",
                   "; its last words:\n", LastWords(lethe)));
}

absl::Status Pipeline::RunKilled(int kills, absl::Span<const Record> records, std::mt19937_64& random) {
  const auto below = [&](uint64_t bound) { return random() % bound; };
  size_t sent = 0;
  const auto send = [&](size_t count) {
    const size_t first = std::exchange(sent, std::min(sent + count, records.size()));
    return Send(records.subspan(first, sent - first));
  };
  for (int kill = 0; kill < kills; ++kill) {
    const absl::StatusOr<int64_t> before = OutputSize();
    if (!before.ok()) return before.status();
    const absl::StatusOr<std::unique_ptr<Process>> lethe = Process::Start(Program(/*exit_at_end=*/false));
    if (!lethe.ok()) return lethe.status();
    absl::Status status = send(500 + below(2000));
    if (status.ok()) status = AwaitNewOutput(*before, **lethe);
    // The moment: some records and some transactions later, and anywhere in a transaction's time.
    for (uint64_t more = below(25); status.ok() && more > 0; --more) status = send(1 + below(200));
    if (!status.ok()) return status;
    if (sent == records.size()) {
      return absl::FailedPreconditionError(absl::StrCat("the stream ended before kill ", kill + 1));
    }
    absl::SleepFor(absl::Microseconds(below(300'000)));
    if (absl::Status killed = (*lethe)->Signal(SIGKILL); !killed.ok()) {
      return absl::InternalError(absl::StrCat(killed.message(), "; its last words:\n", LastWords(**lethe)));
    }
  }
  if (absl::Status rest = send(records.size()); !rest.ok()) return rest;
  return RunToEnd();
}

testing::AssertionResult Pipeline::ExactlyOnce(const Totals& totals) {
  const auto input = SharedClient().ReadSettled(input_);
  const auto output = SharedClient().ReadSettled(output_);
  const auto deltas = SharedClient().ReadSettled(counters_);
  const auto ends = SharedClient().EndOffsets(input_, Isolation::kReadCommitted);
  const auto committed = SharedClient().Committed(group_, input_);
  for (const absl::Status& status :
       {input.status(), output.status(), deltas.status(), ends.status(), committed.status()}) {
    if (!status.ok()) return testing::AssertionFailure() << status;
  }
  testing::AssertionResult deduplicated = Deduplicated(*input, *output, JsonId);
  if (!deduplicated) return deduplicated;
  for (size_t p = 0; p < ends->size(); ++p) {
    if ((*committed)[p].offset == (*ends)[p]) continue;
    return testing::AssertionFailure() << "partition " << p << " is committed up to "
                                       << (*committed)[p].offset << " and ends at " << (*ends)[p];
  }
  const absl::StatusOr<Totals> sums = SumOf(*deltas);
  if (!sums.ok()) return testing::AssertionFailure() << sums.status();
  return SameTotals(totals, *sums);
}

}  // namespace lethe::test
