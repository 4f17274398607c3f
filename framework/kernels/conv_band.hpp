#pragma once

#include "framework/core/buffer.hpp"
#include "framework/kernels/conv.hpp"

namespace quantrain::kernels {

/// Images [h, w] of pixels of `channels` values, `pixel` values apart, as the windows of a
/// convolution see them: with zeros around them (pad may be negative: then it cuts off) and insert
/// - 1 zeros between neighbours.
struct BandSource {
  const float* x = nullptr;
  int64_t h = 0, w = 0, pixel = 0, channels = 0;
  int64_t insert_h = 1, insert_w = 1, pad_h = 0, pad_w = 0;
  int64_t kh = 1, kw = 1, stride_h = 1, stride_w = 1;
};

/// Group g of the input of a convolution.
BandSource forward_source(const Conv2dShape& s, const float* x, int64_t g);

/// What the windows of output lines [begin, end) see, lines counted over all images, ow windows to
/// a line: in place where it can be, else a copy.
class Band {
 public:
  Band(const BandSource& source, int64_t oh, int64_t ow, int64_t begin, int64_t end);

  /// First element of the first window of a line.
  const float* line(int64_t i) const { return first_ + offset(i); }
  /// Elements from a row of a window to the next.
  int64_t row_step() const { return row_step_; }
  /// Elements from a window to the next of the line.
  int64_t pixel_step() const { return pixel_step_; }
  /// Elements from a line to the next of the image.
  int64_t line_step() const { return stride_h_ * row_step_; }

 private:
  int64_t offset(int64_t line) const {
    return (line / oh_ - image_) * image_step_ + line % oh_ * line_step() - skip_;
  }
  void copy_row(const BandSource& source, int64_t image, int64_t row, float* to) const;

  int64_t oh_;
  int64_t image_;  // of the first line
  int64_t stride_h_;
  int64_t row_step_ = 0;
  int64_t pixel_step_ = 0;
  int64_t image_step_ = 0;  // elements from an image to the next
  int64_t skip_ = 0;        // elements of the first image that a copy leaves out
  const float* first_ = nullptr;
  Buffer<float> copy_;
};

}  // namespace quantrain::kernels
