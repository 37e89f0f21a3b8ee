// Snapshots in a compacted topic, for instances that have no disk of their own.
//
// Snapshots of input partition p are in partition p of the topic (modulo its partitions). A snapshot is a
// sequence of chunks and a manifest behind them. All have the timestamp in the snapshot's id, by which they
// are found. Keys are text:
//
//   GROUP/INPUT/PARTITION/ID/INDEX       a chunk: bytes [INDEX x kChunkBytes, ...) of the file
//   GROUP/INPUT/PARTITION/ID/manifest    "lethe-snapshot/1 chunks=COUNT bytes=BYTES"
//
// A snapshot without its manifest does not exist. The file's own checksums protect its bytes.
//
// No two snapshots share a key, so each record of one that does not count gets a tombstone. The next owner of
// the partition finds the remains of a killed process in the topic, when a commit has named the owner's first
// snapshot.
#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "connectors/kafka/client/client.h"
#include "connectors/kafka/client/log_reader.h"
#include "connectors/kafka/client/message_view.h"
#include "connectors/kafka/group/broker_client.h"
#include "connectors/kafka/snapshots/snapshot_stores.h"
#include "src/pipeline/clock/patiently.h"
#include "src/pipeline/clock/steady_time.h"
#include "src/pipeline/preflight/own_topics.h"
#include "src/pipeline/snapshots/memory_file.h"
#include "src/pipeline/snapshots/snapshot_folder.h"
#include "src/pipeline/snapshots/snapshot_records.h"
#include "src/pipeline/snapshots/snapshots.h"

namespace lethe::kafka {
namespace {

constexpr int kSnapshotTimeoutMs = 2000;
constexpr absl::Duration kSnapshotPatience = absl::Seconds(30);
// An owner leaves one snapshot at most, of about the size of the next one's. Snapshots of other partitions or
// groups in the same partition may lie between.
constexpr int64_t kLookThroughSnapshots = 4;
constexpr int64_t kLookThroughBytes = int64_t{16} << 20;

class SnapshotTopic final : public SnapshotStore {
 public:
  SnapshotTopic(const DaemonOptions& options, SnapshotProducer producer, int32_t partitions)
      : options_(options),
        id_fingerprint_(options.record.id.Fingerprint()),
        topic_(options.process.snapshots.topic),
        most_chunks_(MostChunks(options.stage.memory_limit_bytes)),
        partitions_(partitions),
        producer_(std::move(producer)) {}

  absl::Status Write(int32_t partition, SnapshotId id, LiveSnapshot& image, const GoOn& go_on) override;
  absl::StatusOr<RestoredPartition> Restore(int32_t partition, SnapshotId id, DedupStage& stage,
                                            const GoOn& go_on) override;
  absl::Status Remove(const std::vector<PartitionSnapshot>& snapshots) override {
    return Delete(snapshots, [] { return true; });
  }
  absl::Status DropOlder(int32_t partition, SnapshotId id, std::optional<SnapshotId> before,
                         bool is_first) override;

  static void OnDelivery(rd_kafka_t*, const rd_kafka_message_t* message, void* /*opaque*/) {
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) return;
    *static_cast<rd_kafka_resp_err_t*>(message->_private) = message->err;
  }

 private:
  std::string Prefix(int32_t partition) const {
    return absl::StrCat(options_.process.group, "/", options_.input, "/", partition, "/");
  }
  std::string Key(int32_t partition, SnapshotId id, std::optional<int64_t> chunk) const {
    return absl::StrCat(Prefix(partition), SnapshotKey{id, chunk}.ToString());
  }
  int32_t Place(int32_t partition) const { return partition % partitions_; }

  // Produces a record; a null value is a tombstone. Waits while the queue is full. `failed` is set if it was
  // not delivered, and must outlive the next Flush.
  absl::Status Send(int32_t partition, SnapshotId id, const std::string& key, const std::string* value,
                    rd_kafka_resp_err_t* failed);
  absl::Status Flush(const rd_kafka_resp_err_t& failed);
  absl::Status WriteChunks(int32_t partition, SnapshotId id, const MemoryFile& file, const GoOn& go_on);
  // Calls `see` for the records of the partition's place from this time on, up to the present end, or until
  // it returns false.
  using See = std::function<bool(absl::string_view key, std::optional<absl::string_view> value)>;
  absl::Status Scan(int32_t partition, absl::Time from, const GoOn& go_on, const See& see) const;
  // Reads the snapshot's chunks into the file.
  absl::StatusOr<SnapshotManifest> Read(int32_t partition, SnapshotId id, const MemoryFile& file,
                                        const GoOn& go_on) const;
  // Finds the remains of earlier owners since `from`, older than `id`.
  absl::Status FindOlder(int32_t partition, SnapshotId id, absl::Time from);
  absl::Status Delete(const std::vector<PartitionSnapshot>& snapshots, const GoOn& go_on);

