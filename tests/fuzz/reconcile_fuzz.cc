// Any bytes as what a peer says in a reconciliation: nothing crashes, and what it announces takes no memory
// and no time out of proportion.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lethe/reconcile.h"

namespace {

// A peer that has said all from the beginning, and hears nothing.
class Monologue : public lethe::PeerChannel {
 public:
  Monologue(const uint8_t* data, size_t size) : data_(data), left_(size) {}
  absl::Status Write(absl::string_view) override { return absl::OkStatus(); }
  absl::Status Read(char* to, size_t size) override {
    if (size > left_) return absl::UnavailableError("the peer has gone");
    std::memcpy(to, data_, size);
    data_ += size;
    left_ -= size;
    return absl::OkStatus();
  }

 private:
  const uint8_t* data_;
  size_t left_;
};

}  // namespace

// The first byte says which side this is, how it compares, and whether its keys are small and so known to the
// peer, which can name them.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  Monologue peer(data + 1, size - 1);
  const bool knows_keys = (data[0] & 0x10) != 0;
  auto talk = lethe::Reconciliation::Begin(
      peer, {.initiates = (data[0] & 1) != 0, .subject = "id", .largest_message_bytes = 1 << 20});
  if (!talk.ok()) return 0;
  std::vector<uint64_t> keys;
  for (uint64_t i = 1; i <= 200; ++i) keys.push_back(knows_keys ? i << 56 : talk->Key(std::to_string(i)));
  const auto method = static_cast<lethe::ReconcileMethod>((data[0] >> 1) % 3);
  while (talk->Compare(keys, method).ok() && talk->Receive().ok()) {
  }
  return 0;
}
