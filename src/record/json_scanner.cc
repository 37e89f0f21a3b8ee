#include "src/record/json_scanner.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/strings/ascii.h"
#include "simdjson.h"

namespace lethe {
namespace {

constexpr size_t kFirstCapacity = 4096;
// Memory of a larger text is given back with the next one.
constexpr size_t kMostKept = size_t{4} << 20;
constexpr size_t kMaxBytes = (size_t{1} << 31) - 1;  // offsets of tokens have 32 bits
constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool IsJsonSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

const char* DigitsEnd(const char* p, const char* end) {
  while (p < end && absl::ascii_isdigit(static_cast<unsigned char>(*p))) ++p;
  return p;
}

// Behind the number that starts at p; nullptr if there is none.
const char* NumberEnd(const char* p, const char* end) {
  if (p < end && *p == '-') ++p;
  const char* digits = p;
  p = DigitsEnd(p, end);
  if (p == digits || (*digits == '0' && p - digits > 1)) return nullptr;
  if (p < end && *p == '.') {
    digits = ++p;
    p = DigitsEnd(p, end);
    if (p == digits) return nullptr;
  }
  if (p < end && (*p == 'e' || *p == 'E')) {
    ++p;
    if (p < end && (*p == '+' || *p == '-')) ++p;
    digits = p;
    p = DigitsEnd(p, end);
    if (p == digits) return nullptr;
  }
  return p;
}

// Whether each backslash begins an escape of RFC 8259. The inside does not end within one.
bool EscapesAreWellFormed(absl::string_view inside) {
  for (size_t i = inside.find('\\'); i != inside.npos; i = inside.find('\\', i)) {
    const char kind = inside[i + 1];
    if (kind != 'u') {
      if (std::strchr("\"\\/bfnrt", kind) == nullptr || kind == '\0') return false;
      i += 2;
      continue;
    }
    if (inside.size() < i + 6) return false;
    for (size_t digit = i + 2; digit < i + 6; ++digit) {
      if (!absl::ascii_isxdigit(static_cast<unsigned char>(inside[digit]))) return false;
    }
    i += 6;
  }
  return true;
}

uint32_t CodeUnit(absl::string_view hex) {
  uint32_t unit = 0;
  for (const char c : hex) {
    const uint32_t digit =
        c <= '9' ? static_cast<uint32_t>(c - '0') : static_cast<uint32_t>((c | 0x20) - 'a' + 10);
    unit = unit << 4 | digit;
  }
  return unit;
}

void AppendUtf8(uint32_t code, std::string* out) {
  const auto put = [out](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

char SimpleEscape(char kind) {
  switch (kind) {
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return kind;  // a quote, a slash or a backslash
  }
}

const char* Describe(simdjson::error_code error) {
  switch (error) {
    case simdjson::EMPTY:
      return "it is empty";
    case simdjson::UTF8_ERROR:
      return "it is not UTF-8";
    case simdjson::UNCLOSED_STRING:
      return "a string has no end";
    case simdjson::UNESCAPED_CHARS:
      return "a string has a control character in it";
    case simdjson::CAPACITY:
    case simdjson::MEMALLOC:
      return "it is too large";
    default:
      return "it cannot be read";
  }
}

// 0 if there is none.
size_t ControlCharacterInString(absl::string_view text) {
  bool inside = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') inside = !inside;
    if (!inside) continue;
    if (text[i] == '\\') ++i;
    if (i < text.size() && static_cast<unsigned char>(text[i]) < 0x20) return i;
  }
  return 0;
}

// Where the first character begins that is not UTF-8.
size_t EndOfUtf8(const char* text, size_t length) {
  for (size_t begin = 0; begin < length;) {
    size_t bytes = absl::ascii_isascii(static_cast<unsigned char>(text[begin])) ? 1 : 2;
    while (bytes > 1 && bytes <= 4 && begin + bytes <= length &&
           !simdjson::validate_utf8(text + begin, bytes))
      ++bytes;
    if (bytes > 4 || begin + bytes > length) return begin;
    begin += bytes;
  }
  return 0;
}

// The byte of an error of the first stage, which names none.
size_t Locate(simdjson::error_code error, const char* text, size_t length) {
  if (error == simdjson::UTF8_ERROR) return EndOfUtf8(text, length);
  if (error == simdjson::UNESCAPED_CHARS) return ControlCharacterInString({text, length});
  return 0;
}

}  // namespace

bool AppendUnescaped(absl::string_view inside, std::string* out) {
  size_t done = 0;
  for (size_t i = inside.find('\\'); i != inside.npos; i = inside.find('\\', done)) {
    out->append(inside.data() + done, i - done);
    if (inside[i + 1] != 'u') {
      out->push_back(SimpleEscape(inside[i + 1]));
      done = i + 2;
      continue;
    }
    uint32_t code = CodeUnit(inside.substr(i + 2, 4));
    done = i + 6;
    if (code >= 0xDC00 && code < 0xE000) return false;
    if (code >= 0xD800 && code < 0xDC00) {
      if (inside.substr(done, 2) != "\\u") return false;
      const uint32_t low = CodeUnit(inside.substr(done + 2, 4));
      if (low < 0xDC00 || low >= 0xE000) return false;
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      done += 6;
    }
    AppendUtf8(code, out);
  }
  out->append(inside.data() + done, inside.size() - done);
  return true;
}

JsonScanner::JsonScanner(const std::vector<std::string>& pointers) {
  size_t longest = 0;
  for (const std::string& pointer : pointers) {
    Target target;
    target.steps = StepsOf(pointer);
    longest = std::max(longest, target.steps.size());
    targets_.push_back(std::move(target));
  }
  live_.resize(longest + 1);
  index_.resize(longest + 1);
  ends_at_.resize(longest + 1);
  for (size_t i = 0; i < targets_.size(); ++i) {
    ends_at_[targets_[i].steps.size()] |= uint64_t{1} << i;
    all_ |= uint64_t{1} << i;
  }
}

JsonScanner::~JsonScanner() = default;

bool JsonScanner::Fail(const char* error, size_t offset) {
  error_ = error;
  error_offset_ = offset;
  return false;
}

bool JsonScanner::Scan(absl::string_view text) { return Tokenize(text) && Walk(); }

// Fills text_ and tokens_. True: the text is UTF-8, all strings end, and have no control characters.
bool JsonScanner::Tokenize(absl::string_view text) {
  if (text.empty()) return Fail(Describe(simdjson::EMPTY), 0);
  if (text.size() > kMaxBytes) return Fail(Describe(simdjson::CAPACITY), 0);
  const bool is_needlessly_large = capacity_ > kMostKept && text.size() <= kMostKept;
  if (text.size() > capacity_ || is_needlessly_large) {
    capacity_ = std::max(kFirstCapacity, std::bit_ceil(text.size()));
    buffer_ = std::make_unique<char[]>(capacity_ + simdjson::SIMDJSON_PADDING);
    const simdjson::error_code error =
        stage1_ == nullptr
            ? simdjson::get_active_implementation()->create_dom_parser_implementation(capacity_, 1, stage1_)
            : stage1_->set_capacity(capacity_);
    if (error != simdjson::SUCCESS) {
      capacity_ = 0;
      stage1_.reset();
      return Fail(Describe(error), 0);
    }
  }
  std::memcpy(buffer_.get(), text.data(), text.size());
  size_t begin = 0;
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) begin = kByteOrderMark.size();
  text_ = buffer_.get() + begin;
  const size_t length = text.size() - begin;
  const simdjson::error_code error =
      stage1_->stage1(reinterpret_cast<const uint8_t*>(text_), length, simdjson::stage1_mode::regular);
  if (error != simdjson::SUCCESS) return Fail(Describe(error), begin + Locate(error, text_, length));
  tokens_ = stage1_->structural_indexes.get();
  token_count_ = stage1_->n_structural_indexes;
  backslash_ = std::memchr(text_, '\\', length) != nullptr;
  return true;
}

// The grammar, on the list of tokens. Without recursion: a text may be as deep as it is long.
bool JsonScanner::Walk() {
  for (Target& target : targets_) target.value = FieldValue();
  containers_.clear();
  next_ = 0;
  steps_ = 0;
  here_ = all_;
  for (bool more = true; more;) {
    bool opened = false;
    if (!ScanValue(&opened)) return false;
    if (!opened && !NextInContainer(&more)) return false;
  }
  if (next_ < token_count_) return Fail("something follows its end", Offset());
  return true;
}

// Reads the next value: a scalar or an empty container whole; of another container all before its first
// value.
bool JsonScanner::ScanValue(bool* opened) {
  ++steps_;
  const size_t offset = Offset();
  FieldValue value;
  value.kind = FieldValue::Kind::kOther;
  const char first = Peek();
  switch (first) {
    case '{':
    case '[':
      Found(value);
      Open(first);
      ++next_;
      if (Peek() == (first == '{' ? '}' : ']')) return true;  // closed by NextInContainer
      *opened = true;
      if (first == '{') return ScanKey();
      BeginElement();
      return true;
    case '"':
      if (!ScanString(&value)) return false;
      break;
    case 't':
      if (!ScanWord("true")) return false;
      value.text = "true";
      break;
    case 'f':
      if (!ScanWord("false")) return false;
      value.text = "false";
      break;
    case 'n':
      if (!ScanWord("null")) return false;
      value.text = "null";
      break;
    case '-':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9':
      if (!ScanNumber(&value)) return false;
      break;
    default:
      return Fail("a value is missing", offset);
  }
  if (here_ != 0) Found(value);
  return true;
}

// A string's token reaches up to the next one, with nothing but white space behind its closing quote,
// since any other byte outside of a string would be, or belong to, a token of its own.
bool JsonScanner::ScanString(FieldValue* value) {
  const size_t begin = Offset() + 1;
  size_t end = tokens_[next_ + 1];
  while (end > begin && IsJsonSpace(text_[end - 1])) --end;
  if (end == begin || text_[end - 1] != '"') return Fail("a string has no end", begin - 1);
  value->kind = FieldValue::Kind::kString;
  value->text = absl::string_view(text_ + begin, end - 1 - begin);
  if (backslash_ && value->text.find('\\') != absl::string_view::npos) {
    value->escaped = true;
    if (!EscapesAreWellFormed(value->text)) return Fail("a string has a wrong escape", begin - 1);
  }
  ++next_;
  return true;
}

bool JsonScanner::ScanNumber(FieldValue* value) {
  const size_t begin = Offset();
  const size_t end = tokens_[next_ + 1];
  const char* number_end = NumberEnd(text_ + begin, text_ + end);
  if (number_end == nullptr || !IsSpace(static_cast<size_t>(number_end - text_), end)) {
    return Fail("a number is wrong", begin);
  }
  value->kind = FieldValue::Kind::kNumber;
  value->text = absl::string_view(text_ + begin, static_cast<size_t>(number_end - text_) - begin);
  ++next_;
  return true;
}

bool JsonScanner::ScanWord(absl::string_view word) {
  const size_t begin = Offset();
  const size_t end = tokens_[next_ + 1];
  if (absl::string_view(text_ + begin, end - begin).substr(0, word.size()) != word ||
      !IsSpace(begin + word.size(), end)) {
    return Fail("a value is missing", begin);
  }
  ++next_;
  return true;
}

// Reads a name and its colon; here_ becomes the targets that go through it.
bool JsonScanner::ScanKey() {
  ++steps_;
  if (Peek() != '"') return Fail("a name is missing", Offset());
  FieldValue key;
  if (!ScanString(&key)) return false;
  if (Peek() != ':') return Fail("a colon is missing", Offset());
  ++next_;

  here_ = 0;
  const size_t depth = containers_.size();
  uint64_t live = depth < live_.size() ? live_[depth] : 0;
  if (live == 0) return true;
  if (key.escaped) {
    key_.clear();
    if (!AppendUnescaped(key.text, &key_)) return true;
    key.text = key_;
  }
  steps_ += static_cast<uint64_t>(std::popcount(live));
  for (; live != 0; live &= live - 1) {
    Target& target = targets_[static_cast<size_t>(std::countr_zero(live))];
    if (target.steps[depth - 1].name != key.text) continue;
    target.value = FieldValue();  // an earlier member of this name does not count
    here_ |= live & -live;
  }
  return true;
}

// After a value: closes the containers that end here, and reads up to the next value, if there is one.
bool JsonScanner::NextInContainer(bool* more) {
  while (!containers_.empty()) {
    const bool object = containers_.back() == '{';
    const char c = Peek();
    if (c == ',') {
      ++next_;
      if (object) return ScanKey();
      BeginElement();
      return true;
    }
    if (c != (object ? '}' : ']')) {
      return Fail(object ? "',' or '}' is missing" : "',' or ']' is missing", Offset());
    }
    ++next_;
    containers_.pop_back();
  }
  *more = false;
  return true;
}

void JsonScanner::Open(char bracket) {
  containers_.push_back(bracket);
  const size_t depth = containers_.size();
  if (depth >= live_.size()) {
    here_ = 0;
    return;
  }
  live_[depth] = here_ & ~ends_at_[depth - 1];
  index_[depth] = -1;
}

void JsonScanner::BeginElement() {
  here_ = 0;
  const size_t depth = containers_.size();
  if (depth >= live_.size()) return;
  ++index_[depth];
  steps_ += static_cast<uint64_t>(std::popcount(live_[depth]));
  for (uint64_t live = live_[depth]; live != 0; live &= live - 1) {
    const Target& target = targets_[static_cast<size_t>(std::countr_zero(live))];
    if (target.steps[depth - 1].index == index_[depth]) here_ |= live & -live;
  }
}

void JsonScanner::Found(const FieldValue& value) {
  const size_t depth = containers_.size();
  if (depth >= ends_at_.size()) return;
  for (uint64_t set = here_ & ends_at_[depth]; set != 0; set &= set - 1) {
    targets_[static_cast<size_t>(std::countr_zero(set))].value = value;
  }
}

bool JsonScanner::IsSpace(size_t begin, size_t end) const {
  return std::all_of(text_ + begin, text_ + end, IsJsonSpace);
}

}  // namespace lethe
