#include "layers/pooling.hpp"

#include "framework/autograd/ops/avg_pool2d.hpp"
#include "framework/autograd/ops/max_pool2d.hpp"

namespace quantrain {
MaxPool2d::MaxPool2d(Size2d kernel, PoolingOptions options)
    : options_{kernel, options.stride, options.padding} {
  pool2d_window("MaxPool2d", options_);
}

Tensor MaxPool2d::forward(const Tensor& x) { return max_pool2d(x, options_); }

AvgPool2d::AvgPool2d(Size2d kernel, PoolingOptions options)
    : options_{kernel, options.stride, options.padding} {
  pool2d_window("AvgPool2d", options_);
}

Tensor AvgPool2d::forward(const Tensor& x) { return avg_pool2d(x, options_); }

Tensor GlobalMaxPool2d::forward(const Tensor& x) { return global_max_pool2d(x); }

Tensor GlobalAvgPool2d::forward(const Tensor& x) { return global_avg_pool2d(x); }

}  // namespace quantrain
