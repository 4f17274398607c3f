#pragma once

#include <concepts>
#include <cstdint>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

#include "framework/io/json.hpp"

namespace quantrain {

/// Whether a text is UTF-8, as JSON demands.   Source: RFC 3629, section 4
bool is_utf8(std::string_view text);

/// Writes a JSON text, value after value, in the order of the calls. Doubles are written as the
/// shortest text that reads back as the same number, plus ".0" if the text looks like an integer.
/// Doubles that are not finite are written as null.
class JsonWriter {
 public:
  /// error: creates the error that is thrown if a text is not UTF-8. If null, invalid bytes are
  /// replaced by U+FFFD. indent: spaces for each level; negative: everything is on one line.
  explicit JsonWriter(JsonError error = nullptr, int indent = -1);

  /// Writes an object. body writes its members.
  template <std::invocable Body>
  void object(const Body& body) {
    begin('{');
    body();
    end('}');
  }
  /// Writes a list. body writes its values.
  template <std::invocable Body>
  void list(const Body& body) {
    begin('[');
    body();
    end(']');
  }
  /// Writes a member of an object. value: any type that write() takes, or a function that writes
  /// the value.
  template <class T>
  void member(std::string_view name, const T& value) {
    key(name);
    if constexpr (std::invocable<const T&>) {
      value();
    } else {
      write(value);
    }
  }

  void write(std::nullptr_t);
  void write(bool value);
  void write(int64_t value);
  void write(double value);
  void write(std::string_view value);
  void write(const char* value) { write(std::string_view(value)); }
  template <std::integral T>
  void write(T value) {
    write(static_cast<int64_t>(value));
  }
  void write(float value) { write(double{value}); }
  /// Writes a list.
  template <std::ranges::range Values>
  requires(!std::convertible_to<const Values&, std::string_view>) void write(const Values& values) {
    list([&] {
      for (const auto& value : values) write(value);
    });
  }

  /// The text written so far.
  const std::string& text() const& { return text_; }
  std::string text() && { return std::move(text_); }

 private:
  void begin(char bracket);
  void end(char bracket);
  void begin_value();
  void key(std::string_view name);
  void new_line();
  void quote(std::string_view value);

  JsonError error_;
  int indent_;
  std::string text_;
  std::vector<char> filled_;  // whether each open list or object has a value
  bool after_key_ = false;
};

}  // namespace quantrain
