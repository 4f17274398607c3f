#include "framework/data/csv.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "framework/core/printable.hpp"

namespace quantrain {
namespace {

constexpr const char* kCsv = "csv";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

/// A cell's text for a message.
std::string shown(std::string_view text) { return printable(std::string(text), 40); }

template <class T>
std::errc parse_all(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return error;
  return end == text.data() + text.size() ? std::errc() : std::errc::invalid_argument;
}

/// Whether the magnitude of a number other than 0 is below 1. text: in the form that from_chars()
/// accepts, of any magnitude.
bool is_below_one(std::string_view text) {
  const size_t mark = std::min(text.find_first_of("eE"), text.size());
  const std::string_view mantissa = text.substr(0, mark);
  const auto point = static_cast<int64_t>(std::min(mantissa.find('.'), mantissa.size()));
  const auto first = static_cast<int64_t>(mantissa.find_first_of("123456789"));
  // The number is at least 10^(magnitude - 1) and less than 10^magnitude, times the power of ten.
  const int64_t magnitude = point - first + (first > point ? 1 : 0);
  std::string_view power = text.substr(std::min(mark + 1, text.size()));
  if (power.starts_with('+')) power.remove_prefix(1);
  int32_t exponent = 0;
  if (parse_all(power, exponent) == std::errc::result_out_of_range) return power.starts_with('-');
  return magnitude + exponent <= 0;
}

}  // namespace

CsvTable read_csv(const std::string& path, const CsvOptions& options) {
  if (options.separator == '"' || options.separator == '\n' || options.separator == '\r')
    throw DataError(kCsv, "the separator of cells cannot be a quote or a line break");
  InputFile file(path);
  CsvTable table;
  table.path_ = path;
  table.text_.resize(static_cast<size_t>(file.left()));
  const std::span<uint8_t> bytes(reinterpret_cast<uint8_t*>(table.text_.data()),
                                 table.text_.size());
  if (file.read(bytes) < bytes.size()) throw DataError(kCsv, path, ": truncated while it was read");
  table.parse(options);
  return table;
}

// Writes the cells over the text that they are read from. Writing never overtakes reading, because
// quotes, separators and line breaks are removed and nothing is added.
void CsvTable::parse(const CsvOptions& options) {
  const std::string& in = text_;
  const size_t size = in.size();
  size_t from = in.compare(0, 3, "\xef\xbb\xbf") == 0 ? 3 : 0;
  size_t to = 0;
  const auto breaks_line = [&](size_t at) {
    return at == size || in[at] == '\n' ||
           (in[at] == '\r' && (at + 1 == size || in[at + 1] == '\n'));
  };
  const auto count = [&](char c) { return std::count(in.begin(), in.end(), c); };
  ends_.reserve(static_cast<size_t>(count(options.separator) + count('\n') + 1));

  size_t width = 0;  // cells of each row; 0 until the first row is read
  int64_t row = options.header ? 0 : 1;
  const auto where = [&] { return row == 0 ? "the header" : "row " + std::to_string(row); };
  const auto is_blank = [&](size_t at) {
    return std::all_of(in.begin() + static_cast<std::ptrdiff_t>(at), in.end(), [](char c) {
      return c == '\n' || c == '\r';
    });
  };
  while (from < size && !is_blank(from)) {
    if (breaks_line(from)) {
      throw DataError(
          kCsv, path_, ": ", where(), " is empty", row == 0 ? "" : ": remove the line, or fill it");
    }
    const size_t first_cell = ends_.size();
    for (bool more = true; more;) {
      if (from < size && in[from] == '"') {
        ++from;
        for (;;) {
          const size_t quote = in.find('"', from);
          if (quote == std::string::npos)
            throw DataError(kCsv, path_, ": ", where(), ": a quote is not closed");
          std::copy(in.begin() + static_cast<std::ptrdiff_t>(from),
                    in.begin() + static_cast<std::ptrdiff_t>(quote),
                    text_.begin() + static_cast<std::ptrdiff_t>(to));
          to += quote - from;
          from = quote + 1;
          if (from == size || in[from] != '"') break;
          text_[to++] = '"';  // two quotes stand for one
          ++from;
        }
        if (!breaks_line(from) && in[from] != options.separator) {
          throw DataError(
              kCsv, path_, ": ", where(), ": a quoted cell goes on after its closing quote");
        }
      } else {
        while (!breaks_line(from) && in[from] != options.separator) {
          if (in[from] == '"') {
            throw DataError(kCsv,
                            path_,
                            ": ",
                            where(),
                            ": a quote inside a cell that is not quoted: write \"a "
                            "\"\"word\"\"\"");
          }
          text_[to++] = in[from++];
        }
      }
      ends_.push_back(to);
      more = !breaks_line(from);
      if (more) ++from;
    }
    if (from < size) from += in[from] == '\r' ? 2 : 1;
    const size_t cells = ends_.size() - first_cell;
    if (width == 0) width = cells;
    if (cells != width) {
      throw DataError(kCsv,
                      path_,
                      ": ",
                      where(),
                      " has ",
                      cells,
                      " cells, ",
                      options.header ? "the header has " : "row 1 has ",
                      width);
    }
    ++row;
  }
  if (ends_.empty()) throw DataError(kCsv, path_, ": is empty");

  columns_.reserve(width);
  for (size_t c = 0; c < width; ++c) {
    if (!options.header) {
      columns_.push_back(std::to_string(c));
      continue;
    }
    const size_t begin = c == 0 ? 0 : ends_[c - 1];
    std::string column(trimmed(std::string_view(text_).substr(begin, ends_[c] - begin)));
    if (column.empty()) throw DataError(kCsv, path_, ": column ", c + 1, " has no name");
    columns_.push_back(std::move(column));
  }
  by_name_.resize(options.header ? width : 0);
  std::iota(by_name_.begin(), by_name_.end(), size_t{0});
  std::sort(by_name_.begin(), by_name_.end(), [&](size_t a, size_t b) {
    const int order = columns_[a].compare(columns_[b]);
    return order != 0 ? order < 0 : a < b;
  });
  const auto twice = std::adjacent_find(by_name_.begin(), by_name_.end(), [&](size_t a, size_t b) {
    return columns_[a] == columns_[b];
  });
  if (twice != by_name_.end())
    throw DataError(kCsv,
                    path_,
                    ": columns ",
                    twice[0] + 1,
                    " and ",
                    twice[1] + 1,
                    " are both named \"",
                    shown(columns_[*twice]),
                    '"');
  if (options.header) {
    first_ = ends_[width - 1];
    ends_.erase(ends_.begin(), ends_.begin() + static_cast<std::ptrdiff_t>(width));
  }
  rows_ = static_cast<int64_t>(ends_.size() / width);
  if (rows_ == 0) throw DataError(kCsv, path_, ": has a header and no row");
}

size_t CsvTable::column_of(std::string_view name) const {
  if (size_t number = 0; by_name_.empty() && parse_all(name, number) == std::errc() &&
                         number < columns_.size() && columns_[number] == name)
    return number;
  const auto found = std::lower_bound(
      by_name_.begin(), by_name_.end(), name, [&](size_t c, std::string_view text) {
        return columns_[c] < text;
      });
  if (found != by_name_.end() && columns_[*found] == name) return *found;
  constexpr size_t kMostNamed = 20;
  std::string known;
  for (size_t c = 0; c < std::min(columns_.size(), kMostNamed); ++c)
    known += (c == 0 ? "" : ", ") + shown(columns_[c]);
  if (columns_.size() > kMostNamed)
    known += " and " + std::to_string(columns_.size() - kMostNamed) + " more";
  throw DataError(kCsv, path_, ": has no column \"", shown(name), "\"; its columns: ", known);
}

std::string_view CsvTable::cell(int64_t row, size_t column) const {
  const size_t i = static_cast<size_t>(row) * columns_.size() + column;
  const size_t begin = i == 0 ? first_ : ends_[i - 1];
  return std::string_view(text_).substr(begin, ends_[i] - begin);
}

template <class... Parts>
void CsvTable::fail(int64_t row, size_t column, const Parts&... parts) const {
  throw DataError(
      kCsv, path_, ": row ", row + 1, ", column \"", shown(columns_[column]), "\": ", parts...);
}

std::string_view CsvTable::text(int64_t row, std::string_view column) const& {
  const size_t c = column_of(column);
  if (row < 0 || row >= rows_)
    throw DataError(kCsv, path_, ": there is no row ", row + 1, " in a table of ", rows_, " rows");
  return cell(row, c);
}

float CsvTable::number(int64_t row, size_t column) const {
  const std::string_view text = trimmed(cell(row, column));
  if (text.empty()) fail(row, column, "is empty: fill it, or leave the row out");
  // from_chars does not accept a plus, so it is skipped, unless a minus follows.
  const bool has_plus = text.size() > 1 && text[0] == '+' && text[1] != '-';
  const std::string_view digits = has_plus ? text.substr(1) : text;
  float value = 0.0f;
  std::errc error = parse_all(digits, value);
  if (error == std::errc::result_out_of_range) {  // too large, or too near to 0
    if (!is_below_one(digits))
      fail(row, column, '"', shown(text), "\" is beyond what a float32 can hold");
    double wide = 0.0;  // 0 stays if a double cannot hold the number either
    parse_all(digits, wide);
    value = std::copysign(static_cast<float>(wide), digits[0] == '-' ? -1.0f : 1.0f);
    error = std::errc();
  }
  if (error != std::errc()) fail(row, column, '"', shown(text), "\" is not a number");
  if (!std::isfinite(value))
    fail(row, column, "is ", value, ": leave the row out, or replace the value");
  return value;
}

std::vector<float> CsvTable::floats(std::span<const std::string> columns) const {
  if (columns.empty()) throw DataError(kCsv, path_, ": no column is asked for");
  std::vector<size_t> places;
  for (const std::string& column : columns) places.push_back(column_of(column));
  std::vector<float> values;
  values.reserve(static_cast<size_t>(rows_) * places.size());
  for (int64_t row = 0; row < rows_; ++row) {
    for (const size_t column : places) values.push_back(number(row, column));
  }
  return values;
}

std::vector<float> CsvTable::floats(std::string_view column) const {
  const std::string one[] = {std::string(column)};
  return floats(one);
}

std::vector<int32_t> CsvTable::labels(std::string_view column) const {
  const size_t c = column_of(column);
  std::vector<int32_t> values;
  values.reserve(static_cast<size_t>(rows_));
  for (int64_t row = 0; row < rows_; ++row) {
    const std::string_view text = trimmed(cell(row, c));
    int32_t value = 0;
    if (parse_all(text, value) != std::errc()) {
      fail(row,
           c,
           '"',
           shown(text),
           "\" is not a 32-bit integer: use classes() for labels that are text");
    }
    values.push_back(value);
  }
  return values;
}

TextClasses CsvTable::classes(std::string_view column) const {
  const size_t c = column_of(column);
  std::map<std::string_view, int32_t> numbers;
  for (int64_t row = 0; row < rows_; ++row) {
    const std::string_view text = trimmed(cell(row, c));
    if (text.empty()) fail(row, c, "is empty: fill it, or leave the row out");
    numbers.emplace(text, 0);
  }
  TextClasses classes;
  for (auto& [name, number] : numbers) {
    number = static_cast<int32_t>(classes.names.size());
    classes.names.emplace_back(name);
  }
  classes.labels.reserve(static_cast<size_t>(rows_));
  for (int64_t row = 0; row < rows_; ++row)
    classes.labels.push_back(numbers.find(trimmed(cell(row, c)))->second);
  return classes;
}

}  // namespace quantrain
