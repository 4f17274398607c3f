#include "framework/kernels/conv_band.hpp"

#include <algorithm>
#include <cstring>

namespace quantrain::kernels {

BandSource forward_source(const Conv2dShape& s, const float* x, int64_t g) {
  BandSource source{};
  source.x = x + g * s.group_c();
  source.h = s.h;
  source.w = s.w;
  source.pixel = s.c;
  source.channels = s.group_c();
  source.pad_h = s.pad_h;
  source.pad_w = s.pad_w;
  source.kh = s.kh;
  source.kw = s.kw;
  source.stride_h = s.stride_h;
  source.stride_w = s.stride_w;
  return source;
}

Band::Band(const BandSource& source, int64_t oh, int64_t ow, int64_t begin, int64_t end)
    : oh_(oh), image_(begin / oh), stride_h_(source.stride_h) {
  const bool whole_pixels = source.channels == source.pixel || source.kw == 1;
  const bool no_zeros =
      source.pad_h == 0 && source.pad_w == 0 && source.insert_h == 1 && source.insert_w == 1;
  if (whole_pixels && no_zeros) {
    row_step_ = source.w * source.pixel;
    pixel_step_ = source.stride_w * source.pixel;
    image_step_ = source.h * row_step_;
    first_ = source.x + image_ * image_step_;
    return;
  }
  row_step_ = ((ow - 1) * source.stride_w + source.kw) * source.channels;
  pixel_step_ = source.stride_w * source.channels;
  image_step_ = ((oh - 1) * source.stride_h + source.kh) * row_step_;
  skip_ = begin % oh * line_step();
  copy_ = Buffer<float>(offset(end - 1) + source.kh * row_step_);
  first_ = copy_.data();
  for (int64_t line = begin; line < end;) {
    const int64_t image = line / oh;
    const int64_t last = std::min(end, (image + 1) * oh) - 1;
    const int64_t rows = (last - line) * source.stride_h + source.kh;
    for (int64_t r = 0; r < rows; ++r) {
      copy_row(source,
               image,
               line % oh * source.stride_h + r,
               copy_.data() + offset(line) + r * row_step_);
    }
    line = last + 1;
  }
}

void Band::copy_row(const BandSource& s, int64_t image, int64_t row, float* to) const {
  const int64_t h = (row - s.pad_h) / s.insert_h;
  if (row < s.pad_h || h >= s.h || (row - s.pad_h) % s.insert_h != 0) {
    std::fill_n(to, row_step_, 0.0f);
    return;
  }
  const float* const from = s.x + (image * s.h + h) * s.w * s.pixel;
  const int64_t width = row_step_ / s.channels;
  if (s.insert_w == 1 && s.channels == s.pixel) {
    const int64_t left = std::clamp<int64_t>(s.pad_w, 0, width);
    const int64_t right = std::clamp(s.pad_w + s.w, left, width);
    std::fill_n(to, left * s.channels, 0.0f);
    if (right > left) {
      std::memcpy(to + left * s.channels,
                  from + (left - s.pad_w) * s.channels,
                  sizeof(float) * static_cast<size_t>((right - left) * s.channels));
    }
    std::fill_n(to + right * s.channels, (width - right) * s.channels, 0.0f);
    return;
  }
  for (int64_t j = 0; j < width; ++j, to += s.channels) {
    const int64_t w = (j - s.pad_w) / s.insert_w;
    if (j < s.pad_w || w >= s.w || (j - s.pad_w) % s.insert_w != 0) {
      std::fill_n(to, s.channels, 0.0f);
    } else {
      std::copy_n(from + w * s.pixel, s.channels, to);
    }
  }
}

}  // namespace quantrain::kernels
