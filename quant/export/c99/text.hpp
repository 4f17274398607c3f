#pragma once

#include <cstdint>
#include <initializer_list>
#include <locale>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/text_stream.hpp"

// C source as text.
namespace quantrain::c99 {

/// The parts, concatenated. Numbers are formatted as in the "C" locale.
template <class... Parts>
std::string cat(const Parts&... parts) {
  TextStream stream;
  stream.imbue(std::locale::classic());
  (stream << ... << parts);
  return stream.str();
}

/// A value for the places $NAME$ of a section. Numbers are written as cat() writes them.
struct Named {
  std::string_view name;
  std::string value;

  template <class T>
  Named(std::string_view its_name, const T& its_value) : name(its_name), value(cat(its_value)) {}
};

/// A section of core/ with its places filled; README.md describes sections and places. `shared` may
/// have values for which the section has no place.
/// Throws: ExportError if there is no such section, a place has no value, or a value no place.
std::string fill(std::string_view section,
                 std::initializer_list<Named> values = {},
                 std::span<const Named> shared = {});

/// "a, b, ..." in lines of at most 100 characters, indented by two.
std::string list(std::span<const std::string> items);
std::string list(std::span<const int64_t> values);

/// "static const <type> <name>[<n>] TABLE = { <values> };". The exported source defines the macro
/// TABLE.
template <class T>
std::string table(std::string_view type, std::string_view name, std::span<const T> values) {
  const std::vector<int64_t> numbers(values.begin(), values.end());
  return cat(
      "static const ", type, " ", name, "[", values.size(), "] TABLE = {\n", list(numbers), "};\n");
}

/// The shortest decimal literal that reads back as the same float or double: "0.5f", "1e-08".
std::string number(float value);
std::string number(double value);

/// Text that is safe inside a C comment: "*/" becomes "* /", "/*" becomes "/ *", and all characters
/// but printable ASCII become "?". If the text ends with a backslash, a space is added.
std::string comment(std::string_view text);

}  // namespace quantrain::c99
