#include "connectors/http/page.h"

#include "connectors/http/page_html.h"

namespace lethe::http {

HttpResponse Page() { return {.content_type = "text/html; charset=utf-8", .body = kPageHtml}; }

}  // namespace lethe::http
