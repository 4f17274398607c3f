#include "quant/prepare/fake_quantize_op.hpp"

#include <cmath>
#include <exception>
#include <mutex>
#include <vector>

#include "framework/arithmetic/fixed_point.hpp"
#include "framework/arithmetic/quantize.hpp"
#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/masked.hpp"
#include "framework/autograd/ops/stored_codes.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/kernels/float/columns.hpp"
#include "framework/kernels/float/grain.hpp"
#include "framework/kernels/float/ranges.hpp"
#include "framework/kernels/integer/integer.hpp"

namespace quantrain::quant {
namespace {

constexpr int64_t kGrain = 1 << 14;  // a multiple of 8: no two blocks share a byte of the mask

std::string where() { return Scope::path().empty() ? "fake_quantize" : Scope::path(); }

/// The layout of x: [outer, count, inner], with one scale and zero point for each index in `count`.
struct Channels {
  int64_t count = 1;
  int64_t inner = 1;

  Channels(int64_t number, int64_t length) : count(number), inner(length) {}
  Channels(const Shape& shape, const QParams& params) {
    if (!params.per_channel()) {
      inner = std::max<int64_t>(shape.elements(), 1);
      return;
    }
    count = shape[params.axis];
    for (int axis = params.axis + 1; axis < shape.rank(); ++axis) inner *= shape[axis];
  }
  size_t of(int64_t i) const { return static_cast<size_t>(i / inner % count); }
};

struct Quantized {
  Tensor y;
  Buffer<uint8_t> mask;  // empty if no gradient is stopped here
};

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

// Quantizes x * factors, or x if `factors` is undefined.
Quantized quantize_floats(const Tensor& x,
                          const Tensor& factors,
                          const QParams& params,
                          CodeStorage storage,
                          bool want_mask) {
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

// Quantizes x * factors, or x if `factors` is undefined, with the parameters that `choose` finds
// for each index of the first axis.
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

// Converts codes to other parameters. Returns x's own codes if the parameters are equal.
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

// Quantizes to more than 8 bits. Such codes are not stored: the result holds floats.
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

class FakeQuantizeNode : public Node {
 public:
  FakeQuantizeNode(QParams params, const FakeQuantizeOptions& options, Buffer<uint8_t> mask)
      : params_(std::move(params)), options_(options), mask_(std::move(mask)) {}

  std::string_view type() const override { return "fake_quantize"; }

  Attributes attributes() const override {
    return {{"bits", int64_t{params_.type.bits}},
            {"signed", int64_t{params_.type.is_signed}},
            {"narrow", int64_t{params_.type.narrow}},
            {"axis", int64_t{params_.axis}}};
  }

  void refuse_integers(const std::string& layer) const override {
    if (params_.type.bits > 8) {
      throw QuantError(layer,
                       "activations of ",
                       params_.type.bits,
                       " bits exist in simulation only: the integer engine has 2 to 8");
    }
    Node::refuse_integers(layer);
  }
  bool reads_input(size_t i) const override { return i == 0 && inputs().size() == 2; }
  std::vector<Tensor> backward(Tensor grad_y) override {
    std::vector<Tensor> grads(inputs().size());
    if (inputs().size() == 2 && needs_grad(1)) grads[1] = grad_scale(grad_y);
    if (needs_grad(0)) grads[0] = passed(grad_y);
    return grads;
  }

 protected:
  /// The gradient of the values that were quantized.
  Tensor passed(const Tensor& grad_y) const { return masked(grad_y, mask_); }

 private:
  struct Sums {
    double slopes = 0.0;      // of grad_y d y / d scale
    double magnitudes = 0.0;  // of |x|
  };

  // The size of the blocks is constant, and the blocks' sums are added in order. So any number of
  // threads gives the same bits.
  std::vector<Sums> sums(const Tensor& grad_y) const {
    const Tensor& x = input(0);
    const Channels channels(x.shape(), params_);
    const int64_t n = x.elements();
    const size_t count = params_.scale.size();
    const int64_t blocks = (n + kGrain - 1) / kGrain;
    std::vector<Sums> partial(static_cast<size_t>(blocks) * count);
    const Floats values = x.floats();
    const float* const g = grad_y.data();
    parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
      Sums* const of_block = &partial[static_cast<size_t>(begin / kGrain) * count];
      while (begin < end) {  // a run of values that share a scale
        const int64_t next = std::min(end, (begin / channels.inner + 1) * channels.inner);
        const size_t c = channels.of(begin);
        add_run(next - begin, values.data() + begin, g + begin, c, of_block[c]);
        begin = next;
      }
    });
    std::vector<Sums> total(count);
    for (size_t i = 0; i < partial.size(); ++i) {
      total[i % count].slopes += partial[i].slopes;
      total[i % count].magnitudes += partial[i].magnitudes;
    }
    return total;
  }

