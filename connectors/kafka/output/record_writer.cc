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

constexpr absl::string_view kUndeliverable = "undeliverable";
constexpr absl::string_view kUncountable = "uncountable";
constexpr absl::string_view kSameId = "a record before it has the same id";
constexpr absl::string_view kUnconfirmed =
    "the filter takes it for a duplicate, and the second opinion does not confirm it";

// How records of one kind are called, and where they are counted.
struct Kind {
  absl::string_view name;
  int64_t RecordCounts::*count;
};

Kind KindOf(const JudgedRecord& record) {
  switch (record.id_state) {
    case RecordFields::State::kMissing:
      return {"missing_id", &RecordCounts::missing_id};
    case RecordFields::State::kMalformed:
      return {"malformed", &RecordCounts::malformed};
    case RecordFields::State::kPresent:
      break;
  }
  switch (record.verdict) {
    case Verdict::kDuplicate:
      return {"duplicate", &RecordCounts::duplicate};
    case Verdict::kSuspect:
      return {"suspect", &RecordCounts::suspect};
    case Verdict::kUnique:
      break;
  }
  return {"unique", &RecordCounts::unique};
}

// Why it is no event that is known to be unique.
absl::string_view ReasonOf(const JudgedRecord& record) {
  if (record.id_state != RecordFields::State::kPresent) return record.reason;
  return record.verdict == Verdict::kSuspect ? kUnconfirmed : kSameId;
}

}  // namespace

Action RecordWriter::ActionFor(const JudgedRecord& record) const {
  if (record.id_state != RecordFields::State::kPresent) return ActionWithoutId(record.id_state);
  switch (record.verdict) {
    case Verdict::kDuplicate:
      return policies_.on_duplicate;
    case Verdict::kSuspect:
      return policies_.on_suspect;
    case Verdict::kUnique:
      break;
  }
  return Action::kPass;
}

Action RecordWriter::ActionWithoutId(RecordFields::State id_state) const {
  return id_state == RecordFields::State::kMalformed ? policies_.on_malformed : policies_.on_missing_id;
}

std::optional<std::string> RecordWriter::WhyStop(const OwnedPartition& owned,
                                                 const rd_kafka_message_t& message,
                                                 const RecordFields& fields) const {
  constexpr absl::string_view kStopped = " is fail: the partition is committed up to there, and stands still";
  const auto known = owned.undeliverable.find(message.offset);
  if (known != owned.undeliverable.end()) {
    if (policies_.on_undeliverable != Action::kFail) return std::nullopt;
    return absl::StrCat(
        Name(owned, message), ": topic ", known->second.divert_refused ? options_.divert : options_.output,
        " does not take the record: ", known->second.why, "; on_undeliverable", kStopped,
        "; let the topic take it (max.message.bytes, say) and start again, or set on_undeliverable to drop "
        "or divert and reload the configuration (SIGHUP)");
  }
  if (options_.routes || fields.id_state == RecordFields::State::kPresent) return std::nullopt;
  if (ActionWithoutId(fields.id_state) != Action::kFail) return std::nullopt;
  const absl::string_view policy =
      fields.id_state == RecordFields::State::kMalformed ? "on_malformed" : "on_missing_id";
  return absl::StrCat(Name(owned, message), ": ", fields.reason, "; ", policy, kStopped, "; set ", policy,
                      " to pass, drop or divert, then reload the configuration (SIGHUP) or start again");
}

bool RecordWriter::IsWritten(const JudgedRecord& record) const {
  const Action action = ActionFor(record);
  return options_.routes || action == Action::kPass || action == Action::kTag;
}

absl::Status RecordWriter::CarryOut(OwnedPartition& owned, const JudgedRecord& record) {
  RecordCounts& counts = owned.open_counts;
  if (!owned.undeliverable.empty()) {
    const auto known = owned.undeliverable.find(record.message->offset);
    if (known != owned.undeliverable.end()) return CarryOutUndeliverable(owned, record, known->second);
  }
  if (options_.routes) return Send(owned, record);
  const Kind kind = KindOf(record);
  const Action action = ActionFor(record);
  ++(counts.*kind.count);
  switch (action) {
    case Action::kPass:
      ++counts.passed;
      if (absl::Status passed = Pass(owned, record); !passed.ok()) return passed;
      return Count(owned, record);
    case Action::kTag:
      ++counts.tagged;
      if (absl::Status passed = Pass(owned, record, kind.name); !passed.ok()) return passed;
      // A suspect that goes out is an event; a duplicate is none, whatever is done with it.
      return record.verdict == Verdict::kSuspect ? Count(owned, record) : absl::OkStatus();
    case Action::kDivert:
      ++counts.diverted;
      return Divert(owned, record, kind.name, ReasonOf(record));
    case Action::kDrop:
    case Action::kFail:  // the partition stopped in front of it
      break;
  }
  ++counts.dropped;
  return absl::OkStatus();
}

absl::Status RecordWriter::CarryOutUndeliverable(OwnedPartition& owned, const JudgedRecord& record,
                                                 const Undeliverable& known) {
  ++owned.open_counts.undeliverable;
  const bool divert = policies_.on_undeliverable == Action::kDivert && !known.divert_refused;
  // Of many in a row each would be told again after each abort that the next one costs.
  if (const auto like_it = undeliverable_.Next()) {
    spdlog::error("{}: undeliverable, {} does not take it: {}; {}{}", Name(owned, *record.message),
                  known.divert_refused ? options_.divert : options_.output, known.why,
                  divert ? "diverted" : "dropped", *like_it);
  }
  ++(divert ? owned.open_counts.diverted : owned.open_counts.dropped);
  return divert ? Divert(owned, record, kUndeliverable, known.why) : absl::OkStatus();
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

absl::Status RecordWriter::Send(OwnedPartition& owned, const JudgedRecord& record) {
  const rd_kafka_message_t& message = *record.message;
  ++owned.open_counts.unique;
  ++owned.open_counts.passed;
  HeadersPtr headers = OriginalOf(owned, message).headers;
  AddRoutedFrom(headers, {owned.id, message.offset});
  return Produce(message, output_.output_topic(), record.route, std::move(headers),
                 {owned.id, message.offset});
}

absl::Status RecordWriter::Pass(const OwnedPartition& owned, const JudgedRecord& record,
                                absl::string_view tag) {
  const rd_kafka_message_t& message = *record.message;
  Original original = OriginalOf(owned, message);
  if (!tag.empty()) AddHeader(original.headers, "lethe.verdict", tag);
  return Produce(message, output_.output_topic(), original.place.partition, std::move(original.headers),
                 {owned.id, message.offset});
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
  const bool divert = policies_.on_uncountable == Action::kDivert && !owned.uncopied.contains(offset);
  const std::string reason = absl::StrCat("counter ", options_.counters[counter].name, ": ", why);
  if (const auto like_it = uncounted_.Next()) {
    spdlog::warn("{}: written, and not counted: {}{}{}", Name(owned, *record.message), reason,
                 divert ? "; a copy is diverted" : "", *like_it);
  }
  return divert ? Divert(owned, record, kUncountable, reason, /*copied=*/true) : absl::OkStatus();
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
