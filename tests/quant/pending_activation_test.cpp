#include "framework/autograd/ops.hpp"
#include "framework/autograd/tensor_access.hpp"
#include "layers/layers.hpp"
#include "quant/training/fake_quantize.hpp"
#include "tests/catch.hpp"
#include "tests/tensors.hpp"

// The layers ReLU and ReLU6 take the floats of an input that nobody else holds. The activation is
// then applied when the floats are read, or by the FakeQuantize that follows.
namespace quantrain {
namespace {

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
  CHECK(TensorAccess::pending_activation(y) == nullptr);  // the outermost call applies it
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

}  // namespace quantrain
