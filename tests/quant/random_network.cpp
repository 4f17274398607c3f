#include "tests/quant/random_network.hpp"

#include <algorithm>
#include <sstream>

#include "framework/autograd/ops.hpp"
#include "framework/core/random.hpp"
#include "quant/lowering/convert.hpp"
#include "tests/quant/networks.hpp"

namespace quantrain::quant::test {
namespace {

/// y = x + bias, where bias is one number for all channels, or y = x * scale, where scale has one
/// number for each channel.
class Scale : public Module {
 public:
  Scale(int64_t channels, bool adds)
      : scale_(add_parameter("scale", Tensor::full({channels}, 1.5f))),
        bias_(add_parameter("bias", Tensor::full({1}, -0.25f))),
        adds_(adds) {}
  std::string_view type() const override { return "Scale"; }

 protected:
  Tensor forward(const Tensor& x) override { return adds_ ? x + bias_ : x * scale_; }

 private:
  Tensor scale_;
  Tensor bias_;
  bool adds_;
};

/// y = activation(body(x) + x), activation(x + body(x) + x), activation(body(x) * x),
/// concat(body(x), x) or concat(x, body(x), x).
class Branch : public Module {
 public:
  enum class Kind { kSum, kSumOfThree, kProduct, kConcat, kConcatOfThree };
  Branch(Sequential body, Kind kind, bool relu)
      : body_(Module::add("body", std::move(body))), kind_(kind) {
    const bool joins = kind == Kind::kConcat || kind == Kind::kConcatOfThree;
    if (joins) concat_ = Module::add("concat", Concat{});
    if (kind == Kind::kSum || kind == Kind::kSumOfThree) sum_ = Module::add("sum", Add{});
    if (kind == Kind::kProduct) product_ = Module::add("product", Mul{});
    if (!joins && relu) relu_ = Module::add("relu", ReLU{});
  }
  std::string_view type() const override { return "Branch"; }

 protected:
  Tensor forward(const Tensor& x) override {
    const Tensor y = (*body_)(x);
    if (kind_ == Kind::kConcat) return (*concat_)(y, x);
    if (kind_ == Kind::kConcatOfThree) return (*concat_)(std::vector<Tensor>{x, y, x})[0];
    const Tensor both = kind_ == Kind::kSumOfThree ? (*sum_)(std::vector<Tensor>{x, y, x})[0]
                        : sum_                     ? (*sum_)(y, x)
                                                   : (*product_)(y, x);
    return relu_ ? (*relu_)(both) : both;
  }

 private:
  std::shared_ptr<Sequential> body_;
  Kind kind_;
  std::shared_ptr<Concat> concat_;
  std::shared_ptr<Add> sum_;
  std::shared_ptr<Mul> product_;
  std::shared_ptr<ReLU> relu_;
};

/// Squeeze and excitation: y = x * gate(up(relu(down(mean(x))))).
class Squeeze : public Module {
 public:
  Squeeze(int64_t channels, int64_t hidden, const functions::Function& gate, bool factors_first)
      : factors_(Module::add("factors",
                             Sequential{GlobalAvgPool2d{},
                                        Conv2d{channels, hidden, {.kernel = 1}},
                                        ReLU{},
                                        Conv2d{hidden, channels, {.kernel = 1}},
                                        Elementwise{gate}})),
        product_(Module::add("product", Mul{})),
        factors_first_(factors_first) {}
  std::string_view type() const override { return "Squeeze"; }

 protected:
  Tensor forward(const Tensor& x) override {
    const Tensor factors = (*factors_)(x);
    return factors_first_ ? (*product_)(factors, x) : (*product_)(x, factors);
  }

 private:
  std::shared_ptr<Sequential> factors_;
  std::shared_ptr<Mul> product_;
  bool factors_first_;
};

/// Computes features of two images, with a body for each image, and joins the features. The outputs
/// are logits and head(joined); the logits are computed from joined or from head(joined).
class TwoTowers : public Module {
 public:
  TwoTowers(Sequential first, Sequential second, Sequential head, Sequential logits, bool behind)
      : first_(Module::add("first", std::move(first))),
        second_(Module::add("second", std::move(second))),
        concat_(Module::add("concat", Concat{})),
        head_(Module::add("head", std::move(head))),
        logits_(Module::add("logits", std::move(logits))),
        behind_(behind) {}
  std::string_view type() const override { return "TwoTowers"; }

 protected:
  std::vector<Tensor> forward(const std::vector<Tensor>& x) override {
    const Tensor joined = (*concat_)((*first_)(x.at(0)), (*second_)(x.at(1)));
    const Tensor head = (*head_)(joined);
    return {(*logits_)(behind_ ? head : joined), head};
  }

