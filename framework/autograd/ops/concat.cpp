#include "framework/autograd/ops/concat.hpp"

#include <algorithm>

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/stored_codes.hpp"
#include "framework/core/error.hpp"
#include "framework/kernels/integer/integer.hpp"

namespace quantrain {
namespace {

/// A run consists of all elements of a tensor that have the same indices before `axis`. Its length
/// is the product of the extents from `axis` on. Each run of an operand stays contiguous in the
/// result.
int64_t run_length(const Shape& shape, int axis) {
  int64_t run = 1;
  for (int i = axis; i < shape.rank(); ++i) run *= shape[i];
  return run;
}

class ConcatNode : public Node {
 public:
  explicit ConcatNode(int axis) : axis_(axis) {}
  std::string_view type() const override { return "concat"; }
  Attributes attributes() const override { return {{"axis", int64_t{axis_}}}; }
  QuantizationTraits traits() const override { return {.closes_range = true, .layer = "Concat"}; }
  void refuse_integers(const std::string& layer) const override {
    throw GraphError(layer, "a concatenation of a constant has no integer form");
  }
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

Shape concat_shape(const std::vector<Tensor>& x, int axis) {
  std::vector<int64_t> extents(x[0].shape().begin(), x[0].shape().end());
  for (size_t i = 1; i < x.size(); ++i) {
    bool fits = x[i].rank() == x[0].rank();
    for (int k = 0; fits && k < x[0].rank(); ++k) fits = k == axis || x[i].dim(k) == x[0].dim(k);
    if (!fits) {
      throw ShapeError("concat",
                       "operands may differ along axis ",
                       axis,
                       " only: ",
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

/// The concatenated codes of several tensors. requantize() rescales those of each tensor.
/// docs/quantization.md (11)
class CodeConcat : public WaitingResult {
 public:
  /// n samples of `rows` rows; operand i has runs[i] elements in each row.
  CodeConcat(int64_t n,
             int64_t rows,
             std::vector<int64_t> runs,
             std::vector<std::shared_ptr<const Codes>> operands)
      : n_(n), rows_(rows), runs_(std::move(runs)), operands_(std::move(operands)) {}

  void to_float(float* y) const override {
    int64_t length = 0;
    for (const int64_t run : runs_) length += run;
    for (size_t i = 0; i < operands_.size(); ++i) {
      const Codes& codes = *operands_[i];
      for (int64_t row = 0; row < n_ * rows_; ++row) {
        kernels::dequantize_u8_f32(runs_[i],
                                   codes.u8() + row * runs_[i],
                                   codes.params.scale[0],
                                   codes.stored_zero_point(),
                                   y + row * length);
      }
      y += runs_[i];
    }
  }

  std::shared_ptr<const integer::Operation> requantize(const QParams& y,
                                                       Activation activation,
                                                       uint8_t* codes,
                                                       uint8_t* mask) const override {
    std::vector<QParams> params;
    std::vector<const uint8_t*> inputs;
    for (const auto& operand : operands_) {
      params.push_back(operand->params);
      inputs.push_back(operand->u8());
    }
    const auto op = integer::QuantizedConcat::make(rows_, runs_, params, y, activation);
    integer::Prepared(op).run(n_, inputs, codes);
    if (mask != nullptr) write_gradient_mask(op, y, inputs, mask);
    return std::make_shared<const integer::Operation>(op);
  }

 private:
  void write_gradient_mask(const integer::QuantizedConcat& op,
                           const QParams& y,
                           const std::vector<const uint8_t*>& inputs,
                           uint8_t* mask) const {
    std::vector<CodeFlags> flags;
    for (const auto& part : op.parts)
      flags.push_back(rescale_passes(part.zero_x, part.multiplier, y));
    const int64_t length = op.row_length();
    write_mask(n_ * rows_ * length, mask, [&](int64_t i) {
      const int64_t row = i / length;
      int64_t at = i % length;
      size_t p = 0;
      while (at >= runs_[p]) at -= runs_[p++];
      return flags[p][inputs[p][row * runs_[p] + at]];
    });
  }

  int64_t n_;
  int64_t rows_;
  std::vector<int64_t> runs_;
  std::vector<std::shared_ptr<const Codes>> operands_;
};

/// The result as a CodeConcat, or an undefined tensor if an operand holds no activation codes.
Tensor concatenate_codes(const std::vector<Tensor>& x, int axis, const Shape& shape) {
  std::vector<std::shared_ptr<const Codes>> operands;
  std::vector<int64_t> runs;
  for (const Tensor& operand : x) {
    operands.push_back(activation_codes(operand));
    if (operands.back() == nullptr) return Tensor();
    runs.push_back(run_length(operand.shape(), axis));
  }
  int64_t rows = 1;
  for (int i = 1; i < axis; ++i) rows *= shape[i];
  const int64_t n = axis == 0 ? 1 : shape[0];
  return TensorAccess::from_waiting(
      shape, std::make_shared<CodeConcat>(n, rows, std::move(runs), std::move(operands)));
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
  const Shape shape = concat_shape(x, axis);
  Tensor y = concatenate_codes(x, axis, shape);
  if (!y.defined()) y = concatenate_floats(x, axis, shape);
  return record<ConcatNode>(std::move(y), x, axis);
}

}  // namespace quantrain
