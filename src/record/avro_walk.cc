#include "src/record/avro_walk.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "src/record/varint.h"

namespace lethe {
namespace {

using Kind = AvroKind;
using Meaning = AvroMeaning;

constexpr const char* kCutOff = "it is cut off";
constexpr const char* kTooDeep = "it is nested deeper than 512";
static_assert(AvroProgram::kDeepestValue == 512);
constexpr const char* kTooManySteps = "it takes more than 4 steps for a byte, as a map has a key too often";
static_assert(AvroWalk::kStepsPerByte == 4);

// Of a decimal without the zeros or ones before it: enough for any precision that schemas may have.
constexpr size_t kMostDecimalBytes = 129;

// Little-endian.
template <class Number, class Bits>
Number FloatingPoint(const char* at) {
  Bits bits = 0;
  for (size_t i = 0; i < sizeof(Bits); ++i) {
    bits |= static_cast<Bits>(static_cast<uint8_t>(at[i])) << (8 * i);
  }
  return std::bit_cast<Number>(bits);
}

template <class Number>
void PutNumber(Number number, std::string* text) {
  char digits[32];
  text->assign(digits, std::to_chars(digits, digits + sizeof(digits), number).ptr);
}

// False: it has too many digits.
bool PutDecimal(absl::string_view bytes, uint32_t scale, std::string* text) {
  text->clear();
  const bool is_negative = !bytes.empty() && (bytes[0] & 0x80) != 0;
  const char filler = is_negative ? '\xFF' : '\0';
  while (!bytes.empty() && bytes[0] == filler) bytes.remove_prefix(1);
  if (bytes.size() > kMostDecimalBytes) return false;
  // The magnitude, as 32 bits each, the lowest first.
  uint32_t limbs[kMostDecimalBytes / 4 + 2] = {};
  size_t used = bytes.size() / 4 + 1;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<uint8_t>(bytes[bytes.size() - 1 - i] ^ filler);
    limbs[i / 4] |= static_cast<uint32_t>(byte) << (8 * (i % 4));
  }
  for (size_t i = 0; is_negative && ++limbs[i] == 0; ++i) used = std::max(used, i + 2);
  // Its digits, the lowest first, nine with each division, whose number is the square of the size.
  while (used > 0) {
    constexpr uint32_t kNineDigits = 1'000'000'000;
    uint64_t rest = 0;
    for (size_t i = used; i-- > 0;) {
      rest = rest << 32 | limbs[i];
      limbs[i] = static_cast<uint32_t>(rest / kNineDigits);
      rest %= kNineDigits;
    }
    while (used > 0 && limbs[used - 1] == 0) --used;
    for (int i = 0; i < 9; ++i, rest /= 10) text->push_back(static_cast<char>('0' + rest % 10));
  }
  while (!text->empty() && text->back() == '0') text->pop_back();
  if (text->size() <= scale) text->resize(scale + 1, '0');  // at least one before the point
  size_t zeros = 0;
  while (zeros < scale && (*text)[zeros] == '0') ++zeros;
  text->erase(0, zeros);
  if (zeros < scale) text->insert(scale - zeros, 1, '.');
  if (is_negative) text->push_back('-');
  std::reverse(text->begin(), text->end());
  return true;
}

void PutUuid(const char* at, std::string* text) {
  constexpr char kHex[] = "0123456789abcdef";
  text->clear();
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text->push_back('-');
    const auto byte = static_cast<uint8_t>(at[i]);
    text->push_back(kHex[byte >> 4]);
    text->push_back(kHex[byte & 15]);
  }
}

}  // namespace

const char* AvroWalk::Fail(const char* error, const char* at) {
  error_ = error;
  error_offset_ = static_cast<size_t>(at - begin_);
  return nullptr;
}

bool AvroWalk::Walk(const AvroProgram& program, absl::string_view bytes) {
  program_ = &program;
  begin_ = bytes.data();
  end_ = begin_ + bytes.size();
  steps_ = 0;
  most_steps_ = program.place_steps() + kStepsPerByte * (bytes.size() + 1);
  for (Place& place : places_) place.value = FieldValue();
  const char* const at = ReadPart(begin_, program.root(), 0);
  if (at == nullptr) return false;
  return at == end_ || Fail("more follows it", at) != nullptr;
}

