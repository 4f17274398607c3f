#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace quantrain {

/// Rows of text in columns that are as wide as their widest cell, with two spaces between them.
class TextTable {
 public:
  /// One letter for each column: 'l' for text, 'r' for numbers, which end below each other.
  explicit TextTable(std::string_view columns) : columns_(columns) {}

  /// A row of at most as many cells as there are columns. The last of a shorter row may be longer
  /// than its column.
  TextTable& add(std::vector<std::string> cells);

 private:
  friend std::ostream& operator<<(std::ostream& stream, const TextTable& table);

  std::string columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// One line for each row, without spaces at its end.
std::ostream& operator<<(std::ostream& stream, const TextTable& table);

/// With so many digits after the point: "3.50".
std::string decimals(double number, int digits);
/// "1,234,567".
std::string grouped(int64_t number);

}  // namespace quantrain
