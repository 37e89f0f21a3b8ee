// What an experiment of the lab returns: rows under named columns, with the parameters that made them.
#ifndef LETHE_TESTS_LAB_TABLE_H_
#define LETHE_TESTS_LAB_TABLE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lethe::lab {

using Cell = std::variant<double, int64_t, std::string>;

class Table {
 public:
  // `name` is the file's name without ".csv"; `parameters` is what a plot says under its title.
  Table(std::string name, std::string parameters, std::vector<std::string> columns)
      : name_(std::move(name)), parameters_(std::move(parameters)), columns_(std::move(columns)) {}

  // One cell for each column.
  void Add(std::vector<Cell> row);

  const std::string& name() const { return name_; }
  size_t rows() const { return rows_.size(); }

  // The rows whose cells are as stated.
  using Where = std::vector<std::pair<absl::string_view, Cell>>;
  // Those rows' numbers in a column.
  std::vector<double> Numbers(absl::string_view column, const Where& where = {}) const;
  // The number in the one such row. Ends the program if there is none, or more than one.
  double Number(absl::string_view column, const Where& where = {}) const;

  // The parameters as a first line that begins with '#', a line of names, a line for each row.
  std::string ToCsv() const;
  absl::Status WriteTo(const std::string& folder) const;

 private:
  size_t IndexOf(absl::string_view column) const;

  std::string name_;
  std::string parameters_;
  std::vector<std::string> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace lethe::lab

#endif  // LETHE_TESTS_LAB_TABLE_H_