inline const char* AvroWalk::SkipPart(const char* at, const AvroPart& part, size_t depth) {
  return Skip(at, program_->type(part.type), depth + part.levels);
}

const char* AvroWalk::ReadPart(const char* at, const AvroPart& part, size_t depth) {
  return part.reading == AvroPart::kNothing ? SkipPart(at, part, depth)
                                            : Read(at, program_->reading(part.reading), depth);
}

// Recursive only along the places.
const char* AvroWalk::Read(const char* at, const AvroReading& reading, size_t depth) {
  if (depth > AvroProgram::kDeepestValue) return Fail(kTooDeep, at);
  const AvroType& type = program_->type(reading.type);
  const char* const begin = at;
  switch (type.kind) {
    case Kind::kUnion: {
      if (!TakeSteps(1)) return Fail(kTooManySteps, at);
      size_t branch = 0;
      at = TakeIndex(at, reading.count, &branch);
      return at == nullptr ? at : ReadPart(at, program_->PartsOf(reading)[branch], depth);
    }
    case Kind::kRecord:
      if (!TakeSteps(1)) return Fail(kTooManySteps, at);
      for (const AvroPart& part : program_->PartsOf(reading)) {
        at = ReadPart(at, part, depth + 1);
        if (at == nullptr) return at;
      }
      break;
    case Kind::kArray:
    case Kind::kMap:
      at = ReadItems(at, reading, depth + 1);
      break;
    default:
      at = Skip(at, type, depth);
  }
  if (at != nullptr) Store(type, begin, at, reading.ends);
  return at;
}

const char* AvroWalk::ReadItems(const char* at, const AvroReading& reading, size_t depth) {
  const AvroType& type = program_->type(reading.type);
  const AvroPart& item = program_->PartsOf(type)[0];
  const absl::Span<const AvroItem> items = program_->ItemsOf(reading);
  size_t next = 0;     // of an array: the next item that is read
  uint64_t first = 0;  // the index of the present one
  for (;;) {
    uint64_t count = 0;
    const char* block_end = nullptr;
    at = TakeCount(at, &count, &block_end);
    if (at == nullptr || count == 0) return at;
    if (type.kind == Kind::kMap) {
      for (; count > 0 && at != nullptr; --count) at = ReadEntry(at, reading, depth);
    } else {
      while (count > 0 && at != nullptr) {
        const bool has_next = next < items.size();
        const uint64_t skipped =
            has_next ? std::min(count, static_cast<uint64_t>(items[next].index) - first) : count;
        at = SkipRun(at, item, skipped, depth);
        const bool is_next = skipped < count;
        if (at != nullptr && is_next) at = Read(at, program_->reading(items[next++].reading), depth);
        const uint64_t done = is_next ? skipped + 1 : skipped;
        count -= done;
        // Items without bytes may be as many as one likes: behind the largest index none is read.
        first = done > INT64_MAX - first ? INT64_MAX : first + done;
      }
    }
    if (at == nullptr) return at;
    if (block_end != nullptr && at != block_end) return Fail("a block has another size", at);
  }
}

const char* AvroWalk::ReadEntry(const char* at, const AvroReading& reading, size_t depth) {
  const char* const begin = at;
  const absl::Span<const AvroItem> items = program_->ItemsOf(reading);
  absl::string_view key;
  at = TakeText(at, &key);
  if (at == nullptr) return at;
  const auto found = std::lower_bound(items.begin(), items.end(), key,
                                      [](const AvroItem& each, absl::string_view k) { return each.key < k; });
  if (found == items.end() || found->key != key) {
    if (!TakeSteps(1)) return Fail(kTooManySteps, begin);
    return SkipPart(at, program_->PartsOf(program_->type(reading.type)).front(), depth);
  }
  // What an entry with this key before it had does not count.
  if (!TakeSteps(1 + static_cast<uint64_t>(std::popcount(found->under)))) return Fail(kTooManySteps, begin);
  for (uint64_t rest = found->under; rest != 0; rest &= rest - 1) {
    places_[static_cast<size_t>(std::countr_zero(rest))].value = FieldValue();
  }
  return Read(at, program_->reading(found->reading), depth);
}

