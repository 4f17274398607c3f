#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/shape.hpp"

namespace quantrain {

enum class NpyType { kU8, kI8, kI16, kI32, kI64, kF32, kF64 };
/// NumPy's name: "u1", "i1", "i2", "i4", "i8", "f4" or "f8".
std::string_view name(NpyType type);
/// Bytes of one value.
int64_t size_of(NpyType type);

/// The content of a .npy file.
struct NpyArray {
  std::string path;  ///< path of the file, for messages
  Shape shape;
  NpyType type = NpyType::kF32;
  std::vector<uint8_t> bytes{};  ///< values, little-endian, row-major

  /// The values as float32. Integers and f8 are rounded to the nearest float32.
  /// Throws: DataError naming the position if a finite f8 is out of float32's range.
  std::vector<float> floats() const;
  /// The values as labels.   Throws: DataError if the type is not an integer, or a value does not
  /// fit in int32.
  std::vector<int32_t> labels() const;
  /// Moves the values of a u1 file out of the array.   Throws: DataError if they have another type.
  std::vector<uint8_t> take_bytes() &&;
};

/// Reads a .npy file of versions 1.0 to 3.0: u1, i1, i2, i4, i8, f4 or f8, little-endian, in C
/// order. The header has at most 64 KiB. The sizes in the header are checked against the file's
/// length before the values are allocated, and no more is read than the header says.
/// Throws: DataError naming path and numbers if the file is missing, truncated, too long or not a
/// .npy file, or if its array is big-endian, in Fortran order, structured or of another type (the
/// message says what to save instead), or has more axes than a Shape.
/// Source: NumPy's numpy.lib.format
NpyArray read_npy(const std::string& path);

}  // namespace quantrain
