#include "framework/autograd/ops/sigmoid.hpp"

#include "framework/autograd/node.hpp"
#include "framework/kernels/elementwise.hpp"

namespace quantrain {
namespace {

class SigmoidNode : public Node {
 public:
  explicit SigmoidNode(Tensor y) : y_(std::move(y)) {}
  std::string_view type() const override { return "sigmoid"; }
  bool reads_input(size_t) const override { return false; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    Tensor grad_x = Tensor::empty(y_.shape());
    kernels::sigmoid_backward_f32(
        y_.elements(), y_.floats(), grad_y.floats(), grad_x.mutable_data());
    return {grad_x};
  }

 private:
  Tensor y_;
};

}  // namespace

Tensor sigmoid(const Tensor& x) {
  Tensor y = Tensor::empty(x.shape());
  kernels::sigmoid_f32(x.elements(), x.floats(), y.mutable_data());
  return record<SigmoidNode>(y, {x}, y.detach());
}

}  // namespace quantrain