// Ends: each value that is not empty takes a byte.
const char* AvroWalk::Skip(const char* at, const AvroType& type, size_t depth) {
  if (!TakeSteps(1)) return Fail(kTooManySteps, at);
  if (type.kind == Kind::kNull) return at;
  if (depth > AvroProgram::kDeepestValue) return Fail(kTooDeep, at);
  switch (type.kind) {
    case Kind::kNull:
      return at;
    case Kind::kBoolean:
      if (at<end_&& static_cast<uint8_t>(*at)> 1) return Fail("a boolean is neither 0 nor 1", at);
      return SkipBytes(at, 1);
    case Kind::kInt:
    case Kind::kLong: {
      const char* const begin = at;
      int64_t number = 0;
      if (!TakeZigzag(&at, end_, &number)) return Fail("a number is cut off or too long", begin);
      if (type.kind == Kind::kInt && number != static_cast<int32_t>(number)) {
        return Fail("an int has more than 32 bits", begin);
      }
      return at;
    }
    case Kind::kFloat:
    case Kind::kDouble:
    case Kind::kFixed:
      return SkipBytes(at, type.size);
    case Kind::kBytes:
    case Kind::kString:
      return SkipText(at);
    case Kind::kEnum: {
      size_t symbol = 0;
      return TakeIndex(at, type.count, &symbol);
    }
    case Kind::kRecord:
      for (const AvroPart& part : program_->PartsOf(type)) {
        at = SkipPart(at, part, depth + 1);
        if (at == nullptr) return at;
      }
      return at;
    case Kind::kArray:
    case Kind::kMap:
      return SkipItems(at, type, depth + 1);
    case Kind::kUnion: {
      size_t branch = 0;
      at = TakeIndex(at, type.count, &branch);
      return at == nullptr ? at : SkipPart(at, program_->PartsOf(type)[branch], depth);
    }
  }
  return at;
}

// Of an array: so many items.
const char* AvroWalk::SkipRun(const char* at, const AvroPart& part, uint64_t count, size_t depth) {
  const AvroType& type = program_->type(part.type);
  if (type.kind == Kind::kNull || count == 0) return at;
  if (type.has_fixed_size() && depth + part.levels <= AvroProgram::kDeepestValue) {
    if (!TakeSteps(1)) return Fail(kTooManySteps, at);
    if (count > static_cast<uint64_t>(end_ - at) / type.size) return Fail(kCutOff, at);
    return at + count * type.size;
  }
  for (; count > 0 && at != nullptr; --count) at = SkipPart(at, part, depth);
  return at;
}

const char* AvroWalk::SkipItems(const char* at, const AvroType& type, size_t depth) {
  const AvroPart& item = program_->PartsOf(type)[0];
  for (;;) {
    uint64_t count = 0;
    const char* block_end = nullptr;
    at = TakeCount(at, &count, &block_end);
    if (at == nullptr || count == 0) return at;
    if (block_end != nullptr) {
      at = block_end;
      continue;
    }
    if (type.kind == Kind::kArray) {
      at = SkipRun(at, item, count, depth);
      if (at == nullptr) return at;
      continue;
    }
    for (; count > 0; --count) {
      if (!TakeSteps(1)) return Fail(kTooManySteps, at);
      at = SkipText(at);
      if (at != nullptr) at = SkipPart(at, item, depth);
      if (at == nullptr) return at;
    }
  }
}

const char* AvroWalk::SkipBytes(const char* at, uint64_t count) {
  return count > static_cast<uint64_t>(end_ - at) ? Fail(kCutOff, at) : at + count;
}

const char* AvroWalk::SkipText(const char* at) {
  absl::string_view text;
  return TakeText(at, &text);
}

