#include "framework/io/json.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <ostream>

#include "framework/core/rounding.hpp"
#include "framework/core/text_stream.hpp"

namespace quantrain {
namespace {

constexpr size_t kMostShown = 60;    // bytes of a value in a message
constexpr size_t kMostReason = 200;  // bytes of the parser's message, which quotes the text

template <class... Parts>
std::string joined(const Parts&... parts) {
  TextStream stream;
  (stream << ... << parts);
  return stream.str();
}

template <class... Parts>
[[noreturn]] void malformed(const Parts&... parts) {
  throw JsonDocument::Malformed{joined(parts...)};
}

/// At most the first `most` bytes of a text, without cutting a UTF-8 character.
std::string_view start_of(std::string_view text, size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
  return text.substr(0, most);
}

}  // namespace

/// Receives the events of nlohmann's parser. The parser itself stores only one bit for each level
/// of nesting.
class JsonDocument::Builder {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  Builder(JsonDocument& document, const JsonLimits& limits) : d_(document), limits_(limits) {}

  bool null() { return add(Kind::kNull); }
  bool boolean(bool value) { return add(value ? Kind::kTrue : Kind::kFalse); }
  bool number_integer(number_integer_t value) {
    add(Kind::kInteger);
    d_.nodes_.back().integer = value;
    return true;
  }
  bool number_unsigned(number_unsigned_t value) {
    if (value <= uint64_t{std::numeric_limits<int64_t>::max()})
      return number_integer(static_cast<int64_t>(value));
    add(Kind::kLarge);
    d_.nodes_.back().large = value;
    return true;
  }
  bool number_float(number_float_t value, const string_t& /*text*/) {
    add(Kind::kReal);
    d_.nodes_.back().real = value;
    return true;
  }
  bool string(const string_t& value) {
    add(Kind::kText);
    put(value);
    return true;
  }
  bool binary(const binary_t& /*value*/) { return false; }
  bool start_object(size_t /*elements*/) { return open(Kind::kObject); }
  bool start_array(size_t /*elements*/) { return open(Kind::kList); }
  bool key(const string_t& value) {
    make(Kind::kText);
    put(value);
    return true;
  }
  bool end_object() {
    check_keys(open_.back());
    return close();
  }
  bool end_array() { return close(); }
  bool parse_error(size_t /*position*/,
                   const std::string& /*token*/,
                   const nlohmann::json::exception& error) {
    malformed("is not JSON: ", start_of(error.what(), kMostReason));
  }

 private:
  void make(Kind kind) {
    if (static_cast<int64_t>(d_.nodes_.size()) >= limits_.values)
      malformed("has more than ", limits_.values, " values and keys");
    d_.nodes_.push_back({.kind = kind, .size = 0, .integer = 0});
  }
  // Adds a value and counts it as an entry of the innermost open list or object.
  bool add(Kind kind) {
    if (!open_.empty()) ++d_.nodes_[open_.back()].size;
    make(kind);
    return true;
  }
  void put(const std::string& text) {
    d_.nodes_.back().begin = d_.texts_.size();
    d_.nodes_.back().size = static_cast<uint32_t>(text.size());
    d_.texts_ += text;
  }
  bool open(Kind kind) {
    if (open_.size() >= static_cast<size_t>(limits_.depth))
      malformed("nests deeper than ", limits_.depth, " levels");
    add(kind);
    open_.push_back(d_.nodes_.size() - 1);
    return true;
  }
  bool close() {
    d_.nodes_[open_.back()].end = d_.nodes_.size();
    open_.pop_back();
    return true;
  }
  // Duplicate keys are refused, because JSON readers differ in which of the two values they keep.
  void check_keys(size_t object) {
    keys_.clear();
    for (size_t at = object + 1; at < d_.nodes_.size(); at = d_.next(at + 1))
      keys_.push_back(d_.text(d_.node(at)));
    std::sort(keys_.begin(), keys_.end());
    const auto twice = std::adjacent_find(keys_.begin(), keys_.end());
    if (twice != keys_.end()) malformed("has the key \"", start_of(*twice, kMostShown), "\" twice");
  }

