#include "src/record/protobuf_walk.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

#include "src/record/varint.h"

namespace lethe {
namespace {

using namespace protobuf_wire;  // NOLINT(google-build-using-namespace): six constants

constexpr int kDeepestGroup = 100;

// How often std::binary_search compares, about.
uint64_t StepsOfSearch(const std::vector<uint32_t>& sorted) { return std::bit_width(sorted.size()); }

// The field's number and its wire type. False: such a tag cannot be.
bool TakeTag(const char** at, const char* end, uint32_t* number, uint8_t* wire) {
  uint64_t tag = 0;
  if (!TakeVarint(at, end, &tag) || tag > UINT32_MAX) return false;
  *number = static_cast<uint32_t>(tag >> 3);
  *wire = static_cast<uint8_t>(tag & 7);
  return *number != 0;
}

// Its decimal text views `digits`.
template <class Number>
FieldValue NumberValue(Number number, std::array<char, 32>& digits) {
  const char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  return {FieldValue::Kind::kNumber, false, {digits.data(), static_cast<size_t>(end - digits.data())}};
}

// JSON has no text for those without end, and for what is no number.
template <class Real, class Bits>
FieldValue RealValue(Bits bits, std::array<char, 32>& digits) {
  const auto real = std::bit_cast<Real>(bits);
  if (!std::isfinite(real)) return {FieldValue::Kind::kOther, false, {}};
  return NumberValue(real, digits);
}

// Little-endian.
uint64_t FixedNumber(const char* at, size_t size) {
  uint64_t number = 0;
  for (size_t i = 0; i < size; ++i) number |= static_cast<uint64_t>(static_cast<uint8_t>(at[i])) << (8 * i);
  return number;
}

// Whether a field that is written so is the step's: else it is an unknown one.
bool IsWrittenSo(const ProtobufStep& step, uint8_t wire) {
  if (step.type == ProtobufType::kByWire) return true;
  const uint8_t own = ProtobufWireOf(step.type);
  // Repeated numbers may be packed, whatever the schema says.
  return wire == own || (step.is_repeated && wire == kLength && own != kGroup);
}

// Whether a number is one of the enum's, if that has no others.
bool IsKnown(const ProtobufStep& step, uint64_t number) {
  return step.type != ProtobufType::kEnum || !step.symbols->is_closed ||
         step.symbols->symbols.contains(static_cast<int32_t>(number));
}

// Too large numbers lose their upper bits, as in other readers. Unknown ones of an enum are not stored.
void StoreValue(const ProtobufStep& step, uint64_t number, absl::string_view bytes, FieldValue& value,
                std::array<char, 32>& digits) {
  using Kind = FieldValue::Kind;
  switch (step.type) {
    case ProtobufType::kInt32:
    case ProtobufType::kSfixed32:
      value = NumberValue(static_cast<int32_t>(number), digits);
      break;
    case ProtobufType::kByWire:
    case ProtobufType::kInt64:
    case ProtobufType::kSfixed64:
      value = NumberValue(static_cast<int64_t>(number), digits);
      break;
    case ProtobufType::kUint32:
    case ProtobufType::kFixed32:
      value = NumberValue(static_cast<uint32_t>(number), digits);
      break;
    case ProtobufType::kUint64:
    case ProtobufType::kFixed64:
      value = NumberValue(number, digits);
      break;
    case ProtobufType::kSint32:
      value = NumberValue(static_cast<int32_t>(FromZigzag(static_cast<uint32_t>(number))), digits);
      break;
    case ProtobufType::kSint64:
      value = NumberValue(FromZigzag(number), digits);
      break;
    case ProtobufType::kFloat:
      value = RealValue<float>(static_cast<uint32_t>(number), digits);
      break;
    case ProtobufType::kDouble:
      value = RealValue<double>(number, digits);
      break;
    case ProtobufType::kBool:
      value = {Kind::kOther, false, number != 0 ? "true" : "false"};
      break;
    case ProtobufType::kString:
      value = {Kind::kString, false, bytes};
      break;
    case ProtobufType::kEnum: {
      const auto symbol = step.symbols->symbols.find(static_cast<int32_t>(number));
      if (symbol != step.symbols->symbols.end()) {
        value = {Kind::kString, false, symbol->second};
      } else if (!step.symbols->is_closed) {
        value = NumberValue(static_cast<int32_t>(number), digits);
      }
      break;
    }
    case ProtobufType::kMessage:
    case ProtobufType::kGroup:
      value = {Kind::kOther, false, {}};
      break;
  }
}

}  // namespace

uint8_t ProtobufWireOf(ProtobufType type) {
  switch (type) {
    case ProtobufType::kFixed32:
    case ProtobufType::kSfixed32:
    case ProtobufType::kFloat:
      return kFixed32;
    case ProtobufType::kFixed64:
    case ProtobufType::kSfixed64:
    case ProtobufType::kDouble:
      return kFixed64;
    case ProtobufType::kString:
    case ProtobufType::kMessage:
      return kLength;
    case ProtobufType::kGroup:
      return kGroup;
    default:
      return kVarint;
  }
}

ProtobufWalk::ProtobufWalk(std::shared_ptr<const std::vector<ProtobufPlace>> places)
    : places_(std::move(places)), ends_at_(2) {
  for (size_t i = 0; i < places_->size(); ++i) {
    const ProtobufPath& path = (*places_)[i].path;
    targets_.push_back({.place = &(*places_)[i], .seen = std::vector<int64_t>(path.size())});
    if (path.empty()) continue;
    const uint64_t bit = uint64_t{1} << i;
    all_ |= bit;
    ends_at_.resize(std::max(ends_at_.size(), path.size() + 1));
    ends_at_[path.size()] |= bit;
    for (const ProtobufStep& step : path) {
      if (step.is_repeated) special_ |= bit;
    }
  }
}

bool ProtobufWalk::Fail(const char* error, const char* at) {
  error_ = error;
  error_offset_ = static_cast<size_t>(at - begin_);
  return false;
}

// What was found of it behind its step at `depth` does not count.
void ProtobufWalk::Forget(Target& target, size_t depth) {
  steps_ += target.place->path.size() - depth;
  target.value = FieldValue();
  if (depth + 1 < target.place->path.size()) target.is_reached = false;
  for (size_t i = depth + 1; i < target.seen.size(); ++i) target.seen[i] = 0;
}

bool ProtobufWalk::Walk(absl::string_view message) {
  begin_ = message.data();
  steps_ = 0;
  for (Target& target : targets_) {
    target.value = FieldValue();
    target.is_reached = false;
  }
  for (uint64_t rest = special_; rest != 0; rest &= rest - 1) {
    Target& target = targets_[static_cast<size_t>(std::countr_zero(rest))];
    std::fill(target.seen.begin(), target.seen.end(), 0);
  }
  if (!WalkMessage(message, all_, 0)) return false;
  for (Target& target : targets_) {
    if (target.value.kind == FieldValue::Kind::kAbsent && target.is_reached &&
        target.place->path.back().has_default) {
      StoreValue(target.place->path.back(), 0, "", target.value, target.digits);
    }
    target.value.unit = target.place->unit;
  }
  return true;
}

// Recursive only along the paths.
bool ProtobufWalk::WalkMessage(absl::string_view message, uint64_t live, size_t depth) {
  const char* at = message.data();
  const char* const end = at + message.size();
  for (uint64_t last = live & ends_at_[depth + 1]; last != 0; last &= last - 1) {
    targets_[static_cast<size_t>(std::countr_zero(last))].is_reached = true;
  }
  while (at < end) {
    const char* const field = at;
    uint32_t number = 0;
    uint8_t wire = 0;
    if (!TakeTag(&at, end, &number, &wire)) return Fail("a field has no number", field);
    Written written{.wire = wire};
    if (wire == kGroup) {
      if (!SkipGroup(&at, end, number, &written)) {
        return Fail("a group does not end, or is nested too deeply", field);
      }
    } else if (!TakeField(&at, end, wire, &written)) {
      return Fail(wire == kGroupEnd || wire > kFixed32 ? "a field has a wrong type" : "a field is cut off",
                  field);
    }
    const uint64_t matching = Matching(live, depth, number, wire);
    if (matching != 0 && !WalkField(written, matching, depth)) return false;
  }
  return true;
}

bool ProtobufWalk::WalkField(const Written& written, uint64_t matching, size_t depth) {
  for (uint64_t special = matching & special_; special != 0; special &= special - 1) {
    const uint64_t bit = special & -special;
    bool is_it = true;
    if (!TakeElements(written, depth, targets_[static_cast<size_t>(std::countr_zero(bit))], &is_it)) {
      return false;
    }
    if (!is_it) matching &= ~bit;
  }
  for (uint64_t ending = matching & ends_at_[depth + 1]; ending != 0; ending &= ending - 1) {
    Target& target = targets_[static_cast<size_t>(std::countr_zero(ending))];
    const ProtobufStep& step = target.place->path[depth];
    if (step.type != ProtobufType::kByWire) {
      StoreValue(step, written.number, written.bytes, target.value, target.digits);
    } else if (written.wire == kLength) {
      target.value = {FieldValue::Kind::kString, false, written.bytes};
    } else if (written.wire == kGroup) {
      target.value = {FieldValue::Kind::kOther, false, {}};
    } else if (written.wire == kVarint) {
      target.value = NumberValue(static_cast<int64_t>(written.number), target.digits);
    } else {
      target.value = NumberValue(written.number, target.digits);
    }
  }
  matching &= ~ends_at_[depth + 1];
  if (written.wire == kGroup) {  // by its number alone a group is not looked into
    for (uint64_t rest = matching; rest != 0; rest &= rest - 1) {
      const uint64_t bit = rest & -rest;
      const Target& target = targets_[static_cast<size_t>(std::countr_zero(bit))];
      if (target.place->path[depth].type != ProtobufType::kGroup) matching &= ~bit;
    }
  } else if (written.wire != kLength) {
    return true;
  }
  return matching == 0 || WalkMessage(written.bytes, matching, depth + 1);
}

// Of a target with a repeated field: whether this one is (`is_it`) the element or the entry that it means. A
// number of packed ones is stored at once.
bool ProtobufWalk::TakeElements(const Written& written, size_t depth, Target& target, bool* is_it) {
  const ProtobufStep& step = target.place->path[depth];
  if (!step.is_repeated) return true;
  *is_it = false;
  if (step.map_key) {
    if (!HasKey(written.bytes, step, is_it)) return false;
    if (*is_it) Forget(target, depth);
  } else if (step.index < 0) {
    target.value = {FieldValue::Kind::kOther, false, {}};
  } else if (written.wire == kLength && ProtobufWireOf(step.type) != kLength) {
    return TakePacked(written.bytes, target);
  } else {
    *is_it = IsKnown(step, written.number) && target.seen[depth]++ == step.index;
  }
  return true;
}

// Numbers: the last step of the target.
bool ProtobufWalk::TakePacked(absl::string_view elements, Target& target) {
  const ProtobufStep& step = target.place->path.back();
  int64_t& seen = target.seen.back();
  const char* at = elements.data();
  const char* const end = at + elements.size();
  while (at < end) {
    Written element;
    if (!TakeField(&at, end, ProtobufWireOf(step.type), &element))
      return Fail("a packed number is cut off", at);
    if (!IsKnown(step, element.number)) continue;
    if (seen++ == step.index) StoreValue(step, element.number, "", target.value, target.digits);
  }
  return true;
}

bool ProtobufWalk::HasKey(absl::string_view entry, const ProtobufStep& step, bool* has) {
  const char* at = entry.data();
  const char* const end = at + entry.size();
  ProtobufStep key(1);
  key.type = step.key_type;
  FieldValue value;
  std::array<char, 32> digits;
  StoreValue(key, 0, "", value, digits);
  while (at < end) {
    const char* const field = at;
    uint32_t number = 0;
    uint8_t wire = 0;
    Written written;
    if (!TakeTag(&at, end, &number, &wire)) return Fail("a field has no number", field);
    if (!(wire == kGroup ? SkipGroup(&at, end, number, &written) : TakeField(&at, end, wire, &written))) {
      return Fail("a field in a map is cut off", field);
    }
    if (number == 1 && IsWrittenSo(key, wire)) StoreValue(key, written.number, written.bytes, value, digits);
  }
  *has = value.text == *step.map_key;
  return true;
}

bool ProtobufWalk::TakeField(const char** at, const char* end, uint8_t wire, Written* written) {
  ++steps_;
  size_t size = 0;
  switch (wire) {
    case kVarint:
      return TakeVarint(at, end, &written->number);
    case kFixed64:
      size = 8;
      break;
    case kFixed32:
      size = 4;
      break;
    case kLength: {
      uint64_t length = 0;
      if (!TakeVarint(at, end, &length) || length > static_cast<uint64_t>(end - *at)) return false;
      written->bytes = {*at, static_cast<size_t>(length)};
      *at += length;
      return true;
    }
    default:
      return false;
  }
  if (static_cast<size_t>(end - *at) < size) return false;
  written->number = FixedNumber(*at, size);
  *at += size;
  return true;
}

bool ProtobufWalk::SkipGroup(const char** at, const char* end, uint32_t number, Written* written) {
  const char* const begin = *at;
  std::array<uint32_t, kDeepestGroup> open;
  size_t depth = 0;
  open[depth++] = number;
  while (depth > 0) {
    ++steps_;
    written->bytes = {begin, static_cast<size_t>(*at - begin)};
    uint32_t inner = 0;
    uint8_t wire = 0;
    if (!TakeTag(at, end, &inner, &wire)) return false;
    if (wire == kGroup) {
      if (depth == open.size()) return false;
      open[depth++] = inner;
    } else if (wire == kGroupEnd) {
      if (open[--depth] != inner) return false;
    } else {
      Written skipped;
      if (!TakeField(at, end, wire, &skipped)) return false;
    }
  }
  return true;
}

uint64_t ProtobufWalk::Matching(uint64_t live, size_t depth, uint32_t number, uint8_t wire) {
  uint64_t matching = 0;
  for (; live != 0; live &= live - 1) {
    Target& target = targets_[static_cast<size_t>(std::countr_zero(live))];
    const ProtobufStep& step = target.place->path[depth];
    ++steps_;
    if (step.number == number) {
      if (IsWrittenSo(step, wire)) matching |= live & -live;
      continue;
    }
    steps_ += StepsOfSearch(step.rivals);
    if (std::binary_search(step.rivals.begin(), step.rivals.end(), ProtobufTag(number, wire))) {
      Forget(target, depth);
    }
  }
  return matching;
}

}  // namespace lethe
