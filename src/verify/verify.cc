#include "src/verify/verify.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "lethe/event.h"
#include "lethe/filter.h"
#include "src/fpp/confidence.h"

namespace lethe {
namespace {

using Fate = VerifyRules::Fate;

constexpr double kConfidence = 0.99;
constexpr absl::string_view kVerdictHeader = "lethe.verdict";
// A diverted record ends with them: verdict, reason, topic, partition and offset.
constexpr size_t kDivertedHeaders = 5;
// The low bits of a content are its time; 0: any time is the same. The high ones (kPayloadShift) are of key
// and value, those between of the headers, too.
constexpr uint64_t kTimeBits = (uint64_t{1} << 24) - 1;
constexpr uint64_t kNone = UINT64_MAX;
// Runs of equal records that are longer have a cursor, so that their length does not square.
constexpr size_t kLongRun = 64;
// For a changed record, among those of its id.
constexpr size_t kMostSteps = 1000;

uint64_t Mix(absl::string_view bytes, uint64_t seed) { return HashId(bytes, {.low = seed}).a; }
uint64_t Mix(uint64_t number, uint64_t seed) {
  return Mix(absl::string_view(reinterpret_cast<const char*>(&number), sizeof number), seed);
}
uint64_t Mix(const std::optional<absl::string_view>& bytes, uint64_t seed) {
  return bytes ? Mix(*bytes, seed) : ~seed;
}

struct OffsetSpan {
  int64_t first = 0;
  int64_t last = 0;
};

bool IsEarlier(const VerifyExample& x, const VerifyExample& y) {
  return std::tie(x.time_ms, x.partition, x.offset) < std::tie(y.time_ms, y.partition, y.offset);
}

}  // namespace

void VerifyReport::Add(VerifyKind kind, const VerifyExample& example) {
  ++counts[static_cast<size_t>(kind)];
  std::vector<VerifyExample>& kept = examples[static_cast<size_t>(kind)];
  if (kept.size() == kExamples && !IsEarlier(example, kept.back())) return;
  kept.insert(std::upper_bound(kept.begin(), kept.end(), example, IsEarlier), example);
  if (kept.size() > kExamples) kept.pop_back();
}

VerifyReport& VerifyReport::operator+=(const VerifyReport& more) {
  for (int64_t VerifyReport::*figure :
       {&VerifyReport::input_records, &VerifyReport::output_records, &VerifyReport::passed,
        &VerifyReport::copies, &VerifyReport::late, &VerifyReport::without_id, &VerifyReport::malformed,
        &VerifyReport::not_yet, &VerifyReport::before_begin, &VerifyReport::written_twice,
        &VerifyReport::lost_without_id, &VerifyReport::lost_skipped,
        &VerifyReport::equal_in_several_partitions, &VerifyReport::passed_after_horizon,
        &VerifyReport::differing, &VerifyReport::with_shared_id}) {
    this->*figure += more.*figure;
  }
  for (size_t kind = 0; kind < counts.size(); ++kind) {
    for (const VerifyExample& example : more.examples[kind]) Add(static_cast<VerifyKind>(kind), example);
    counts[kind] += more.counts[kind] - static_cast<int64_t>(more.examples[kind].size());
  }
  return *this;
}

int64_t VerifyReport::AllowedLosses(double fpp) const {
  const int64_t events = passed + lost_by_id();
  int64_t losses = 0;
  while (RateInterval(losses + 1, events, kConfidence).low <= fpp && losses < events) {
    losses += std::max<int64_t>(1, losses / 64);
  }
  return losses;
}

VerifyReport::Outcome VerifyReport::OutcomeFor(double fpp) const {
  const bool is_broken = lost_without_id > 0 || lost_skipped > 0 ||
                         (lost_by_id() > 0 && lost_by_id() > AllowedLosses(fpp)) ||
                         count(VerifyKind::kRepeated) > 0 || count(VerifyKind::kForeign) > 0 ||
                         count(VerifyKind::kChanged) > 0 || count(VerifyKind::kOutOfOrder) > 0 ||
                         equal_in_several_partitions > 0;
  if (is_broken) return Outcome::kBroken;
  const bool is_judged = passed + copies + without_id + malformed > 0 || not_yet == 0;
  // Ids that differ in what they bring may be unique in a partition alone.
  const bool is_undecided = count(VerifyKind::kUndecided) > 0 || !is_judged || lacks_ids() ||
                            has_doubtful_ids() || count(VerifyKind::kInSeveralPartitions) > 0;
  return is_undecided ? Outcome::kUndecided : Outcome::kHolds;
}

Verifier::Verifier(const VerifyRules& rules, const std::vector<VerifiedInput>& inputs,
                   int32_t output_partitions, SchemaSource* schemas, uint64_t seed, HashRange range,
                   int64_t expected)
    : rules_(rules),
      seed_(seed),
      range_(range),
      window_ms_(absl::ToInt64Milliseconds(rules.window)),
      edge_ms_(absl::ToInt64Milliseconds(rules.horizon / 4)),
      reader_({.id = rules.id, .schemas = schemas}),
      clocks_(inputs.size(), StreamTime::For(rules.horizon)),
      first_times_ms_(inputs.size(), kNoStreamTime),
      recent_(inputs.size()),
      outputs_(static_cast<size_t>(output_partitions)) {
  size_t partitions = outputs_.size();
  for (const VerifiedInput& input : inputs) {
    partitions = std::max(partitions, static_cast<size_t>(input.partition) + 1);
  }
  same_partition_.resize(partitions);
  for (const VerifiedInput& input : inputs) {
    const auto number = static_cast<int32_t>(numbers_.size());
    numbers_[{input.topic, input.partition}] = number;
    same_partition_[static_cast<size_t>(input.partition)].push_back(number);
    begins_.push_back(input.origin > input.read_from ? std::optional(input.origin) : std::nullopt);
  }
  inputs_.reserve(static_cast<size_t>(expected));
}

uint64_t Verifier::ContentOf(const SurveyRecord& record, bool is_output, bool& is_tagged) const {
  const uint64_t payload = Mix(record.record.value, Mix(record.record.key, seed_));
  uint64_t content = payload;
  size_t headers = record.headers.size();
  const bool names_source = is_output && !rules_.source_header.empty() && headers > 0 &&
                            record.headers[headers - 1].first == rules_.source_header;
  if (names_source) --headers;
  for (const auto& [name, value] : record.headers.first(headers)) {
    if (rules_.copies == Fate::kTagged && name == kVerdictHeader) {
      is_tagged = is_output;
      continue;
    }
    content = Mix(value, Mix(name, content));
  }
  // librdkafka writes a record of 1970, or without a time, with the present time.
  const bool any_time = rules_.ignores_time || record.time_ms <= 0;
  const uint64_t time = any_time ? 0 : Mix(static_cast<uint64_t>(record.time_ms), seed_) % kTimeBits + 1;
  constexpr uint64_t kPayloadBits = UINT64_MAX << kPayloadShift;
  return (payload & kPayloadBits) | (content & ~kPayloadBits & ~kTimeBits) | time;
}

// `partition`: that of the output, which has the number of the input's.
Verifier::Identity Verifier::IdentityOf(const SurveyRecord& record, int32_t partition, bool is_output) {
  Identity identity;
  identity.content = ContentOf(record, is_output, identity.is_tagged);
  const RecordFields& fields = reader_.Read(record.record);
  if (fields.id_state == RecordFields::State::kPresent) {
    identity.id = Mix(fields.id, seed_);
    return identity;
  }
  identity.state = kWithoutId;
  if (fields.id_state == RecordFields::State::kMalformed) identity.state |= kMalformed;
  const uint64_t seed = rules_.topic_scope ? seed_ : Mix(static_cast<uint64_t>(partition), seed_);
  // It is recognized by what is in it.
  identity.id = Mix(identity.content & ~kTimeBits, ~seed);
  return identity;
}

void Verifier::AddInput(int32_t partition, const SurveyRecord& record) {
  const auto at = static_cast<size_t>(partition);
  const bool has_time = record.time_ms >= 0 && absl::FromUnixMillis(record.time_ms) <= rules_.latest;
  const int64_t own_ms = has_time ? record.time_ms : kNoStreamTime;
  if (std::optional<int64_t>& begin = begins_[at]; begin && record.offset >= *begin) {
    // The group's clock began there, too.
    clocks_[at] = StreamTime::For(rules_.horizon);
    first_times_ms_[at] = kNoStreamTime;
    begin.reset();
  }
  const bool has_moved = clocks_[at].now_ms() != kNoStreamTime;
  int64_t time_ms = clocks_[at].Observe(own_ms);
  int64_t& first_ms = first_times_ms_[at];
  if (!has_moved && time_ms != kNoStreamTime) first_ms = time_ms;
  if (first_ms == kNoStreamTime) first_ms = own_ms;
  // Records of many partitions are judged by one clock, which waits for no partition with few records.
  if (rules_.topic_scope && own_ms > time_ms &&
      (time_ms == kNoStreamTime || own_ms - time_ms <= absl::ToInt64Milliseconds(rules_.horizon))) {
    time_ms = own_ms;
  }
  Recent& recent = recent_[at];
  if (has_time) NoteTime(recent, own_ms, time_ms);
  const Identity identity = IdentityOf(record, record.partition, /*is_output=*/false);
  if (!IsInRange(identity.id)) return;
  if (!has_time) recent.untimed.push_back(inputs_.size());
  const auto bytes = [](const auto& part) { return part ? static_cast<int64_t>(part->size()) : 0; };
  const bool too_large = bytes(record.record.key) + bytes(record.record.value) > rules_.max_output_bytes;
  const uint64_t state = identity.state | (too_large ? uint64_t{kUndeliverable} : 0);
  inputs_.push_back(Input::At(identity.id, partition, identity.content, record.offset, time_ms, state));
  Input& input = inputs_.back();
  input.own_ms = std::max(time_ms, *std::max_element(recent.times_ms.begin(), recent.times_ms.end()));
  // A copy whose id is renewed, or that a replay takes for a first, leaves the id no younger.
  int64_t latest_ms = input.own_ms;
  for (const auto& [before, since] : recent.ahead) {
    if (inputs_[before].id == input.id) latest_ms = std::max(latest_ms, inputs_[before].own_ms);
  }
  SetOwn(input, latest_ms);
  if (IsAhead(input, time_ms)) recent.ahead.emplace_back(inputs_.size() - 1, 0);
}

void Verifier::NoteTime(Recent& recent, int64_t own_ms, int64_t now_ms) {
  std::rotate(recent.times_ms.begin(), recent.times_ms.begin() + 1, recent.times_ms.end());
  recent.times_ms.back() = own_ms;
  // They may have come after a silence, or before it.
  for (const size_t i : recent.untimed) SetOwn(inputs_[i], own_ms);
  recent.untimed.clear();
  std::erase_if(recent.ahead, [&](std::pair<size_t, size_t>& ahead) {
    const Input& input = inputs_[ahead.first];
    if (IsAhead(input, now_ms) && ++ahead.second < StreamTime::kWindow) return false;
    if (now_ms > input.own_ms && now_ms - input.own_ms <= absl::ToInt64Milliseconds(rules_.horizon))
      overtaken_ms_[input.Place()] = now_ms;
    return true;
  });
}

void Verifier::SetOwn(Input& input, int64_t latest_ms) {
  if (latest_ms <= input.own_ms) return;
  earliest_own_ms_.try_emplace(input.Place(), input.own_ms);
  input.own_ms = latest_ms;
}

void Verifier::AddOutput(const SurveyRecord& record) {
  const Identity identity = IdentityOf(record, record.partition, /*is_output=*/true);
  if (!IsInRange(identity.id)) return;
  outputs_[static_cast<size_t>(record.partition)].push_back(
      {identity.id, identity.content, record.time_ms, record.offset * 2 + (identity.is_tagged ? 1 : 0)});
}

void Verifier::AddDiverted(const SurveyRecord& record) {
  // The last headers of a name are lethe's.
  std::map<absl::string_view, absl::string_view> last;
  for (const auto& [name, value] : record.headers) last[name] = value.value_or("");
  int32_t partition = 0;
  int64_t offset = 0;
  const absl::string_view verdict = last[kVerdictHeader];
  const bool is_placed = record.headers.size() >= kDivertedHeaders &&
                         absl::SimpleAtoi(last["lethe.partition"], &partition) &&
                         absl::SimpleAtoi(last["lethe.offset"], &offset);
  // An uncountable record is in the output, too.
  if (!is_placed || verdict == "uncountable") return;
  const auto number = numbers_.find({std::string(last["lethe.topic"]), partition});
  if (number == numbers_.end()) return;
  SurveyRecord original = record;
  original.headers = record.headers.first(record.headers.size() - kDivertedHeaders);
  const Identity identity = IdentityOf(original, partition, /*is_output=*/true);
  if (!IsInRange(identity.id)) return;
  diverted_.push_back({identity.id, number->second, offset, verdict == "undeliverable"});
}

VerifyReport Verifier::Judge(const VerifyBounds& bounds) {
  bounds_ = bounds;
  for (Input& input : inputs_) {
    // What came before stream time moved is as old as its first value.
    if (input.time_ms == kNoStreamTime)
      input.time_ms = std::max(first_times_ms_[input.partition], int64_t{0});
    if (input.own_ms == kNoStreamTime) input.own_ms = input.time_ms;
  }
  SortInputs();
  known_.assign(bounds.inputs.size(), {});
  for (size_t i = 0; i < known_.size(); ++i) {
    const VerifiedInput& input = bounds.inputs[i];
    if (input.read_from == 0) continue;
    Known& known = known_[i];
    known.read_since_ms = input.known_since_ms;
    known.is_cut = input.known_since_ms == INT64_MAX;
    if (known.is_cut && first_times_ms_[i] != kNoStreamTime) known.read_since_ms = first_times_ms_[i];
    // The filter knows nothing of before the group's beginning.
    if (input.origin < input.read_from) known.since_ms = known.read_since_ms;
  }
  for (const Input& input : inputs_) {
    if (static_cast<int64_t>(input.offset) >= bounds.inputs[input.partition].known_from) continue;
    Known& known = known_[input.partition];
    known.is_cut = true;
    known.since_ms = std::max(known.since_ms, input.time_ms);
    known.read_since_ms = std::max(known.read_since_ms, input.time_ms);
  }
  // Of a partition without records nothing is said.
  for (const Known& known : known_) {
    if (known.since_ms != INT64_MAX) since_ms_ = std::max(since_ms_, known.since_ms);
  }
  for (size_t partition = 0; partition < outputs_.size(); ++partition) Match(static_cast<int32_t>(partition));
  MarkDiverted();
  GuessCommitted();
  FindEarlier();
  for (size_t begin = 0; begin < inputs_.size();) {
    size_t end = begin + 1;
    while (end < inputs_.size() && inputs_[end].id == inputs_[begin].id) ++end;
    if ((inputs_[begin].state & kWithoutId) == 0) {
      JudgeById({begin, end});
    } else {
      for (size_t i = begin; i < end; ++i) JudgeWithoutId(inputs_[i]);
    }
    begin = end;
  }
  AddRepeated();
  return std::move(report_);
}

void Verifier::SortInputs() {
  std::sort(inputs_.begin(), inputs_.end(), [](const Input& x, const Input& y) { return x.Key() < y.Key(); });
  // Hashes are even, so a bucket has four records or so.
  const uint64_t width = range_.last - range_.first;
  while ((width >> bucket_shift_) > inputs_.size() / 4) ++bucket_shift_;
  buckets_.assign((width >> bucket_shift_) + 2, 0);
  for (const Input& input : inputs_) ++buckets_[((input.id - range_.first) >> bucket_shift_) + 1];
  for (size_t i = 1; i < buckets_.size(); ++i) buckets_[i] += buckets_[i - 1];
}

// The records of an id in a partition that `first` and `last`, contents, enclose.
Verifier::Run Verifier::FindRun(uint64_t id, int32_t partition, uint64_t first, uint64_t last) const {
  const size_t bucket = (id - range_.first) >> bucket_shift_;
  const auto from = inputs_.begin() + buckets_[bucket];
  const auto to = inputs_.begin() + buckets_[bucket + 1];
  const Input low = Input::At(id, partition, first, 0);
  const Input high = Input::At(id, partition, last, INT64_MAX);
  const auto by_key = [](const Input& x, const Input& y) { return x.Key() < y.Key(); };
  const auto begin = std::lower_bound(from, to, low, by_key);
  const auto end = std::upper_bound(begin, to, high, by_key);
  return {static_cast<size_t>(begin - inputs_.begin()), static_cast<size_t>(end - inputs_.begin())};
}

void Verifier::Match(int32_t partition) {
  const VerifiedOutput& bounds = bounds_.outputs[static_cast<size_t>(partition)];
  int64_t next = 0;
  size_t first = kNone;
  for (Output& output : outputs_[static_cast<size_t>(partition)]) {
    const bool is_judged = output.offset() >= bounds.judged_from;
    report_.output_records += is_judged ? 1 : 0;
    const size_t found = MatchOne(output, partition, next, first == kNone, is_judged);
    output.content = found;
    if (found == kNone) continue;
    if (first == kNone && output.offset() >= bounds.known_from) first = found;
    next = std::max(next, static_cast<int64_t>(inputs_[found].offset) + 1);
  }
  if (bounds.read_from == 0 && bounds.known_from == 0) return;
  // What was written of the records before the first one that was found is out of sight.
  for (const int32_t number : same_partition_[static_cast<size_t>(partition)]) {
    Known& known = known_[static_cast<size_t>(number)];
    const bool is_found = first != kNone;
    known.may_have_earlier = bounds.read_from > 0 && bounds_.inputs[static_cast<size_t>(number)].committed !=
                                                         VerifiedInput::kNotKnown;
    if (bounds.is_cut && is_found) known.seen_since_ms = inputs_[first].time_ms;
    known.unseen_before = is_found ? static_cast<int64_t>(inputs_[first].offset) : INT64_MAX;
    if (!bounds.is_cut) {
      known.unseen_before =
          std::min(known.unseen_before, bounds_.inputs[static_cast<size_t>(number)].judged_from);
    } else if (rules_.topic_scope) {
      // Order is kept for each id alone.
      known.unseen_until_ms = is_found ? inputs_[first].time_ms + edge_ms_ : INT64_MAX;
    }
  }
}

// The input's record that the output's is, and reports it if it is none, or out of order. `next`: the offset
// behind the last record that was found.
size_t Verifier::MatchOne(const Output& output, int32_t partition, int64_t next, bool is_first,
                          bool is_judged) {
  const auto report = [&](VerifyKind kind, size_t input) {
    if (!is_judged) return;
    std::optional<int64_t> input_offset;
    if (input != kNone) input_offset = static_cast<int64_t>(inputs_[input].offset);
    report_.Add(kind, {/*is_input=*/false, partition, output.offset(), output.time_ms, input_offset});
  };
  const std::vector<int32_t>& numbers = same_partition_[static_cast<size_t>(partition)];
  // Its input may have been deleted, or not been read: then another record of its id is not it.
  const bool is_edge = std::any_of(numbers.begin(), numbers.end(), [&](int32_t number) {
    const Known& known = known_[static_cast<size_t>(number)];
    return known.read_since_ms != INT64_MIN &&
           ((known.is_cut && is_first) || output.time_ms - edge_ms_ <= known.read_since_ms);
  });
  const auto found = [&](size_t input) {
    inputs_[input].Set(output.is_tagged() ? kMarked : kWritten);
    return input;
  };
  size_t any = kNone;
  size_t twin = kNone;
  size_t changed = kNone;
  for (const int32_t number : numbers) {
    const Run all = FindRun(output.id, number, 0, UINT64_MAX);
    if (all.begin == all.end) continue;
    any = all.begin;
    for (const uint64_t content : {output.content, output.content & ~kTimeBits}) {
      const bool any_time = (output.content & kTimeBits) == 0;
      const Run equal = FindRun(output.id, number, content, any_time ? content | kTimeBits : content);
      if (equal.begin == equal.end) continue;
      twin = equal.begin;
      const size_t chosen = Choose(equal, all, next, output.is_tagged());
      if (chosen == kNone) continue;
      const bool is_behind = static_cast<int64_t>(inputs_[chosen].offset) < next;
      if (is_behind && !rules_.topic_scope) {
        report(is_edge ? VerifyKind::kUndecided : VerifyKind::kOutOfOrder, chosen);
      }
      return found(chosen);
    }
    const size_t end = std::min(all.end, all.begin + kMostSteps);
    for (size_t at = all.begin; at < end; ++at) {
      const Input& input = inputs_[at];
      if (input.is_used() || static_cast<int64_t>(input.offset) < next) continue;
      if (changed == kNone || input.offset < inputs_[changed].offset) changed = at;
    }
  }
  if (is_edge) {
    report(VerifyKind::kUndecided, kNone);
    return kNone;
  }
  if (twin != kNone) {
    report_.written_twice += is_judged ? 1 : 0;
    report(VerifyKind::kRepeated, twin);
    return kNone;
  }
  if (any == kNone) {
    report(VerifyKind::kForeign, kNone);
    return kNone;
  }
  report(VerifyKind::kChanged, changed == kNone ? any : changed);
  return changed == kNone ? kNone : found(changed);
}

// Of equal records, which are by offset: the first that is not used and may pass, in the order of the log
// where there is one. `all`: the records of their id.
size_t Verifier::Choose(const Run& equal, const Run& all, int64_t next, bool is_tagged) {
  const auto at = [&](size_t i) { return inputs_.begin() + static_cast<std::ptrdiff_t>(i); };
  const auto index = [&](auto place) { return static_cast<size_t>(place - inputs_.begin()); };
  const bool is_long = equal.end - equal.begin > kLongRun;
  size_t unused = is_long ? std::max(cursors_[equal.begin], equal.begin) : equal.begin;
  while (unused < equal.end && inputs_[unused].is_used()) ++unused;
  if (is_long) cursors_[equal.begin] = unused;
  if (unused == equal.end) return kNone;
  if (rules_.topic_scope) return unused;
  size_t chosen = index(std::partition_point(at(unused), at(equal.end), [&](const Input& input) {
    return static_cast<int64_t>(input.offset) < next;
  }));
  const bool has_id = (inputs_[equal.begin].state & kWithoutId) == 0;
  const bool may_skip = has_id && !is_tagged && chosen + 1 < equal.end;
  if (const Input* passed = may_skip ? LastPass(equal, all, chosen) : nullptr; passed != nullptr) {
    const int64_t horizon_ms = absl::ToInt64Milliseconds(rules_.horizon);
    auto place = std::partition_point(at(chosen), at(equal.end), [&](const Input& input) {
      return input.time_ms <= passed->time_ms + horizon_ms;
    });
    const auto few = at(std::min(index(place), chosen + kMostSteps));
    const auto own =
        std::find_if(at(chosen), few, [&](const Input& input) { return !IsWithinHorizon(*passed, input); });
    if (own != few) place = own;
    const size_t may_pass = index(place);
    if (may_pass < equal.end) chosen = may_pass;
  }
  while (chosen < equal.end && inputs_[chosen].is_used()) ++chosen;
  return chosen < equal.end ? chosen : unused;
}

// The last record of the id that passed and comes before the one at `chosen`, or null; of very many records
// of an id only those that are equal are looked at.
const Verifier::Input* Verifier::LastPass(const Run& equal, const Run& all, size_t chosen) const {
  if (all.end - all.begin > kMostSteps) {
    size_t last = chosen;
    while (last > equal.begin && !inputs_[last - 1].is_used()) --last;
    return last > equal.begin ? &inputs_[last - 1] : nullptr;
  }
  const Input* passed = nullptr;
  for (size_t i = all.begin; i < all.end; ++i) {
    const Input& input = inputs_[i];
    if ((input.state & kWritten) == 0 || input.offset >= inputs_[chosen].offset) continue;
    if (passed == nullptr || input.offset > passed->offset) passed = &input;
  }
  return passed;
}

void Verifier::MarkDiverted() {
  for (const Diverted& diverted : diverted_) {
    const Run run = FindRun(diverted.id, diverted.partition, 0, UINT64_MAX);
    for (size_t at = run.begin; at < run.end; ++at) {
      if (static_cast<int64_t>(inputs_[at].offset) != diverted.offset) continue;
      inputs_[at].Set(diverted.is_undeliverable ? kUndeliverable : kMarked);
    }
  }
}

// Where the group does not say how far it is, the output does.
void Verifier::GuessCommitted() {
  std::vector<std::optional<OffsetSpan>> written(bounds_.inputs.size());
  for (const Input& input : inputs_) {
    if (!input.is_used()) continue;
    const auto offset = static_cast<int64_t>(input.offset);
    std::optional<OffsetSpan>& span = written[input.partition];
    if (!span) span = {offset, offset};
    span = {std::min(span->first, offset), std::max(span->last, offset)};
  }
  for (size_t i = 0; i < written.size(); ++i) {
    VerifiedInput& input = bounds_.inputs[i];
    if (input.committed != VerifiedInput::kNotKnown) continue;
    input.committed = written[i] ? written[i]->last : 0;
    input.origin = written[i] ? written[i]->first : 0;
  }
}

VerifyExample Verifier::PlaceOf(const Input& input) {
  return {/*is_input=*/true, static_cast<int32_t>(input.partition), static_cast<int64_t>(input.offset),
          input.time_ms};
}

void Verifier::FindEarlier() {
  // But for the time, which the output may not have.
  const auto is_later = [](const Input& x, const Input& y) {
    return x.id == y.id && x.partition == y.partition && ((x.content ^ y.content) & ~kTimeBits) == 0 &&
           x.offset < y.offset;
  };
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Input& input = inputs_[i];
    if (!input.is_used() || !IsBeforeBegin(input)) continue;
    // The output's record may be an equal one that came later.
    const bool has_later = (i + 1 < inputs_.size() && is_later(input, inputs_[i + 1])) ||
                           (i > 0 && is_later(input, inputs_[i - 1]));
    if (has_later) continue;
    Known& known = known_[input.partition];
    const auto offset = static_cast<int64_t>(input.offset);
    known.earlier_to = known.earlier_from == INT64_MAX ? offset : std::max(known.earlier_to, offset);
    known.earlier_from = std::min(known.earlier_from, offset);
  }
}

