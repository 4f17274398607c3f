#pragma once

#include <cstdint>

// Parameter structs of kernels: plain data, seen by files with -m flags too, so nothing of the standard library's code.
namespace quantrain::kernels {

/// One step of SGD over n elements: g = grad_scale * grad + weight_decay * w; v = momentum * v + g (v = g where
/// first_step); w -= learning_rate * (nesterov ? g + momentum * v : v). velocity may be null where momentum is 0.
struct SgdStep {
  float learning_rate, momentum, weight_decay, grad_scale;
  bool nesterov, first_step;
};
/// One step of Adam (decoupled: AdamW): correction1 = 1 - beta1^t, correction2 = 1 - beta2^t.
struct AdamStep {
  float learning_rate, beta1, beta2, epsilon, weight_decay, grad_scale, correction1, correction2;
  bool decoupled;
};

/// Pooling of images [h, w, c] to [oh, ow, c] by windows of kh x kw.
struct PoolShape {
  int64_t h, w, c, oh, ow, kh, kw, stride_h, stride_w, pad_h, pad_w;
};

}  // namespace quantrain::kernels
