#include "connectors/registry/http_get.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace lethe::registry {
namespace {

constexpr absl::Duration kConnectTimeout = absl::Seconds(5);
// Of a body: the largest schemas end before. What is longer has no end, perhaps.
constexpr size_t kMostRead = size_t{32} << 20;

}  // namespace

HttpGet::HttpGet(const RegistryOptions& options) : timeout_(options.timeout) {
  static const CURLcode initialized = curl_global_init(CURL_GLOBAL_DEFAULT);
  curl_.reset(initialized == CURLE_OK ? curl_easy_init() : nullptr);
  if (curl_ == nullptr) return;
  CURL* const curl = curl_.get();
  headers_.reset(
      curl_slist_append(nullptr, "Accept: application/vnd.schemaregistry.v1+json, application/json;q=0.9"));
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers_.get());
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "lethe");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(absl::ToInt64Milliseconds(options.timeout)));
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(absl::ToInt64Milliseconds(std::min(options.timeout, kConnectTimeout))));
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error_);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &HttpGet::Take);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, this);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, this);
  const curl_xferinfo_callback is_interrupted = [](void* self, curl_off_t, curl_off_t, curl_off_t,
                                                   curl_off_t) -> int {
    return static_cast<HttpGet*>(self)->interrupted_ ? 1 : 0;
  };
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, is_interrupted);
  if (!options.ca_file.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, options.ca_file.c_str());
  if (!options.user.empty()) {
    curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
    curl_easy_setopt(curl, CURLOPT_USERNAME, options.user.c_str());
    curl_easy_setopt(curl, CURLOPT_PASSWORD, options.password.c_str());
  } else if (!options.token.empty()) {
    curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, options.token.c_str());
  }
}

size_t HttpGet::Take(char* data, size_t, size_t size, void* self) {
  auto* const get = static_cast<HttpGet*>(self);
  get->read_ += size;
  if (get->read_ > kMostRead) return 0;  // which ends the transfer
  HttpAnswer& answer = get->answer_;
  answer.is_cut = get->read_ > kMostBytes;
  answer.body.append(data, std::min(size, kMostBytes - answer.body.size()));
  return size;
}

absl::StatusOr<HttpAnswer> HttpGet::Get(const std::string& url) {
  if (interrupted_) return absl::CancelledError("interrupted");
  if (curl_ == nullptr) return absl::UnavailableError("libcurl cannot be used");
  answer_ = {};
  read_ = 0;
  error_[0] = '\0';
  curl_easy_setopt(curl_.get(), CURLOPT_URL, url.c_str());
  const CURLcode code = curl_easy_perform(curl_.get());
  curl_easy_getinfo(curl_.get(), CURLINFO_RESPONSE_CODE, &answer_.status);
  if (code == CURLE_OK) return std::move(answer_);
  if (read_ > kMostRead) return absl::UnavailableError("the answer is longer than 32 MiB");
  if (interrupted_) return absl::CancelledError("interrupted");
  if (code == CURLE_OPERATION_TIMEDOUT) {
    return absl::UnavailableError(absl::StrCat("no answer within ", absl::FormatDuration(timeout_)));
  }
  const absl::string_view why = error_[0] == '\0' ? curl_easy_strerror(code) : error_;
  return absl::UnavailableError(absl::StripAsciiWhitespace(why));
}

std::string EscapedForUrl(absl::string_view text) {
  char* const escaped = curl_easy_escape(nullptr, text.data(), static_cast<int>(text.size()));
  std::string copy = escaped == nullptr ? "" : escaped;
  curl_free(escaped);
  return copy;
}

}  // namespace lethe::registry
