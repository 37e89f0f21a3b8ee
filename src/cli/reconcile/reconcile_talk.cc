#include "src/cli/reconcile/reconcile_talk.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/pipeline/clock/steady_time.h"
#include "src/reconcile/message.h"
#include "src/text/format.h"

namespace lethe {
namespace {

constexpr absl::Duration kBetweenSigns = absl::Milliseconds(500);
// Progress is this part of the peer's work, so the work takes at most as many times the timeout.
constexpr int64_t kStepsOfWork = 10'000;
constexpr size_t kMostOfReason = 2000;

// Whether the figures of the peer's signs of life grow. One object for one wait.
class PeerProgress {
 public:
  bool Grows(int64_t done, int64_t total) {
    if (total <= 0 || done > total) return false;
    if (total_ == 0) total_ = total;
    // Who may enlarge the work may never end it.
    if (total != total_ || done < due_) return false;
    due_ = done + std::max<int64_t>(total / kStepsOfWork, 1);
    return true;
  }

 private:
  int64_t total_ = 0;
  int64_t due_ = 1;
};

}  // namespace

absl::Status ReconcileTalk::Send(ReconcileWord word, absl::string_view payload) {
  absl::Status sent =
      peers_.Send(absl::StrCat(MessageWriter().Word(static_cast<uint64_t>(word)).Take(), payload));
  if (sent.ok() || channel_.is_broken()) return sent;
  // It has gone; perhaps it has said why.
  const absl::Status said = Receive({}).status();
  return absl::IsAborted(said) ? said : sent;
}

absl::StatusOr<std::pair<ReconcileWord, std::string>> ReconcileTalk::Receive(
    std::initializer_list<ReconcileWord> words) {
  PeerProgress progress;
  absl::Time deadline = SteadyNow() + timeout_;
  for (;;) {
    const absl::StatusOr<std::string> message = peers_.Receive();
    if (!message.ok()) return message.status();
    MessageReader fields(*message);
    const auto word = static_cast<ReconcileWord>(fields.Word());
    if (!fields.ok()) return Contradiction();
    const absl::string_view payload = absl::string_view(*message).substr(sizeof(uint64_t));
    if (word == ReconcileWord::kFailed) {
      peer_has_failed_ = true;
      return absl::AbortedError(absl::StrCat("the peer has failed: ", payload.substr(0, kMostOfReason)));
    }
    if (word == ReconcileWord::kAlive) {
      std::vector<int64_t> figures(2);
      if (!Decode(payload, figures)) return Contradiction();
      if (progress.Grows(figures[0], figures[1])) deadline = SteadyNow() + timeout_;
      if (SteadyNow() > deadline) {
        return absl::DeadlineExceededError(
            absl::StrCat("the peer answers, but has made no progress for ", DurationText(timeout_),
                         ": it waits for its brokers, or is slow; --timeout says how long to wait"));
      }
      Show(figures[0], figures[1], "by the peer");
      continue;
    }
    if (std::find(words.begin(), words.end(), word) == words.end()) return Contradiction();
    if (progress_) progress_->Clear();
    return std::make_pair(word, std::string(payload));
  }
}

void ReconcileTalk::Show(int64_t done, int64_t total, absl::string_view note) {
  if (progress_ && total > 0) progress_->Show(done, total, note);
}

bool ReconcileTalk::Alive(int64_t done, int64_t total) {
  if (!status_.ok()) return false;
  if (interrupted_.load()) status_ = absl::CancelledError("interrupted");
  Show(done, total);
  if (status_.ok() && SteadyNow() >= next_sign_) {
    next_sign_ = SteadyNow() + kBetweenSigns;
    status_ = Send(ReconcileWord::kAlive, Encode(std::vector<int64_t>{done, total}));
  }
  return status_.ok();
}

bool ReconcileTalk::Fail(const absl::Status& why) {
  if (channel_.is_broken() || peer_has_failed_) return false;
  return Send(ReconcileWord::kFailed, why.message()).ok();
}

}  // namespace lethe
