#include "framework/autograd/ops/mse_loss.hpp"

#include "framework/autograd/node.hpp"
#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"
#include "framework/kernels/float/columns.hpp"
#include "framework/kernels/float/elementwise.hpp"

namespace quantrain {
namespace {

class MseLossNode : public Node {
 public:
  explicit MseLossNode(Tensor difference) : difference_(std::move(difference)) {}
  std::string_view type() const override { return "mse_loss"; }
  bool reads_input(size_t) const override { return false; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    const float factor = 2.0f * grad_y.item() / static_cast<float>(difference_.elements());
    return {needs_grad(0) ? scaled(factor) : Tensor(), needs_grad(1) ? scaled(-factor) : Tensor()};
  }

 private:
  Tensor scaled(float factor) const {
    Tensor grad = Tensor::empty(difference_.shape());
    const Floats difference_floats = difference_.floats();
    kernels::affine_f32(grad.elements(), difference_floats, factor, 0.0f, grad.mutable_data());
    return grad;
  }

  Tensor difference_;
};

}  // namespace

Tensor mse_loss(const Tensor& x, const Tensor& target) {
  const DefaultRounding rounding;
  if (!(x.shape() == target.shape())) {
    throw ShapeError("mse_loss", "shapes differ: x ", x.shape(), ", target ", target.shape());
  }
  const int64_t n = x.elements();
  if (n == 0) throw ShapeError("mse_loss", "no elements to average in shape ", x.shape());
  Tensor difference = Tensor::empty(x.shape());
  const Floats x_floats = x.floats();
  const Floats target_floats = target.floats();
  kernels::sub_f32(n, x_floats, target_floats, difference.mutable_data());
  Buffer<float> squares(n);
  kernels::mul_f32(n, difference.data(), difference.data(), squares.data());
  const float loss = kernels::sum_f32(n, squares.data()) / static_cast<float>(n);
  return record<MseLossNode>(Tensor::full({}, loss), {x, target}, difference);
}

}  // namespace quantrain
