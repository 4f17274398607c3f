#include "framework/autograd/ops/reshape.hpp"

#include <algorithm>

#include "framework/autograd/node.hpp"
#include "framework/core/error.hpp"

namespace quantrain {
namespace {

class ReshapeNode : public Node {
 public:
  explicit ReshapeNode(std::vector<int64_t> extents) : extents_(std::move(extents)) {}
  std::string_view type() const override { return "reshape"; }
  // The extents that the caller gave, not the resolved ones: -1 fits batches of any size.
  Attributes attributes() const override { return {{"shape", extents_}}; }
  QuantizationTraits traits() const override { return {.is_view = true}; }
  bool reads_input(size_t) const override { return false; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    return {TensorAccess::with_shape(grad_y, input(0).shape())};
  }

 private:
  std::vector<int64_t> extents_;
};

}  // namespace

Tensor reshape(const Tensor& x, std::span<const int64_t> extents) {
  std::vector<int64_t> resolved(extents.begin(), extents.end());
  const auto open = std::find(resolved.begin(), resolved.end(), -1);
  if (open != resolved.end()) {
    *open = 1;
    const int64_t known = Shape(resolved).elements();
    if (known == 0 || x.elements() % known != 0) {
      throw ShapeError("reshape",
                       "the extent -1 cannot be computed: x ",
                       x.shape(),
                       " has ",
                       x.elements(),
                       " elements, the product of the other extents is ",
                       known);
    }
    *open = x.elements() / known;
  }
  return record<ReshapeNode>(TensorAccess::with_shape(x, Shape(resolved)),
                             {x},
                             std::vector<int64_t>(extents.begin(), extents.end()));
}

}  // namespace quantrain
