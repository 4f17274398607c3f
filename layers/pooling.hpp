#pragma once

#include "framework/autograd/ops/pool1d.hpp"
#include "framework/autograd/ops/pool2d.hpp"
#include "layers/module.hpp"

namespace quantrain {

/// Sizes in elements, {h, w} or one number for both. The last two are PyTorch's options; its
/// average pools have count_include_pad=True unless told otherwise.
struct PoolingOptions {
  Size2d stride = 0;   ///< 0: same as kernel, so that windows touch but do not overlap
  Size2d padding = 0;  ///< on both sides of each axis, less than the kernel
  /// The number of windows is rounded up. The last ones may reach beyond the padding, but start in
  /// the image or in the padding before it.
  bool ceil_mode = false;
  /// For average pools: the padding counts as zeros, so a mean divides by the elements of the
  /// window inside the padded image.
  bool count_include_pad = false;
};

/// The members of the pools with a kernel.
template <class Kernel, class Options>
struct PoolMembers {
  Kernel kernel{};
  Options options;
  static void describe(auto& m, auto& member) {
    member("kernel", m.kernel);
    member("stride", m.options.stride);
    member("padding", m.options.padding);
    member("ceil_mode", m.options.ceil_mode);
    member("count_include_pad", m.options.count_include_pad);
  }
};
using Pool2dMembers = PoolMembers<Size2d, PoolingOptions>;
inline Pool2dMembers pool2d_members(const Pool2dOptions& o) {
  return {o.kernel, {o.stride, o.padding, o.ceil_mode, o.count_include_pad}};
}

/// Largest element of each window; padding does not count.
/// Shapes: x [N, H, W, C]  ->  y [N, OH, OW, C],
///         OH = (H + 2 * padding.h - kernel.h) / stride.h + 1, OW likewise; with ceil_mode, see
///         pool_end().
/// Gradient: goes to the largest element of each window, the first among equals.
class MaxPool2d : public Module {
 public:
  /// Throws: ShapeError if the kernel is not positive, if the stride or padding is negative, if the
  /// padding is not less than the kernel, or if count_include_pad is set.
  explicit MaxPool2d(Size2d kernel, PoolingOptions options = {});
  static constexpr std::string_view kType = "MaxPool2d";
  using Members = Pool2dMembers;
  static MaxPool2d from(const Members& m) { return MaxPool2d(m.kernel, m.options); }
  Members members() const { return pool2d_members(options_); }
  std::string_view type() const override { return kType; }

 protected:
  /// Throws: ShapeError if x is not [N, H, W, C], if the padded x is smaller than the kernel, or if
  /// a window of more than 65,536 elements needs a gradient.
  Tensor forward(const Tensor& x) override;

 private:
  Pool2dOptions options_;
};

/// Mean of each window's elements; padding does not count, unless count_include_pad is set.
/// Shapes: like MaxPool2d.
class AvgPool2d : public Module {
 public:
  /// Throws: like MaxPool2d(), but takes count_include_pad.
  explicit AvgPool2d(Size2d kernel, PoolingOptions options = {});
  static constexpr std::string_view kType = "AvgPool2d";
  using Members = Pool2dMembers;
  static AvgPool2d from(const Members& m) { return AvgPool2d(m.kernel, m.options); }
  Members members() const { return pool2d_members(options_); }
  std::string_view type() const override { return kType; }

 protected:
  /// Throws: ShapeError if x is not [N, H, W, C], or if the padded x is smaller than the kernel;
  /// QuantError if a sum of codes could exceed 32 bits.
  Tensor forward(const Tensor& x) override;

 private:
  Pool2dOptions options_;
};

/// Largest element of each channel over the whole image.
/// Shapes: x [N, H, W, C]  ->  y [N, 1, 1, C].
class GlobalMaxPool2d : public Module {
 public:
  static constexpr std::string_view kType = "GlobalMaxPool2d";
  using Members = NoMembers;
  std::string_view type() const override { return kType; }

