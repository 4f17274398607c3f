#include <cmath>
#include <functional>
#include <optional>

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops.hpp"
#include "framework/autograd/ops/masked.hpp"
#include "framework/autograd/tensor_access.hpp"
#include "framework/core/error.hpp"
#include "layers/layers.hpp"
#include "quant/prepare/fake_quantize.hpp"
#include "quant/prepare/prepare.hpp"
#include "tests/catch.hpp"
#include "tests/tensors.hpp"

// The layers ReLU and ReLU6 take the floats of an input that nobody else holds. The activation is
// then applied when the floats are read, or by the FakeQuantize that follows. Likewise, a batch
// norm waits for what follows it.
namespace quantrain {
namespace {

using test::random_leaf;
using test::random_tensor;
using test::values;

/// A result that only the caller holds, like that of a batch norm.
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

TEST_CASE("an activation that takes its input's floats gives the same values and gradients",
          "[quant][activation]") {
  const Tensor x = leaf(1);
  ReLU relu_layer;
  ReLU6 relu6_layer;
  Tensor h = scaled(x);
  const float* const memory = h.data();
  const Tensor y = relu_layer(std::move(h));
  CHECK(y.data() == memory);
  CHECK(TensorAccess::pending(y) == nullptr);  // the outermost call applies it
  CHECK(values(y) == values(relu(scaled(x))));
  CHECK(gradient(x, y) == gradient(x, relu(scaled(x))));
  const Tensor y6 = relu6_layer(relu_layer(scaled(x)));
  CHECK(gradient(x, y6) == gradient(x, relu6(scaled(x))));
  CHECK(values(y6) == values(relu6(scaled(x))));
  const Tensor flat = reshape(relu_layer(scaled(x)), {-1});
  CHECK(values(flat) == values(relu(scaled(x))));
  const NoGrad no_grad;
  CHECK(values(relu_layer(scaled(x))) == values(relu(scaled(x))));
}

TEST_CASE("an activation does not take floats that someone else holds", "[quant][activation]") {
  const Tensor x = leaf(2);
  ReLU layer;
  const Tensor h = scaled(x);
  const std::vector<float> before = values(h);
  const Tensor y = layer(h);
  CHECK(values(h) == before);
  CHECK(values(y) == values(relu(h)));
  Tensor view = scaled(x);
  const Tensor same_memory = reshape(view, {33, 7});
  CHECK(values(layer(std::move(view))) == values(relu(scaled(x))));
  CHECK(values(same_memory) == before);
  const Recording recording;
  const Tensor recorded = layer(scaled(x));
  CHECK(values(recorded.node()->input(0)) == before);
}

TEST_CASE("a FakeQuantize applies a pending activation in its own pass", "[quant][activation]") {
  const Tensor x = leaf(3);
  for (const bool six : {false, true}) {
    const auto operation = [&](const Tensor& h) { return six ? relu6(h) : relu(h); };
    for (const quant::Estimator estimator :
         {quant::Estimator::kClamped, quant::Estimator::kPlain, quant::Estimator::kLearned}) {
      CAPTURE(six, estimator);
      quant::FakeQuantizeConfig config = quant::FakeQuantizeConfig::q4();
      config.estimator = estimator;
      auto fused = std::make_shared<quant::FakeQuantize>(config);
      quant::FakeQuantize separate(config);
      ReLU relu_layer;
      ReLU6 relu6_layer;
      Module& layer = six ? static_cast<Module&>(relu6_layer) : relu_layer;
      layer.slots().output = fused;
      for (int pass = 0; pass < 2; ++pass) {  // the second one moves the range
        const auto input = [&] { return pass == 0 ? scaled(x) : scaled(scaled(x)); };
        const Tensor y = layer(input());
        const Tensor expected = separate(operation(input()));
        CHECK(fused->params() == separate.params());
        CHECK(values(y) == values(expected));
        CHECK(gradient(x, y) == gradient(x, expected));
      }
    }
  }
}

/// Reads the activation twice: quantized and as it is.
class Twice : public Module {
 public:
  std::string_view type() const override { return "Twice"; }

 protected:
  Tensor forward(const Tensor& x) override {
    const Tensor h = (*relu_)(scaled(x));
    return (*quantizer_)(h) + h * 0.5f;
  }

