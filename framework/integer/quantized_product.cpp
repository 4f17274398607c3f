#include "framework/integer/quantized_product.hpp"

#include <algorithm>
#include <cstdlib>

#include "framework/core/error.hpp"

namespace quantrain::integer {

std::optional<CodeClamp> QuantizedProduct::output_codes() const {
  if (!output) return std::nullopt;
  return CodeClamp{output->y.lo, output->y.hi};
}

Interval QuantizedProduct::first_sum(int64_t o) const {
  const int64_t first = bias.empty() ? 0 : bias[o];
  return {first, first};
}

Interval QuantizedProduct::codes_of(int64_t o, const Interval& sums) const {
  if (!output) return {0, 255};  // accumulators: no step reads them, so any range is right
  const Multiplier multiplier{output->m0[o], output->shift[o]};
  const StoredOutput& y = output->y;
  return through(sums, [&](int64_t acc) {
    return requantize(static_cast<int32_t>(acc), multiplier, y.zero_point, y.lo, y.hi);
  });
}

std::string_view QuantizedProduct::kernel(std::string_view operation,
                                          const kernels::Conv2dShape& shape) const {
  using kernels::FewBits;
  constexpr std::string_view kNames[][4] = {
      {"gemm_u8s8_s32", "gemm_u8s8_u8", "conv2d_u8s8_s32", "conv2d_u8s8_u8"},
      {"gemm_u8s4_s32", "gemm_u8s4_u8", "conv2d_u8s4_s32", "conv2d_u8s4_u8"},
      {"gemm_u8s2_s32", "gemm_u8s2_u8", "conv2d_u8s2_s32", "conv2d_u8s2_u8"},
      {"gemm_u8s1_s32", "gemm_u8s1_u8", "conv2d_u8s1_s32", "conv2d_u8s1_u8"},
      {"gemm_u1s1_s32", "gemm_u1s1_u8", "conv2d_u1s1_s32", "conv2d_u1s1_u8"}};
  const FewBits few = planned(shape).layout().few;
  const int row = few == FewBits::kHalves     ? 1
                  : few == FewBits::kQuarters ? 2
                  : few == FewBits::kEighths  ? 3
                  : few == FewBits::kBits     ? 4
                                              : 0;
  return kNames[row][(operation == "gemm" ? 0 : 2) + (output ? 1 : 0)];
}

int64_t QuantizedProduct::prepared_bytes(const kernels::Conv2dShape& shape) const {
  const kernels::PackedWeightsS8 w = planned(shape);
  return w.bytes() + kernels::ProductParams::bytes(w, output.has_value());
}
namespace {

kernels::RequantizeU8 kernel_params(const Requantization& r) {
  return {r.m0.data(), r.shift.data(), r.y.zero_point, r.y.lo, r.y.hi};
}

}  // namespace

Requantization requantization(const std::vector<double>& sum_scale,
                              const QParams& y,
                              Activation activation) {
  const StoredOutput stored = stored_output(y, activation);
  std::vector<int32_t> m0;
  std::vector<int32_t> shift;
  m0.reserve(sum_scale.size());
  shift.reserve(sum_scale.size());
  for (const double scale : sum_scale) {
    const Multiplier m = sum_multiplier(scale, y.scale[0]);
    m0.push_back(m.m0);
    shift.push_back(m.shift);
  }
  return {std::move(m0), std::move(shift), stored};
}

void validate(const Multiplier& m, std::string_view where) {
  const bool usual = m.m0 >= int32_t{1} << 30 || m.m0 == 0;
  if (!usual || m.shift < 1 || m.shift > 62) {
    throw QuantError(where,
                     "docs/quantization.md (8) does not allow multiplier ",
                     m.m0,
                     " with shift ",
                     m.shift);
  }
}

void validate_zero_point(int32_t zero_point, std::string_view where) {
  if (zero_point < 0 || zero_point > 255)
    throw QuantError(where, "zero point ", zero_point, " is not in [0, 255]");
}

void validate(const StoredOutput& y, std::string_view where) {
  validate_zero_point(y.zero_point, where);
  if (y.lo < 0 || y.lo > y.hi || y.hi > 255)
    throw QuantError(where,
                     "output codes are clamped to [",
                     y.lo,
                     ", ",
                     y.hi,
                     "], which is not a range within [0, 255]");
}

void validate(const Requantization& output, int64_t channels, std::string_view where) {
  const int64_t count = output.m0.size();
  if (count != channels || output.shift.size() != output.m0.size()) {
    throw ShapeError(where,
                     count,
                     " multipliers and ",
                     output.shift.size(),
                     " shifts for ",
                     channels,
                     " outputs");
  }
  for (int64_t o = 0; o < count; ++o) validate(Multiplier{output.m0[o], output.shift[o]}, where);
  validate(output.y, where);
}

void finish(const Requantization& output,
            int64_t rows,
            const int32_t* acc,
            uint8_t* y,
            const GradientMask& mask) {
  kernels::requantize_s32_u8(rows, output.m0.size(), acc, kernel_params(output), y, mask);
}

namespace {

/// The sums of positive weights, and of the magnitudes of negative ones.
struct WeightSums {
  int64_t positive = 0;
  int64_t negative = 0;

