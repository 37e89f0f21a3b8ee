// The two sides of `lethe reconcile` in conversation: words, signs of life, and the end.
#ifndef LETHE_SRC_CLI_RECONCILE_RECONCILE_TALK_H_
#define LETHE_SRC_CLI_RECONCILE_RECONCILE_TALK_H_

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "lethe/reconcile.h"
#include "src/cli/reconcile/peer_process.h"
#include "src/cli/reconcile/reconcile_messages.h"
#include "src/cli/terminal/terminal.h"

namespace lethe {

// Thread-compatible.
class ReconcileTalk {
 public:
  // `timeout`: how long the peer may work without progress. `shows`: how far both are is shown on stderr, if
  // that is a terminal.
  ReconcileTalk(Reconciliation& peers, const FileChannel& channel, const std::atomic<bool>& interrupted,
                absl::Duration timeout, bool shows)
      : peers_(peers), channel_(channel), interrupted_(interrupted), timeout_(timeout) {
    if (shows) progress_.emplace("records");
  }

  Reconciliation& peers() { return peers_; }

  absl::Status Send(ReconcileWord word, absl::string_view payload = "");
  // The next message, which is to be one of these, but for signs of life. Aborted: the peer says that it has
  // failed; DataLoss: it is another; DeadlineExceeded: signs of life alone come, and for as long as the
  // timeout they say of no progress.
  absl::StatusOr<std::pair<ReconcileWord, std::string>> Receive(std::initializer_list<ReconcileWord> words);

  // Both sides say the same word; `own` becomes the other's.
  template <class Message>
  absl::Status Exchange(ReconcileWord word, const Message& own, Message& others) {
    if (absl::Status sent = Send(word, Encode(own)); !sent.ok()) return sent;
    return Receive(word, others);
  }
  template <class Message>
  absl::Status Receive(ReconcileWord word, Message& to) {
    const auto message = Receive({word});
    if (!message.ok()) return message.status();
    return Decode(message->second, to) ? absl::OkStatus() : Contradiction();
  }
  static absl::Status Contradiction() {
    return absl::DataLossError("the peer's messages contradict each other, or are none of lethe's");
  }

  // To be called often while this side works, with how much of it is done. False: it is to end, and status()
  // says why.
  bool Alive(int64_t done = 0, int64_t total = 0);
  const absl::Status& status() const { return status_; }

  // Tells the peer why this side ends, unless it cannot or need not know. True: it has got it.
  bool Fail(const absl::Status& why);

 private:
  void Show(int64_t done, int64_t total, absl::string_view note = "");

  Reconciliation& peers_;
  const FileChannel& channel_;
  const std::atomic<bool>& interrupted_;
  const absl::Duration timeout_;
  std::optional<ProgressLine> progress_;
  absl::Time next_sign_ = absl::InfinitePast();
  absl::Status status_;
  bool peer_has_failed_ = false;
};

}  // namespace lethe

#endif  // LETHE_SRC_CLI_RECONCILE_RECONCILE_TALK_H_
