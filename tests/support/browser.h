// A real browser, driven as a person's: headless Chromium behind ChromeDriver (W3C WebDriver).
#ifndef LETHE_TESTS_SUPPORT_BROWSER_H_
#define LETHE_TESTS_SUPPORT_BROWSER_H_

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/support/process.h"

namespace lethe::test {

// One window. Its processes end with it. Thread-compatible.
class Browser {
 public:
  // NotFound if Chromium or ChromeDriver are not installed.
  static absl::StatusOr<std::unique_ptr<Browser>> Start();
  ~Browser();
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  absl::Status Open(const std::string& url);

  // What the body of a function of JavaScript returns in the page.
  absl::StatusOr<nlohmann::json> Run(const std::string& script);
  // Waits until an expression of JavaScript is true.
  absl::Status Await(const std::string& condition);

  // A width in CSS pixels, as on a phone or a desk; light or dark as the user's system says.
  absl::Status Resize(int width, int height);
  absl::Status PreferDark(bool dark);

  absl::Status Screenshot(const std::string& path);

  // Since the last call: errors and warnings in the console, and the addresses that the page asked for.
  absl::StatusOr<std::vector<std::string>> ConsoleProblems();
  absl::StatusOr<std::vector<std::string>> Requests();

 private:
  Browser(std::unique_ptr<Process> driver, int port, std::string folder);
  absl::StatusOr<nlohmann::json> Ask(const std::string& path, const nlohmann::json& body);
  absl::StatusOr<nlohmann::json> DevTools(const std::string& command, const nlohmann::json& parameters);

  const std::unique_ptr<Process> driver_;
  const int port_;
  const std::string folder_;  // the browser's profile
  std::string session_;       // the path of the session, once there is one
};

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_BROWSER_H_
