#include "src/cli/reconcile/peer_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/pipeline/clock/steady_time.h"
#include "src/text/format.h"

namespace lethe {
namespace {

constexpr int kAskMs = 100;
constexpr size_t kMostInInbox = size_t{1} << 20;
constexpr size_t kPiece = size_t{64} << 10;
constexpr absl::Duration kLeave = absl::Seconds(2);

// Begins again after each piece, not after each byte: who sends byte by byte could go on for ever.
class Patience {
 public:
  explicit Patience(absl::Duration of_piece) : of_piece_(of_piece) {}
  absl::Time deadline() const { return deadline_; }
  void Moved(size_t bytes) {
    moved_ += bytes;
    if (moved_ < kPiece) return;
    moved_ %= kPiece;
    deadline_ = SteadyNow() + of_piece_;
  }

 private:
  const absl::Duration of_piece_;
  size_t moved_ = 0;
  absl::Time deadline_ = SteadyNow() + of_piece_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PeerProcess>> PeerProcess::Start(const std::string& command) {
  int to[2];
  int from[2];
  if (pipe2(to, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "a pipe to the peer");
  if (pipe2(from, O_CLOEXEC) != 0) {
    const absl::Status status = absl::ErrnoToStatus(errno, "a pipe from the peer");
    close(to[0]), close(to[1]);
    return status;
  }
  const pid_t pid = fork();
  if (pid == 0) {
    // Only calls that are safe between fork and exec. What is ignored here would be ignored there.
    signal(SIGPIPE, SIG_DFL);
    dup2(to[0], STDIN_FILENO);
    dup2(from[1], STDOUT_FILENO);
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  const int error = errno;
  close(to[0]), close(from[1]);
  const int pidfd = pid < 0 ? -1 : static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (pidfd >= 0) return std::unique_ptr<PeerProcess>(new PeerProcess(pid, pidfd, from[0], to[1]));
  close(from[0]), close(to[1]);
  if (pid < 0) return absl::ErrnoToStatus(error, "starting the peer");
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  return absl::InternalError("the system has no pidfd_open(2)");
}

PeerProcess::~PeerProcess() {
  close(in_), close(out_);
  int code = 0;
  for (const int signal : {SIGTERM, SIGKILL}) {
    if (Ends(kLeave, code)) break;
    kill(pid_, signal);
  }
  Ends(absl::InfiniteDuration(), code);
  close(pidfd_);
}

bool PeerProcess::Ends(absl::Duration patience, int& exit_code) {
  const absl::Time deadline = SteadyNow() + patience;
  while (!ended_) {
    pollfd ended = {pidfd_, POLLIN, 0};
    poll(&ended, 1, kAskMs);
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      ended_ = true;
      exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    } else if (SteadyNow() > deadline) {
      return false;
    }
  }
  exit_code = exit_code_;
  return true;
}

FileChannel::FileChannel(int in, int out, absl::Duration patience, std::function<bool()> go_on,
                         std::function<std::string()> why_gone)
    : in_(in), out_(out), patience_(patience), go_on_(std::move(go_on)), why_gone_(std::move(why_gone)) {
  for (const int file : {in, out}) fcntl(file, F_SETFL, fcntl(file, F_GETFL) | O_NONBLOCK);
}

absl::Status FileChannel::Broken(absl::Status status) {
  is_broken_ = true;
  return status;
}

// Until this side may write, or something has come.
absl::Status FileChannel::Await(bool to_write, absl::Time deadline) {
  for (;;) {
    if (!go_on_()) return Broken(absl::CancelledError("interrupted"));
    // Whatever comes meanwhile: bytes one by one do not prolong the waiting.
    if (SteadyNow() > deadline) {
      return Broken(absl::DeadlineExceededError(absl::StrCat(
          "the peer ", to_write ? "has taken" : "has sent", " nothing for ", DurationText(patience_),
          ", or too little: it hangs, or is slow; raise --timeout to wait longer")));
    }
    const bool reads = !has_ended_ && inbox_.size() < kMostInInbox;
    pollfd files[] = {{reads ? in_ : -1, POLLIN, 0}, {to_write ? out_ : -1, POLLOUT, 0}};
    if (poll(files, 2, kAskMs) <= 0) continue;
    return files[0].revents == 0 ? absl::OkStatus() : TakeWhatComes();
  }
}

absl::Status FileChannel::TakeWhatComes() {
  const size_t before = inbox_.size();
  inbox_.resize(before + kPiece);
  const ssize_t size = read(in_, inbox_.data() + before, kPiece);
  const int error = errno;
  inbox_.resize(before + static_cast<size_t>(std::max<ssize_t>(size, 0)));
  if (size == 0) has_ended_ = true;
  if (size >= 0 || error == EAGAIN || error == EINTR) return absl::OkStatus();
  return Broken(absl::ErrnoToStatus(error, "reading from the peer"));
}

absl::Status FileChannel::Write(absl::string_view bytes) {
  Patience patience(patience_);
  while (!bytes.empty()) {
    const ssize_t size = write(out_, bytes.data(), bytes.size());
    if (size > 0) {
      bytes.remove_prefix(static_cast<size_t>(size));
      patience.Moved(static_cast<size_t>(size));
    } else if (errno == EPIPE) {
      // Its last message may still be there to read.
      return absl::UnavailableError(absl::StrCat("the peer has gone", why_gone_()));
    } else if (errno != EAGAIN && errno != EINTR) {
      return Broken(absl::ErrnoToStatus(errno, "writing to the peer"));
    } else if (absl::Status status = Await(/*to_write=*/true, patience.deadline()); !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

absl::Status FileChannel::Read(char* to, size_t size) {
  Patience patience(patience_);
  while (size > 0) {
    if (inbox_.empty()) {
      if (has_ended_) return Broken(absl::UnavailableError(absl::StrCat("the peer has gone", why_gone_())));
      if (absl::Status status = Await(/*to_write=*/false, patience.deadline()); !status.ok()) return status;
      continue;
    }
    const size_t taken = std::min(size, inbox_.size());
    std::memcpy(to, inbox_.data(), taken);
    inbox_.erase(0, taken);
    to += taken;
    size -= taken;
    patience.Moved(taken);
  }
  return absl::OkStatus();
}

}  // namespace lethe