  const DaemonOptions& options_;
  const std::string id_fingerprint_;
  const std::string topic_;
  const int64_t most_chunks_;
  const int32_t partitions_;
  const SnapshotProducer producer_;

  std::mutex mutex_;
  // The chunks that were written or seen of snapshots in the topic, by partition and id; guarded by mutex_.
  std::map<std::pair<int32_t, std::string>, std::set<int64_t>> chunks_;
};

absl::Status SnapshotTopic::Send(int32_t partition, SnapshotId id, const std::string& key,
                                 const std::string* value, rd_kafka_resp_err_t* failed) {
  const absl::string_view bytes = value == nullptr ? absl::string_view() : *value;  // null, not empty
  const absl::Time deadline = SteadyNow() + kSnapshotPatience;
  for (;;) {
    const rd_kafka_resp_err_t code = rd_kafka_producev(
        producer_.get(), RD_KAFKA_V_TOPIC(topic_.c_str()), RD_KAFKA_V_PARTITION(Place(partition)),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(key.data(), key.size()),
        RD_KAFKA_V_VALUE(const_cast<char*>(bytes.data()), bytes.size()),
        RD_KAFKA_V_TIMESTAMP(absl::ToUnixMillis(id.time())), RD_KAFKA_V_OPAQUE(failed), RD_KAFKA_V_END);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return absl::OkStatus();
    if (code != RD_KAFKA_RESP_ERR__QUEUE_FULL || stopped() || SteadyNow() >= deadline) {
      return ErrorStatus(code, absl::StrCat("writing to ", topic_));
    }
    rd_kafka_poll(producer_.get(), 20);
  }
}

absl::Status SnapshotTopic::Flush(const rd_kafka_resp_err_t& failed) {
  const absl::Time deadline = SteadyNow() + kSnapshotPatience;
  rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
  do {
    code = rd_kafka_flush(producer_.get(), 100);
  } while (code != RD_KAFKA_RESP_ERR_NO_ERROR && !stopped() && SteadyNow() < deadline);
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return ErrorStatus(failed, absl::StrCat("writing to ", topic_));
  // No record may be delivered after this, nor report to a variable that is gone.
  rd_kafka_purge(producer_.get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
  rd_kafka_flush(producer_.get(), -1);
  return ErrorStatus(code, absl::StrCat("writing to ", topic_));
}

absl::Status SnapshotTopic::Write(int32_t partition, SnapshotId id, LiveSnapshot& image, const GoOn& go_on) {
  const MemoryFile file;
  if (absl::Status status = file.status(); !status.ok()) return status;
  if (absl::Status status = image.Write(file.descriptor(), go_on); !status.ok()) return status;
  const SnapshotManifest manifest = SnapshotManifest::Of(file.size());
  absl::Status written = WriteChunks(partition, id, file, go_on);
  if (written.ok()) {
    const std::string text = manifest.ToString();
    rd_kafka_resp_err_t failed = RD_KAFKA_RESP_ERR_NO_ERROR;
    written = Send(partition, id, Key(partition, id, std::nullopt), &text, &failed);
    const absl::Status flushed = Flush(failed);
    if (written.ok()) written = flushed;
  }
  // If that fails too, the next snapshot that counts tries again.
  if (!written.ok()) Remove({{partition, id}}).IgnoreError();
  return written;
}

absl::Status SnapshotTopic::WriteChunks(int32_t partition, SnapshotId id, const MemoryFile& file,
                                        const GoOn& go_on) {
  rd_kafka_resp_err_t failed = RD_KAFKA_RESP_ERR_NO_ERROR;
  absl::Status status;
  for (int64_t at = 0, index = 0; at < file.size() && status.ok(); at += kChunkBytes, ++index) {
    std::string chunk(static_cast<size_t>(std::min(kChunkBytes, file.size() - at)), '\0');
    if (!file.Read(at, chunk)) status = absl::InternalError("a snapshot in memory cannot be read");
    if (!go_on()) status = absl::CancelledError("writing the snapshot was cancelled");
    if (status.ok()) {
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        chunks_[{partition, id.ToString()}].insert(index);
      }
      status = Send(partition, id, Key(partition, id, index), &chunk, &failed);
    }
  }
  const absl::Status flushed = Flush(failed);
  return status.ok() ? flushed : status;
}

absl::Status SnapshotTopic::Scan(int32_t partition, absl::Time from, const GoOn& go_on,
                                 const See& see) const {
  // Up to the high watermark: all that was there when the commit that names it was read.
  const auto consumer =
      ReaderConfig(options_, "read_uncommitted", FetchOn::Defaults({{"fetch.message.max.bytes", "8388608"}}))
          .MakeConsumer();
  if (!consumer.ok()) return consumer.status();
  const int32_t place = Place(partition);
  const auto bounds = BoundsOf(consumer->get(), topic_, place, kSnapshotTimeoutMs);
  if (!bounds.ok()) return bounds.status();
  if (!go_on()) return absl::CancelledError(absl::StrCat("reading ", topic_, " was cancelled"));
  const PartitionListPtr list(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_t* const element =
      rd_kafka_topic_partition_list_add(list.get(), topic_.c_str(), place);
  element->offset = absl::ToUnixMillis(from);
  rd_kafka_resp_err_t code = rd_kafka_offsets_for_times(consumer->get(), list.get(), kSnapshotTimeoutMs);
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) code = element->err;
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
    return ErrorStatus(code, absl::StrCat("looking for a time in ", topic_));
  if (element->offset < 0) return absl::OkStatus();
  return ReadLog(consumer->get(), topic_,
                 {.ranges = {{place, {element->offset, bounds->end}}},
                  .patience = kSnapshotPatience,
                  .see =
                      [&](const rd_kafka_message_t& message) {
                        const InputRecord record = MessageView(message).record();
                        return see(record.key.value_or(""), record.value);
                      },
                  .go_on = [&](int64_t) { return go_on(); }});
}

absl::StatusOr<SnapshotManifest> SnapshotTopic::Read(int32_t partition, SnapshotId id, const MemoryFile& file,
                                                     const GoOn& go_on) const {
  const std::string prefix = Prefix(partition);
  SnapshotCollector collector(id, most_chunks_, topic_, file);
  const auto see = [&](absl::string_view key, std::optional<absl::string_view> value) {
    return !absl::ConsumePrefix(&key, prefix) || collector.See(key, value);
  };
  if (absl::Status scanned = Scan(partition, id.time(), go_on, see); !scanned.ok()) return scanned;
  return collector.manifest();
}

absl::StatusOr<RestoredPartition> SnapshotTopic::Restore(int32_t partition, SnapshotId id, DedupStage& stage,
                                                         const GoOn& go_on) {
  const MemoryFile file;
  if (absl::Status status = file.status(); !status.ok()) return status;
  const absl::StatusOr<SnapshotManifest> manifest = Read(partition, id, file, go_on);
  if (!manifest.ok()) return manifest.status();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::set<int64_t>& chunks = chunks_[{partition, id.ToString()}];
    for (int64_t index = 0; index < manifest->chunks; ++index) chunks.insert(index);
  }
  return stage.Restore(absl::StrCat(options_.input, "-", partition), file.path(),
                       {.topic = options_.input, .partition = partition, .id_fingerprint = id_fingerprint_},
                       go_on);
}

