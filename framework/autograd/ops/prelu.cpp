#include "framework/autograd/ops/prelu.hpp"

#include <vector>

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/code_function.hpp"
#include "framework/core/buffer.hpp"
#include "framework/core/error.hpp"
#include "framework/kernels/float/columns.hpp"
#include "framework/kernels/float/grain.hpp"

namespace quantrain {
namespace {

/// Calls f(i, c) for each element i and its channel c. Channels are the last axis.
template <class F>
void for_each_element(int64_t n, int64_t channels, const F& f) {
  parallel_for(n / channels,
               kernels::row_grain(channels, kernels::kSlowGrain),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin * channels; i < end * channels; i += channels) {
                   for (int64_t c = 0; c < channels; ++c) f(i + c, c);
                 }
               });
}

class PreluNode : public Node {
 public:
  std::string_view type() const override { return "prelu"; }
  QuantizationTraits traits() const override {
    return {.closes_range = true, .takes_constants = true, .takes_data = false, .layer = "PReLU"};
  }

  void refuse_integers(const std::string& layer) const override {
    throw GraphError(layer,
                     "slopes ",
                     input(1).shape(),
                     " that depend on the network's input have no integer form: use the layer "
                     "PReLU, where the slopes are a parameter");
  }

  std::vector<Tensor> backward(Tensor grad_y) override {
    const Floats x = input(0).floats();
    const Floats slope = input(1).floats();
    const Floats grad = grad_y.floats();
    const int64_t n = grad_y.elements();
    const int64_t channels = input(1).elements();
    std::vector<Tensor> grads(2);
    if (needs_grad(0)) {
      grads[0] = Tensor::empty(grad_y.shape());
      float* const out = grads[0].mutable_data();
      for_each_element(n, channels, [&](int64_t i, int64_t c) {
        out[i] = x[i] > 0.0f ? grad[i] : grad[i] * slope[c];
      });
    }
    if (needs_grad(1)) {
      Buffer<float> terms(n);
      for_each_element(
          n, channels, [&](int64_t i, int64_t) { terms[i] = x[i] > 0.0f ? 0.0f : grad[i] * x[i]; });
      grads[1] = Tensor::empty(input(1).shape());
      kernels::sum_rows_f32(n / channels, channels, terms.data(), grads[1].mutable_data());
    }
    return grads;
  }
};

}  // namespace

Tensor prelu(const Tensor& x, const Tensor& slope) {
  const bool one = slope.rank() == 1 && slope.dim(0) == 1;
  const bool each = x.rank() >= 1 && slope.rank() == 1 && slope.dim(0) == x.dim(-1);
  if ((!one && !each) || slope.elements() == 0) {
    throw ShapeError("prelu",
                     "slope is neither [1] nor [C] of x [..., C]: x ",
                     x.shape(),
                     ", slope ",
                     slope.shape());
  }
  const Floats factor = slope.floats();
  const int64_t channels = slope.elements();
  if (std::shared_ptr<const Codes> codes = activation_codes(x)) {
    std::vector<integer::CodeValues> values;
    for (int64_t c = 0; c < channels; ++c) {
      const double s = factor[c];
      values.push_back(
          integer::code_values([s](double v) { return v > 0.0 ? v : s * v; }, codes->params));
    }
    auto waiting =
        std::make_shared<CodeFunction>("prelu", x.shape(), std::move(codes), std::move(values));
    return record<PreluNode>(TensorAccess::from_waiting(x.shape(), std::move(waiting)), {x, slope});
  }
  Tensor y = Tensor::empty(x.shape());
  float* const out = y.mutable_data();
  const Floats in = x.floats();
  for_each_element(x.elements(), channels, [&](int64_t i, int64_t c) {
    out[i] = in[i] > 0.0f ? in[i] : factor[c] * in[i];
  });
  return record<PreluNode>(std::move(y), {x, slope});
}

}  // namespace quantrain
