#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

namespace quantrain::test {

inline std::vector<uint8_t> deflated(const std::vector<uint8_t>& bytes) {
  uLongf size = compressBound(static_cast<uLong>(bytes.size()));
  std::vector<uint8_t> packed(size);
  compress(packed.data(), &size, bytes.data(), static_cast<uLong>(bytes.size()));
  packed.resize(size);
  return packed;
}

struct PngChunk {
  const char* type;
  std::vector<uint8_t> data;
};

/// A PNG file with unfiltered rows of samples. color: 0 gray, 2 color, 6 color with alpha. others:
/// more chunks, before the pixels.
inline std::vector<uint8_t> png(uint32_t height,
                                uint32_t width,
                                const std::vector<uint8_t>& samples,
                                int color,
                                int bits = 8,
                                const std::vector<PngChunk>& others = {}) {
  std::vector<uint8_t> file{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  const auto number = [](std::vector<uint8_t>& bytes, uint32_t value) {
    for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<uint8_t>(value >> shift));
  };
  const auto chunk = [&](const char* type, const std::vector<uint8_t>& data) {
    number(file, static_cast<uint32_t>(data.size()));
    const size_t begin = file.size();
    file.insert(file.end(), type, type + 4);
    file.insert(file.end(), data.begin(), data.end());
    const uLong crc = crc32(0, file.data() + begin, static_cast<uInt>(file.size() - begin));
    number(file, static_cast<uint32_t>(crc));
  };
  std::vector<uint8_t> header;
  number(header, width);
  number(header, height);
  for (const int byte : {bits, color, 0, 0, 0}) header.push_back(static_cast<uint8_t>(byte));
  chunk("IHDR", header);
  std::vector<uint8_t> rows;
  const size_t row = height == 0 ? 0 : samples.size() / height;
  for (size_t y = 0; row > 0 && y < height; ++y) {
    rows.push_back(0);  // no filter
    rows.insert(rows.end(),
                samples.begin() + static_cast<std::ptrdiff_t>(y * row),
                samples.begin() + static_cast<std::ptrdiff_t>((y + 1) * row));
  }
  for (const PngChunk& other : others) chunk(other.type, other.data);
  chunk("IDAT", deflated(rows));
  chunk("IEND", {});
  return file;
}

}  // namespace quantrain::test