absl::Status SnapshotTopic::FindOlder(int32_t partition, SnapshotId id, absl::Time from) {
  const std::string prefix = Prefix(partition);
  int64_t look_through = kLookThroughBytes;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto own = static_cast<int64_t>(chunks_[{partition, id.ToString()}].size());
    look_through += kLookThroughSnapshots * kChunkBytes * own;
  }
  SnapshotRemains remains(id, most_chunks_, look_through);
  const auto see = [&](absl::string_view key, std::optional<absl::string_view> value) {
    const auto bytes = static_cast<int64_t>(key.size() + value.value_or("").size());
    const bool is_ours = absl::ConsumePrefix(&key, prefix);
    return remains.See(is_ours ? std::optional(key) : std::nullopt, !value, bytes);
  };
  const absl::Status scanned = Scan(
      partition, from, [this] { return !stopped(); }, see);
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [other, chunks] : remains.chunks()) {
    chunks_[{partition, other}].insert(chunks.begin(), chunks.end());
  }
  return scanned;
}

absl::Status SnapshotTopic::DropOlder(int32_t partition, SnapshotId id, std::optional<SnapshotId> before,
                                      bool is_first) {
  absl::Status status;
  if (is_first) {
    bool is_known = false;
    if (before) {
      const std::lock_guard<std::mutex> lock(mutex_);
      is_known = chunks_.contains({partition, before->ToString()});
    }
    // The owner that named `before` has deleted all older ones.
    const absl::Time from = !before    ? absl::UnixEpoch()
                            : is_known ? before->time() + absl::Milliseconds(1)
                                       : before->time();
    status = FindOlder(partition, id, from);
  }
  std::vector<PartitionSnapshot> older;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [key, chunks] : chunks_) {
      const SnapshotId other = *SnapshotId::Parse(key.second);
      if (key.first == partition && other.IsOlderThan(id)) older.push_back({partition, other});
    }
  }
  absl::Status deleted = Delete(older, [this] { return !stopped(); });
  return status.ok() ? deleted : status;
}

