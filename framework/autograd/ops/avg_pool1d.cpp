#include "framework/autograd/ops/avg_pool1d.hpp"

namespace quantrain {

Tensor avg_pool1d(const Tensor& x, const Pool1dOptions& options) {
  const kernels::Conv2dShape s = pool1d_shape("avg_pool1d", x.shape(), options);
  return avg_pool({"avg_pool1d", "AvgPool1d", pool1d_attributes},
                  s,
                  {s.n, s.ow(), s.c},
                  x,
                  options.count_include_pad);
}

Tensor global_avg_pool1d(const Tensor& x) {
  return avg_pool1d(x, global_pool1d("global_avg_pool1d", x.shape()));
}

}  // namespace quantrain
