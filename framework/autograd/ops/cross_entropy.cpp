#include "framework/autograd/ops/cross_entropy.hpp"

#include "framework/autograd/node.hpp"
#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"
#include "framework/kernels/float/elementwise.hpp"
#include "framework/kernels/float/softmax.hpp"

namespace quantrain {
namespace {

constexpr const char* kWhere = "cross_entropy";

class CrossEntropyNode : public Node {
 public:
  // The gradient for grad_y = 1, which the forward pass gives along the way.
  explicit CrossEntropyNode(Tensor grad_logits) : grad_logits_(std::move(grad_logits)) {}
  std::string_view type() const override { return kWhere; }
  bool reads_input(size_t) const override { return false; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    const float factor = grad_y.item();
    if (factor == 1.0f) return {grad_logits_};
    Tensor grad = Tensor::empty(grad_logits_.shape());
    const Floats grad_logits_floats = grad_logits_.floats();
    kernels::affine_f32(grad.elements(), grad_logits_floats, factor, 0.0f, grad.mutable_data());
    return {grad};
  }

 private:
  Tensor grad_logits_;
};

void check(const Shape& logits, std::span<const int32_t> labels) {
  if (logits.rank() != 2) throw ShapeError(kWhere, "logits must be [N, C], got ", logits);
  const int64_t n = logits[0];
  if (n == 0) throw ShapeError(kWhere, "the batch is empty: logits ", logits);
  if (static_cast<int64_t>(labels.size()) != n) {
    throw ShapeError(kWhere, labels.size(), " labels for logits ", logits);
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0 || labels[i] >= logits[1]) {
      throw DataError(
          kWhere, "label ", labels[i], " of sample ", i, " is outside [0, ", logits[1], ")");
    }
  }
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, std::span<const int32_t> labels) {
  const DefaultRounding rounding;
  check(logits.shape(), labels);
  Tensor grad_logits;
  if (needs_gradient({logits})) grad_logits = Tensor::empty(logits.shape());
  const Floats logits_floats = logits.floats();
  const float loss =
      kernels::cross_entropy_f32(logits.dim(0),
                                 logits.dim(1),
                                 logits_floats,
                                 labels.data(),
                                 grad_logits.defined() ? grad_logits.mutable_data() : nullptr);
  return record<CrossEntropyNode>(Tensor::full({}, loss), {logits}, grad_logits);
}

}  // namespace quantrain
