#pragma once

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace quantrain::test {

/// An IDX file of unsigned bytes in memory.
inline std::vector<uint8_t> idx(const std::vector<uint32_t>& extents,
                                const std::vector<uint8_t>& data) {
  std::vector<uint8_t> file{0, 0, 8, static_cast<uint8_t>(extents.size())};
  for (const uint32_t extent : extents) {
    for (const int shift : {24, 16, 8, 0}) file.push_back(static_cast<uint8_t>(extent >> shift));
  }
  std::copy(data.begin(), data.end(), std::back_inserter(file));
  return file;
}

inline std::vector<uint8_t> gzip(const std::vector<uint8_t>& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::vector<uint8_t> out(deflateBound(&stream, static_cast<uLong>(bytes.size())));
  stream.next_in = const_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// 0, 1, 2, ... modulo 251.
inline std::vector<uint8_t> counting(size_t n) {
  std::vector<uint8_t> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<uint8_t>(i % 251);
  return bytes;
}

}  // namespace quantrain::test
