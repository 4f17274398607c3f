#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <iosfwd>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Reads untrusted JSON. A text is refused as soon as it exceeds a limit, and every number is
// range-checked.
namespace quantrain {

/// Upper limits for the size and depth of a text.
struct JsonLimits {
  int64_t bytes = int64_t{16} << 20;
  int depth = 16;                     ///< nested lists and objects
  int64_t values = int64_t{1} << 20;  ///< number of values and keys, counted together
};

class JsonDocument;

/// A value of a document. The document must outlive the value.
class JsonValue {
 public:
  bool is_null() const;
  bool is_object() const;
  bool is_list() const;
  /// Number of entries of a list or members of an object; 0 for other values.
  int64_t size() const;

  /// The value if it is an integer in [lo, hi]. 1.0 and true are not integers.
  std::optional<int64_t> integer(int64_t lo, int64_t hi) const;
  /// The value if it is a finite number.
  std::optional<double> real() const;
  std::optional<bool> boolean() const;
  std::optional<std::string_view> text() const;

  /// The entries of a list, in order. Empty for other values.
  std::vector<JsonValue> entries() const;
  /// The members of an object, in the order of the text. Names are distinct. Empty for other
  /// values.
  std::vector<std::pair<std::string_view, JsonValue>> members() const;
  std::optional<JsonValue> find(std::string_view name) const;

 private:
  friend class JsonDocument;
  friend std::ostream& operator<<(std::ostream& stream, const JsonValue& value);
  JsonValue(const JsonDocument* document, size_t at) : document_(document), at_(at) {}

  const JsonDocument* document_;
  size_t at_;
};

/// Prints a short form for messages: "a list of 3", "17", "\"text\"".
std::ostream& operator<<(std::ostream& stream, const JsonValue& value);

/// A parsed JSON text. Takes 16 bytes for each value and key, plus the strings.
class JsonDocument {
 public:
  /// Thrown if a text is refused; says why.
  struct Malformed {
    std::string text;
  };

  /// Throws: Malformed if the text is not JSON, repeats a key in an object, or exceeds a limit.
  explicit JsonDocument(std::string_view text, const JsonLimits& limits = {});
  // Not copied, because its values point to it.
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;

  JsonValue root() const& { return {this, 0}; }
  JsonValue root() const&& = delete;

 private:
  friend class JsonValue;
  friend std::ostream& operator<<(std::ostream& stream, const JsonValue& value);
  class Builder;
  enum class Kind : uint32_t {
    kNull,
    kFalse,
    kTrue,
    kInteger,
    kLarge,
    kReal,
    kText,
    kList,
    kObject
  };

  /// A value or a key. nodes_ has the order of the text, so each key comes before its value.
  struct Node {
    Kind kind;
    uint32_t size;  ///< bytes of a string; entries of a list or object
    union {
      int64_t integer;
      uint64_t large;  ///< too large for int64_t
      double real;
      uint64_t begin;  ///< strings: the position in texts_
      uint64_t end;    ///< lists and objects: the position after their last node
    };
  };

  const Node& node(size_t at) const { return nodes_[at]; }
  size_t next(size_t at) const;
  std::string_view text(const Node& node) const;

  std::vector<Node> nodes_;
  std::string texts_;
};

/// Creates an error of the caller's type with this message.
using JsonError = std::function<std::exception_ptr(const std::string& message)>;
/// Creates errors of type Error that read "[where] message".
template <class Error>
JsonError json_error(std::string where) {
  return [where = std::move(where)](const std::string& message) {
    return std::make_exception_ptr(Error(where, message));
  };
}

/// Reads an object member by member and checks the range of each value. finish() refuses an object
/// with a member that was not read. All errors have the caller's type.
class JsonReader {
 public:
  JsonReader(JsonValue object, JsonError error);

  bool has(std::string_view name) const { return json_.find(name).has_value(); }
  /// The member of this name. An object without it is refused.
  JsonValue at(std::string_view name);
  int64_t integer(std::string_view name, int64_t lo, int64_t hi);
  bool boolean(std::string_view name);
  double real(std::string_view name);
  /// A number in the range of float32, rounded to float32.
  float real32(std::string_view name);
  std::string text(std::string_view name);
  std::vector<JsonValue> list(std::string_view name, int64_t most);
  /// A list of at most `most` integers in [lo, hi].
  std::vector<int64_t> integers(std::string_view name, int64_t most, int64_t lo, int64_t hi);
  std::vector<double> reals(std::string_view name, int64_t most);
  std::vector<float> reals32(std::string_view name, int64_t most);
  /// Checks that every member was read.
  void finish() const;

 private:
  int64_t integer(JsonValue json, std::string_view name, int64_t lo, int64_t hi) const;
  double real(JsonValue json, std::string_view name) const;
  float real32(JsonValue json, std::string_view name) const;
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const;

  JsonValue json_;
  JsonError error_;
  std::set<std::string, std::less<>> read_;
};

}  // namespace quantrain
