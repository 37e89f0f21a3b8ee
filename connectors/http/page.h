// The status page: one file that needs nothing but /status and /counters of the same host.
#ifndef LETHE_CONNECTORS_HTTP_PAGE_H_
#define LETHE_CONNECTORS_HTTP_PAGE_H_

#include "connectors/http/http_server.h"

namespace lethe::http {

// page.html, as it was when the program was built.
HttpResponse Page();

}  // namespace lethe::http

#endif  // LETHE_CONNECTORS_HTTP_PAGE_H_
