#include "src/cli/verify/verify_topic.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "connectors/kafka/group/broker_client.h"
#include "connectors/kafka/topics/topic_reader.h"
#include "connectors/kafka/topics/topics.h"
#include "src/pipeline/clock/patiently.h"
#include "src/pipeline/clock/steady_time.h"
#include "src/pipeline/options/stage_options.h"
#include "src/pipeline/restore/commit_metadata.h"

namespace lethe {
namespace {

using Fate = VerifyRules::Fate;

constexpr absl::Duration kPatience = absl::Seconds(10);
constexpr absl::Duration kAskTimeout = absl::Seconds(5);
// So many offsets before the history give the clock its start.
constexpr int64_t kClockOffsets = 1000;

Fate FateOf(Action action) {
  switch (action) {
    case Action::kTag:
      return Fate::kTagged;
    case Action::kDivert:
      return Fate::kDiverted;
    case Action::kDrop:
      return Fate::kDropped;
    case Action::kPass:
    case Action::kFail:
      break;
  }
  return Fate::kWritten;
}

// Until when a filter may remember an id that passed at most a horizon before its copy. An epoch of `compact`
// lasts an eighth of the horizon at most; `published` may have few filters.
absl::Duration WindowOf(const DaemonOptions& options) {
  const absl::Duration horizon = options.stage.horizon;
  const absl::Duration window = options.stage.engine == Engine::kPublished ? 2 * horizon : horizon * 5 / 4;
  // What the routers may be apart.
  return options.scope == Scope::kTopic ? window * 9 / 8 + 2 * LeadOf(horizon) : window;
}

VerifyRules RulesOf(const DaemonOptions& options) {
  VerifyRules rules;
  rules.id = options.record.id;
  rules.topic_scope = options.scope == Scope::kTopic;
  rules.horizon = options.stage.horizon;
  rules.window = WindowOf(options);
  rules.renew = options.stage.renew;
  rules.fpp = options.stage.target_fpp;
  rules.copies = FateOf(options.policies.on_duplicate);
  rules.without_id = FateOf(options.policies.on_missing_id);
  rules.malformed = FateOf(options.policies.on_malformed);
  rules.source_header = options.input_header;
  rules.latest = absl::Now() + options.max_future;
  return rules;
}

class Verification {
 public:
  Verification(const DaemonOptions& options, const VerifyRequest& request)
      : options_(options), request_(request), rules_(RulesOf(options)) {
    result_.options = options;
    result_.since = request.since;
  }

  absl::StatusOr<VerifiedTopic> Run() {
    // In this order: what is committed is in the output, and what is in the output is in the input.
    absl::Status status = AskGroup();
    if (status.ok()) status = OpenOutputs();
    if (status.ok()) status = OpenInputs();
    if (status.ok()) status = Plan();
    for (int64_t pass = 0; status.ok() && pass < result_.passes; ++pass) status = Read(pass);
    if (status.ok()) status = CountAborted();
    if (!status.ok()) return status;
    result_.inputs = bounds_.inputs;
    return std::move(result_);
  }

 private:
  struct Log {
    std::unique_ptr<kafka::TopicReader> reader;
    std::string topic;
    std::vector<OffsetRange> ranges;  // that are read
    std::vector<int64_t> judged_from;
  };
  struct Committed {
    int64_t offset = 0;
    int64_t origin = 0;
    std::vector<int64_t> undeliverable = {};
  };

  absl::Status AskGroup();
  absl::StatusOr<std::vector<Committed>> AskCommitted(const DaemonOptions& options);
  absl::Status AskRouted();
  absl::StatusOr<Log> Open(const std::string& topic, bool is_settled, int64_t offsets_before = 0);
  absl::Status OpenOutputs();
  absl::Status OpenInputs();
  absl::Status Plan();
  absl::Status Read(int64_t pass);
  absl::Status ReadLog(Log& log, const std::function<void(const SurveyRecord&)>& take);
  void NoteCuts();
  absl::Status CountAborted();
  bool GoOn(int64_t done) {
    interrupted_ = interrupted_ || !request_.go_on(done_ + done, total_);
    return !interrupted_;
  }

