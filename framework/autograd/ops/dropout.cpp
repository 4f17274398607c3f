#include "framework/autograd/ops/dropout.hpp"

#include "framework/autograd/node.hpp"
#include "framework/core/error.hpp"
#include "framework/kernels/float/elementwise.hpp"

namespace quantrain {
namespace {

// The backward pass draws the mask again, so the forward pass need not save it.
Tensor drop(const Tensor& x, const DropoutOptions& options) {
  Tensor y = Tensor::empty(x.shape());
  const Floats from = x.floats();
  kernels::dropout_f32(
      x.elements(), options.p, options.seed, options.counter, from.data(), y.mutable_data());
  return y;
}

class DropoutNode : public Node {
 public:
  explicit DropoutNode(const DropoutOptions& options) : options_(options) {}
  std::string_view type() const override { return "dropout"; }
  Attributes attributes() const override { return {{"p", double{options_.p}}}; }
  QuantizationTraits traits() const override { return {.takes_data = false}; }
  void refuse_integers(const std::string& layer) const override {
    throw GraphError(layer,
                     "operation dropout has no integer form: it drops values because its layer is "
                     "in training mode; call eval(), and register the layer by add(name, layer) in "
                     "the constructor");
  }
  bool reads_input(size_t) const override { return false; }
  std::vector<Tensor> backward(Tensor grad_y) override { return {drop(grad_y, options_)}; }

 private:
  DropoutOptions options_;
};

}  // namespace

Tensor dropout(const Tensor& x, const DropoutOptions& options) {
  if (!(options.p >= 0.0f && options.p <= 1.0f)) {
    throw DataError("dropout", "p must lie in [0, 1], got ", options.p);
  }
  if (!options.training || options.p == 0.0f) return x;
  Tensor y = drop(x, options);
  TensorAccess::set_rescaling(y, TensorAccess::rescaling(x));  // a batch norm may follow
  return record<DropoutNode>(std::move(y), {x}, options);
}

}  // namespace quantrain
