#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/core/shape.hpp"

namespace quantrain {

/// Contents of an IDX file of unsigned bytes.
struct IdxArray {
  Shape shape;
  std::vector<uint8_t> bytes;  ///< row-major
};

/// What a gzipped file may unpack to unless the caller says: 256 MiB, and 16 times its own bytes.
int64_t unpacked_limit(int64_t file_bytes);

/// Reads an IDX file of unsigned bytes, plain or gzipped (told apart by its first bytes). Sizes are
/// compared with the file's length before anything is allocated, and no more is read than they say.
/// Of a gzipped file, memory is taken as its data arrive, for limit bytes at most, by default those
/// of unpacked_limit(): a megabyte can unpack to a gigabyte.
/// Throws: DataError naming path and numbers if the file is missing, of another type, truncated,
/// too long, claims absurd extents or more than the limit, or its compressed data are damaged.
/// Source: yann.lecun.com/exdb/mnist, "The IDX file format"; RFC 1952
IdxArray read_idx_u8(const std::string& path, std::optional<int64_t> limit = {});

}  // namespace quantrain