const char* AvroWalk::TakeText(const char* at, absl::string_view* text) {
  const char* const begin = at;
  int64_t length = 0;
  if (!TakeZigzag(&at, end_, &length)) return Fail("a length is cut off or too long", begin);
  if (length < 0) return Fail("a length is below 0", begin);
  if (length > end_ - at) return Fail(kCutOff, begin);
  *text = {at, static_cast<size_t>(length)};
  return at + length;
}

const char* AvroWalk::TakeIndex(const char* at, size_t count, size_t* index) {
  const char* const begin = at;
  int64_t number = 0;
  if (!TakeZigzag(&at, end_, &number)) return Fail("a union or an enum is cut off", begin);
  if (number < 0 || static_cast<uint64_t>(number) >= count) {
    return Fail("a union or an enum has an index that the schema does not have", begin);
  }
  *index = static_cast<size_t>(number);
  return at;
}

const char* AvroWalk::TakeCount(const char* at, uint64_t* count, const char** block_end) {
  if (!TakeSteps(1)) return Fail(kTooManySteps, at);
  const char* const begin = at;
  int64_t number = 0;
  if (!TakeZigzag(&at, end_, &number)) return Fail("a block's count is cut off or too long", begin);
  *count = static_cast<uint64_t>(number);
  if (number >= 0) return at;
  *count = -*count;  // 2^63 of -2^63
  int64_t size = 0;
  if (!TakeZigzag(&at, end_, &size) || size < 0 || size > end_ - at) {
    return Fail("a block's size cannot be", begin);
  }
  *block_end = at + size;
  return at;
}

void AvroWalk::Store(const AvroType& type, const char* at, const char* end, uint64_t places) {
  for (; places != 0; places &= places - 1) {
    StoreOne(type, at, end, places_[static_cast<size_t>(std::countr_zero(places))]);
  }
}

void AvroWalk::StoreOne(const AvroType& type, const char* at, const char* end, Place& place) const {
  using FieldKind = FieldValue::Kind;
  FieldValue& value = place.value;
  value = {FieldKind::kOther, false, {}, type.unit};
  const auto size = static_cast<size_t>(end - at);
  absl::string_view bytes(at, size);
  switch (type.kind) {
    case Kind::kNull:
      value.text = "null";
      return;
    case Kind::kBoolean:
      value.text = *at != 0 ? "true" : "false";
      return;
    case Kind::kInt:
    case Kind::kLong: {
      int64_t number = 0;
      TakeZigzag(&at, end, &number);
      PutNumber(number, &place.text);
      value.kind = FieldKind::kNumber;
      break;
    }
    case Kind::kFloat:
    case Kind::kDouble: {
      const bool is_double = type.kind == Kind::kDouble;
      const double number =
          is_double ? FloatingPoint<double, uint64_t>(at) : FloatingPoint<float, uint32_t>(at);
      if (!std::isfinite(number)) return;
      is_double ? PutNumber(number, &place.text) : PutNumber(static_cast<float>(number), &place.text);
      value.kind = FieldKind::kNumber;
      break;
    }
    case Kind::kEnum: {
      int64_t symbol = 0;
      TakeZigzag(&at, end, &symbol);
      value.kind = FieldKind::kString;
      value.text = program_->Symbol(type, static_cast<size_t>(symbol));
      return;
    }
    case Kind::kBytes:
    case Kind::kString: {
      uint64_t length = 0;
      TakeVarint(&at, end, &length);
      bytes = {at, static_cast<size_t>(end - at)};
      [[fallthrough]];
    }
    case Kind::kFixed:
      if (type.meaning == Meaning::kPlain) {
        value.kind = FieldKind::kString;
        value.text = bytes;
        return;
      }
      if (type.meaning == Meaning::kUuid) {
        PutUuid(at, &place.text);
        value.kind = FieldKind::kString;
      } else if (PutDecimal(bytes, type.scale, &place.text)) {
        value.kind = FieldKind::kNumber;
      } else {
        return;
      }
      break;
    case Kind::kRecord:
    case Kind::kArray:
    case Kind::kMap:
    case Kind::kUnion:
      return;
  }
  value.text = place.text;
}

}  // namespace lethe
