#include "quant/prepare/quantize_values.hpp"

#include <atomic>
#include <cmath>
#include <exception>
#include <mutex>
#include <vector>

#include "framework/arithmetic/fixed_point.hpp"
#include "framework/arithmetic/quantize.hpp"
#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/stored_codes.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/kernels/float/columns.hpp"
#include "framework/kernels/float/grain.hpp"
#include "framework/kernels/float/ranges.hpp"
#include "framework/kernels/integer/integer.hpp"

namespace quantrain::quant::detail {

std::string where() { return Scope::path().empty() ? "fake_quantize" : Scope::path(); }

namespace {

[[noreturn]] void refuse_values(const std::string& place) {
  throw DataError(place, "input of the fake quantization has a NaN or an infinity", kDivergence);
}
[[noreturn]] void refuse_values() { refuse_values(where()); }

std::shared_ptr<Codes> empty_codes(int64_t n, QParams params, CodeStorage storage) {
  auto codes = std::make_shared<Codes>();
  codes->bytes = Buffer<uint8_t>(n);
  codes->storage = storage;
  codes->params = std::move(params);
  return codes;
}

kernels::QuantizeF32 kernel_params(const Codes& codes, size_t channel) {
  const QParams& params = codes.params;
  return {.scale = params.scale[channel],
          .zero_point = params.zero_point[channel],
          .qmin = params.type.qmin(),
          .qmax = params.type.qmax(),
          .offset = codes.offset()};
}

// The signs of x * factors.   docs/quantization.md (27)
Quantized quantize_signs(const Tensor& x, const Tensor& factors, const QParams& params) {
  const int64_t n = x.elements();
  const auto codes = empty_codes(n, params, CodeStorage::kS8);
  const Floats floats = x.floats();
  const float* const values = floats.data();
  const float* const factor = factors.defined() ? factors.data() : nullptr;
  const int64_t inner = factor == nullptr || n == 0 ? 1 : n / factors.elements();
  auto* const to = reinterpret_cast<int8_t*>(codes->bytes.data());
  std::atomic<bool> finite = true;
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    bool all = true;
    for (int64_t i = begin; i < end; ++i) {
      const float value = factor == nullptr ? values[i] : values[i] * factor[i / inner];
      all = all && std::isfinite(value);
      to[i] = static_cast<int8_t>(sign_code(value));
    }
    if (!all) finite = false;
  });
  if (!finite) refuse_values();
  return {Tensor::from_codes(x.shape(), codes), {}};
}

}  // namespace

Quantized quantize_floats(const Tensor& x,
                          const Tensor& factors,
                          const QParams& params,
                          CodeStorage storage,
                          bool want_mask) {
  if (params.type.is_sign()) return quantize_signs(x, factors, params);
  const int64_t n = x.elements();
  Channels channels(x.shape(), params);
  if (factors.defined() && n > 0) channels = {factors.elements(), n / factors.elements()};
  const auto codes = empty_codes(n, params, storage);
  Quantized result;
  if (want_mask) result.mask = Buffer<uint8_t>((n + 7) / 8);
  const float* const factor = factors.defined() && n > 0 ? factors.data() : nullptr;
  std::vector<kernels::QuantizeF32> q;
  q.reserve(static_cast<size_t>(channels.count));
  for (int64_t channel = 0; channel < channels.count; ++channel) {
    q.push_back(kernel_params(*codes, params.per_channel() ? static_cast<size_t>(channel) : 0));
    if (factor != nullptr) q.back().factor = factor[channel];
  }
  const Floats floats = x.floats();
  const bool finite =
      channels.count > 1
          ? kernels::quantize_channels_f32_u8(n,
                                              channels.count,
                                              channels.inner,
                                              floats,
                                              q.data(),
                                              codes->bytes.data(),
                                              result.mask.data())
          : kernels::quantize_f32_u8(n, floats, q[0], codes->bytes.data(), result.mask.data());
  if (!finite) refuse_values();
  result.y = Tensor::from_codes(x.shape(), codes);
  return result;
}

