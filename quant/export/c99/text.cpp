#include "quant/export/c99/text.hpp"

#include <array>
#include <charconv>

#include "framework/core/error.hpp"
#include "quant/export/c99/core_text.hpp"

namespace quantrain::c99 {
namespace {

template <class T>
std::string shortest(T value) {
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  std::string result(text.data(), end);
  if (result.find_first_of(".e") == std::string::npos) result += ".0";
  return result;
}

}  // namespace

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

std::string fill(std::string text,
                 std::initializer_list<std::pair<std::string_view, std::string>> values) {
  for (const auto& [name, value] : values) text = replaced(text, cat("@", name, "@"), value);
  return text;
}

std::string list(std::span<const int64_t> values) {
  std::string text;
  size_t begin = 0;  // where the line begins
  for (const int64_t value : values) {
    const std::string item = cat(value, ",");
    if (text.empty() || text.size() - begin + 1 + item.size() > 100) {
      if (!text.empty()) text += '\n';
      begin = text.size();
      text += ' ';
    }
    text += ' ';
    text += item;
  }
  text += '\n';
  return text;
}

std::string number(float value) { return shortest(value) + "f"; }
std::string number(double value) { return shortest(value); }

std::string comment(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool printable = c >= ' ' && c <= '~';
    // "*/" would end the comment, and compilers warn about "/*" inside it.
    if (c == '/' && !result.empty() && result.back() == '*') result += ' ';
    if (c == '*' && !result.empty() && result.back() == '/') result += ' ';
    result += printable ? c : '?';
  }
  if (!result.empty() && result.back() == '\\') result += ' ';
  return result;
}

std::string core(std::string_view section) {
  const std::string mark = cat("//@ ", section, "\n");
  const std::string_view text = kCoreText;
  const size_t at = text.find(mark);
  if (at == std::string_view::npos) throw ExportError("c99", "the core has no part ", section);
  const size_t begin = at + mark.size();
  const size_t end = text.find("//@ ", begin);
  return std::string(text.substr(begin, end == std::string_view::npos ? end : end - begin));
}

}  // namespace quantrain::c99
