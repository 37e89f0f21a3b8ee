#include "src/cli/terminal/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "src/cli/terminal/json_text.h"
#include "src/cli/terminal/plain_text.h"
#include "src/cli/terminal/terminal.h"
#include "src/sync/mutex.h"

namespace lethe {
namespace {

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

absl::string_view View(spdlog::string_view_t text) { return {text.data(), text.size()}; }

void Append(absl::string_view text, spdlog::memory_buf_t& line) {
  line.append(text.data(), text.data() + text.size());
}

class JsonLines : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& line) override {
    Append(absl::StrCat(
               "{\"time\":\"",
               absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromChrono(message.time), absl::UTCTimeZone()),
               "\",\"level\":\"", View(spdlog::level::to_string_view(message.level)),
               "\",\"message\":", JsonString(View(message.payload)), "}\n"),
           line);
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<JsonLines>(); }
};

// A message may contain a record's text, which must not forge log lines.
class OneLine : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& line) override {
    Append(Printable(View(message.payload)), line);
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<OneLine>();
  }
};

// Lines on stderr, and the footer beneath them.
class LogSink : public spdlog::sinks::stderr_color_sink_mt {
 public:
  explicit LogSink(LogFormat format) : has_footer_(format == LogFormat::kText && CanRedraw(STDERR_FILENO)) {
    // spdlog does not know the settings that ask for no colour.
    if (!TextStyle::Of(STDERR_FILENO).colour) set_color_mode(spdlog::color_mode::never);
  }

  void log(const spdlog::details::log_msg& message) override {
    const MutexLock lock(footer_mutex_);
    if (!footer_.empty()) Write("\r\033[K");
    spdlog::sinks::stderr_color_sink_mt::log(message);
    if (!footer_.empty()) Write(footer_);
  }

  void SetFooter(absl::string_view line) {
    const MutexLock lock(footer_mutex_);
    if (!has_footer_ || line == footer_) return;
    footer_ = std::string(line);
    Write(absl::StrCat("\r", footer_, "\033[K"));
  }

  bool has_footer() const { return has_footer_; }

 private:
  static void Write(absl::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  }

  const bool has_footer_;
  Mutex footer_mutex_;
  std::string footer_ ABSL_GUARDED_BY(footer_mutex_);
};

std::shared_ptr<LogSink>& Sink() {
  static auto* const sink = new std::shared_ptr<LogSink>();
  return *sink;
}

}  // namespace

std::unique_ptr<spdlog::formatter> NewLogFormatter(LogFormat format) {
  if (format == LogFormat::kJson) return std::make_unique<JsonLines>();
  auto text = std::make_unique<spdlog::pattern_formatter>();
  text->add_flag<OneLine>('*').set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %*");
  return text;
}

void StartLog(const LogOptions& options) {
  Sink() = std::make_shared<LogSink>(options.format);
  auto logger = std::make_shared<spdlog::logger>("lethe", Sink());
  logger->set_formatter(NewLogFormatter(options.format));
  logger->set_level(SpdlogLevel(options.level));
  spdlog::set_default_logger(std::move(logger));
}

void SetLogFooter(absl::string_view line) { Sink()->SetFooter(line); }

bool LogHasFooter() { return Sink()->has_footer(); }

}  // namespace lethe
