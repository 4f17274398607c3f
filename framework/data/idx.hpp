#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/core/shape.hpp"

namespace quantrain {

/// The content of an IDX file of unsigned bytes.
struct IdxArray {
  Shape shape;
  std::vector<uint8_t> bytes;  ///< row-major
};

/// Default limit for the unpacked size of a gzipped file: 256 MiB plus 16 times its packed size.
int64_t unpacked_limit(int64_t file_bytes);

/// Reads an IDX file of unsigned bytes, plain or gzipped (detected from its first bytes). The
/// header's sizes are compared with the file's length before the array is allocated, and no more is
/// stored than the header says. For a gzipped file, memory is allocated as its data arrive. The
/// array may have at most `limit` bytes. By default, a plain file has no limit. The default for a
/// gzipped file is unpacked_limit(), because a megabyte can unpack to a gigabyte.
/// Throws: DataError naming path and reason if the file is missing, of another type, truncated or
/// too long, its extents are invalid or exceed the limit, or its compressed data are damaged.
/// Source: yann.lecun.com/exdb/mnist, "The IDX file format"; RFC 1952
IdxArray read_idx_u8(const std::string& path, std::optional<int64_t> limit = {});

/// How much of a data set in IDX files is read.
struct IdxOptions {
  std::optional<int64_t> samples = {};    ///< only the first samples; none: all
  std::optional<int64_t> max_bytes = {};  ///< memory limit for each file, as in read_idx_u8()
};

}  // namespace quantrain
