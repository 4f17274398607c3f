#include "framework/data/npy.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "framework/core/rounding.hpp"

namespace quantrain {
namespace {

static_assert(std::endian::native == std::endian::little, "bytes of the file are used as values");

constexpr const char* kNpy = "npy";
constexpr int64_t kMostHeader = int64_t{64} << 10;

struct TypeName {
  NpyType type;
  std::string_view name;
};
constexpr TypeName kTypes[] = {{NpyType::kU8, "u1"},
                               {NpyType::kI8, "i1"},
                               {NpyType::kI16, "i2"},
                               {NpyType::kI32, "i4"},
                               {NpyType::kI64, "i8"},
                               {NpyType::kF32, "f4"},
                               {NpyType::kF64, "f8"}};

/// Parses the header: a Python dictionary of three entries in any order, in the form that NumPy
/// writes.
class Header {
 public:
  Header(const std::string& path, std::string_view text) : path_(path), text_(text) { parse(); }

  std::string_view descr;
  bool fortran_order = false;
  Shape shape;

 private:
  [[noreturn]] void fail(std::string_view what) const {
    // The start of the remaining text, with ? in place of unprintable characters.
    std::string seen(text_.substr(std::min(at_, text_.size()), 20));
    std::replace_if(
        seen.begin(), seen.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    throw DataError(
        kNpy, path_, ": header: expected ", what, " at character ", at_, ", found \"", seen, '"');
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c, std::string_view what) {
    if (!accept(c)) fail(what);
  }
  bool accept(std::string_view word) {
    skip_space();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  std::string_view quoted() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : ' ';
    if (quote != '\'' && quote != '"') fail("a quoted name");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("the end of a name");
    const std::string_view name = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return name;
  }
  Shape tuple() {
    expect('(', "(");
    std::vector<int64_t> extents;
    while (!accept(')')) {
      skip_space();
      int64_t extent = 0;
      const char* const begin = text_.data() + at_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), extent);
      if (error != std::errc() || extent < 0) fail("an extent of the shape");
      at_ += static_cast<size_t>(end - begin);
      if (extents.size() == Shape::kMaxRank)
        throw DataError(kNpy, path_, ": more than ", Shape::kMaxRank, " axes");
      extents.push_back(extent);
      if (accept(')')) break;
      expect(',', ", or )");
    }
    try {
      return Shape(extents);
    } catch (const ShapeError& error) {
      throw DataError(kNpy, path_, ": ", error.what());
    }
  }
  void parse() {
    bool seen[3] = {};
    expect('{', "{");
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':', ":");
      const auto once = [&](int i) {
        if (seen[i]) throw DataError(kNpy, path_, ": header: \"", key, "\" occurs twice");
        seen[i] = true;
      };
      if (key == "descr") {
        once(0);
        if (accept('[')) {
          throw DataError(
              kNpy, path_, ": is a structured array: save each field as an array of its own");
        }
        descr = quoted();
      } else if (key == "fortran_order") {
        once(1);
        fortran_order = accept("True");
        if (!fortran_order && !accept("False")) fail("True or False");
      } else if (key == "shape") {
        once(2);
        shape = tuple();
      } else {
        throw DataError(kNpy, path_, ": header: unknown entry \"", key, '"');
      }
      if (accept('}')) break;
      expect(',', ", or }");
    }
    skip_space();
    if (at_ != text_.size()) fail("nothing more");
    const char* const names[] = {"descr", "fortran_order", "shape"};
    for (int i = 0; i < 3; ++i) {
      if (!seen[i]) throw DataError(kNpy, path_, ": header: lacks \"", names[i], '"');
    }
  }

  const std::string& path_;
  std::string_view text_;
  size_t at_ = 0;
};

NpyType type_of(const std::string& path, std::string_view descr) {
  const char order = descr.empty() ? ' ' : descr[0];
  const std::string_view kind = descr.substr(std::min<size_t>(1, descr.size()));
  const bool is_byte = kind == "u1" || kind == "i1";
  for (const TypeName& type : kTypes) {
    if (type.name != kind) continue;
    if (order == '<' || (is_byte && (order == '|' || order == '=' || order == '>')))
      return type.type;
    if (order == '>') {
      throw DataError(
          kNpy, path, ": is big-endian (", descr, "): save array.astype(\"<", kind, "\") instead");
    }
  }
  throw DataError(kNpy,
                  path,
                  ": values of type \"",
                  descr,
                  "\", expected u1, i1, i2, i4, i8, f4 or f8, little-endian: save "
                  "array.astype(\"<f4\") instead");
}

template <class T, class F>
void for_each(const NpyArray& array, const F& f) {
  const size_t n = array.bytes.size() / sizeof(T);
  for (size_t i = 0; i < n; ++i) {
    T value;
    std::memcpy(&value, array.bytes.data() + i * sizeof(T), sizeof(T));
    f(i, value);
  }
}

