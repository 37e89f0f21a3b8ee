// A schema registry in the test's process, whose answers the test chooses.
#ifndef LETHE_TESTS_SUPPORT_FAKE_REGISTRY_H_
#define LETHE_TESTS_SUPPORT_FAKE_REGISTRY_H_

#include <httplib.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace lethe::test {

// Thread-safe.
class FakeRegistry {
 public:
  struct Answer {
    int status = 200;
    std::string body;
    std::multimap<std::string, std::string> headers = {};
    absl::Duration after = absl::ZeroDuration();
    bool chunked = false;
  };

  FakeRegistry() : FakeRegistry(std::make_unique<httplib::Server>(), "http") {}
  // With TLS: PEM files.
  FakeRegistry(const std::string& certificate, const std::string& key)
      : FakeRegistry(std::make_unique<httplib::SSLServer>(certificate.c_str(), key.c_str()), "https") {}
  ~FakeRegistry() {
    server_->stop();
    thread_.join();
  }
  FakeRegistry(const FakeRegistry&) = delete;
  FakeRegistry& operator=(const FakeRegistry&) = delete;

  std::string url() const { return absl::StrCat(scheme_, "://localhost:", port_); }

  void Put(const std::string& path, Answer answer) {
    const std::lock_guard<std::mutex> lock(mutex_);
    answers_[path] = std::move(answer);
  }
  // The schema is JSON's text within a string, so quotes in it are escaped.
  void PutAvro(int id, const std::string& escaped) {
    Put(absl::StrCat("/schemas/ids/", id), {200, absl::StrCat(R"({"schema":")", escaped, R"("})")});
  }
  // For all paths, whatever was put; nullptr: as they were put.
  void PutAll(std::shared_ptr<const Answer> answer) {
    const std::lock_guard<std::mutex> lock(mutex_);
    all_ = std::move(answer);
  }

  // For all paths, whatever was put.
  void Compute(std::function<Answer(const std::string& path)> compute) {
    const std::lock_guard<std::mutex> lock(mutex_);
    compute_ = std::move(compute);
  }

  std::vector<std::string> paths() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return paths_;
  }
  size_t requests() const { return paths().size(); }
  // Of the last request.
  std::string authorization() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return authorization_;
  }

 private:
  FakeRegistry(std::unique_ptr<httplib::Server> server, std::string scheme)
      : server_(std::move(server)), scheme_(std::move(scheme)) {
    server_->set_tcp_nodelay(true);  // else each answer waits for the client's delayed acknowledgement
    server_->Get(".*", [this](const httplib::Request& request, httplib::Response& response) {
      Answer answer = AnswerTo(request);
      absl::SleepFor(answer.after);
      response.status = answer.status;
      for (const auto& [name, value] : answer.headers) response.set_header(name, value);
      if (!answer.chunked) return response.set_content(answer.body, "application/json");
      response.set_chunked_content_provider(
          "application/json", [body = answer.body](size_t offset, httplib::DataSink& sink) {
            constexpr size_t kChunk = 7;
            if (offset >= body.size()) {
              sink.done();
              return true;
            }
            return sink.write(body.data() + offset, std::min(kChunk, body.size() - offset));
          });
    });
    port_ = server_->bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_->listen_after_bind(); });
    while (!server_->is_running()) absl::SleepFor(absl::Milliseconds(1));
  }

  Answer AnswerTo(const httplib::Request& request) {
    const std::lock_guard<std::mutex> lock(mutex_);
    paths_.push_back(request.target);
    authorization_ = request.get_header_value("Authorization");
    if (all_ != nullptr) return *all_;
    if (compute_ != nullptr) return compute_(request.target);
    const auto found = answers_.find(request.target);
    if (found != answers_.end()) return found->second;
    return {404, R"({"error_code":40403,"message":"Schema not found"})"};
  }

  const std::unique_ptr<httplib::Server> server_;
  const std::string scheme_;
  int port_ = 0;
  std::thread thread_;
  mutable std::mutex mutex_;
  std::map<std::string, Answer> answers_;
  std::shared_ptr<const Answer> all_;
  std::function<Answer(const std::string&)> compute_;
  std::vector<std::string> paths_;
  std::string authorization_;
};

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_FAKE_REGISTRY_H_
