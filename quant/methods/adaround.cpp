#include "quant/methods/adaround.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "framework/core/random.hpp"
#include "framework/optim/adam.hpp"
#include "quant/methods/soft_rounding.hpp"

namespace quantrain::quant {
namespace {

/// Gives a layer a fixed weight and bias, which may be part of a recorded graph.
class GivenWeights : public WeightSlot {
 public:
  explicit GivenWeights(Weights weights) : weights_(std::move(weights)) {}
  std::string_view type() const override { return "GivenWeights"; }
  Weights apply(const Weights&, const Tensor&) override { return weights_; }
  Weights& weights() { return weights_; }

 private:
  Weights weights_;
};

/// While it lives, the layer's only slot is this weight slot.
class OnlyWeights {
 public:
  OnlyWeights(Module& layer, std::shared_ptr<WeightSlot> slot)
      : layer_(layer), before_(std::exchange(layer.slots(), Slots{})) {
    layer.slots().weight = std::move(slot);
  }
  ~OnlyWeights() { layer_.slots() = std::move(before_); }
  OnlyWeights(const OnlyWeights&) = delete;
  OnlyWeights& operator=(const OnlyWeights&) = delete;

 private:
  Module& layer_;
  Slots before_;
};

/// Samples as rows of floats.
struct Rows {
  std::vector<int64_t> extents;  // of one sample
  std::vector<float> values;

  void add(const Tensor& x) {
    if (extents.empty()) extents.assign(x.shape().begin() + 1, x.shape().end());
    const Floats floats = x.floats();
    values.insert(values.end(), floats.data(), floats.data() + floats.size());
  }
  size_t size() const {
    size_t n = 1;
    for (const int64_t extent : extents) n *= static_cast<size_t>(extent);
    return n;
  }
  int64_t samples() const { return std::ssize(values) / static_cast<int64_t>(size()); }
  Tensor take(std::span<const int64_t> indices) const {
    std::vector<int64_t> shape{std::ssize(indices)};
    shape.insert(shape.end(), extents.begin(), extents.end());
    Tensor x = Tensor::empty(Shape(shape));
    float* to = x.mutable_data();
    for (const int64_t i : indices)
      to = std::copy_n(values.data() + static_cast<size_t>(i) * size(), size(), to);
    return x;
  }
};

/// Rounds the weights of one layer.
class LayerRounding {
 public:
  LayerRounding(const Product& product, const QParams& params, const AdaRound& options)
      : product_(product), options_(options), own_(product.folded_weight()) {
    soft_->params = params;
    for (size_t i = 0; i < own_.size(); ++i) {
      const float ratio = own_[i] / scale(i);
      soft_->floor.push_back(std::floor(ratio));
      shares_.push_back(ratio - soft_->floor.back());
    }
  }

  void add(const Tensor& input, const Tensor& target) {
    inputs_.add(input);
    targets_.add(product_.activation == Activation::kNone ? target
                                                          : activate(target.detach(), kind()));
  }

  /// The codes times their scales. Sets the errors of the row.
  std::vector<float> run(uint64_t stream, MethodRow& row) {
    const Tensor v = trained(stream);
    const Floats v_values = v.floats();
    const std::vector<float> h =
        rectified_sigmoid({v_values.data(), static_cast<size_t>(v_values.size())});
    std::vector<float> nearest;
    std::vector<float> chosen;
    for (size_t i = 0; i < own_.size(); ++i) {
      nearest.push_back(value(half_even(own_[i] / scale(i)), i));
      chosen.push_back(value(soft_->floor[i] + (h[i] >= 0.5f ? 1.0f : 0.0f), i));
    }
    row.before = error(nearest);
    row.after = error(chosen);
    if (row.after < row.before) return chosen;
    row.after = row.before;
    return nearest;
  }

 private:
  Activation kind() const { return product_.activation; }
  static Tensor activate(Tensor x, Activation activation) {
    if (activation == Activation::kNone) return x;
    return activation == Activation::kRelu ? relu(std::move(x)) : relu6(std::move(x));
  }
  float scale(size_t i) const {
    const std::vector<float>& scales = soft_->params.scale;
    return scales[i * scales.size() / own_.size()];
  }
  float value(float code, size_t i) const {
    const QType& type = soft_->params.type;
    return scale(i) *
           std::clamp(code, static_cast<float>(type.qmin()), static_cast<float>(type.qmax()));
  }
  Tensor bias() const {
    const Tensor bias = product_.folded().bias;
    return bias.defined() ? bias.detach() : bias;
  }

