#include "framework/autograd/ops/batch_norm_pass.hpp"

#include <cmath>
#include <memory>
#include <optional>
#include <string>

#include "framework/autograd/node.hpp"
#include "framework/core/error.hpp"
#include "framework/kernels/float/columns.hpp"
#include "framework/kernels/float/ranges.hpp"
#include "framework/kernels/integer/integer.hpp"

namespace quantrain::detail {
namespace {

void update(Tensor& running, const Channels& batch, float momentum) {
  float* const r = running.mutable_data();
  for (size_t i = 0; i < batch.size(); ++i) r[i] = (1.0f - momentum) * r[i] + momentum * batch[i];
}

// A single NaN would stay in the running statistics for good.
void check_finite(const Channels& batch, const char* what) {
  for (size_t i = 0; i < batch.size(); ++i) {
    if (std::isfinite(batch[i])) continue;
    throw DataError(Scope::path().empty() ? "batch_norm" : Scope::path(),
                    "the batch's ",
                    what,
                    " of channel ",
                    i,
                    " is ",
                    batch[i],
                    ", so the running statistics were not updated: the batch contains NaN, an "
                    "infinity or numbers that are too large");
  }
}

}  // namespace

std::vector<double> scales_of_sums(const Tensor& x) {
  if (x.kind() != ValueKind::kWaiting || TensorAccess::activation(x) != Activation::kNone)
    return {};
  std::optional<WaitingResult::Sums> sums = TensorAccess::waiting(x)->sums();
  const bool fits = sums && std::ssize(sums->scale) == x.dim(-1);  // a reshape may change the axis
  return fits ? std::move(sums->scale) : std::vector<double>();
}

Moments moments(const Tensor& x, const std::vector<double>& scale, bool with_range) {
  const int64_t c = x.dim(-1);
  const int64_t n = values_per_channel(x);
  Moments m{Channels(static_cast<size_t>(c)), Channels(static_cast<size_t>(c))};
  Channels min(with_range ? m.mean.size() : 0);
  Channels max(min.size());
  float* const low = with_range ? min.data() : nullptr;
  if (!scale.empty()) {
    Tensor sums = x;
    kernels::column_moments_s32_f32(
        n, c, scale.data(), sums.mutable_data(), m.mean.data(), m.variance.data(), low, max.data());
  } else {
    const Floats values = x.floats();
    kernels::column_moments_f32(n, c, values, m.mean.data(), m.variance.data(), low, max.data());
  }
  m.range.reserve(min.size());
  for (size_t i = 0; i < min.size(); ++i) m.range.push_back({min[i], max[i]});
  return m;
}

Statistics batch_statistics(const Moments& x,
                            int64_t n,
                            const Tensor& factor,
                            const Tensor& shift,
                            Running running,
                            const BatchNormOptions& options) {
  Statistics s{x.mean, Channels(x.mean.size())};
  Channels mean(x.mean.size());
  Channels variance = x.variance;
  const float* const factors = factor.defined() ? factor.data() : nullptr;
  const float* const shifts = shift.defined() ? shift.data() : nullptr;
  for (size_t i = 0; i < variance.size(); ++i) {
    const float f = factors != nullptr ? factors[i] : 1.0f;
    mean[i] = s.mean[i] / f + (shifts != nullptr ? shifts[i] : 0.0f);
    variance[i] /= f * f;
    s.inverse_deviation[i] = 1.0f / (f * std::sqrt(variance[i] + options.epsilon));
    variance[i] *= static_cast<float>(n) / static_cast<float>(n - 1);
  }
  check_finite(mean, "mean");
  check_finite(variance, "variance");
  update(running.mean, mean, options.momentum);
  update(running.variance, variance, options.momentum);
  return s;
}

Statistics running_statistics(const Tensor& mean,
                              const Tensor& variance,
                              const BatchNormOptions& options) {
  const float* const means = mean.data();
  const float* const variances = variance.data();
  Statistics s{Channels(means, means + mean.elements()),
               Channels(static_cast<size_t>(variance.elements()))};
  for (size_t i = 0; i < s.inverse_deviation.size(); ++i) {
    s.inverse_deviation[i] = 1.0f / std::sqrt(variances[i] + options.epsilon);
  }
  return s;
}

Pass::Pass(const Statistics& s,
           const Tensor& gamma,
           const Tensor& beta,
           const BatchNormOptions& options)
    : options_(options), scale_(s.mean.size()), shift_(s.mean.size()) {
  const float* const gammas = gamma.data();
  const float* const betas = beta.data();
  for (size_t i = 0; i < s.mean.size(); ++i) {
    scale_[i] = gammas[i] * s.inverse_deviation[i];
    shift_[i] = betas[i] - s.mean[i] * scale_[i];
  }
}

Tensor Pass::run(const Tensor& x,
                 const std::vector<Range>& range,
                 bool in_place,
                 Mask* mask) const {
  const bool quantizes = options_.quantize != nullptr && x.elements() > 0;
  if (mask != nullptr && (quantizes || options_.activation != Activation::kNone))
    *mask = Mask((x.elements() + 7) / 8);
  uint8_t* const bits = mask == nullptr ? nullptr : mask->data();
  return quantizes ? codes(x, options_.quantize(result_range(range)), bits)
                   : floats(x, in_place, bits);
}

float Pass::bound() const {
  return options_.activation == Activation::kNone ? 0.0f : upper_bound(options_.activation);
}

// Scaling and shifting keep or reverse the order of the floats, also after rounding. So the range
// of the results is that of the results at both ends.
Range Pass::result_range(const std::vector<Range>& range) const {
  std::vector<float> ends;
  ends.reserve(2 * range.size());
  for (const Range& r : range) ends.push_back(r.min);
  for (const Range& r : range) ends.push_back(r.max);
  kernels::column_affine_f32(
      2, columns(), ends.data(), scale_.data(), shift_.data(), 0.0f, ends.data(), nullptr);
  Range all;
  kernels::min_max_f32(2 * columns(), ends.data(), &all.min, &all.max);
  return activated(all, options_.activation);
}

Tensor Pass::floats(const Tensor& x, bool in_place, uint8_t* mask) const {
  const int64_t rows = values_per_channel(x);
  Tensor y = in_place ? TensorAccess::take_floats(x) : Tensor::empty(x.shape());
  const Floats from = in_place ? y.floats() : x.floats();
  kernels::column_affine_f32(
      rows, columns(), from, scale_.data(), shift_.data(), bound(), y.mutable_data(), mask);
  return y;
}

Tensor Pass::codes(const Tensor& x, const QParams& params, uint8_t* mask) const {
  const std::string where = Scope::path().empty() ? "batch_norm" : Scope::path();
  validate(params, where);
  if (params.per_channel() || params.type.bits > 8)
    throw QuantError(where, "a result is quantized per tensor to at most 8 bits, not ", params);
  auto codes = std::make_shared<Codes>(Codes{Buffer<uint8_t>(x.elements()), {}, params});
  const kernels::QuantizeF32 q{.scale = params.scale[0],
                               .zero_point = params.zero_point[0],
                               .qmin = params.type.qmin(),
                               .qmax = params.type.qmax(),
                               .offset = codes->offset(),
                               .bound = bound()};
  const Floats from = x.floats();
  if (!kernels::quantize_columns_f32_u8(values_per_channel(x),
                                        columns(),
                                        from,
                                        scale_.data(),
                                        shift_.data(),
                                        q,
                                        codes->bytes.data(),
                                        mask))
    throw DataError(where, "the result has a NaN or an infinity and cannot be quantized");
  return Tensor::from_codes(x.shape(), std::move(codes));
}

}  // namespace quantrain::detail
