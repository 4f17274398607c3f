#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/shape.hpp"

namespace quantrain {

enum class NpyType { kU8, kI8, kI16, kI32, kI64, kF32, kF64 };
/// "u1", "i1", "i2", "i4", "i8", "f4", "f8": numpy's names.
std::string_view name(NpyType type);
/// Bytes of one value.
int64_t size_of(NpyType type);

/// Contents of a .npy file.
struct NpyArray {
  std::string path;  ///< of the file, for messages
  Shape shape;
  NpyType type = NpyType::kF32;
  std::vector<uint8_t> bytes{};  ///< values, little-endian, row-major

  /// The values as float32: integers and f8 are rounded to the nearest.
  /// Throws: DataError naming the place if an f8 has no finite float32, and is finite itself.
  std::vector<float> floats() const;
  /// The values as labels.   Throws: DataError if the type is no integer, or one is not an int32.
  std::vector<int32_t> labels() const;
  /// The values of a u1 file, moved out.   Throws: DataError if they are of another type.
  std::vector<uint8_t> take_bytes() &&;
};

/// Reads a .npy file of versions 1.0 to 3.0: u1, i1, i2, i4, i8, f4 or f8, little-endian, in C
/// order. The header has at most 64 KiB. Sizes are compared with the file's length before anything
/// is allocated, and no more is read than they say.
/// Throws: DataError naming path and numbers if the file is missing, is no .npy, is big-endian, in
/// Fortran order or of another type (saying what to write instead), is truncated or too long.
/// Source: NumPy's numpy.lib.format
NpyArray read_npy(const std::string& path);

}  // namespace quantrain
