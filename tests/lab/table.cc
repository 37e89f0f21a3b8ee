#include "tests/lab/table.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace lethe::lab {
namespace {

double NumberIn(const Cell& cell) {
  if (const auto* number = std::get_if<double>(&cell)) return *number;
  if (const auto* number = std::get_if<int64_t>(&cell)) return static_cast<double>(*number);
  return NAN;
}

bool IsSame(const Cell& x, const Cell& y) {
  const auto* text = std::get_if<std::string>(&x);
  const auto* other = std::get_if<std::string>(&y);
  if (text != nullptr || other != nullptr) return text != nullptr && other != nullptr && *text == *other;
  return std::abs(NumberIn(x) - NumberIn(y)) <= 1e-9 * std::abs(NumberIn(x));
}

std::string TextOf(const Cell& cell) {
  // No text has quotes of its own.
  if (const auto* text = std::get_if<std::string>(&cell)) return absl::StrCat("\"", *text, "\"");
  if (const auto* number = std::get_if<int64_t>(&cell)) return absl::StrCat(*number);
  return absl::StrFormat("%.6g", std::get<double>(cell));
}

[[noreturn]] void Die(const std::string& why) {
  std::cerr << why << std::endl;
  std::abort();
}

}  // namespace

void Table::Add(std::vector<Cell> row) {
  if (row.size() != columns_.size()) Die(absl::StrCat(name_, ": a row of ", row.size(), " cells"));
  rows_.push_back(std::move(row));
}

size_t Table::IndexOf(absl::string_view column) const {
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i] == column) return i;
  }
  Die(absl::StrCat(name_, " has no column ", column));
}

std::vector<double> Table::Numbers(absl::string_view column, const Where& where) const {
  std::vector<double> numbers;
  const size_t index = IndexOf(column);
  for (const std::vector<Cell>& row : rows_) {
    bool is_asked_for = true;
    for (const auto& [name, cell] : where) is_asked_for = is_asked_for && IsSame(row[IndexOf(name)], cell);
    if (is_asked_for) numbers.push_back(NumberIn(row[index]));
  }
  return numbers;
}

double Table::Number(absl::string_view column, const Where& where) const {
  const std::vector<double> numbers = Numbers(column, where);
  if (numbers.size() != 1) Die(absl::StrCat(name_, ": ", numbers.size(), " rows for one ", column));
  return numbers[0];
}

std::string Table::ToCsv() const {
  std::string csv = absl::StrCat("# ", parameters_, "\n", absl::StrJoin(columns_, ","), "\n");
  for (const std::vector<Cell>& row : rows_) {
    absl::StrAppend(
        &csv,
        absl::StrJoin(row, ",",
                      [](std::string* out, const Cell& cell) { absl::StrAppend(out, TextOf(cell)); }),
        "\n");
  }
  return csv;
}

absl::Status Table::WriteTo(const std::string& folder) const {
  const std::string path = absl::StrCat(folder, "/", name_, ".csv");
  std::ofstream file(path);
  file << ToCsv();
  file.close();
  if (!file) return absl::UnavailableError(absl::StrCat("cannot write ", path));
  return absl::OkStatus();
}

}  // namespace lethe::lab
