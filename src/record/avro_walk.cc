#include "src/record/avro_walk.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "src/record/varint.h"

namespace lethe {
namespace {

using Kind = AvroType::Kind;
using Meaning = AvroType::Meaning;

constexpr const char* kCutOff = "it is cut off";
constexpr const char* kTooDeep = "it is nested deeper than 512";
static_assert(AvroProgram::kDeepestValue == 512);

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
  // Its digits, the lowest first; at least one before the point.
  while (used > 0 || text->size() <= scale) {
    uint64_t rest = 0;
    for (size_t i = used; i-- > 0;) {
      rest = rest << 32 | limbs[i];
      limbs[i] = static_cast<uint32_t>(rest / 10);
      rest %= 10;
    }
    while (used > 0 && limbs[used - 1] == 0) --used;
    text->push_back(static_cast<char>('0' + rest));
  }
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
  for (Place& place : places_) place.value = FieldValue();
  const char* const at = ReadPart(begin_, {program.root_type(), program.root_reading()}, 0);
  if (at == nullptr) return false;
  return at == end_ || Fail("more follows it", at) != nullptr;
}

const char* AvroWalk::ReadPart(const char* at, const AvroReading::Part& part, size_t depth) {
  return part.reading == AvroReading::kNothing ? Skip(at, program_->types()[part.type], depth)
                                               : Read(at, program_->readings()[part.reading], depth);
}

// Recursive only along the places.
const char* AvroWalk::Read(const char* at, const AvroReading& reading, size_t depth) {
  if (depth > AvroProgram::kDeepestValue) return Fail(kTooDeep, at);
  const AvroType& type = program_->types()[reading.type];
  const char* const begin = at;
  switch (type.kind) {
    case Kind::kUnion: {
      size_t branch = 0;
      at = TakeIndex(at, reading.parts.size(), &branch);
      return at == nullptr ? at : ReadPart(at, reading.parts[branch], depth);
    }
    case Kind::kRecord:
      for (const AvroReading::Part& part : reading.parts) {
        at = ReadPart(at, part, depth + 1);
        if (at == nullptr) return at;
      }
      break;
    case Kind::kArray:
      at = ReadArray(at, reading, depth + 1);
      break;
    case Kind::kMap:
      at = ReadMap(at, reading, depth + 1);
      break;
    default:
      at = Skip(at, type, depth);
  }
  if (at != nullptr) Store(type, begin, at, reading.ends);
  return at;
}

const char* AvroWalk::ReadArray(const char* at, const AvroReading& reading, size_t depth) {
  const AvroType& item = program_->types()[program_->types()[reading.type].parts[0]];
  uint64_t first = 0;  // the index of the block's first
  for (;;) {
    uint64_t count = 0;
    const char* block_end = nullptr;
    at = TakeCount(at, &count, &block_end);
    if (at == nullptr || count == 0) return at;
    if (item.is_empty) {  // as many as one likes, without a byte
      for (const AvroReading::Item& each : reading.items) {
        const auto index = static_cast<uint64_t>(each.index);
        if (index < first || index - first >= count) continue;
        if (Read(at, program_->readings()[each.reading], depth) == nullptr) return nullptr;
      }
      first = count > INT64_MAX - first ? INT64_MAX : first + count;
    } else {
      for (; count > 0; --count, ++first) {
        const auto is_it = [&](const AvroReading::Item& each) {
          return static_cast<uint64_t>(each.index) == first;
        };
        const auto found = std::find_if(reading.items.begin(), reading.items.end(), is_it);
        at = found == reading.items.end() ? Skip(at, item, depth)
                                          : Read(at, program_->readings()[found->reading], depth);
        if (at == nullptr) return at;
      }
    }
    if (block_end != nullptr && at != block_end) return Fail("a block has another size", at);
  }
}

const char* AvroWalk::ReadMap(const char* at, const AvroReading& reading, size_t depth) {
  const AvroType& value = program_->types()[program_->types()[reading.type].parts[0]];
  for (;;) {
    uint64_t count = 0;
    const char* block_end = nullptr;
    at = TakeCount(at, &count, &block_end);
    if (at == nullptr || count == 0) return at;
    for (; count > 0; --count) {
      absl::string_view key;
      at = TakeText(at, &key);
      if (at == nullptr) return at;
      const auto found = std::find_if(reading.items.begin(), reading.items.end(),
                                      [&](const AvroReading::Item& each) { return each.key == key; });
      if (found == reading.items.end()) {
        at = Skip(at, value, depth);
      } else {
        for (uint64_t rest = found->under; rest != 0; rest &= rest - 1) {
          places_[static_cast<size_t>(std::countr_zero(rest))].value = FieldValue();
        }
        at = Read(at, program_->readings()[found->reading], depth);
      }
      if (at == nullptr) return at;
    }
    if (block_end != nullptr && at != block_end) return Fail("a block has another size", at);
  }
}

// Ends: each value that is not empty takes a byte.
const char* AvroWalk::Skip(const char* at, const AvroType& type, size_t depth) {
  if (type.is_empty) return at;
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
      return SkipBytes(at, sizeof(float));
    case Kind::kDouble:
      return SkipBytes(at, sizeof(double));
    case Kind::kBytes:
    case Kind::kString:
      return SkipText(at);
    case Kind::kFixed:
      return SkipBytes(at, type.size);
    case Kind::kEnum: {
      size_t symbol = 0;
      return TakeIndex(at, type.symbols.size(), &symbol);
    }
    case Kind::kRecord:
      for (const uint32_t part : type.parts) {
        at = Skip(at, program_->types()[part], depth + 1);
        if (at == nullptr) return at;
      }
      return at;
    case Kind::kArray:
    case Kind::kMap:
      return SkipItems(at, type, depth + 1);
    case Kind::kUnion: {
      size_t branch = 0;
      at = TakeIndex(at, type.parts.size(), &branch);
      return at == nullptr ? at : Skip(at, program_->types()[type.parts[branch]], depth);
    }
  }
  return at;
}

const char* AvroWalk::SkipItems(const char* at, const AvroType& type, size_t depth) {
  const AvroType& item = program_->types()[type.parts[0]];
  const bool is_map = type.kind == Kind::kMap;
  for (;;) {
    uint64_t count = 0;
    const char* block_end = nullptr;
    at = TakeCount(at, &count, &block_end);
    if (at == nullptr || count == 0) return at;
    if (block_end != nullptr) {
      at = block_end;
      continue;
    }
    if (!is_map && item.is_empty) continue;
    for (; count > 0; --count) {
      if (is_map) at = SkipText(at);
      if (at != nullptr) at = Skip(at, item, depth);
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

void AvroWalk::StoreOne(const AvroType& type, const char* at, const char* end, Place& place) {
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
      value.text = type.symbols[static_cast<size_t>(symbol)];
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
