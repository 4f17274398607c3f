#include "framework/autograd/ops/mean.hpp"

#include "framework/autograd/ops/reduce.hpp"
#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"

namespace quantrain {
namespace {

class MeanNode : public Node {
 public:
  MeanNode(const reduce::Extents& extents, Attributes attributes)
      : extents_(extents), attributes_(std::move(attributes)) {}
  std::string_view type() const override { return "mean"; }
  Attributes attributes() const override { return attributes_; }
  QuantizationTraits traits() const override { return {.takes_data = false}; }
  void refuse_integers(const std::string& layer) const override {
    throw GraphError(layer,
                     "the operation mean of ",
                     input(0).shape(),
                     " has no integer form: use the layer Mean, over axes of each sample");
  }
  bool reads_input(size_t) const override { return false; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    Tensor grad_x = Tensor::empty(input(0).shape());
    const Floats grad_y_floats = grad_y.floats();
    reduce::expand(
        extents_, 1.0f / static_cast<float>(extents_.count), grad_y_floats, grad_x.mutable_data());
    return {grad_x};
  }

 private:
  reduce::Extents extents_;
  Attributes attributes_;
};

Tensor mean_of(const Tensor& x,
               const reduce::Extents& extents,
               const Shape& shape,
               Attributes attributes) {
  const DefaultRounding rounding;
  if (extents.count == 0) throw ShapeError("mean", "no elements to average in shape ", x.shape());
  Tensor y = Tensor::empty(shape);
  const Floats x_floats = x.floats();
  reduce::sum(extents, 1.0f / static_cast<float>(extents.count), x_floats, y.mutable_data());
  return record<MeanNode>(y, {x}, extents, std::move(attributes));
}

}  // namespace

Tensor mean(const Tensor& x) {
  return mean_of(x, reduce::extents(x.shape()), Shape{}, reduce::attributes(x.shape()));
}

Tensor mean(const Tensor& x, int axis, bool keepdim) {
  return mean_of(x,
                 reduce::extents(x.shape(), axis),
                 reduce::reduced_shape(x.shape(), axis, keepdim),
                 reduce::attributes(x.shape(), axis, keepdim));
}

}  // namespace quantrain
