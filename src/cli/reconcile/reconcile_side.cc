#include "src/cli/reconcile/reconcile_side.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "src/cli/reconcile/copy_intake.h"

namespace lethe {
namespace {

// Memory for an id: its entry, its key in the comparison, and its share of the result; if all ids may differ,
// also its cells in the lookup tables of both sides.
constexpr int64_t kBytesOfId = 80;
constexpr int64_t kBytesOfIdInTables = kBytesOfId + 88;
// So that a filter, or a table where all ids differ, is smaller than the largest message.
constexpr int64_t kMostIds = 30'000'000;
constexpr int64_t kMostIdsInTables = 1'400'000;
constexpr size_t kBatchBytes = size_t{256} << 10;

std::string TimeText(int64_t ms) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", absl::FromUnixMillis(ms), absl::UTCTimeZone());
}

// An id for people: without the lengths and types that make its bytes unambiguous (record_reader.h).
std::string IdText(const IdSpec& spec, absl::string_view id) {
  std::string text;
  size_t number = 0;
  if (spec.places() > 1) {
    number = static_cast<unsigned char>(id[0]);
    id.remove_prefix(1);
  }
  const absl::Span<const Field> fields = spec.place(number);
  for (const Field& field : fields) {
    uint64_t size = id.size();
    if (fields.size() > 1) {
      std::memcpy(&size, id.data(), sizeof size);
      id.remove_prefix(sizeof size);
    }
    absl::string_view part = id.substr(0, static_cast<size_t>(size));
    id.remove_prefix(part.size());
    if (field.is_pointer() && !part.empty()) part.remove_prefix(1);
    absl::StrAppend(&text, text.empty() ? "" : "+", part.substr(0, SideReport::kSampleBytes));
  }
  return text.substr(0, SideReport::kSampleBytes);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ReconcileSide>> ReconcileSide::Open(const ReconcileCommandOptions& options,
                                                                   const ReconcileAsk& ask, bool is_copied_to,
                                                                   ReconcileTalk& talk) {
  std::unique_ptr<ReconcileSide> side(new ReconcileSide(options, ask, talk));
  const auto go_on = [&] { return talk.Alive(); };
  auto log = kafka::TopicReader::Open({.brokers = options.brokers,
                                       .topic = options.topic,
                                       .properties = options.properties.values,
                                       .since = absl::FromUnixMillis(ask.wide_begin_ms()),
                                       .name = "reconcile"},
                                      go_on);
  if (!log.ok()) return log.status();
  side->log_ = *std::move(log);
  if (is_copied_to) {
    auto writer = kafka::TopicWriter::Open({options.brokers, options.topic, options.properties.values},
                                           side->log_->client(), go_on);
    if (!writer.ok()) return writer.status();
    side->writer_ = *std::move(writer);
  }
  if (absl::Status found = side->log_->FindSettledBounds(go_on); !found.ok()) return found;
  ReconcileFacts& facts = side->report_.facts;
  facts.cluster = side->log_->ClusterId();
  facts.topic = options.topic;
  facts.partitions = side->log_->partitions();
  const bool by_tables = ask.method == ReconcileMethod::kLookupTable;
  const int64_t ids_in_memory = options.memory_bytes / (by_tables ? kBytesOfIdInTables : kBytesOfId);
  const int64_t ids = std::min(ids_in_memory, by_tables ? kMostIdsInTables : kMostIds);
  facts.passes = side->log_->to_read() / ids + 1;
  if (facts.passes > ReconcileFacts::kMostPasses) {
    return absl::ResourceExhaustedError(absl::StrCat(
        options.topic, " at ", options.brokers, " has ", side->log_->to_read(),
        " offsets in the window, which takes ", facts.passes, " passes, and the limit is ",
        ReconcileFacts::kMostPasses, ": raise --memory on that side, or compare a shorter window"));
  }
  side->report_.by_partition.resize(static_cast<size_t>(facts.partitions));
  side->report_.by_time.resize(SideReport::kBuckets);
  for (int32_t partition = 0; partition < side->log_->partitions(); ++partition) {
    const OffsetRange& bounds = side->log_->bounds(partition);
    side->report_.emptied += side->log_->IsCut(partition) && bounds.begin == bounds.end;
  }
  return side;
}

absl::Status ReconcileSide::Read(int64_t pass, int64_t passes) {
  pass_ = pass;
  passes_ = passes;
  const bool is_first = pass == 0;
  const auto modulus = static_cast<uint64_t>(passes);
  std::vector<std::optional<FirstRecord>> firsts(static_cast<size_t>(log_->partitions()));
  entries_.clear();
  // Hashes fall unequally by far less than a sixteenth.
  entries_.reserve(static_cast<size_t>(log_->to_read() / passes * 17 / 16) + 1024);
  const auto take = [&](const SurveyRecord& record) {
    std::optional<FirstRecord>& first = firsts[static_cast<size_t>(record.partition)];
    if (!first) first = {record.offset, record.time_ms};
    // Producing a record of 1970 gives it the present time, so it could not be copied.
    if (is_first && record.time_ms <= 0) ++report_.without_time;
    if (record.time_ms <= 0 || record.time_ms < window_.wide_begin_ms() ||
        record.time_ms >= window_.wide_end_ms()) {
      return;
    }
    const RecordFields& fields = reader_.Read(record.record);
    if (fields.id_state != RecordFields::State::kPresent) {
      report_.without_id += is_first;
      return;
    }
    const uint64_t key = talk_.peers().Key(fields.id);
    if (key % modulus != static_cast<uint64_t>(pass)) return;
    entries_.push_back({key, record.time_ms, record.offset, record.partition});
  };
  const int64_t before = pass * log_->to_read();
  absl::Status read =
      log_->Read(take, [&](int64_t done) { return talk_.Alive(before + done, passes * log_->to_read()); });
  if (read.ok()) read = talk_.status();
  if (read.ok()) read = SchemasStatus();
  // After reading: retention may have deleted something meanwhile.
  if (read.ok()) read = log_->FindLogBegins([&] { return talk_.Alive(); });
  for (int32_t partition = 0; read.ok() && partition < log_->partitions(); ++partition) {
    if (!log_->IsCut(partition)) continue;
    const absl::StatusOr<int64_t> since = WholeSince(partition, firsts[static_cast<size_t>(partition)]);
    if (!since.ok()) return since.status();
    whole_since_ms_ = std::max(whole_since_ms_, *since);
  }
  return read;
}

// Records that were read below the log's beginning do not count: others between them may have been deleted
// before they were read.
absl::StatusOr<int64_t> ReconcileSide::WholeSince(int32_t partition,
                                                  const std::optional<FirstRecord>& first) {
  const int64_t log_begin = log_->log_begin(partition);
  const OffsetRange& bounds = log_->bounds(partition);
  if (first && first->offset >= log_begin) return first->time_ms;
  if (!first && log_begin == bounds.begin) return whole_since_ms_;  // it had no records to lose
  std::vector<OffsetRange> ranges(static_cast<size_t>(log_->partitions()));
  ranges[static_cast<size_t>(partition)] = {log_begin, bounds.end};
  std::optional<int64_t> left_ms;
  const auto take = [&](const SurveyRecord& record) {
    if (!left_ms) left_ms = record.time_ms;
  };
  absl::Status read = log_->Read(ranges, take, [&](int64_t) { return !left_ms && talk_.Alive(); });
  if (read.ok()) read = talk_.status();
  if (!read.ok()) return read;
  return left_ms.value_or(window_.wide_end_ms());
}

absl::Status ReconcileSide::Narrow(int64_t whole_since_ms) {
  if (whole_since_ms <= window_.wide_begin_ms()) return absl::OkStatus();
  // Within these bounds, as those of every window, arithmetic cannot overflow.
  const int64_t begin = std::min(whole_since_ms, window_.wide_end_ms()) + window_.settle_ms;
  if (begin >= window_.end_ms) {
    return absl::FailedPreconditionError(absl::StrCat(
        "neither side has records in the window any longer: ", options_.topic, " at ", options_.brokers,
        " has lost no record since ", TimeText(whole_since_ms_), ", and both sides since ",
        TimeText(whole_since_ms), "; raise the retention, or ask for a later window"));
  }
  window_.begin_ms = begin;
  std::erase_if(entries_, [&](const Entry& entry) { return entry.time_ms < window_.wide_begin_ms(); });
  return absl::OkStatus();
}

std::vector<uint64_t> ReconcileSide::Keys() {
  report_.records += static_cast<int64_t>(entries_.size());
  std::sort(entries_.begin(), entries_.end(), [](const Entry& x, const Entry& y) {
    return std::tie(x.key, x.time_ms, x.partition, x.offset) <
           std::tie(y.key, y.time_ms, y.partition, y.offset);
  });
  const auto same = [](const Entry& x, const Entry& y) { return x.key == y.key; };
  entries_.erase(std::unique(entries_.begin(), entries_.end(), same), entries_.end());
  report_.ids += static_cast<int64_t>(entries_.size());
  std::vector<uint64_t> keys;
  keys.reserve(entries_.size());
  for (const Entry& entry : entries_) keys.push_back(entry.key);
  return keys;
}

void ReconcileSide::Take(const Difference& difference) {
  missing_.clear();
  auto entry = entries_.begin();
  for (const uint64_t key : difference.only_here) {
    while (entry->key != key) ++entry;
    if (entry->time_ms < window_.begin_ms || entry->time_ms >= window_.end_ms) {
      ++report_.unsettled;
      continue;
    }
    report_.first_ms = report_.only == 0 ? entry->time_ms : std::min(report_.first_ms, entry->time_ms);
    report_.last_ms = std::max(report_.last_ms, entry->time_ms);
    ++report_.only;
    ++report_.by_partition[static_cast<size_t>(entry->partition)];
    const int64_t bucket = (entry->time_ms - window_.begin_ms) * static_cast<int64_t>(SideReport::kBuckets) /
                           (window_.end_ms - window_.begin_ms);
    ++report_.by_time[static_cast<size_t>(bucket)];
    TakeSample(*entry);
    missing_.push_back({entry->partition, entry->offset});
  }
}

void ReconcileSide::TakeSample(const Entry& entry) {
  std::vector<SideReport::Sample>& samples = report_.samples;
  const SideReport::Sample sample = {"", entry.partition, entry.offset, entry.time_ms};
  const auto earlier = [](const SideReport::Sample& x, const SideReport::Sample& y) {
    return std::tie(x.time_ms, x.partition, x.offset) < std::tie(y.time_ms, y.partition, y.offset);
  };
  samples.insert(std::upper_bound(samples.begin(), samples.end(), sample, earlier), sample);
  if (samples.size() > SideReport::kSamples) samples.pop_back();
}

absl::Status ReconcileSide::SendMissing() {
  std::sort(missing_.begin(), missing_.end());
  std::vector<OffsetRange> ranges(static_cast<size_t>(log_->partitions()));
  for (const Place& place : missing_) {
    OffsetRange& range = ranges[static_cast<size_t>(place.partition)];
    if (range.begin == range.end) range.begin = place.offset;
    range.end = place.offset + 1;
  }
  int64_t sent = 0;
  std::string batch;
  absl::Status status;
  const auto send_batch = [&] {
    if (status.ok() && !batch.empty()) status = talk_.Send(ReconcileWord::kRecords, batch);
    batch.clear();
  };
  const auto take = [&](const SurveyRecord& record) {
    const Place place = {record.partition, record.offset};
    if (!status.ok() || !std::binary_search(missing_.begin(), missing_.end(), place)) return;
    AppendRecord(record, batch);
    ++sent;
    if (batch.size() >= kBatchBytes) send_batch();
  };
  const auto go_on = [&](int64_t) {
    return status.ok() && talk_.Alive(sent, static_cast<int64_t>(missing_.size()));
  };
  if (absl::Status read = log_->Read(ranges, take, go_on); !read.ok()) return read;
  if (!talk_.status().ok()) return talk_.status();
  send_batch();
  if (status.ok()) status = talk_.Send(ReconcileWord::kEnd, Encode(std::vector<int64_t>{sent}));
  std::vector<int64_t> committed(1);
  if (status.ok()) status = talk_.Receive(ReconcileWord::kCopied, committed);
  if (!status.ok()) return status;
  if (committed[0] != sent) return ReconcileTalk::Contradiction();
  report_.copied += sent;
  report_.gone += static_cast<int64_t>(missing_.size()) - sent;
  return absl::OkStatus();
}

absl::Status ReconcileSide::ReceiveMissing(const ReconcileFacts& from, uint64_t announced) {
  const bool keeps_partitions = from.partitions == facts().partitions;
  const auto go_on = [&] { return talk_.Alive(); };
  const auto has = [&](uint64_t key) {
    const auto entry = std::lower_bound(entries_.begin(), entries_.end(), key,
                                        [](const Entry& x, uint64_t y) { return x.key < y; });
    return entry != entries_.end() && entry->key == key;
  };
  const auto write = [&](SurveyRecord record, absl::string_view source) {
    if (!keeps_partitions) record.partition = -1;
    return writer_->Write(record, source, go_on);
  };
  const absl::StatusOr<int64_t> received =
      ReceiveCopies(talk_, from, {window_, pass_, passes_, announced, has}, reader_, write);
  const absl::Status committed = received.ok() ? writer_->Commit(go_on) : received.status();
  if (absl::Status schemas = SchemasStatus(); !schemas.ok()) return schemas;
  if (!committed.ok()) return talk_.status().ok() ? committed : talk_.status();
  received_ += *received;
  return talk_.Send(ReconcileWord::kCopied, Encode(std::vector<int64_t>{*received}));
}

absl::StatusOr<SideReport> ReconcileSide::Report() {
  // One of each partition at a time: the reader takes a range of each.
  std::vector<SideReport::Sample>& samples = report_.samples;
  for (std::vector<bool> is_read(samples.size()); std::count(is_read.begin(), is_read.end(), false) > 0;) {
    std::vector<OffsetRange> ranges(static_cast<size_t>(log_->partitions()));
    for (size_t i = 0; i < samples.size(); ++i) {
      OffsetRange& range = ranges[static_cast<size_t>(samples[i].partition)];
      if (is_read[i] || range.begin < range.end) continue;
      range = {samples[i].offset, samples[i].offset + 1};
      is_read[i] = true;
    }
    const auto take = [&](const SurveyRecord& record) {
      const RecordFields& fields = reader_.Read(record.record);
      if (fields.id_state != RecordFields::State::kPresent) return;
      for (SideReport::Sample& sample : samples) {
        const bool is_it = sample.partition == record.partition && sample.offset == record.offset;
        if (is_it) sample.id = IdText(options_.id, fields.id);
      }
    };
    absl::Status read = log_->Read(ranges, take, [&](int64_t) { return talk_.Alive(); });
    if (read.ok()) read = talk_.status();
    if (!read.ok()) return read;
  }
  return report_;
}

}  // namespace lethe