 protected:
  /// Throws: ShapeError if x is not [N, H, W, C] with H and W at least 1; otherwise like
  /// MaxPool2d::forward().
  Tensor forward(const Tensor& x) override;
};

/// Mean of each channel over the whole image.
/// Shapes: x [N, H, W, C]  ->  y [N, 1, 1, C].
class GlobalAvgPool2d : public Module {
 public:
  static constexpr std::string_view kType = "GlobalAvgPool2d";
  using Members = NoMembers;
  std::string_view type() const override { return kType; }

 protected:
  /// Throws: ShapeError if x is not [N, H, W, C] with H and W at least 1; otherwise like
  /// AvgPool2d::forward().
  Tensor forward(const Tensor& x) override;
};

/// Sizes in elements; ceil_mode and count_include_pad as in PoolingOptions.
struct Pooling1dOptions {
  int64_t stride = 0;   ///< 0: same as kernel, so that windows touch but do not overlap
  int64_t padding = 0;  ///< at each end, less than the kernel
  bool ceil_mode = false;
  bool count_include_pad = false;
};

using Pool1dMembers = PoolMembers<int64_t, Pooling1dOptions>;
inline Pool1dMembers pool1d_members(const Pool1dOptions& o) {
  return {o.kernel, {o.stride, o.padding, o.ceil_mode, o.count_include_pad}};
}

/// Largest element of each window; padding does not count.
/// Shapes: x [N, L, C]  ->  y [N, OL, C], OL = (L + 2 * padding - kernel) / stride + 1; with
///         ceil_mode, see pool_end().
/// Gradient: goes to the largest element of each window, the first among equals.
class MaxPool1d : public Module {
 public:
  /// Throws: ShapeError if the kernel is not positive, if the stride or padding is negative, if the
  /// padding is not less than the kernel, or if count_include_pad is set.
  explicit MaxPool1d(int64_t kernel, Pooling1dOptions options = {});
  static constexpr std::string_view kType = "MaxPool1d";
  using Members = Pool1dMembers;
  static MaxPool1d from(const Members& m) { return MaxPool1d(m.kernel, m.options); }
  Members members() const { return pool1d_members(options_); }
  std::string_view type() const override { return kType; }

 protected:
  /// Throws: ShapeError if x is not [N, L, C], if the padded x is smaller than the kernel, or if a
  /// window of more than 65,536 elements needs a gradient.
  Tensor forward(const Tensor& x) override;

 private:
  Pool1dOptions options_;
};

/// Mean of each window's elements; padding does not count, unless count_include_pad is set.
/// Shapes: like MaxPool1d.
class AvgPool1d : public Module {
 public:
  /// Throws: like MaxPool1d(), but takes count_include_pad.
  explicit AvgPool1d(int64_t kernel, Pooling1dOptions options = {});
  static constexpr std::string_view kType = "AvgPool1d";
  using Members = Pool1dMembers;
  static AvgPool1d from(const Members& m) { return AvgPool1d(m.kernel, m.options); }
  Members members() const { return pool1d_members(options_); }
  std::string_view type() const override { return kType; }

 protected:
  /// Throws: ShapeError if x is not [N, L, C], or if the padded x is smaller than the kernel;
  /// QuantError if a sum of codes could exceed 32 bits.
  Tensor forward(const Tensor& x) override;

 private:
  Pool1dOptions options_;
};

/// Largest element of each channel over the whole signal.
/// Shapes: x [N, L, C]  ->  y [N, 1, C].
class GlobalMaxPool1d : public Module {
 public:
  static constexpr std::string_view kType = "GlobalMaxPool1d";
  using Members = NoMembers;
  std::string_view type() const override { return kType; }

 protected:
  /// Throws: ShapeError if x is not [N, L, C] with L at least 1; otherwise like
  /// MaxPool1d::forward().
  Tensor forward(const Tensor& x) override;
};

/// Mean of each channel over the whole signal.
/// Shapes: x [N, L, C]  ->  y [N, 1, C].
class GlobalAvgPool1d : public Module {
 public:
  static constexpr std::string_view kType = "GlobalAvgPool1d";
  using Members = NoMembers;
  std::string_view type() const override { return kType; }

 protected:
  /// Throws: ShapeError if x is not [N, L, C] with L at least 1; otherwise like
  /// AvgPool1d::forward().
  Tensor forward(const Tensor& x) override;
};

}  // namespace quantrain
