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
constexpr size_t kMostExpected = 10'000;
constexpr size_t kMostReferenceBytes = size_t{8} << 20;
constexpr int kMostReferenceDepth = 32;
// Patience comes back so much slower than it goes: a minute in twenty.
constexpr int kPatienceComesBack = 20;
constexpr double kMostMisses = 100;  // a second, and at once
constexpr absl::Duration kLogEvery = absl::Minutes(1);
constexpr int kMostLogged = 8;  // unknown schemas
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

SchemaRegistry::SchemaRegistry(RegistryOptions options, bool logs)
    : options_(std::move(options)),
      logs_(logs),
      files_(options_.folder, options_.urls),
      http_(options_),
      patience_(2 * options_.patience),
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
  if (found != entries_.end() && found->second.lookup.state == SchemaLookup::State::kKnown) {
    return found->second.lookup;
  }
  const absl::Time now = SteadyNow();
  Entry* entry = found == entries_.end() ? nullptr : &found->second;
  if (entry != nullptr && entry->lookup.state == SchemaLookup::State::kUnknown && now >= entry->forgotten) {
    entries_.erase(found);
    entry = nullptr;
  }
  if (entry == nullptr) entry = Add(key, now);
  if (entry == nullptr) {
    return {SchemaLookup::State::kWaiting, nullptr,
            absl::StrCat(SchemaName(key), ": too many other schemas are asked for")};
  }
  if (!entry->is_wanted) Want(key, *entry, now);
  return entry->lookup;
}

void SchemaRegistry::Expect(const SchemaKey& key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (expected_.size() >= kMostExpected) return;
  const absl::Time now = SteadyNow();
  if (const auto known = entries_.find(key); known != entries_.end()) {
    Entry& entry = known->second;
    // A refusal that would be too old when it is needed.
    const bool is_old = entry.is_refused && now - entry.refused >= options_.remembers_unknown / 2;
    if (entry.is_wanted || entry.is_queued || !is_old) return;
    entry.is_refused = false;
    Schedule(key, entry, now);
    return changed_.notify_all();
  }
  Entry* const entry = Add(key, now);
  if (entry == nullptr) return;
  CountPatience(now);
  // After others were missing, this one may be, too: the first request waits until a follower has it.
  const bool is_doubtful = patience_ < 2 * options_.patience;
  Schedule(key, *entry, is_doubtful ? now + options_.expected_after : now);
  changed_.notify_all();
}

SchemaRegistry::Entry* SchemaRegistry::Add(const SchemaKey& key, absl::Time now) {
  if (entries_.size() - static_cast<size_t>(figures_.known) >= kMostEntries) return nullptr;
  Entry& entry = entries_[key];
  entry.lookup.state = SchemaLookup::State::kWaiting;
  entry.seen = now;
  entry.pause = options_.first_pause;
  return &entry;
}

void SchemaRegistry::Schedule(const SchemaKey& key, Entry& entry, absl::Time due) {
  Unschedule(key, entry);
  entry.due = due;
  entry.is_queued = true;
  (entry.is_wanted ? wanted_ : expected_).emplace(due, key);
}

void SchemaRegistry::Unschedule(const SchemaKey& key, Entry& entry) {
  if (!std::exchange(entry.is_queued, false)) return;
  (entry.is_wanted ? wanted_ : expected_).erase({entry.due, key});
}

void SchemaRegistry::Want(const SchemaKey& key, Entry& entry, absl::Time now) {
  Unschedule(key, entry);
  entry.is_wanted = true;
  ++figures_.waiting;
  CountPatience(now);
  const bool is_clear = entry.is_refused && entry.refused - entry.seen >= options_.expected_after &&
                        now - entry.refused < options_.remembers_unknown;
  if (is_clear && PatienceForOne() == absl::ZeroDuration()) return DecideUnknown(key, entry, now);
  Schedule(key, entry, now);
  changed_.notify_all();
}

SchemaFigures SchemaRegistry::figures() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  SchemaFigures figures = figures_;
  if (SteadyNow() - most_waiting_at_ < options_.shows_waiting) {
    figures.waiting = std::max(figures.waiting, most_waiting_);
  }
  return figures;
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
    const std::optional<SchemaKey> next = TakeNext(now, until);
    if (!next) {
      if (until == absl::InfiniteFuture()) {
        changed_.wait(lock);
      } else {
        changed_.wait_for(lock, absl::ToChronoMicroseconds(until - now));
      }
      continue;
    }
    const SchemaKey& key = *next;
    const bool reads_file = !std::exchange(entries_[key].is_read, true) && !options_.folder.empty();
    lock.unlock();
    absl::StatusOr<Schema> schema = reads_file ? FromFile(key) : Fetch(key);
    lock.lock();
    const absl::Status asked = schema.status();
    if (asked.ok()) {
      ++figures_.known;
      Decide(key, entries_[key],
             {SchemaLookup::State::kKnown, std::make_shared<const Schema>(*std::move(schema)), ""});
    }
    if (reads_file && !asked.ok()) Schedule(key, entries_[key], SteadyNow());
    if (!reads_file && !absl::IsCancelled(asked)) Handle(key, asked);
  }
}

