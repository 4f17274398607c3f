#include "framework/autograd/ops/code_function.hpp"

#include <utility>

#include "framework/autograd/tensor_access.hpp"
#include "framework/kernels/float/grain.hpp"

namespace quantrain {
namespace {

// True if c has either one number for all elements of x or one number for each channel, and no more
// axes than x.
bool is_per_channel(const Shape& x, const Shape& c) {
  if (x.rank() == 0 || c.rank() > x.rank()) return false;
  return c.elements() == 1 ||
         (c.elements() > 0 && c.elements() == x.back() && c.back() == x.back());
}

}  // namespace

std::array<float, 256> to_floats(const integer::CodeValues& values) {
  std::array<float, 256> table{};
  for (size_t q = 0; q < values.size(); ++q) table[q] = static_cast<float>(values[q]);
  return table;
}

bool may_be_constant(const Shape& a, const Shape& b) {
  return is_per_channel(a, b) || is_per_channel(b, a);
}

Tensor function_of_constants(std::string where,
                             const Tensor& a,
                             const Tensor& b,
                             double (*f)(double a, double b)) {
  const bool second = activation_codes(a) != nullptr;  // b is the constant
  const Tensor& x = second ? a : b;
  const Tensor& c = second ? b : a;
  std::shared_ptr<const Codes> codes = activation_codes(x);
  if (codes == nullptr || c.kind() != ValueKind::kFloat || !is_per_channel(x.shape(), c.shape()))
    return {};
  std::vector<integer::CodeValues> values;
  for (int64_t i = 0; i < c.elements(); ++i) {
    const double number = c.data()[i];
    values.push_back(integer::code_values(
        [&](double v) { return second ? f(v, number) : f(number, v); }, codes->params));
  }
  return TensorAccess::from_waiting(
      x.shape(),
      std::make_shared<CodeFunction>(
          std::move(where), x.shape(), std::move(codes), std::move(values)));
}

CodeFunction::CodeFunction(std::string where,
                           const Shape& shape,
                           std::shared_ptr<const Codes> x,
                           std::vector<integer::CodeValues> values)
    : where_(std::move(where)), samples_(shape), x_(std::move(x)), values_(std::move(values)) {}

void CodeFunction::to_float(float* y) const {
  std::vector<std::array<float, 256>> tables;
  for (const integer::CodeValues& values : values_) tables.push_back(to_floats(values));
  const uint8_t* const x = x_->u8();
  const auto channels = static_cast<int64_t>(tables.size());
  parallel_for(x_->bytes.size() / channels,
               kernels::row_grain(channels, kernels::kFunctionGrain),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin * channels; i < end * channels; i += channels) {
                   for (int64_t c = 0; c < channels; ++c)
                     y[i + c] = tables[static_cast<size_t>(c)][x[i + c]];
                 }
               });
}

std::shared_ptr<const integer::Operation> CodeFunction::requantize(const QParams& y,
                                                                   Activation activation,
                                                                   uint8_t* codes,
                                                                   uint8_t* mask) const {
  const auto op =
      integer::QuantizedLookup::function(samples_.size, values_, x_->params, y, activation, where_);
  const uint8_t* const inputs[] = {x_->u8()};
  integer::Prepared(op).run(samples_.count, inputs, codes);
  if (mask == nullptr) return std::make_shared<const integer::Operation>(op);
  std::vector<CodeFlags> passes;
  for (const integer::CodeValues& values : values_) {
    CodeFlags& flags = passes.emplace_back();
    const std::array<float, 256> floats = to_floats(values);
    for (size_t q = 0; q < flags.size(); ++q) {
      flags[q] =
          gradient_passes(floats[q], y.scale[0], y.zero_point[0], y.type.qmin(), y.type.qmax());
    }
  }
  const uint8_t* const x = x_->u8();
  if (passes.size() == 1) {
    write_mask(x_->bytes.size(), mask, [&](int64_t i) { return passes[0][x[i]]; });
  } else {
    write_mask(x_->bytes.size(), mask, [&](int64_t i) {
      return passes[static_cast<size_t>(i) % passes.size()][x[i]];
    });
  }
  return std::make_shared<const integer::Operation>(op);
}

}  // namespace quantrain
