#include "tests/bench/rivals/rocks_store.h"

#include <rocksdb/cache.h>
#include <rocksdb/compaction_filter.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/filter/each_id.h"
#include "src/filter/stream_clock.h"
#include "tests/bench/ring_status.h"

namespace lethe::bench {
namespace {

constexpr size_t kCacheBytes = size_t{1} << 28;
// Smaller than its default, so that a million ids do not just lie in front of the store.
constexpr size_t kWriteBufferBytes = size_t{1} << 22;

rocksdb::Slice Bytes(const auto& value) { return {reinterpret_cast<const char*>(&value), sizeof(value)}; }

int64_t TimeIn(const rocksdb::Slice& value) {
  int64_t time_ms = kNoStreamTime;
  std::memcpy(&time_ms, value.data(), std::min(value.size(), sizeof(time_ms)));
  return time_ms;
}

// Threads of the store call it.
class DropOld final : public rocksdb::CompactionFilter {
 public:
  explicit DropOld(const std::atomic<int64_t>* oldest_ms) : oldest_ms_(oldest_ms) {}
  bool Filter(int, const rocksdb::Slice&, const rocksdb::Slice& value, std::string*, bool*) const override {
    return TimeIn(value) < *oldest_ms_;
  }
  const char* Name() const override { return "DropOld"; }

 private:
  const std::atomic<int64_t>* const oldest_ms_;
};

// Thread safety: as Filter.
class RocksStore final : public EachIdFilter<RocksStore> {
 public:
  RocksStore(std::filesystem::path folder, int64_t horizon_ms)
      : folder_(std::move(folder)), horizon_ms_(horizon_ms), clock_(horizon_ms), drop_old_(&oldest_ms_) {}
  ~RocksStore() override {
    db_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  absl::Status Open() {
    rocksdb::BlockBasedTableOptions table;
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
    table.block_cache = rocksdb::NewLRUCache(kCacheBytes);
    rocksdb::Options options;
    options.create_if_missing = true;
    options.write_buffer_size = kWriteBufferBytes;
    options.compression = rocksdb::kNoCompression;  // hashes cannot be compressed
    options.compaction_filter = &drop_old_;
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    rocksdb::DB* db = nullptr;
    const rocksdb::Status status = rocksdb::DB::Open(options, folder_.string(), &db);
    if (!status.ok()) return absl::UnavailableError(status.ToString());
    db_.reset(db);
    write_.disableWAL = true;
    return absl::OkStatus();
  }

  void AdvanceTo(int64_t stream_time_ms) override {
    clock_.AdvanceTo(stream_time_ms);
    if (clock_.started()) oldest_ms_ = clock_.now_ms() - horizon_ms_;
  }

  FilterStatus Status() const override {
    uint64_t files = 0;
    uint64_t tables = 0;
    db_->GetIntProperty("rocksdb.total-sst-files-size", &files);
    db_->GetIntProperty("rocksdb.cur-size-all-mem-tables", &tables);
    return RingStatus(clock_, 1, 0, static_cast<int64_t>(files + tables));
  }

 private:
  friend class EachIdFilter<RocksStore>;

  bool ContainsId(IdHash id) const {
    value_.Reset();
    return db_->Get(read_, db_->DefaultColumnFamily(), Bytes(id), &value_).ok() &&
           TimeIn(value_) >= oldest_ms_;
  }
  // A write that failed shows as a copy that passes.
  void InsertId(IdHash id) { db_->Put(write_, Bytes(id), Bytes(clock_.now_ms())); }

  const std::filesystem::path folder_;
  const int64_t horizon_ms_;
  StreamClock clock_;
  std::atomic<int64_t> oldest_ms_ = kNoStreamTime;
  const DropOld drop_old_;
  rocksdb::ReadOptions read_;
  rocksdb::WriteOptions write_;
  mutable rocksdb::PinnableSlice value_;
  std::unique_ptr<rocksdb::DB> db_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Filter>> NewRocksStore(int64_t horizon_ms) {
  std::string folder = (std::filesystem::temp_directory_path() / "lethe-bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr)
    return absl::UnavailableError(absl::StrCat(folder, ": cannot be made"));
  auto store = std::make_unique<RocksStore>(folder, horizon_ms);
  if (absl::Status status = store->Open(); !status.ok()) return status;
  return store;
}

}  // namespace lethe::bench