bool Verifier::IsBeforeBegin(const Input& input) const {
  return static_cast<int64_t>(input.offset) < bounds_.inputs[input.partition].origin;
}

void Verifier::JudgeBeforeBegin(const Input& input, bool is_judged) {
  if (!is_judged) return;
  const Known& known = known_[input.partition];
  const bool is_skipped =
      known.earlier_to != INT64_MAX && static_cast<int64_t>(input.offset) > known.earlier_to;
  if (!is_skipped && !known.may_have_earlier) {
    ++report_.before_begin;
    return;
  }
  ++report_.input_records;
  if (is_skipped && !IsOutOfSight(input)) {
    ++report_.lost_skipped;
    report_.Add(VerifyKind::kLost, PlaceOf(input));
  } else {
    report_.Add(VerifyKind::kUndecided, PlaceOf(input));
  }
}

// Whether the group has judged a record that is neither in the output nor diverted. Counts it if not.
bool Verifier::IsKnown(const Input& input, bool is_judged) {
  const VerifiedInput& bounds = bounds_.inputs[input.partition];
  const Known& known = known_[input.partition];
  const auto offset = static_cast<int64_t>(input.offset);
  if (IsBeforeBegin(input)) {
    // An earlier life has.
    if (known.earlier_from <= offset && offset < known.earlier_to) return true;
    JudgeBeforeBegin(input, is_judged);
    return false;
  }
  if (offset >= bounds.committed || input.time_ms >= bounds_.judged_until_ms) {
    report_.not_yet += is_judged ? 1 : 0;
    return false;
  }
  return true;
}

