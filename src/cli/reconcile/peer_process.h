// The peer of a conversation: a command that this process starts, or its parent.
#ifndef LETHE_SRC_CLI_RECONCILE_PEER_PROCESS_H_
#define LETHE_SRC_CLI_RECONCILE_PEER_PROCESS_H_

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "lethe/reconcile.h"

namespace lethe {

// A command that /bin/sh runs, with pipes to its standard input and from its standard output; its standard
// error is this process's. Ended when the object is. Thread-compatible.
class PeerProcess {
 public:
  static absl::StatusOr<std::unique_ptr<PeerProcess>> Start(const std::string& command);
  // Closes the pipes, which is its sign to end; after a while SIGTERM, after another one SIGKILL.
  ~PeerProcess();
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  int in() const { return in_; }    // to read from
  int out() const { return out_; }  // to write to

  // Whether it ends within `patience`; its exit code then, or 128 + the signal.
  bool Ends(absl::Duration patience, int& exit_code);

 private:
  PeerProcess(pid_t pid, int pidfd, int in, int out) : pid_(pid), pidfd_(pidfd), in_(in), out_(out) {}

  const pid_t pid_;
  const int pidfd_;  // readable once it has ended
  const int in_;
  const int out_;
  bool ended_ = false;
  int exit_code_ = 0;
};

// Two files as a channel. Where the peer does not read while this side writes, what the peer writes is taken
// meanwhile, so that two that write at once do not wait for each other. Thread-compatible.
class FileChannel : public PeerChannel {
 public:
  // `patience`: how long 64 KiB may take, or what is less, in either direction. `go_on` is asked several
  // times a second while the peer is waited for; false ends the waiting. `why_gone` explains the end of the
  // peer.
  FileChannel(int in, int out, absl::Duration patience, std::function<bool()> go_on,
              std::function<std::string()> why_gone);

  absl::Status Write(absl::string_view bytes) override;
  absl::Status Read(char* to, size_t size) override;

  // Whether it has failed, or was interrupted, so that nothing more can be said to the peer.
  bool is_broken() const { return is_broken_; }

 private:
  absl::Status Await(bool to_write, absl::Time deadline);
  absl::Status TakeWhatComes();
  absl::Status Broken(absl::Status status);

  const int in_;
  const int out_;
  const absl::Duration patience_;
  const std::function<bool()> go_on_;
  const std::function<std::string()> why_gone_;
  std::string inbox_;  // came while this side wrote
  bool has_ended_ = false;
  bool is_broken_ = false;
};

}  // namespace lethe

#endif  // LETHE_SRC_CLI_RECONCILE_PEER_PROCESS_H_
