#include "quant/prepare/fake_quantize_op.hpp"

#include <cmath>
#include <utility>
#include <vector>

#include "framework/arithmetic/quantize.hpp"
#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/masked.hpp"
#include "framework/autograd/ops/stored_codes.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/kernels/float/columns.hpp"
#include "quant/prepare/methods/lsq.hpp"
#include "quant/prepare/quantize_values.hpp"

namespace quantrain::quant {
namespace {

using detail::Channels;
using detail::kGrain;
using detail::Quantized;
using detail::where;

class FakeQuantizeNode : public Node {
 public:
  /// learning: of the inputs after the first one. Their values are read now, and not kept.
  FakeQuantizeNode(QParams params,
                   const FakeQuantizeOptions& options,
                   Buffer<uint8_t> mask,
                   Learning learning = {})
      : params_(std::move(params)),
        options_(options),
        mask_(std::move(mask)),
        learning_(std::move(learning)) {
    for (LearnedParameter& parameter : learning_.parameters) {
      const Tensor value = std::exchange(parameter.value, Tensor());
      present_.emplace_back(value.data(), value.data() + value.elements());
    }
  }

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
                       " bits exist in simulation only: the integer engine has ",
                       kLeastBits,
                       " to ",
                       kMostBits);
    }
    Node::refuse_integers(layer);
  }
  bool reads_input(size_t i) const override { return i == 0 && !learning_.parameters.empty(); }
  std::vector<Tensor> backward(Tensor grad_y) override {
    std::vector<Tensor> grads(1 + learning_.parameters.size());
    for (size_t i = 1; i < grads.size(); ++i) {
      if (needs_grad(i)) grads[i] = grad_parameter(i, grad_y);
    }
    if (!needs_grad(0)) return grads;
    grads[0] = learning_.ends_at_codes ? passed_between_ends(grad_y) : passed(grad_y);
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

  /// The limits of a channel's codes, relative to the zero point.
  struct Ends {
    float scale, zero, low, high;
  };
  Ends ends(size_t c) const {
    const auto zero = static_cast<float>(params_.zero_point[c]);
    return {params_.scale[c],
            zero,
            static_cast<float>(params_.type.qmin()) - zero,
            static_cast<float>(params_.type.qmax()) - zero};
  }

  /// Calls run(begin, end, channel) for runs of values that share a scale, block by block. The size
  /// of the blocks is constant.
  template <class Run>
  void for_runs(const Run& run) const {
    const Channels channels(input(0).shape(), params_);
    parallel_for(input(0).elements(), kGrain, [&](int64_t begin, int64_t end) {
      while (begin < end) {
        const int64_t next = std::min(end, (begin / channels.inner + 1) * channels.inner);
        run(begin, next, channels.of(begin));
        begin = next;
      }
    });
  }

  // The blocks' sums are added in order. So any number of threads gives the same bits.
  std::vector<Sums> sums(const std::vector<LearnedSlope>& slopes, const Tensor& grad_y) const {
    const size_t count = params_.scale.size();
    const int64_t blocks = (input(0).elements() + kGrain - 1) / kGrain;
    std::vector<Sums> partial(static_cast<size_t>(blocks) * count);
    const Floats values = input(0).floats();
    const float* const x = values.data();
    const float* const g = grad_y.data();
    for_runs([&](int64_t begin, int64_t end, size_t c) {
      const auto add = [&](const auto& slope) {
        Sums& to = partial[static_cast<size_t>(begin / kGrain) * count + c];
        add_run(end - begin, x + begin, g + begin, slope, to);
      };
      const LearnedSlope of = slopes[c];
      const Ends limits = ends(c);
      if (params_.type.is_sign()) {
        add([](float v) { return static_cast<float>(sign_code(v)); });  // (27)
      } else if (learning_.ends_at_codes) {
        add([=](float v) {
          const float ratio = v / limits.scale;
          return ratio < limits.low ? of.below : ratio >= limits.high ? of.above : 0.0f;
        });
      } else {
        add([=](float v) {
          const float ratio = v / limits.scale;
          const float rounded = half_even(ratio);
          return rounded < limits.low    ? of.below
                 : rounded > limits.high ? of.above
                                         : of.inside * (rounded - ratio);
        });
      }
    });
    std::vector<Sums> total(count);
    for (size_t i = 0; i < partial.size(); ++i) {
      total[i % count].slopes += partial[i].slopes;
      total[i % count].magnitudes += partial[i].magnitudes;
    }
    return total;
  }

  /// slope(v): d y / d parameter for x = v.
  template <class Slope>
  static void add_run(int64_t n, const float* x, const float* g, const Slope& slope, Sums& to) {
    Sums local = to;
    for (int64_t i = 0; i < n; ++i) {
      local.slopes += static_cast<double>(g[i]) * static_cast<double>(slope(x[i]));
      local.magnitudes += std::abs(static_cast<double>(x[i]));
    }
    to = local;
  }

  // All values that pass have codes in the range, so there is no mask.
  Tensor passed_between_ends(const Tensor& grad_y) const {
    const Floats values = input(0).floats();
    const float* const x = values.data();
    Tensor grad = TensorAccess::overwritable(grad_y);
    const Floats from = grad_y.floats();
    float* const to = grad.mutable_data();
    for_runs([&](int64_t begin, int64_t end, size_t c) {
      const Ends limits = ends(c);
      for (int64_t i = begin; i < end; ++i) {
        const float ratio = x[i] / limits.scale;
        to[i] = ratio >= limits.low && ratio < limits.high ? from[i] : 0.0f;
      }
    });
    return grad;
  }

  Tensor grad_parameter(size_t index, const Tensor& grad_y) const {
    const LearnedParameter& parameter = learning_.parameters[index - 1];
    const Channels channels(input(0).shape(), params_);
    const int64_t n = input(0).elements();
    const int32_t qmax = params_.type.qmax();
    const int64_t sharing = n / std::max<int64_t>(options_.samples * channels.count, 1);
    const double factor =
        parameter.normalized
            ? 1.0 / std::sqrt(static_cast<double>(std::max<int64_t>(sharing, 1)) * qmax)
            : 1.0;
    const double values = static_cast<double>(n) / static_cast<double>(channels.count);
    Tensor grad = Tensor::empty(input(index).shape());
    float* const out = grad.mutable_data();
    const std::vector<Sums> total = sums(parameter.slopes, grad_y);
    for (size_t c = 0; c < total.size(); ++c) out[c] = static_cast<float>(total[c].slopes * factor);
    if (!parameter.units.empty() && parameter.units[0] != 0) {
      auto least = std::make_shared<std::vector<float>>();
      for (size_t c = 0; c < total.size(); ++c) {
        const int32_t zero = params_.zero_point[c];
        const int32_t farthest = std::max(qmax - zero, zero - params_.type.qmin());
        const double unit = parameter.units[c];
        least->push_back(total[c].magnitudes > 0.0
                             ? learned_scale(static_cast<float>(unit * total[c].magnitudes /
                                                                (values * farthest)))
                             : learned_scale(present_[index - 1][c]));
      }
      TensorAccess::set_least(input(index), std::move(least));
    }
    return grad;
  }

  QParams params_;
  FakeQuantizeOptions options_;
  Buffer<uint8_t> mask_;
  Learning learning_;
  std::vector<std::vector<float>> present_;  // of each learned parameter
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
  return x.kind() == ValueKind::kWaiting ? detail::requantize_waiting(x, params, want_mask)
                                         : detail::rescale_codes(x, params, want_mask);
} catch (const QuantError& error) {  // a multiplier's error does not name the layer
  throw QuantError(where(), error.what(), kDivergence);
}