 private:
  std::shared_ptr<ReLU> relu_ = add("relu", ReLU{});
  std::shared_ptr<quant::FakeQuantize> quantizer_ =
      add("quantizer", quant::FakeQuantize(quant::FakeQuantizeConfig::q8()));
};

TEST_CASE("a quantized result does not change the gradient of others that read the activation",
          "[quant][activation]") {
  const Tensor x = leaf(4);
  Twice net;
  quant::FakeQuantize quantizer(quant::FakeQuantizeConfig::q8());
  const Tensor h = relu(scaled(x));
  CHECK(gradient(x, net(x)) == gradient(x, quantizer(h) + h * 0.5f));
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

  Tensor operator()(const Tensor& x, bool rescaled, const BatchNormOptions& options) const {
    return rescaled ? rescaled_batch_norm(x, factor, shift, gamma, beta, mean, variance, options)
                    : batch_norm(x, gamma, beta, mean, variance, options);
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

TEST_CASE("a batch norm that waits gives the same values and gradients", "[quant][activation]") {
  for (const int64_t channels : {1, 24, 33}) {
    for (const bool rescaled : {false, true}) {
      for (const Activation then : {Activation::kNone, Activation::kRelu, Activation::kRelu6}) {
        for (const bool training : {true, false}) {
          if (rescaled && !training) continue;
          for (const auto estimator : {std::optional<quant::Estimator>(),
                                       std::optional(quant::Estimator::kClamped),
                                       std::optional(quant::Estimator::kPlain),
                                       std::optional(quant::Estimator::kLearned)}) {
            CAPTURE(channels, rescaled, then, training, estimator.has_value());
            const Tensor x = random_leaf({70, channels}, 5);
            quant::FakeQuantizeConfig config = quant::FakeQuantizeConfig::q4();
            config.estimator = estimator.value_or(quant::Estimator::kClamped);
            std::vector<float> results[2];
            for (const bool waits : {false, true}) {
              Norm norm(channels);
              quant::FakeQuantize quantizer(config);
              for (const float size : {1.0f, 2.0f}) {  // the second pass moves the range
                Tensor y = norm(x * size, rescaled, {.training = training, .last_use = waits});
                CHECK((TensorAccess::pending(y) != nullptr) == waits);
                if (then != Activation::kNone && waits)
                  y = activate_last_use(y, then);
                else if (then != Activation::kNone)
                  y = then == Activation::kRelu ? relu(y) : relu6(y);
                if (estimator) y = quantizer(std::move(y));
                const std::vector<float> all = norm.results(x, y);
                results[waits].insert(results[waits].end(), all.begin(), all.end());
              }
            }
            CHECK(results[0] == results[1]);
          }
        }
      }
    }
  }
}

TEST_CASE("a batch norm does not wait if someone else may write to its input",
          "[quant][activation]") {
  const Norm norm(8);
  const Tensor x = random_leaf({9, 8}, 6);
  Tensor h = scaled(x);
  const Tensor alias = h;
  CHECK(TensorAccess::pending(norm(h, false, {.last_use = true})) == nullptr);
  Tensor view = scaled(x);
  const Tensor same_memory = reshape(view, {8, 9});
  CHECK(TensorAccess::pending(norm(view, false, {.last_use = true})) == nullptr);
  CHECK(TensorAccess::pending(norm(view, true, {.last_use = true})) == nullptr);
  const Tensor y = norm(scaled(x), false, {.last_use = true});
  CHECK(TensorAccess::pending(y) != nullptr);
  const Tensor detached = y.detach();  // also reads the values
  CHECK(TensorAccess::pending(y) == nullptr);
  CHECK(values(detached) == values(norm(scaled(x), false, {})));
  // Without a graph, the results overwrite the input.
  const NoGrad no_grad;
  const std::vector<float> expected = values(norm(scaled(x), false, {.training = false}));
  Tensor only = scaled(x);
  const float* const own = only.data();
  const Tensor result =
      norm(std::exchange(only, Tensor()), false, {.training = false, .last_use = true});
  CHECK(result.data() == own);
  CHECK(values(result) == expected);
}

TEST_CASE("an addition does the pass of a batch norm, and leaves it to others",
          "[quant][activation]") {
  const QParams params{{.bits = 4}, -1, {0.2f}, {8}};
  const auto relu_of = [](Tensor y, bool waits) {
    return waits ? activate_last_use(y, Activation::kRelu) : relu(y);
  };
  const auto codes_of = [&](Tensor y, bool waits) {
    return quant::fake_quantize(y, params, {.last_use = waits});
  };
  const std::vector<std::function<Tensor(Tensor, Tensor, bool)>> functions{
      [](Tensor y, Tensor x, bool) { return y + x; },
      [](Tensor y, Tensor x, bool) { return x + y; },
      [&](Tensor y, Tensor x, bool waits) { return relu_of(y + x, waits); },
      // A later operation must not put its mask into the pass.
      [&](Tensor y, Tensor x, bool waits) {
        const Tensor sum = y + x;
        return relu_of(std::move(y), waits) + sum;
      },
      [&](Tensor y, Tensor x, bool waits) {
        const Tensor sum = x + y;
        return codes_of(std::move(y), waits) + sum;
      },
      [](Tensor y, Tensor x, bool) { return (y + x) * (y + y) + (y + Tensor::full({24}, 0.5f)); },
  };
  const Tensor x = random_leaf({40, 24}, 5);
  for (size_t i = 0; i < functions.size(); ++i) {
    for (const bool rescaled : {false, true}) {
      for (const bool training : {true, false}) {
        if (rescaled && !training) continue;
        CAPTURE(i, rescaled, training);
        const auto results = [&](bool waits) {
          Norm norm(24);
          Tensor y = norm(scaled(x), rescaled, {.training = training, .last_use = waits});
          CHECK((TensorAccess::pending(y) != nullptr) == waits);
          return norm.results(x, functions[i](std::move(y), x, waits));
        };
        CHECK(results(true) == results(false));
        const NoGrad no_grad;
        const auto value = [&](bool waits) {
          const Norm norm(24);
          Tensor y = norm(scaled(x), rescaled, {.training = training, .last_use = waits});
          return values(functions[i](std::move(y), x, waits));
        };
        CHECK(value(true) == value(false));
      }
    }
  }
  // The pass still waits, and two passes can meet.
  const Norm norm(24);
  const Tensor y = norm(scaled(x), false, {.last_use = true});
  const Tensor z = norm(scaled(x), true, {.last_use = true});
  const Tensor sum = y + z;
  CHECK(TensorAccess::pending(y) != nullptr);
  CHECK(TensorAccess::pending(z) == nullptr);
  CHECK(values(sum) == values(norm(scaled(x), false, {}) + norm(scaled(x), true, {})));
}

TEST_CASE("whoever reads a waiting batch norm gets its values and gradients",
          "[quant][activation]") {
  const auto waiting = [](const Norm& norm, const Tensor& x) {
    return norm(scaled(x), true, {.last_use = true});
  };
  const auto separate = [](const Norm& norm, const Tensor& x) { return norm(scaled(x), true, {}); };
  const Tensor x = random_leaf({40, 24}, 5);
  const auto check = [&](const auto& function) {
    Norm a(24);
    Norm b(24);
    const std::vector<float> got = a.results(x, function(waiting(a, x), true));
    CHECK(got == b.results(x, function(separate(b, x), false)));
  };
  SECTION("a second activation does not join") {
    check([](Tensor y, bool waits) {
      if (!waits) return relu6(relu(y));
      y = activate_last_use(y, Activation::kRelu);
      CHECK(TensorAccess::pending(y) != nullptr);
      return activate_last_use(y, Activation::kRelu6);
    });
  }
  SECTION("two consumers") {
    check([](const Tensor& y, bool) {
      quant::FakeQuantize quantizer(quant::FakeQuantizeConfig::q4());
      const Tensor quantized = quantizer(y);
      return activate_last_use(y, Activation::kRelu) + quantized;
    });
  }
  SECTION("an observer that needs the values") {
    check([](Tensor y, bool) {
      quant::FakeQuantizeConfig config = quant::FakeQuantizeConfig::q4();
      config.observer = quant::PercentileOptions{};
      return quant::FakeQuantize(config)(std::move(y));
    });
  }
  SECTION("two backward passes") {
    Norm norm(24);
    Tensor y = waiting(norm, x);
    y = activate_last_use(y, Activation::kRelu);
    Tensor loss = sum(y * random_tensor(y.shape(), 9));
    loss.backward(true);
    const std::vector<float> once = values(norm.gamma.grad());
    loss.backward();
    std::vector<float> twice = values(norm.gamma.grad());
    for (float& value : twice) value *= 0.5f;
    CHECK(twice == once);
  }
  SECTION("a NaN is refused") {
    Tensor bad = random_tensor({40, 24}, 5);
    bad.mutable_data()[30] = NAN;
    quant::FakeQuantize quantizer(quant::FakeQuantizeConfig::q4());
    CHECK_THROWS_AS(quantizer(waiting(Norm(24), bad)), DataError);
    CHECK_FALSE(quantizer.is_initialized());
  }
  SECTION("a recording keeps what the FakeQuantize reads") {
    Norm norm(24);
    Tensor y = waiting(norm, x);
    const Recording recording;
    quant::FakeQuantize quantizer(quant::FakeQuantizeConfig::q4());
    const Tensor z = quantizer(std::move(y));
    CHECK(values(z.node()->input(0)) == values(separate(Norm(24), x)));
  }
}

/// Gives its input the gradient 1, without ever reading it.
class BlindNode : public Node {
 public:
  std::string_view type() const override { return "blind"; }
  std::vector<Tensor> backward(Tensor) override { return {Tensor::full(input(0).shape(), 1.0f)}; }
};

TEST_CASE("a gradient for an activation that nobody read is refused", "[quant][activation]") {
  const Tensor x = random_leaf({40, 24}, 5);
  const auto check = [](const Tensor& h, const std::string& operation) {
    const Tensor y = activate_last_use(h, Activation::kRelu);
    Tensor loss = record<BlindNode>(Tensor::zeros({1}), {y});
    QUANTRAIN_CHECK_ERROR(
        loss.backward(),
        GraphError,
        "[" + operation + "] the result was not read before backward(): nothing depends on it");
  };
  check(scaled(x), "relu");
  check(Norm(24)(scaled(x), false, {.last_use = true}), "batch_norm");
}

TEST_CASE("a waiting result that becomes a leaf is computed first", "[quant][activation]") {
  Norm norm(24);
  norm.gamma.set_requires_grad(false);
  norm.beta.set_requires_grad(false);
  const Tensor x = random_tensor({40, 24}, 5);
  const auto leaf = [&](bool waits) {
    return norm(x * 4.0f, false, {.training = false, .last_use = waits}).set_requires_grad(true);
  };
  const QParams params{{.bits = 4}, -1, {0.1f}, {3}};
  const Tensor y = leaf(true);
  const Tensor expected = leaf(false);
  sum(quant::fake_quantize(y, params, {.last_use = true})).backward();
  sum(quant::fake_quantize(expected, params)).backward();
  CHECK(values(y.grad()) == values(expected.grad()));
  const Tensor before_relu = leaf(true);
  const Tensor expected_before = leaf(false);
  sum(activate_last_use(before_relu, Activation::kRelu)).backward();
  sum(relu(expected_before)).backward();
  CHECK(values(before_relu.grad()) == values(expected_before.grad()));
}

TEST_CASE("integer sums that were reshaped keep their scales", "[quant][activation]") {
  const QType weights{.bits = 8, .is_signed = true, .narrow = true};
  const Tensor x = quant::fake_quantize(random_tensor({6, 5}, 1, 0.0f, 1.0f),
                                        {{.bits = 8}, -1, {1.0f / 255.0f}, {0}});
  const Tensor w = quant::fake_quantize(random_tensor({4, 5}, 2),
                                        {weights, 0, {0.01f, 0.02f, 0.03f, 0.04f}, {0, 0, 0, 0}},
                                        {.storage = CodeStorage::kS8});
  const Tensor sums = linear(x, w, Tensor());
  REQUIRE(sums.kind() == ValueKind::kAccumulators);
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

TEST_CASE("a prepared network whose batch norms wait trains with the same bits",
          "[quant][activation]") {
  const auto train = [](bool recorded) {
    Sequential net{Conv2d{3, 10, {.kernel = 3}},
                   BatchNorm2d{10},
                   ReLU{},
                   Conv2d{10, 16, {.kernel = 3}},
                   BatchNorm2d{16},
                   ReLU6{},
                   Conv2d{16, 5, {.kernel = 1}},
                   BatchNorm2d{5},
                   Flatten{},
                   Linear{5 * 16, 4}};
    Random random(3);
    for (Tensor parameter : net.parameters())
      for (int64_t i = 0; i < parameter.elements(); ++i)
        parameter.mutable_data()[i] = random.uniform(-0.5f, 0.5f);
    quant::QConfig config = quant::QConfig::int8();
    config.input_range = {-1.0f, 1.0f};
    quant::prepare_qat(net, random_tensor({1, 8, 8, 3}, 1), config);
    std::vector<float> all;
    for (const uint64_t seed : {7u, 8u}) {
      std::optional<Recording> recording;
      if (recorded) recording.emplace();  // nothing waits in a recording
      net.zero_grad();
      const Tensor y = net(random_tensor({6, 8, 8, 3}, seed));
      cross_entropy(y, std::vector<int32_t>{0, 1, 2, 3, 0, 1}).backward();
      const std::vector<float> outputs = values(y);
      all.insert(all.end(), outputs.begin(), outputs.end());
      for (const Tensor& parameter : net.parameters()) {
        const std::vector<float> grad = values(parameter.grad());
        all.insert(all.end(), grad.begin(), grad.end());
      }
      for (const NamedState& buffer : net.named_buffers()) {
        const std::vector<float> state = values(buffer);
        all.insert(all.end(), state.begin(), state.end());
      }
    }
    return all;
  };
  const std::vector<float> waiting = train(false);
  CHECK(waiting.size() > 1000);
  CHECK(waiting == train(true));
}

}  // namespace quantrain
