#include <algorithm>
#include <cmath>
#include <optional>

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops.hpp"
#include "framework/autograd/ops/masked.hpp"
#include "framework/autograd/tensor_access.hpp"
#include "framework/core/error.hpp"
#include "layers/layers.hpp"
#include "quant/prepare/fake_quantize.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/tensors.hpp"

// A batch norm computes the activation and the quantization that follow it in one pass; ReLU and
// sums take the memory of operands that nobody else holds. Both give the same bits as separate
// operations.
namespace quantrain {
namespace {

using test::random_leaf;
using test::random_tensor;
using test::values;

/// A result that only the caller holds.
Tensor scaled(const Tensor& x) { return x * 4.0f; }

Tensor leaf(uint64_t seed) {
  Tensor x = random_tensor({7, 33}, seed);
  x.mutable_data()[3] = 0.0f;
  x.mutable_data()[4] = 1.5f;  // 6 after scaled()
  return x.set_requires_grad(true);
}

/// The gradient of the leaf for this result. The gradients of the result's elements differ.
std::vector<float> gradient(Tensor x, const Tensor& y) {
  x.zero_grad();
  sum(y * random_tensor(y.shape(), 9)).backward();
  return values(x.grad());
}

}  // namespace

TEST_CASE("an activation in its input's memory gives the same values and gradients",
          "[quant][activation]") {
  const Tensor x = leaf(1);
  ReLU relu_layer;
  ReLU6 relu6_layer;
  Tensor h = scaled(x);
  const float* const memory = h.data();
  const Tensor y = relu_layer(std::move(h));
  CHECK(y.data() == memory);
  const auto expected = [](const Tensor& held, bool six) { return six ? relu6(held) : relu(held); };
  CHECK(values(y) == values(expected(scaled(x), false)));
  CHECK(gradient(x, y) == gradient(x, expected(scaled(x), false)));
  const Tensor y6 = relu6_layer(relu_layer(scaled(x)));
  CHECK(gradient(x, y6) == gradient(x, expected(scaled(x), true)));
  CHECK(values(y6) == values(expected(scaled(x), true)));
  const Tensor flat = reshape(relu_layer(scaled(x)), {-1});
  CHECK(values(flat) == values(expected(scaled(x), false)));
  CHECK(activate(x, Activation::kNone).same_as(x));
  const NoGrad no_grad;
  CHECK(values(relu_layer(scaled(x))) == values(expected(scaled(x), false)));
}

TEST_CASE("operations do not write to floats that someone else holds", "[quant][activation]") {
  const Tensor x = leaf(2);
  ReLU layer;
  const Tensor h = scaled(x);
  const std::vector<float> before = values(h);
  const Tensor y = layer(h);
  CHECK(values(h) == before);
  CHECK(values(y) == values(relu(h)));
  Tensor view = scaled(x);
  const Tensor same_memory = reshape(view, {33, 7});
  CHECK(values(layer(std::move(view))) == values(relu(h)));
  CHECK(values(same_memory) == before);
  const Tensor other = scaled(scaled(x));
  CHECK(values(h + other) == values(other + h));
  CHECK(values(h) == before);
  const Recording recording;
  const Tensor recorded = layer(scaled(x));
  CHECK(values(recorded.node()->input(0)) == before);
  const Tensor sum = scaled(x) + h;
  CHECK(values(sum.node()->input(0)) == before);
}

TEST_CASE("a sum takes the memory of an operand that nobody else holds", "[autograd][add]") {
  const Tensor x = leaf(5);
  const std::vector<float> expected = values(x * 3.0f + x * 3.0f);
  const std::vector<float> slope = gradient(x, x * 3.0f + x * 3.0f);
  for (const bool first : {true, false}) {
    const Tensor h = x * 3.0f;
    Tensor only = x * 3.0f;
    const float* const memory = only.data();
    const Tensor y = first ? std::move(only) + h : h + std::move(only);
    CHECK(y.data() == memory);
    CHECK(values(y) == expected);
    CHECK(gradient(x, y) == slope);
  }
  // With three operands, the third one is read after the first sum was stored.
  const Tensor h = x * 3.0f;
  std::vector<Tensor> three{h, h};
  three.push_back(x * 3.0f);
  const Tensor y = add(std::move(three));
  CHECK(values(y) == values((h + h) + h));
  // A broadcast operand has another shape than the sum.
  CHECK(values(Tensor::full({1}, 2.0f) + (x * 3.0f)) == values(h + Tensor::full({1}, 2.0f)));
}

namespace {

/// The operands of a batch norm, with other values for each channel.
struct Norm {
  Tensor gamma, beta, mean, variance, factor, shift;

