#include "framework/core/text_table.hpp"

#include <algorithm>
#include <iomanip>
#include <ostream>
#include <utility>

#include "framework/core/error.hpp"
#include "framework/core/printable.hpp"
#include "framework/core/text_stream.hpp"

namespace quantrain {

TextTable& TextTable::add(std::vector<std::string> cells) & {
  if (cells.empty() || cells.size() > columns_.size())
    throw DataError("table", "a row of ", cells.size(), " cells for ", columns_.size(), " columns");
  // A name from a file may have megabytes. The last cell, such as a reason, widens no line but its
  // own.
  constexpr size_t kMostOfCell = 200;
  constexpr size_t kMostOfLastCell = 2000;
  for (std::string& cell : cells)
    make_printable(cell, &cell == &cells.back() ? kMostOfLastCell : kMostOfCell);
  rows_.push_back(std::move(cells));
  return *this;
}

std::ostream& operator<<(std::ostream& stream, const TextTable& table) {
  const size_t columns = table.columns_.size();
  std::vector<size_t> widths(columns, 0);
  for (const std::vector<std::string>& row : table.rows_) {
    const size_t counted = row.size() < columns ? row.size() - 1 : columns;
    for (size_t i = 0; i < counted; ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const std::vector<std::string>& row : table.rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - std::min(widths[i], row[i].size()), ' ');
      line += i == 0 ? "" : "  ";
      line += table.columns_[i] == 'r' ? padding + row[i] : row[i] + padding;
    }
    stream << line.substr(0, line.find_last_not_of(' ') + 1) << '\n';
  }
  return stream;
}

std::string decimals(double number, int digits) {
  TextStream text;
  text << std::fixed << std::setprecision(digits) << number;
  return text.str();
}

std::string grouped(int64_t number) {
  const std::string digits = std::to_string(number);
  const size_t first = number < 0 ? 1 : 0;
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > first && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

}  // namespace quantrain