absl::Status SnapshotTopic::Delete(const std::vector<PartitionSnapshot>& snapshots, const GoOn& go_on) {
  rd_kafka_resp_err_t failed = RD_KAFKA_RESP_ERR_NO_ERROR;
  absl::Status status;
  for (const auto& [partition, id] : snapshots) {
    std::set<int64_t> chunks;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      chunks = chunks_[{partition, id.ToString()}];
    }
    // The manifest first: without it the snapshot does not exist.
    status = Send(partition, id, Key(partition, id, std::nullopt), nullptr, &failed);
    for (auto index = chunks.begin(); index != chunks.end() && status.ok(); ++index) {
      status = go_on() ? Send(partition, id, Key(partition, id, *index), nullptr, &failed)
                       : absl::CancelledError("deleting snapshots was cancelled");
    }
    if (!status.ok()) break;
  }
  status.Update(Flush(failed));
  if (!status.ok()) return status;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [partition, id] : snapshots) chunks_.erase({partition, id.ToString()});
  return absl::OkStatus();
}

absl::Status MakeProducer(const DaemonOptions& options, SnapshotProducer& producer) {
  if (producer != nullptr) return absl::OkStatus();
  ClientConfig config = BaseConfig(options, {{"linger.ms", "5"}, {"compression.type", "lz4"}});
  config.Set("enable.idempotence", "true").Set("acks", "all").Set("delivery.report.only.error", "true");
  // The queue holds a second copy in memory.
  config.Set("queue.buffering.max.kbytes", "16384").Set("message.max.bytes", "1000000");
  rd_kafka_conf_set_dr_msg_cb(config.raw(), SnapshotTopic::OnDelivery);
  auto made = config.MakeProducer();
  if (!made.ok()) return made.status();
  producer = *std::move(made);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<SnapshotStore>> OpenSnapshotTopic(const DaemonOptions& options,
                                                                 SnapshotProducer& producer) {
  if (absl::Status made = MakeProducer(options, producer); !made.ok()) return made;
  const std::string& name = options.process.snapshots.topic;
  const auto brokers = BrokerClient::Make(options, Isolation::kReadCommitted);
  if (!brokers.ok()) return brokers.status();
  const auto partitions =
      Patiently(kSnapshotPatience, [&] { return EnsureSnapshotTopic(options, **brokers); });
  if (partitions.ok()) return std::make_unique<SnapshotTopic>(options, producer, *partitions);
  return absl::FailedPreconditionError(
      absl::StrCat("snapshots cannot go to topic ", name, ": ", partitions.status().message(),
                   absl::IsPermissionDenied(partitions.status()) ? "; or create it" : "; create it",
                   ", with cleanup.policy=compact, or set snapshots.to to a folder, or off"));
}

absl::StatusOr<std::unique_ptr<SnapshotStore>> OpenSnapshotStore(const DaemonOptions& options,
                                                                 SnapshotProducer& producer) {
  if (!options.process.snapshots.folder.empty()) return OpenSnapshotFolder(options);
  if (!options.process.snapshots.topic.empty()) return OpenSnapshotTopic(options, producer);
  return nullptr;
}

}  // namespace lethe::kafka
