#include "src/record/protobuf_walk.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <utility>

#include "src/record/varint.h"

namespace lethe {
namespace {

// Of the encoding: https://protobuf.dev/programming-guides/encoding
constexpr uint8_t kVarint = 0;
constexpr uint8_t kFixed64 = 1;
constexpr uint8_t kLength = 2;
constexpr uint8_t kGroup = 3;
constexpr uint8_t kGroupEnd = 4;
constexpr uint8_t kFixed32 = 5;
constexpr int kDeepestGroup = 100;

// The field's number and its wire type. False: such a tag cannot be.
bool TakeTag(const char** at, const char* end, uint32_t* number, uint8_t* wire) {
  uint64_t tag = 0;
  if (!TakeVarint(at, end, &tag) || tag > UINT32_MAX) return false;
  *number = static_cast<uint32_t>(tag >> 3);
  *wire = static_cast<uint8_t>(tag & 7);
  return *number != 0;
}

// Its decimal text, the shortest one, views `digits`.
template <class Number>
FieldValue NumberValue(Number number, std::array<char, 32>& digits) {
  const char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  return {FieldValue::Kind::kNumber, false, {digits.data(), static_cast<size_t>(end - digits.data())}};
}
template <class Number>
FieldValue FiniteValue(Number number, std::array<char, 32>& digits) {
  if (!std::isfinite(number)) return {FieldValue::Kind::kOther, false, {}};
  return NumberValue(number, digits);
}

// The encoding of a type; of an unknown one any.
bool IsWrittenAs(ProtobufType type, uint8_t wire) {
  switch (type) {
    case ProtobufType::kUnknown:
    case ProtobufType::kAll:
      return true;
    case ProtobufType::kFixed32:
    case ProtobufType::kSfixed32:
    case ProtobufType::kFloat:
      return wire == kFixed32;
    case ProtobufType::kFixed64:
    case ProtobufType::kSfixed64:
    case ProtobufType::kDouble:
      return wire == kFixed64;
    case ProtobufType::kBytes:
      return wire == kLength;
    case ProtobufType::kMessage:
      return wire == kLength || wire == kGroup;
    default:
      return wire == kVarint;
  }
}

// Little-endian.
uint64_t FixedNumber(const char* at, size_t size) {
  uint64_t number = 0;
  for (size_t i = 0; i < size; ++i) number |= static_cast<uint64_t>(static_cast<uint8_t>(at[i])) << (8 * i);
  return number;
}

uint8_t WireOf(ProtobufType type) {
  uint8_t wire = kVarint;
  while (!IsWrittenAs(type, wire)) ++wire;
  return wire;
}

}  // namespace

ProtobufWalk::ProtobufWalk(std::vector<ProtobufPlace> places) : ends_at_(2) {
  for (size_t i = 0; i < places.size(); ++i) {
    ProtobufPlace& place = places[i];
    const uint64_t bit = uint64_t{1} << i;
    if (!place.path.empty()) {
      all_ |= bit;
      ends_at_.resize(std::max(ends_at_.size(), place.path.size() + 1));
      ends_at_[place.path.size()] |= bit;
      if (place.has_default) with_default_ |= bit;
      if (!place.rivals.empty()) with_rivals_ |= bit;
      if (!place.elements.empty()) with_elements_ |= bit;
    }
    Target& target = targets_.emplace_back();
    target.place = std::move(place);
    target.seen.resize(target.place.elements.size());
  }
}

bool ProtobufWalk::Fail(const char* error, const char* at) {
  error_ = error;
  error_offset_ = static_cast<size_t>(at - begin_);
  return false;
}

bool ProtobufWalk::Walk(absl::string_view message) {
  begin_ = message.data();
  for (Target& target : targets_) Forget(target, 0);
  return WalkMessage(message.data(), message.data() + message.size(), all_, 0);
}

// Recursive only along the paths.
bool ProtobufWalk::WalkMessage(const char* at, const char* end, uint64_t live, size_t depth) {
  for (uint64_t rest = live & with_default_ & ends_at_[depth + 1]; rest != 0; rest &= rest - 1) {
    Target& target = targets_[static_cast<size_t>(std::countr_zero(rest))];
    if (target.value.kind == FieldValue::Kind::kAbsent) StoreDefault(target);
  }
  while (at < end) {
    const char* const field = at;
    uint32_t number = 0;
    uint8_t wire = 0;
    if (!TakeTag(&at, end, &number, &wire)) return Fail("a field has no number", field);
    Written written{.wire = wire};
    if (wire == kGroup) {
      if (!SkipGroup(&at, end, number)) return Fail("a group has no end, or is too deep", field);
    } else if (!TakeField(&at, end, wire, &written)) {
      return Fail(wire == kGroupEnd || wire > kFixed32 ? "a field has a wrong type" : "a field is cut off",
                  field);
    }
    if ((live & with_rivals_) != 0) ForgetRivals(live & with_rivals_, depth, number);
    uint64_t matching = Matching(live, depth, number);
    if ((matching & with_elements_) != 0 && !Select(written, depth, &matching)) {
      return Fail("a repeated field or a map is broken", field);
    }
    for (uint64_t ending = matching & ends_at_[depth + 1]; ending != 0; ending &= ending - 1) {
      Store(written, targets_[static_cast<size_t>(std::countr_zero(ending))]);
    }
    matching &= ~ends_at_[depth + 1];
    if (matching == 0 || wire != kLength) continue;
    const absl::string_view inner = written.bytes;
    if (!WalkMessage(inner.data(), inner.data() + inner.size(), matching, depth + 1)) return false;
  }
  return true;
}

bool ProtobufWalk::TakeField(const char** at, const char* end, uint8_t wire, Written* written) {
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

bool ProtobufWalk::SkipGroup(const char** at, const char* end, uint32_t number) {
  std::array<uint32_t, kDeepestGroup> open;
  size_t depth = 0;
  open[depth++] = number;
  while (depth > 0) {
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

uint64_t ProtobufWalk::Matching(uint64_t live, size_t depth, uint32_t number) const {
  uint64_t matching = 0;
  for (; live != 0; live &= live - 1) {
    const Target& target = targets_[static_cast<size_t>(std::countr_zero(live))];
    if (target.place.path[depth] == number) matching |= live & -live;
  }
  return matching;
}

void ProtobufWalk::ForgetRivals(uint64_t live, size_t depth, uint32_t number) {
  for (; live != 0; live &= live - 1) {
    Target& target = targets_[static_cast<size_t>(std::countr_zero(live))];
    if (depth >= target.place.rivals.size()) continue;
    const std::vector<uint32_t>& rivals = target.place.rivals[depth];
    if (std::find(rivals.begin(), rivals.end(), number) != rivals.end()) Forget(target, depth);
  }
}

void ProtobufWalk::Forget(Target& target, size_t depth) {
  target.value = FieldValue();
  for (size_t i = depth; i < target.seen.size(); ++i) target.seen[i] = 0;
}

bool ProtobufWalk::Select(const Written& written, size_t depth, uint64_t* matching) {
  for (uint64_t rest = *matching & with_elements_; rest != 0; rest &= rest - 1) {
    Target& target = targets_[static_cast<size_t>(std::countr_zero(rest))];
    if (depth >= target.place.elements.size()) continue;
    const ProtobufElement& element = target.place.elements[depth];
    bool is_it = true;
    switch (element.kind) {
      case ProtobufElement::Kind::kLast:
        break;
      case ProtobufElement::Kind::kIndex:
        if (!SelectElement(written, depth, target, &is_it)) return false;
        break;
      case ProtobufElement::Kind::kKey:
        if (!SelectEntry(written, element, &is_it)) return false;
        if (is_it) Forget(target, depth + 1);  // of a key that is there twice the last value counts
        break;
    }
    if (!is_it) *matching &= ~(rest & -rest);
  }
  return true;
}

// Numbers may be packed: many in the bytes of one field.
bool ProtobufWalk::SelectElement(const Written& written, size_t depth, Target& target, bool* is_it) {
  const bool is_last = target.place.path.size() == depth + 1;
  const ProtobufType type = is_last ? target.place.type : ProtobufType::kMessage;
  const uint64_t index = target.place.elements[depth].index;
  uint64_t& seen = target.seen[depth];
  *is_it = false;
  if (IsWrittenAs(type, written.wire)) {
    *is_it = seen++ == index;
    return true;
  }
  if (written.wire != kLength || type == ProtobufType::kMessage) return true;  // of another type: unknown
  const char* at = written.bytes.data();
  const char* const end = at + written.bytes.size();
  for (Written one{.wire = WireOf(type)}; at < end;) {
    if (!TakeField(&at, end, one.wire, &one)) return false;
    if (seen++ == index) Store(one, target);
  }
  return true;
}

bool ProtobufWalk::SelectEntry(const Written& written, const ProtobufElement& element, bool* is_it) {
  *is_it = false;
  if (written.wire != kLength) return true;
  key_.place.type = element.key_type;
  StoreDefault(key_);
  const char* at = written.bytes.data();
  const char* const end = at + written.bytes.size();
  while (at < end) {
    uint32_t number = 0;
    Written field;
    if (!TakeTag(&at, end, &number, &field.wire)) return false;
    if (field.wire == kGroup ? !SkipGroup(&at, end, number) : !TakeField(&at, end, field.wire, &field)) {
      return false;
    }
    if (number == 1) Store(field, key_);
  }
  *is_it = key_.value.text == element.key;
  return true;
}

void ProtobufWalk::StoreDefault(Target& target) {
  if (target.place.type == ProtobufType::kBytes) {
    target.value = {FieldValue::Kind::kString, false, {}};
    return;
  }
  Store({.wire = WireOf(target.place.type)}, target);
}

void ProtobufWalk::Store(const Written& written, Target& target) {
  const ProtobufPlace& place = target.place;
  if (!IsWrittenAs(place.type, written.wire)) return;
  const uint64_t bits = written.number;
  const auto low_bits = static_cast<uint32_t>(bits);  // as other readers take a number of 32 bits
  FieldValue& value = target.value;
  switch (place.type) {
    case ProtobufType::kUnknown:
      if (written.wire == kVarint) {
        value = NumberValue(static_cast<int64_t>(bits), target.digits);
      } else if (written.wire == kLength) {
        value = {FieldValue::Kind::kString, false, written.bytes};
      } else if (written.wire == kGroup) {
        value = {FieldValue::Kind::kOther, false, {}};
      } else {
        value = NumberValue(bits, target.digits);
      }
      break;
    case ProtobufType::kInt32:
    case ProtobufType::kSfixed32:
      value = NumberValue(static_cast<int32_t>(low_bits), target.digits);
      break;
    case ProtobufType::kInt64:
    case ProtobufType::kSfixed64:
      value = NumberValue(static_cast<int64_t>(bits), target.digits);
      break;
    case ProtobufType::kUint32:
    case ProtobufType::kFixed32:
      value = NumberValue(low_bits, target.digits);
      break;
    case ProtobufType::kUint64:
    case ProtobufType::kFixed64:
      value = NumberValue(bits, target.digits);
      break;
    case ProtobufType::kSint32:
      value = NumberValue(static_cast<int32_t>(FromZigzag(low_bits)), target.digits);
      break;
    case ProtobufType::kSint64:
      value = NumberValue(FromZigzag(bits), target.digits);
      break;
    case ProtobufType::kFloat:
      value = FiniteValue(std::bit_cast<float>(low_bits), target.digits);
      break;
    case ProtobufType::kDouble:
      value = FiniteValue(std::bit_cast<double>(bits), target.digits);
      break;
    case ProtobufType::kBool:
      value = {FieldValue::Kind::kOther, false, bits != 0 ? "true" : "false"};
      break;
    case ProtobufType::kEnum: {
      const auto symbol = place.symbols.find(static_cast<int32_t>(low_bits));
      if (symbol != place.symbols.end()) {
        value = {FieldValue::Kind::kString, false, symbol->second};
      } else if (place.has_other_numbers) {
        value = NumberValue(static_cast<int32_t>(low_bits), target.digits);
      }
      break;
    }
    case ProtobufType::kBytes:
      value = {FieldValue::Kind::kString, false, written.bytes};
      break;
    case ProtobufType::kMessage:
    case ProtobufType::kAll:
      value = {FieldValue::Kind::kOther, false, {}};
      break;
  }
  value.unit = place.unit;
}

}  // namespace lethe