std::optional<SchemaKey> SchemaRegistry::TakeNext(absl::Time now, absl::Time& until) {
  const absl::Time may_miss = misses_left_ >= 1 ? now : now + absl::Seconds((1 - misses_left_) / kMostMisses);
  for (const Queue* queue : {&wanted_, &expected_}) {
    if (queue->empty()) continue;
    const auto [due, key] = *queue->begin();
    Entry& entry = entries_[key];
    // A file is read whatever the registry does.
    const bool asks = entry.is_read || options_.folder.empty();
    const absl::Time at = asks ? std::max({due, pauses_until_, may_miss}) : due;
    if (at > now) {
      until = std::min(until, at);
      continue;
    }
    Unschedule(key, entry);
    return key;
  }
  return std::nullopt;
}

void SchemaRegistry::Handle(const SchemaKey& key, const absl::Status& asked) {
  const absl::Time now = SteadyNow();
  CountPatience(now);
  const std::string why = absl::StrCat(SchemaName(key), ": ", asked.message());
  if (absl::IsUnavailable(asked)) return HandleFailure(key, entries_[key], why, now);
  if (!asked.ok()) HandleUnknown(key, entries_[key], why, absl::IsUnimplemented(asked), now);
  if (failures_ > 0 && logs_) spdlog::info("the schema registry answers again");
  failures_ = 0;
  pauses_until_ = next_failure_log_ = absl::InfinitePast();
}

void SchemaRegistry::Decide(const SchemaKey& key, Entry& entry, SchemaLookup lookup) {
  Unschedule(key, entry);
  if (std::exchange(entry.is_missing, false)) --missing_;
  if (entry.is_wanted) {
    const absl::Time now = SteadyNow();
    const bool is_old = now - most_waiting_at_ >= options_.shows_waiting;
    if (is_old || figures_.waiting >= most_waiting_) {
      most_waiting_ = figures_.waiting;
      most_waiting_at_ = now;
    }
    --figures_.waiting;
  }
  entry.is_wanted = true;
  entry.lookup = std::move(lookup);
  ++answers_;
}

void SchemaRegistry::CountPatience(absl::Time now) {
  const absl::Duration passed = now - std::exchange(patience_counted_, now);
  patience_ = missing_ > 0 ? std::max(patience_ - passed, absl::ZeroDuration())
                           : std::min(patience_ + passed / kPatienceComesBack, 2 * options_.patience);
  misses_left_ = std::min(misses_left_ + kMostMisses * absl::ToDoubleSeconds(passed), kMostMisses);
}

absl::Duration SchemaRegistry::PatienceForOne() const {
  return patience_ / 2 > options_.first_pause ? patience_ / 2 : absl::ZeroDuration();
}

void SchemaRegistry::HandleFailure(const SchemaKey& key, Entry& entry, const std::string& why,
                                   absl::Time now) {
  entry.lookup.why = why;
  Schedule(key, entry, now + entry.pause);
  entry.pause = std::min(2 * entry.pause, options_.longest_pause);
  // Others have their turn meanwhile, but not at a registry that answers nobody.
  constexpr int kMostDoublings = 16;
  const int doublings = std::min(failures_++, kMostDoublings);
  pauses_until_ = now + std::min(options_.first_pause * (1 << doublings), options_.longest_pause);
  if (now < next_failure_log_ || !logs_) return;
  next_failure_log_ = now + kLogEvery;
  spdlog::warn(
      "schema registry: {}; lethe asks again until it answers, and partitions with such records wait", why);
}

void SchemaRegistry::HandleUnknown(const SchemaKey& key, Entry& entry, const std::string& why, bool is_final,
                                   absl::Time now) {
  misses_left_ -= 1;
  entry.lookup.why = why;
  entry.is_refused = true;
  entry.refused = now;
  if (is_final) return DecideUnknown(key, entry, now);
  if (!entry.is_wanted) {
    // Find decides, or asks again.
    unwanted_.push_back(key);
    while (unwanted_.size() > kMostExpected) {
      const auto oldest = entries_.find(unwanted_.front());
      unwanted_.pop_front();
      if (oldest != entries_.end() && !oldest->second.is_wanted && oldest->second.is_refused) {
        entries_.erase(oldest);
      }
    }
    return;
  }
  if (!entry.is_missing) {
    entry.until = now + PatienceForOne();
    if (entry.until > now) {
      entry.is_missing = true;
      ++missing_;
    }
  }
  if (now >= entry.until || patience_ == absl::ZeroDuration()) return DecideUnknown(key, entry, now);
  Schedule(key, entry, std::min(now + entry.pause, std::max(entry.until, now + kLeastPause)));
  entry.pause = std::min(2 * entry.pause, options_.longest_pause);
}

void SchemaRegistry::DecideUnknown(const SchemaKey& key, Entry& entry, absl::Time now) {
  const std::string why = entry.lookup.why;
  if (now >= next_unknown_log_) {
    next_unknown_log_ = now + kLogEvery;
    unknown_logged_ = 0;
  }
  if (logs_ && ++unknown_logged_ <= kMostLogged) {
    spdlog::warn("schema registry: {}; its records are malformed, and lethe asks again after {}", why,
                 absl::FormatDuration(options_.remembers_unknown));
  }
  entry.forgotten = now + options_.remembers_unknown;
  Decide(key, entry, {SchemaLookup::State::kUnknown, nullptr, why});
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
    auto answer = got->is_cut ? BeginsSchemaAnswer(got->body) : ParseSchemaAnswer(got->body);
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
