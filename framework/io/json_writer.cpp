#include "framework/io/json_writer.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace quantrain {
namespace {

/// Number of bytes of the first character of text, or 0 if the character is not UTF-8.
/// RFC 3629, section 4.
size_t character(std::string_view text) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0};
  };
  const auto follows = [&](size_t i, uint8_t low = 0x80, uint8_t high = 0xbf) {
    return byte(i) >= low && byte(i) <= high;
  };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const uint8_t low = first == 0xe0 ? 0xa0 : 0x80;   // shortest form only
    const uint8_t high = first == 0xed ? 0x9f : 0xbf;  // no surrogates
    return follows(1, low, high) && follows(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const uint8_t low = first == 0xf0 ? 0x90 : 0x80;
    const uint8_t high = first == 0xf4 ? 0x8f : 0xbf;  // up to U+10FFFF
    return follows(1, low, high) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

/// The escape sequence that JSON requires for c. Empty if c needs none.
std::string escaped(char c) {
  switch (c) {
    case '"': return "\\\"";
    case '\\': return "\\\\";
    case '\b': return "\\b";
    case '\f': return "\\f";
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    default: break;
  }
  const auto code = static_cast<uint8_t>(c);
  if (code >= 0x20) return {};
  constexpr const char* kDigits = "0123456789abcdef";
  return std::string("\\u00") + kDigits[code / 16] + kDigits[code % 16];
}

template <class T>
void append_number(std::string& text, T value) {
  char buffer[32];
  const std::to_chars_result end = std::to_chars(buffer, buffer + sizeof buffer, value);
  text.append(buffer, end.ptr);
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t bytes = character(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

JsonWriter::JsonWriter(JsonError error, int indent) : error_(std::move(error)), indent_(indent) {}

void JsonWriter::begin(char bracket) {
  begin_value();
  text_ += bracket;
  filled_.push_back(0);
}

void JsonWriter::end(char bracket) {
  const bool any = filled_.back() != 0;
  filled_.pop_back();
  if (any) new_line();
  text_ += bracket;
}

void JsonWriter::begin_value() {
  if (!after_key_ && !filled_.empty()) {
    if (filled_.back() != 0) text_ += ',';
    filled_.back() = 1;
    new_line();
  }
  after_key_ = false;
}

void JsonWriter::new_line() {
  if (indent_ < 0) return;
  text_ += '\n';
  text_.append(filled_.size() * static_cast<size_t>(indent_), ' ');
}

void JsonWriter::key(std::string_view name) {
  begin_value();
  quote(name);
  text_ += indent_ < 0 ? ":" : ": ";
  after_key_ = true;
}

void JsonWriter::write(std::nullptr_t) {
  begin_value();
  text_ += "null";
}

void JsonWriter::write(bool value) {
  begin_value();
  text_ += value ? "true" : "false";
}

void JsonWriter::write(int64_t value) {
  begin_value();
  append_number(text_, value);
}

void JsonWriter::write(double value) {
  if (!std::isfinite(value)) return write(nullptr);
  begin_value();
  const size_t first = text_.size();
  append_number(text_, value);
  // Digits alone would read back as an integer.
  if (text_.find_first_of(".e", first) == std::string::npos) text_ += ".0";
}

void JsonWriter::write(std::string_view value) {
  begin_value();
  quote(value);
}

void JsonWriter::quote(std::string_view value) {
  text_ += '"';
  for (size_t at = 0; at < value.size();) {
    const size_t bytes = character(value.substr(at));
    if (bytes == 0 && error_ != nullptr) {
      std::rethrow_exception(error_("byte " + std::to_string(at) + " of a text is not UTF-8"));
    }
    if (bytes == 0) {
      text_ += "\xef\xbf\xbd";
    } else if (const std::string escape = escaped(value[at]); bytes == 1 && !escape.empty()) {
      text_ += escape;
    } else {
      text_ += value.substr(at, bytes);
    }
    at += std::max<size_t>(bytes, 1);
  }
  text_ += '"';
}

}  // namespace quantrain
