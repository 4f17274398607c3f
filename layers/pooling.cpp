#include "layers/pooling.hpp"

#include "framework/autograd/ops/avg_pool1d.hpp"
#include "framework/autograd/ops/avg_pool2d.hpp"
#include "framework/autograd/ops/max_pool1d.hpp"
#include "framework/autograd/ops/max_pool2d.hpp"

namespace quantrain {

MaxPool2d::MaxPool2d(Size2d kernel, PoolingOptions options)
    : options_{
          kernel, options.stride, options.padding, options.ceil_mode, options.count_include_pad} {
  refuse_count_include_pad("MaxPool2d", options.count_include_pad);
  pool2d_window("MaxPool2d", options_);
}

Tensor MaxPool2d::forward(const Tensor& x) { return max_pool2d(x, options_); }

AvgPool2d::AvgPool2d(Size2d kernel, PoolingOptions options)
    : options_{
          kernel, options.stride, options.padding, options.ceil_mode, options.count_include_pad} {
  pool2d_window("AvgPool2d", options_);
}

Tensor AvgPool2d::forward(const Tensor& x) { return avg_pool2d(x, options_); }

Tensor GlobalMaxPool2d::forward(const Tensor& x) { return global_max_pool2d(x); }

Tensor GlobalAvgPool2d::forward(const Tensor& x) { return global_avg_pool2d(x); }

MaxPool1d::MaxPool1d(int64_t kernel, Pooling1dOptions options)
    : options_{
          kernel, options.stride, options.padding, options.ceil_mode, options.count_include_pad} {
  refuse_count_include_pad("MaxPool1d", options.count_include_pad);
  pool1d_window("MaxPool1d", options_);
}

Tensor MaxPool1d::forward(const Tensor& x) { return max_pool1d(x, options_); }

AvgPool1d::AvgPool1d(int64_t kernel, Pooling1dOptions options)
    : options_{
          kernel, options.stride, options.padding, options.ceil_mode, options.count_include_pad} {
  pool1d_window("AvgPool1d", options_);
}

Tensor AvgPool1d::forward(const Tensor& x) { return avg_pool1d(x, options_); }

Tensor GlobalMaxPool1d::forward(const Tensor& x) { return global_max_pool1d(x); }

Tensor GlobalAvgPool1d::forward(const Tensor& x) { return global_avg_pool1d(x); }

}  // namespace quantrain