 private:
  std::shared_ptr<Sequential> first_;
  std::shared_ptr<Sequential> second_;
  std::shared_ptr<Concat> concat_;
  std::shared_ptr<Sequential> head_;
  std::shared_ptr<Sequential> logits_;
  bool behind_;
};

Shape batch_of(int64_t n, const Shape& sample) { return {n, sample[0], sample[1], sample[2]}; }

std::vector<Tensor> batches_of(int64_t n, const std::vector<Shape>& samples, uint64_t seed) {
  std::vector<Tensor> batches;
  for (const Shape& sample : samples)
    batches.push_back(random_images(batch_of(n, sample), seed + 7777 * batches.size()));
  return batches;
}

class Composer {
 public:
  explicit Composer(uint64_t seed) : random_(seed, 77), more_(seed, 78), methods_(seed, 79) {}

  RandomNetwork compose() {
    RandomNetwork result;
    result.classes = 2 + random_.below(9);
    if (random_.below(4) == 0) {
      compose_two(result);
    } else {
      auto net = std::make_unique<Sequential>(body(result));
      int64_t features = h_ * w_ * c_;
      if (coin()) features = hidden(*net, features);
      net->append(Linear{features, result.classes, {.bias = coin()}});
      result.net = std::move(net);
    }
    result.config = configuration();
    result.description = text_.str();
    return result;
  }

 private:
  bool coin() { return random_.below(2) == 1; }

  /// The layers from an image to features [N, h_ * w_ * c_].
  Sequential body(RandomNetwork& result) {
    h_ = 4 + random_.below(9);
    w_ = 4 + random_.below(9);
    c_ = 1 + random_.below(3);
    result.inputs.push_back(Shape{h_, w_, c_});
    text_ << result.inputs.back();
    Sequential net;
    if (random_.below(6) == 0) norm(net);
    const int64_t stages = 1 + random_.below(4);
    for (int64_t i = 0; i < stages; ++i) stage(net);
    if (coin()) {
      if (coin()) {
        net.append(GlobalAvgPool2d{});
        text_ << " gap";
      } else {
        net.append(GlobalMaxPool2d{});
        text_ << " gmp";
      }
      h_ = w_ = 1;
    }
    net.append(Flatten{});
    return net;
  }

  /// Appends a linear layer and an activation; returns the number of outputs.
  int64_t hidden(Sequential& net, int64_t features) {
    const int64_t outputs = 1 + random_.below(40);
    net.append(Linear{features, outputs, {.bias = coin()}});
    text_ << " linear" << outputs;
    if (coin()) {
      net.append(BatchNorm1d{outputs});
      text_ << " bn";
    }
    activation(net, outputs);
    return outputs;
  }

  void compose_two(RandomNetwork& result) {
    text_ << "two: ";
    Sequential first = body(result);
    int64_t features = h_ * w_ * c_;
    text_ << " and ";
    Sequential second = body(result);
    features += h_ * w_ * c_;
    text_ << " head";
    Sequential head;
    const int64_t outputs = hidden(head, features);
    const bool behind = coin();
    text_ << (behind ? " logits from head" : " logits from features");
    Sequential logits;
    logits.append(Linear{behind ? outputs : features, result.classes, {.bias = coin()}});
    result.net = std::make_unique<TwoTowers>(
        std::move(first), std::move(second), std::move(head), std::move(logits), behind);
  }

  void convolution(Sequential& net, int64_t outputs, bool keep_size) {
    const int64_t kernel =
        keep_size ? 1 + 2 * random_.below(2) : 1 + random_.below(std::min<int64_t>({h_, w_, 3}));
    const int64_t padding = keep_size ? kernel / 2 : random_.below(kernel);
    const int64_t stride = keep_size ? 1 : 1 + random_.below(2);
    int64_t groups = 1;
    if (random_.below(3) == 0) {
      groups = c_;
      outputs = c_ * (keep_size ? 1 : 1 + random_.below(2));
    }
    Size2d dilation = 1;
    if (!keep_size) dilation = {dilated(h_, kernel, padding), dilated(w_, kernel, padding)};
    net.append(Conv2d{c_,
                      outputs,
                      {.kernel = kernel,
                       .stride = stride,
                       .padding = padding,
                       .groups = groups,
                       .bias = coin(),
                       .dilation = dilation}});
    text_ << " conv" << kernel << "x" << outputs << "/" << stride << "g" << groups << "d"
          << dilation;
    h_ = (h_ + 2 * padding - (kernel - 1) * dilation.h - 1) / stride + 1;
    w_ = (w_ + 2 * padding - (kernel - 1) * dilation.w - 1) / stride + 1;
    c_ = outputs;
    if (coin()) net.append(BatchNorm2d{c_});
    if (!keep_size && random_.below(6) == 0) turn(net);  // a reshape must not prevent fusion
    activation(net, c_);
  }

