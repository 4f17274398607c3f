#include "tools/array_file.hpp"

#include <charconv>
#include <span>

#include "framework/core/file.hpp"
#include "framework/core/path.hpp"

namespace quantrain::tools {
namespace {

/// Source: NumPy's numpy.lib.format, version 1.0.
void write_npy(const std::string& path, const ArrayFile& array) {
  std::string shape;
  for (const int64_t extent : array.shape) shape += std::to_string(extent) + ", ";
  if (array.shape.size() > 1) shape.resize(shape.size() - 2);
  const bool whole = array.floats.empty();
  std::string header = std::string("{'descr': '<") + (whole ? "i4" : "f4") +
                       "', 'fortran_order': False, 'shape': (" + shape + "), }";
  constexpr size_t kPrefix = 10;
  header.append(63 - (kPrefix + header.size()) % 64, ' ');
  header += '\n';
  std::string start("\x93NUMPY\x01\x00", 8);
  start += static_cast<char>(header.size() & 0xff);
  start += static_cast<char>(header.size() >> 8);
  start += header;
  const auto as_bytes = [](const auto& values) {
    return std::span(reinterpret_cast<const uint8_t*>(values.data()),
                     values.size() * sizeof(values[0]));
  };
  const std::vector<std::span<const uint8_t>> parts{
      as_bytes(start), whole ? as_bytes(array.integers) : as_bytes(array.floats)};
  write_file(path, parts);
}

/// As a cell of a .csv, in quotes if it needs them.
std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string result = "\"";
  for (const char letter : text)
    result += letter == '"' ? std::string("\"\"") : std::string(1, letter);
  return result + '"';
}

void write_csv(const std::string& path,
               const ArrayFile& array,
               const std::vector<std::string>& names) {
  const bool whole = array.floats.empty();
  const size_t count = whole ? array.integers.size() : array.floats.size();
  const auto rows = static_cast<size_t>(array.shape.empty() ? 1 : array.shape[0]);
  const size_t columns = rows == 0 ? 0 : count / rows;
  const bool has_names = whole && columns == 1 && !names.empty();
  std::string text = "sample";
  if (columns == 1 && whole) {
    text += has_names ? ",class,name" : ",class";
  } else {
    for (size_t c = 0; c < columns; ++c) text += ",output" + std::to_string(c);
  }
  text += '\n';
  char number[32];
  for (size_t row = 0; row < rows; ++row) {
    text += std::to_string(row);
    for (size_t c = 0; c < columns; ++c) {
      const size_t at = row * columns + c;
      const auto end = whole ? std::to_chars(number, number + sizeof number, array.integers[at])
                             : std::to_chars(number, number + sizeof number, array.floats[at]);
      text += ',';
      text.append(number, end.ptr);
      if (!has_names) continue;
      const auto name = static_cast<size_t>(array.integers[at]);
      text += ',' + (name < names.size() ? quoted(names[name]) : std::string());
    }
    text += '\n';
  }
  write_file(path, text);
}

}  // namespace

void write_array(const std::string& path,
                 const ArrayFile& array,
                 const std::vector<std::string>& names) {
  if (to_path(path).extension() == ".npy") {
    write_npy(path, array);
  } else {
    write_csv(path, array, names);
  }
}

}  // namespace quantrain::tools
