#include "src/cli/reconcile/reconcile_messages.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "src/reconcile/message.h"

namespace lethe {
namespace {

// Arithmetic on times within these bounds cannot overflow: the years up to 9999.
constexpr int64_t kLastMs = 253'402'300'799'999;
// More than any topic has; sums of such figures fit in 64 bits.
constexpr int64_t kMostCount = int64_t{1} << 48;
constexpr int64_t kMostPartitions = 1'000'000;
constexpr size_t kLongestCluster = 255;
constexpr size_t kLongestTopic = 249;  // Kafka's own limit

bool IsCount(int64_t number) { return number >= 0 && number <= kMostCount; }
bool IsTime(int64_t ms) { return ms >= 0 && ms <= kLastMs; }

// What `total` is made of.
bool AddUpTo(const std::vector<int64_t>& counts, int64_t total) {
  int64_t left = total;
  for (const int64_t count : counts) {
    if (count < 0 || count > left) return false;
    left -= count;
  }
  return left == 0;
}

bool IsTopicName(absl::string_view name) {
  return !name.empty() && name.size() <= kLongestTopic && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
  });
}

MessageWriter& Put(MessageWriter& to, int64_t number) { return to.Word(static_cast<uint64_t>(number)); }
int64_t Number(MessageReader& from) { return static_cast<int64_t>(from.Word()); }

MessageWriter& Put(MessageWriter& to, const std::vector<int64_t>& numbers) {
  to.Word(numbers.size());
  for (const int64_t number : numbers) Put(to, number);
  return to;
}

// Grows with the received bytes, whatever length is announced.
std::vector<int64_t> Numbers(MessageReader& from) {
  std::vector<int64_t> numbers;
  for (uint64_t left = from.Word(); left > 0 && from.ok(); --left) numbers.push_back(Number(from));
  return numbers;
}

// Of bytes that may be null.
MessageWriter& Put(MessageWriter& to, const std::optional<absl::string_view>& bytes) {
  return bytes ? to.Word(1).Text(*bytes) : to.Word(0);
}

std::optional<absl::string_view> MaybeText(MessageReader& from) {
  if (from.Word() == 0) return std::nullopt;
  return from.Text();
}

void Put(MessageWriter& to, const ReconcileFacts& facts) {
  to.Text(facts.cluster).Text(facts.topic);
  for (const int64_t number : {facts.partitions, facts.passes}) Put(to, number);
}

bool Get(MessageReader& from, ReconcileFacts& to) {
  to.cluster = std::string(from.Text());
  to.topic = std::string(from.Text());
  for (int64_t* number : {&to.partitions, &to.passes}) *number = Number(from);
  return from.ok() && to.cluster.size() <= kLongestCluster && IsTopicName(to.topic) && to.partitions > 0 &&
         to.partitions <= kMostPartitions && to.passes > 0 && to.passes <= ReconcileFacts::kMostPasses;
}

template <class Report>
auto Figures(Report& report) {
  return std::array{&report.records, &report.ids,    &report.without_id, &report.without_time,
                    &report.emptied, &report.only,   &report.unsettled,  &report.first_ms,
                    &report.last_ms, &report.copied, &report.gone};
}

}  // namespace

std::string Encode(const ReconcileAsk& ask) {
  MessageWriter bytes;
  for (const int64_t number : {ask.begin_ms, ask.end_ms, ask.settle_ms, int64_t{ask.to_peer},
                               int64_t{ask.from_peer}, static_cast<int64_t>(ask.method)}) {
    Put(bytes, number);
  }
  return bytes.Take();
}

bool Decode(absl::string_view bytes, ReconcileAsk& to) {
  MessageReader from(bytes);
  for (int64_t* number : {&to.begin_ms, &to.end_ms, &to.settle_ms}) *number = Number(from);
  to.to_peer = from.Word() != 0;
  to.from_peer = from.Word() != 0;
  const uint64_t method = from.Word();
  to.method = static_cast<ReconcileMethod>(method % 3);
  return from.Ended() && method < 3 && to.settle_ms >= 0 && to.settle_ms <= kLastMs && to.begin_ms >= 0 &&
         to.begin_ms < to.end_ms && to.end_ms <= kLastMs;
}

