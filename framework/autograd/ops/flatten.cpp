#include "framework/autograd/ops/flatten.hpp"

#include "framework/autograd/node.hpp"
#include "framework/core/error.hpp"

namespace quantrain {
namespace {

class FlattenNode : public Node {
 public:
  std::string_view type() const override { return "flatten"; }
  QuantizationTraits traits() const override { return {.is_view = true}; }
  bool reads_input(size_t) const override { return false; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    return {TensorAccess::with_shape(grad_y, input(0).shape())};
  }
};

}  // namespace

Tensor flatten(const Tensor& x) {
  if (x.rank() < 1) throw ShapeError("flatten", "a scalar has no first axis: ", x.shape());
  int64_t rest = 1;
  for (int i = 1; i < x.rank(); ++i) rest *= x.dim(i);
  return record<FlattenNode>(TensorAccess::with_shape(x, {x.dim(0), rest}), {x});
}

}  // namespace quantrain
