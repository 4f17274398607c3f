#include "framework/autograd/ops/tanh.hpp"

#include "framework/autograd/node.hpp"
#include "framework/kernels/elementwise.hpp"

namespace quantrain {
namespace {

class TanhNode : public Node {
 public:
  explicit TanhNode(Tensor y) : y_(std::move(y)) {}
  std::string_view type() const override { return "tanh"; }
  bool reads_input(size_t) const override { return false; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    Tensor grad_x = Tensor::empty(y_.shape());
    kernels::tanh_backward_f32(y_.elements(), y_.floats(), grad_y.floats(), grad_x.mutable_data());
    return {grad_x};
  }

 private:
  Tensor y_;
};

}  // namespace

Tensor tanh(const Tensor& x) {
  Tensor y = Tensor::empty(x.shape());
  kernels::tanh_f32(x.elements(), x.floats(), y.mutable_data());
  return record<TanhNode>(y, {x}, y.detach());
}

}  // namespace quantrain