  JsonDocument& d_;
  const JsonLimits& limits_;
  std::vector<size_t> open_;
  std::vector<std::string_view> keys_;
};

JsonDocument::JsonDocument(std::string_view text, const JsonLimits& limits) {
  // Sizes have 32 bits.
  const int64_t most = std::min<int64_t>(limits.bytes, std::numeric_limits<uint32_t>::max());
  if (static_cast<int64_t>(text.size()) > most)
    malformed("has ", text.size(), " bytes, the limit is ", most);
  // The parser would take a zero byte for the end of the text and would skip a byte order mark.
  if (text.find('\0') != std::string_view::npos) malformed("is not JSON: it has a zero byte");
  if (text.starts_with("\xef\xbb\xbf")) malformed("is not JSON: it begins with a byte order mark");
  Builder builder(*this, limits);
  const DefaultRounding rounding;  // for the conversion of numbers
  // The parser itself does not throw: it reports errors to the builder.
  nlohmann::json::sax_parse(text.data(), text.data() + text.size(), &builder);
}

size_t JsonDocument::next(size_t at) const {
  const Node& n = nodes_[at];
  return n.kind == Kind::kList || n.kind == Kind::kObject ? static_cast<size_t>(n.end) : at + 1;
}

std::string_view JsonDocument::text(const Node& node) const {
  return std::string_view(texts_).substr(static_cast<size_t>(node.begin), node.size);
}

bool JsonValue::is_null() const { return document_->node(at_).kind == JsonDocument::Kind::kNull; }
bool JsonValue::is_object() const {
  return document_->node(at_).kind == JsonDocument::Kind::kObject;
}
bool JsonValue::is_list() const { return document_->node(at_).kind == JsonDocument::Kind::kList; }
int64_t JsonValue::size() const {
  return is_list() || is_object() ? int64_t{document_->node(at_).size} : 0;
}

std::optional<int64_t> JsonValue::integer(int64_t lo, int64_t hi) const {
  const auto& node = document_->node(at_);
  if (node.kind != JsonDocument::Kind::kInteger || node.integer < lo || node.integer > hi)
    return std::nullopt;
  return node.integer;
}

std::optional<double> JsonValue::real() const {
  const auto& node = document_->node(at_);
  switch (node.kind) {
    case JsonDocument::Kind::kInteger: return static_cast<double>(node.integer);
    case JsonDocument::Kind::kLarge: return static_cast<double>(node.large);
    case JsonDocument::Kind::kReal:
      return std::isfinite(node.real) ? std::optional(node.real) : std::nullopt;
    default: return std::nullopt;
  }
}

std::optional<bool> JsonValue::boolean() const {
  const auto kind = document_->node(at_).kind;
  if (kind != JsonDocument::Kind::kTrue && kind != JsonDocument::Kind::kFalse) return std::nullopt;
  return kind == JsonDocument::Kind::kTrue;
}

std::optional<std::string_view> JsonValue::text() const {
  const auto& node = document_->node(at_);
  if (node.kind != JsonDocument::Kind::kText) return std::nullopt;
  return document_->text(node);
}

std::vector<JsonValue> JsonValue::entries() const {
  std::vector<JsonValue> entries;
  if (!is_list()) return entries;
  entries.reserve(static_cast<size_t>(size()));
  const auto end = static_cast<size_t>(document_->node(at_).end);
  for (size_t at = at_ + 1; at < end; at = document_->next(at)) entries.push_back({document_, at});
  return entries;
}

std::vector<std::pair<std::string_view, JsonValue>> JsonValue::members() const {
  std::vector<std::pair<std::string_view, JsonValue>> members;
  if (!is_object()) return members;
  members.reserve(static_cast<size_t>(size()));
  const auto end = static_cast<size_t>(document_->node(at_).end);
  for (size_t at = at_ + 1; at < end; at = document_->next(at + 1))
    members.emplace_back(document_->text(document_->node(at)), JsonValue(document_, at + 1));
  return members;
}

std::optional<JsonValue> JsonValue::find(std::string_view name) const {
  if (!is_object()) return std::nullopt;
  const auto end = static_cast<size_t>(document_->node(at_).end);
  for (size_t at = at_ + 1; at < end; at = document_->next(at + 1)) {
    if (document_->text(document_->node(at)) == name) return JsonValue(document_, at + 1);
  }
  return std::nullopt;
}

std::ostream& operator<<(std::ostream& stream, const JsonValue& value) {
  const auto& node = value.document_->node(value.at_);
  switch (node.kind) {
    case JsonDocument::Kind::kNull: return stream << "null";
    case JsonDocument::Kind::kFalse: return stream << "false";
    case JsonDocument::Kind::kTrue: return stream << "true";
    case JsonDocument::Kind::kInteger: return stream << node.integer;
    case JsonDocument::Kind::kLarge: return stream << node.large;
    case JsonDocument::Kind::kReal: {
      std::array<char, 32> digits{};
      const auto result = std::to_chars(digits.data(), digits.data() + digits.size(), node.real);
      const std::string_view text(digits.data(), static_cast<size_t>(result.ptr - digits.data()));
      return stream << text << (text.find_first_of(".en") == std::string_view::npos ? ".0" : "");
    }
    case JsonDocument::Kind::kText:
      return stream << '"' << start_of(value.document_->text(node), kMostShown) << '"';
    case JsonDocument::Kind::kList: return stream << "a list of " << node.size;
    case JsonDocument::Kind::kObject: return stream << "an object of " << node.size;
  }
  return stream;
}

template <class... Parts>
void JsonReader::refuse(const Parts&... parts) const {
  std::rethrow_exception(error_(joined(parts...)));
}

JsonReader::JsonReader(JsonValue object, JsonError error)
    : json_(object), error_(std::move(error)) {
  if (!json_.is_object()) refuse("is ", json_, ", expected a JSON object");
}

JsonValue JsonReader::at(std::string_view name) {
  const std::optional<JsonValue> found = json_.find(name);
  if (!found) refuse("lacks \"", name, '"');
  read_.emplace(name);
  return *found;
}

int64_t JsonReader::integer(JsonValue json, std::string_view name, int64_t lo, int64_t hi) const {
  const std::optional<int64_t> value = json.integer(lo, hi);
  if (!value)
    refuse('"', name, "\" is ", json, ", expected a whole number in [", lo, ", ", hi, ']');
  return *value;
}

double JsonReader::real(JsonValue json, std::string_view name) const {
  const std::optional<double> value = json.real();
  if (!value) refuse('"', name, "\" is ", json, ", expected a number");
  return *value;
}

float JsonReader::real32(JsonValue json, std::string_view name) const {
  const double value = real(json, name);
  if (!(std::abs(value) <= double{std::numeric_limits<float>::max()}))
    refuse('"', name, "\" is ", json, ", which is beyond the range of float32");
  const DefaultRounding rounding;
  return computed(static_cast<float>(value));
}

int64_t JsonReader::integer(std::string_view name, int64_t lo, int64_t hi) {
  return integer(at(name), name, lo, hi);
}
double JsonReader::real(std::string_view name) { return real(at(name), name); }
float JsonReader::real32(std::string_view name) { return real32(at(name), name); }

bool JsonReader::boolean(std::string_view name) {
  const JsonValue json = at(name);
  const std::optional<bool> value = json.boolean();
  if (!value) refuse('"', name, "\" is ", json, ", expected true or false");
  return *value;
}

std::string JsonReader::text(std::string_view name) {
  const JsonValue json = at(name);
  const std::optional<std::string_view> value = json.text();
  if (!value) refuse('"', name, "\" is ", json, ", expected a string");
  return std::string(*value);
}

std::vector<JsonValue> JsonReader::list(std::string_view name, int64_t most) {
  const JsonValue json = at(name);
  if (!json.is_list()) refuse('"', name, "\" is ", json, ", expected a list");
  if (json.size() > most)
    refuse('"', name, "\" has ", json.size(), " entries, expected at most ", most);
  return json.entries();
}

std::vector<int64_t> JsonReader::integers(std::string_view name,
                                          int64_t most,
                                          int64_t lo,
                                          int64_t hi) {
  std::vector<int64_t> values;
  for (const JsonValue json : list(name, most)) values.push_back(integer(json, name, lo, hi));
  return values;
}

std::vector<double> JsonReader::reals(std::string_view name, int64_t most) {
  std::vector<double> values;
  for (const JsonValue json : list(name, most)) values.push_back(real(json, name));
  return values;
}

std::vector<float> JsonReader::reals32(std::string_view name, int64_t most) {
  std::vector<float> values;
  for (const JsonValue json : list(name, most)) values.push_back(real32(json, name));
  return values;
}

void JsonReader::finish() const {
  for (const auto& [name, value] : json_.members()) {
    if (read_.find(name) == read_.end())
      refuse("has an unknown member \"", start_of(name, kMostShown), '"');
  }
}

}  // namespace quantrain