  // V after training.
  Tensor trained(uint64_t stream) {
    const Shape shape = product_.slot->own().weight.shape();
    Tensor v = Tensor::from(shape, rounding_logits(shares_)).set_requires_grad(true);
    Adam adam({v}, {.learning_rate = options_.learning_rate});
    const auto slot = std::make_shared<GivenWeights>(Weights{Tensor(), bias()});
    const OnlyWeights only(*product_.layer, slot);
    Random random(options_.seed, stream);
    const auto warm_up = static_cast<int64_t>(static_cast<double>(options_.warm_up) *
                                              static_cast<double>(options_.iterations));
    std::vector<int64_t> picked(static_cast<size_t>(std::min(options_.batch, inputs_.samples())));
    for (int64_t step = 0; step < options_.iterations; ++step) {
      for (int64_t& index : picked) index = random.below(inputs_.samples());
      adam.zero_grad();
      slot->weights().weight = soft_quantize(v, soft_);
      const Tensor y = activate((*product_.layer)(inputs_.take(picked)), kind());
      Tensor loss = reconstruction_loss(y, targets_.take(picked));
      if (step >= warm_up) {
        const float beta = annealed_beta(
            step, options_.iterations, warm_up, options_.first_beta, options_.last_beta);
        loss = quantrain::add(
            loss, mul(rounding_regularizer(v, beta), Tensor::full({}, options_.regularization)));
      }
      loss.backward();
      adam.step();
    }
    return v;
  }

  // Root mean square of what these weights change of the outputs.
  double error(const std::vector<float>& weights) {
    const NoGrad no_grad;
    const Tensor w = Tensor::from(product_.slot->own().weight.shape(), weights);
    const OnlyWeights only(*product_.layer, std::make_shared<GivenWeights>(Weights{w, bias()}));
    double sum = 0.0;
    std::vector<int64_t> part;
    for (int64_t first = 0; first < inputs_.samples(); first += options_.batch) {
      part.clear();
      for (int64_t i = first; i < std::min(first + options_.batch, inputs_.samples()); ++i)
        part.push_back(i);
      const Tensor y = activate((*product_.layer)(inputs_.take(part)), kind());
      const Tensor target = targets_.take(part);
      const Floats is = y.floats();
      const Floats wanted = target.floats();
      for (int64_t i = 0; i < is.size(); ++i) {
        const double difference = static_cast<double>(is[i]) - static_cast<double>(wanted[i]);
        sum += difference * difference;
      }
    }
    return std::sqrt(sum / static_cast<double>(targets_.values.size()));
  }

  const Product& product_;
  const AdaRound& options_;
  std::vector<float> own_;  // the folded weight in float
  std::shared_ptr<SoftWeights> soft_ = std::make_shared<SoftWeights>();
  std::vector<float> shares_;  // what rounding down cuts off, in codes
  Rows inputs_;
  Rows targets_;
};

/// The weights of a layer before and after rounding, one of which the layer has.
struct Rounded {
  Tensor weight;
  std::vector<float> other;
  void swap() { std::swap_ranges(other.begin(), other.end(), weight.mutable_data()); }
};

void check_options(const AdaRound& options) {
  const auto refuse = [](const char* option, const char* bounds, auto value) {
    throw DataError(AdaRound::kName, option, " must be ", bounds, ", got ", value);
  };
  if (options.iterations < 1) refuse("iterations", "positive", options.iterations);
  if (options.batch < 1) refuse("batch", "positive", options.batch);
  if (!(options.regularization >= 0.0f))
    refuse("regularization", "at least 0", options.regularization);
  if (!(options.warm_up >= 0.0f && options.warm_up <= 1.0f))
    refuse("warm_up", "in [0, 1]", options.warm_up);
  for (const float beta : {options.first_beta, options.last_beta}) {
    if (!(beta >= 1.0f && beta <= 64.0f)) refuse("a beta", "in [1, 64]", beta);
  }
}

}  // namespace

void AdaRound::apply(MethodRun& run) const {
  check_options(*this);
  const std::vector<Product> products = products_of(run.net, run.example);
  // Float passes need the weights in float, so layers that are rounded have both.
  std::vector<Rounded> rounded;
  const auto swap_all = [&] {
    for (Rounded& layer : rounded) layer.swap();
  };
  for (size_t at = 0; at < products.size(); ++at) {
    const Product& product = products[at];
    MethodRow row{
        .method = std::string(kName), .layer = product.path, .measure = "rmse of the output"};
    if (product.slot->config().scheme != QScheme::kSymmetric) {
      row.skipped = "its weights are affine";
    } else if (!product.fixed.empty()) {
      row.skipped = product.fixed;
    } else {
      std::optional<LayerRounding> rounding;
      QParams params;
      for (const Batch& part : run.data) {
        const ProductValues deployed = values_of(product, deployed_pass(run.net, part.inputs()));
        swap_all();
        const ProductValues floats = values_of(product, float_pass(run.net, part.inputs()));
        swap_all();
        if (!rounding) {
          params = TensorAccess::code_params(deployed.weight);
          rounding.emplace(product, params, *this);
        }
        rounding->add(deployed.input, floats.output);
      }
      const std::vector<float> values = rounding->run(at, row);
      Tensor weight = product.slot->own().weight;
      const Floats own = weight.floats();
      rounded.push_back({weight, {own.data(), own.data() + own.size()}});
      product.set_folded_weight(values);
      product.slot->set_params(params);
    }
    run.rows.push_back(std::move(row));
  }
}

}  // namespace quantrain::quant
