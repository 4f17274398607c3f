#include "framework/autograd/ops/transpose.hpp"

#include <array>

#include "framework/autograd/node.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/kernels/float/grain.hpp"

namespace quantrain {
namespace {

using Perm = std::vector<int64_t>;

Perm checked_axes(const Shape& shape, const std::vector<int>& axes) {
  Perm perm(static_cast<size_t>(shape.rank()));
  if (axes.empty()) {
    for (size_t i = 0; i < perm.size(); ++i) perm[i] = shape.rank() - 1 - static_cast<int>(i);
    return perm;
  }
  if (axes.size() != perm.size())
    throw ShapeError(
        "transpose", "perm has ", axes.size(), " axes, expected each axis of ", shape, " once");
  std::vector<bool> seen(perm.size(), false);
  for (size_t i = 0; i < perm.size(); ++i) {
    perm[i] = shape.axis(axes[i]);
    if (seen[static_cast<size_t>(perm[i])])
      throw ShapeError("transpose", "axis ", perm[i], " of ", shape, " is named twice");
    seen[static_cast<size_t>(perm[i])] = true;
  }
  return perm;
}

Tensor permuted(const Tensor& x, const Perm& perm) {
  const Shape& from = x.shape();
  const int rank = from.rank();
  std::array<int64_t, Shape::kMaxRank> stride_x{};  // of each axis of x
  int64_t stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    stride_x[static_cast<size_t>(i)] = stride;
    stride *= from[i];
  }
  std::vector<int64_t> extents;
  for (const int64_t axis : perm) extents.push_back(from[static_cast<int>(axis)]);
  Tensor y = Tensor::empty(Shape(extents));
  if (y.elements() == 0) return y;

  const int64_t inner = rank == 0 ? 1 : extents.back();
  const int64_t inner_stride = rank == 0 ? 1 : stride_x[static_cast<size_t>(perm.back())];
  const Floats source = x.floats();
  float* const out = y.mutable_data();
  parallel_for(y.elements() / inner, kernels::row_grain(inner), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t offset = 0;
      int64_t rest = row;
      for (size_t axis = extents.size(); axis-- > 1;) {
        offset += rest % extents[axis - 1] * stride_x[static_cast<size_t>(perm[axis - 1])];
        rest /= extents[axis - 1];
      }
      const float* const first = source.data() + offset;
      for (int64_t i = 0; i < inner; ++i) out[row * inner + i] = first[i * inner_stride];
    }
  });
  return y;
}

class TransposeNode : public Node {
 public:
  explicit TransposeNode(Perm perm) : perm_(std::move(perm)) {}
  std::string_view type() const override { return "transpose"; }
  Attributes attributes() const override { return {{"perm", perm_}}; }
  QuantizationTraits traits() const override { return {.takes_data = false}; }
  bool reads_input(size_t) const override { return false; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    Perm inverse(perm_.size());
    for (size_t i = 0; i < perm_.size(); ++i)
      inverse[static_cast<size_t>(perm_[i])] = static_cast<int64_t>(i);
    return {permuted(grad_y, inverse)};
  }

 private:
  Perm perm_;
};

}  // namespace

Tensor transpose(const Tensor& x, const std::vector<int>& perm) {
  const Perm checked = checked_axes(x.shape(), perm);
  return record<TransposeNode>(permuted(x, checked), {x}, checked);
}

}  // namespace quantrain
