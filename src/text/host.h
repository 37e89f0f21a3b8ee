// Names and addresses of hosts.
#ifndef LETHE_SRC_TEXT_HOST_H_
#define LETHE_SRC_TEXT_HOST_H_

#include "absl/strings/string_view.h"

namespace lethe {

// Whether what is sent to the host stays on this machine: localhost, 127.0.0.0/8 or ::1, with brackets or
// without. Another name may have such an address today, and another one tomorrow.
bool IsLoopback(absl::string_view host);

}  // namespace lethe

#endif  // LETHE_SRC_TEXT_HOST_H_
