#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/core/shape.hpp"

namespace quantrain {

/// Element types of a file. quantrain stores all but kF16 and kBF16, which only weights from
/// elsewhere have: framework/io/half.hpp reads them.
enum class DType { kF64, kF32, kF16, kBF16, kI64, kI32, kI8, kU8 };

/// The format's name of a type, for example "F32".
std::string_view dtype_name(DType dtype);
int64_t dtype_size(DType dtype);

namespace detail {
template <class T>
struct DTypeOf;
template <>
struct DTypeOf<double> {
  static constexpr DType kValue = DType::kF64;
};
template <>
struct DTypeOf<float> {
  static constexpr DType kValue = DType::kF32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType kValue = DType::kI64;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType kValue = DType::kI32;
};
template <>
struct DTypeOf<int8_t> {
  static constexpr DType kValue = DType::kI8;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType kValue = DType::kU8;
};
}  // namespace detail

/// The content of a safetensors file: named strings (metadata) and named dense arrays.
/// Source: github.com/huggingface/safetensors, section "Format"
class TensorFile {
 public:
  struct Entry {
    std::string name;
    DType dtype;
    Shape shape;
    std::vector<uint8_t> bytes;  ///< row-major, little endian
  };

  std::map<std::string, std::string> metadata;

  const std::vector<Entry>& entries() const& { return entries_; }
  std::vector<Entry> entries() && { return std::move(entries_); }
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  /// Throws: DataError if no entry has this name.
  const Entry& at(std::string_view name) const&;
  Entry at(std::string_view name) && { return at(name); }
  /// Throws: DataError if the name is missing.
  const std::string& metadata_at(const std::string& name) const&;
  std::string metadata_at(const std::string& name) && { return metadata_at(name); }

  /// Throws: DataError if another entry has this name, the name is reserved or longer than 16384
  /// bytes, or the number of bytes does not match the shape and type.
  void add(Entry entry);

  /// T: double, float, int64_t, int32_t, int8_t or uint8_t.
  template <class T>
  void add(std::string name, const Shape& shape, std::span<const T> values) {
    const auto* first = reinterpret_cast<const uint8_t*>(values.data());
    add({std::move(name), detail::DTypeOf<T>::kValue, shape, {first, first + values.size_bytes()}});
  }

  /// The elements of an entry. Throws: DataError if the entry is missing or T is not its type.
  template <class T>
  std::vector<T> values(std::string_view name) const {
    const Entry& entry = at(name, detail::DTypeOf<T>::kValue);
    std::vector<T> values(entry.bytes.size() / sizeof(T));
    std::copy(entry.bytes.begin(), entry.bytes.end(), reinterpret_cast<uint8_t*>(values.data()));
    return values;
  }

 private:
  const Entry* find(std::string_view name) const;
  const Entry& at(std::string_view name, DType dtype) const&;

  std::vector<Entry> entries_;
  std::map<std::string, size_t, std::less<>> index_;
};

/// Writes a safetensors file completely or not at all (see write_file). The same content gives the
/// same bytes.
/// Throws: DataError if a name or string is not UTF-8, the header is too long or has more than 2^20
/// values and keys, or the file cannot be written.
void save_safetensors(const std::string& path, const TensorFile& file);
/// Reads a safetensors file. The file is untrusted: every length is checked before it is used, and
/// the header must account for every byte before any data are read.
/// Throws: DataError naming the path, the fault and the numbers, if the file is missing, truncated
/// or too long, its header is invalid, or the ranges of its entries overlap, leave a hole or do not
/// fit their shapes.
TensorFile load_safetensors(const std::string& path);
/// The same for the bytes of a whole file in memory, for example from firmware or a network.
/// Throws: DataError like load_safetensors, naming `where` instead of a path.
TensorFile parse_safetensors(std::span<const uint8_t> bytes, std::string_view where);

}  // namespace quantrain
