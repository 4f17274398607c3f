#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/core/shape.hpp"

namespace quantrain {

/// Contents of an IDX file of unsigned bytes.
struct IdxArray {
  Shape shape;
  std::vector<uint8_t> bytes;  ///< row-major
};

/// Reads an IDX file of unsigned bytes, plain or gzipped (told apart by its first bytes). Sizes are
/// compared with the file's length before anything is allocated, and no more is read than they say.
/// Throws: DataError naming path and numbers if the file is missing, of another type, truncated,
/// too long, claims absurd extents, or its compressed data are damaged.
/// Source: yann.lecun.com/exdb/mnist, "The IDX file format"; RFC 1952
IdxArray read_idx_u8(const std::string& path);

}  // namespace quantrain
