#pragma once

#include "framework/core/window.hpp"
#include "layers/module.hpp"

// Pools that are described by the size of their output. Each is the ordinary pool whose kernel and
// stride are the input's size divided by the output's, so it deploys like that pool. PyTorch's
// layers of these names compute the same where the division has no remainder; otherwise their
// windows overlap and differ in size, and the layers below refuse the input.
namespace quantrain {

/// Mean of each window of H / out.h rows and W / out.w columns; {h, w}, or one number for both.
/// Shapes: x [N, H, W, C]  ->  y [N, out.h, out.w, C].
/// Source: PyTorch's AdaptiveAvgPool2d.
class AdaptiveAvgPool2d : public Module {
 public:
  /// Throws: ShapeError if a size is below 1.
  explicit AdaptiveAvgPool2d(Size2d out);
  static constexpr std::string_view kType = "AdaptiveAvgPool2d";
  struct Members {
    Size2d out;
    static void describe(auto& m, auto& member) { member("out", m.out); }
  };
  static AdaptiveAvgPool2d from(const Members& m) { return AdaptiveAvgPool2d(m.out); }
  Members members() const { return {out_}; }
  std::string_view type() const override { return kType; }

 protected:
  /// Throws: ShapeError if x is not [N, H, W, C], or if out does not divide H and W; the message
  /// names the nearest sizes that do. Otherwise like AvgPool2d::forward().
  Tensor forward(const Tensor& x) override;

 private:
  Size2d out_;
};

/// Largest element of each window of H / out.h rows and W / out.w columns.
/// Shapes: like AdaptiveAvgPool2d.
/// Source: PyTorch's AdaptiveMaxPool2d.
class AdaptiveMaxPool2d : public Module {
 public:
  /// Throws: ShapeError if a size is below 1.
  explicit AdaptiveMaxPool2d(Size2d out);
  static constexpr std::string_view kType = "AdaptiveMaxPool2d";
  struct Members {
    Size2d out;
    static void describe(auto& m, auto& member) { member("out", m.out); }
  };
  static AdaptiveMaxPool2d from(const Members& m) { return AdaptiveMaxPool2d(m.out); }
  Members members() const { return {out_}; }
  std::string_view type() const override { return kType; }

 protected:
  /// Throws: ShapeError like AdaptiveAvgPool2d::forward(); otherwise like MaxPool2d::forward().
  Tensor forward(const Tensor& x) override;

 private:
  Size2d out_;
};

/// Mean of each window of L / out elements.
/// Shapes: x [N, L, C]  ->  y [N, out, C].
/// Source: PyTorch's AdaptiveAvgPool1d.
class AdaptiveAvgPool1d : public Module {
 public:
  /// Throws: ShapeError if the size is below 1.
  explicit AdaptiveAvgPool1d(int64_t out);
  static constexpr std::string_view kType = "AdaptiveAvgPool1d";
  struct Members {
    int64_t out = 1;
    static void describe(auto& m, auto& member) { member("out", m.out); }
  };
  static AdaptiveAvgPool1d from(const Members& m) { return AdaptiveAvgPool1d(m.out); }
  Members members() const { return {out_}; }
  std::string_view type() const override { return kType; }

 protected:
  /// Throws: ShapeError if x is not [N, L, C], or if out does not divide L; the message names the
  /// nearest sizes that do. Otherwise like AvgPool1d::forward().
  Tensor forward(const Tensor& x) override;

 private:
  int64_t out_;
};

/// Largest element of each window of L / out elements.
/// Shapes: like AdaptiveAvgPool1d.
/// Source: PyTorch's AdaptiveMaxPool1d.
class AdaptiveMaxPool1d : public Module {
 public:
  /// Throws: ShapeError if the size is below 1.
  explicit AdaptiveMaxPool1d(int64_t out);
  static constexpr std::string_view kType = "AdaptiveMaxPool1d";
  struct Members {
    int64_t out = 1;
    static void describe(auto& m, auto& member) { member("out", m.out); }
  };
  static AdaptiveMaxPool1d from(const Members& m) { return AdaptiveMaxPool1d(m.out); }
  Members members() const { return {out_}; }
  std::string_view type() const override { return kType; }

 protected:
  /// Throws: ShapeError like AdaptiveAvgPool1d::forward(); otherwise like MaxPool1d::forward().
  Tensor forward(const Tensor& x) override;

 private:
  int64_t out_;
};

}  // namespace quantrain
