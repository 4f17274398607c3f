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

// The one reader of JSON that others wrote: bounded before anything is built, every number
// range-checked.
namespace quantrain {

/// What a text may be at most.
struct JsonLimits {
  int64_t bytes = int64_t{16} << 20;
  int depth = 16;                     ///< lists and objects in each other
  int64_t values = int64_t{1} << 20;  ///< of all kinds, and the keys of objects
};

class JsonDocument;

/// A value of a document, which must outlive it.
class JsonValue {
 public:
  bool is_null() const;
  bool is_object() const;
  bool is_list() const;
  /// Entries of a list, members of an object; else 0.
  int64_t size() const;

  /// A whole number in [lo, hi]; nothing for any other, for 1.0 and for true.
  std::optional<int64_t> integer(int64_t lo, int64_t hi) const;
  /// Any finite number.
  std::optional<double> real() const;
  std::optional<bool> boolean() const;
  std::optional<std::string_view> text() const;

  /// Of a list, in order; of anything else none.
  std::vector<JsonValue> entries() const;
  /// Of an object, in the order of the text; no two have one name. Of anything else none.
  std::vector<std::pair<std::string_view, JsonValue>> members() const;
  std::optional<JsonValue> find(std::string_view name) const;

 private:
  friend class JsonDocument;
  friend std::ostream& operator<<(std::ostream& stream, const JsonValue& value);
  JsonValue(const JsonDocument* document, size_t at) : document_(document), at_(at) {}

  const JsonDocument* document_;
  size_t at_;
};

/// Enough of it to recognise it in a message: "a list of 3", "17", "\"text\"".
std::ostream& operator<<(std::ostream& stream, const JsonValue& value);

/// A JSON text that was read: 16 bytes for each value and key, and the texts.
class JsonDocument {
 public:
  /// What is wrong with a text.
  struct Malformed {
    std::string text;
  };

  /// Throws: Malformed if it is no JSON, has a key twice in one object, or is beyond a limit.
  explicit JsonDocument(std::string_view text, const JsonLimits& limits = {});

  JsonValue root() const { return {this, 0}; }

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

  /// Values in the order of the text, each key in front of its value.
  struct Node {
    Kind kind;
    uint32_t size;  ///< of a text in bytes, of lists and objects in entries
    union {
      int64_t integer;
      uint64_t large;  ///< beyond int64_t
      double real;
      uint64_t begin;  ///< of a text
      uint64_t end;    ///< of lists and objects: the position behind what is in them
    };
  };

  const Node& node(size_t at) const { return nodes_[at]; }
  size_t next(size_t at) const;
  std::string_view text(const Node& node) const;

  std::vector<Node> nodes_;
  std::string texts_;
};

/// Makes the caller's error of what is wrong.
using JsonError = std::function<std::exception_ptr(const std::string& text)>;
/// "[where] text" as an error of this type.
template <class Error>
JsonError json_error(std::string where) {
  return [where = std::move(where)](const std::string& text) {
    return std::make_exception_ptr(Error(where, text));
  };
}

/// An object that is read member by member, each one range-checked; what was not asked for is an
/// error. All errors are the caller's.
class JsonReader {
 public:
  JsonReader(JsonValue object, JsonError error);

  bool has(std::string_view name) const { return json_.find(name).has_value(); }
  /// The member, which must be there.
  JsonValue at(std::string_view name);
  int64_t integer(std::string_view name, int64_t lo, int64_t hi);
  bool boolean(std::string_view name);
  double real(std::string_view name);
  /// A number that float holds, rounded to it.
  float real32(std::string_view name);
  std::string text(std::string_view name);
  std::vector<JsonValue> list(std::string_view name, int64_t most);
  /// A list of whole numbers in [lo, hi].
  std::vector<int64_t> integers(std::string_view name, int64_t most, int64_t lo, int64_t hi);
  std::vector<double> reals(std::string_view name, int64_t most);
  std::vector<float> reals32(std::string_view name, int64_t most);
  /// What was not asked for is not there.
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