std::string Encode(const ReconcileFacts& facts) {
  MessageWriter bytes;
  Put(bytes, facts);
  return bytes.Take();
}

bool Decode(absl::string_view bytes, ReconcileFacts& to) {
  MessageReader from(bytes);
  return Get(from, to) && from.Ended();
}

std::string Encode(const SideReport& report) {
  MessageWriter bytes;
  Put(bytes, report.facts);
  for (const int64_t* number : Figures(report)) Put(bytes, *number);
  Put(bytes, report.by_partition);
  Put(bytes, report.by_time);
  bytes.Word(report.samples.size());
  for (const SideReport::Sample& sample : report.samples) {
    bytes.Text(sample.id);
    for (const int64_t number : {int64_t{sample.partition}, sample.offset, sample.time_ms})
      Put(bytes, number);
  }
  return bytes.Take();
}

bool Decode(absl::string_view bytes, SideReport& to) {
  MessageReader from(bytes);
  if (!Get(from, to.facts)) return false;
  for (int64_t* number : Figures(to)) {
    *number = Number(from);
    if (!IsCount(*number)) return false;
  }
  to.by_partition = Numbers(from);
  to.by_time = Numbers(from);
  to.samples.clear();
  for (uint64_t left = from.Word(); left > 0 && from.ok(); --left) {
    SideReport::Sample sample;
    sample.id = std::string(from.Text());
    sample.partition = static_cast<int32_t>(from.Word());
    sample.offset = Number(from);
    sample.time_ms = Number(from);
    const bool is_possible = sample.id.size() <= SideReport::kSampleBytes && sample.partition >= 0 &&
                             sample.partition < to.facts.partitions && sample.offset >= 0 &&
                             IsTime(sample.time_ms) && to.samples.size() < SideReport::kSamples;
    if (!is_possible) return false;
    to.samples.push_back(std::move(sample));
  }
  return from.Ended() && to.by_time.size() == SideReport::kBuckets && AddUpTo(to.by_time, to.only) &&
         static_cast<int64_t>(to.by_partition.size()) == to.facts.partitions &&
         AddUpTo(to.by_partition, to.only) && to.copied + to.gone <= to.only && IsTime(to.first_ms) &&
         IsTime(to.last_ms);
}

std::string Encode(const std::vector<int64_t>& numbers) {
  MessageWriter bytes;
  for (const int64_t number : numbers) Put(bytes, number);
  return bytes.Take();
}

bool Decode(absl::string_view bytes, std::vector<int64_t>& to) {
  MessageReader from(bytes);
  for (int64_t& number : to) number = Number(from);
  return from.Ended();
}

void AppendRecord(const SurveyRecord& record, std::string& bytes) {
  MessageWriter to;
  for (const int64_t number : {int64_t{record.partition}, record.offset, record.time_ms}) Put(to, number);
  Put(to, record.record.key);
  Put(to, record.record.value);
  to.Word(record.headers.size());
  for (const auto& [name, value] : record.headers) Put(to.Text(name), value);
  bytes += to.Take();
}

bool ReadRecords(absl::string_view bytes, const std::function<bool(const SurveyRecord&)>& take) {
  std::vector<std::pair<absl::string_view, std::optional<absl::string_view>>> headers;
  MessageReader from(bytes);
  while (!from.Ended()) {
    SurveyRecord record;
    record.partition = static_cast<int32_t>(from.Word());
    record.offset = Number(from);
    record.time_ms = Number(from);
    record.record.key = MaybeText(from);
    record.record.value = MaybeText(from);
    headers.clear();
    for (uint64_t left = from.Word(); left > 0 && from.ok(); --left) {
      const absl::string_view name = from.Text();
      headers.emplace_back(name, MaybeText(from));
    }
    record.headers = headers;
    if (!from.ok() || record.partition < 0 || record.offset < 0 || record.time_ms < 0) return false;
    if (!take(record)) return false;
  }
  return true;
}

}  // namespace lethe