bool Verifier::IsOutOfSight(const Input& input) const {
  const Known& known = known_[input.partition];
  return static_cast<int64_t>(input.offset) < known.unseen_before || input.time_ms <= known.unseen_until_ms;
}

bool Verifier::IsUndeliverable(const Input& input) const {
  const std::vector<int64_t>& noted = bounds_.inputs[input.partition].undeliverable;
  return (input.state & kUndeliverable) != 0 ||
         std::binary_search(noted.begin(), noted.end(), static_cast<int64_t>(input.offset));
}

void Verifier::JudgeWithoutId(const Input& input) {
  const bool is_judged = IsJudged(input);
  const bool is_malformed = (input.state & kMalformed) != 0;
  const Fate fate = is_malformed ? rules_.malformed : rules_.without_id;
  const bool is_dropped = fate == Fate::kDropped && IsBeforeBegin(input);
  if (!input.is_used() && !is_dropped && !IsKnown(input, is_judged)) return;
  if (!is_judged) return;
  ++report_.input_records;
  ++(is_malformed ? report_.malformed : report_.without_id);
  if (input.is_used() || fate == Fate::kDropped) return;
  if (IsUndeliverable(input)) return report_.Add(VerifyKind::kUndeliverable, PlaceOf(input));
  if (IsOutOfSight(input)) return report_.Add(VerifyKind::kUndecided, PlaceOf(input));
  ++report_.lost_without_id;
  report_.Add(VerifyKind::kLost, PlaceOf(input));
}

