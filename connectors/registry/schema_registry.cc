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
constexpr size_t kMostReferenceBytes = size_t{1} << 20;
constexpr size_t kEntryBytes = 1024;  // of what is known beside a plan, about
// So long a plan stays for the partition that waited for it.
constexpr absl::Duration kAwaitedFor = absl::Seconds(10);
constexpr int kMostReferenceDepth = 32;
// Patience comes back so much slower than it goes: a minute in twenty.
constexpr int kPatienceComesBack = 20;
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
      misses_left_(options_.most_misses) {
  figures_.folder_bytes = files_.bytes();
  thread_ = std::thread([this] { Run(); });
}

SchemaRegistry::~SchemaRegistry() {
  http_.Interrupt();
  {
    const MutexLock lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

SchemaLookup SchemaRegistry::Find(const SchemaNeed& need) {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(need);
  if (found != entries_.end() && found->second.lookup.state == SchemaLookup::State::kKnown) {
    Take(found->second);
    found->second.lookup.plan->Touch();
    return found->second.lookup;
  }
  const absl::Time now = SteadyNow();
  Entry* entry = found == entries_.end() ? nullptr : &found->second;
  if (entry != nullptr && entry->lookup.state == SchemaLookup::State::kUnknown && now >= entry->forgotten) {
    entries_.erase(found);
    entry = nullptr;
  }
  if (entry == nullptr) entry = Add(need, now);
  if (entry == nullptr) {
    return {SchemaLookup::State::kWaiting, nullptr,
            absl::StrCat(SchemaName(need.key), ": lethe already requests too many other schemas")};
  }
  if (!entry->is_wanted) Want(need, *entry, now);
  return entry->lookup;
}

SchemaLookup SchemaRegistry::Peek(const SchemaNeed& need) {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(need);
  // A forgotten schema is requested again when a record needs it.
  return found == entries_.end() ? SchemaLookup() : found->second.lookup;
}

void SchemaRegistry::Expect(const SchemaNeed& need) {
  const MutexLock lock(mutex_);
  if (expected_.size() >= kMostExpected) return;
  const absl::Time now = SteadyNow();
  if (const auto known = entries_.find(need); known != entries_.end()) {
    Entry& entry = known->second;
    // A refusal that would be too old when it is needed.
    const bool is_old = entry.is_refused && now - entry.refused >= options_.remembers_unknown / 2;
    if (entry.is_wanted || entry.is_queued || !is_old) return;
    entry.is_refused = false;
    Schedule(need, entry, now);
    return changed_.notify_all();
  }
  Entry* const entry = Add(need, now);
  if (entry == nullptr) return;
  CountPatience(now);
  // After others were missing, this one may be, too: the first request waits until a follower has it.
  const bool is_doubtful = patience_ < 2 * options_.patience;
  Schedule(need, *entry, is_doubtful ? now + options_.expected_after : now);
  changed_.notify_all();
}

SchemaRegistry::Entry* SchemaRegistry::Add(const SchemaNeed& need, absl::Time now) {
  if (entries_.size() - static_cast<size_t>(figures_.known) >= kMostEntries) return nullptr;
  Entry& entry = entries_[need];
  entry.lookup.state = SchemaLookup::State::kWaiting;
  entry.seen = now;
  entry.pause = options_.first_pause;
  return &entry;
}

void SchemaRegistry::Schedule(const SchemaNeed& need, Entry& entry, absl::Time due) {
  Unschedule(need, entry);
  entry.due = due;
  entry.is_queued = true;
  (entry.is_wanted ? wanted_ : expected_).emplace(due, need);
}

void SchemaRegistry::Unschedule(const SchemaNeed& need, Entry& entry) {
  if (!std::exchange(entry.is_queued, false)) return;
  (entry.is_wanted ? wanted_ : expected_).erase({entry.due, need});
}

void SchemaRegistry::Want(const SchemaNeed& need, Entry& entry, absl::Time now) {
  Unschedule(need, entry);
  entry.is_wanted = true;
  ++figures_.waiting;
  CountPatience(now);
  const bool is_clear = entry.is_refused && entry.refused - entry.seen >= options_.expected_after &&
                        now - entry.refused < options_.remembers_unknown;
  if (is_clear && PatienceForOne() == absl::ZeroDuration()) return DecideUnknown(need, entry, now);
  Schedule(need, entry, now);
  changed_.notify_all();
}

SchemaFigures SchemaRegistry::figures() const {
  const MutexLock lock(mutex_);
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
  MutexLock lock(mutex_);
  while (!stops_) {
    const absl::Time now = SteadyNow();
    CountPatience(now);
    absl::Time until = absl::InfiniteFuture();
    std::optional<SchemaNeed> next;
    if (const auto takers = WaitsForTakers(now)) {
      until = *takers;
    } else {
      next = TakeNext(now, until);
    }
    if (!next) {
      if (until == absl::InfiniteFuture()) {
        changed_.wait(lock.held());
      } else {
        changed_.wait_for(lock.held(), absl::ToChronoMicroseconds(until - now));
      }
      continue;
    }
    const SchemaNeed& need = *next;
    const bool reads_file = !std::exchange(entries_[need].is_read, true) && !options_.folder.empty();
    lock.Unlock();
    auto plan = MakePlan(need, reads_file);
    lock.Lock();
    figures_.folder_bytes = files_.bytes();
    const absl::Status asked = plan.status();
    if (asked.ok()) DecideKnown(need, *std::move(plan));
    if (reads_file && !asked.ok()) Schedule(need, entries_[need], SteadyNow());
    if (!reads_file && !absl::IsCancelled(asked)) Handle(need, asked);
  }
}

void SchemaRegistry::DecideKnown(const SchemaNeed& need, std::shared_ptr<const SchemaPlan> plan) {
  SchemaPlan::Tick();
  plan->Touch();
  Entry& entry = entries_[need];
  entry.bytes = plan->bytes() + kEntryBytes + need.use->name().size();
  entry.used = plan->touched();
  by_use_.emplace(entry.used, need);
  ++figures_.known;
  figures_.memory_bytes += static_cast<int64_t>(entry.bytes);
  if (entry.is_wanted) {
    entry.is_awaited = true;
    awaited_bytes_ += entry.bytes;
    awaited_.emplace_back(SteadyNow(), need);
  }
  Decide(need, entry, {SchemaLookup::State::kKnown, std::move(plan), ""});
  ForgetUnused();
}

void SchemaRegistry::Take(Entry& entry) {
  if (!std::exchange(entry.is_awaited, false)) return;
  awaited_bytes_ -= entry.bytes;
  changed_.notify_all();
}

void SchemaRegistry::ForgetUnused() {
  for (auto at = by_use_.begin(); at != by_use_.end() && figures_.memory_bytes > int64_t{kMostBytes};) {
    const auto entry = entries_.find(at->second);
    const int64_t touched = entry->second.lookup.plan->touched();
    if (touched > at->first) {
      at = by_use_.erase(at);
      by_use_.emplace(touched, entry->first);
      entry->second.used = touched;
    } else if (entry->second.is_awaited) {
      ++at;
    } else {
      at = by_use_.erase(at);
      --figures_.known;
      figures_.memory_bytes -= static_cast<int64_t>(entry->second.bytes);
      entries_.erase(entry);
    }
  }
}

std::optional<absl::Time> SchemaRegistry::WaitsForTakers(absl::Time now) {
  while (!awaited_.empty()) {
    const auto& [since, need] = awaited_.front();
    const auto entry = entries_.find(need);
    const bool is_awaited = entry != entries_.end() && entry->second.is_awaited;
    if (is_awaited && now < since + kAwaitedFor) break;
    if (is_awaited) Take(entry->second);  // the partition has gone to another instance
    awaited_.pop_front();
  }
  if (awaited_bytes_ < kMostBytes / 2) return std::nullopt;
  return awaited_.front().first + kAwaitedFor;
}

std::optional<SchemaNeed> SchemaRegistry::TakeNext(absl::Time now, absl::Time& until) {
  const absl::Time may_miss =
      misses_left_ >= 1 ? now : now + absl::Seconds((1 - misses_left_) / options_.most_misses);
  for (const Queue* queue : {&wanted_, &expected_}) {
    if (queue->empty()) continue;
    const auto [due, need] = *queue->begin();
    Entry& entry = entries_[need];
    // A file is read whatever the registry does.
    const bool asks = entry.is_read || options_.folder.empty();
    const absl::Time at = asks ? std::max({due, pauses_until_, may_miss}) : due;
    if (at > now) {
      until = std::min(until, at);
      continue;
    }
    Unschedule(need, entry);
    return need;
  }
  return std::nullopt;
}

void SchemaRegistry::Handle(const SchemaNeed& need, const absl::Status& asked) {
  const absl::Time now = SteadyNow();
  CountPatience(now);
  const std::string why = absl::StrCat(SchemaName(need.key), ": ", asked.message());
  if (absl::IsUnavailable(asked)) return HandleFailure(need, entries_[need], why, now);
  if (!asked.ok()) HandleUnknown(need, entries_[need], why, absl::IsUnimplemented(asked), now);
  if (failures_ > 0 && logs_) spdlog::info("the schema registry answers again");
  failures_ = 0;
  pauses_until_ = next_failure_log_ = absl::InfinitePast();
}

void SchemaRegistry::Decide(const SchemaNeed& need, Entry& entry, SchemaLookup lookup) {
  Unschedule(need, entry);
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
  misses_left_ =
      std::min(misses_left_ + options_.most_misses * absl::ToDoubleSeconds(passed), options_.most_misses);
}

absl::Duration SchemaRegistry::PatienceForOne() const {
  return patience_ / 2 > options_.first_pause ? patience_ / 2 : absl::ZeroDuration();
}

void SchemaRegistry::HandleFailure(const SchemaNeed& need, Entry& entry, const std::string& why,
                                   absl::Time now) {
  entry.lookup.why = why;
  Schedule(need, entry, now + entry.pause);
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

void SchemaRegistry::HandleUnknown(const SchemaNeed& need, Entry& entry, const std::string& why,
                                   bool is_final, absl::Time now) {
  misses_left_ -= 1;
  entry.lookup.why = why;
  entry.is_refused = true;
  entry.refused = now;
  if (is_final) return DecideUnknown(need, entry, now);
  if (!entry.is_wanted) {
    // Find decides, or asks again.
    unwanted_.push_back(need);
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
  if (now >= entry.until || patience_ == absl::ZeroDuration()) return DecideUnknown(need, entry, now);
  Schedule(need, entry, std::min(now + entry.pause, std::max(entry.until, now + kLeastPause)));
  entry.pause = std::min(2 * entry.pause, options_.longest_pause);
}

void SchemaRegistry::DecideUnknown(const SchemaNeed& need, Entry& entry, absl::Time now) {
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
  Decide(need, entry, {SchemaLookup::State::kUnknown, nullptr, why});
  unknown_.push_back(need);
  while (unknown_.size() > kMostUnknown) {
    const auto oldest = entries_.find(unknown_.front());
    unknown_.pop_front();
    if (oldest != entries_.end() && oldest->second.lookup.state == SchemaLookup::State::kUnknown) {
      entries_.erase(oldest);
    }
  }
}

// The references of one schema, while they are requested.
struct SchemaRegistry::Resolving {
  Schema schema;
  std::set<std::string> names;  // of those that were begun
  size_t bytes = 0;
};

int64_t SchemaRegistry::TouchedOf(const SchemaKey& key) const {
  const MutexLock lock(mutex_);
  int64_t touched = 0;
  // Of all names of uses that of the whole schema is the first.
  for (auto at = entries_.lower_bound(SchemaNeed(key)); at != entries_.end() && at->first.key == key; ++at) {
    if (const auto& plan = at->second.lookup.plan) touched = std::max(touched, plan->touched());
  }
  return touched;
}

absl::StatusOr<std::shared_ptr<const SchemaPlan>> SchemaRegistry::MakePlan(const SchemaNeed& need,
                                                                           bool reads_file) {
  if (!last_ || last_->key != need.key) {
    auto schema = reads_file ? FromFile(need.key) : Fetch(need.key);
    if (!schema.ok()) return schema.status();
    last_.emplace(Last{need.key, ParsedSchema(*std::move(schema)), reads_file});
  }
  auto plan = need.use->Compile(need.key, last_->schema);
  if (!plan->is_usable() || std::exchange(last_->is_kept, true)) return plan;
  const auto touched = [this](const SchemaKey& key) { return TouchedOf(key); };
  if (absl::Status written = files_.Keep(need.key, last_->schema.schema(), touched); !written.ok()) {
    spdlog::warn("{} cannot be kept for the next start: {}", SchemaName(need.key),
                 std::string(written.message()));
  }
  return plan;
}

absl::StatusOr<Schema> SchemaRegistry::FromFile(const SchemaKey& key) {
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
      return absl::UnimplementedError("its references are larger than 1 MiB together");
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
  const MutexLock lock(mutex_);
  ++(figures_.*result);
}

}  // namespace lethe::registry
