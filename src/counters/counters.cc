#include "lethe/counters.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace lethe {
namespace {

constexpr absl::string_view kMode = "{\"mode\":\"total\",\"total\":";
constexpr absl::string_view kOffset = ",\"offset\":";

absl::Status Wrong(absl::string_view what) { return absl::InvalidArgumentError(what); }

// Takes the part before the next '/', and the '/'. False if there is none.
bool TakePart(absl::string_view& text, absl::string_view* part) {
  const size_t slash = text.find('/');
  if (slash == absl::string_view::npos || slash == 0) return false;
  *part = text.substr(0, slash);
  text.remove_prefix(slash + 1);
  return true;
}

// As lethe writes them: digits, and a '-' before them or none.
bool TakeNumber(absl::string_view& text, int64_t* number) {
  const size_t end = std::min(text.find_first_not_of("-0123456789"), text.size());
  if (!absl::SimpleAtoi(text.substr(0, end), number)) return false;
  text.remove_prefix(end);
  return true;
}

}  // namespace

std::string CounterTotal::RecordKey() const {
  return absl::StrCat(counter, "/", topic, "/", partition, "/", key);
}

std::string CounterTotal::RecordValue() const { return absl::StrCat(kMode, total, kOffset, offset, "}"); }

absl::StatusOr<CounterTotal> CounterTotal::Parse(absl::string_view key,
                                                 std::optional<absl::string_view> value) {
  CounterTotal parsed;
  absl::string_view counter, topic, partition;
  if (!TakePart(key, &counter) || !TakePart(key, &topic) || !TakePart(key, &partition) || key.empty() ||
      !absl::SimpleAtoi(partition, &parsed.partition) || parsed.partition < 0) {
    return Wrong("its key is not COUNTER/TOPIC/PARTITION/KEY");
  }
  parsed.counter = std::string(counter);
  parsed.topic = std::string(topic);
  parsed.key = std::string(key);
  if (!value) return parsed;
  absl::string_view rest = *value;
  // Later versions may add more behind these.
  if (!absl::ConsumePrefix(&rest, kMode) || !TakeNumber(rest, &parsed.total) ||
      !absl::ConsumePrefix(&rest, kOffset) || !TakeNumber(rest, &parsed.offset) || parsed.offset < 0 ||
      !(rest == "}" || (absl::StartsWith(rest, ",") && absl::EndsWith(rest, "}")))) {
    return Wrong(absl::StrCat("its value is not ", kMode, "TOTAL", kOffset, "OFFSET}"));
  }
  return parsed;
}

absl::Status CounterReader::Add(std::optional<absl::string_view> key,
                                std::optional<absl::string_view> value) {
  if (!key || key->empty()) return Wrong("it has no key");
  const bool is_total = value ? absl::StartsWith(*value, "{") : mode_ == Mode::kTotal;
  const Mode mode = is_total ? Mode::kTotal : Mode::kDelta;
  if (mode_ != Mode::kUnknown && mode != mode_) {
    return Wrong(is_total ? "it is a total, and those before it are deltas"
                          : "it is a delta, and those before it are totals");
  }
  absl::Status added = is_total ? AddTotal(*key, value)
                       : value  ? AddDelta(*key, *value)
                                : Wrong("it is a tombstone, and deltas have none");
  if (added.ok()) mode_ = mode;
  return added;
}

absl::Status CounterReader::AddDelta(absl::string_view key, absl::string_view value) {
  int64_t delta = 0;
  if (!TakeNumber(value, &delta) || !value.empty()) {
    return Wrong("its value is not a whole number of 64 bits");
  }
  totals_[key] += delta;
  return absl::OkStatus();
}

absl::Status CounterReader::AddTotal(absl::string_view key, std::optional<absl::string_view> value) {
  const absl::StatusOr<CounterTotal> total = CounterTotal::Parse(key, value);
  if (!total.ok()) return total.status();
  int64_t& shard = shards_[key];
  totals_[total->key] += absl::int128(total->total) - shard;
  shard = total->total;
  return absl::OkStatus();
}

absl::int128 CounterReader::Total(absl::string_view key) const {
  const auto found = totals_.find(key);
  return found == totals_.end() ? 0 : found->second;
}

std::vector<std::pair<std::string, absl::int128>> CounterReader::Top(const Totals& totals, size_t most) {
  using Entry = std::pair<std::string, absl::int128>;
  std::vector<const Totals::value_type*> all;
  all.reserve(totals.size());
  for (const auto& entry : totals) all.push_back(&entry);
  most = std::min(most, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(most), all.end(),
                    [](const auto* x, const auto* y) {
                      return x->second != y->second ? x->second > y->second : x->first < y->first;
                    });
  std::vector<Entry> top;
  for (size_t i = 0; i < most; ++i) top.emplace_back(all[i]->first, all[i]->second);
  return top;
}

}  // namespace lethe
