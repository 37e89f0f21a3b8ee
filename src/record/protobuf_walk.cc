#include "src/record/protobuf_walk.h"

#include <algorithm>
#include <bit>
#include <charconv>
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

// Its decimal text views `digits`.
template <class Integer>
FieldValue IntegerValue(Integer number, std::array<char, 32>& digits) {
  const char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  return {FieldValue::Kind::kNumber, false, {digits.data(), static_cast<size_t>(end - digits.data())}};
}

// Little-endian.
uint64_t FixedNumber(const char* at, size_t size) {
  uint64_t number = 0;
  for (size_t i = 0; i < size; ++i) number |= static_cast<uint64_t>(static_cast<uint8_t>(at[i])) << (8 * i);
  return number;
}

}  // namespace

ProtobufWalk::ProtobufWalk(std::vector<ProtobufPath> paths) {
  for (size_t i = 0; i < paths.size(); ++i) {
    ends_at_.resize(std::max(ends_at_.size(), paths[i].size() + 1));
    ends_at_[paths[i].size()] |= uint64_t{1} << i;
    targets_.push_back({std::move(paths[i]), {}, {}});
  }
}

bool ProtobufWalk::Fail(const char* error, const char* at) {
  error_ = error;
  error_offset_ = static_cast<size_t>(at - begin_);
  return false;
}

bool ProtobufWalk::Walk(absl::string_view message) {
  begin_ = message.data();
  uint64_t all = 0;
  for (Target& target : targets_) {
    target.value = FieldValue();
    all = all << 1 | 1;
  }
  return WalkMessage(message.data(), message.data() + message.size(), all, 0);
}

// Recursive only along the paths.
bool ProtobufWalk::WalkMessage(const char* at, const char* end, uint64_t live, size_t depth) {
  while (at < end) {
    const char* const field = at;
    uint32_t number = 0;
    uint8_t wire = 0;
    if (!TakeTag(&at, end, &number, &wire)) return Fail("a field has no number", field);
    Written written{.wire = wire};
    if (wire == kGroup) {
      if (!SkipGroup(&at, end, number)) return Fail("a group does not end, or is nested too deeply", field);
    } else if (!TakeField(&at, end, wire, &written)) {
      return Fail(wire == kGroupEnd || wire > kFixed32 ? "a field has a wrong type" : "a field is cut off",
                  field);
    }
    uint64_t matching = Matching(live, depth, number);
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
    if (target.path[depth] == number) matching |= live & -live;
  }
  return matching;
}

void ProtobufWalk::Store(const Written& written, Target& target) {
  using Kind = FieldValue::Kind;
  switch (written.wire) {
    case kVarint:
      target.value = IntegerValue(static_cast<int64_t>(written.number), target.digits);
      return;
    case kLength:
      target.value = {Kind::kString, false, written.bytes};
      return;
    case kGroup:
      target.value = {Kind::kOther, false, {}};
      return;
    default:
      target.value = IntegerValue(written.number, target.digits);
  }
}

}  // namespace lethe
