#include "connectors/redis/redis_store.h"

#include <poll.h>
#include <signal.h>
#include <sys/time.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace lethe::redis {
namespace {

// Short enough for a prompt stop, and long enough for a Redis that forks or is busy.
constexpr timeval kConnectTimeout = {1, 0};
constexpr absl::Duration kSendTimeout = absl::Seconds(10);
constexpr absl::Duration kReplyTimeout = absl::Seconds(2);
// Of one wait: lethe may be stopped meanwhile.
constexpr timeval kTurn = {0, 50'000};
// The longest is that of INFO. A position has at most 19 digits.
constexpr size_t kMostReplyBytes = 64 << 10;
constexpr size_t kMostBytesPerPosition = 32;
constexpr size_t kMostErrorBytes = 300;

// What both scripts begin with. Where a hash has fewer keys than the last batch left in it, somebody has
// deleted some, and changes would be added to what is not there: all is deleted, to be filled again.
constexpr char kScriptBegin[] = R"lua(
local values, positions, counts = KEYS[1], KEYS[2], KEYS[3]

local function lacks(hash, name)
  local least = redis.call('HGET', counts, name)
  return least and redis.call('HLEN', hash) < (tonumber(least) or 0)
end

-- False: nothing was deleted.
local function reset_if_damaged(partitions)
  local is_damaged = lacks(values, '')
  for _, partition in ipairs(partitions) do
    is_damaged = is_damaged or lacks(values .. ':totals:' .. partition, partition)
  end
  if not is_damaged then return false end
  for _, hash in ipairs({positions, counts}) do
    for _, partition in ipairs(redis.call('HKEYS', hash)) do
      redis.call('UNLINK', values .. ':totals:' .. partition)
    end
  end
  redis.call('UNLINK', values, positions, counts)
  return true
end
)lua";

// KEYS: the values, the positions, the numbers of keys. ARGV: INPUT/PARTITION for each partition. Returns
// their positions.
constexpr char kPositionsScript[] = R"lua(
reset_if_damaged(ARGV)
local found = {}
for i, partition in ipairs(ARGV) do found[i] = redis.call('HGET', positions, partition) or '0' end
return found
)lua";

// KEYS: the values, the positions, the numbers of keys, the totals of this partition. ARGV: INPUT/PARTITION,
// from, to, and then keys and totals; an empty total is one that was deleted. Returns the position.
//
// A script that fails is not rolled back, so all checks come before the first write; Redis checks its memory
// only before that one. Numbers are doubles in Lua, so HINCRBY adds; a sum beyond 64 bits is the text
// `overflow` until a later total of its key brings it back.
constexpr char kScript[] = R"lua(
local shard = KEYS[4]
for _, key in ipairs(KEYS) do
  local kind = redis.call('TYPE', key)['ok']
  if kind ~= 'none' and kind ~= 'hash' then
    return redis.error_reply('WRONGTYPE ' .. key .. ' is a ' .. kind .. ', and no hash of lethe')
  end
end
local position = redis.call('HGET', positions, ARGV[1]) or '0'
if position ~= ARGV[2] then return position end
if reset_if_damaged({ARGV[1]}) then return '0' end

-- Writes the sum over all partitions, with this total, or none, in this one.
local function write_sum(key, total)
  local parts = {}
  if total then parts[1] = total end
  for _, partition in ipairs(redis.call('HKEYS', positions)) do
    local name = values .. ':totals:' .. partition
    local other = name ~= shard and redis.call('HGET', name, key)
    if other then parts[#parts + 1] = other end
  end
  if #parts == 0 then return redis.call('HDEL', values, key) end
  redis.call('HSET', values, key, parts[1])
  for i = 2, #parts do
    if type(redis.pcall('HINCRBY', values, key, parts[i])) ~= 'number' then
      return redis.call('HSET', values, key, 'overflow')
    end
  end
end

-- 15 digits are exact in a double, and so is the difference of two such numbers.
local function fits(total) return not total or #total < 16 end

for i = 4, #ARGV, 2 do
  local key, total = ARGV[i], ARGV[i + 1]
  local before = redis.call('HGET', shard, key)
  if total == '' then
    write_sum(key, false)
    redis.call('HDEL', shard, key)
  elseif total ~= before then
    local added = false
    if fits(total) and fits(before) then
      local change = string.format('%.0f', tonumber(total) - tonumber(before or '0'))
      local value = redis.pcall('HINCRBY', values, key, change)
      -- What is the change alone may have been missing.
      added = type(value) == 'number' and not (before and value == tonumber(change))
    end
    -- The sum is beyond 64 bits, was, was missing, or is no number of lethe's.
    if not added then write_sum(key, total) end
    redis.call('HSET', shard, key, total)
  end
end
redis.call('HSET', positions, ARGV[1], ARGV[3])
redis.call('HSET', counts, '', redis.call('HLEN', values), ARGV[1], redis.call('HLEN', shard))
return ARGV[3]
)lua";

