#pragma once

#include <cstdint>
#include <vector>

#include "framework/arithmetic/qparams.hpp"
#include "framework/autograd/ops/batch_norm.hpp"
#include "framework/autograd/tensor.hpp"
#include "framework/core/buffer.hpp"

// The forward pass of batch norms: statistics, and one pass over x. batch_norm.cpp checks the
// arguments and has the gradients.
namespace quantrain::detail {

using Channels = std::vector<float>;
/// Bit i: whether the gradient of element i passes; empty if all do.
using Mask = Buffer<uint8_t>;

/// Mean, population variance and range of each channel of a batch.
struct Moments {
  Channels mean;
  Channels variance;
  std::vector<Range> range{};  // empty if not wanted
};

/// Statistics that normalise a batch: y = (x - mean) * inverse_deviation * gamma + beta.
struct Statistics {
  Channels mean;
  Channels inverse_deviation;
};

inline int64_t values_per_channel(const Tensor& x) {
  return x.dim(-1) == 0 ? 0 : x.elements() / x.dim(-1);
}

struct Running {
  Tensor& mean;
  Tensor& variance;
};

/// The scales of the integer sums of x, if x holds those of a product, and its last axis is still
/// that of the product; else empty.
std::vector<double> scales_of_sums(const Tensor& x);

/// If `scale` is not empty, x holds integer sums, which first become floats.
Moments moments(const Tensor& x, const std::vector<double>& scale, bool with_range);

/// Normalising with these statistics gives the result of batch_norm(x / factor + shift), where x
/// has the given moments of n values. factor and shift may be undefined. Also updates the running
/// statistics.
Statistics batch_statistics(const Moments& x,
                            int64_t n,
                            const Tensor& factor,
                            const Tensor& shift,
                            Running running,
                            const BatchNormOptions& options);

Statistics running_statistics(const Tensor& mean,
                              const Tensor& variance,
                              const BatchNormOptions& options);

/// One pass over x: * scale + shift, then the activation, then perhaps the quantization.
class Pass {
 public:
  Pass(const Statistics& s,
       const Tensor& gamma,
       const Tensor& beta,
       const BatchNormOptions& options);

  /// Only the quantization reads the range of each column of x. in_place: nobody reads x again.
  /// Unless `mask` is null, it becomes the mask of the activation and the quantization.
  Tensor run(const Tensor& x, const std::vector<Range>& range, bool in_place, Mask* mask) const;

 private:
  int64_t columns() const { return std::ssize(scale_); }
  float bound() const;
  Range result_range(const std::vector<Range>& range) const;
  Tensor floats(const Tensor& x, bool in_place, uint8_t* mask) const;
  Tensor codes(const Tensor& x, const QParams& params, uint8_t* mask) const;

  const BatchNormOptions& options_;
  Channels scale_;
  Channels shift_;
};

}  // namespace quantrain::detail