  /// A dilation for which the kernel still fits; mostly 1.
  int64_t dilated(int64_t size, int64_t kernel, int64_t padding) {
    if (kernel == 1 || random_.below(3) != 0) return 1;
    const int64_t most = (size + 2 * padding - 1) / (kernel - 1);
    return 1 + random_.below(std::min<int64_t>(most, 4));
  }

  /// Appends a mean or maximum over rows or columns; the axis stays, with extent 1.
  void reduce(Sequential& net) {
    const bool mean = coin();
    const int axis = coin() ? 1 : 2;
    const ReductionOptions options{.keepdim = true};
    if (mean) net.append(Mean{axis, options});
    if (!mean) net.append(Max{axis, options});
    text_ << (mean ? " mean" : " max") << axis;
    (axis == 1 ? h_ : w_) = 1;
  }

  /// Reshapes images [N, H, W, C] to [N, W, H, C], without moving an element.
  void turn(Sequential& net) {
    std::swap(h_, w_);
    net.append(Reshape{{h_, w_, c_}});
    text_ << " reshape";
  }

  /// Reshapes the image to a signal of its pixels, appends layers for signals, and reshapes the
  /// signal to an image of one column.
  void signal(Sequential& net) {
    int64_t length = h_ * w_;
    net.append(Reshape{{-1, c_}});
    text_ << " signal(";
    const int64_t kernel = 1 + random_.below(std::min<int64_t>(length, 5));
    const int64_t padding = random_.below(kernel);
    const int64_t stride = 1 + random_.below(2);
    if (random_.below(4) == 0) {
      const Pooling1dOptions options{
          .stride = stride, .padding = padding, .ceil_mode = c_ % 2 == 0};
      if (coin()) {
        net.append(MaxPool1d{kernel, options});
        text_ << "max" << kernel;
      } else {
        Pooling1dOptions all = options;
        all.count_include_pad = c_ % 3 == 0;
        net.append(AvgPool1d{kernel, all});
        text_ << "avg" << kernel << (all.count_include_pad ? "+" : "");
      }
      if (options.ceil_mode) {
        text_ << "^";
        length += pool_end(length, kernel, stride, padding);
      }
      length = (length + 2 * padding - kernel) / stride + 1;
    } else {
      const int64_t dilation = dilated(length, kernel, padding);
      const bool depthwise = random_.below(3) == 0;
      const int64_t outputs = depthwise ? c_ : 1 + random_.below(20);
      net.append(Conv1d{c_,
                        outputs,
                        {.kernel = kernel,
                         .stride = stride,
                         .padding = padding,
                         .groups = depthwise ? c_ : 1,
                         .bias = coin(),
                         .dilation = dilation}});
      text_ << "conv" << kernel << "x" << outputs << "/" << stride << (depthwise ? "g" : "") << "d"
            << dilation;
      length = (length + 2 * padding - (kernel - 1) * dilation - 1) / stride + 1;
      c_ = outputs;
      if (coin()) net.append(BatchNorm1d{c_});
      if (coin()) activation(net, c_);
    }
    net.append(Reshape{{length, 1, c_}});
    text_ << ")";
    h_ = length;
    w_ = 1;
    activation(net, c_);
  }

  /// Appends padding, upsampling, or a slice of an axis.
  void move(Sequential& net) {
    switch (random_.below(3)) {
      case 0: {
        const Padding2d p{random_.below(3), random_.below(3), random_.below(3), random_.below(3)};
        net.append(ZeroPad2d{p});
        h_ += p.top + p.bottom;
        w_ += p.left + p.right;
        text_ << " pad";
        return;
      }
      case 1: {
        if (h_ * w_ > 100) return;
        const Size2d scale{1 + random_.below(2), 1 + random_.below(3)};
        net.append(Upsample{scale});
        h_ *= scale.h;
        w_ *= scale.w;
        text_ << " upsample" << scale;
        return;
      }
      default: {
        const auto axis = static_cast<int>(1 + random_.below(3));
        int64_t& extent = axis == 1 ? h_ : axis == 2 ? w_ : c_;
        const int64_t begin = random_.below(extent);
        const int64_t step = 1 + random_.below(2);
        if (coin()) {
          net.append(Slice{axis, {.begin = begin, .step = step}});
          extent = (extent - begin - 1) / step + 1;
        } else {
          net.append(Slice{axis, {.begin = begin, .step = -step}});
          extent = begin / step + 1;
        }
        text_ << " slice" << axis;
      }
    }
  }

