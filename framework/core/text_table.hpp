#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace quantrain {

/// Rows of text in columns. Each column is as wide as its widest cell, not counting the last cell
/// of a short row. Two spaces separate columns.
class TextTable {
 public:
  /// One letter for each column: 'l' aligns text left, 'r' aligns numbers right.
  explicit TextTable(std::string_view columns) : columns_(columns) {}

  /// Adds a row. A row has at least one cell, and no more cells than the table has columns. If it
  /// has fewer, its last cell may be wider than its column. Cells become printable(); of a cell,
  /// the first 200 bytes are left, of a row's last cell 2,000.
  /// Throws: DataError if there are too few or too many cells.
  TextTable& add(std::vector<std::string> cells) &;
  TextTable& add(std::vector<std::string> cells) && = delete;

 private:
  friend std::ostream& operator<<(std::ostream& stream, const TextTable& table);

  std::string columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// One line for each row, without trailing spaces.
std::ostream& operator<<(std::ostream& stream, const TextTable& table);

/// The number with `digits` digits after the point: "3.50".
std::string decimals(double number, int digits);
/// The number with grouped digits: "1,234,567".
std::string grouped(int64_t number);

}  // namespace quantrain
