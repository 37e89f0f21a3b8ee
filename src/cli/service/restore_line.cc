#include "src/cli/service/restore_line.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "src/cli/terminal/log.h"

namespace lethe {
namespace {

constexpr absl::Duration kDrawEvery = absl::Milliseconds(250);

}  // namespace

std::string RestoreText::Draw(const DaemonReport& report, absl::Time now, const TextStyle& style, int width) {
  int partitions = 0;
  int64_t left = 0;
  for (const LaneReport& lane : report.lanes) {
    for (const PartitionReport& partition : lane.partitions) {
      if (partition.phase != Phase::kRestoring) continue;
      if (offsets_.empty()) begin_ = now;
      ++partitions;
      left += partition.restore.left;
      offsets_[partition.partition] = partition.restore.to - partition.restore.from;
    }
  }
  if (partitions == 0) {
    offsets_.clear();
    return "";
  }
  int64_t total = 0;
  for (const auto& [partition, offsets] : offsets_) total += offsets;
  if (total == 0) return "";  // the offsets to read are not known yet
  return DrawProgress({.done = total - left,
                       .total = total,
                       .unit = "restored",
                       .elapsed = now - begin_,
                       .note = absl::StrCat(partitions, " of ", offsets_.size(), " partitions to go")},
                      style, width);
}

RestoreLine::RestoreLine(std::function<DaemonReport()> look) {
  if (!LogHasFooter()) return;
  drawing_.emplace(kDrawEvery, [this, look = std::move(look), style = TextStyle::Of(STDERR_FILENO)] {
    // The last column stays free, as in ProgressLine.
    SetLogFooter(text_.Draw(look(), absl::Now(), style, TerminalWidth(STDERR_FILENO) - 1));
  });
}

RestoreLine::~RestoreLine() {
  if (!drawing_) return;
  drawing_.reset();
  SetLogFooter("");
}

}  // namespace lethe
