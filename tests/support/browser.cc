#include "tests/support/browser.h"

#include <httplib.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/support/free_port.h"
#include "tests/support/kafka_client.h"

namespace lethe::test {
namespace {

using nlohmann::json;

constexpr absl::Duration kBrowserTimeout = absl::Minutes(1);

}  // namespace

Browser::Browser(std::unique_ptr<Process> driver, int port, std::string folder)
    : driver_(std::move(driver)), port_(port), folder_(std::move(folder)) {}

Browser::~Browser() {
  if (!session_.empty()) {
    httplib::Client client("127.0.0.1", port_);
    client.Delete(session_.c_str());  // ends the browser
  }
  static_cast<void>(driver_->Terminate(absl::Seconds(10)));
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

absl::StatusOr<std::unique_ptr<Browser>> Browser::Start() {
  std::string folder = (std::filesystem::temp_directory_path() / "lethe-browser-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return absl::InternalError("no temporary folder for the browser");
  const int port = FreePort();
  ProcessOptions command;
  command.args = {"chromedriver", absl::StrCat("--port=", port)};
  auto driver = Process::Start(command);
  if (!driver.ok()) {
    return absl::NotFoundError(
        absl::StrCat("chromedriver (Debian: chromium-driver): ", driver.status().message()));
  }
  std::unique_ptr<Browser> browser(new Browser(*std::move(driver), port, folder));
  httplib::Client client("127.0.0.1", port);
  const bool answers = WaitUntil(
      [&] {
        const httplib::Result ready = client.Get("/status");
        return (ready && ready->status == 200) || !browser->driver_->Running();
      },
      kBrowserTimeout);
  if (!answers || !browser->driver_->Running()) {
    return absl::UnavailableError(absl::StrCat("chromedriver does not answer: ", browser->driver_->Stderr()));
  }
  // As root there is no sandbox; nothing but the tested page is asked for over the network.
  const json options = {{"args",
                         {"--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic",
                          "--no-first-run", "--disable-background-networking", "--disable-component-update",
                          "--disable-sync", "--disable-dev-shm-usage", "--force-prefers-reduced-motion",
                          absl::StrCat("--user-data-dir=", folder)}}};
  const json capabilities = {{"browserName", "chrome"},
                             {"goog:chromeOptions", options},
                             {"goog:loggingPrefs", {{"browser", "ALL"}, {"performance", "ALL"}}}};
  const auto session = browser->Ask("/session", {{"capabilities", {{"alwaysMatch", capabilities}}}});
  if (!session.ok()) return session.status();
  browser->session_ = absl::StrCat("/session/", session->at("sessionId").get<std::string>());
  return browser;
}

absl::StatusOr<json> Browser::Ask(const std::string& path, const json& body) {
  httplib::Client client("127.0.0.1", port_);
  client.set_read_timeout(absl::ToInt64Seconds(kBrowserTimeout));
  const httplib::Result result = client.Post(path.c_str(), body.dump(), "application/json");
  if (!result)
    return absl::UnavailableError(absl::StrCat("chromedriver: ", httplib::to_string(result.error())));
  const json answer = json::parse(result->body, nullptr, /*allow_exceptions=*/false);
  if (result->status != 200 || !answer.is_object() || !answer.contains("value")) {
    return absl::InternalError(absl::StrCat("chromedriver, ", path, ": ", result->body));
  }
  return answer.at("value");
}

absl::StatusOr<json> Browser::DevTools(const std::string& command, const json& parameters) {
  return Ask(session_ + "/goog/cdp/execute", {{"cmd", command}, {"params", parameters}});
}

absl::Status Browser::Open(const std::string& url) { return Ask(session_ + "/url", {{"url", url}}).status(); }

absl::StatusOr<json> Browser::Run(const std::string& script) {
  return Ask(session_ + "/execute/sync", {{"script", script}, {"args", json::array()}});
}

absl::Status Browser::Await(const std::string& condition) {
  absl::Status last;
  const bool met = WaitUntil(
      [&] {
        const auto value = Run(absl::StrCat("return Boolean(", condition, ");"));
        last = value.status();
        return value.ok() && value->get<bool>();
      },
      kBrowserTimeout);
  if (met) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat("never true: ", condition, " ", last.ToString()));
}

absl::Status Browser::Resize(int width, int height) {
  return DevTools("Emulation.setDeviceMetricsOverride",
                  {{"width", width}, {"height", height}, {"deviceScaleFactor", 1}, {"mobile", width < 600}})
      .status();
}

absl::Status Browser::PreferDark(bool dark) {
  const json feature = {{"name", "prefers-color-scheme"}, {"value", dark ? "dark" : "light"}};
  return DevTools("Emulation.setEmulatedMedia", {{"features", json::array({feature})}}).status();
}

absl::Status Browser::Screenshot(const std::string& path) {
  const auto shot = DevTools("Page.captureScreenshot", {{"format", "png"}, {"captureBeyondViewport", true}});
  if (!shot.ok()) return shot.status();
  std::string png;
  absl::Base64Unescape(shot->at("data").get<std::string>(), &png);
  std::ofstream(path, std::ios::binary) << png;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> Browser::ConsoleProblems() {
  const auto log = Ask(session_ + "/se/log", {{"type", "browser"}});
  if (!log.ok()) return log.status();
  std::vector<std::string> problems;
  for (const json& line : *log) {
    const std::string level = line.at("level").get<std::string>();
    if (level == "SEVERE" || level == "WARNING") problems.push_back(line.at("message").get<std::string>());
  }
  return problems;
}

absl::StatusOr<std::vector<std::string>> Browser::Requests() {
  const auto log = Ask(session_ + "/se/log", {{"type", "performance"}});
  if (!log.ok()) return log.status();
  std::vector<std::string> urls;
  for (const json& line : *log) {
    const json event = json::parse(line.at("message").get<std::string>()).at("message");
    if (event.at("method") != "Network.requestWillBeSent") continue;
    std::string url = event.at("params").at("request").at("url").get<std::string>();
    // The browser's own pages (chrome:, chrome-untrusted:): it shows one before it is told what to open.
    if (!absl::StartsWith(url, "chrome")) urls.push_back(std::move(url));
  }
  return urls;
}

}  // namespace lethe::test