  void activation(Sequential& net, int64_t channels) {
    switch (random_.below(8)) {
      case 0:
      case 1:
      case 2: net.append(ReLU{}); return;
      case 3: net.append(ReLU6{}); return;
      case 4: function(net, channels); return;
      default: return;
    }
  }

  /// Appends an elementwise function that is the same for all channels, or a PReLU.
  void function(Sequential& net, int64_t channels) {
    const functions::Function all[] = {functions::sigmoid(),
                                       functions::tanh(),
                                       functions::hard_sigmoid(),
                                       functions::hard_swish(),
                                       functions::silu(),
                                       functions::gelu(),
                                       functions::leaky_relu(0.1f),
                                       functions::elu(0.8f),
                                       functions::abs(),
                                       functions::clamp(-1.0f, 2.0f),
                                       functions::exp(),
                                       functions::square()};
    const int64_t count = std::size(all);
    const int64_t chosen = random_.below(count + 2);
    if (chosen >= count) return prelu(net, channels);
    const functions::Function& function = all[chosen];
    // exp and square overflow if several of them follow each other.
    if (chosen >= count - 2) net.append(Clamp{-4.0f, 4.0f});
    net.append(Elementwise{function});
    text_ << ' ' << function->type;
  }

  void prelu(Sequential& net, int64_t channels) {
    PReLU layer{random_.below(4) == 0 ? 1 : channels};
    Tensor slope = layer.weight();
    for (int64_t c = 0; c < slope.elements(); ++c)
      slope.mutable_data()[c] = 0.1f * static_cast<float>(random_.below(16)) - 0.5f;
    net.append(std::move(layer));
    text_ << " prelu" << slope.elements();
  }

  /// Appends a batch norm that cannot be folded.
  void norm(Sequential& net) {
    net.append(BatchNorm2d{c_});
    text_ << " norm";
  }

  /// Appends a layer that maps each code separately, or a softmax.
  void lookup(Sequential& net) {
    switch (random_.below(7)) {
      case 6:
        net.append(Softmax{});
        text_ << " softmax";
        return;
      case 0:
        net.append(ReLU{});
        text_ << " relu";
        return;
      case 1:
        net.append(ReLU6{});
        text_ << " relu6";
        return;
      case 2: norm(net); return;
      case 3:
        net.append(Scale{c_, random_.below(2) == 0});
        text_ << " scale";
        return;
      default: function(net, c_);
    }
  }

  void stage(Sequential& net) {
    switch (random_.below(10)) {
      case 9: reduce(net); return;
      case 8: {
        const int64_t hidden = 1 + random_.below(4);
        const auto gate = coin() ? functions::sigmoid() : functions::hard_sigmoid();
        net.append(Squeeze{c_, hidden, gate, coin()});
        text_ << " squeeze" << hidden;
        return;
      }
      case 7: move(net); return;
      case 0: {
        if (std::min(h_, w_) < 2) return;
        const int64_t padding = random_.below(2);
        const int64_t stride = 1 + random_.below(2);
        const PoolingOptions options{
            .stride = stride, .padding = padding, .ceil_mode = c_ % 2 == 0};
        if (coin()) {
          net.append(MaxPool2d{2, options});
          text_ << " max";
          if (coin()) lookup(net);
        } else {
          PoolingOptions all = options;
          all.count_include_pad = c_ % 3 == 0;
          net.append(AvgPool2d{2, all});
          text_ << " avg" << (all.count_include_pad ? "+" : "");
        }
        if (options.ceil_mode) {
          text_ << "^";
          h_ += pool_end(h_, 2, stride, padding);
          w_ += pool_end(w_, 2, stride, padding);
        }
        h_ = (h_ + 2 * padding - 2) / stride + 1;
        w_ = (w_ + 2 * padding - 2) / stride + 1;
        return;
      }
      case 1: {
        Sequential body;
        const bool product = random_.below(3) == 0;
        const bool three = !product && more_.below(2) == 0;
        text_ << (product ? " product(" : three ? " residual of three(" : " residual(");
        const int64_t c = c_;
        convolution(body, c, true);
        text_ << ")";
        const auto kind = product ? Branch::Kind::kProduct
                          : three ? Branch::Kind::kSumOfThree
                                  : Branch::Kind::kSum;
        net.append(Branch{std::move(body), kind, coin()});
        return;
      }
      case 2: {
        Sequential body;
        text_ << " concat(";
        const int64_t before = c_;
        convolution(body, 1 + random_.below(9), true);
        const bool three = coin();
        c_ += before * (three ? 2 : 1);
        text_ << (three ? ", three)" : ")");
        const auto kind = three ? Branch::Kind::kConcatOfThree : Branch::Kind::kConcat;
        net.append(Branch{std::move(body), kind, false});
        return;
      }
      case 3: turn(net); return;
      case 4: signal(net); return;
      default: convolution(net, 1 + random_.below(20), false);
    }
  }

