#include "tests/simulation/input.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/faults/judge.h"
#include "tests/simulation/process.h"

namespace lethe::simulation {
namespace {

constexpr const char* kCountries[] = {"at", "de", "is"};
constexpr int64_t kWildTimes[] = {1, 631'152'000'000, 4'102'444'800'000};  // 1970, 1990, 2100

}  // namespace

Input::Input(World& world, Broker& broker, const Schedule& schedule, const TopicNames& names, bool is_backlog)
    : world_(world),
      broker_(broker),
      schedule_(schedule),
      topics_(names.inputs),
      is_routed_(names.judged != names.input),
      records_(schedule.records) {
  is_backlog ? SendBacklog() : SendSome();
}

// Some of it in transactions that are still open when it is read.
void Input::SendBacklog() {
  while (!is_done()) {
    if (world_.dice().Below(200) == 0) {
      SendInTransaction(world_.dice().Between(absl::ZeroDuration(), absl::Seconds(5)),
                        world_.dice().OneIn(2));
    }
    const std::string& topic = ChooseTopic();
    Append(topic, Next(topic), /*transaction=*/-1);
  }
}

const std::string& Input::ChooseTopic() {
  return topics_.size() == 1
             ? topics_.front()
             : topics_[static_cast<size_t>(world_.dice().Below(static_cast<int64_t>(topics_.size())))];
}

void Input::SendSome() {
  if (is_done()) return;
  // Some hundred times in all, at most.
  const int64_t most = std::max(1, schedule_.records / 16);
  if (broker_.Find(topics_.front()) != nullptr) {
    for (int64_t count = world_.dice().Between(1, most); count > 0 && !is_done(); --count) {
      const std::string& topic = ChooseTopic();
      Append(topic, Next(topic), /*transaction=*/-1);
    }
  }
  const absl::Duration mean = schedule_.lasts * static_cast<double>(most) / (2.0 * schedule_.records);
  world_.After(world_.dice().Between(absl::ZeroDuration(), 2 * mean), [this] { SendSome(); });
}

void Input::BeginAgain() {
  const bool was_done = is_done();
  events_ = 0;
  sent_before_ = sent_;
  records_ = sent_ + std::max(records_ - sent_, schedule_.records / 2 + 1);
  if (was_done) SendSome();
}

int64_t Input::Date() {
  Dice& dice = world_.dice();
  if (dice.Below(100) < schedule_.wild_of_hundred) return kWildTimes[dice.Below(3)];
  const int64_t time = times_ms_.back();
  if (world_.now() < fast_until_) return absl::ToUnixMillis(kBegin + world_.now() + ahead_);
  // The middle third is enough for stream time to stand, and to go on.
  const int sixths = 6 * (sent_ - sent_before_) / schedule_.records;
  const bool may_be_past = schedule_.is_past_first ? sixths < 3 : sixths >= 2 && sixths < 4;
  if (schedule_.past_of_hundred > 0 && may_be_past && dice.Below(100) < schedule_.past_of_hundred) {
    return time - 5 * absl::ToInt64Milliseconds(schedule_.horizon);
  }
  if (world_.now() >= bad_until_) return time;
  constexpr int64_t kTenYears = int64_t{10} * 365 * 86'400'000;
  switch (bad_clock_ % 4) {
    case 0:
      return time + kTenYears;
    case 1:
      return time * 1000;
    case 2:
      return time - kTenYears;
    default:
      return 1000;
  }
}

Record Input::Next(const std::string& topic) {
  Dice& dice = world_.dice();
  test::FaultyEvent event;
  event.send = sendings();
  const bool is_copy = events_ > 0 && dice.Below(10) < schedule_.copies_of_ten;
  const int64_t number =
      is_copy ? events_ - 1 - dice.Below(std::min<int64_t>(events_, schedule_.copies_within)) : events_++;
  ++sent_;
  // All of it is past when it is sent.
  const int64_t sent = sent_ - sent_before_;
  const int64_t silences = schedule_.burst > 0 ? sent / schedule_.burst : 0;
  const absl::Duration since_begin =
      schedule_.step * (sent - silences * schedule_.burst) + schedule_.silence * silences;
  times_ms_.push_back(absl::ToUnixMillis(kBegin - absl::Hours(60) + since_begin));
  if (dice.Below(100) >= schedule_.without_id_of_hundred) event.id = absl::StrCat("e", number);
  event.country = kCountries[number % 3];
  event.amount = number % 7 - 3;
  if (dice.Below(100) < schedule_.oversized_of_hundred) event.pad = std::string(2 * kOutputTakesBytes, 'x');
  Record record;
  if (!dice.OneIn(8)) record.key = event.id;
  if (dice.OneIn(16)) record.headers = {{"trace", absl::StrCat(event.send)}, {"empty", std::nullopt}};
  record.value = event.ToJson();
  record.timestamp_ms = Date();
  const auto partitions = static_cast<int64_t>(broker_.topic(topic).logs.size());
  record.partition = static_cast<int32_t>(is_routed_ ? dice.Below(partitions) : number % partitions);
  return record;
}

void Input::Append(const std::string& topic, Record record, int64_t transaction) {
  Log& log = *broker_.topic(topic).logs[static_cast<size_t>(record.partition)];
  record.offset = log.end();
  world_.Say(topic, "-", record.partition, "/", record.offset, ": ", *record.value,
             transaction < 0 ? "" : absl::StrCat(", in transaction ", transaction));
  log.Append({.transaction = transaction, .record = std::move(record)});
}

void Input::SendInTransaction(absl::Duration open, bool commits) {
  if (broker_.Find(topics_.front()) == nullptr) return;
  const int64_t transaction = broker_.BeginTransaction();
  std::vector<Log*> logs;
  for (int64_t count = world_.dice().Between(1, 4); count > 0; --count) {
    const std::string& topic = ChooseTopic();
    Record record = Next(topic);
    Log* const log = broker_.topic(topic).logs[static_cast<size_t>(record.partition)].get();
    if (std::find(logs.begin(), logs.end(), log) == logs.end()) logs.push_back(log);
    Append(topic, std::move(record), transaction);
  }
  ++open_transactions_;
  world_.After(open, [this, transaction, commits, logs] {
    world_.Say(topics_.front(), ": transaction ", transaction, commits ? " commits" : " aborts");
    for (Log* log : logs) broker_.EndTransaction(transaction, commits, *log);
    --open_transactions_;
  });
}

void Input::SendAnywhere() {
  const std::string& topic = ChooseTopic();
  Append(topic, Next(topic), /*transaction=*/-1);
}

void Input::SendTo(int32_t partition) {
  const std::string& topic = ChooseTopic();
  Record record = Next(topic);
  record.partition = partition;
  Append(topic, std::move(record), /*transaction=*/-1);
}

void Input::SendUnreadable(int64_t offsets) {
  const std::string& topic = ChooseTopic();
  if (broker_.Find(topic) == nullptr) return;
  const auto& logs = broker_.topic(topic).logs;
  Log& log = *logs[static_cast<size_t>(world_.dice().Below(static_cast<int64_t>(logs.size())))];
  const int64_t batch = log.end();
  for (; offsets > 0; --offsets) log.Append({.kind = Entry::Kind::kUnreadable, .batch = batch});
}

}  // namespace lethe::simulation