  explicit Norm(int64_t channels)
      : gamma(random_leaf({channels}, 20, -1.5f, 1.5f)),
        beta(random_leaf({channels}, 21)),
        mean(random_tensor({channels}, 22)),
        variance(random_tensor({channels}, 23, 0.5f, 2.0f)),
        factor(random_leaf({channels}, 24, 0.5f, 2.0f)),
        shift(random_tensor({channels}, 25)) {}

  Tensor operator()(Tensor x, bool rescaled, const BatchNormOptions& options) const {
    return rescaled ? rescaled_batch_norm(
                          std::move(x), factor, shift, gamma, beta, mean, variance, options)
                    : batch_norm(std::move(x), gamma, beta, mean, variance, options);
  }
  /// The gradients and statistics after a backward pass from y.
  std::vector<float> results(const Tensor& x, const Tensor& y) {
    std::vector<float> all = values(y);
    const auto append = [&](const std::vector<float>& more) {
      all.insert(all.end(), more.begin(), more.end());
    };
    append(gradient(x, y));
    for (Tensor* leaf : {&gamma, &beta, &factor}) {
      if (leaf->grad().defined()) append(values(leaf->grad()));
      leaf->zero_grad();
    }
    append(values(mean));
    append(values(variance));
    return all;
  }
};

}  // namespace

TEST_CASE("a batch norm with activation and quantization equals separate operations",
          "[quant][activation]") {
  for (const int64_t channels : {1, 24, 33}) {
    for (const bool rescaled : {false, true}) {
      for (const Activation then : {Activation::kNone, Activation::kRelu, Activation::kRelu6}) {
        for (const bool training : {true, false}) {
          if (rescaled && !training) continue;
          for (const bool quantized : {false, true}) {
            if (quantized && !training) continue;
            CAPTURE(channels, rescaled, then, training, quantized);
            const Tensor x = random_leaf({70, channels}, 5);
            std::vector<float> results[2];
            for (const bool fused : {false, true}) {
              Norm norm(channels);
              quant::FakeQuantize quantizer(quant::FakeQuantizeConfig::q4());
              for (const float size : {1.0f, 2.0f}) {  // the second pass moves the range
                BatchNormOptions options{.training = training};
                if (fused) options.activation = then;
                if (fused && quantized) {
                  options.quantize = [&](const Range& range) {
                    return quantizer.params_for(range, 70);
                  };
                }
                Tensor y = norm(x * size, rescaled, options);
                CHECK((y.kind() == ValueKind::kCodes) == (fused && quantized));
                if (!fused) y = activate(std::move(y), then);
                if (!fused && quantized) y = quantizer(std::move(y));
                const std::vector<float> all = norm.results(x, y);
                results[fused].insert(results[fused].end(), all.begin(), all.end());
              }
            }
            CHECK(results[0] == results[1]);
          }
        }
      }
    }
  }
}

TEST_CASE("a batch norm of codes takes an activation", "[quant][activation]") {
  const QParams params{{.bits = 8}, -1, {0.02f}, {128}};
  const Tensor x = random_leaf({70, 12}, 5, -2.0f, 2.0f);
  const QParams out{{.bits = 8}, -1, {0.03f}, {3}};
  Norm a(12);
  Norm b(12);
  const auto codes = [&] { return quant::fake_quantize(x, params); };
  const BatchNormOptions fused{.training = false, .activation = Activation::kRelu6};
  const Tensor y = quant::fake_quantize(a(codes(), false, fused), out);
  const Tensor z = quant::fake_quantize(relu6(b(codes(), false, {.training = false})), out);
  REQUIRE(y.kind() == ValueKind::kCodes);
  CHECK(a.results(x, y) == b.results(x, z));
}

TEST_CASE("a batch norm in evaluation overwrites an input that nothing else needs",
          "[autograd][batch_norm]") {
  const Norm norm(8);
  const Tensor x = random_leaf({9, 8}, 6);
  const BatchNormOptions evaluation{.training = false, .activation = Activation::kRelu};
  const std::vector<float> expected = values(norm(x * 4.0f, false, evaluation));
  const NoGrad no_grad;
  Tensor only = scaled(x);
  const float* const memory = only.data();
  const Tensor y = norm(std::move(only), false, evaluation);
  CHECK(y.data() == memory);
  CHECK(values(y) == expected);
  const Tensor kept = scaled(x);
  const std::vector<float> before = values(kept);
  CHECK(values(norm(kept, false, evaluation)) == expected);
  CHECK(values(kept) == before);
}

TEST_CASE("a batch norm refuses quantization that it cannot compute", "[quant][activation]") {
  const Norm norm(24);
  const auto choose = [](int bits, int axis) {
    return [=](const Range&) {
      const size_t channels = axis < 0 ? 1 : 24;
      return QParams{{.bits = bits},
                     axis,
                     std::vector<float>(channels, 0.1f),
                     std::vector<int32_t>(channels, 3)};
    };
  };
  const Tensor x = random_tensor({40, 24}, 5);
  QUANTRAIN_CHECK_ERROR(norm(x, false, {.training = false, .quantize = choose(8, -1)}),
                        GraphError,
                        "only a batch norm with batch statistics quantizes its result");
  QUANTRAIN_CHECK_ERROR(norm(x, false, {.quantize = choose(9, -1)}), QuantError, "at most 8 bits");
  QUANTRAIN_CHECK_ERROR(norm(x, true, {.quantize = choose(8, 1)}), QuantError, "per tensor");
  Tensor bad = random_tensor({40, 24}, 5);
  bad.mutable_data()[30] = NAN;
  QUANTRAIN_CHECK_ERROR(norm(bad, false, {.quantize = choose(8, -1)}), DataError, "NaN");
  quant::FakeQuantize quantizer(quant::FakeQuantizeConfig::q4());
  const BatchNormOptions observed{
      .quantize = [&](const Range& range) { return quantizer.params_for(range, 40); }};
  CHECK_THROWS_AS(norm(bad, true, observed), DataError);
  CHECK_FALSE(quantizer.is_initialized());
}

TEST_CASE("integer sums that were reshaped keep their scales", "[quant][activation]") {
  const QType weights{.bits = 8, .is_signed = true, .narrow = true};
  const Tensor x = quant::fake_quantize(random_tensor({6, 5}, 1, 0.0f, 1.0f),
                                        {{.bits = 8}, -1, {1.0f / 255.0f}, {0}});
  const Tensor w = quant::fake_quantize(random_tensor({4, 5}, 2),
                                        {weights, 0, {0.01f, 0.02f, 0.03f, 0.04f}, {0, 0, 0, 0}},
                                        {.storage = CodeStorage::kS8});
  const Tensor sums = linear(x, w, Tensor());
  REQUIRE(sums.kind() == ValueKind::kWaiting);
  for (const int64_t channels : {4, 8, 2}) {
    const Tensor shaped = reshape(sums, {-1, channels});
    CHECK(values(Norm(channels)(shaped, true, {})) ==
          values(Norm(channels)(TensorAccess::as_floats(shaped), true, {})));
  }
}

TEST_CASE("a masked gradient takes the memory of a gradient that nobody else holds",
          "[autograd][activation]") {
  Tensor grad = Tensor::from({10}, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  CHECK(masked(grad, {}).same_as(grad));
  Buffer<uint8_t> mask(2);
  mask[0] = 0b10000101;
  mask[1] = 0b10;
  const std::vector<float> expected{1, 0, 3, 0, 0, 0, 0, 8, 0, 10};
  const Tensor held = grad;
  CHECK(values(masked(grad, mask)) == expected);
  CHECK(held.data()[1] == 2.0f);
  const Tensor only = test::random_tensor({10}, 1);
  const float* const memory = only.data();
  const Tensor result = masked(only, mask);
  CHECK(result.data() == memory);
}

namespace {

/// Layers whose batch norms have every kind of successor.
Sequential network() {
  return Sequential{Conv2d{3, 10, {.kernel = 3}},
                    BatchNorm2d{10},
                    ReLU{},
                    Conv2d{10, 16, {.kernel = 3}},
                    BatchNorm2d{16},
                    ReLU6{},
                    BatchNorm2d{16},  // no product precedes it
                    ReLU{},
                    Conv2d{16, 5, {.kernel = 1}},
                    BatchNorm2d{5},
                    Flatten{},
                    Linear{5 * 16, 4}};
}

/// Outputs, gradients and state of two training steps. In a recording, nothing is fused.
std::vector<float> trained(Sequential net, bool recorded) {
  std::vector<float> all;
  for (const uint64_t seed : {7u, 8u}) {
    std::optional<Recording> recording;
    if (recorded) recording.emplace();
    net.zero_grad();
    const Tensor y = net(random_tensor({6, 8, 8, 3}, seed));
    cross_entropy(y, std::vector<int32_t>{0, 1, 2, 3, 0, 1}).backward();
    const auto append = [&](const std::vector<float>& more) {
      all.insert(all.end(), more.begin(), more.end());
    };
    append(values(y));
    for (const Tensor& parameter : net.parameters()) append(values(parameter.grad()));
    for (const NamedState& buffer : net.named_buffers()) append(values(buffer));
  }
  CHECK(all.size() > 1000);
  return all;
}

void initialize(Module& net) {
  Random random(3);
  for (Tensor parameter : net.parameters())
    for (int64_t i = 0; i < parameter.elements(); ++i)
      parameter.mutable_data()[i] = random.uniform(-0.5f, 0.5f);
}

Sequential initialized() {
  Sequential net = network();
  initialize(net);
  return net;
}

/// Counts the nodes of a type in the graph of a training step.
int64_t count(Sequential& net, std::string_view type) {
  const Graph graph(net(random_tensor({6, 8, 8, 3}, 7)));
  return std::count_if(graph.nodes().begin(), graph.nodes().end(), [&](const GraphNode& node) {
    return node.type() == type;
  });
}

}  // namespace

TEST_CASE("Sequential runs a batch norm and its activation as one operation", "[layers]") {
  CHECK(trained(initialized(), false) == trained(initialized(), true));
  Sequential net = initialized();
  CHECK(count(net, "relu") + count(net, "relu6") == 0);
  CHECK(count(net, "batch_norm") == 4);
  const Recording recording;
  CHECK(count(net, "relu") == 2);
  CHECK(count(net, "relu6") == 1);
}

TEST_CASE("a prepared network whose batch norms are fused trains with the same bits",
          "[quant][activation]") {
  for (const quant::Estimator estimator :
       {quant::Estimator::kClamped, quant::Estimator::kPlain, quant::Estimator::kLearned}) {
    for (const bool percentile : {false, true}) {
      for (const quant::Simulation simulation :
           {quant::Simulation::kInteger, quant::Simulation::kFloat}) {
        CAPTURE(estimator, percentile, simulation);
        const auto prepared = [&] {
          Sequential net = initialized();
          quant::QConfig config = quant::QConfig::int8();
          config.input_range = {-1.0f, 1.0f};
          config.model.activation.estimator = estimator;
          if (percentile) config.model.activation.observer = quant::PercentileOptions{};
          config.simulation = simulation;
          quant::prepare_qat(net, random_tensor({1, 8, 8, 3}, 1), config);
          return net;
        };
        CHECK(trained(prepared(), false) == trained(prepared(), true));
      }
    }
  }
}

namespace {

/// Doubles its input while it trains. A recording in evaluation does not show it.
class TrainingOnly : public Module {
 public:
  std::string_view type() const override { return "TrainingOnly"; }

 protected:
  Tensor forward(const Tensor& x) override { return training() ? x * -2.0f : x; }
};

/// A batch norm and a ReLU, with a recording of the batch norm alone if `recorded` is set.
class Parts : public Module {
 public:
  bool recorded = false;
  std::string_view type() const override { return "Parts"; }

 protected:
  Tensor forward(const Tensor& x) override {
    std::optional<Recording> recording;
    if (recorded) recording.emplace();
    Tensor y = (*norm_)((*conv_)(x));
    recording.reset();
    return (*relu_)(std::move(y));
  }

 private:
  std::shared_ptr<Conv2d> conv_ = add("conv", Conv2d{3, 8, {.kernel = 3}});
  std::shared_ptr<BatchNorm2d> norm_ = add("norm", BatchNorm2d{8});
  std::shared_ptr<ReLU> relu_ = add("relu", ReLU{});
};

/// Calls the operation with an activation.
class OwnNorm : public Module {
 public:
  std::string_view type() const override { return "OwnNorm"; }

 protected:
  Tensor forward(const Tensor& x) override {
    return batch_norm(x,
                      gamma_,
                      beta_,
                      mean_,
                      variance_,
                      {.training = training(), .activation = Activation::kRelu});
  }

 private:
  Tensor gamma_ = add_parameter("gamma", Tensor::full({8}, 1.0f));
  Tensor beta_ = add_parameter("beta", Tensor::zeros({8}));
  Tensor mean_ = add_buffer("mean", Tensor::zeros({8}));
  Tensor variance_ = add_buffer("variance", Tensor::full({8}, 1.0f));
};

template <class Net>
Net prepared(Net net) {
  initialize(net);
  quant::QConfig config = quant::QConfig::int8();
  config.input_range = {-1.0f, 1.0f};
  quant::prepare_qat(net, random_tensor({1, 8, 8, 3}, 1), config);
  return net;
}

}  // namespace

TEST_CASE("a layer that acts in training only keeps a batch norm and its ReLU apart",
          "[quant][activation]") {
  const auto results = [](bool recorded) {
    Sequential net =
        prepared(Sequential{Conv2d{3, 8, {.kernel = 3}}, BatchNorm2d{8}, TrainingOnly{}, ReLU{}});
    std::optional<Recording> recording;
    if (recorded) recording.emplace();
    const Tensor y = net(random_tensor({6, 8, 8, 3}, 7));
    CHECK(y.kind() == ValueKind::kCodes);
    return values(y);
  };
  CHECK(results(false) == results(true));
}

TEST_CASE("a recording of a part of a pass loses no activation", "[quant][activation]") {
  const auto results = [](bool recorded) {
    Parts net = prepared(Parts{});
    net.recorded = recorded;
    const Tensor y = net(random_tensor({6, 8, 8, 3}, 7));
    CHECK(y.kind() == ValueKind::kCodes);
    return values(y);
  };
  CHECK(results(false) == results(true));
}

TEST_CASE("a FakeQuantize that two layers share quantizes both results", "[quant][activation]") {
  Sequential net = prepared(
      Sequential{Conv2d{3, 8, {.kernel = 3}}, BatchNorm2d{8}, ReLU{}, AvgPool2d{2}, AvgPool2d{1}});
  net.find("3").slots().output = net.find("2").slots().output;
  const Tensor y = net(random_tensor({6, 8, 8, 3}, 7));
  CHECK(y.kind() == ValueKind::kCodes);
  net.find("4").slots().output = nullptr;
  net.find("1").slots().body = nullptr;  // the batch norm runs as in float
  CHECK(net(random_tensor({6, 8, 8, 3}, 7)).kind() == ValueKind::kWaiting);
}

TEST_CASE("prepare refuses a batch norm with an activation of its own", "[quant][activation]") {
  const auto prepare = [] { return prepared(Sequential{Conv2d{3, 8, {.kernel = 3}}, OwnNorm{}}); };
  CHECK_THROWS_AS(prepare(), GraphError);
}

TEST_CASE("a batch norm does not quantize for a slot that was emptied or filled anew",
          "[quant][activation]") {
  const auto result = [](const auto& change) {
    Sequential net{Conv2d{3, 8, {.kernel = 3}}, BatchNorm2d{8}, ReLU{}};
    initialize(net);
    quant::QConfig config = quant::QConfig::int8();
    config.input_range = {-1.0f, 1.0f};
    quant::prepare_qat(net, random_tensor({1, 8, 8, 3}, 1), config);
    change(net.find("2").slots());
    return net(random_tensor({6, 8, 8, 3}, 7));
  };
  CHECK(result([](Slots&) {}).kind() == ValueKind::kCodes);
  std::shared_ptr<Module> kept;  // the slot decides, not who else holds its module
  const Tensor y = result([&](Slots& slots) { kept = std::exchange(slots.output, nullptr); });
  CHECK(y.kind() == ValueKind::kFloat);
  CHECK(*std::min_element(y.data(), y.data() + y.elements()) == 0.0f);
  const QParams given{{.bits = 8}, -1, {0.5f}, {0}};
  const Tensor z =
      result([&](Slots& slots) { slots.output = std::make_shared<quant::FakeQuantize>(given); });
  REQUIRE(z.kind() == ValueKind::kCodes);
  CHECK(values(z) == values(quant::fake_quantize(y.detach(), given)));
}

TEST_CASE("a frozen or evaluated network fuses nothing", "[quant][activation]") {
  Sequential net = initialized();
  quant::QConfig config = quant::QConfig::int8();
  config.input_range = {-1.0f, 1.0f};
  quant::prepare_qat(net, random_tensor({1, 8, 8, 3}, 1), config);
  CHECK(count(net, "fake_quantize") < 9);  // weights, and activations that no batch norm precedes
  net.eval();
  const Tensor evaluated = net(random_tensor({6, 8, 8, 3}, 7));
  net.train();
  quant::freeze(net);
  CHECK(values(net(random_tensor({6, 8, 8, 3}, 7))) == values(evaluated));
}

}  // namespace quantrain
