#include "lethe/stage.h"

#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/filter/memory_parts.h"
#include "src/filter/passed_ids.h"
#include "src/stage/partition_impl.h"

namespace lethe {
namespace {

absl::StatusOr<uint64_t> RandomSeed() {
  uint64_t seed;
  if (getentropy(&seed, sizeof(seed)) != 0) {
    return absl::ErrnoToStatus(errno, "no random seed for the ids' hash from getentropy()");
  }
  return seed;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DedupStage>> DedupStage::Create(const StageOptions& options,
                                                               FilterFactory new_filter) {
  if (absl::Status status = Validate(options); !status.ok()) return status;
  absl::StatusOr<uint64_t> seed = options.hash_seed.has_value() ? *options.hash_seed : RandomSeed();
  if (!seed.ok()) return seed.status();
  return std::unique_ptr<DedupStage>(new DedupStage(options, *seed, std::move(new_filter)));
}

DedupStage::DedupStage(const StageOptions& options, uint64_t hash_seed, FilterFactory new_filter)
    : options_(options),
      hash_seed_(hash_seed),
      new_filter_(std::move(new_filter)),
      memory_(options.memory_limit_bytes),
      filter_memory_(PartsOf(options).filters, &memory_),
      audit_memory_(PartsOf(options).audit, &memory_),
      second_opinion_memory_(PartsOf(options).second_opinion, &memory_) {}

DedupStage::~DedupStage() = default;

absl::StatusOr<std::unique_ptr<Partition>> DedupStage::Open(absl::string_view name) {
  return Open(name, hash_seed_);
}

absl::StatusOr<std::unique_ptr<Partition>> DedupStage::Open(absl::string_view name, uint64_t hash_seed) {
  const FilterOptions filter_options{.horizon = options_.horizon,
                                     .target_fpp = options_.target_fpp,
                                     .memory = &filter_memory_,
                                     .at_memory_limit = options_.at_memory_limit,
                                     .engine = options_.engine,
                                     .adaptation = options_.adaptation};
  std::vector<std::unique_ptr<Shard>> shards;
  for (int i = 0; i < options_.shards; ++i) {
    const auto refused = [&](const absl::Status& why) {
      return absl::Status(why.code(), absl::StrCat("partition ", name, ", shard ", i + 1, " of ",
                                                   options_.shards, ": ", why.message()));
    };
    absl::StatusOr<std::unique_ptr<Filter>> filter = new_filter_(filter_options);
    if (!filter.ok()) return refused(filter.status());
    std::optional<PassedIds> second_opinion;
    if (options_.second_opinion == SecondOpinion::kOpposite) {
      absl::StatusOr<PassedIds> passed = PassedIds::Create(options_.horizon, &second_opinion_memory_);
      if (!passed.ok()) return refused(passed.status());
      second_opinion.emplace(*std::move(passed));
    }
    shards.push_back(
        std::make_unique<Shard>(*std::move(filter), std::move(second_opinion), options_, &audit_memory_));
  }
  return std::unique_ptr<Partition>(new Partition(
      std::make_unique<Partition::Impl>(std::string{name}, hash_seed, options_, std::move(shards))));
}

}  // namespace lethe
