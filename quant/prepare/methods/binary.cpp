#include "quant/prepare/methods/binary.hpp"

#include <cmath>

#include "framework/autograd/node.hpp"
#include "framework/core/parallel.hpp"
#include "framework/kernels/float/grain.hpp"

namespace quantrain::quant {
namespace {

class BinaryNode : public Node {
 public:
  std::string_view type() const override { return "binary"; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    const Floats w = input(0).floats();
    const Floats g = grad_y.floats();
    Tensor grad = Tensor::empty(grad_y.shape());
    float* const to = grad.mutable_data();
    parallel_for(grad.elements(), kernels::kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = std::abs(w[i]) <= 1.0f ? g[i] : 0.0f;
    });
    return {std::move(grad)};
  }
};

}  // namespace

std::string Binary::fault(const QType& type, bool /*per_channel*/) const {
  return type.bits == 1 ? "" : "binary weights are the codes -1 and +1: set bits = 1";
}

Tensor Binary::operator()(const Tensor& w, bool /*per_channel*/) const {
  return record<BinaryNode>(w.detach(), {w});
}

}  // namespace quantrain::quant