std::string NameOf(const RedisAddress& address) {
  return absl::StrCat("redis://", address.host, ":", address.port, "/", address.database);
}

absl::Time Now() {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

// `replies`, which are hiredis' own, with arrays bounded before there is memory for their elements: one array
// of at most as many as the reader's privdata says.
redisReplyObjectFunctions* BoundedReplies(const redisReplyObjectFunctions& replies) {
  // GCC 12 does not see the use in the generic lambda.
  [[maybe_unused]] static const auto create_array = replies.createArray;
  static redisReplyObjectFunctions bounded = [&] {
    redisReplyObjectFunctions functions = replies;
    // The number's type depends on hiredis' version.
    functions.createArray = [](const redisReadTask* task, auto elements) -> void* {
      const size_t most = *static_cast<const size_t*>(task->privdata);
      if (task->parent != nullptr || static_cast<size_t>(elements) > most) return nullptr;
      return create_array(task, elements);
    };
    return functions;
  }();
  return &bounded;
}

bool StartsWithAny(absl::string_view text, std::initializer_list<absl::string_view> words) {
  for (const absl::string_view word : words) {
    if (absl::StartsWith(text, word)) return true;
  }
  return false;
}

}  // namespace

RedisStore::RedisStore(RedisStoreOptions options)
    : options_(std::move(options)),
      name_(NameOf(options_.address)),
      values_(absl::StrCat("lethe:", options_.totals)),
      positions_(absl::StrCat(values_, ":positions")),
      counts_(absl::StrCat(values_, ":keys")) {}

std::string RedisStore::ResetCommand() const {
  const RedisAddress& address = options_.address;
  std::string cli =
      absl::StrCat("redis-cli -h ", address.host, " -p ", address.port, " -n ", address.database);
  if (!address.user.empty()) absl::StrAppend(&cli, " --user '", address.user, "'");
  return absl::StrCat(options_.password.empty() ? "" : "export REDISCLI_AUTH=PASSWORD; ", cli,
                      " --scan --pattern '", values_, ":*' | xargs ", cli, " UNLINK ", values_);
}

absl::StatusOr<int64_t> RedisStore::PositionOf(const redisReply& reply) const {
  int64_t position = 0;
  if (reply.type == REDIS_REPLY_STRING &&
      absl::SimpleAtoi(absl::string_view(reply.str, reply.len), &position) && position >= 0) {
    return position;
  }
  return absl::FailedPreconditionError(
      absl::StrCat(positions_, " has a position that is no offset: another program writes to it. Run `",
                   ResetCommand(), "`; lethe then writes all totals again"));
}

std::string RedisStore::PartitionName(int32_t partition) const {
  return absl::StrCat(options_.input, "/", partition);
}

absl::Status RedisStore::Lost(absl::string_view doing) {
  // A timeout reads "Resource temporarily unavailable".
  const bool timed_out = context_ != nullptr && context_->err == REDIS_ERR_IO &&
                         (errno == EAGAIN || errno == EWOULDBLOCK || errno == ETIMEDOUT);
  const bool is_strange =
      context_ != nullptr && (context_->err == REDIS_ERR_PROTOCOL || context_->err == REDIS_ERR_OOM);
  const std::string why = context_ == nullptr ? "out of memory"
                          : timed_out         ? "no answer"
                                              : std::string(context_->errstr);
  context_.reset();
  if (is_strange) return NoRedis(doing);
  return absl::UnavailableError(absl::StrCat(doing, ": ", why));
}

absl::Status RedisStore::NoAnswer(absl::string_view doing) {
  context_.reset();
  return absl::UnavailableError(absl::StrCat(doing, ": no answer"));
}

absl::Status RedisStore::NoRedis(absl::string_view doing) {
  context_.reset();
  return absl::FailedPreconditionError(absl::StrCat(
      doing,
      ": it answers as no Redis does: see to the host and the port in store, and to who answers there"));
}

