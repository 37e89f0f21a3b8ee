#include "connectors/registry/registry_options.h"

#include <curl/curl.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "src/text/host.h"

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

// Empty if it has none.
std::string PartOf(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, 0) != CURLUE_OK) return "";
  std::string copy = text;
  curl_free(text);
  return copy;
}

bool IsHttp(CURLU* url) {
  const std::string scheme = PartOf(url, CURLUPART_SCHEME);
  return scheme == "http" || scheme == "https";
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

std::string UrlThatShowsSecret(const RegistryOptions& options) {
  if (options.password.empty() && options.token.empty()) return "";
  for (const std::string& each : options.urls) {
    const std::unique_ptr<CURLU, FreeUrl> url(curl_url());
    if (url == nullptr || curl_url_set(url.get(), CURLUPART_URL, each.c_str(), 0) != CURLUE_OK) continue;
    if (PartOf(url.get(), CURLUPART_SCHEME) == "http" && !IsLoopback(PartOf(url.get(), CURLUPART_HOST))) {
      return each;
    }
  }
  return "";
}

}  // namespace lethe::registry