void Verifier::JudgeById(const Run& group) {
  // Merged inputs share the partitions of the output.
  const auto scope = [&](const Input* input) {
    return rules_.topic_scope ? 0 : bounds_.inputs[input->partition].partition;
  };
  order_.clear();
  for (size_t i = group.begin; i < group.end; ++i) order_.push_back(&inputs_[i]);
  std::sort(order_.begin(), order_.end(), [&](const Input* x, const Input* y) {
    return std::tuple(scope(x), x->time_ms, x->partition, x->offset) <
           std::tuple(scope(y), y->time_ms, y->partition, y->offset);
  });
  dropped_ = differing_ = 0;
  for (size_t begin = 0; begin < order_.size();) {
    size_t end = begin + 1;
    while (end < order_.size() && scope(order_[end]) == scope(order_[begin])) ++end;
    JudgeInOrder(absl::MakeConstSpan(order_).subspan(begin, end - begin));
    begin = end;
  }
  if (differing_ >= VerifyReport::kManyDiffering && 2 * differing_ >= dropped_) {
    report_.with_shared_id += differing_;
  }
  if (scope(order_.front()) != scope(order_.back())) CountInSeveralPartitions();
}

// Of an id that came in several partitions. Each judges it for itself, so it may pass in all of them.
void Verifier::CountInSeveralPartitions() {
  std::erase_if(order_, [](const Input* input) { return (input->state & kWritten) == 0; });
  std::sort(order_.begin(), order_.end(), [](const Input* x, const Input* y) {
    return std::tuple(x->time_ms, x->partition, x->offset) < std::tuple(y->time_ms, y->partition, y->offset);
  });
  const int64_t horizon_ms = absl::ToInt64Milliseconds(rules_.horizon);
  const auto partition = [&](const Input* input) { return bounds_.inputs[input->partition].partition; };
  const Input* last = nullptr;
  const Input* elsewhere = nullptr;  // the last one in another partition than `last`
  const Input* found = nullptr;
  bool is_equal = false;
  for (const Input* input : order_) {
    if (last != nullptr && partition(last) != partition(input)) elsewhere = last;
    last = input;
    if (elsewhere == nullptr || !IsJudged(*input) || input->time_ms - elsewhere->time_ms > horizon_ms)
      continue;
    if (found == nullptr) found = input;
    is_equal = is_equal || HasEqualPayload(*input, *elsewhere);
  }
  if (found == nullptr) return;
  report_.Add(VerifyKind::kInSeveralPartitions, PlaceOf(*found));
  report_.equal_in_several_partitions += is_equal ? 1 : 0;
}

