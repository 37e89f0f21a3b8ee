// What is logged meanwhile, a line each.
#ifndef LETHE_TESTS_SUPPORT_LOG_OF_H_
#define LETHE_TESTS_SUPPORT_LOG_OF_H_

#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

namespace lethe {

inline std::string LogOf(spdlog::level::level_enum least, const std::function<void()>& run) {
  std::ostringstream said;
  const auto before = spdlog::default_logger();
  auto logger =
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(said));
  logger->set_level(least);
  logger->set_pattern("%v");
  spdlog::set_default_logger(std::move(logger));
  run();
  spdlog::set_default_logger(before);
  return said.str();
}

inline std::string WarningsOf(const std::function<void()>& run) { return LogOf(spdlog::level::warn, run); }

}  // namespace lethe

#endif  // LETHE_TESTS_SUPPORT_LOG_OF_H_
