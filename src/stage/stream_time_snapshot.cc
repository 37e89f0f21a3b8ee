// Stream time in a snapshot: 1 + 101 + 2 fields.
#include "src/snapshot/fields.h"
#include "src/stage/stream_time.h"

namespace lethe {

template <typename Self, typename Fields>
void StreamTime::Transfer(Self& self, Fields& fields) {
  fields.Time(self.now_ms_);
  for (auto& timestamp : self.ring_) fields.Time(timestamp);
  fields.Int(self.next_, 0, kWindow - 1);
  fields.Int(self.windows_, 0, kMostWindows);
}

void StreamTime::Save(FieldWriter* fields) const { Transfer(*this, *fields); }

bool StreamTime::Restore(FieldReader* fields) {
  Transfer(*this, *fields);
  if (windows_ > 0) SortRing();
  return fields->ok();
}

}  // namespace lethe
