#include "connectors/registry/schema_registry.h"

#include <signal.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace lethe::registry {
namespace {

constexpr size_t kMostEntries = 100'000;  // waiting or unknown; a partition waits for one or two at a time
constexpr size_t kMostUnknown = 10'000;
constexpr size_t kMostReferences = 256;
constexpr size_t kMostReferenceBytes = size_t{8} << 20;
constexpr int kMostReferenceDepth = 32;
// Patience comes back so much slower than it goes: 30 s in ten minutes.
constexpr int kPatienceComesBack = 20;
constexpr double kMostMisses = 50;  // a second, and at once
constexpr absl::Duration kLogEvery = absl::Minutes(1);
constexpr absl::Duration kLeastPause = absl::Milliseconds(1);
constexpr size_t kMostMessageBytes = 300;

absl::Time SteadyNow() {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

// What a registry says is for people, and may be anything.
std::string Shown(absl::string_view text) {
  std::string shown(text.substr(0, kMostMessageBytes));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return shown;
}

std::string PathOf(const SchemaKey& key) {
  const std::string name = SchemaName(key);
  return absl::StrCat(std::holds_alternative<int32_t>(key) ? "/schemas/ids/" : "/schemas/guids/",
                      name.substr(name.rfind(' ') + 1));
}

}  // namespace

SchemaRegistry::SchemaRegistry(RegistryOptions options)
    : options_(std::move(options)),
      files_(options_.folder, options_.urls),
      http_(options_),
      patience_(options_.patience),
      patience_counted_(SteadyNow()),
      misses_left_(kMostMisses) {
  thread_ = std::thread([this] { Run(); });
}

SchemaRegistry::~SchemaRegistry() {
  http_.Interrupt();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

SchemaLookup SchemaRegistry::Find(const SchemaKey& key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = entries_.find(key);
  if (found != entries_.end()) {
    Entry& entry = found->second;
    if (entry.lookup.state != SchemaLookup::State::kUnknown || SteadyNow() < entry.forgotten) {
      return entry.lookup;
    }
    entries_.erase(found);
  }
  if (entries_.size() - static_cast<size_t>(figures_.known) >= kMostEntries) {
    return {SchemaLookup::State::kWaiting, nullptr,
            absl::StrCat(SchemaName(key), ": too many other schemas are asked for")};
  }
  Entry& entry = entries_[key];
  entry.lookup.state = SchemaLookup::State::kWaiting;
  entry.due = SteadyNow();
  entry.pause = options_.first_pause;
  ++figures_.waiting;
  changed_.notify_all();
  return entry.lookup;
}

SchemaFigures SchemaRegistry::figures() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return figures_;
}

void SchemaRegistry::Run() {
  sigset_t signals;
  sigfillset(&signals);  // SIGPIPE of a connection, too
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stops_) {
    const absl::Time now = SteadyNow();
    CountPatience(now);
    absl::Time until = absl::InfiniteFuture();
    const auto next = Next(now, until);
    if (next == entries_.end()) {
      if (until == absl::InfiniteFuture()) {
        changed_.wait(lock);
      } else {
        changed_.wait_for(lock, absl::ToChronoMicroseconds(until - now));
      }
      continue;
    }
    const SchemaKey key = next->first;
    const bool reads_file = !std::exchange(next->second.is_read, true) && !options_.folder.empty();
    lock.unlock();
    absl::StatusOr<Schema> schema = reads_file ? FromFile(key) : Fetch(key);
    lock.lock();
    const absl::Status asked = schema.status();
    if (asked.ok()) {
      ++figures_.known;
      Decide(entries_[key],
             {SchemaLookup::State::kKnown, std::make_shared<const Schema>(*std::move(schema)), ""});
    }
    if (!reads_file && !absl::IsCancelled(asked)) Handle(key, asked);
  }
}

SchemaRegistry::Entries::iterator SchemaRegistry::Next(absl::Time now, absl::Time& until) {
  auto next = entries_.end();
  for (auto each = entries_.begin(); each != entries_.end(); ++each) {
    if (each->second.lookup.state != SchemaLookup::State::kWaiting) continue;
    // A file is read whatever the registry does.
    if (!each->second.is_read && !options_.folder.empty()) return each;
    if (next == entries_.end() || each->second.due < next->second.due) next = each;
  }
  if (next == entries_.end()) return next;
  const absl::Time may_miss = misses_left_ >= 1 ? now : now + absl::Seconds((1 - misses_left_) / kMostMisses);
  until = std::max({next->second.due, pauses_until_, may_miss});
  return until <= now ? next : entries_.end();
}

