#include "quant/export/c99/text.hpp"

#include <algorithm>
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

// Removes the first line of `text` and returns it, with its newline.
std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
  text.remove_prefix(line.size());
  return line;
}

// The line without spaces around it.
std::string_view trimmed(std::string_view line) {
  const size_t begin = std::min(line.find_first_not_of(' '), line.size());
  return line.substr(begin, line.find_last_not_of(" \n") + 1 - begin);
}

// The line with n more spaces before it, or fewer if n < 0; empty lines and directives as they are.
std::string indented(std::string_view line, int64_t n) {
  if (line[0] == '\n' || line[0] == '#') return std::string(line);
  if (n < 0) return std::string(line.substr(static_cast<size_t>(-n)));
  return std::string(static_cast<size_t>(n), ' ').append(line);
}

// The text of a section, whose first line begins at column 0. In place of each section inside of it
// there is a line "$NAME$;".
std::string section_text(std::string_view name) {
  size_t mark = kCoreText.find(cat("//@ ", name, "\n"));
  if (mark == std::string_view::npos) mark = kCoreText.find(cat("//@ each ", name, "\n"));
  if (mark == std::string_view::npos) throw ExportError("c99", "the core has no section ", name);
  const auto indent = static_cast<int64_t>(mark - kCoreText.rfind('\n', mark) - 1);
  std::string_view text = kCoreText.substr(mark);
  take_line(text);
  std::string result;
  int depth = 0;  // number of open inner sections
  while (!text.empty()) {
    const std::string_view line = take_line(text), word = trimmed(line);
    if (word.starts_with("//@ each ")) {
      const std::string_view space = line.substr(0, line.find('/'));
      if (depth++ == 0) result += indented(cat(space, "$", word.substr(9), "$;\n"), -indent);
    } else if (word.starts_with("//@ ")) {
      if (word != "//@ end" || depth-- == 0) break;
    } else if (depth == 0) {
      result += indented(line, -indent);
    }
  }
  return result;
}

}  // namespace

std::string fill(std::string_view section,
                 std::initializer_list<Named> values,
                 std::span<const Named> shared) {
  const std::string text = section_text(section);
  const auto value = [&](std::string_view name) -> const std::string& {
    for (const std::span<const Named> list : {std::span<const Named>(values), shared}) {
      for (const Named& given : list)
        if (given.name == name) return given.value;
    }
    throw ExportError("c99", "the place $", name, "$ of section ", section, " has no value");
  };
  for (const Named& given : values) {
    if (text.find(cat("$", given.name, "$")) == std::string::npos)
      throw ExportError("c99", "section ", section, " has no place $", given.name, "$");
  }
  // The #if that are open. If the condition is a place, the lines of one branch are kept.
  struct Condition {
    bool is_place, keeps;
  };
  std::vector<Condition> open;
  std::string result;
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view line = take_line(rest);
    const std::string_view word = trimmed(line);
    const bool kept = std::all_of(open.begin(), open.end(), [](auto& c) { return c.keeps; });
    if (line.starts_with("#if")) {
      const bool is_place = word.starts_with("#if $") && word.back() == '$';
      const bool keeps = !is_place || !kept || value(word.substr(5, word.size() - 6)) != "0";
      open.push_back({is_place, keeps});
      if (is_place) continue;
    } else if (word == "#else" && open.back().is_place) {
      open.back().keeps = !open.back().keeps;
      continue;
    } else if (word == "#endif") {
      const bool is_place = open.back().is_place;
      open.pop_back();
      if (is_place) continue;
    }
    if (!kept) continue;
    if (word.ends_with("$;") && word.find('$', 1) == word.size() - 2) {  // whole lines
      const std::string_view name = word.substr(1, word.size() - 3);
      for (std::string_view lines = value(name); !lines.empty();)
        result += indented(take_line(lines), static_cast<int64_t>(line.find('$')));
      continue;
    }
    for (size_t at = line.find('$'); at != std::string_view::npos; at = line.find('$')) {
      const size_t end = line.find('$', at + 1);
      result.append(line.substr(0, at)).append(value(line.substr(at + 1, end - at - 1)));
      line.remove_prefix(end + 1);
    }
    result += line;
  }
  return result;
}

std::string list(std::span<const int64_t> values) {
  std::vector<std::string> items;
  for (const int64_t value : values) items.push_back(cat(value));
  return list(items);
}

std::string list(std::span<const std::string> items) {
  std::string text;
  size_t begin = 0;  // where the line begins
  for (const std::string& value : items) {
    const std::string item = value + ",";
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

}  // namespace quantrain::c99
