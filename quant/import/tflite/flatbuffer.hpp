#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

// Reads flatbuffers that nobody trusts. Every offset and length is checked before it is used, and
// numbers are copied out byte by byte, so the file needs no alignment. Nothing is copied but
// numbers: tables, vectors and texts are views of the file's bytes, which must outlive them.
// Source: the FlatBuffers binary format (flatbuffers.dev, "Internals").
namespace quantrain::tflite {

class Flatbuffer;

/// A vector of numbers.
template <class T>
class Vector {
 public:
  Vector() = default;
  Vector(const uint8_t* data, int64_t size) : data_(data), size_(size) {}

  int64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  /// i must lie in [0, size()).
  T operator[](int64_t i) const {
    T value;
    std::memcpy(&value, data_ + i * int64_t{sizeof(T)}, sizeof(T));
    return value;
  }
  std::span<const uint8_t> bytes() const { return {data_, static_cast<size_t>(size_) * sizeof(T)}; }

 private:
  const uint8_t* data_ = nullptr;
  int64_t size_ = 0;
};

/// A table, whose fields are numbered from 0. In the table that is made by default, all fields are
/// missing. All functions throw DataError naming the file if it is damaged.
class Table {
 public:
  Table() = default;
  Table(const Flatbuffer& file, int64_t position);
  explicit operator bool() const { return file_ != nullptr; }

  /// The field's number, or `missing` if the table lacks the field.
  template <class T>
  T get(int field, T missing) const {
    const uint8_t* const at = find(field, sizeof(T));
    if (at == nullptr) return missing;
    T value;
    std::memcpy(&value, at, sizeof(T));
    return value;
  }
  /// The field's table, or one without fields if it is missing.
  Table table(int field) const;
  /// The field's vector or text, or an empty one if it is missing.
  template <class T>
  Vector<T> vector(int field) const {
    int64_t size = 0;
    const uint8_t* const data = find_vector(field, sizeof(T), &size);
    return {data, size};
  }
  std::string_view text(int field) const;
  /// Number of tables in the field's vector, and table i of them.
  int64_t tables(int field) const { return vector<uint32_t>(field).size(); }
  Table table(int field, int64_t i) const;

 private:
  /// Where the field's `size` bytes are, or null.
  const uint8_t* find(int field, int64_t size) const;
  const uint8_t* find_vector(int field, int64_t size, int64_t* count) const;

  const Flatbuffer* file_ = nullptr;
  int64_t position_ = 0, bytes_ = 0;
  int64_t fields_ = 0, field_count_ = 0;  ///< the list of the fields' offsets
};

/// The bytes of a file. `where` names the file in errors.
class Flatbuffer {
 public:
  /// Throws: DataError if the file does not begin as a flatbuffer with these four letters.
  Flatbuffer(std::span<const uint8_t> bytes, std::string_view letters, std::string_view where);

  Table root() const;
  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }
  std::string_view where() const { return where_; }
  /// Throws: DataError unless the file has `size` bytes from `position` on.
  const uint8_t* at(int64_t position, int64_t size) const;
  int64_t position(const uint8_t* at) const { return at - bytes_.data(); }
  template <class T>
  T number(int64_t position) const {
    T value;
    std::memcpy(&value, at(position, sizeof(T)), sizeof(T));
    return value;
  }

 private:
  std::span<const uint8_t> bytes_;
  std::string_view where_;
};

}  // namespace quantrain::tflite