void SchemaRegistry::Handle(const SchemaKey& key, const absl::Status& asked) {
  const absl::Time now = SteadyNow();
  CountPatience(now);
  const std::string why = absl::StrCat(SchemaName(key), ": ", asked.message());
  if (absl::IsUnavailable(asked)) return HandleFailure(entries_[key], why, now);
  if (!asked.ok()) HandleUnknown(key, entries_[key], why, absl::IsUnimplemented(asked), now);
  if (failures_ > 0) spdlog::info("the schema registry answers again");
  failures_ = 0;
  pauses_until_ = next_failure_log_ = absl::InfinitePast();
}

void SchemaRegistry::Decide(Entry& entry, SchemaLookup lookup) {
  if (std::exchange(entry.is_missing, false)) --missing_;
  --figures_.waiting;
  entry.lookup = std::move(lookup);
  ++answers_;
}

void SchemaRegistry::CountPatience(absl::Time now) {
  const absl::Duration passed = now - std::exchange(patience_counted_, now);
  patience_ = missing_ > 0 ? std::max(patience_ - passed, absl::ZeroDuration())
                           : std::min(patience_ + passed / kPatienceComesBack, options_.patience);
  misses_left_ = std::min(misses_left_ + kMostMisses * absl::ToDoubleSeconds(passed), kMostMisses);
}

void SchemaRegistry::HandleFailure(Entry& entry, const std::string& why, absl::Time now) {
  entry.lookup.why = why;
  entry.due = now + entry.pause;
  entry.pause = std::min(2 * entry.pause, options_.longest_pause);
  // Others have their turn meanwhile, but not at a registry that answers nobody.
  constexpr int kMostDoublings = 16;
  const int doublings = std::min(failures_++, kMostDoublings);
  pauses_until_ = now + std::min(options_.first_pause * (1 << doublings), options_.longest_pause);
  if (now < next_failure_log_) return;
  next_failure_log_ = now + kLogEvery;
  spdlog::warn(
      "schema registry: {}; lethe asks again until it answers, and partitions with such records wait", why);
}

void SchemaRegistry::HandleUnknown(const SchemaKey& key, Entry& entry, const std::string& why, bool is_final,
                                   absl::Time now) {
  misses_left_ -= 1;
  entry.lookup.why = why;
  const absl::Duration needed = entry.is_missing ? absl::ZeroDuration() : options_.first_pause;
  if (!is_final && patience_ > needed) {
    if (!std::exchange(entry.is_missing, true)) ++missing_;
    entry.due = now + std::clamp(patience_, kLeastPause, entry.pause);
    entry.pause = std::min(2 * entry.pause, options_.longest_pause);
    return;
  }
  if (now >= next_unknown_log_) {
    next_unknown_log_ = now + kLogEvery;
    spdlog::warn("schema registry: {}; its records are malformed, and lethe asks again after {}", why,
                 absl::FormatDuration(options_.remembers_unknown));
  }
  entry.forgotten = now + options_.remembers_unknown;
  Decide(entry, {SchemaLookup::State::kUnknown, nullptr, why});
  unknown_.push_back(key);
  while (unknown_.size() > kMostUnknown) {
    const auto oldest = entries_.find(unknown_.front());
    unknown_.pop_front();
    if (oldest != entries_.end() && oldest->second.lookup.state == SchemaLookup::State::kUnknown) {
      entries_.erase(oldest);
    }
  }
}

// The references of one schema, while they are asked for.
struct SchemaRegistry::Resolving {
  Schema schema;
  std::set<std::string> names;  // of those that were begun
  size_t bytes = 0;
};

absl::StatusOr<Schema> SchemaRegistry::FromFile(const SchemaKey& key) const {
  auto kept = files_.Load(key);
  if (!kept.ok() && !absl::IsNotFound(kept.status())) {
    spdlog::warn("{}; lethe asks the schema registry again", std::string(kept.status().message()));
  }
  return kept;
}

