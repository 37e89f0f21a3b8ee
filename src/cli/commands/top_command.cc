#include "src/cli/commands/top_command.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "connectors/http/http_client.h"
#include "src/cli/terminal/top_screen.h"

namespace lethe {
namespace {

constexpr absl::Duration kEvery = absl::Seconds(1);

void Write(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

TopScreenOptions Terminal() {
  TopScreenOptions options;
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    options.width = size.ws_col;
    options.height = size.ws_row - 1;  // the cursor's own line
  }
  const char* no_color = std::getenv("NO_COLOR");  // NOLINT(concurrency-mt-unsafe): nobody calls setenv
  options.has_keys = isatty(STDIN_FILENO) != 0;
  options.colors = no_color == nullptr || *no_color == '\0';
  return options;
}

// The terminal's second screen, keys that come one by one, and signals that are waited for; all as it was
// at the end.
class FullScreen {
 public:
  FullScreen() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    signals_ = signalfd(-1, &signals, SFD_CLOEXEC);
    has_keys_ = tcgetattr(STDIN_FILENO, &before_) == 0;
    if (has_keys_) {
      termios keys = before_;
      keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      tcsetattr(STDIN_FILENO, TCSANOW, &keys);
    }
    Write("\033[?1049h\033[?25l");
  }
  ~FullScreen() {
    Write("\033[?25h\033[?1049l");
    if (has_keys_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
    close(signals_);
  }

  // The keys that were pressed; empty once the time has come. "q" if the user wants to end, by a signal, too.
  std::string WaitUntil(absl::Time next) const {
    while (true) {
      const int64_t left = absl::ToInt64Milliseconds(next - absl::Now());
      if (left <= 0) return "";
      pollfd fds[] = {{signals_, POLLIN, 0}, {has_keys_ ? STDIN_FILENO : -1, POLLIN, 0}};
      if (poll(fds, 2, static_cast<int>(left) + 1) <= 0) continue;
      if (fds[0].revents != 0) return "q";
      char keys[32];
      const ssize_t size = read(STDIN_FILENO, keys, sizeof keys);
      return size <= 0 ? "q" : std::string(keys, static_cast<size_t>(size));
    }
  }

 private:
  int signals_ = -1;
  bool has_keys_ = false;
  termios before_ = {};
};

// What keys ask for; false: to end. Those that are not letters come as sequences.
bool Obey(absl::string_view keys, TopScreen& screen) {
  const int page = std::max(Terminal().height - 8, 1);
  const std::pair<absl::string_view, int> scrolls[] = {{"\033[A", -1},     {"\033OA", -1},    {"k", -1},
                                                       {"\033[B", 1},      {"\033OB", 1},     {"j", 1},
                                                       {"\033[5~", -page}, {"\033[6~", page}, {" ", page}};
  while (!keys.empty()) {
    bool is_known = false;
    for (const auto& [key, by] : scrolls) {
      is_known = absl::ConsumePrefix(&keys, key);
      if (!is_known) continue;
      screen.Scroll(by);
      break;
    }
    if (is_known) continue;
    if (keys[0] == 'q' || keys[0] == 'Q') return false;
    if (keys[0] == 's' || keys[0] == 'S') screen.SortByNext();
    keys.remove_prefix(1);
  }
  return true;
}

}  // namespace

absl::Status RunTop(const TopCommandOptions& options) {
  TopScreen screen;
  const auto ask = [&]() -> absl::StatusOr<std::string> {
    return http::HttpGet(options.http.host, options.http.port, "/status");
  };
  absl::StatusOr<std::string> answer = ask();
  if (!answer.ok()) {
    return absl::UnavailableError(
        absl::StrCat(answer.status().message(), "; pass the --http address that was given to `lethe run`"));
  }
  if (options.once || !isatty(STDOUT_FILENO)) {
    // Rates need a second answer.
    const absl::StatusOr<std::string> first = screen.Draw(*answer, absl::Now(), {});
    if (!first.ok()) return first.status();
    absl::SleepFor(kEvery);
    answer = ask();
    if (!answer.ok()) return answer.status();
    const absl::StatusOr<std::string> text =
        screen.Draw(*answer, absl::Now(), {.width = 200, .height = 1 << 20, .colors = false});
    if (!text.ok()) return text.status();
    Write(*text);
    return absl::OkStatus();
  }
  const FullScreen full_screen;
  absl::Time next = absl::Now();
  absl::Time answered = next;
  do {
    if (answer.ok()) {
      answered = absl::Now();
      const absl::StatusOr<std::string> text = screen.Draw(*answer, answered, Terminal());
      if (!text.ok()) return text.status();
      Write(absl::StrCat("\033[H\033[J", *text));
    } else {
      // In the place of the state: the figures below are of the last answer.
      const std::string gone =
          absl::StrCat("no answer since ", absl::FormatTime("%H:%M:%S", answered, absl::LocalTimeZone()),
                       ", ", answer.status().message());
      Write(absl::StrCat("\033[H\033[K", gone.substr(0, static_cast<size_t>(Terminal().width)), "\n"));
    }
    next = std::max(next + kEvery, absl::Now());
    for (std::string keys; !(keys = full_screen.WaitUntil(next)).empty();) {
      if (!Obey(keys, screen)) return absl::OkStatus();
      const absl::StatusOr<std::string> text = screen.Redraw(Terminal());
      if (!text.ok()) return text.status();
      if (answer.ok()) Write(absl::StrCat("\033[H\033[J", *text));
    }
    answer = ask();
  } while (true);
}

}  // namespace lethe
