#include "lethe/stage.h"

#include <array>
#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lethe/filter.h"
#include "src/engines/memory_parts.h"
#include "src/engines/new_filter.h"
#include "src/memory/memory_shares.h"
#include "src/stage/missing_bytes.h"
#include "src/stage/no_memory.h"
#include "src/stage/partition_impl.h"

namespace lethe {
namespace {

// The nearest possible limit is rounded up to this, a little over the present use.
constexpr int64_t kRounding = 1024;

absl::Status Check(const StageOptions& options, const FilterFactory& new_filter) {
  return Validate(options, new_filter == nullptr ? LimitsOf(options.engine) : LimitsOfAnyFilter());
}

}  // namespace

absl::StatusOr<std::unique_ptr<DedupStage>> DedupStage::Create(const StageOptions& options) {
  return Make(options, nullptr, nullptr);
}

absl::StatusOr<std::unique_ptr<DedupStage>> DedupStage::Create(const StageOptions& options,
                                                               FilterFactory new_filter) {
  if (new_filter == nullptr) return absl::InvalidArgumentError("new_filter: no factory is given");
  return Make(options, std::move(new_filter), nullptr);
}

absl::StatusOr<std::unique_ptr<DedupStage>> DedupStage::Create(const StageOptions& options,
                                                               const DedupStage& memory_of) {
  return Make(options, nullptr, memory_of.memory_);
}

absl::StatusOr<std::unique_ptr<DedupStage>> DedupStage::Create(const StageOptions& options,
                                                               FilterFactory new_filter,
                                                               const DedupStage& memory_of) {
  if (new_filter == nullptr) return absl::InvalidArgumentError("new_filter: no factory is given");
  return Make(options, std::move(new_filter), memory_of.memory_);
}

absl::StatusOr<std::unique_ptr<DedupStage>> DedupStage::Make(const StageOptions& options,
                                                             FilterFactory new_filter,
                                                             std::shared_ptr<Memory> memory) {
  return OrNoMemory([&]() -> absl::StatusOr<std::unique_ptr<DedupStage>> {
    (void)NoMemory();  // allocates its message while there is memory
    if (absl::Status status = Check(options, new_filter); !status.ok()) return status;
    if (memory == nullptr) memory = std::make_shared<Memory>(options);
    return std::unique_ptr<DedupStage>(new DedupStage(options, std::move(new_filter), std::move(memory)));
  });
}

// The limit is divided into parts, so that none starves another.
struct DedupStage::Memory {
  explicit Memory(const StageOptions& options)
      : all(options.memory_limit_bytes),
        filters(PartsOf(options).filters, &all),
        audit(PartsOf(options).audit, &all),
        shares(&filters) {}
  MemoryBudget all;
  MemoryBudget filters;
  MemoryBudget audit;
  MemoryShares shares;
};

DedupStage::DedupStage(const StageOptions& options, FilterFactory new_filter, std::shared_ptr<Memory> memory)
    : options_(options),
      new_filter_(std::move(new_filter)),
      memory_(std::move(memory)),
      filters_memory_(memory_->shares) {}

DedupStage::~DedupStage() = default;

const MemoryBudget& DedupStage::memory() const { return memory_->all; }

absl::StatusOr<std::unique_ptr<Partition>> DedupStage::Open(absl::string_view name) {
  return OrNoMemory([&]() -> absl::StatusOr<std::unique_ptr<Partition>> {
    const absl::StatusOr<HashSalt> salt =
        options_.hash_seed.has_value() ? HashSalt{.low = *options_.hash_seed} : NewHashSalt();
    if (!salt.ok()) return salt.status();
    return Open(name, PartitionKeyOf(options_.snapshot_secret, *salt));
  });
}

absl::Status DedupStage::SetMemoryLimit(int64_t bytes) {
  return OrNoMemory([&] { return SetLimits(bytes); });
}

int64_t TakeMissingBytes(DedupStage& stage) { return stage.filters_memory_.TakeMissingBytes(); }

absl::Status DedupStage::SetLimits(int64_t bytes) {
  StageOptions wanted = options_;
  wanted.memory_limit_bytes = bytes;
  if (absl::Status status = Check(wanted, new_filter_); !status.ok()) return status;
  const MemoryParts to = PartsOf(wanted);
  const std::pair<MemoryBudget*, int64_t> parts[] = {{&memory_->filters, to.filters},
                                                     {&memory_->audit, to.audit}};
  const bool is_raised = bytes > memory_->all.limit_bytes();
  if (is_raised) memory_->all.SetLimit(bytes);
  // Each part keeps its limit or gets its share. The whole is lowered last, when its parts have room.
  std::array<int64_t, std::size(parts)> before;
  for (size_t i = 0; i < before.size(); ++i) {
    const auto& [part, limit_bytes] = parts[i];
    before[i] = part->limit_bytes();
    if (part->SetLimit(limit_bytes)) continue;
    const double share = static_cast<double>(limit_bytes) / static_cast<double>(bytes);
    const double needed = std::ceil(static_cast<double>(part->used_bytes()) / share);
    for (size_t changed = 0; changed < i; ++changed) parts[changed].first->SetLimit(before[changed]);
    return absl::FailedPreconditionError(
        absl::StrCat("memory_limit_bytes: ", memory_->all.used_bytes(), " bytes are used now, which ", bytes,
                     " have no room for; the nearest that can be is ",
                     (static_cast<int64_t>(needed) / kRounding + 2) * kRounding,
                     ", or less when the filters have shrunk, which they do with their load"));
  }
  if (!is_raised) memory_->all.SetLimit(bytes);
  memory_->shares.Divide(nullptr, 0);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Partition>> DedupStage::Open(absl::string_view name, const PartitionKey& key) {
  const FilterOptions filter_options{.horizon = options_.horizon,
                                     .target_fpp = options_.target_fpp,
                                     .memory = &filters_memory_,
                                     .engine = options_.engine};
  std::vector<std::unique_ptr<Shard>> shards;
  for (int i = 0; i < options_.shards; ++i) {
    const auto refused = [&](const absl::Status& why) {
      return absl::Status(why.code(), absl::StrCat("partition ", name, ", shard ", i + 1, " of ",
                                                   options_.shards, ": ", why.message()));
    };
    absl::StatusOr<std::unique_ptr<Filter>> filter =
        new_filter_ == nullptr ? NewFilter(filter_options) : new_filter_(filter_options);
    if (!filter.ok()) return refused(filter.status());
    if (*filter == nullptr) return refused(absl::InvalidArgumentError("the factory has made no filter"));
    shards.push_back(std::make_unique<Shard>(*std::move(filter), options_, &memory_->audit, key.key));
  }
  return std::unique_ptr<Partition>(
      new Partition(std::make_unique<Partition::Impl>(std::string{name}, key, options_, std::move(shards))));
}

}  // namespace lethe