// Whether a record of the id passed so near to the time that one of it is a copy.
bool Verifier::PassedWithinWindow(int64_t time_ms) const {
  const auto from = std::lower_bound(passes_ms_.begin(), passes_ms_.end(), time_ms - window_ms_);
  return from != passes_ms_.end() && *from - time_ms <= window_ms_;
}

// The records of an id in its scope, by their time.
void Verifier::JudgeInOrder(absl::Span<Input* const> order) {
  passes_ms_.clear();
  for (const Input* input : order) {
    if ((input->state & kWritten) != 0) passes_ms_.push_back(input->time_ms);
  }
  History history;
  for (Input* input : order) {
    const bool is_judged = IsJudged(*input);
    if (!input->is_used() && IsBeforeBegin(*input) && PassedWithinWindow(input->time_ms)) {
      report_.input_records += is_judged ? 1 : 0;
      if (is_judged) CountCopy(*input, history.passed, /*is_late=*/false);
      continue;
    }
    if (!input->is_used() && !IsKnown(*input, is_judged)) continue;
    report_.input_records += is_judged ? 1 : 0;
    const int64_t time_ms = input->time_ms;
    const Input* const basis = rules_.renew ? history.seen : history.passed;
    bool passed = (input->state & kWritten) != 0;
    if (passed) {
      report_.passed += is_judged ? 1 : 0;
      if (basis != nullptr && IsWithinHorizon(*basis, *input)) {
        // Before its clock moves, a record of an unknown past may be older than it says.
        // Where the output begins, a record may be taken for an equal one of before.
        const Known& known = known_[input->partition];
        const bool is_dated =
            basis->time_ms > known.since_ms &&
            (known.seen_since_ms == INT64_MIN || basis->time_ms > known.seen_since_ms + window_ms_);
        if (is_dated) input->Set(kRepeated);
        if (!is_dated && is_judged) report_.Add(VerifyKind::kUndecided, PlaceOf(*input));
      } else if (basis != nullptr) {
        report_.passed_after_horizon += is_judged ? 1 : 0;
      }
    } else if ((input->state & kMarked) == 0 && IsOutOfSight(*input)) {
      if (is_judged) report_.Add(VerifyKind::kUndecided, PlaceOf(*input));
      passed = true;
    } else if (!JudgeCopy(*input, history, order, is_judged)) {
      continue;
    }
    if (!MayBeKept(history.seen, *input)) history.begun_ms = time_ms;
    history.seen = input;
    if (passed) history.passed = input;
  }
}

