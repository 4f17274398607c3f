#include "framework/autograd/ops/concat.hpp"

#include <algorithm>

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/concatenated_codes.hpp"
#include "framework/autograd/ops/stored_codes.hpp"
#include "framework/core/error.hpp"

namespace quantrain {
namespace {

/// Elements from the start of one index along the axis to that of the next one of the axis before.
int64_t run_length(const Shape& shape, int axis) {
  int64_t run = 1;
  for (int i = axis; i < shape.rank(); ++i) run *= shape[i];
  return run;
}

class Concat : public Node {
 public:
  explicit Concat(int axis) : axis_(axis) {}
  std::string_view type() const override { return "concat"; }
  Attributes attributes() const override { return {{"axis", int64_t{axis_}}}; }
  bool reads_input(size_t) const override { return false; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    const int64_t y_run = run_length(grad_y.shape(), axis_);
    const Floats grad = grad_y.floats();
    std::vector<Tensor> grads(inputs().size());
    int64_t offset = 0;
    for (size_t i = 0; i < grads.size(); ++i) {
      const int64_t run = run_length(input(i).shape(), axis_);
      if (needs_grad(i)) {
        grads[i] = Tensor::empty(input(i).shape());
        float* const out = grads[i].mutable_data();
        for (int64_t row = 0; run > 0 && row < grads[i].elements() / run; ++row) {
          std::copy_n(grad + row * y_run + offset, run, out + row * run);
        }
      }
      offset += run;
    }
    return grads;
  }

 private:
  int axis_;
};

Shape result_shape(const std::vector<Tensor>& x, int axis) {
  std::vector<int64_t> extents(x[0].shape().begin(), x[0].shape().end());
  for (size_t i = 1; i < x.size(); ++i) {
    bool fits = x[i].rank() == x[0].rank();
    for (int k = 0; fits && k < x[0].rank(); ++k) fits = k == axis || x[i].dim(k) == x[0].dim(k);
    if (!fits) {
      throw ShapeError("concat",
                       "operands differ beyond axis ",
                       axis,
                       ": ",
                       x[0].shape(),
                       " and ",
                       x[i].shape());
    }
    int64_t& extent = extents[static_cast<size_t>(axis)];
    if (__builtin_add_overflow(extent, x[i].dim(axis), &extent)) {
      throw ShapeError("concat", "operands are too long along axis ", axis);
    }
  }
  return Shape(extents);
}

/// Undefined unless every operand holds activation codes.
Tensor concatenate_codes(const std::vector<Tensor>& x, int axis, const Shape& shape) {
  std::vector<ConcatenatedCodes::Part> parts;
  for (const Tensor& operand : x) {
    std::shared_ptr<const Codes> codes = activation_codes(operand);
    if (codes == nullptr) return Tensor();
    parts.push_back({std::move(codes), run_length(operand.shape(), axis)});
  }
  const int64_t run = run_length(shape, axis);
  const int64_t rows = run == 0 ? 0 : shape.elements() / run;
  return Tensor::from_accumulators(shape,
                                   std::make_shared<ConcatenatedCodes>(rows, std::move(parts)));
}

Tensor concatenate_floats(const std::vector<Tensor>& x, int axis, const Shape& shape) {
  Tensor y = Tensor::empty(shape);
  const int64_t y_run = run_length(shape, axis);
  float* out = y.mutable_data();
  for (const Tensor& operand : x) {
    const int64_t run = run_length(operand.shape(), axis);
    const Floats from = operand.floats();
    for (int64_t row = 0; run > 0 && row < operand.elements() / run; ++row) {
      std::copy_n(from + row * run, run, out + row * y_run);
    }
    out += run;
  }
  return y;
}

}  // namespace

Tensor concat(const std::vector<Tensor>& x, int axis) {
  if (x.empty()) throw ShapeError("concat", "there is no operand");
  axis = x[0].shape().axis(axis);
  const Shape shape = result_shape(x, axis);
  Tensor y = concatenate_codes(x, axis, shape);
  if (!y.defined()) y = concatenate_floats(x, axis, shape);
  return record<Concat>(std::move(y), x, axis);
}

}  // namespace quantrain
