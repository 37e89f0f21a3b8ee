#include "tests/simulation/sink.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/pipeline/options/stage_options.h"
#include "tests/simulation/group.h"

namespace lethe::simulation {
namespace {

constexpr absl::Duration kAskAgainAfter = absl::Milliseconds(20);
// After a stop a transaction may still take so long.
constexpr absl::Duration kStopGrace = absl::Seconds(3);
// How long the client waits for a topic that is not there to come: of its records, of its offsets.
constexpr absl::Duration kTopicPatience = absl::Seconds(5);
constexpr absl::Duration kInputPatience = absl::Seconds(2);
constexpr absl::string_view kTxnOffsetCommit = "TxnOffsetCommit";
constexpr absl::Duration kAskForTopicEvery = absl::Milliseconds(500);

std::optional<std::string> Copy(std::optional<absl::string_view> text) {
  return text ? std::optional<std::string>(*text) : std::nullopt;
}

}  // namespace

SimulatedSink::SimulatedSink(const DaemonOptions& options, const Flows& flows, int lane,
                             SinkOptions sink_options, Broker& broker, SimulatedSource& source,
                             WorkerState& state, Thread& thread)
    : options_(options),
      flows_(flows),
      sink_options_(sink_options),
      broker_(broker),
      source_(source),
      state_(state),
      thread_(thread),
      id_(absl::StrCat(options.process.group, "/", options.process.instance, "/", lane)) {}

bool SimulatedSink::is_connected() const { return source_.is_connected(); }

Answer SimulatedSink::Ask(absl::string_view what, const Request& request) {
  if (!is_connected()) return Answer::kAway;
  Network& network = broker_.network();
  switch (network.NextWay(options_.process.instance)) {
    case Network::Way::kGood:
      return request();
    case Network::Way::kTwice:
      network.DeliverLate([&world = thread_.world(), id = id_, what, request] {
        world.Say(id, ": ", what, " comes late, and is ", request() == Answer::kOk ? "taken" : "refused");
      });
      return Answer::kAway;
    case Network::Way::kAnswerLost:
      thread_.world().Say(id_, ": the answer to ", what, " is lost");
      request();
      return Answer::kAway;
    case Network::Way::kSlow:
      break;
  }
  thread_.Sleep(network.Delay());
  const Answer answer = request();
  thread_.Sleep(network.Delay());
  return answer;
}

Answer SimulatedSink::Retry(absl::string_view what, const Request& request) {
  absl::Duration stopping;
  for (;;) {
    const Answer answer = Ask(what, request);
    if (answer == Answer::kAway) {
      late_.OnUnanswered(what == kTxnOffsetCommit ? LateRequests::Kind::kOffsets
                                                  : LateRequests::Kind::kOther);
    }
    if (answer != Answer::kAway && answer != Answer::kBusy) return answer;
    if (state_.stop.requested() && (stopping += kAskAgainAfter) > kStopGrace) return Answer::kAway;
    thread_.Sleep(kAskAgainAfter);
  }
}

absl::Status SimulatedSink::Open(OutputLimits /*limits*/) {
  thread_.Pass();
  const auto epoch = std::make_shared<int>();
  const Answer answer =
      Retry("InitProducerId", [&broker = broker_, id = id_, timeout = sink_options_.transaction_timeout,
                               epoch] { return broker.Init(id, timeout, epoch.get()); });
  if (answer != Answer::kOk) return absl::CancelledError("stopped");
  epoch_ = *epoch;
  sequences_.clear();
  has_producer_ = true;
  is_fenced_ = false;
  late_.OnNewEpoch();
  thread_.Pass();
  return absl::OkStatus();
}

absl::Status SimulatedSink::Begin() {
  thread_.Pass();
  if (!has_producer_) return absl::UnavailableError("there is no producer");
  report_ = {};
  if (late_.NeedNewEpoch() && !Recreate()) return absl::CancelledError("stopped");
  has_begun_ = false;
  added_.clear();
  waiting_.clear();
  bytes_ = 0;
  return absl::OkStatus();
}

const std::string& SimulatedSink::TopicOf(const OutputRecord& record) const {
  const DaemonOptions& options = flows_.at(record.target.flow).options;
  switch (record.target.kind) {
    case Target::Kind::kOutput:
      return options.output;
    case Target::Kind::kDivert:
      return options.divert;
    case Target::Kind::kCounter:
      break;
  }
  return options.counters[record.target.counter].output;
}

absl::Status SimulatedSink::Write(const OutputRecord& output) {
  thread_.Pass();
  Record record = {.key = Copy(output.key),
                   .value = Copy(output.value),
                   .headers = {},
                   .timestamp_ms = output.timestamp_ms};
  for (const HeaderView& header : output.headers) {
    record.headers.emplace_back(std::string(header.name), Copy(header.value));
  }
  const auto size_of = [](const std::optional<std::string>& text) { return text ? text->size() : 0; };
  bytes_ += static_cast<int64_t>(size_of(record.key) + size_of(record.value));
  const std::string& topic = TopicOf(output);
  // Which one is of no matter to anybody here: deltas name their partition.
  const int32_t partition = std::max(output.partition, 0);
  auto batch = std::find_if(waiting_.begin(), waiting_.end(), [&](const Batch& each) {
    return each.topic == topic && each.partition == partition;
  });
  if (batch == waiting_.end()) batch = waiting_.insert(batch, {output.target.flow, topic, partition, {}, {}});
  batch->records.push_back(std::move(record));
  batch->places.push_back(output.of);
  if (thread_.world().dice().OneIn(16)) Flush();
  return report_.failure == Failure::kNone ? absl::OkStatus() : absl::UnavailableError(report_.last_error);
}

void SimulatedSink::Fail(const std::string& why) {
  if (report_.failure == Failure::kNone) report_.failure = Failure::kTransient;
  report_.last_error = why;
}

bool SimulatedSink::Deliver(std::shared_ptr<const Batch> of) {
  const Batch& batch = *of;
  const DaemonOptions& options = flows_.at(batch.flow).options;
  // The repartition topic takes what the input takes.
  if (batch.topic == options.output && !options.half.routing) {
    const auto is_bad = [&](const Record& each) {
      return each.value && each.value->size() > sink_options_.output_takes_bytes;
    };
    if (std::any_of(batch.records.begin(), batch.records.end(), is_bad)) {
      report_.failure = Failure::kRefused;
      report_.last_error = "too large";
      report_.refusals_are_named = sink_options_.names_refused;
      for (size_t i = 0; i < batch.records.size(); ++i) {
        const Record& record = batch.records[i];
        if (sink_options_.names_refused && !is_bad(record)) continue;
        const auto bytes = static_cast<int64_t>(record.value.value_or("").size());
        report_.refusals.push_back({batch.places[i],
                                    {.bytes = bytes,
                                     .timestamp_ms = record.timestamp_ms,
                                     .has_key = record.key.has_value(),
                                     .is_invalid = sink_options_.names_refused},
                                    "too large"});
      }
      return false;
    }
  }
  const Answer answer = AwaitTopic(thread_.world().dice().Between(absl::ZeroDuration(), kTopicPatience),
                                   [&] { return Produce(of); });
  if (answer == Answer::kOk) return true;
  if (answer == Answer::kNoTopic || answer == Answer::kNotPermitted) {
    const std::string why =
        absl::StrCat("topic ", batch.topic, answer == Answer::kNoTopic ? " is not there" : " refuses");
    report_.to_blame[batch.flow] = why;
    Fail(why);
    return false;
  }
  is_fenced_ = answer == Answer::kFenced || answer == Answer::kNotOfIt;
  Fail(is_fenced_ ? "the producer is fenced" : "stopped");
  return false;
}

Answer SimulatedSink::Produce(const std::shared_ptr<const Batch>& batch) {
  const std::pair<std::string, int32_t> place = {batch->topic, batch->partition};
  if (!added_.contains(place)) {
    const Answer added = Retry("AddPartitionsToTxn", [&broker = broker_, id = id_, epoch = epoch_, place] {
      return broker.AddPartition(id, epoch, place.first, place.second);
    });
    if (added != Answer::kOk) return added;
    has_begun_ = true;
    added_.insert(place);
  }
  int64_t& sequence = sequences_[place];
  const Answer produced = Retry("Produce", [&broker = broker_, id = id_, epoch = epoch_, batch, sequence] {
    return broker.Produce(id, epoch, batch->topic, batch->partition, sequence, batch->records);
  });
  if (produced == Answer::kOk) ++sequence;
  return produced;
}

Answer SimulatedSink::AddOffsets(const std::vector<Position>& positions) {
  std::vector<std::pair<std::string, Position>> offsets;
  for (const Position& position : positions) {
    offsets.emplace_back(flows_.at(position.partition.flow).options.input, position);
  }
  Group& group = source_.group();
  const Answer added = Retry("AddOffsetsToTxn", [&broker = broker_, &group, id = id_, epoch = epoch_] {
    return broker.AddOffsets(id, epoch, group);
  });
  if (added != Answer::kOk) return added;
  has_begun_ = true;
  return AwaitTopic(kInputPatience, [&] {
    return Retry(kTxnOffsetCommit,
                 [&broker = broker_, &group, id = id_, epoch = epoch_, member = source_.commit_member(),
                  generation = source_.generation(),
                  offsets] { return broker.CommitOffsets(id, epoch, group, member, generation, offsets); });
  });
}

Answer SimulatedSink::End(bool commits) {
  return Retry(
      commits ? "EndTxn(commit)" : "EndTxn(abort)",
      [&broker = broker_, id = id_, epoch = epoch_, commits] { return broker.End(id, epoch, commits); });
}

Answer SimulatedSink::AwaitTopic(absl::Duration at_most, const std::function<Answer()>& ask) {
  for (absl::Duration waited;;) {
    const Answer answer = ask();
    if (answer != Answer::kNoTopic || waited >= at_most || state_.stop.requested()) return answer;
    thread_.Sleep(kAskForTopicEvery);
    waited += kAskForTopicEvery;
  }
}

bool SimulatedSink::Flush() {
  bool is_good = true;
  while (!waiting_.empty()) {
    auto batch = std::make_shared<const Batch>(std::move(waiting_.front()));
    waiting_.erase(waiting_.begin());
    // Records of other topics are on their way.
    is_good = Deliver(std::move(batch)) && is_good;
    if (!is_good && report_.to_blame.empty()) return false;
    thread_.Pass();
  }
  return is_good;
}

Failure SimulatedSink::Poll() {
  thread_.Pass();
  return report_.failure;
}

Outcome SimulatedSink::Commit(const std::vector<Position>& positions) {
  thread_.Pass();
  if (!has_producer_) return Outcome::kStopped;
  if (report_.failure == Failure::kNone) Flush();
  if (report_.failure == Failure::kNone && refuse_commits_ > 0) {
    --refuse_commits_;
    Fail("the broker refuses for now");
  }
  if (report_.failure != Failure::kNone) return Abort();
  Answer answer = AddOffsets(positions);
  if (answer == Answer::kOk) {
    thread_.Pass();
    answer = End(/*commits=*/true);
    if (answer == Answer::kOk && lose_answers_ > 0) {
      --lose_answers_;
      Fail("the answer was lost");
      return ProducerLost(report_.last_error);
    }
    thread_.Pass();
    if (answer == Answer::kOk) return Outcome::kCommitted;
  }
  if (answer == Answer::kAway) return Outcome::kStopped;
  report_.has_group_moved_on = answer == Answer::kGroupMovedOn;
  Fail(report_.has_group_moved_on   ? "the group has moved on"
       : answer == Answer::kNoTopic ? "an input is not there"
                                    : "the producer is fenced");
  if (answer == Answer::kFenced || answer == Answer::kNotOfIt) {
    is_fenced_ = true;
    return ProducerLost(report_.last_error);
  }
  return Abort();
}

Outcome SimulatedSink::Abort() {
  thread_.Pass();
  if (!has_producer_) return Outcome::kStopped;
  waiting_.clear();
  if (is_fenced_) return ProducerLost("the producer is fenced");
  // The coordinator has heard nothing of it.
  if (!std::exchange(has_begun_, false)) return Outcome::kAborted;
  const Answer answer = End(/*commits=*/false);
  thread_.Pass();
  if (answer == Answer::kOk) return Outcome::kAborted;
  if (answer == Answer::kAway) return Outcome::kStopped;
  is_fenced_ = true;
  return ProducerLost("the producer is fenced");
}

Outcome SimulatedSink::ProducerLost(const std::string& why) {
  ++fences_;
  thread_.world().Say(id_, ": its producer is lost: ", why);
  if (const absl::Status may = is_fenced_ ? may_recreate() : absl::OkStatus(); !may.ok()) {
    has_producer_ = false;
    report_.last_error = std::string(may.message());
    return Outcome::kStopped;
  }
  return Recreate() ? Outcome::kUnknown : Outcome::kStopped;
}

bool SimulatedSink::Recreate() {
  has_producer_ = false;
  return Open({}).ok();
}

TransactionSize SimulatedSink::size() const { return {0, bytes_, bytes_, absl::ZeroDuration()}; }

absl::StatusOr<SmallestTopic> SimulatedSink::CountPartitions(int32_t flow) {
  thread_.Pass();
  if (!is_connected() || broker_.is_away()) return absl::UnavailableError("no answer");
  return LeastPartitions(flows_.at(flow).options, [&](const std::string& topic) -> absl::StatusOr<int32_t> {
    if (broker_.Find(topic) == nullptr) return absl::NotFoundError(absl::StrCat("no topic ", topic));
    return broker_.CountPartitions(topic);
  });
}

absl::StatusOr<RecordRules> SimulatedSink::AskRules(int32_t /*flow*/) {
  thread_.Pass();
  if (!is_connected() || broker_.is_away()) return absl::UnavailableError("no answer");
  RecordRules rules;
  return rules;
}

}  // namespace lethe::simulation
