#pragma once

#include "framework/autograd/ops/slice.hpp"
#include "framework/core/window.hpp"
#include "layers/module.hpp"

// Layers whose elements move, and are not computed. They need no range of their own.
namespace quantrain {

/// Each pixel several times: scale {h, w}, or one number for both.
/// Shapes: x [N, H, W, C]  ->  y [N, H scale.h, W scale.w, C]; x [N, L, C] with scale {s, 1}  ->
/// y [N, L s, C].
/// Source: PyTorch's Upsample of mode nearest, with whole numbers.
class Upsample : public Module {
 public:
  /// Throws: ShapeError if a scale is below 1.
  explicit Upsample(Size2d scale);
  std::string_view type() const override { return "Upsample"; }

 protected:
  /// Throws: ShapeError as upsample_nearest().
  Tensor forward(const Tensor& x) override;

 private:
  Size2d scale_;
};

/// Rows and columns of zeros around an image, as many on each side.
struct Padding2d {
  int64_t left = 0;
  int64_t right = 0;
  int64_t top = 0;
  int64_t bottom = 0;
};

/// Zeros around images: ZeroPad2d{1}, or ZeroPad2d{{.right = 1, .bottom = 1}}. In front of a
/// convolution of stride 2 that is the padding which TensorFlow calls "same".
/// Shapes: x [N, H, W, C]  ->  y [N, top + H + bottom, left + W + right, C].
/// Source: PyTorch's ZeroPad2d.
class ZeroPad2d : public Module {
 public:
  /// Throws: ShapeError if a number is negative.
  explicit ZeroPad2d(const Padding2d& padding);
  explicit ZeroPad2d(int64_t all) : ZeroPad2d(Padding2d{all, all, all, all}) {}
  std::string_view type() const override { return "ZeroPad2d"; }

 protected:
  /// Throws: ShapeError if x is not [N, H, W, C], or grows too large.
  Tensor forward(const Tensor& x) override;

 private:
  Padding2d padding_;
};

/// A part of an axis: Slice{1, {.begin = 2, .end = -1}}, or Slice{-1, {.step = -1}} for its
/// reverse. Shapes and numbers: as slice().
class Slice : public Module {
 public:
  /// Throws: ShapeError if the step is 0, or the axis is the batch.
  explicit Slice(int axis, SliceOptions options);
  std::string_view type() const override { return "Slice"; }

 protected:
  /// Throws: ShapeError as slice(), or if the axis is the batch of x.
  Tensor forward(const Tensor& x) override;

 private:
  int axis_;
  SliceOptions options_;
};

}  // namespace quantrain