absl::Status RedisStore::Refused(absl::string_view reply) const {
  const std::string text(reply.substr(0, kMostErrorBytes));
  if (StartsWithAny(reply,
                    {"NOAUTH", "WRONGPASS", "ERR invalid password", "ERR AUTH", "ERR Client sent AUTH"})) {
    return absl::PermissionDeniedError(
        absl::StrCat("it does not let lethe in (", text, "): see to store_password, and to USER in store"));
  }
  if (absl::StartsWith(reply, "NOPERM")) {
    return absl::PermissionDeniedError(absl::StrCat(
        text, ": grant the user `~", values_, " ~", values_,
        ":* +select +info +script|load +evalsha +type +hget +hset +hdel +hkeys +hincrby +hlen +unlink`"));
  }
  // Before version 7 Redis put a prefix before the error of a command in a script.
  if (absl::StrContains(reply, "OOM command not allowed")) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "it has no memory left (", text, "): raise maxmemory, or delete keys that are not needed"));
  }
  if (absl::StrContains(reply, "READONLY ")) {
    return absl::UnavailableError(absl::StrCat("it is a replica (", text, "): let `store` name the primary"));
  }
  // Temporary: loading, a missing primary, a running script, a full disk.
  if (StartsWithAny(reply, {"LOADING", "MASTERDOWN", "BUSY", "NOREPLICAS", "MISCONF", "NOSCRIPT", "TRYAGAIN",
                            "CLUSTERDOWN", "UNKILLABLE"})) {
    return absl::UnavailableError(text);
  }
  if (StartsWithAny(reply, {"MOVED", "CROSSSLOT"})) {
    return absl::FailedPreconditionError(absl::StrCat(
        "it is a Redis Cluster (", text, "), to which lethe does not write: name a single Redis"));
  }
  return absl::FailedPreconditionError(text);
}

absl::Status RedisStore::Connect() {
  if (context_ != nullptr) return absl::OkStatus();
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  const RedisAddress& address = options_.address;
  context_.reset(redisConnectWithTimeout(address.host.c_str(), address.port, kConnectTimeout));
  if (context_ == nullptr || context_->err != 0) return Lost("connecting");
  if (redisSetTimeout(context_.get(), kTurn) != REDIS_OK) return Lost("connecting");
  redisEnableKeepAlive(context_.get());
  context_->reader->fn = BoundedReplies(*context_->reader->fn);
  context_->reader->privdata = &most_elements_;
  absl::Status status;
  if (!options_.password.empty()) {
    std::vector<absl::string_view> command = {"AUTH"};
    if (!address.user.empty()) command.emplace_back(address.user);
    command.emplace_back(options_.password);
    status = Call(command, REDIS_REPLY_STATUS).status();
  }
  if (status.ok() && address.database != 0) {
    status = Call({"SELECT", absl::StrCat(address.database)}, REDIS_REPLY_STATUS).status();
  }
  if (status.ok()) status = KeepsKeys();
  for (const auto& [script, hash] :
       {std::pair{kPositionsScript, &positions_script_}, std::pair{kScript, &script_}}) {
    if (!status.ok()) break;
    const absl::StatusOr<Reply> loaded =
        Call({"SCRIPT", "LOAD", absl::StrCat(kScriptBegin, script)}, REDIS_REPLY_STRING);
    status = loaded.status();
    if (status.ok()) hash->assign((*loaded)->str, (*loaded)->len);
  }
  if (!status.ok()) context_.reset();
  return status;
}

// Evicted keys would silently miss in sums. The other policies evict only keys that expire; lethe's do not.
absl::Status RedisStore::KeepsKeys() {
  const absl::StatusOr<Reply> info = Call({"INFO", "memory"}, REDIS_REPLY_STRING);
  if (!info.ok()) return info.status();
  const absl::string_view text((*info)->str, (*info)->len);
  if (!absl::StrContains(text, "maxmemory_policy:allkeys-") || absl::StrContains(text, "maxmemory:0\r")) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      "it evicts any key when its memory is full: set maxmemory-policy to noeviction, or to a volatile one");
}

absl::Status RedisStore::Append(const std::vector<absl::string_view>& command) {
  std::vector<const char*> parts;
  std::vector<size_t> sizes;
  for (const absl::string_view part : command) {
    parts.push_back(part.data());
    sizes.push_back(part.size());
  }
  if (redisAppendCommandArgv(context_.get(), static_cast<int>(parts.size()), parts.data(), sizes.data()) !=
      REDIS_OK) {
    return Lost("writing");
  }
  return absl::OkStatus();
}

absl::Status RedisStore::AwaitTurn(int events, absl::Time deadline, absl::string_view doing) {
  pollfd connection = {.fd = context_->fd, .events = static_cast<int16_t>(events), .revents = 0};
  while (!interrupted_) {
    // Errors show in the call that follows.
    if (poll(&connection, 1, static_cast<int>(kTurn.tv_usec / 1000)) > 0) return absl::OkStatus();
    if (Now() >= deadline) return NoAnswer(doing);
  }
  context_.reset();
  return absl::CancelledError(absl::StrCat(doing, ": interrupted"));
}

