#include "connectors/http/responses.h"

#include <prometheus/text_serializer.h>

#include "absl/strings/str_cat.h"
#include "connectors/http/page_html.h"

namespace lethe::http {

HttpResponse Page() {
  return {.content_type = "text/html; charset=utf-8",
          .body = kPageHtml,
          // Only the page's own script and style, even if a record's text injects another.
          .content_security_policy = absl::StrCat("default-src 'none'; script-src '", kPageScriptHash,
                                                  "'; style-src '", kPageStyleHash,
                                                  "'; connect-src 'self'; img-src data:; base-uri 'none'; "
                                                  "form-action 'none'; frame-ancestors 'none'")};
}

HttpResponse MetricsText(const std::vector<prometheus::MetricFamily>& families) {
  return {200, "text/plain; version=0.0.4; charset=utf-8", prometheus::TextSerializer().Serialize(families)};
}

}  // namespace lethe::http
