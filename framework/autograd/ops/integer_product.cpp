#include "framework/autograd/ops/integer_product.hpp"

#include <algorithm>

#include "framework/arithmetic/fixed_point.hpp"
#include "framework/arithmetic/quantize.hpp"
#include "framework/autograd/ops/stored_codes.hpp"
#include "framework/core/error.hpp"

namespace quantrain {
namespace {

/// Longest sum that stays in 32 bits with a bias of 2^30; 33,000 for narrow 8-bit weights.
/// docs/quantization.md (7)
int64_t longest_reduction(const QType& weight) {
  const int64_t largest = std::max(weight.qmax(), -weight.qmin());
  return std::min<int64_t>(33000, ((int64_t{1} << 30) - 1) / (255 * largest));
}

bool is_symmetric_weight(const Tensor& weight) {
  if (weight.kind() != ValueKind::kCodes) return false;
  const Codes& codes = *weight.codes();
  const std::vector<int32_t>& zero = codes.params.zero_point;
  return codes.storage == CodeStorage::kS8 && codes.params.axis <= 0 &&
         std::all_of(zero.begin(), zero.end(), [](int32_t z) { return z == 0; });
}

}  // namespace

std::optional<IntegerProduct> integer_product(std::string_view operation,
                                              const Tensor& x,
                                              const Tensor& weight,
                                              const Tensor& bias,
                                              int64_t reduction) {
  IntegerProduct product;
  product.x = activation_codes(x);
  if (product.x == nullptr || !is_symmetric_weight(weight)) return std::nullopt;
  product.weight = weight.codes();
  const QParams& params = product.weight->params;
  const int64_t longest = longest_reduction(params.type);
  if (reduction > longest) {
    throw QuantError(operation,
                     "sums of ",
                     reduction,
                     " products could overflow 32 bits: at most ",
                     longest,
                     " with weights of type ",
                     params.type);
  }
  const auto outputs = static_cast<size_t>(weight.dim(0));
  const float scale_x = product.x->params.scale[0];
  for (size_t o = 0; o < outputs; ++o) {
    const float scale_w = params.scale[params.per_channel() ? o : 0];
    product.scale.push_back(sum_scale(scale_x, scale_w));
  }
  if (!bias.defined()) return product;
  const Floats values = bias.floats();
  for (size_t o = 0; o < outputs; ++o) {
    const float scale_w = params.scale[params.per_channel() ? o : 0];
    try {
      product.terms.push_back(quantize_bias(values.data()[o], scale_x, scale_w));
    } catch (const QuantError& error) {
      throw QuantError(operation, "channel ", o, ": ", error.what());
    }
  }
  return product;
}

}  // namespace quantrain