absl::Status RedisStore::Send() {
  constexpr absl::string_view kDoing = "writing";
  const absl::Time deadline = Now() + kSendTimeout;
  for (int done = 0; done == 0;) {
    if (absl::Status turn = AwaitTurn(POLLOUT, deadline, kDoing); !turn.ok()) return turn;
    errno = 0;
    if (redisBufferWrite(context_.get(), &done) != REDIS_OK) return Lost(kDoing);
  }
  return absl::OkStatus();
}

absl::StatusOr<RedisStore::Reply> RedisStore::NextReply(int type, size_t elements) {
  constexpr absl::string_view kDoing = "waiting for an answer";
  const absl::Time deadline = Now() + kReplyTimeout;
  const size_t most = kMostReplyBytes + elements * kMostBytesPerPosition;
  most_elements_ = elements;
  void* raw = nullptr;
  for (size_t before = 0, read = 0;; read += context_->reader->len - before) {
    errno = 0;
    if (redisGetReplyFromReader(context_.get(), &raw) != REDIS_OK) return Lost(kDoing);
    if (raw != nullptr) break;
    if (read > most) return NoRedis(kDoing);
    if (absl::Status turn = AwaitTurn(POLLIN, deadline, kDoing); !turn.ok()) return turn;
    // A reply that comes in drops makes each wait short.
    if (Now() >= deadline) return NoAnswer(kDoing);
    before = context_->reader->len;
    if (redisBufferRead(context_.get()) != REDIS_OK) return Lost(kDoing);
  }
  Reply reply(static_cast<redisReply*>(raw));
  if (reply->type == REDIS_REPLY_ERROR) {
    // Later replies of the pipeline may be errors, too.
    context_.reset();
    return Refused(absl::string_view(reply->str, reply->len));
  }
  if (reply->type != type || reply->elements != elements) return NoRedis(kDoing);
  return reply;
}

absl::StatusOr<RedisStore::Reply> RedisStore::Call(const std::vector<absl::string_view>& command, int type,
                                                   size_t elements) {
  if (absl::Status appended = Append(command); !appended.ok()) return appended;
  if (absl::Status sent = Send(); !sent.ok()) return sent;
  return NextReply(type, elements);
}

absl::StatusOr<std::vector<int64_t>> RedisStore::Positions(const std::vector<int32_t>& partitions) {
  std::vector<int64_t> positions;
  if (absl::Status connected = Connect(); !connected.ok()) return connected;
  if (partitions.empty()) return positions;
  std::vector<std::string> names;
  for (const int32_t partition : partitions) names.push_back(PartitionName(partition));
  std::vector<absl::string_view> command = {"EVALSHA", positions_script_, "3", values_, positions_, counts_};
  command.insert(command.end(), names.begin(), names.end());
  const absl::StatusOr<Reply> reply = Call(command, REDIS_REPLY_ARRAY, partitions.size());
  if (!reply.ok()) return reply.status();
  for (size_t i = 0; i < partitions.size(); ++i) {
    const absl::StatusOr<int64_t> position = PositionOf(*(*reply)->element[i]);
    if (!position.ok()) return position.status();
    positions.push_back(*position);
  }
  return positions;
}

absl::StatusOr<std::vector<int64_t>> RedisStore::Apply(const std::vector<StoreBatch>& batches) {
  if (absl::Status connected = Connect(); !connected.ok()) return connected;
  for (const StoreBatch& batch : batches) {
    const std::string partition = PartitionName(batch.partition);
    const std::string shard = absl::StrCat(values_, ":totals:", partition);
    const std::string from = absl::StrCat(batch.from), to = absl::StrCat(batch.to);
    std::vector<absl::string_view> command = {"EVALSHA", script_, "4",       values_, positions_,
                                              counts_,   shard,   partition, from,    to};
    std::vector<std::string> totals;
    totals.reserve(batch.totals.size());
    for (const StoredTotal& each : batch.totals) {
      totals.push_back(each.total ? absl::StrCat(*each.total) : "");
      command.emplace_back(each.key);
      command.emplace_back(totals.back());
    }
    if (absl::Status appended = Append(command); !appended.ok()) return appended;
  }
  std::vector<int64_t> positions;
  if (absl::Status sent = Send(); !sent.ok()) return sent;
  for (size_t i = 0; i < batches.size(); ++i) {
    const absl::StatusOr<Reply> reply = NextReply(REDIS_REPLY_STRING);
    if (!reply.ok()) return reply.status();
    const absl::StatusOr<int64_t> position = PositionOf(**reply);
    if (!position.ok()) return position.status();
    positions.push_back(*position);
  }
  return positions;
}

}  // namespace lethe::redis
