// HTTP requests to a registry.
#ifndef LETHE_CONNECTORS_REGISTRY_HTTP_GET_H_
#define LETHE_CONNECTORS_REGISTRY_HTTP_GET_H_

#include <curl/curl.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "connectors/registry/registry_options.h"

namespace lethe::registry {

struct HttpAnswer {
  long status = 0;
  std::string body;
  bool is_cut = false;  // it was longer than kMostBytes; `body` is the beginning
};

// Follows no redirect: it would carry the credentials to another host. Keeps its connection. For one thread,
// which must block SIGPIPE, but for Interrupt.
class HttpGet {
 public:
  static constexpr size_t kMostBytes = size_t{4} << 20;  // that are kept

  explicit HttpGet(const RegistryOptions& options);

  // Unavailable: no whole answer came. The message does not name the URL. Cancelled: interrupted.
  absl::StatusOr<HttpAnswer> Get(const std::string& url);
  // Ends a running Get within a second, and all later ones at once. Thread-safe.
  void Interrupt() { interrupted_ = true; }

 private:
  struct Free {
    void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
  };
  static size_t Take(char* data, size_t, size_t size, void* self);

  const absl::Duration timeout_;
  std::unique_ptr<curl_slist, Free> headers_;
  std::unique_ptr<CURL, Free> curl_;
  char error_[CURL_ERROR_SIZE] = "";
  HttpAnswer answer_;
  size_t read_ = 0;  // of its body
  std::atomic<bool> interrupted_{false};
};

// Of a part of a path.
std::string EscapedForUrl(absl::string_view text);

}  // namespace lethe::registry

#endif  // LETHE_CONNECTORS_REGISTRY_HTTP_GET_H_