Quantized quantize_chosen(const Tensor& x,
                          const Tensor& factors,
                          const QType& type,
                          const ChooseParams& choose,
                          CodeStorage storage) {
  const int64_t rows = x.dim(0);
  const int64_t columns = x.elements() / rows;
  const auto codes = empty_codes(x.elements(), {type, 0, {}, {}}, storage);
  QParams& params = codes->params;
  params.scale.resize(static_cast<size_t>(rows));
  params.zero_point.resize(static_cast<size_t>(rows));
  const float* const factor = factors.defined() ? factors.data() : nullptr;
  const Floats floats = x.floats();
  const float* const values = floats.data();
  const std::string place = where();  // other threads do not know this thread's scope
  const auto quantize_row = [&](int64_t row) {
    const auto channel = static_cast<size_t>(row);
    const float* const from = values + row * columns;
    Range range;
    kernels::min_max_f32(columns, from, &range.min, &range.max);
    const ScaleZero chosen = choose(row, range);
    validate_channel(chosen.scale, chosen.zero_point, channel, type, place);
    params.scale[channel] = chosen.scale;
    params.zero_point[channel] = chosen.zero_point;
    kernels::QuantizeF32 q = kernel_params(*codes, channel);
    if (factor != nullptr) q.factor = factor[row];
    uint8_t* const to = codes->bytes.data() + row * columns;
    if (!kernels::quantize_f32_u8(columns, from, q, to, nullptr)) refuse_values(place);
  };
  // Several threads may find a row without parameters. The first such row is reported.
  std::mutex mutex;
  int64_t failed = rows;
  std::exception_ptr error;
  parallel_for(
      rows, kernels::row_grain(columns, kernels::kRereadGrain), [&](int64_t r, int64_t end) {
        try {
          for (; r < end; ++r) quantize_row(r);
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (r >= failed) return;
          failed = r;
          error = std::current_exception();
        }
      });
  if (error != nullptr) std::rethrow_exception(error);
  return {Tensor::from_codes(x.shape(), codes), {}};
}

Quantized requantize_waiting(const Tensor& x, const QParams& params, bool want_mask) {
  const int64_t n = x.elements();
  Buffer<uint8_t> codes(n);
  Quantized result;
  if (want_mask) result.mask = Buffer<uint8_t>((n + 7) / 8);
  auto operation = TensorAccess::waiting(x)->requantize(
      params, TensorAccess::activation(x), codes.data(), result.mask.data());
  result.y = computed_codes(x.shape(), std::move(codes), params, std::move(operation));
  return result;
}

Quantized rescale_codes(const Tensor& x, const QParams& params, bool want_mask) {
  const int64_t n = x.elements();
  const Codes& from = *x.codes();
  const Samples samples(x.shape());
  const auto op =
      integer::QuantizedLookup::rescale(samples.size, from.params, params, Activation::kNone);
  Quantized result;
  if (want_mask) {
    const Multiplier m = rescale_multiplier(from.params.scale[0], params.scale[0]);
    const CodeFlags passes = rescale_passes(from.stored_zero_point(), m, params);
    result.mask = Buffer<uint8_t>((n + 7) / 8);
    write_mask(n, result.mask.data(), [&](int64_t i) { return passes[from.u8()[i]]; });
  }
  if (from.params == params) {
    result.y = x.detach();
    return result;
  }
  Buffer<uint8_t> codes(n);
  const uint8_t* const inputs[] = {from.u8()};
  integer::Prepared(op).run(samples.count, inputs, codes.data());
  result.y = computed_codes(
      x.shape(), std::move(codes), params, std::make_shared<const integer::Operation>(op));
  return result;
}

Quantized quantize_wide(const Tensor& x, const QParams& params, bool want_mask) {
  const int64_t n = x.elements();
  const Channels channels(x.shape(), params);
  const int32_t qmin = params.type.qmin();
  const int32_t qmax = params.type.qmax();
  Quantized result;
  result.y = Tensor::empty(x.shape());
  if (want_mask) result.mask = Buffer<uint8_t>((n + 7) / 8);
  float* const y = result.y.mutable_data();
  const Floats in = x.floats();
  const float* const values = in.data();
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(values[i])) {
      throw DataError(where(),
                      "input of the fake quantization has a NaN or an infinity at element ",
                      i,
                      kDivergence);
    }
  }
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const size_t c = channels.of(i);
      const float scale = params.scale[c];
      const int32_t zero = params.zero_point[c];
      y[i] = dequantize(quantize(values[i], scale, zero, qmin, qmax), scale, zero);
      if (!want_mask) continue;
      uint8_t& bits = result.mask[i / 8];
      if (i % 8 == 0) bits = 0;
      bits |= static_cast<uint8_t>(gradient_passes(values[i], scale, zero, qmin, qmax) << i % 8);
    }
  });
  return result;
}

}  // namespace quantrain::quant::detail
