#include "quant/prepare/fake_quantize_op.hpp"

#include <cmath>
#include <vector>

#include "framework/arithmetic/quantize.hpp"
#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/masked.hpp"
#include "framework/autograd/ops/stored_codes.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/kernels/float/columns.hpp"
#include "quant/prepare/quantize_values.hpp"

namespace quantrain::quant {
namespace {

using detail::Channels;
using detail::kGrain;
using detail::Quantized;
using detail::where;

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
                       " bits exist in simulation only: the integer engine has ",
                       kLeastBits,
                       " to ",
                       kMostBits);
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
