#include "framework/autograd/ops/avg_pool2d.hpp"

#include <map>

#include "framework/autograd/ops/pad.hpp"
#include "framework/autograd/ops/stored_codes.hpp"
#include "framework/core/error.hpp"
#include "framework/kernels/float/pooling.hpp"
#include "framework/kernels/integer/integer.hpp"

namespace quantrain {
namespace {

class AvgPoolNode : public Node {
 public:
  AvgPoolNode(const WindowOperation& operation, const kernels::Conv2dShape& shape, int64_t divisor)
      : operation_(operation), shape_(shape), divisor_(divisor) {}
  std::string_view type() const override { return operation_.type; }
  Attributes attributes() const override {
    Attributes result = operation_.attributes(shape_);
    if (divisor_ > 0) result.add("divisor", divisor_);
    return result;
  }
  QuantizationTraits traits() const override {
    return {.closes_range = true, .layer = operation_.layer};
  }
  bool reads_input(size_t) const override { return false; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    Tensor grad_x = Tensor::empty(input(0).shape());
    const Floats grad_y_floats = grad_y.floats();
    kernels::avg_pool2d_backward_f32(shape_, divisor_, grad_y_floats, grad_x.mutable_data());
    return {grad_x};
  }

 private:
  WindowOperation operation_;
  kernels::Conv2dShape shape_;
  int64_t divisor_;  // 0: each window's elements inside the image
};

/// The exact means of the codes in windows. requantize() rounds them once.
/// docs/quantization.md (10)
class CodeMean : public WaitingResult {
 public:
  CodeMean(const kernels::Conv2dShape& shape, int64_t divisor, std::shared_ptr<const Codes> x)
      : shape_(shape), divisor_(divisor), x_(std::move(x)) {
    sums_.shape = shape;
    sums_.shape.n = 1;
    sums_.zero_x = x_->stored_zero_point();
    const auto rows =
        integer::counts_along(shape.h, shape.kh, shape.stride_h, shape.pad_h, shape.oh());
    const auto columns =
        integer::counts_along(shape.w, shape.kw, shape.stride_w, shape.pad_w, shape.ow());
    for (const int64_t row : rows) {
      for (const int64_t column : columns) counts_.push_back(row * column);
    }
  }

  void to_float(float* y) const override {
    const Buffer<int32_t> sums = sums_of_windows();
    const double scale = static_cast<double>(x_->params.scale[0]);
    for (int64_t i = 0; i < sums.size(); ++i)
      y[i] = static_cast<float>(scale * sums[i] / static_cast<double>(divisor(i)));
  }

  std::shared_ptr<const integer::Operation> requantize(const QParams& y,
                                                       Activation activation,
                                                       uint8_t* codes,
                                                       uint8_t* mask) const override {
    const auto op = integer::QuantizedAvgPool2d::make(shape_, x_->params, y, activation, divisor_);
    const uint8_t* const inputs[] = {x_->u8()};
    integer::Prepared(op).run(shape_.n, inputs, codes);
    if (mask != nullptr) write_gradient_mask(op, gradient_mask(y, mask));
    return std::make_shared<const integer::Operation>(op);
  }

 private:
  /// What the sum of y[i] is divided by.
  int64_t divisor(int64_t i) const {
    return divisor_ > 0 ? divisor_ : counts_[static_cast<size_t>(i / shape_.c) % counts_.size()];
  }

  Buffer<int32_t> sums_of_windows() const {
    Buffer<int32_t> sums(shape_.y_elements());
    integer::Prepared(sums_).accumulate(shape_.n, x_->u8(), sums.data());
    return sums;
  }

  void write_gradient_mask(const integer::QuantizedAvgPool2d& op, const GradientMask& mask) const {
    std::map<int64_t, Multiplier> multipliers;
    for (const kernels::MeanMultiplier& mean : op.means)
      multipliers.emplace(mean.count, mean.multiplier);
    std::vector<Multiplier> of_window;
    for (const int64_t count : counts_) of_window.push_back(multipliers.at(count));
    const Buffer<int32_t> sums = sums_of_windows();
    write_mask(sums.size(), mask.bits, [&](int64_t i) {
      const Multiplier m = of_window[static_cast<size_t>(i / shape_.c) % of_window.size()];
      const int64_t code = requantize_unclamped(sums[i], m, op.y.zero_point);
      return code >= mask.lo && code <= mask.hi;
    });
  }

  kernels::Conv2dShape shape_;
  int64_t divisor_;  // 0: each window's elements inside the image
  std::shared_ptr<const Codes> x_;
  integer::QuantizedAvgPool2d sums_;  // `means` stays empty: it needs the output's parameters
  std::vector<int64_t> counts_;       // elements inside the image, for each of OH * OW windows
};

}  // namespace

Tensor avg_pool(const WindowOperation& operation,
                const kernels::Conv2dShape& s,
                const Shape& shape,
                const Tensor& x,
                bool count_include_pad) {
  const bool padded = count_include_pad && integer::has_padding(s);
  if (padded && (s.end_h > 0 || s.end_w > 0)) {
    // A window that reaches beyond the padding counts the padding only, so the divisors differ.
    // They are the numbers of elements inside an image that contains the padding.
    kernels::Conv2dShape whole = s;
    whole.h += 2 * s.pad_h;
    whole.w += 2 * s.pad_w;
    whole.pad_h = whole.pad_w = 0;
    std::vector<int64_t> sides{0, s.pad_w, 0};
    if (x.rank() == 4) sides.insert(sides.begin() + 1, s.pad_h);
    return avg_pool(operation, whole, shape, pad(x, sides, sides), false);
  }
  const int64_t divisor = padded ? s.kh * s.kw : 0;
  if (std::shared_ptr<const Codes> codes = activation_codes(x)) {
    if (s.kh > kLargestWindow / s.kw) {
      throw QuantError(
          operation.type, "sums of ", s.kh * s.kw, " codes could overflow 32 bits: x ", x.shape());
    }
    auto mean = std::make_shared<CodeMean>(s, divisor, std::move(codes));
    return record<AvgPoolNode>(
        TensorAccess::from_waiting(shape, std::move(mean)), {x}, operation, s, divisor);
  }
  Tensor y = Tensor::empty(shape);
  const Floats x_floats = x.floats();
  kernels::avg_pool2d_f32(s, divisor, x_floats, y.mutable_data());
  return record<AvgPoolNode>(std::move(y), {x}, operation, s, divisor);
}

Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options) {
  const kernels::Conv2dShape s = pool2d_shape("avg_pool2d", x.shape(), options);
  return avg_pool({"avg_pool2d", "AvgPool2d", pool2d_attributes},
                  s,
                  {s.n, s.oh(), s.ow(), s.c},
                  x,
                  options.count_include_pad);
}

Tensor global_avg_pool2d(const Tensor& x) {
  if (x.rank() != 4 || x.dim(1) < 1 || x.dim(2) < 1) {
    throw ShapeError(
        "global_avg_pool2d", "x is not [N, H, W, C] with H and W of at least 1: ", x.shape());
  }
  return avg_pool2d(x, {.kernel = {x.dim(1), x.dim(2)}});
}

}  // namespace quantrain
