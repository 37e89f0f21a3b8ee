#include "tests/support/redis_server.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "src/pipeline/clock/steady_time.h"
#include "tests/support/free_port.h"

namespace lethe::test {
namespace {

constexpr absl::Duration kRedisStartTimeout = absl::Seconds(30);

struct Free {
  void operator()(redisContext* context) const { redisFree(context); }
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};

std::string TextOf(const redisReply& reply) {
  switch (reply.type) {
    case REDIS_REPLY_INTEGER:
      return absl::StrCat(reply.integer);
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
      return std::string(reply.str, reply.len);
    default:
      return "(nil)";
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<RedisServer>> RedisServer::Start(std::vector<std::string> args) {
  std::string folder = (std::filesystem::temp_directory_path() / "lethe-redis-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return absl::InternalError("mkdtemp");
  std::unique_ptr<RedisServer> server(new RedisServer(folder, FreePort(), std::move(args)));
  if (absl::Status started = server->Restart(); !started.ok()) return started;
  return server;
}

RedisServer::~RedisServer() {
  process_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void RedisServer::Kill() { process_.reset(); }

absl::Status RedisServer::Restart() {
  ProcessOptions options;
  options.args = {"redis-server", "--bind", "127.0.0.1",    "--port", absl::StrCat(port_), "--dir", folder_,
                  "--save",       "",       "--appendonly", "yes",    "--appendfsync",     "always"};
  options.args.insert(options.args.end(), args_.begin(), args_.end());
  options.stdout_file = options.stderr_file = absl::StrCat(folder_, "/log");
  auto process = Process::Start(options);
  if (!process.ok()) return process.status();
  process_ = *std::move(process);
  const absl::Time deadline = SteadyNow() + kRedisStartTimeout;
  for (;;) {
    const absl::Status answer = Command({"PING"}).status();
    if (answer.ok() || absl::StrContains(answer.message(), "NOAUTH")) return absl::OkStatus();
    if (!process_->Running() || SteadyNow() > deadline) {
      return absl::UnavailableError(
          absl::StrCat("redis-server (Debian's package redis-server) does not answer: ", answer.message(),
                       "\n", process_->Stdout()));
    }
    absl::SleepFor(absl::Milliseconds(10));
  }
}

absl::StatusOr<std::vector<std::string>> RedisServer::Command(const std::vector<std::string>& command) const {
  const std::unique_ptr<redisContext, Free> context(redisConnectWithTimeout("127.0.0.1", port_, {2, 0}));
  if (context == nullptr || context->err != 0) {
    return absl::UnavailableError(context == nullptr ? "no memory" : context->errstr);
  }
  std::vector<const char*> parts;
  std::vector<size_t> sizes;
  for (const std::string& part : command) {
    parts.push_back(part.data());
    sizes.push_back(part.size());
  }
  const std::unique_ptr<redisReply, Free> reply(static_cast<redisReply*>(
      redisCommandArgv(context.get(), static_cast<int>(parts.size()), parts.data(), sizes.data())));
  if (reply == nullptr) return absl::UnavailableError(context->errstr);
  if (reply->type == REDIS_REPLY_ERROR) return absl::InternalError(std::string(reply->str, reply->len));
  std::vector<std::string> texts;
  if (reply->type != REDIS_REPLY_ARRAY) texts.push_back(TextOf(*reply));
  for (size_t i = 0; i < reply->elements; ++i) texts.push_back(TextOf(*reply->element[i]));
  return texts;
}

std::map<std::string, std::string> RedisServer::Hash(const std::string& key) const {
  std::map<std::string, std::string> hash;
  const absl::StatusOr<std::vector<std::string>> texts = Command({"HGETALL", key});
  if (!texts.ok()) return {{"error", std::string(texts.status().message())}};
  for (size_t i = 0; i + 1 < texts->size(); i += 2) hash[(*texts)[i]] = (*texts)[i + 1];
  return hash;
}

}  // namespace lethe::test
