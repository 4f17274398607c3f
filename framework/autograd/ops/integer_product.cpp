#include "framework/autograd/ops/integer_product.hpp"

#include <algorithm>
#include <limits>

#include "framework/arithmetic/fixed_point.hpp"
#include "framework/arithmetic/quantize.hpp"
#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/stored_codes.hpp"
#include "framework/core/error.hpp"
#include "framework/kernels/float/ranges.hpp"
#include "framework/kernels/integer/integer.hpp"

namespace quantrain {
namespace {

bool is_symmetric_weight(const Tensor& weight) {
  if (weight.kind() != ValueKind::kCodes) return false;
  const Codes& codes = *weight.codes();
  const std::vector<int32_t>& zero = codes.params.zero_point;
  return codes.storage == CodeStorage::kS8 && codes.params.axis <= 0 &&
         std::all_of(zero.begin(), zero.end(), [](int32_t z) { return z == 0; });
}

/// The largest sum whose real value, in float32, is below ReLU6's bound; at least 0.
int32_t largest_below_bound(double scale) {
  int64_t lo = 0;
  int64_t hi = std::numeric_limits<int32_t>::max();
  while (lo < hi) {
    const int64_t middle = lo + (hi - lo + 1) / 2;
    if (static_cast<float>(scale * static_cast<double>(middle)) < kRelu6Bound) {
      lo = middle;
    } else {
      hi = middle - 1;
    }
  }
  return static_cast<int32_t>(lo);
}

}  // namespace

std::optional<IntegerProduct> integer_product(std::string_view operation,
                                              const Tensor& x,
                                              const Tensor& weight,
                                              const Tensor& bias,
                                              int64_t reduction) {
  IntegerProduct result;
  result.x = activation_codes(x);
  if (result.x == nullptr || !is_symmetric_weight(weight)) return std::nullopt;
  const std::shared_ptr<const Codes>& codes = weight.codes();
  const QParams& params = codes->params;
  const int64_t longest = longest_reduction(params.type);
  const auto where = [&] {
    return std::string(operation) + (Scope::path().empty() ? "" : ' ' + Scope::path());
  };
  if (reduction > longest) {
    throw QuantError(where(),
                     "sums of ",
                     reduction,
                     " products could overflow 32 bits: at most ",
                     longest,
                     " with weights of type ",
                     params.type);
  }
  const auto outputs = static_cast<size_t>(weight.dim(0));
  const float scale_x = result.x->params.scale[0];
  result.scale.reserve(outputs);
  for (size_t o = 0; o < outputs; ++o) {
    const float scale_w = params.scale[params.per_channel() ? o : 0];
    result.scale.push_back(sum_scale(scale_x, scale_w));
  }
  result.product.zero_x = result.x->stored_zero_point();
  result.product.x_bits = result.x->params.type.bits == 1 ? 1 : 8;
  result.product.weight = {
      SharedArray<int8_t>(std::shared_ptr<const int8_t>(codes, codes->s8()), weight.elements()),
      params.type.bits};
  if (!bias.defined()) return result;
  const Floats values = bias.floats();
  std::vector<int32_t> terms;
  terms.reserve(outputs);
  for (size_t o = 0; o < outputs; ++o) {
    const float scale_w = params.scale[params.per_channel() ? o : 0];
    try {
      terms.push_back(quantize_bias(values.data()[o], scale_x, scale_w));
    } catch (const QuantError& error) {
      throw QuantError(where(), "channel ", o, ": ", error.what());
    }
  }
  result.product.bias = std::move(terms);
  return result;
}

ProductAccumulators::ProductAccumulators(integer::Operation operation,
                                         std::vector<double> scale,
                                         Buffer<int32_t> values)
    : operation_(std::make_shared<const integer::Operation>(std::move(operation))),
      scale_(std::move(scale)),
      values_(std::move(values)) {}

void ProductAccumulators::to_float(float* y) const {
  kernels::dequantize_s32_f32(rows(), channels(), values_.data(), scale_.data(), y);
}

std::shared_ptr<const integer::Operation> ProductAccumulators::requantize(const QParams& y,
                                                                          Activation activation,
                                                                          uint8_t* codes,
                                                                          uint8_t* mask) const {
  integer::Requantization output = integer::requantization(scale_, y, activation);
  integer::finish(output, rows(), values_.data(), codes, gradient_mask(y, mask));
  auto complete = std::make_shared<integer::Operation>(*operation_);
  std::visit(
      [&](auto& op) {
        if constexpr (requires { op.product; }) op.product.output = std::move(output);
      },
      *complete);
  return complete;
}

// Scales are positive. So a sum has the sign of its real value, and in a channel a larger sum has a
// larger real value.
void ProductAccumulators::activation_mask(int64_t, Activation activation, uint8_t* mask) const {
  std::vector<int32_t> below_bound;
  if (activation == Activation::kRelu6) {
    for (const double scale : scale_) below_bound.push_back(largest_below_bound(scale));
  }
  const int32_t* const hi = below_bound.empty() ? nullptr : below_bound.data();
  kernels::positive_mask_s32(rows(), channels(), values_.data(), hi, mask);
}

Range ProductAccumulators::range(int64_t, Activation activation) const {
  std::vector<int32_t> min(scale_.size());
  std::vector<int32_t> max(scale_.size());
  kernels::column_extremes_s32(rows(), channels(), values_.data(), min.data(), max.data());
  Range range{__builtin_inff(), -__builtin_inff()};
  for (size_t c = 0; c < scale_.size(); ++c) {
    range.min = std::min(range.min, static_cast<float>(scale_[c] * min[c]));
    range.max = std::max(range.max, static_cast<float>(scale_[c] * max[c]));
  }
  return activated(range, activation);
}

}  // namespace quantrain