// A record that has not passed. False: nor is it remembered.
bool Verifier::JudgeCopy(const Input& input, const History& history, absl::Span<Input* const> order,
                         bool is_judged) {
  const Known& known = known_[input.partition];
  const int64_t since_ms = rules_.topic_scope ? since_ms_ : known.since_ms;
  bool is_copy = history.passed != nullptr && input.time_ms - PassedAt(*history.passed) <= window_ms_;
  bool is_late = !is_copy && MayBeKept(history.passed, input);
  bool is_decided = true;
  if (rules_.topic_scope && IsUndeliverable(input)) {
    // Which of two partitions comes first nobody knows. In its own it was rejected if none passed before it.
    is_copy = absl::c_any_of(order, [&](const Input* each) {
      return (each->state & kWritten) != 0 &&
             (each->partition != input.partition || each->offset < input.offset);
    });
  } else if (!is_copy && rules_.topic_scope) {
    // The one that passed may be dated later, in another partition.
    const auto later = std::lower_bound(passes_ms_.begin(), passes_ms_.end(), input.time_ms);
    is_copy = later != passes_ms_.end() && *later - input.time_ms <= window_ms_;
    is_late = !is_copy && history.passed != nullptr;
  }
  const bool is_rejected = rules_.topic_scope && !is_copy && IsUndeliverable(input);
  if (!is_copy && !is_late && !is_rejected) {
    if (MayBeKept(history.seen, input)) {
      // A restart that read no further back remembers a copy like a first.
      is_late = history.passed != nullptr || history.begun_ms - window_ms_ < since_ms;
    } else {
      is_decided = input.time_ms - window_ms_ >= since_ms;
    }
  }
  const bool is_missing = rules_.copies != Fate::kDropped && (input.state & kMarked) == 0;
  if ((is_copy || is_late) && !is_missing) {
    if (is_judged) CountCopy(input, history.passed, is_late);
    return true;
  }
  if (IsUndeliverable(input)) {
    if (is_judged) report_.Add(VerifyKind::kUndeliverable, PlaceOf(input));
    return false;
  }
  if (is_judged) report_.Add(is_decided ? VerifyKind::kLost : VerifyKind::kUndecided, PlaceOf(input));
  return true;
}