absl::StatusOr<Schema> SchemaRegistry::Fetch(const SchemaKey& key) {
  auto answer = Ask(PathOf(key));
  if (!answer.ok()) return answer.status();
  Resolving resolving;
  if (absl::Status resolved = Resolve(answer->references, resolving, 0); !resolved.ok()) return resolved;
  resolving.schema.type = answer->type;
  resolving.schema.text = std::move(answer->text);
  if (absl::Status written = files_.Keep(key, resolving.schema); !written.ok()) {
    spdlog::warn("{} cannot be kept for the next start: {}", SchemaName(key), std::string(written.message()));
  }
  return std::move(resolving.schema);
}

absl::Status SchemaRegistry::Resolve(const std::vector<SchemaAnswer::Reference>& references, Resolving& to,
                                     int depth) {
  if (depth > kMostReferenceDepth) {
    return absl::UnimplementedError(
        absl::StrCat("its references are more than ", kMostReferenceDepth, " deep"));
  }
  for (const SchemaAnswer::Reference& each : references) {
    if (!to.names.insert(each.name).second) continue;
    if (to.names.size() > kMostReferences) {
      return absl::UnimplementedError(absl::StrCat("it has more than ", kMostReferences, " references"));
    }
    // A version that was deleted since is still needed.
    auto answer = Ask(
        absl::StrCat("/subjects/", EscapedForUrl(each.subject), "/versions/", each.version, "?deleted=true"));
    if (!answer.ok()) {
      return absl::Status(answer.status().code(),
                          absl::StrCat("its reference ", Shown(each.name), ": ", answer.status().message()));
    }
    to.bytes += answer->text.size();
    if (to.bytes > kMostReferenceBytes) {
      return absl::UnimplementedError("its references are larger than 8 MiB together");
    }
    if (absl::Status resolved = Resolve(answer->references, to, depth + 1); !resolved.ok()) return resolved;
    to.schema.references.push_back({each.name, std::move(answer->text)});
  }
  return absl::OkStatus();
}

absl::StatusOr<SchemaAnswer> SchemaRegistry::Ask(const std::string& path) {
  std::vector<std::string> problems;
  for (size_t i = 0; i < options_.urls.size(); ++i) {
    const std::string& url = options_.urls[url_];
    auto answer = AskOne(absl::StrCat(url, path));
    if (!absl::IsUnavailable(answer.status())) return answer;
    problems.push_back(absl::StrCat(url, ": ", answer.status().message()));
    url_ = (url_ + 1) % options_.urls.size();
  }
  return absl::UnavailableError(absl::StrJoin(problems, "; "));
}

absl::StatusOr<SchemaAnswer> SchemaRegistry::AskOne(const std::string& url) {
  auto got = http_.Get(url);
  if (!got.ok()) {
    if (absl::IsUnavailable(got.status())) Count(&SchemaFigures::failed);
    return got.status();
  }
  if (got->status == 200) {
    auto answer = got->is_cut ? absl::UnimplementedError("the answer is larger than 4 MiB")
                              : ParseSchemaAnswer(got->body);
    const bool makes_sense = answer.ok() || absl::IsUnimplemented(answer.status());
    Count(makes_sense ? &SchemaFigures::answered : &SchemaFigures::failed);
    return makes_sense ? std::move(answer) : absl::UnavailableError(answer.status().message());
  }
  if (got->status == 404 && SaysUnknown(got->body)) {
    Count(&SchemaFigures::unknown);
    return absl::NotFoundError("the registry has none (status 404)");
  }
  const bool is_refusal = got->status == 401 || got->status == 403;
  Count(is_refusal ? &SchemaFigures::refused : &SchemaFigures::failed);
  std::string hint;
  if (is_refusal) hint = "; set user and password, or token, under schema_registry";
  if (got->status >= 300 && got->status < 400)
    hint = ", a redirect, which lethe does not follow; correct url";
  if (got->status == 404) hint = " without the error code of a registry; correct the path in url";
  return absl::UnavailableError(absl::StrCat("status ", got->status, hint));
}

void SchemaRegistry::Count(int64_t SchemaFigures::*result) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++(figures_.*result);
}

}  // namespace lethe::registry