  void add(std::span<const int8_t> weights) {
    for (const int8_t w : weights) (w > 0 ? positive : negative) += std::abs(w);
  }
  int64_t bound(int32_t bias, int32_t zero_x) const {
    const int64_t start = std::abs(bias - int64_t{zero_x} * (positive - negative));
    return start + kLargestDifference * std::max(positive, negative);
  }
};

WeightSums channel_sums(const QuantizedProduct& p, int64_t outputs, int64_t o) {
  const int64_t length = p.weight.size() / outputs;
  WeightSums sums;
  p.weight.each(o * length, length, [&](std::span<const int8_t> weights) { sums.add(weights); });
  return sums;
}

int32_t bias_at(const QuantizedProduct& p, int64_t o) { return p.bias.empty() ? 0 : p.bias[o]; }

}  // namespace

int64_t accumulator_bound(int64_t length, const int8_t* weights, int32_t bias, int32_t zero_x) {
  WeightSums sums;
  sums.add({weights, static_cast<size_t>(length)});
  return sums.bound(bias, zero_x);
}

int64_t accumulator_bound(const QuantizedProduct& product, int64_t outputs) {
  int64_t bound = 0;
  for (int64_t o = 0; o < outputs; ++o) {
    const WeightSums sums = channel_sums(product, outputs, o);
    bound = std::max(bound, sums.bound(bias_at(product, o), product.zero_x));
  }
  return bound;
}

void check_weight_bits(int64_t bits, std::string_view where) {
  if (bits >= kLeastBits && bits <= kMostBits) return;
  throw QuantError(where, "weights have ", kLeastBits, " to ", kMostBits, " bits, got ", bits);
}

namespace {

void check_codes(const Constant& weight, std::string_view where) {
  const int bits = weight.bits();
  if (weight.surely_fits() || bits == 8) return;
  const int limit = 1 << (bits - 1);
  weight.each(0, weight.size(), [&](std::span<const int8_t> codes) {
    for (const int8_t code : codes) {
      if (bits == 1 ? std::abs(code) == 1 : code >= -limit && code < limit) continue;
      throw QuantError(where, "weight ", int{code}, " does not fit in ", bits, " bits");
    }
  });
}

}  // namespace

void OverflowCheck::operator()(const QuantizedProduct& p, int64_t outputs, std::string_view where) {
  const Constant::Id id = p.weight.id();
  all_ -= p.weight.size();
  if (all_ < 0) {
    throw QuantError(where,
                     "the products up to this one have more than 2^36 weights, where shared ones "
                     "count for each product: take fewer of them");
  }
  const auto same_weights = largest_.lower_bound({id, 0});
  const bool read_before =
      same_weights != largest_.end() && std::get<Constant::Id>(same_weights->first) == id;
  const auto [known, is_new] = largest_.try_emplace({id, outputs}, 0);
  if (!is_new) {
    int64_t bias = 0;
    for (const int32_t b : p.bias) bias = std::max(bias, std::abs(int64_t{b}));
    if (bias + 2 * kLargestDifference * known->second < kAccumulatorLimit) return;
  }
  if (read_before) {
    left_ -= p.weight.size();
    if (left_ < 0) {
      throw QuantError(where,
                       "it shares its weights, and the proof that sums fit would read more than "
                       "2^26 shared weights again, because numbers of outputs differ, or because "
                       "sums or biases are near 2^31: take fewer such products");
    }
  }
  for (int64_t o = 0; o < outputs; ++o) {
    const WeightSums sums = channel_sums(p, outputs, o);
    known->second = std::max({known->second, sums.positive, sums.negative});
    const int64_t bound = sums.bound(bias_at(p, o), p.zero_x);
    if (bound < kAccumulatorLimit) continue;
    throw QuantError(where,
                     "accumulator of channel ",
                     o,
                     " could reach ",
                     bound,
                     ", expected less than ",
                     kAccumulatorLimit);
  }
}

void validate(const QuantizedProduct& p,
              int64_t outputs,
              int64_t length,
              std::string_view where,
              OverflowCheck& overflow) {
  validate_zero_point(p.zero_x, where);
  if (p.x_bits != 1 && p.x_bits != 8) throw QuantError(where, "x_bits is 1 or 8, got ", p.x_bits);
  // Divides, because a product of extents from a file could overflow.
  const int64_t count = p.weight.size();
  if (outputs < 1 || length < 1 || count % outputs != 0 || count / outputs != length) {
    throw ShapeError(
        where, count, " weights for ", outputs, " outputs with ", length, " weights each");
  }
  if (!p.bias.empty() && p.bias.size() != outputs)
    throw ShapeError(where, p.bias.size(), " biases for ", outputs, " outputs");
  check_weight_bits(p.weight.bits(), where);
  check_codes(p.weight, where);
  overflow(p, outputs, where);
  if (p.output) validate(*p.output, outputs, where);
}

void validate(const QuantizedProduct& p, int64_t outputs, int64_t length, std::string_view where) {
  OverflowCheck overflow;
  validate(p, outputs, length, where, overflow);
}

kernels::ProductParams product_params(const kernels::PackedWeightsS8& packed,
                                      const QuantizedProduct& p) {
  if (!p.output) return {packed, p.zero_x, p.bias_data(), nullptr};
  const kernels::RequantizeU8 requantize = kernel_params(*p.output);
  return {packed, p.zero_x, p.bias_data(), &requantize};
}

void share_arrays(QuantizedProduct& p, const kernels::ProductParams& params) {
  const auto share = [&](SharedArray<int32_t>& numbers, const int32_t* at) {
    const SharedArray<int32_t> kept(params.share(at), numbers.size());
    if (kept == numbers) numbers = kept;
  };
  share(p.bias, params.start(0));
  if (!p.output) return;
  const kernels::RequantizeU8 requantize = params.requantize(0);
  share(p.output->m0, requantize.m0);
  share(p.output->shift, requantize.shift);
}

std::vector<const SharedArray<int32_t>*> own_arrays(const QuantizedProduct& p,
                                                    const kernels::PackedWeightsS8& planned) {
  std::vector<const SharedArray<int32_t>*> own;
  if (p.zero_x != planned.layout().offset) own.push_back(&p.bias);
  if (!p.output) return own;
  const Requantization& output = *p.output;
  const int64_t largest = planned.largest_sum(p.bias_data());
  bool has_zero = false, has_vanishing = false;
  for (int64_t o = 0; o < output.m0.size(); ++o) {
    if (!kernels::ProductParams::vanishes({output.m0[o], output.shift[o]}, largest)) continue;
    (output.m0[o] == 0 ? has_zero : has_vanishing) = true;
  }
  if (has_vanishing) own.push_back(&output.m0);
  if (has_zero || has_vanishing) own.push_back(&output.shift);
  return own;
}

}  // namespace quantrain::integer