  void add_run(int64_t n, const float* x, const float* g, size_t c, Sums& to) const {
    const float scale = params_.scale[c];
    const auto zero = static_cast<float>(params_.zero_point[c]);
    const auto qmin = static_cast<float>(params_.type.qmin());
    const auto qmax = static_cast<float>(params_.type.qmax());
    Sums local = to;
    for (int64_t i = 0; i < n; ++i) {
      const float ratio = x[i] / scale;
      const float rounded = half_even(ratio);
      const float code = rounded + zero;
      const float slope = code < qmin ? qmin - zero : code > qmax ? qmax - zero : rounded - ratio;
      local.slopes += static_cast<double>(g[i]) * static_cast<double>(slope);
      local.magnitudes += std::abs(static_cast<double>(x[i]));
    }
    to = local;
  }

  Tensor grad_scale(const Tensor& grad_y) const {
    const Channels channels(input(0).shape(), params_);
    const int64_t n = input(0).elements();
    const int32_t qmax = params_.type.qmax();
    const int64_t sharing = n / std::max<int64_t>(options_.samples * channels.count, 1);
    const double factor =
        1.0 / std::sqrt(static_cast<double>(std::max<int64_t>(sharing, 1)) * qmax);
    const double values = static_cast<double>(n) / static_cast<double>(channels.count);
    Tensor grad = Tensor::empty(input(1).shape());
    float* const out = grad.mutable_data();
    auto least = std::make_shared<std::vector<float>>(params_.scale);
    const std::vector<Sums> total = sums(grad_y);
    for (size_t c = 0; c < total.size(); ++c) {
      out[c] = static_cast<float>(total[c].slopes * factor);
      const int32_t zero = params_.zero_point[c];
      const int32_t farthest = std::max(qmax - zero, zero - params_.type.qmin());
      if (total[c].magnitudes > 0.0)
        (*least)[c] = learned_scale(static_cast<float>(total[c].magnitudes / (values * farthest)));
    }
    TensorAccess::set_least(input(1), std::move(least));
    return grad;
  }

  QParams params_;
  FakeQuantizeOptions options_;
  Buffer<uint8_t> mask_;
};

// Inputs x [C, ...] and factors [C].
class ScaledFakeQuantizeNode : public FakeQuantizeNode {
 public:
  using FakeQuantizeNode::FakeQuantizeNode;
  bool reads_input(size_t i) const override { return needs_grad(1 - i); }
  std::vector<Tensor> backward(Tensor grad_y) override {
    std::vector<Tensor> grads(2);
    grad_y = passed(grad_y);
    const int64_t rows = input(1).elements();
    const int64_t columns = rows == 0 ? 0 : grad_y.elements() / rows;
    if (needs_grad(1)) {
      grads[1] = Tensor::empty(input(1).shape());
      const Floats x = input(0).floats();
      kernels::row_dots_f32(rows, columns, grad_y.data(), x, grads[1].mutable_data());
    }
    if (needs_grad(0)) {
      grads[0] = TensorAccess::overwritable(grad_y);
      const Floats factors = input(1).floats();
      kernels::scale_rows_f32(rows, columns, grad_y.data(), factors, grads[0].mutable_data());
    }
    return grads;
  }
};

void check_storage(const QType& type, const FakeQuantizeOptions& options) {
  if (options.storage == CodeStorage::kS8 && !type.is_signed)
    throw QuantError(where(), "unsigned codes cannot be stored as signed bytes");
}

void check_params(const Tensor& x, const QParams& params, const FakeQuantizeOptions& options) {
  validate(params, where().c_str());
  if (params.per_channel()) {
    if (params.axis >= x.rank() ||
        x.dim(params.axis) != static_cast<int64_t>(params.scale.size())) {
      throw ShapeError(where(),
                       "parameters of ",
                       params.scale.size(),
                       " channels along axis ",
                       params.axis,
                       " do not fit x ",
                       x.shape());
    }
  }
  check_storage(params.type, options);
}

void check_factor(const Tensor& x, const Tensor& factor) {
  if (x.rank() < 1 || !(factor.shape() == Shape{x.dim(0)})) {
    throw ShapeError(where(), "factor ", factor.shape(), " is not [C] of x [C, ...] ", x.shape());
  }
}

// The values of the codes, as floats.
Tensor decoded(const Tensor& codes) {
  Tensor y = Tensor::empty(codes.shape());
  codes.codes()->to_float(codes.shape(), y.mutable_data());
  return y;
}

// Activation codes and results of integer operations are requantized by the deployed operations.
bool runs_on_integers(const Tensor& x, const QParams& params, const FakeQuantizeOptions& options) {
  const bool activation = options.codes && params.type.bits <= 8 && !params.per_channel() &&
                          options.storage == CodeStorage::kU8;
  return activation && (x.kind() == ValueKind::kWaiting || activation_codes(x) != nullptr);
}

Quantized quantize_integers(const Tensor& x, const QParams& params, bool want_mask) try {
  return x.kind() == ValueKind::kWaiting ? requantize_waiting(x, params, want_mask)
                                         : rescale_codes(x, params, want_mask);
} catch (const QuantError& error) {  // a multiplier's error does not name the layer
  throw QuantError(where(), error.what(), kDivergence);
}

Quantized quantize_any(const Tensor& x,
                       const QParams& params,
                       const FakeQuantizeOptions& options,
                       bool want_mask) {
  if (runs_on_integers(x, params, options)) return quantize_integers(x, params, want_mask);
  if (params.type.bits > 8) return quantize_wide(x, params, want_mask);
  Quantized result = quantize_floats(x, Tensor(), params, options.storage, want_mask);
  if (!options.codes) result.y = decoded(result.y);
  return result;
}

Tensor run(const Tensor& x,
           const Tensor& scale,
           const QParams& params,
           const FakeQuantizeOptions& options) {
  check_params(x, params, options);
  std::vector<Tensor> inputs{x};
  if (scale.defined()) inputs.push_back(scale);
  Quantized result = quantize_any(x, params, options, options.clamped && needs_gradient(inputs));
  return record<FakeQuantizeNode>(
      std::move(result.y), std::move(inputs), params, options, std::move(result.mask));
}

}  // namespace

