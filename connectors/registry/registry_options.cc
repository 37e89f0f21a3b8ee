#include "connectors/registry/registry_options.h"

#include <curl/curl.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace lethe::registry {
namespace {

constexpr size_t kMostUrls = 16;

struct FreeUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};

bool Has(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, 0) != CURLUE_OK) return false;
  curl_free(text);
  return true;
}

bool IsHttp(CURLU* url) {
  char* scheme = nullptr;
  if (curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK) return false;
  const std::string text = scheme;
  curl_free(scheme);
  return text == "http" || text == "https";
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ParseUrls(absl::string_view text) {
  const absl::Status wrong = absl::InvalidArgumentError(
      "expected one or more URLs, joined with commas, such as https://registry:8081 or "
      "https://registry:8080/apis/ccompat/v7");
  std::vector<std::string> urls;
  for (absl::string_view each : absl::StrSplit(text, ',')) {
    each = absl::StripAsciiWhitespace(each);
    while (absl::ConsumeSuffix(&each, "/")) {
    }
    const std::string address(each);
    const std::unique_ptr<CURLU, FreeUrl> url(curl_url());
    if (url == nullptr || curl_url_set(url.get(), CURLUPART_URL, address.c_str(), 0) != CURLUE_OK ||
        !IsHttp(url.get()) || Has(url.get(), CURLUPART_QUERY) || Has(url.get(), CURLUPART_FRAGMENT)) {
      return wrong;
    }
    if (Has(url.get(), CURLUPART_USER) || Has(url.get(), CURLUPART_PASSWORD)) {
      return absl::InvalidArgumentError(
          "expected no user or password in the URL, which is printed: set user and password");
    }
    urls.push_back(address);
  }
  return urls.size() <= kMostUrls ? absl::StatusOr<std::vector<std::string>>(urls) : wrong;
}

}  // namespace lethe::registry
