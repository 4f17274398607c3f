#include "framework/autograd/ops/mul.hpp"

#include <algorithm>

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/broadcast.hpp"
#include "framework/autograd/ops/code_function.hpp"
#include "framework/autograd/tensor_access.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/kernels/float/columns.hpp"
#include "framework/kernels/float/elementwise.hpp"
#include "framework/kernels/float/grain.hpp"
#include "framework/kernels/integer/integer.hpp"

namespace quantrain {
namespace {

/// The number of rows of `a`, within one sample, that are multiplied by the same row of `b`; 0 if
/// the integer operation does not take these shapes.
int64_t rows_of(const Shape& a, const Shape& b) {
  if (a == b) return 1;
  if (!are_channel_factors(a, b)) return 0;
  int64_t rows = 1;
  for (int axis = 1; axis + 1 < a.rank(); ++axis) rows *= a[axis];
  return rows;
}

/// Whether `b` has one factor for each index of the first axis of `a`.
bool are_row_factors(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank() || a.rank() < 2 || a[0] != b[0]) return false;
  return b.elements() == b[0] && a.elements() > b[0];
}

Tensor scaled_rows(const Tensor& x, const Tensor& factors, Tensor y) {
  const int64_t rows = factors.elements();
  const Floats from = x.floats();
  const Floats by = factors.floats();
  kernels::scale_rows_f32(rows, x.elements() / rows, from, by, y.mutable_data());
  return y;
}

Tensor row_dots(const Tensor& a, const Tensor& b, const Shape& shape) {
  Tensor dots = Tensor::empty(shape);
  const int64_t rows = dots.elements();
  const Floats lhs = a.floats();
  const Floats rhs = b.floats();
  kernels::row_dots_f32(rows, a.elements() / rows, lhs, rhs, dots.mutable_data());
  return dots;
}

class MulNode : public Node {
 public:
  std::string_view type() const override { return "mul"; }
  QuantizationTraits traits() const override {
    const bool constant = may_be_constant(input(0).shape(), input(1).shape());
    const bool factors = rows_of(input(0).shape(), input(1).shape()) > 0;
    return {.closes_range = true,
            .takes_constants = constant,
            .takes_data = factors,
            .layer = factors ? "Mul" : ""};
  }
  void refuse_integers(const std::string& layer) const override {
    throw GraphError(
        layer,
        "this multiplication has no integer form: ",
        input(0).shape(),
        " * ",
        input(1).shape(),
        "; a constant operand must be one number, or one for each channel (the last axis). If both "
        "operands depend on the input, they need the same shape, or [N, ..., C] and "
        "[N, 1, ..., 1, C]");
  }
  bool reads_input(size_t i) const override { return i < 2 && needs_grad(1 - i); }
  std::vector<Tensor> backward(Tensor grad_y) override {
    if (are_row_factors(input(0).shape(), input(1).shape())) {
      std::vector<Tensor> grads(2);
      if (needs_grad(1)) grads[1] = row_dots(grad_y, input(0), input(1).shape());
      if (needs_grad(0))
        grads[0] = scaled_rows(grad_y, input(1), TensorAccess::overwritable(grad_y));
      return grads;
    }
    return {needs_grad(0) ? product(grad_y, input(1), input(0).shape()) : Tensor(),
            needs_grad(1) ? product(grad_y, input(0), input(1).shape()) : Tensor()};
  }

 private:
  static Tensor product(const Tensor& grad_y, const Tensor& other, const Shape& shape) {
    return reduce_to(broadcast_binary("mul", kernels::mul_f32, grad_y, other), shape);
  }
};

/// The exact product of two tensors of codes. requantize() rounds it once.
/// docs/quantization.md (25)
class CodeProduct : public WaitingResult {
 public:
  CodeProduct(const Shape& shape,
              int64_t rows,
              std::shared_ptr<const Codes> a,
              std::shared_ptr<const Codes> b)
      : samples_(shape), rows_(rows), a_(std::move(a)), b_(std::move(b)) {}

  void to_float(float* y) const override {
    const int64_t channels = samples_.size / rows_;
    Buffer<float> b(samples_.count * channels);
    kernels::dequantize_u8_f32(
        a_->bytes.size(), a_->u8(), a_->params.scale[0], a_->stored_zero_point(), y);
    kernels::dequantize_u8_f32(
        b.size(), b_->u8(), b_->params.scale[0], b_->stored_zero_point(), b.data());
    if (rows_ == 1) return kernels::mul_f32(b.size(), y, b.data(), y);
    parallel_for(samples_.count * rows_,
                 kernels::row_grain(channels, kernels::kSlowGrain),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t row = begin; row < end;) {
                     const int64_t sample = row / rows_;
                     const int64_t last = std::min(end, (sample + 1) * rows_);
                     const float* const factors = b.data() + sample * channels;
                     if (channels == 1) {
                       const float factor = *factors;
                       for (; row < last; ++row) y[row] *= factor;
                       continue;
                     }
                     for (; row < last; ++row) {
                       for (int64_t c = 0; c < channels; ++c) y[row * channels + c] *= factors[c];
                     }
                   }
                 });
  }

  std::shared_ptr<const integer::Operation> requantize(const QParams& y,
                                                       Activation activation,
                                                       uint8_t* codes,
                                                       uint8_t* mask) const override {
    const auto op = integer::QuantizedMul::make(
        rows_, samples_.size / rows_, a_->params, b_->params, y, activation);
    const uint8_t* const inputs[] = {a_->u8(), b_->u8()};
    integer::Prepared(op).run(samples_.count, inputs, codes, gradient_mask(y, mask));
    return std::make_shared<const integer::Operation>(op);
  }

 private:
  Samples samples_;
  int64_t rows_;
  std::shared_ptr<const Codes> a_;
  std::shared_ptr<const Codes> b_;
};

}  // namespace

bool are_channel_factors(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank() || a.rank() < 2 || a[0] != b[0] || a.back() != b.back()) return false;
  for (int axis = 1; axis + 1 < b.rank(); ++axis) {
    if (b[axis] != 1) return false;
  }
  return true;
}

Tensor mul(const Tensor& a, const Tensor& b) {
  const int64_t rows = rows_of(a.shape(), b.shape());
  // The operand whose rows are repeated comes second.
  if (rows == 0 && rows_of(b.shape(), a.shape()) > 0) return mul(b, a);
  std::shared_ptr<const Codes> codes_a = activation_codes(a);
  std::shared_ptr<const Codes> codes_b = activation_codes(b);
  if (codes_a != nullptr && codes_b != nullptr && rows > 0) {
    auto product =
        std::make_shared<CodeProduct>(a.shape(), rows, std::move(codes_a), std::move(codes_b));
    return record<MulNode>(TensorAccess::from_waiting(a.shape(), std::move(product)), {a, b});
  }
  Tensor y = function_of_constants("mul", a, b, [](double x, double c) { return x * c; });
  if (!y.defined()) {
    y = are_row_factors(a.shape(), b.shape()) ? scaled_rows(a, b, Tensor::empty(a.shape()))
                                              : broadcast_binary("mul", kernels::mul_f32, a, b);
  }
  return record<MulNode>(std::move(y), {a, b});
}

}  // namespace quantrain
