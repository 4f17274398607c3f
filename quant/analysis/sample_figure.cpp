#include "quant/analysis/sample_figure.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "framework/io/html.hpp"

namespace quantrain::quant {
namespace {

constexpr int64_t kMostCurves = 6;
constexpr double kCurveWidth = 320.0;
constexpr double kCurveHeight = 100.0;

using Bytes = std::vector<uint8_t>;

void append_u32(Bytes& to, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) to.push_back(static_cast<uint8_t>(value >> shift));
}

uint32_t crc32(const Bytes& bytes, size_t from) {
  uint32_t crc = 0xffffffffu;
  for (size_t i = from; i < bytes.size(); ++i) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0xedb88320u & (0u - (crc & 1u)));
  }
  return ~crc;
}

void append_chunk(Bytes& png, const char* type, const Bytes& data) {
  append_u32(png, static_cast<uint32_t>(data.size()));
  const size_t begin = png.size();
  png.insert(png.end(), type, type + 4);
  png.insert(png.end(), data.begin(), data.end());
  append_u32(png, crc32(png, begin));
}

/// zlib's format with stored blocks: nothing is compressed, and nothing is linked for it.
Bytes stored(const Bytes& data) {
  Bytes result{0x78, 0x01};
  constexpr size_t kMost = 65535;
  uint32_t a = 1;
  uint32_t b = 0;
  for (const uint8_t byte : data) {
    a = (a + byte) % 65521;
    b = (b + a) % 65521;
  }
  for (size_t at = 0; at < data.size(); at += kMost) {
    const size_t size = std::min(kMost, data.size() - at);
    const auto length = static_cast<uint16_t>(size);
    const auto inverse = static_cast<uint16_t>(~length);
    result.push_back(at + size == data.size() ? 1 : 0);
    for (const uint16_t part : {length, inverse}) {
      result.push_back(static_cast<uint8_t>(part & 0xff));
      result.push_back(static_cast<uint8_t>(part >> 8));
    }
    const auto first = data.begin() + static_cast<int64_t>(at);
    result.insert(result.end(), first, first + static_cast<int64_t>(size));
  }
  append_u32(result, b << 16 | a);
  return result;
}

std::string base64(const Bytes& bytes) {
  constexpr const char* kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    for (size_t k = 0; k < 3; ++k) three = three << 8 | (i + k < bytes.size() ? bytes[i + k] : 0u);
    for (size_t k = 0; k < 4; ++k)
      text += i + k > bytes.size() ? '=' : kDigits[three >> (18 - 6 * k) & 63u];
  }
  return text;
}

struct Scaled {
  float low;
  float span;
  uint8_t operator()(float value) const {
    return static_cast<uint8_t>(255.0f * std::clamp((value - low) / span, 0.0f, 1.0f) + 0.5f);
  }
};

Scaled scaled(const std::vector<float>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {*low, *high > *low ? *high - *low : 1.0f};
}

std::string image(const SampleDiagnosis& sample) {
  const auto height = static_cast<uint32_t>(sample.shape[0]);
  const auto width = static_cast<uint32_t>(sample.shape[1]);
  const auto channels = static_cast<size_t>(sample.shape[2]);
  const Scaled byte = scaled(sample.input);
  Bytes pixels;
  for (size_t i = 0; i < sample.input.size(); ++i) {
    if (i % (width * channels) == 0) pixels.push_back(0);  // each row: no filter
    pixels.push_back(byte(sample.input[i]));
  }
  Bytes png{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  Bytes header;
  append_u32(header, width);
  append_u32(header, height);
  const uint8_t color = channels == 3 ? 2 : 0;
  for (const int part : {8, static_cast<int>(color), 0, 0, 0})
    header.push_back(static_cast<uint8_t>(part));
  append_chunk(png, "IHDR", header);
  append_chunk(png, "IDAT", stored(pixels));
  append_chunk(png, "IEND", {});
  return "<img alt=\"input\" src=\"data:image/png;base64," + base64(png) + "\">\n";
}

std::string curves(const SampleDiagnosis& sample) {
  const int64_t rank = sample.shape.rank();
  const int64_t columns = rank < 2 ? 1 : sample.shape[static_cast<int>(rank) - 1];
  const auto rows = static_cast<int64_t>(sample.input.size()) / columns;
  const Scaled byte = scaled(sample.input);
  std::string svg = "<svg viewBox=\"0 0 320 100\" role=\"img\">\n";
  for (int64_t c = 0; c < std::min(columns, kMostCurves); ++c) {
    svg += "<polyline points=\"";
    for (int64_t row = 0; row < rows; ++row) {
      const double x = kCurveWidth * static_cast<double>(row) /
                       static_cast<double>(std::max<int64_t>(1, rows - 1));
      const double y =
          kCurveHeight * (1.0 - byte(sample.input[static_cast<size_t>(row * columns + c)]) / 255.0);
      svg += html::number(x) + ',' + html::number(y) + ' ';
    }
    svg += "\"/>\n";
  }
  return svg + "</svg>\n";
}

}  // namespace

std::string sample_figure(const SampleDiagnosis& sample) {
  if (sample.input.empty()) return "";
  const Shape& shape = sample.shape;
  const bool is_image = shape.rank() == 3 && shape[1] > 1 && (shape[2] == 1 || shape[2] == 3);
  return is_image ? image(sample) : curves(sample);
}

}  // namespace quantrain::quant
