// arm_float_layers                  prints a line for each layer: name, multiply-adds, description
// arm_float_layers NAME PASS TIMES  computes a pass of a layer TIMES times: forward, data (the data
//                                   gradient) or weights (the weight gradient)
#include <cstdlib>
#include <iostream>
#include <string>

#include "framework/core/buffer.hpp"
#include "framework/core/splitmix64.hpp"
#include "framework/kernels/float/conv.hpp"
#include "tests/proofs/arm/layers.hpp"

namespace quantrain {
namespace {

// A batch as in training. The integer layers have one image, as on a device.
Conv2dShape batch(Conv2dShape s) {
  s.n = 8;
  return s;
}

Buffer<float> values(int64_t n, uint64_t stream) {
  Buffer<float> buffer(n);
  uint64_t state = SplitMix64::key(0, stream, 0);
  for (float& x : buffer) {
    const uint64_t bits = SplitMix64::mix(state += SplitMix64::kStep);
    x = static_cast<float>(bits % 2001) / 1000.0f - 1.0f;
  }
  return buffer;
}

int list() {
  for (const Layer& layer : kLayers) {
    const Conv2dShape s = batch(layer.shape);
    std::cout << layer.name << '\t' << s.y_elements() * s.reduction() << '\t' << layer.description
              << '\n';
  }
  return 0;
}

/// The products of a linear layer of s.n rows, as nodes compute them.
void compute_linear(const Conv2dShape& s, const std::string& pass, float* x, float* w, float* y) {
  const kernels::MatrixF32 rows{x, s.c, 1}, weights{w, s.c, 1}, grads{y, s.o, 1};
  if (pass == "forward") kernels::gemm_f32(s.n, s.o, s.c, rows, weights.transposed(), y, s.o);
  if (pass == "data") kernels::gemm_f32(s.n, s.c, s.o, grads, weights, x, s.c);
  if (pass == "weights") kernels::gemm_f32(s.o, s.c, s.n, grads.transposed(), rows, w, s.c);
}

int compute(const std::string& name, const std::string& pass, int64_t times) {
  for (const Layer& layer : kLayers) {
    if (name != layer.name) continue;
    const Conv2dShape s = batch(layer.shape);
    Buffer<float> x = values(s.x_elements(), 1);
    Buffer<float> w = values(s.weight_elements(), 2);
    Buffer<float> y = values(s.y_elements(), 3);
    if (pass != "forward" && pass != "data" && pass != "weights") {
      std::cerr << "arm_float_layers: no pass " << pass << '\n';
      return 2;
    }
    for (int64_t i = 0; i < times; ++i) {
      if (s.h * s.w == 1) {
        compute_linear(s, pass, x.data(), w.data(), y.data());
      } else if (pass == "forward") {
        kernels::conv2d_f32(s, x.data(), w.data(), y.data());
      } else if (pass == "data") {
        kernels::conv2d_backward_data_f32(s, y.data(), w.data(), x.data());
      } else {
        kernels::conv2d_backward_weights_f32(s, x.data(), y.data(), w.data());
      }
    }
    return 0;
  }
  std::cerr << "arm_float_layers: no layer " << name << '\n';
  return 2;
}

}  // namespace
}  // namespace quantrain

int main(int argc, char** argv) {
  if (argc == 1) return quantrain::list();
  if (argc == 4) return quantrain::compute(argv[1], argv[2], std::atoll(argv[3]));
  std::cerr << "usage: arm_float_layers [NAME forward|data|weights TIMES]\n";
  return 2;
}
