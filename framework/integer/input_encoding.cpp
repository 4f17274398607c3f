#include "framework/integer/input_encoding.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>

#include "framework/arithmetic/quantize.hpp"
#include "framework/arithmetic/stored.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/core/rounding.hpp"
#include "framework/kernels/dispatch/dispatch.hpp"
#include "framework/kernels/integer/integer.hpp"

namespace quantrain::integer {
namespace {

constexpr int64_t kGrain = 1 << 14;  // elements of a task
constexpr int64_t kBlock = 1 << 10;  // divides kGrain; z and mask of a block are on the stack

/// z of elements [first, first + n).
void feature_values(
    const float* x, int64_t first, int64_t n, const InputFeatures& features, float* z) {
  const int64_t count = features.size();
  int64_t f = first % count;
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<size_t>(f);
    z[i] = feature_value(x[first + i], features.offset[at], features.scale[at]);
    f = f + 1 == count ? 0 : f + 1;
  }
}

}  // namespace

void validate(const InputFeatures& features, int64_t extent, std::string_view where) {
  if (features.empty()) return;
  if (features.offset.size() != features.scale.size() || features.size() != extent) {
    throw QuantError(where,
                     features.offset.size(),
                     " offsets and ",
                     features.scale.size(),
                     " scales of features, expected one for each of the ",
                     extent,
                     " indices of the last axis");
  }
  for (size_t f = 0; f < features.scale.size(); ++f) {
    const float offset = features.offset[f];
    const float scale = features.scale[f];
    if (!std::isfinite(offset) || !std::isfinite(scale) || !(scale > 0.0f)) {
      throw QuantError(where,
                       "feature ",
                       f,
                       " has offset ",
                       offset,
                       " and scale ",
                       scale,
                       ": both must be finite, and the scale must be positive");
    }
  }
}

QParams input_params(Range range, std::string_view where) {
  if (!std::isfinite(range.min) || !std::isfinite(range.max) || !(range.min < range.max)) {
    throw QuantError(
        where, "the range [", range.min, ", ", range.max, "] of the input is empty or not finite");
  }
  const DefaultRounding rounding;
  const QType type{.bits = 8, .is_signed = false, .narrow = false};
  const QParams params = choose_params({&range, 1}, -1, type, QScheme::kAffine, where);
  const auto code = [&](float x) {
    return quantize(x, params.scale[0], params.zero_point[0], type.qmin(), type.qmax());
  };
  const int32_t codes = code(range.max) - code(range.min) + 1;
  if (codes < kLeastCodes) {
    throw QuantError(where,
                     "the range [",
                     range.min,
                     ", ",
                     range.max,
                     "] is too far from 0: real 0 must have a code, too, so only ",
                     codes,
                     " of the ",
                     type.levels(),
                     " codes lie within the range, fewer than ",
                     kLeastCodes,
                     ". Subtract an offset: declare features (InputFeatures) with offset ",
                     range.min,
                     " and scale 1, or those of fit_mean_std(), and the range of the shifted "
                     "values, such as [0, ",
                     range.max - range.min,
                     ']');
  }
  return params;
}

int64_t encode_input(std::span<const float> x,
                     const QParams& params,
                     const InputFeatures& features,
                     std::span<uint8_t> codes,
                     std::string_view where,
                     uint8_t* mask) {
  if (codes.size() != x.size())
    throw ShapeError(where, codes.size(), " codes for ", x.size(), " values");
  validate(params, where);
  if (params.per_channel() || params.type.bits > 8)
    throw QuantError(where, "codes of an input have one scale and at most 8 bits, got ", params);
  validate(features, features.size(), where);
  const auto n = static_cast<int64_t>(x.size());
  if (!features.empty() && n % features.size() != 0)
    throw ShapeError(where, n, " values are not a whole number of rows of ", features.size());
  const kernels::QuantizeF32 q{.scale = params.scale[0],
                               .zero_point = params.zero_point[0],
                               .qmin = params.type.qmin(),
                               .qmax = params.type.qmax(),
                               .offset = stored_offset(params.type)};
  const kernels::IntegerTable& kernels = kernels::integer_table();
  std::atomic<bool> finite = true;
  std::atomic<int64_t> outside = 0;
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    float z[kBlock];
    uint8_t own_mask[kBlock / 8];
    int64_t inside = 0;
    bool all_finite = true;
    for (int64_t first = begin; first < end; first += kBlock) {
      const int64_t count = std::min(kBlock, end - first);
      if (!features.empty()) feature_values(x.data(), first, count, features, z);
      const float* const from = features.empty() ? x.data() + first : z;
      uint8_t* const bits = mask != nullptr ? mask + first / 8 : own_mask;
      bool block_finite = true;
      kernels.quantize_f32_u8(count, from, q, codes.data() + first, bits, &block_finite);
      all_finite = all_finite && block_finite;
      for (int64_t i = 0; i < (count + 7) / 8; ++i) inside += std::popcount(bits[i]);
    }
    if (!all_finite) finite.store(false, std::memory_order_relaxed);
    outside.fetch_add(end - begin - inside, std::memory_order_relaxed);
  });
  if (!finite) throw DataError(where, "the input has a NaN or an infinity");
  return outside;
}

}  // namespace quantrain::integer