Tensor fake_quantize(const Tensor& x, const QParams& params, const FakeQuantizeOptions& options) {
  return run(x, Tensor(), params, options);
}

Tensor fake_quantize_scaled(const Tensor& x,
                            const Tensor& factor,
                            const QParams& params,
                            const FakeQuantizeOptions& options) {
  check_params(x, params, options);
  check_factor(x, factor);
  if (params.type.bits > 8 || params.axis > 0) {
    throw QuantError(where(),
                     "scaled values need at most 8 bits and axis -1 or 0, got ",
                     params.type.bits,
                     " bits and axis ",
                     params.axis);
  }
  const bool want_mask = options.clamped && needs_gradient({x, factor});
  Quantized result = quantize_floats(x, factor, params, options.storage, want_mask);
  if (!options.codes) result.y = decoded(result.y);
  return record<ScaledFakeQuantizeNode>(
      std::move(result.y), {x, factor}, params, options, std::move(result.mask));
}

Tensor fake_quantize_chosen(const Tensor& x,
                            const Tensor& factor,
                            const QType& type,
                            const ChooseParams& choose,
                            const FakeQuantizeOptions& options) {
  validate(type, where());
  if (type.bits > 8)
    throw QuantError(where(), "chosen parameters need at most 8 bits, got ", type.bits);
  if (options.clamped) throw QuantError(where(), "chosen parameters need options.clamped = false");
  check_storage(type, options);
  if (factor.defined()) check_factor(x, factor);
  if (x.rank() < 1 || x.elements() == 0)
    throw ShapeError(where(), "x ", x.shape(), " has no element to choose parameters from");
  Quantized result = quantize_chosen(x, factor, type, choose, options.storage);
  QParams params = result.y.codes()->params;
  if (!options.codes) result.y = decoded(result.y);
  if (!factor.defined()) {
    return record<FakeQuantizeNode>(
        std::move(result.y), {x}, std::move(params), options, std::move(result.mask));
  }
  return record<ScaledFakeQuantizeNode>(
      std::move(result.y), {x, factor}, std::move(params), options, std::move(result.mask));
}

void make_positive(Tensor& scale) {
  const float* const values = scale.data();
  const auto changes = [](float value) { return value < kSmallestLearnedScale; };
  if (std::none_of(values, values + scale.elements(), changes)) return;
  float* const written = scale.mutable_data();
  std::transform(written, written + scale.elements(), written, learned_scale);
}

Tensor fake_quantize_learned(const Tensor& x,
                             const Tensor& scale,
                             const QParams& params,
                             const FakeQuantizeOptions& options) {
  if (scale.elements() != static_cast<int64_t>(params.scale.size())) {
    throw ShapeError(
        where(), "learned scale ", scale.shape(), " for ", params.scale.size(), " channels");
  }
  return run(x, scale, params, options);
}

}  // namespace quantrain::quant