  QConfig configuration() {
    const auto weight_bits = static_cast<int>(2 + random_.below(7));
    const auto activation_bits = static_cast<int>(2 + random_.below(7));
    QConfig config = QConfig::bits(weight_bits, activation_bits);
    config.model.weight.per_channel = coin();
    config.model.weight.narrow = weight_bits == 2 || coin();
    config.model.activation.is_signed = coin();
    if (random_.below(4) == 0) config.model.weight.estimator = Estimator::kLearned;
    if (random_.below(4) == 0) config.model.activation.estimator = Estimator::kLearned;
    if (random_.below(4) == 0) config.output_bits = 8;
    set_methods(config.model.weight, config.model.activation);
    text_ << " w" << config.model.weight.bits << "a" << config.model.activation.bits
          << (config.model.activation.is_signed ? "s" : "u")
          << (config.model.weight.per_channel ? " per channel" : "") << " out"
          << config.output_bits;
    if (config.model.weight.function) text_ << " " << kind(*config.model.weight.function);
    if (config.model.weight.power_of_two) text_ << " powers of two";
    return config;
  }

  auto any_of(const auto& list) {
    return list.at(static_cast<size_t>(methods_.below(static_cast<int64_t>(list.size()))));
  }

  /// Weights and activations of 1 bit, and methods while training, where they fit.
  void set_methods(WeightConfig& weight, ActivationConfig& activation) {
    if (methods_.below(6) == 0) {
      weight.bits = 1;
      weight.narrow = true;
    }
    if (methods_.below(6) == 0) {
      activation.bits = 1;
      activation.is_signed = false;
    }
    if (methods_.below(2) == 0) {
      weight.function = any_of(weight_functions());
      if (!fault(weight).empty()) weight.function.reset();
    }
    weight.power_of_two = methods_.below(6) == 0;
    activation.power_of_two = methods_.below(6) == 0;
    const Estimator estimator = any_of(kEstimatorKinds).estimator;
    const LearnedRange* const learned = learned_range(estimator);
    const QType type{activation.bits, activation.is_signed, false};
    if (learned != nullptr && learned->fault(type, activation.scheme).empty())
      activation.estimator = estimator;
  }

  Random random_;
  // For kinds of layers that this file gained later. A second source of random numbers leaves the
  // rest of each seed's network as it was.
  Random more_;
  Random methods_;
  int64_t h_ = 1, w_ = 1, c_ = 1;
  std::ostringstream text_;
};

}  // namespace

RandomNetwork random_network(uint64_t seed) {
  manual_seed(seed);
  return Composer(seed).compose();
}

IntegerModel train_and_convert(RandomNetwork& network, uint64_t seed) {
  const std::vector<Tensor> example = batches_of(2, network.inputs, seed);
  prepare_qat(*network.net, example, network.config);
  std::vector<Shape> batches;
  for (const Shape& sample : network.inputs) batches.push_back(batch_of(6, sample));
  train_a_little(*network.net, batches, 2, network.classes);
  return convert(*network.net, example);
}

Parity train_and_verify(RandomNetwork& network, uint64_t seed) {
  const IntegerModel model = train_and_convert(network, seed);
  return verify_parity(*network.net, model, batches_of(11, network.inputs, seed + 1000));
}

std::vector<uint8_t> random_samples(const integer::Program& program, int64_t n, uint64_t seed) {
  Random random(seed);
  std::vector<uint8_t> samples;
  for (const int id : program.inputs) {
    const integer::Value& value = program.value(id);
    const int64_t codes = value.params && value.params->type.bits == 1 ? 2 : 256;
    for (int64_t i = 0; i < n * value.shape.elements(); ++i)
      samples.push_back(static_cast<uint8_t>(random.below(codes)));
  }
  return samples;
}

}  // namespace quantrain::quant::test
