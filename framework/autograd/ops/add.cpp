#include "framework/autograd/ops/add.hpp"

#include <algorithm>

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/broadcast.hpp"
#include "framework/autograd/ops/code_function.hpp"
#include "framework/autograd/ops/stored_codes.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/core/text_stream.hpp"
#include "framework/kernels/float/elementwise.hpp"
#include "framework/kernels/float/grain.hpp"
#include "framework/kernels/float/ranges.hpp"
#include "framework/kernels/integer/integer.hpp"

namespace quantrain {
namespace {

bool of_one_shape(const std::vector<Tensor>& x) {
  return std::all_of(
      x.begin(), x.end(), [&](const Tensor& operand) { return operand.shape() == x[0].shape(); });
}

class AddNode : public Node {
 public:
  std::string_view type() const override { return "add"; }
  QuantizationTraits traits() const override {
    const bool same = of_one_shape(inputs());
    const bool constant =
        inputs().size() == 2 && may_be_constant(input(0).shape(), input(1).shape());
    return {.closes_range = true,
            .takes_constants = constant,
            .takes_data = same,
            .layer = same ? "Add" : ""};
  }
  void refuse_integers(const std::string& layer) const override {
    TextStream shapes;
    for (const Tensor& x : inputs()) shapes << (shapes.tellp() == 0 ? "" : " + ") << x.shape();
    throw GraphError(
        layer,
        of_one_shape(inputs()) ? "this addition of a constant" : "this addition that broadcasts",
        " has no integer form: ",
        shapes.str(),
        inputs().size() == 2 ? "; "
                             : "; add the constant to one operand first, in a separate layer; ",
        "a constant operand must be one number, or one for each channel (the last axis). Operands "
        "that depend "
        "on the input need the same shape");
  }
  bool reads_input(size_t) const override { return false; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    std::vector<Tensor> grads(inputs().size());
    for (size_t i = 0; i < grads.size(); ++i) {
      if (needs_grad(i)) grads[i] = reduce_to(grad_y, input(i).shape());
    }
    return grads;
  }
};

/// The exact sum of tensors of codes. requantize() rounds it once.   docs/quantization.md (11)
class CodeSum : public WaitingResult {
 public:
  CodeSum(const Samples& samples, std::vector<std::shared_ptr<const Codes>> operands)
      : samples_(samples), operands_(std::move(operands)) {}

  void to_float(float* y) const override {
    for_parts([&](int64_t begin, int64_t n) { add_up(begin, n, y + begin); });
  }

  void activation_mask(int64_t, Activation activation, uint8_t* mask) const override {
    for_parts([&](int64_t begin, int64_t n) {
      float x[kPart];
      add_up(begin, n, x);
      kernels::relu_f32(n, x, upper_bound(activation), x, mask + begin / 8);
    });
  }

  Range range(int64_t n, Activation activation) const override {
    const int64_t parts = (n + kPart - 1) / kPart;
    Buffer<float> ends(2 * parts);
    for_parts([&](int64_t begin, int64_t count) {
      float x[kPart];
      add_up(begin, count, x);
      float* const part = ends.data() + 2 * (begin / kPart);
      kernels::min_max_f32(count, x, part, part + 1);
    });
    Range range;
    kernels::min_max_f32(2 * parts, ends.data(), &range.min, &range.max);
    return activated(range, activation);
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
    const auto op = integer::QuantizedAdd::make(samples_.size, params, y, activation);
    integer::Prepared(op).run(samples_.count, inputs, codes, gradient_mask(y, mask));
    return std::make_shared<const integer::Operation>(op);
  }

 private:
  static constexpr int64_t kPart = 2048;  // so many floats stay in the first-level cache

  /// Calls f(begin, n) for parts of at most kPart elements. Each part begins at a multiple of
  /// kPart.
  template <class F>
  void for_parts(const F& f) const {
    parallel_for(operands_[0]->bytes.size(), kernels::kGrain, [&](int64_t begin, int64_t end) {
      static_assert(kernels::kGrain % kPart == 0);
      for (; begin < end; begin += kPart) f(begin, std::min(kPart, end - begin));
    });
  }

  /// y[i] = the real sum of element begin + i, for n <= kPart elements.
  void add_up(int64_t begin, int64_t n, float* y) const {
    float next[kPart];
    for (size_t i = 0; i < operands_.size(); ++i) {
      operands_[i]->view().to_float(0, begin, n, i == 0 ? y : next);
      if (i > 0) kernels::add_f32(n, y, next, y);
    }
  }

  Samples samples_;
  std::vector<std::shared_ptr<const Codes>> operands_;
};

/// Returns an undefined tensor unless every operand holds activation codes of the same shape.
Tensor add_codes(const std::vector<Tensor>& x) {
  if (!of_one_shape(x)) return Tensor();
  std::vector<std::shared_ptr<const Codes>> operands;
  for (const Tensor& operand : x) {
    operands.push_back(activation_codes(operand));
    if (operands.back() == nullptr) return Tensor();
  }
  const Shape& shape = x[0].shape();
  return TensorAccess::from_waiting(shape,
                                    std::make_shared<CodeSum>(Samples(shape), std::move(operands)));
}

/// The sum takes the memory of one of the first two operands if nobody else holds it; a recording
/// keeps it.
Tensor add_floats(const std::vector<Tensor>& x) {
  Shape shape = x[0].shape();
  for (const Tensor& operand : x) shape = broadcast_shape("add", shape, operand.shape());
  Tensor y;
  const auto values = [&](size_t i) {
    if (i < 2 && !y.defined() && x[i].shape() == shape && TensorAccess::is_sole(x[i]) &&
        !keeps_values()) {
      y = TensorAccess::take_floats(x[i]);
      return y.floats();
    }
    return broadcast_to(x[i], shape).floats();
  };
  const Floats first = values(0);
  const Floats second = values(1);
  if (!y.defined()) y = Tensor::empty(shape);
  float* const sum = y.mutable_data();
  kernels::add_f32(y.elements(), first, second, sum);
  for (size_t i = 2; i < x.size(); ++i) {
    const Floats next = values(i);
    kernels::add_f32(y.elements(), sum, next, sum);
  }
  return y;
}

}  // namespace

Tensor add(Tensor a, Tensor b) {
  std::vector<Tensor> x;
  x.reserve(2);
  x.push_back(std::move(a));
  x.push_back(std::move(b));
  return add(std::move(x));
}

Tensor add(std::vector<Tensor> x) {
  if (x.empty()) throw ShapeError("add", "there is no operand");
  if (x.size() == 1) return x[0];
  Tensor y = add_codes(x);
  if (!y.defined() && x.size() == 2)
    y = function_of_constants("add", x[0], x[1], [](double v, double c) { return v + c; });
  if (!y.defined()) y = add_floats(x);
  return record<AddNode>(std::move(y), std::move(x));
}

}  // namespace quantrain
