#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quantrain {

struct CsvOptions {
  char separator = ',';
  bool header = true;  ///< the first line names the columns; otherwise they are "0", "1", ...
};

/// The texts of a column as classes: the distinct texts, and for each row the index of its text.
struct TextClasses {
  std::vector<std::string> names;  ///< sorted by their bytes
  std::vector<int32_t> labels;     ///< [rows]
};

/// The cells of a .csv file, by column. Messages count rows from 1, without the header.
class CsvTable {
 public:
  const std::vector<std::string>& columns() const& { return columns_; }
  std::vector<std::string> columns() const&& { return columns_; }
  int64_t rows() const { return rows_; }

  /// Text of a cell without its quotes. The view is valid as long as the table.
  /// Throws: DataError if the column or the row does not exist; rows count from 0 here.
  std::string_view text(int64_t row, std::string_view column) const&;
  std::string_view text(int64_t row, std::string_view column) const&& = delete;
  /// Numbers of these columns, [rows, columns]. Numbers are decimal, independent of the locale, and
  /// are rounded to the nearest float32.
  /// A number that is too near to 0 for float32 is 0.
  /// Throws: DataError naming row and column if a cell is empty, not a number, NaN, infinite or
  /// beyond float32's range; DataError if a column does not exist, or `columns` is empty.
  std::vector<float> floats(std::span<const std::string> columns) const;
  std::vector<float> floats(std::string_view column) const;
  /// Integers of a column, [rows].
  /// Throws: DataError naming row and column if a cell is not an int32; DataError if the column
  /// does not exist.
  std::vector<int32_t> labels(std::string_view column) const;
  /// Texts of a column as classes.   Throws: DataError if a cell is empty, or the column does not
  /// exist.
  TextClasses classes(std::string_view column) const;

 private:
  friend CsvTable read_csv(const std::string& path, const CsvOptions& options);
  CsvTable() = default;

  void parse(const CsvOptions& options);
  size_t column_of(std::string_view name) const;
  std::string_view cell(int64_t row, size_t column) const;
  template <class... Parts>
  [[noreturn]] void fail(int64_t row, size_t column, const Parts&... parts) const;
  float number(int64_t row, size_t column) const;

  std::string path_;
  std::vector<std::string> columns_;
  std::vector<size_t> by_name_;  // the columns, sorted by name; empty if their names are numbers
  int64_t rows_ = 0;
  std::string text_;          // text of all cells, one after the other
  std::vector<size_t> ends_;  // end of each cell in text_, without the header
  size_t first_ = 0;          // start of row 1 in text_
};

/// Reads a table by RFC 4180: cells may be in quotes ("a ""word"""), and then contain separators
/// and line breaks. Lines end with LF or CRLF. A UTF-8 byte order mark and empty lines at the end
/// are ignored.
/// Throws: DataError if the separator is a quote or a line break; DataError naming the path (and
/// the row if one is at fault) if the file is missing or has no rows, a line is empty or has more
/// or fewer cells than the first line, a quote is misplaced or not closed, a column has no name, or
/// two columns have the same name.
CsvTable read_csv(const std::string& path, const CsvOptions& options = {});

}  // namespace quantrain