Quantized quantize_any(const Tensor& x,
                       const QParams& params,
                       const FakeQuantizeOptions& options,
                       bool want_mask) {
  if (runs_on_integers(x, params, options)) return quantize_integers(x, params, want_mask);
  if (params.type.bits > 8) return detail::quantize_wide(x, params, want_mask);
  Quantized result = detail::quantize_floats(x, Tensor(), params, options.storage, want_mask);
  if (!options.codes) result.y = decoded(result.y);
  return result;
}

Tensor run(const Tensor& x,
           Learning learning,
           const QParams& params,
           const FakeQuantizeOptions& options) {
  check_params(x, params, options);
  std::vector<Tensor> inputs{x};
  for (const LearnedParameter& parameter : learning.parameters) inputs.push_back(parameter.value);
  const bool want_mask = options.clamped && !learning.ends_at_codes && needs_gradient(inputs);
  Quantized result = quantize_any(x, params, options, want_mask);
  return record<FakeQuantizeNode>(std::move(result.y),
                                  std::move(inputs),
                                  params,
                                  options,
                                  std::move(result.mask),
                                  std::move(learning));
}

}  // namespace

Tensor fake_quantize(const Tensor& x, const QParams& params, const FakeQuantizeOptions& options) {
  return run(x, {}, params, options);
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
  Quantized result = detail::quantize_floats(x, factor, params, options.storage, want_mask);
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
  Quantized result = detail::quantize_chosen(x, factor, type, choose, options.storage);
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
                             const Learning& learning,
                             const QParams& params,
                             const FakeQuantizeOptions& options) {
  for (const LearnedParameter& parameter : learning.parameters) {
    if (parameter.value.elements() != static_cast<int64_t>(params.scale.size())) {
      throw ShapeError(where(),
                       "learned scale ",
                       parameter.value.shape(),
                       " for ",
                       params.scale.size(),
                       " channels");
    }
  }
  return run(x, learning, params, options);
}

Tensor fake_quantize_learned(const Tensor& x,
                             const Tensor& scale,
                             const QParams& params,
                             const FakeQuantizeOptions& options) {
  LearnedParameter parameter{
      .value = scale, .slopes = {}, .units = std::vector<int32_t>(params.scale.size(), 1)};
  for (const int32_t zero_point : params.zero_point)
    parameter.slopes.push_back(Lsq().slope(0, {.zero_point = zero_point}, params.type));
  return fake_quantize_learned(x, Learning{.parameters = {std::move(parameter)}}, params, options);
}

}  // namespace quantrain::quant
