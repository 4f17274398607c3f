#include "framework/autograd/ops/max_pool1d.hpp"

namespace quantrain {

Tensor max_pool1d(const Tensor& x, const Pool1dOptions& options) {
  refuse_count_include_pad("max_pool1d", options.count_include_pad);
  const kernels::Conv2dShape s = pool1d_shape("max_pool1d", x.shape(), options);
  return max_pool({"max_pool1d", "MaxPool1d", pool1d_attributes}, s, {s.n, s.ow(), s.c}, x);
}

Tensor global_max_pool1d(const Tensor& x) {
  return max_pool1d(x, global_pool1d("global_max_pool1d", x.shape()));
}

}  // namespace quantrain
