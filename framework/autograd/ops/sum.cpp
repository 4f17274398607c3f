#include "framework/autograd/ops/sum.hpp"

#include "framework/autograd/ops/reduce.hpp"

namespace quantrain {
namespace {

class SumNode : public Node {
 public:
  SumNode(const reduce::Extents& extents, Attributes attributes)
      : extents_(extents), attributes_(std::move(attributes)) {}
  std::string_view type() const override { return "sum"; }
  Attributes attributes() const override { return attributes_; }
  QuantizationTraits traits() const override { return {.takes_data = false}; }
  bool reads_input(size_t) const override { return false; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    Tensor grad_x = Tensor::empty(input(0).shape());
    const Floats grad_y_floats = grad_y.floats();
    reduce::expand(extents_, 1.0f, grad_y_floats, grad_x.mutable_data());
    return {grad_x};
  }

 private:
  reduce::Extents extents_;
  Attributes attributes_;
};

Tensor sum_of(const Tensor& x,
              const reduce::Extents& extents,
              const Shape& shape,
              Attributes attributes) {
  Tensor y = Tensor::empty(shape);
  const Floats x_floats = x.floats();
  reduce::sum(extents, 1.0f, x_floats, y.mutable_data());
  return record<SumNode>(y, {x}, extents, std::move(attributes));
}

}  // namespace

Tensor sum(const Tensor& x) {
  return sum_of(x, reduce::extents(x.shape()), Shape{}, reduce::attributes(x.shape()));
}

Tensor sum(const Tensor& x, int axis, bool keepdim) {
  return sum_of(x,
                reduce::extents(x.shape(), axis),
                reduce::reduced_shape(x.shape(), axis, keepdim),
                reduce::attributes(x.shape(), axis, keepdim));
}

}  // namespace quantrain
