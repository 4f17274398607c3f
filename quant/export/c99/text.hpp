#pragma once

#include <cstdint>
#include <initializer_list>
#include <locale>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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

/// text with every `from` replaced by `to`.
std::string replaced(std::string text, std::string_view from, std::string_view to);

/// text with every "@NAME@" replaced by its value.
std::string fill(std::string text,
                 std::initializer_list<std::pair<std::string_view, std::string>> values);

/// "a, b, ..." in lines of at most 100 characters, indented by two.
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

/// A part of the C core: the text in core/ after "//@ section", up to the next "//@" or the end.
/// Throws: ExportError if there is no such section.
std::string core(std::string_view section);

}  // namespace quantrain::c99
