#pragma once

#include "framework/autograd/ops/slice.hpp"
#include "framework/core/window.hpp"
#include "layers/module.hpp"

// Layers that move elements and compute no new values, so their outputs keep the input's scale
// and zero point.
namespace quantrain {

/// y[n, i, j, c] = x[n, floor(i / scale.h), floor(j / scale.w), c]: repeats each pixel. The scale
/// is {h, w}, or one number for both.
/// Shapes: x [N, H, W, C]  ->  y [N, H * scale.h, W * scale.w, C];
///         x [N, L, C] with scale {s, 1}  ->  y [N, L * s, C].
/// Source: PyTorch's Upsample with mode="nearest", for integer scales.
class Upsample : public Module {
 public:
  /// Throws: ShapeError if a scale is below 1 or not below 2^31.
  explicit Upsample(Size2d scale);
  static constexpr std::string_view kType = "Upsample";
  struct Members {
    Size2d scale;
    static void describe(auto& m, auto& member) { member("scale", m.scale); }
  };
  static Upsample from(const Members& m) { return Upsample(m.scale); }
  Members members() const { return {scale_}; }
  std::string_view type() const override { return kType; }

 protected:
  /// Throws: ShapeError like upsample_nearest().
  Tensor forward(const Tensor& x) override;

 private:
  Size2d scale_;
};

/// How many rows and columns of zeros to add on each side of an image.
struct Padding2d {
  int64_t left = 0;
  int64_t right = 0;
  int64_t top = 0;
  int64_t bottom = 0;
};

/// Pads images with zeros: ZeroPad2d{1}, or ZeroPad2d{{.right = 1, .bottom = 1}}. Before a 3 x 3
/// convolution with stride 2 on an image of even size, the second example gives the padding that
/// TensorFlow calls "same".
/// Shapes: x [N, H, W, C]  ->  y [N, top + H + bottom, left + W + right, C].
/// Source: PyTorch's ZeroPad2d.
class ZeroPad2d : public Module {
 public:
  /// Throws: ShapeError if a number is negative.
  explicit ZeroPad2d(const Padding2d& padding);
  explicit ZeroPad2d(int64_t all) : ZeroPad2d(Padding2d{all, all, all, all}) {}
  static constexpr std::string_view kType = "ZeroPad2d";
  struct Members {
    Padding2d padding;
    static void describe(auto& m, auto& member) {
      member("left", m.padding.left);
      member("right", m.padding.right);
      member("top", m.padding.top);
      member("bottom", m.padding.bottom);
    }
  };
  static ZeroPad2d from(const Members& m) { return ZeroPad2d(m.padding); }
  Members members() const { return {padding_}; }
  std::string_view type() const override { return kType; }

 protected:
  /// Throws: ShapeError if x is not [N, H, W, C], or if y would be too large.
  Tensor forward(const Tensor& x) override;

 private:
  Padding2d padding_;
};

/// Appends a channel of ones. A padded convolution after it then knows where the image ends: its
/// padding is 0 in this channel, too. In integers this is exact if 1 has a code, as in images of
/// bytes that stand for 0 to 1.   docs/quantization.md (23)
/// Shapes: x [N, ..., C]  ->  y [N, ..., C + 1].
class OnesChannel : public Module {
 public:
  static constexpr std::string_view kType = "OnesChannel";
  using Members = NoMembers;
  std::string_view type() const override { return kType; }

 protected:
  /// Throws: ShapeError if x has fewer than two axes, or if y would be too large.
  Tensor forward(const Tensor& x) override;
};

/// How many zeros to add before and after a signal.
struct Padding1d {
  int64_t left = 0;
  int64_t right = 0;
};

/// Pads signals with zeros: ZeroPad1d{2}, or ZeroPad1d{{.left = 3}}, which makes a convolution of
/// kernel 4 causal.
/// Shapes: x [N, L, C]  ->  y [N, left + L + right, C].
/// Source: PyTorch's ZeroPad1d.
class ZeroPad1d : public Module {
 public:
  /// Throws: ShapeError if a number is negative.
  explicit ZeroPad1d(const Padding1d& padding);
  explicit ZeroPad1d(int64_t both) : ZeroPad1d(Padding1d{both, both}) {}
  static constexpr std::string_view kType = "ZeroPad1d";
  struct Members {
    Padding1d padding;
    static void describe(auto& m, auto& member) {
      member("left", m.padding.left);
      member("right", m.padding.right);
    }
  };
  static ZeroPad1d from(const Members& m) { return ZeroPad1d(m.padding); }
  Members members() const { return {padding_}; }
  std::string_view type() const override { return kType; }

 protected:
  /// Throws: ShapeError if x is not [N, L, C], or if y would be too large.
  Tensor forward(const Tensor& x) override;

 private:
  Padding1d padding_;
};

/// Takes a part of an axis, for example Slice{1, {.begin = 2, .end = -1}}, or reverses the axis:
/// Slice{-1, {.step = -1}}. The shapes, and the meaning of begin, end and step, are those of
/// slice().
class Slice : public Module {
 public:
  /// Throws: ShapeError if the step is 0, or if axis is 0, the batch axis.
  explicit Slice(int axis, SliceOptions options);
  static constexpr std::string_view kType = "Slice";
  struct Members {
    int axis = 0;
    SliceOptions options;
    static void describe(auto& m, auto& member) {
      member("axis", m.axis);
      member("begin", m.options.begin);
      member("end", m.options.end);
      member("step", m.options.step);
    }
  };
  static Slice from(const Members& m) { return Slice(m.axis, m.options); }
  Members members() const { return {axis_, options_}; }
  std::string_view type() const override { return kType; }

 protected:
  /// Throws: ShapeError like slice(), or if a negative axis stands for the batch axis of x.
  Tensor forward(const Tensor& x) override;

 private:
  int axis_;
  SliceOptions options_;
};

}  // namespace quantrain
