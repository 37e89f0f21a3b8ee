// Any bytes as what a peer of `lethe reconcile` asks, says of its side, and sends of records: nothing
// crashes.
#include <cstdint>
#include <cstring>

#include "src/cli/reconcile/reconcile_messages.h"

namespace {

template <class Message>
void Read(absl::string_view bytes) {
  Message message;
  lethe::Decode(bytes, message);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  Read<lethe::ReconcileAsk>(bytes);
  Read<lethe::ReconcileFacts>(bytes);
  Read<lethe::SideReport>(bytes);
  lethe::ReadRecords(bytes, [](const lethe::SurveyRecord&) { return true; });
  return 0;
}
