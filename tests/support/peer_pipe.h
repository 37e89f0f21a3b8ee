// Two ends of a conversation in one process.
#ifndef LETHE_TESTS_SUPPORT_PEER_PIPE_H_
#define LETHE_TESTS_SUPPORT_PEER_PIPE_H_

#include <condition_variable>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "lethe/reconcile.h"

namespace lethe::test {

// What one end writes, the other reads. An end that is destroyed has gone. Each end belongs to one thread.
class PeerPipe : public PeerChannel {
 public:
  static std::pair<std::unique_ptr<PeerPipe>, std::unique_ptr<PeerPipe>> Make() {
    auto there = std::make_shared<Flow>();
    auto back = std::make_shared<Flow>();
    return {std::make_unique<PeerPipe>(there, back), std::make_unique<PeerPipe>(back, there)};
  }

  struct Flow {
    std::mutex mutex;
    std::condition_variable changed;
    std::string bytes;
    size_t read = 0;
    bool closed = false;
  };

  PeerPipe(std::shared_ptr<Flow> out, std::shared_ptr<Flow> in) : out_(std::move(out)), in_(std::move(in)) {}
  ~PeerPipe() override {
    for (Flow* flow : {out_.get(), in_.get()}) {
      const std::lock_guard<std::mutex> lock(flow->mutex);
      flow->closed = true;
      flow->changed.notify_all();
    }
  }

  // Sees, and may change, all that this end writes. What it shortens is the last that is written.
  std::function<std::string(std::string)> tamper;
  // How long the other end may be silent.
  absl::Duration patience = absl::InfiniteDuration();

  absl::Status Write(absl::string_view bytes) override {
    const std::string written = tamper ? tamper(std::string(bytes)) : std::string(bytes);
    const std::lock_guard<std::mutex> lock(out_->mutex);
    if (out_->closed) return absl::UnavailableError("the peer has gone");
    out_->bytes += written;
    out_->changed.notify_all();
    if (written.size() < bytes.size()) return absl::UnavailableError("this end is dead");
    return absl::OkStatus();
  }

  absl::Status Read(char* to, size_t size) override {
    std::unique_lock<std::mutex> lock(in_->mutex);
    const auto comes = [&] { return in_->closed || in_->bytes.size() - in_->read >= size; };
    if (patience == absl::InfiniteDuration()) {
      in_->changed.wait(lock, comes);
    } else if (!in_->changed.wait_for(lock, absl::ToChronoMilliseconds(patience), comes)) {
      return absl::DeadlineExceededError("the peer is silent");
    }
    if (in_->bytes.size() - in_->read < size) return absl::UnavailableError("the peer has gone");
    std::memcpy(to, in_->bytes.data() + in_->read, size);
    in_->read += size;
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<Flow> out_;
  const std::shared_ptr<Flow> in_;
};

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_PEER_PIPE_H_
