#include "layers/adaptive_pooling.hpp"

#include <algorithm>

#include "framework/autograd/ops/avg_pool1d.hpp"
#include "framework/autograd/ops/avg_pool2d.hpp"
#include "framework/autograd/ops/max_pool1d.hpp"
#include "framework/autograd/ops/max_pool2d.hpp"
#include "framework/core/error.hpp"

namespace quantrain {
namespace {

void check_sizes(std::string_view where, Size2d out) {
  if (std::min(out.h, out.w) < 1)
    throw ShapeError(where, "the output's size is ", out, ": it must be at least 1");
}

/// extent / out.   Throws: ShapeError naming `where` unless out divides the extent.
int64_t window(const std::string& where, const Shape& x, int axis, int64_t out) {
  const int64_t extent = x[axis];
  if (extent < 1) throw ShapeError(where, "axis ", axis, " has no elements: x ", x);
  if (extent % out == 0) return extent / out;
  int64_t below = std::min(out, extent), above = std::min(out, extent);
  while (below > 1 && extent % below != 0) --below;
  while (above < extent && extent % above != 0) ++above;
  const auto refuse = [&](const auto&... nearest) {
    throw ShapeError(where,
                     "axis ",
                     axis,
                     " has ",
                     extent,
                     " elements, which ",
                     out,
                     " windows of one size do not cover: the nearest size is ",
                     nearest...,
                     "; x ",
                     x);
  };
  if (below == above) refuse(below);
  refuse(below, " or ", above);
  return 0;
}

Pool2dOptions options2d(const std::string& where, const Tensor& x, Size2d out) {
  if (x.rank() != 4) throw ShapeError(where, "x is not [N, H, W, C]: x ", x.shape());
  return {.kernel = {window(where, x.shape(), 1, out.h), window(where, x.shape(), 2, out.w)}};
}

Pool1dOptions options1d(const std::string& where, const Tensor& x, int64_t out) {
  if (x.rank() != 3) throw ShapeError(where, "x is not [N, L, C]: x ", x.shape());
  return {.kernel = window(where, x.shape(), 1, out)};
}

}  // namespace

AdaptiveAvgPool2d::AdaptiveAvgPool2d(Size2d out) : out_(out) {
  check_sizes("AdaptiveAvgPool2d", out);
}

Tensor AdaptiveAvgPool2d::forward(const Tensor& x) {
  return avg_pool2d(x, options2d(where(), x, out_));
}

AdaptiveMaxPool2d::AdaptiveMaxPool2d(Size2d out) : out_(out) {
  check_sizes("AdaptiveMaxPool2d", out);
}

Tensor AdaptiveMaxPool2d::forward(const Tensor& x) {
  return max_pool2d(x, options2d(where(), x, out_));
}

AdaptiveAvgPool1d::AdaptiveAvgPool1d(int64_t out) : out_(out) {
  check_sizes("AdaptiveAvgPool1d", out);
}

Tensor AdaptiveAvgPool1d::forward(const Tensor& x) {
  return avg_pool1d(x, options1d(where(), x, out_));
}

AdaptiveMaxPool1d::AdaptiveMaxPool1d(int64_t out) : out_(out) {
  check_sizes("AdaptiveMaxPool1d", out);
}

Tensor AdaptiveMaxPool1d::forward(const Tensor& x) {
  return max_pool1d(x, options1d(where(), x, out_));
}

}  // namespace quantrain
