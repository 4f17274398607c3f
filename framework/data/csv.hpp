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

/// Text as classes: the texts in order, and the place of each row's among them.
struct TextClasses {
  std::vector<std::string> names;  ///< sorted by their bytes
  std::vector<int32_t> labels;     ///< [rows]
};

/// The cells of a .csv file, by column. Messages count rows from 1, after the header.
class CsvTable {
 public:
  const std::vector<std::string>& columns() const& { return columns_; }
  std::vector<std::string> columns() const&& { return columns_; }
  int64_t rows() const { return rows_; }

  /// Text of a cell, without its quotes; valid as long as the table.
  /// Throws: DataError if there is no such column, or unless 0 <= row < rows().
  std::string_view text(int64_t row, std::string_view column) const&;
  std::string_view text(int64_t row, std::string_view column) const&& = delete;
  /// Numbers of these columns, [rows, columns]: decimal, whatever the locale, rounded to the
  /// nearest float32.
  /// Throws: DataError naming row and column if a cell is empty, no number, NaN, infinite or beyond
  /// float32; or if there is no such column, or no column is asked for.
  std::vector<float> floats(std::span<const std::string> columns) const;
  std::vector<float> floats(std::string_view column) const;
  /// Integers of a column, [rows].   Throws: DataError as floats(), for what is no int32.
  std::vector<int32_t> labels(std::string_view column) const;
  /// Texts of a column as classes.   Throws: DataError if a cell is empty.
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
  int64_t rows_ = 0;
  std::string text_;          // of all cells, one after the other
  std::vector<size_t> ends_;  // of each cell of the rows, in text_
  size_t first_ = 0;          // where the rows begin in text_
};

/// Reads a table: RFC 4180's quotes ("a ""word""", separators and line breaks between them), line
/// ends LF or CRLF, a UTF-8 byte order mark is passed over; empty lines may end the file.
/// Throws: DataError naming path and row if the file is missing or empty, a row is empty, has more
/// or fewer cells than the header, or misplaced quotes; or if a column has no name, or that of
/// another.
CsvTable read_csv(const std::string& path, const CsvOptions& options = {});

}  // namespace quantrain
