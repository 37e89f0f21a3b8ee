// JSON by the letter of RFC 8259, slowly and plainly: what the record reader is checked against. It shares no
// code with it.
#ifndef LETHE_TESTS_SUPPORT_NAIVE_JSON_H_
#define LETHE_TESTS_SUPPORT_NAIVE_JSON_H_

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lethe::test {

struct NaiveJson {
  enum class Type { kString, kNumber, kWord, kArray, kObject };
  Type type = Type::kWord;
  std::optional<std::string>
      text;  // a string unescaped (nullopt: it has a lone surrogate); a number as written
  std::vector<NaiveJson> values;                  // an array's or an object's
  std::vector<std::optional<std::string>> names;  // an object's, beside its values
};

class NaiveParser {
 public:
  static std::optional<NaiveJson> Parse(std::string text) {
    if (text.compare(0, 3, "\xEF\xBB\xBF") == 0) text.erase(0, 3);
    if (!IsUtf8(text)) return std::nullopt;
    NaiveParser parser(std::move(text));
    NaiveJson value;
    parser.Space();
    if (!parser.Value(&value)) return std::nullopt;
    parser.Space();
    if (parser.at_ != parser.text_.size()) return std::nullopt;
    return value;
  }

  // Table 3-7 of the Unicode standard.
  static bool IsUtf8(const std::string& text) {
    for (size_t i = 0; i < text.size();) {
      const auto byte = [&](size_t k) {
        return i + k < text.size() ? static_cast<int>(static_cast<unsigned char>(text[i + k])) : -1;
      };
      const auto in = [&](size_t k, int low, int high) { return byte(k) >= low && byte(k) <= high; };
      if (in(0, 0x00, 0x7F)) {
        i += 1;
      } else if (in(0, 0xC2, 0xDF) && in(1, 0x80, 0xBF)) {
        i += 2;
      } else if (((in(0, 0xE0, 0xE0) && in(1, 0xA0, 0xBF)) || (in(0, 0xE1, 0xEC) && in(1, 0x80, 0xBF)) ||
                  (in(0, 0xED, 0xED) && in(1, 0x80, 0x9F)) || (in(0, 0xEE, 0xEF) && in(1, 0x80, 0xBF))) &&
                 in(2, 0x80, 0xBF)) {
        i += 3;
      } else if (((in(0, 0xF0, 0xF0) && in(1, 0x90, 0xBF)) || (in(0, 0xF1, 0xF3) && in(1, 0x80, 0xBF)) ||
                  (in(0, 0xF4, 0xF4) && in(1, 0x80, 0x8F))) &&
                 in(2, 0x80, 0xBF) && in(3, 0x80, 0xBF)) {
        i += 4;
      } else {
        return false;
      }
    }
    return true;
  }

 private:
  explicit NaiveParser(std::string text) : text_(std::move(text)) {}

  char Now() const { return at_ < text_.size() ? text_[at_] : '\x01'; }
  bool Take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool Take(const char* word) {
    const std::string expected(word);
    if (text_.compare(at_, expected.size(), expected) != 0) return false;
    at_ += expected.size();
    return true;
  }
  void Space() {
    while (Take(' ') || Take('\t') || Take('\n') || Take('\r')) {
    }
  }
  bool Digits() {
    size_t count = 0;
    for (; Now() >= '0' && Now() <= '9'; ++count) ++at_;
    return count > 0;
  }

  bool Value(NaiveJson* value) {
    if (Now() == '{') return Object(value);
    if (Now() == '[') return Array(value);
    if (Now() == '"') {
      value->type = NaiveJson::Type::kString;
      return String(&value->text);
    }
    if (Take("true") || Take("false") || Take("null")) return true;
    return Number(value);
  }

  bool Number(NaiveJson* value) {
    const size_t begin = at_;
    value->type = NaiveJson::Type::kNumber;
    Take('-');
    if (!Take('0') && !Digits()) return false;
    if (Take('.') && !Digits()) return false;
    if (Take('e') || Take('E')) {
      if (!Take('+')) Take('-');
      if (!Digits()) return false;
    }
    value->text = text_.substr(begin, at_ - begin);
    return true;
  }

  bool Object(NaiveJson* value) {
    value->type = NaiveJson::Type::kObject;
    Take('{');
    Space();
    if (Take('}')) return true;
    while (true) {
      Space();
      value->names.emplace_back();
      if (!String(&value->names.back())) return false;
      Space();
      if (!Take(':')) return false;
      Space();
      value->values.emplace_back();
      if (!Value(&value->values.back())) return false;
      Space();
      if (Take('}')) return true;
      if (!Take(',')) return false;
    }
  }

  bool Array(NaiveJson* value) {
    value->type = NaiveJson::Type::kArray;
    Take('[');
    Space();
    if (Take(']')) return true;
    while (true) {
      Space();
      value->values.emplace_back();
      if (!Value(&value->values.back())) return false;
      Space();
      if (Take(']')) return true;
      if (!Take(',')) return false;
    }
  }

  bool Unit(std::vector<uint32_t>* codes) {
    const std::string hex = text_.substr(at_, 4);
    if (hex.size() < 4 || hex.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) return false;
    codes->push_back(static_cast<uint32_t>(std::strtoul(hex.c_str(), nullptr, 16)));
    at_ += 4;
    return true;
  }

  // Turns a run of \u units into UTF-8; false if one is half of a pair.
  static bool Encode(const std::vector<uint32_t>& units, std::string* out) {
    for (size_t i = 0; i < units.size(); ++i) {
      uint32_t code = units[i];
      if (code >> 10 == 0x37) return false;
      if (code >> 10 == 0x36) {
        if (i + 1 == units.size() || units[i + 1] >> 10 != 0x37) return false;
        code = 0x10000 + (code % 0x400) * 0x400 + units[++i] % 0x400;
      }
      const int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
      const uint32_t mark[] = {0x00, 0xC0, 0xE0, 0xF0};
      *out += static_cast<char>(mark[more] + (code >> (6 * more)));
      for (int k = more - 1; k >= 0; --k) *out += static_cast<char>(0x80 + (code >> (6 * k)) % 64);
    }
    return true;
  }

  bool String(std::optional<std::string>* result) {
    if (!Take('"')) return false;
    std::string out;
    bool whole = true;
    while (true) {
      std::vector<uint32_t> units;
      while (Take("\\u")) {
        if (!Unit(&units)) return false;
      }
      whole = Encode(units, &out) && whole;
      if (at_ >= text_.size() || static_cast<unsigned char>(text_[at_]) < 0x20) return false;
      if (Take('"')) break;
      if (!Take('\\')) {
        out += text_[at_++];
        continue;
      }
      const std::string kinds = "\"\\/bfnrt";
      const std::string meanings = "\"\\/\b\f\n\r\t";
      const size_t kind = at_ < text_.size() ? kinds.find(text_[at_]) : std::string::npos;
      if (kind == std::string::npos) return false;
      out += meanings[kind];
      ++at_;
    }
    if (whole) *result = out;
    return true;
  }

  std::string text_;
  size_t at_ = 0;
};

// The value at a JSON pointer; nullptr if there is none. The last of several members of a name counts.
inline const NaiveJson* NaiveLookup(const NaiveJson& root, const std::string& pointer) {
  const NaiveJson* here = &root;
  for (size_t at = 0; at < pointer.size();) {
    std::string step;
    for (++at; at < pointer.size() && pointer[at] != '/'; ++at) {
      if (pointer[at] == '~') {
        step += pointer[++at] == '0' ? '~' : '/';
      } else {
        step += pointer[at];
      }
    }
    const NaiveJson* found = nullptr;
    for (size_t i = 0; i < here->values.size(); ++i) {
      const bool object = here->type == NaiveJson::Type::kObject;
      if (object ? here->names[i] == step : std::to_string(i) == step) found = &here->values[i];
    }
    if (found == nullptr) return nullptr;
    here = found;
  }
  return here;
}

// The bytes of one part of an id: type byte and text. nullopt: none.
inline std::optional<std::string> NaiveIdPart(const NaiveJson& root, const std::string& pointer) {
  const NaiveJson* value = NaiveLookup(root, pointer);
  if (value == nullptr || !value->text || value->text->empty()) return std::nullopt;
  return (value->type == NaiveJson::Type::kString ? "s" : "n") + *value->text;
}

// The bytes of an id of one or more pointers.
inline std::optional<std::string> NaiveId(const NaiveJson& root, const std::vector<std::string>& pointers) {
  if (pointers.size() == 1) return NaiveIdPart(root, pointers[0]);
  std::string id;
  for (const std::string& pointer : pointers) {
    const std::optional<std::string> part = NaiveIdPart(root, pointer);
    if (!part) return std::nullopt;
    uint64_t length = part->size();
    for (int i = 0; i < 8; ++i, length /= 256) id += static_cast<char>(length % 256);
    id += *part;
  }
  return id;
}

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_NAIVE_JSON_H_
