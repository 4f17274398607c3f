#include "tests/quant/random_network.hpp"

#include <algorithm>
#include <sstream>

#include "framework/core/random.hpp"
#include "quant/lowering/convert.hpp"
#include "tests/quant/networks.hpp"

namespace quantrain::quant::test {
namespace {

/// y = activation(body(x) + x) or concat(body(x), x).
class Branch : public Module {
 public:
  Branch(Sequential body, bool concatenate, bool relu)
      : body_(Module::add("body", std::move(body))), concatenate_(concatenate) {
    if (concatenate) {
      concat_ = Module::add("concat", Concat{});
    } else {
      sum_ = Module::add("sum", Add{});
      if (relu) relu_ = Module::add("relu", ReLU{});
    }
  }
  std::string_view type() const override { return "Branch"; }

 protected:
  Tensor forward(const Tensor& x) override {
    const Tensor y = (*body_)(x);
    if (concatenate_) return (*concat_)(y, x);
    const Tensor sum = (*sum_)(y, x);
    return relu_ ? (*relu_)(sum) : sum;
  }

 private:
  std::shared_ptr<Sequential> body_;
  bool concatenate_;
  std::shared_ptr<Concat> concat_;
  std::shared_ptr<Add> sum_;
  std::shared_ptr<ReLU> relu_;
};

Shape batch_of(int64_t n, const Shape& sample) { return {n, sample[0], sample[1], sample[2]}; }

class Composer {
 public:
  explicit Composer(uint64_t seed) : random_(seed, 77) {}

  RandomNetwork compose() {
    h_ = 4 + random_.below(9);
    w_ = 4 + random_.below(9);
    c_ = 1 + random_.below(3);
    RandomNetwork result;
    result.input = Shape{h_, w_, c_};
    text_ << result.input;
    auto net = std::make_unique<Sequential>();
    const int64_t stages = 1 + random_.below(4);
    for (int64_t i = 0; i < stages; ++i) stage(*net);
    if (coin()) {
      net->append(GlobalAvgPool2d{});
      text_ << " gap";
      h_ = w_ = 1;
    }
    net->append(Flatten{});
    int64_t features = h_ * w_ * c_;
    if (coin()) {
      const int64_t hidden = 1 + random_.below(40);
      net->append(Linear{features, hidden, {.bias = coin()}});
      net->append(ReLU{});
      text_ << " linear" << hidden;
      features = hidden;
    }
    result.classes = 2 + random_.below(9);
    net->append(Linear{features, result.classes, {.bias = coin()}});
    result.config = configuration();
    result.net = std::move(net);
    result.description = text_.str();
    return result;
  }

 private:
  bool coin() { return random_.below(2) == 1; }

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
    net.append(Conv2d{c_,
                      outputs,
                      {.kernel = kernel,
                       .stride = stride,
                       .padding = padding,
                       .groups = groups,
                       .bias = coin()}});
    text_ << " conv" << kernel << "x" << outputs << "/" << stride << "g" << groups;
    h_ = (h_ + 2 * padding - kernel) / stride + 1;
    w_ = (w_ + 2 * padding - kernel) / stride + 1;
    c_ = outputs;
    if (coin()) net.append(BatchNorm2d{c_});
    activation(net);
  }

  void activation(Sequential& net) {
    const int64_t kind = random_.below(4);
    if (kind == 1 || kind == 2) net.append(ReLU{});
    if (kind == 3) net.append(ReLU6{});
  }

  void stage(Sequential& net) {
    switch (random_.below(5)) {
      case 0: {
        if (std::min(h_, w_) < 2) return;
        const int64_t padding = random_.below(2);
        const int64_t stride = 1 + random_.below(2);
        if (coin()) {
          net.append(MaxPool2d{2, {.stride = stride, .padding = padding}});
          text_ << " max";
        } else {
          net.append(AvgPool2d{2, {.stride = stride, .padding = padding}});
          text_ << " avg";
        }
        h_ = (h_ + 2 * padding - 2) / stride + 1;
        w_ = (w_ + 2 * padding - 2) / stride + 1;
        return;
      }
      case 1: {
        Sequential body;
        text_ << " residual(";
        const int64_t c = c_;
        convolution(body, c, true);
        text_ << ")";
        net.append(Branch{std::move(body), false, coin()});
        return;
      }
      case 2: {
        Sequential body;
        text_ << " concat(";
        const int64_t before = c_;
        convolution(body, 1 + random_.below(9), true);
        c_ += before;
        text_ << ")";
        net.append(Branch{std::move(body), true, false});
        return;
      }
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
    text_ << " w" << weight_bits << "a" << activation_bits
          << (config.model.activation.is_signed ? "s" : "u")
          << (config.model.weight.per_channel ? " per channel" : "") << " out"
          << config.output_bits;
    return config;
  }

  Random random_;
  int64_t h_ = 1, w_ = 1, c_ = 1;
  std::ostringstream text_;
};

}  // namespace

RandomNetwork random_network(uint64_t seed) {
  manual_seed(seed);
  return Composer(seed).compose();
}

Parity train_and_verify(RandomNetwork& network, uint64_t seed) {
  const Tensor example = random_images(batch_of(2, network.input), seed);
  prepare_qat(*network.net, example, network.config);
  train_a_little(*network.net, batch_of(6, network.input), 2, network.classes);
  const IntegerModel model = convert(*network.net, example);
  return verify_parity(
      *network.net, model, random_images(batch_of(11, network.input), seed + 1000));
}

}  // namespace quantrain::quant::test
