// What the stage asks of lethe's own filters beyond lethe/filter.h: a status in steps, and snapshots.
#ifndef LETHE_SRC_FILTER_ENGINE_FILTER_H_
#define LETHE_SRC_FILTER_ENGINE_FILTER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lethe/filter.h"

namespace lethe {

// A whole filter, for a snapshot.
struct FilterImage {
  std::string state;                           // all but the bits, serialized; at most kMaxStateBytes
  std::vector<absl::Span<const char>> memory;  // the bits, in place
  int64_t epoch = 0;                           // EngineFilter::ImageEpoch()
  std::shared_ptr<void> copy = nullptr;        // what the engine keeps until the copy is complete

  static constexpr int64_t kMaxStateBytes = int64_t{1} << 20;
};

// Promise, errors and thread safety are those of Filter. Without an override an engine has no snapshots. It
// overrides Status(), or Figures() and BeginSample().
class EngineFilter : public Filter {
 public:
  // Finds what Figures() leaves out, in steps of some microseconds. The filter may change between two steps,
  // and must not during one. The filter outlives it.
  class Sample {
   public:
    virtual ~Sample() = default;
    // Makes a step. True if it has seen enough.
    virtual bool Look() = 0;
    virtual void Describe(FilterStatus* status) const = 0;
  };
  static constexpr int64_t kSampledLines = 512;
  // Looks at `most_lines` of the filter's lines at most. Null if Figures() leaves nothing out.
  virtual std::unique_ptr<Sample> BeginSample(int64_t /*most_lines*/) const { return nullptr; }
  // The figures, with all that a sample finds.
  FilterStatus Status() const override;
  // The figures, in a status whose lists keep their memory from call to call. Without the list of
  // generations, which takes half of the time, where nobody wants it.
  virtual void GetFigures(FilterStatus* status, bool /*with_generations*/) const { *status = Figures(); }

  // The filter as it is. CopyMemory copies its memory, part by part in order, with insertions in between;
  // give the spans to that only. Unimplemented without an override.
  virtual absl::StatusOr<FilterImage> BeginCopy() const;

  // Copies a part of a span of such an image to `to`. False if the filter has changed in a way that the image
  // does not allow: the copy is useless, begin another.
  virtual bool CopyMemory(const FilterImage& image, absl::Span<const char> part, char* to) const;

  // While this equals an image's epoch, the image's memory is in its place and may be copied piece by piece
  // with insertions in between. Together with the image's state it is then a filter that holds all ids that
  // were inserted before the image, some of those inserted since, and no others. (So the epoch changes when
  // time drops or begins a generation, and when bits are moved.)
  virtual int64_t ImageEpoch() const { return 0; }

  // Makes a new filter, with the same horizon and target, from a serialized state, and returns where the
  // caller must put the bits: spans of the sizes of the image's, `bytes` together, in their order. Reserves
  // the memory before it allocates. The state is not trusted: DataLoss if it is not the state of such a
  // filter with so many bytes, ResourceExhausted if there is no memory. After an error, or if the bits are
  // not put there, the filter can only be destroyed.
  virtual absl::StatusOr<std::vector<absl::Span<char>>> Restore(absl::string_view state, int64_t bytes);

  // Called when the bits are there. False if they cannot be those of such a filter, which can then only be
  // destroyed.
  virtual bool Restored() { return true; }

 private:
  EngineFilter* AsEngineFilter() final { return this; }
};

// Unimplemented, with what to do.
absl::Status NoSnapshotsOfThisEngine();

}  // namespace lethe

#endif  // LETHE_SRC_FILTER_ENGINE_FILTER_H_
