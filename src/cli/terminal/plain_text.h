// Text from elsewhere (records, brokers, files) on its way to a terminal.
#ifndef LETHE_SRC_CLI_TERMINAL_PLAIN_TEXT_H_
#define LETHE_SRC_CLI_TERMINAL_PLAIN_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace lethe {

// The bytes of the UTF-8 character that `text` begins with, by the table of RFC 3629; 0 if it begins with
// none.
size_t Utf8Bytes(absl::string_view text);

// Whether the character is a control of a terminal: C0, DEL, or C1 (U+0080 to U+009F), which xterm obeys too;
// or one that changes the direction of the text around it, so that it reads as another (Unicode's
// Bidi_Control).
bool IsControl(absl::string_view character);

// The number of the character that `text` consists of.
uint32_t CodePoint(absl::string_view character);

// The text on one line without anything that a terminal obeys: a newline becomes \n, and each byte of another
// control, or of invalid UTF-8, becomes \xNN.
std::string Printable(absl::string_view text);

// One cell of a CSV file (RFC 4180), Printable(). A ' precedes what a spreadsheet would run as a formula (it
// begins with = + - or @): otherwise a key from a record is code in the hands of who opens the file.
std::string CsvCell(absl::string_view text);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_TERMINAL_PLAIN_TEXT_H_
