#include "absl/strings/string_view.h"
#include "lethe/event.h"
#include "src/text/sip_hash.h"

namespace lethe {

IdHash HashId(absl::string_view id, HashKey key) { return SipHash<1, 3>::Of(id, key); }

}  // namespace lethe