  const DaemonOptions& options_;
  const VerifyRequest& request_;
  VerifyRules rules_;
  VerifiedTopic result_;
  VerifyBounds bounds_;
  std::map<std::string, std::vector<Committed>> committed_;  // by input; none: it is not known
  std::vector<Log> inputs_;
  Log output_;
  Log divert_;  // of which there may be none
  uint64_t seed_ = std::random_device()() * (uint64_t{1} << 32) + std::random_device()();
  int64_t committed_records_ = 0;  // of the output
  int64_t done_ = 0;
  int64_t total_ = 0;
  bool interrupted_ = false;
};

absl::StatusOr<std::vector<Verification::Committed>> Verification::AskCommitted(
    const DaemonOptions& options) {
  const auto brokers = kafka::BrokerClient::Make(options, Isolation::kReadCommitted);
  if (!brokers.ok()) return brokers.status();
  const auto offsets = Patiently(kPatience, [&] { return (*brokers)->AskCommitted(options.input); });
  if (!offsets.ok()) return offsets.status();
  std::vector<Committed> committed;
  for (const CommittedOffset& offset : *offsets) {
    Committed& one = committed.emplace_back(Committed{std::max<int64_t>(offset.offset, 0)});
    const auto metadata = CommitMetadata::Parse(offset.metadata);
    // An operator's reset begins there.
    one.origin = metadata.ok() ? metadata->origin.offset : one.offset;
    if (metadata.ok()) one.undeliverable = metadata->undeliverable;
  }
  return committed;
}

absl::Status Verification::AskGroup() {
  for (const std::string& input : options_.inputs()) {
    DaemonOptions of_input = options_.scope == Scope::kTopic ? RoutingOptions(options_, input) : options_;
    auto committed = AskCommitted(of_input);
    if (absl::IsPermissionDenied(committed.status())) {
      result_.notes.push_back(absl::StrCat(
          "This user may not read group ", of_input.process.group,
          ": of each partition, records behind the last one that is in the output count as not yet judged. "
          "Grant Read (or Describe) on the group."));
      return absl::OkStatus();
    }
    if (!committed.ok()) return committed.status();
    committed_[input] = *std::move(committed);
  }
  return options_.scope == Scope::kTopic ? AskRouted() : absl::OkStatus();
}

// What the routers have written, the deduplicators may not have judged yet.
absl::Status Verification::AskRouted() {
  const DaemonOptions judging = JudgingOptions(options_);
  const auto sees_all = kafka::BrokerClient::Make(judging, Isolation::kReadUncommitted);
  if (!sees_all.ok()) return sees_all.status();
  const auto brokers = kafka::BrokerClient::Make(judging, Isolation::kReadCommitted);
  if (!brokers.ok()) return brokers.status();
  const auto partitions = Patiently(kPatience, [&] { return (*sees_all)->CountPartitions(judging.input); });
  if (!partitions.ok()) return partitions.status();
  std::vector<int32_t> all(static_cast<size_t>(*partitions));
  std::iota(all.begin(), all.end(), 0);
  const auto ends =
      Patiently(kPatience, [&] { return (*sees_all)->AskEnds(judging.input, all, kAskTimeout); });
  if (!ends.ok()) return ends.status();
  // While lethe runs it catches up in a moment; else its clock says how far it is.
  const absl::Time deadline = SteadyNow() + kPatience;
  for (;;) {
    const auto committed = (*brokers)->AskCommitted(judging.input, *partitions);
    if (!committed.ok()) return committed.status();
    std::vector<LogPlace> behind;
    for (const auto& [partition, end] : *ends) {
      const int64_t offset = std::max<int64_t>((*committed)[static_cast<size_t>(partition)].offset, 0);
      if (offset < end) behind.push_back({judging.input, partition, offset});
    }
    // Behind the last record there may be aborted ones, and markers.
    const auto times = Patiently(kPatience, [&] { return (*brokers)->AskTimes(behind); });
    if (!times.ok()) return times.status();
    bounds_.judged_until_ms = INT64_MAX;
    for (size_t i = 0; i < behind.size(); ++i) {
      if ((*times)[i] == absl::InfiniteFuture()) continue;
      const CommittedOffset& offset = (*committed)[static_cast<size_t>(behind[i].partition)];
      const absl::Time time = ReadCommitTimes(offset.metadata).committed - 2 * LeadOf(options_.stage.horizon);
      const int64_t until_ms = time == absl::InfinitePast() ? INT64_MIN : absl::ToUnixMillis(time);
      bounds_.judged_until_ms = std::min(bounds_.judged_until_ms, until_ms);
    }
    if (bounds_.judged_until_ms == INT64_MAX || SteadyNow() > deadline) return absl::OkStatus();
    if (!GoOn(0)) return absl::CancelledError("interrupted");
    absl::SleepFor(absl::Milliseconds(100));
  }
}

absl::StatusOr<Verification::Log> Verification::Open(const std::string& topic, bool is_settled,
                                                     int64_t offsets_before) {
  kafka::ReadOptions read = {.brokers = options_.process.brokers,
                             .topic = topic,
                             .properties = options_.process.properties,
                             .name = "verify"};
  const bool is_all = request_.since == absl::InfinitePast();
  if (!is_all) read.since = request_.since - rules_.window;
  auto reader = kafka::TopicReader::Open(read, [this] { return GoOn(0); });
  if (!reader.ok()) return reader.status();
  Log log = {.reader = *std::move(reader), .topic = topic, .ranges = {}, .judged_from = {}};
  if (is_settled) {
    absl::Status found = log.reader->FindSettledBounds([&] { return GoOn(0); });
    if (!found.ok()) return found;
  }
  std::vector<int32_t> all(static_cast<size_t>(log.reader->partitions()));
  std::iota(all.begin(), all.end(), 0);
  EndsByTopic since;
  if (!is_all) {
    auto asked = Patiently(kPatience, [&] {
      return kafka::AskOffsets(log.reader->client(), {{topic, all}}, request_.since, kAskTimeout);
    });
    if (!asked.ok()) return asked.status();
    since = *std::move(asked);
  }
  for (const int32_t partition : all) {
    OffsetRange range = log.reader->bounds(partition);
    const auto from = since[topic].find(partition);
    const int64_t judged_from = is_all ? range.begin : from == since[topic].end() ? range.end : from->second;
    log.judged_from.push_back(std::clamp(judged_from < 0 ? range.end : judged_from, range.begin, range.end));
    range.begin = std::max(log.reader->log_begin(partition), range.begin - offsets_before);
    log.ranges.push_back(range);
    total_ += range.end - range.begin;
  }
  return log;
}

absl::Status Verification::OpenOutputs() {
  auto output = Open(options_.output, /*is_settled=*/true);
  if (!output.ok()) return output.status();
  output_ = *std::move(output);
  const auto facts = kafka::DescribeTopic(output_.reader->client(), options_.output);
  if (facts.ok() && facts->may_be_described && !facts->config.empty()) {
    rules_.max_output_bytes = facts->max_message_bytes();
    rules_.ignores_time = facts->Value("message.timestamp.type") == "LogAppendTime";
    if (rules_.ignores_time) {
      result_.notes.push_back(
          absl::StrCat(options_.output, " has times of its own (LogAppendTime): times are not compared."));
    }
  }
  if (options_.divert.empty()) return absl::OkStatus();
  auto divert = Open(options_.divert, /*is_settled=*/true);
  if (!divert.ok()) return divert.status();
  divert_ = *std::move(divert);
  bool is_cut = false;
  for (int32_t i = 0; i < divert_.reader->partitions(); ++i) is_cut |= divert_.reader->IsCut(i);
  if (!is_cut) return absl::OkStatus();
  result_.notes.push_back(absl::StrCat("Retention has deleted records of ", options_.divert,
                                       ": diverted records were not looked for in it."));
  for (Fate* fate : {&rules_.copies, &rules_.without_id, &rules_.malformed}) {
    if (*fate == Fate::kDiverted) *fate = Fate::kDropped;
  }
  return absl::OkStatus();
}

absl::Status Verification::OpenInputs() {
  for (const std::string& input : options_.inputs()) {
    auto opened = Open(input, /*is_settled=*/false, kClockOffsets);
    if (!opened.ok()) return opened.status();
    const Log& log = inputs_.emplace_back(*std::move(opened));
    for (size_t i = 0; i < log.ranges.size(); ++i) {
      VerifiedInput& bounds = bounds_.inputs.emplace_back();
      bounds.topic = input;
      bounds.partition = static_cast<int32_t>(i);
      bounds.read_from = log.ranges[i].begin;
      bounds.judged_from = log.judged_from[i];
      const bool is_whole = request_.since != absl::InfinitePast() && !log.reader->IsCut(bounds.partition);
      if (is_whole) bounds.known_since_ms = absl::ToUnixMillis(request_.since - rules_.window);
      const auto committed = committed_.find(input);
      if (committed == committed_.end()) {
        bounds.committed = VerifiedInput::kNotKnown;
        continue;
      }
      // Partitions that came since then are not judged.
      const Committed& known = i < committed->second.size() ? committed->second[i] : Committed();
      bounds.committed = known.offset;
      bounds.origin = known.origin;
      bounds.undeliverable = known.undeliverable;
    }
  }
  return absl::OkStatus();
}

absl::Status Verification::Plan() {
  int64_t offsets = 0;
  for (const Log& log : inputs_) {
    for (const OffsetRange& range : log.ranges) offsets += range.end - range.begin;
  }
  for (const OffsetRange& range : output_.ranges) offsets += range.end - range.begin;
  const double bytes = static_cast<double>(offsets + 1) * static_cast<double>(Verifier::kBytesOfRecord);
  const double fits = static_cast<double>(request_.memory_bytes) / bytes;
  result_.share = request_.share.value_or(std::min(1.0, fits));
  result_.passes = std::max<int64_t>(1, std::llround(std::ceil(result_.share / fits - 1e-9)));
  total_ *= result_.passes;
  return absl::OkStatus();
}

absl::Status Verification::ReadLog(Log& log, const std::function<void(const SurveyRecord&)>& take) {
  absl::Status read = log.reader->Read(log.ranges, take, [&](int64_t done) { return GoOn(done); });
  for (const OffsetRange& range : log.ranges) done_ += range.end - range.begin;
  if (read.ok() && interrupted_) return absl::CancelledError("interrupted");
  // Meanwhile retention may have deleted something.
  return read.ok() ? log.reader->FindLogBegins([this] { return GoOn(0); }) : read;
}

absl::Status Verification::Read(int64_t pass) {
  const double width = result_.share / static_cast<double>(result_.passes);
  const auto bound = [](double share) {
    return share >= 1 ? UINT64_MAX : static_cast<uint64_t>(std::ldexp(share, 64));
  };
  const bool is_last = pass + 1 == result_.passes;
  const HashRange range = {bound(width * static_cast<double>(pass)) + (pass > 0 ? 1 : 0),
                           bound(is_last ? result_.share : width * static_cast<double>(pass + 1))};
  int64_t expected = 0;
  for (const Log& log : inputs_) {
    for (const OffsetRange& each : log.ranges) expected += each.end - each.begin;
  }
  expected = static_cast<int64_t>(static_cast<double>(expected) * std::min(width, 1.0) * 17 / 16) + 1024;
  Verifier verifier(rules_, bounds_.inputs, output_.reader->partitions(), request_.schemas, seed_, range,
                    expected);
  absl::Status read;
  int32_t first = 0;
  for (Log& log : inputs_) {
    if (read.ok()) {
      read = ReadLog(log, [&](const SurveyRecord& record) {
        verifier.AddInput(first + record.partition, record);
        result_.input_read += pass == 0 ? 1 : 0;
      });
    }
    first += log.reader->partitions();
  }
  if (read.ok()) {
    read = ReadLog(output_, [&](const SurveyRecord& record) {
      verifier.AddOutput(record);
      if (pass > 0) return;
      ++result_.output_read;
      committed_records_ +=
          record.offset >= output_.judged_from[static_cast<size_t>(record.partition)] ? 1 : 0;
    });
  }
  if (read.ok() && divert_.reader != nullptr) {
    read = ReadLog(divert_, [&](const SurveyRecord& record) { verifier.AddDiverted(record); });
  }
  if (!read.ok()) return read;
  NoteCuts();
  result_.report += verifier.Judge(bounds_);
  return absl::OkStatus();
}

void Verification::NoteCuts() {
  size_t number = 0;
  for (const Log& log : inputs_) {
    for (int32_t partition = 0; partition < log.reader->partitions(); ++partition) {
      bounds_.inputs[number++].known_from = log.reader->log_begin(partition);
      result_.is_input_cut |= log.reader->IsCut(partition);
    }
  }
  bounds_.outputs.clear();
  for (int32_t partition = 0; partition < output_.reader->partitions(); ++partition) {
    const auto at = static_cast<size_t>(partition);
    bounds_.outputs.push_back({.read_from = output_.ranges[at].begin,
                               .known_from = output_.reader->log_begin(partition),
                               .judged_from = output_.judged_from[at],
                               .is_cut = output_.reader->IsCut(partition)});
    result_.is_output_cut |= bounds_.outputs.back().is_cut;
  }
}

absl::Status Verification::CountAborted() {
  if (options_.process.delivery == Delivery::kAtLeastOnce || kafka::IsEmbedded(output_.reader->client())) {
    return absl::OkStatus();
  }
  auto reader = kafka::TopicReader::Open({.brokers = options_.process.brokers,
                                          .topic = options_.output,
                                          .properties = options_.process.properties,
                                          .name = "verify",
                                          .sees_aborted = true},
                                         [this] { return GoOn(0); });
  if (!reader.ok()) return reader.status();
  std::vector<OffsetRange> ranges = output_.ranges;
  for (size_t i = 0; i < ranges.size(); ++i) ranges[i].begin = output_.judged_from[i];
  int64_t records = 0;
  absl::Status read = (*reader)->Read(
      ranges, [&](const SurveyRecord&) { ++records; }, [&](int64_t) { return GoOn(0); });
  if (!read.ok()) return read;
  result_.aborted = records - committed_records_;
  return interrupted_ ? absl::CancelledError("interrupted") : absl::OkStatus();
}

}  // namespace

absl::StatusOr<VerifiedTopic> VerifyTopic(const DaemonOptions& options, const VerifyRequest& request) {
  return Verification(options, request).Run();
}

}  // namespace lethe