// `passed`: the record before it that passed, or null.
void Verifier::CountCopy(const Input& input, const Input* passed, bool is_late) {
  ++report_.copies;
  report_.late += is_late ? 1 : 0;
  if ((input.state & kMarked) != 0) return;
  ++dropped_;
  if (passed == nullptr || HasEqualPayload(*passed, input)) return;
  ++differing_;
  ++report_.differing;
}

// By stream time, and by their own times where it stands.
bool Verifier::IsWithinHorizon(const Input& before, const Input& input) const {
  const int64_t horizon_ms = absl::ToInt64Milliseconds(rules_.horizon);
  // One that is dated a horizon later than its copy is dated wrongly.
  return input.time_ms - before.time_ms <= horizon_ms && input.own_ms - EarliestOwn(before) <= horizon_ms &&
         before.own_ms - EarliestOwn(input) <= horizon_ms;
}

int64_t Verifier::EarliestOwn(const Input& input) const {
  const auto earliest = earliest_own_ms_.find(input.Place());
  if (earliest == earliest_own_ms_.end()) return input.own_ms;
  return earliest->second == kNoStreamTime ? input.time_ms : earliest->second;
}

// An id that came ahead of stream time is known from when that has come to it, or has jumped over it.
bool Verifier::MayBeKept(const Input* before, const Input& input) const {
  if (before == nullptr) return false;
  const auto overtaken = overtaken_ms_.find(before->Place());
  const int64_t since_ms = overtaken == overtaken_ms_.end() ? PassedAt(*before) : overtaken->second;
  return input.time_ms - since_ms <= window_ms_;
}

bool Verifier::IsJudged(const Input& input) const {
  return static_cast<int64_t>(input.offset) >= bounds_.inputs[input.partition].judged_from;
}

// At their places in the output.
void Verifier::AddRepeated() {
  for (size_t partition = 0; partition < outputs_.size(); ++partition) {
    for (const Output& output : outputs_[partition]) {
      if (output.content == kNone) continue;
      const Input& input = inputs_[output.content];
      if ((input.state & kRepeated) == 0 || !IsJudged(input)) continue;
      report_.Add(VerifyKind::kRepeated,
                  {/*is_input=*/false, static_cast<int32_t>(partition), output.offset(), input.time_ms,
                   static_cast<int64_t>(input.offset)});
    }
  }
}

}  // namespace lethe
