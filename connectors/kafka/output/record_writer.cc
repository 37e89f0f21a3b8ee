#include "connectors/kafka/output/record_writer.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "connectors/kafka/client/message_view.h"
#include "lethe/counters.h"

namespace lethe::kafka {
namespace {

// What a batch of one record has beside its key and value, generously.
constexpr int64_t kRecordOverhead = 1024;

}  // namespace

Disposition RecordWriter::DispositionOf(const JudgedRecord& record, const Undeliverable* known) const {
  return Dispose({.id_state = record.id_state,
                  .verdict = record.verdict,
                  .is_routed = options_.routes,
                  .is_undeliverable = known != nullptr,
                  .is_divert_refused = known != nullptr && known->divert_refused},
                 policies_);
}

std::optional<std::string> RecordWriter::WhyStop(const OwnedPartition& owned,
                                                 const rd_kafka_message_t& message,
                                                 const RecordFields& fields) const {
  constexpr absl::string_view kStopped = " is fail: the partition is committed up to there, and stands still";
  const Undeliverable* known = owned.UndeliverableAt(message.offset);
  const Disposition disposition = DispositionOf({.message = &message, .id_state = fields.id_state}, known);
  if (disposition.action != Action::kFail) return std::nullopt;
  const absl::string_view policy = disposition.policy;
  if (known == nullptr) {
    return absl::StrCat(Name(owned, message), ": ", fields.reason, "; ", policy, kStopped, "; set ", policy,
                        " to pass, drop or divert, then reload the configuration (SIGHUP) or start again");
  }
  return absl::StrCat(
      Name(owned, message), ": topic ", known->divert_refused ? options_.divert : options_.output,
      " does not take the record: ", known->why, "; ", policy, kStopped,
      "; let the topic take it (max.message.bytes, say) and start again, or set on_undeliverable to drop "
      "or divert and reload the configuration (SIGHUP)");
}

absl::Status RecordWriter::CarryOut(OwnedPartition& owned, const JudgedRecord& record) {
  const Undeliverable* known = owned.UndeliverableAt(record.message->offset);
  const Disposition disposition = DispositionOf(record, known);
  ++(owned.open_counts.*disposition.kind_count);
  if (disposition.action == Action::kFail) return absl::InternalError("the partition stops in front of it");
  ++(owned.open_counts.*disposition.action_count);
  if (known != nullptr) SayUndeliverable(owned, record, *known, disposition.action);
  if (disposition.action == Action::kDivert) {
    const absl::string_view reason = disposition.reason.empty() ? record.reason : disposition.reason;
    return Divert(owned, record, disposition.kind, known != nullptr ? known->why : reason);
  }
  if (!disposition.is_written()) return absl::OkStatus();
  const absl::string_view tag = disposition.action == Action::kTag ? disposition.kind : "";
  if (absl::Status passed = Pass(owned, record, tag); !passed.ok()) return passed;
  return disposition.is_event ? Count(owned, record) : absl::OkStatus();
}

void RecordWriter::SayUndeliverable(const OwnedPartition& owned, const JudgedRecord& record,
                                    const Undeliverable& known, Action action) {
  // Of many in a row each would be told again after each abort that the next one costs.
  if (const auto like_it = undeliverable_.Next()) {
    spdlog::error("{}: undeliverable, {} does not take it: {}; {}{}", Name(owned, *record.message),
                  known.divert_refused ? options_.divert : options_.output, known.why,
                  action == Action::kDivert ? "diverted" : "dropped", *like_it);
  }
}

RecordWriter::Original RecordWriter::OriginalOf(const OwnedPartition& owned,
                                                const rd_kafka_message_t& message) const {
  const rd_kafka_headers_t* headers = MessageView(message).headers();
  if (!options_.routed_from.empty()) {
    if (const auto from = ReadRoutedFrom(headers)) {
      return {options_.routed_from, *from, WithoutRoutedFrom(headers)};
    }
  }
  return {options_.input,
          {owned.id, message.offset},
          HeadersPtr(headers == nullptr ? nullptr : rd_kafka_headers_copy(headers))};
}

absl::Status RecordWriter::Produce(const rd_kafka_message_t& message, rd_kafka_topic_t* topic,
                                   int32_t partition, HeadersPtr headers, RecordPlace as) {
  return output_.Produce({topic, partition, message.key, message.key_len, message.payload, message.len,
                          std::max<int64_t>(MessageView(message).timestamp_ms(), 0), std::move(headers), as});
}

absl::Status RecordWriter::Pass(const OwnedPartition& owned, const JudgedRecord& record,
                                absl::string_view tag) {
  const rd_kafka_message_t& message = *record.message;
  Original original = OriginalOf(owned, message);
  if (options_.routes) AddRoutedFrom(original.headers, {owned.id, message.offset});
  if (!tag.empty()) AddHeader(original.headers, "lethe.verdict", tag);
  return Produce(message, output_.output_topic(), options_.routes ? record.route : original.place.partition,
                 std::move(original.headers), {owned.id, message.offset});
}

absl::Status RecordWriter::Divert(const OwnedPartition& owned, const JudgedRecord& record,
                                  absl::string_view verdict, absl::string_view reason, bool copied) {
  const rd_kafka_message_t& message = *record.message;
  Original original = OriginalOf(owned, message);
  HeadersPtr& headers = original.headers;
  AddHeader(headers, "lethe.verdict", verdict);
  AddHeader(headers, "lethe.reason", reason);
  AddHeader(headers, "lethe.topic", original.topic);
  AddHeader(headers, "lethe.partition", absl::StrCat(original.place.partition));
  AddHeader(headers, "lethe.offset", absl::StrCat(original.place.offset));
  return Produce(message, output_.divert_topic(), original.place.partition, std::move(headers),
                 {owned.id, message.offset, /*diverted=*/true, copied});
}

absl::Status RecordWriter::Count(OwnedPartition& owned, const JudgedRecord& record) {
  for (const CounterChange& change : record.changes) {
    if (!change.countable) {
      ++owned.open_counts.malformed_delta;
      if (auto left = LeaveUncounted(owned, record, change.counter, change.text); !left.ok()) return left;
      continue;
    }
    // A key that the counter's topic would refuse can be no counter's.
    const int64_t most = topics_.counter_max_bytes[change.counter] - kRecordOverhead;
    if (const auto size = static_cast<int64_t>(change.text.size()); size > most) {
      ++owned.open_counts.malformed_delta;
      const std::string why = absl::StrCat("its key has ", size, " bytes, and topic ",
                                           options_.counters[change.counter].output, " takes ", most);
      if (auto left = LeaveUncounted(owned, record, change.counter, why); !left.ok()) return left;
      continue;
    }
    CounterSums& sums = owned.sums[change.counter];
    if (sums.Add(change.text, change.delta)) {
      ++owned.open_counts.counter_updates;
    } else if (options_.counters[change.counter].mode == CounterMode::kDelta) {
      // The sum would leave 64 bits: what there is goes out now, as a record of its own.
      if (auto produced = ProduceSums(owned, change.counter); !produced.ok()) return produced;
      sums.Clear();
      sums.Add(change.text, change.delta);
      ++owned.open_counts.counter_updates;
    } else {
      ++owned.open_counts.overflowed_delta;
      const std::string why = absl::StrCat("with ", change.delta, " more, its key's total leaves 64 bits");
      if (auto left = LeaveUncounted(owned, record, change.counter, why); !left.ok()) return left;
    }
  }
  return absl::OkStatus();
}

absl::Status RecordWriter::LeaveUncounted(OwnedPartition& owned, const JudgedRecord& record, size_t counter,
                                          absl::string_view why) {
  const int64_t offset = record.message->offset;
  const bool divert = DisposeUncountable(owned.uncopied.contains(offset), policies_) == Action::kDivert;
  const std::string reason = absl::StrCat("counter ", options_.counters[counter].name, ": ", why);
  if (const auto like_it = uncounted_.Next()) {
    spdlog::warn("{}: written, and not counted: {}{}{}", Name(owned, *record.message), reason,
                 divert ? "; a copy is diverted" : "", *like_it);
  }
  return divert ? Divert(owned, record, "uncountable", reason, /*copied=*/true) : absl::OkStatus();
}

absl::Status RecordWriter::ProduceSums(OwnedPartition& owned) {
  for (size_t counter = 0; counter < owned.sums.size(); ++counter) {
    if (absl::Status produced = ProduceSums(owned, counter); !produced.ok()) return produced;
  }
  return absl::OkStatus();
}

absl::Status RecordWriter::ProduceSums(OwnedPartition& owned, size_t counter) {
  const CounterOptions& options = options_.counters[counter];
  rd_kafka_topic_t* const topic = output_.counter_topic(counter);
  for (const auto& [key, sum] : owned.sums[counter].changed()) {
    absl::Status produced;
    if (options.mode == CounterMode::kTotal) {
      const CounterTotal total = {options.name, options_.origin(), owned.id, key, sum, owned.next};
      const std::string text = total.RecordValue();
      const std::string place = total.RecordKey();
      produced = output_.Produce({topic, owned.id, place.data(), place.size(), text.data(), text.size()});
    } else {
      const std::string text = absl::StrCat(sum);
      HeadersPtr headers;
      AddHeader(headers, "lethe.counter", options.name);
      AddHeader(headers, "lethe.topic", options_.origin());
      AddHeader(headers, "lethe.partition", absl::StrCat(owned.id));
      produced = output_.Produce({topic, RD_KAFKA_PARTITION_UA, key.data(), key.size(), text.data(),
                                  text.size(), 0, std::move(headers)});
    }
    if (!produced.ok()) return produced;
  }
  return absl::OkStatus();
}

std::string RecordWriter::Name(const OwnedPartition& owned, const rd_kafka_message_t& message) const {
  const std::string here = absl::StrCat(options_.input, "-", owned.id, " offset ", message.offset);
  const Original original = OriginalOf(owned, message);
  if (original.topic == options_.input) return here;
  return absl::StrCat(original.topic, "-", original.place.partition, " offset ", original.place.offset, " (",
                      here, ")");
}

}  // namespace lethe::kafka
