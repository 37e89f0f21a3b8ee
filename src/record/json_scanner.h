// Checks a whole JSON text and finds the values at a few places in it, in one pass.
#ifndef LETHE_SRC_RECORD_JSON_SCANNER_H_
#define LETHE_SRC_RECORD_JSON_SCANNER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "src/record/field_value.h"
#include "src/record/pointer.h"

namespace simdjson::internal {
class dom_parser_implementation;
}  // namespace simdjson::internal

namespace lethe {

// Appends the UTF-8 of a string with well-formed escapes. False if half of a surrogate pair stands alone; the
// appended text is then invalid.
bool AppendUnescaped(absl::string_view inside, std::string* out);

// Accepts exactly the texts of RFC 8259, with a byte order mark before them or none. Numbers are of any
// length and size, nesting is of any depth, and \u may name a lone surrogate. Where a name occurs twice
// in an object, the last one counts, as in JavaScript, Python, Java (Jackson) and Go.
//
// simdjson's first stage checks UTF-8, finds the ends of strings, and lists where each token starts. Its
// public parsers do not fit: the DOM parser refuses valid records (integers beyond 64 bits, 1e999) and loses
// the text of numbers; On-Demand does not check what it skips. So the grammar is checked here, on the list of
// tokens.
//
// Invariant: each value() is of the last text for which Scan was true. Stops allocating after its largest
// text. Thread-compatible.
class JsonScanner {
 public:
  // At most 64 JSON pointers (RFC 6901), well-formed and not empty.
  explicit JsonScanner(const std::vector<std::string>& pointers);
  ~JsonScanner();
  JsonScanner(const JsonScanner&) = delete;
  JsonScanner& operator=(const JsonScanner&) = delete;

  // Whether the text is JSON, all of it. It is copied (simdjson wants room behind it).
  bool Scan(absl::string_view text);

  // The value at the i-th pointer. Valid until the next Scan.
  const FieldValue& value(size_t i) const { return targets_[i].value; }

  // After a Scan that returned false: the error, and its byte.
  const char* error() const { return error_; }
  size_t error_offset() const { return error_offset_; }

  // Of the last Scan: names and values, and comparisons with pointers. At most one for each byte, and another
  // one for each pointer.
  uint64_t steps() const { return steps_; }

 private:
  struct Target {
    std::vector<PointerStep> steps;
    FieldValue value;
  };

  bool Fail(const char* error, size_t offset);
  bool Tokenize(absl::string_view text);
  bool Walk();
  bool ScanValue(bool* opened);
  bool ScanString(FieldValue* value);
  bool ScanNumber(FieldValue* value);
  bool ScanWord(absl::string_view word);
  bool ScanKey();
  bool NextInContainer(bool* more);
  void Open(char bracket);
  void BeginElement();
  void Found(const FieldValue& value);
  bool IsSpace(size_t begin, size_t end) const;

  size_t Offset() const { return tokens_[next_]; }
  // The first byte of the next token; 0 behind the last.
  char Peek() const { return next_ < token_count_ ? text_[Offset()] : '\0'; }

  std::unique_ptr<simdjson::internal::dom_parser_implementation> stage1_;
  std::unique_ptr<char[]> buffer_;
  size_t capacity_ = 0;

  // The text, and where its tokens start; tokens_[token_count_] is the text's end.
  const char* text_ = nullptr;
  const uint32_t* tokens_ = nullptr;
  size_t token_count_ = 0;
  size_t next_ = 0;
  bool backslash_ = false;  // there is one somewhere in the text

  // Sets of targets are bit masks. In the container at depth d (the root's is 1) the first d - 1 steps of
  // live_[d] led here, and index_[d] is the present element; kept down to the longest pointer's depth. here_:
  // the targets whose steps lead to the next value, or through it.
  std::vector<char> containers_;
  std::vector<uint64_t> live_;
  std::vector<int64_t> index_;
  uint64_t here_ = 0;

  std::vector<Target> targets_;
  std::vector<uint64_t> ends_at_;  // by depth: the targets with so many steps
  uint64_t all_ = 0;
  std::string key_;

  uint64_t steps_ = 0;
  const char* error_ = "";
  size_t error_offset_ = 0;
};

}  // namespace lethe

#endif  // LETHE_SRC_RECORD_JSON_SCANNER_H_
