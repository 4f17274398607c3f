#include "layers/pooling.hpp"

#include "framework/autograd/ops/avg_pool2d.hpp"
#include "framework/autograd/ops/max_pool2d.hpp"
#include "framework/core/error.hpp"

namespace quantrain {
namespace {

void check(std::string_view type, Size2d kernel, const PoolingOptions& options) {
  const auto& [stride, padding] = options;
  if (kernel.h <= 0 || kernel.w <= 0) throw ShapeError(type, "kernel must be positive: ", kernel);
  if (stride.h < 0 || stride.w < 0) throw ShapeError(type, "stride is negative: ", stride);
  if (padding.h < 0 || padding.w < 0 || padding.h >= kernel.h || padding.w >= kernel.w) {
    throw ShapeError(
        type, "padding must be less than the kernel: padding ", padding, ", kernel ", kernel);
  }
}

}  // namespace

MaxPool2d::MaxPool2d(Size2d kernel, PoolingOptions options) : kernel_(kernel), options_(options) {
  check("MaxPool2d", kernel, options);
}

Tensor MaxPool2d::forward(const Tensor& x) {
  return max_pool2d(x, {kernel_, options_.stride, options_.padding});
}

AvgPool2d::AvgPool2d(Size2d kernel, PoolingOptions options) : kernel_(kernel), options_(options) {
  check("AvgPool2d", kernel, options);
}

Tensor AvgPool2d::forward(const Tensor& x) {
  return avg_pool2d(x, {kernel_, options_.stride, options_.padding});
}

Tensor GlobalAvgPool2d::forward(const Tensor& x) { return global_avg_pool2d(x); }

}  // namespace quantrain
