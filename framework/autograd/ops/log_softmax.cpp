#include "framework/autograd/ops/log_softmax.hpp"

#include "framework/autograd/node.hpp"
#include "framework/core/error.hpp"
#include "framework/kernels/float/softmax.hpp"

namespace quantrain {
namespace {

int64_t rows(const Shape& shape) { return shape.back() == 0 ? 0 : shape.elements() / shape.back(); }

class LogSoftmaxNode : public Node {
 public:
  explicit LogSoftmaxNode(Tensor y) : y_(std::move(y)) {}
  std::string_view type() const override { return "log_softmax"; }
  Attributes attributes() const override { return {{"axis", int64_t{-1}}}; }
  QuantizationTraits traits() const override { return {.takes_data = false}; }
  bool reads_input(size_t) const override { return false; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    const Shape& shape = y_.shape();
    Tensor grad_x = Tensor::empty(shape);
    const Floats y_floats = y_.floats();
    const Floats grad_y_floats = grad_y.floats();
    kernels::softmax_backward_f32(
        rows(shape), shape.back(), true, y_floats, grad_y_floats, grad_x.mutable_data());
    return {grad_x};
  }

 private:
  Tensor y_;
};

}  // namespace

Tensor log_softmax(const Tensor& x) {
  const Shape& shape = x.shape();
  if (shape.rank() == 0) throw ShapeError("log_softmax", "needs an axis, got shape ", shape);
  Tensor y = Tensor::empty(shape);
  const Floats x_floats = x.floats();
  kernels::softmax_f32(rows(shape), shape.back(), true, x_floats, y.mutable_data());
  return record<LogSoftmaxNode>(y, {x}, y.detach());
}

}  // namespace quantrain
