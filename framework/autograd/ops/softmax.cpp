#include "framework/autograd/ops/softmax.hpp"

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/stored_codes.hpp"
#include "framework/core/error.hpp"
#include "framework/integer/quantized_softmax.hpp"
#include "framework/kernels/float/grain.hpp"
#include "framework/kernels/float/softmax.hpp"

namespace quantrain {
namespace {

using integer::QuantizedSoftmax;
using integer::SoftmaxRow;

int64_t rows(const Shape& shape) { return shape.back() == 0 ? 0 : shape.elements() / shape.back(); }

class SoftmaxNode : public Node {
 public:
  explicit SoftmaxNode(Tensor y) : y_(std::move(y)) {}
  std::string_view type() const override { return "softmax"; }
  Attributes attributes() const override { return {{"axis", int64_t{-1}}}; }
  QuantizationTraits traits() const override {
    return {.closes_range = true,
            .takes_data = input(0).rank() > 1,
            .range = Range{0.0f, 1.0f},
            .layer = "Softmax"};
  }
  void refuse_integers(const std::string& layer) const override {
    if (input(0).rank() > 1) Node::refuse_integers(layer);
    throw GraphError(layer,
                     "a softmax along the batch has no integer form: it takes [N, ..., C], got ",
                     input(0).shape());
  }
  bool reads_input(size_t) const override { return false; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    const Shape& shape = y_.shape();
    Tensor grad_x = Tensor::empty(shape);
    const Floats y_floats = y_.floats();
    const Floats grad_y_floats = grad_y.floats();
    kernels::softmax_backward_f32(
        rows(shape), shape.back(), false, y_floats, grad_y_floats, grad_x.mutable_data());
    return {grad_x};
  }

 private:
  Tensor y_;
};

/// The exponential of each code, divided by the sum of the exponentials along the last axis. The
/// exponentials come from an integer table. requantize() rounds each quotient once.
/// docs/quantization.md (26)
class CodeSoftmax : public WaitingResult {
 public:
  CodeSoftmax(const Shape& shape, std::shared_ptr<const Codes> x)
      : samples_(shape),
        classes_(shape.back()),
        x_(std::move(x)),
        powers_(integer::softmax_powers(x_->params.scale[0])) {}

  void to_float(float* y) const override {
    for_each_row([&](int64_t first, const SoftmaxRow& row) {
      for (int64_t i = first; i < first + classes_; ++i) {
        y[i] = static_cast<float>(static_cast<double>(row.power(x_->u8()[i])) /
                                  static_cast<double>(row.sum()));
      }
    });
  }

  std::shared_ptr<const integer::Operation> requantize(const QParams& y,
                                                       Activation activation,
                                                       uint8_t* codes,
                                                       uint8_t* mask) const override {
    const auto op =
        QuantizedSoftmax::make(samples_.size / classes_, classes_, x_->params, y, activation);
    const uint8_t* const inputs[] = {x_->u8()};
    integer::Prepared(op).run(samples_.count, inputs, codes);
    if (mask != nullptr) write_gradient_mask(op, gradient_mask(y, mask));
    return std::make_shared<const integer::Operation>(op);
  }

 private:
  template <class Visit>
  void for_each_row(const Visit& visit) const {
    parallel_for(x_->bytes.size() / classes_,
                 kernels::row_grain(classes_, kernels::kFunctionGrain),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t r = begin; r < end; ++r) {
                     const int64_t first = r * classes_;
                     visit(first, SoftmaxRow(powers_, x_->u8() + first, classes_));
                   }
                 });
  }

  void write_gradient_mask(const QuantizedSoftmax& op, const GradientMask& mask) const {
    Buffer<uint8_t> passes(x_->bytes.size());
    for_each_row([&](int64_t first, const SoftmaxRow& row) {
      for (int64_t i = first; i < first + classes_; ++i) {
        const int64_t code = row.code(x_->u8()[i], op.multiplier, op.y.zero_point);
        passes[i] = code >= mask.lo && code <= mask.hi;
      }
    });
    write_mask(passes.size(), mask.bits, [&](int64_t i) { return passes[i] != 0; });
  }

  Samples samples_;
  int64_t classes_;
  std::shared_ptr<const Codes> x_;
  std::vector<int32_t> powers_;
};

}  // namespace

Tensor softmax(const Tensor& x) {
  const Shape& shape = x.shape();
  if (shape.rank() == 0) throw ShapeError("softmax", "needs an axis, got shape ", shape);
  std::shared_ptr<const Codes> codes = activation_codes(x);
  if (codes != nullptr && shape.rank() > 1 && shape.elements() > 0) {
    Tensor y =
        TensorAccess::from_waiting(shape, std::make_shared<CodeSoftmax>(shape, std::move(codes)));
    return record<SoftmaxNode>(y, {x}, y.detach());
  }
  Tensor y = Tensor::empty(shape);
  const Floats x_floats = x.floats();
  kernels::softmax_f32(rows(shape), shape.back(), false, x_floats, y.mutable_data());
  return record<SoftmaxNode>(y, {x}, y.detach());
}

}  // namespace quantrain
