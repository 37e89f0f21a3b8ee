// A program without RTTI and exceptions that brings a filter of its own: prints the ids that are new to it.
#include <iostream>
#include <memory>
#include <set>
#include <utility>

#include "lethe/filter.h"
#include "lethe/stage.h"

namespace {

class OwnFilter : public lethe::Filter {
 public:
  void Contains(absl::Span<const lethe::IdHash> ids, absl::Span<lethe::Verdict> verdicts) const override {
    for (size_t i = 0; i < ids.size(); ++i) {
      verdicts[i] =
          ids_.count({ids[i].a, ids[i].b}) == 0 ? lethe::Verdict::kUnique : lethe::Verdict::kDuplicate;
    }
  }
  void Insert(absl::Span<const lethe::TimedId> ids) override {
    for (const lethe::TimedId& timed : ids) ids_.insert({timed.id.a, timed.id.b});
  }
  void TestAndInsert(absl::Span<const lethe::TimedId> ids, absl::Span<lethe::Verdict> verdicts) override {
    for (size_t i = 0; i < ids.size(); ++i) {
      Contains({&ids[i].id, 1}, verdicts.subspan(i, 1));
      Insert(ids.subspan(i, 1));
    }
  }
  void AdvanceTo(int64_t) override {}
  lethe::FilterStatus Status() const override { return {}; }

 private:
  std::set<std::pair<uint64_t, uint64_t>> ids_;
};

absl::StatusOr<std::unique_ptr<lethe::Filter>> NewOwnFilter(const lethe::FilterOptions&) {
  return std::make_unique<OwnFilter>();
}

}  // namespace

int main() {
  const auto stage = lethe::DedupStage::Create(lethe::StageOptions(), NewOwnFilter);
  if (!stage.ok()) return 1;
  const auto partition = (*stage)->Open("own");
  if (!partition.ok()) return 1;
  for (const char* id : {"a", "b", "a", "c", "b"}) {
    const absl::StatusOr<lethe::Verdict> verdict = (*partition)->Judge(id, absl::UnixEpoch());
    if (verdict.ok() && *verdict == lethe::Verdict::kUnique) std::cout << id << "\n";
  }
  return 0;
}