/// Calls f(i, value) for all values, in their own type.
template <class F>
void visit(const NpyArray& array, const F& f) {
  switch (array.type) {
    case NpyType::kU8: return for_each<uint8_t>(array, f);
    case NpyType::kI8: return for_each<int8_t>(array, f);
    case NpyType::kI16: return for_each<int16_t>(array, f);
    case NpyType::kI32: return for_each<int32_t>(array, f);
    case NpyType::kI64: return for_each<int64_t>(array, f);
    case NpyType::kF32: return for_each<float>(array, f);
    case NpyType::kF64: return for_each<double>(array, f);
  }
}

}  // namespace

std::string_view name(NpyType type) { return kTypes[static_cast<size_t>(type)].name; }

int64_t size_of(NpyType type) { return name(type)[1] - '0'; }

std::vector<float> NpyArray::floats() const {
  const DefaultRounding rounding;
  std::vector<float> values(bytes.size() / static_cast<size_t>(size_of(type)));
  visit(*this, [&](size_t i, auto value) {
    // The conversion of a value outside of float's range is undefined behaviour.
    if constexpr (std::is_same_v<decltype(value), double>) {
      if (std::isfinite(value) && std::abs(value) > double{std::numeric_limits<float>::max()}) {
        throw DataError(
            kNpy, path, ": value ", value, " at ", i, " is beyond what a float32 can hold");
      }
    }
    values[i] = static_cast<float>(value);
  });
  return values;
}

std::vector<int32_t> NpyArray::labels() const {
  if (type == NpyType::kF32 || type == NpyType::kF64) {
    throw DataError(kNpy,
                    path,
                    ": labels are of type ",
                    name(type),
                    ", expected integers: save array.astype(\"<i4\") instead");
  }
  std::vector<int32_t> values(bytes.size() / static_cast<size_t>(size_of(type)));
  visit(*this, [&](size_t i, auto value) {
    if constexpr (std::is_same_v<decltype(value), int64_t>) {
      if (value < std::numeric_limits<int32_t>::min() ||
          value > std::numeric_limits<int32_t>::max())
        throw DataError(kNpy, path, ": label ", value, " at ", i, " is not a 32-bit integer");
    }
    values[i] = static_cast<int32_t>(value);
  });
  return values;
}

std::vector<uint8_t> NpyArray::take_bytes() && {
  if (type == NpyType::kU8) return std::move(bytes);
  throw DataError(
      kNpy, path, ": values are of type ", name(type), ", expected bytes (u1): use floats()");
}

NpyArray read_npy(const std::string& path) {
  InputFile file(path);
  uint8_t start[8];
  constexpr uint8_t kMagic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
  const size_t got = file.read(start);
  if (got < sizeof start)
    throw DataError(kNpy, path, ": truncated: ", got, " bytes, too short for any header");
  if (!std::equal(std::begin(kMagic), std::end(kMagic), start))
    throw DataError(kNpy, path, ": does not begin as a .npy file does; an .npz must be unpacked");
  const int version = start[6];
  if (version < 1 || version > 3 || start[7] != 0) {
    throw DataError(
        kNpy, path, ": is of version ", version, '.', int{start[7]}, ", expected 1.0 to 3.0");
  }
  uint8_t length[4] = {};
  const std::span<uint8_t> length_bytes(length, version == 1 ? 2 : 4);
  if (file.read(length_bytes) < length_bytes.size())
    throw DataError(kNpy, path, ": truncated in the length of its header");
  const int64_t header_size = int64_t{length[0]} | int64_t{length[1]} << 8 |
                              int64_t{length[2]} << 16 | int64_t{length[3]} << 24;
  if (header_size > kMostHeader || header_size > file.left()) {
    throw DataError(kNpy,
                    path,
                    ": the header claims ",
                    header_size,
                    " bytes: ",
                    file.left(),
                    " follow, and the limit is ",
                    kMostHeader);
  }
  std::string text(static_cast<size_t>(header_size), '\0');
  const std::span<uint8_t> text_bytes(reinterpret_cast<uint8_t*>(text.data()), text.size());
  if (file.read(text_bytes) < text.size()) throw DataError(kNpy, path, ": truncated in its header");
  const Header header(path, text);

  NpyArray array{.path = path, .shape = header.shape, .type = type_of(path, header.descr)};
  // With one axis, Fortran order and C order are the same.
  if (header.fortran_order && header.shape.rank() > 1) {
    throw DataError(
        kNpy, path, ": is in Fortran order: save numpy.ascontiguousarray(array) instead");
  }
  const int64_t elements = header.shape.elements();
  const int64_t size = size_of(array.type);
  if (elements > file.left() / size || elements * size != file.left()) {
    const bool is_short = elements > file.left() / size;
    throw DataError(kNpy,
                    path,
                    is_short ? ": truncated: shape " : ": too long: shape ",
                    header.shape,
                    " of ",
                    name(array.type),
                    " needs ",
                    size,
                    " bytes for each of ",
                    elements,
                    " values, but ",
                    file.left(),
                    " bytes follow");
  }
  array.bytes.resize(static_cast<size_t>(elements * size));
  const size_t read = file.read(array.bytes);
  if (read < array.bytes.size()) {
    throw DataError(
        kNpy, path, ": truncated while it was read: ", read, " of ", array.bytes.size(), " bytes");
  }
  return array;
}

}  // namespace quantrain
