#include "layers/copy.hpp"

#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "framework/optim/sgd.hpp"
#include "layers/layers.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/tensors.hpp"

namespace quantrain {

using test::random_tensor;
using test::values;

namespace {

/// A module that holds its layers as members, and one Tensor of its own.
class MemberBlock : public Module {
 public:
  explicit MemberBlock(int64_t channels)
      : first_(add("first", Conv2d{channels, channels, {.padding = 1, .bias = false}})),
        norm_(add("norm", BatchNorm2d{channels})),
        sum_(add("sum", Add{})),
        relu_(add("relu", ReLU{})) {}
  std::string_view type() const override { return "MemberBlock"; }

 protected:
  Tensor forward(const Tensor& x) override { return (*relu_)((*sum_)((*norm_)((*first_)(x)), x)); }

 private:
  std::shared_ptr<Conv2d> first_;
  std::shared_ptr<BatchNorm2d> norm_;
  std::shared_ptr<Add> sum_;
  std::shared_ptr<ReLU> relu_;
};

Sequential make_copied() {
  return Sequential{MemberBlock{2}, GlobalAvgPool2d{}, Flatten{}, Dropout{0.25f}, Linear{2, 3}};
}

Tensor images(uint64_t seed) { return random_tensor({6, 4, 4, 2}, seed, 0.0f, 1.0f); }

std::vector<float> bits_of(const Module& net) {
  std::vector<float> all;
  for (const NamedState& entry : state(net)) {
    const std::vector<float> some = values(entry);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

void train_steps(Module& net, int steps) {
  Sgd optimizer(net.parameters(), {.learning_rate = 0.1f});
  for (int i = 0; i < steps; ++i) {
    optimizer.zero_grad();
    Tensor loss = cross_entropy(net(images(static_cast<uint64_t>(i))),
                                std::vector<int32_t>{0, 1, 2, 0, 1, 2});
    loss.backward();
    optimizer.step();
  }
}

quant::QConfig on_unit_range() {
  quant::QConfig config = quant::QConfig::bits(4, 8);
  config.input_range = {0.0f, 1.0f};
  config.model.weight.estimator = quant::Estimator::kLearned;
  return config;
}

}  // namespace

TEST_CASE("training a copy leaves the original's bits, and the reverse", "[layers][copy]") {
  manual_seed(1);
  Sequential net = make_copied();
  train_steps(net, 2);
  const std::vector<float> before = bits_of(net);
  Sequential other = copy(net, make_copied);
  CHECK(bits_of(other) == before);
  train_steps(other, 2);
  CHECK(bits_of(net) == before);
  const std::vector<float> trained = bits_of(other);
  CHECK(trained != before);
  train_steps(net, 1);
  CHECK(bits_of(other) == trained);
  net.eval();
  CHECK(other.training());
}

TEST_CASE("a copy has the original's modes and the gradients that it requires", "[layers][copy]") {
  manual_seed(1);
  Sequential net = make_copied();
  net.find("0").eval();
  net.find("0.sum").train();
  net.parameters()[0].set_requires_grad(false);
  Sequential other = copy(net, make_copied);
  CHECK(other.training());
  CHECK_FALSE(other.find("0").training());
  CHECK_FALSE(other.find("0.norm").training());
  CHECK(other.find("0.sum").training());
  CHECK_FALSE(other.parameters()[0].requires_grad());
  CHECK(other.parameters()[1].requires_grad());
  other.parameters()[0].set_requires_grad(true);
  CHECK_FALSE(net.parameters()[0].requires_grad());
}

TEST_CASE("a copy of a prepared network computes the same integers", "[layers][copy]") {
  manual_seed(1);
  Sequential net = make_copied();
  train_steps(net, 1);
  quant::prepare_qat(net, images(9), on_unit_range());
  train_steps(net, 3);
  const auto model_hash = [](Module& network) { return quant::convert(network, images(9)).hash(); };
  for (const bool frozen : {false, true}) {
    if (frozen) quant::freeze(net);
    const std::vector<float> before = bits_of(net);
    Sequential other = copy(net, make_copied);
    CHECK(bits_of(other) == before);
    const uint64_t hash = model_hash(net);
    CHECK(model_hash(other) == hash);
    // From here on, each goes its own way, and training moves ranges only where it may.
    train_steps(other, 2);
    CHECK(bits_of(net) == before);
    CHECK(model_hash(net) == hash);
    CHECK(bits_of(other) != before);
    CHECK(quant::weight_quantizer(other, "4").phase() == quant::weight_quantizer(net, "4").phase());
  }
  quant::set_simulation(net, quant::Simulation::kFloat);
  Sequential floats = copy(net, make_copied);
  CHECK(quant::weight_quantizer(floats, "4").simulation() == quant::Simulation::kFloat);
  // A copy of a copy, and one that was calibrated.
  Sequential calibrated = copy(copy(floats, make_copied), make_copied);
  quant::calibrate(calibrated, images(3));
  CHECK(bits_of(floats) == bits_of(net));
}

TEST_CASE("a copy saturates what the original saturates", "[layers][copy]") {
  Sequential net = make_copied();
  quant::QConfig config = quant::QConfig::int8();
  config.input_range = {0.0f, 1.0f};
  quant::prepare_qat(net, images(0), config);
  net(images(1));
  quant::set_outside(net, Outside::kSaturate);
  Sequential other = copy(net, make_copied);
  for (Sequential* some : {&net, &other}) some->eval();
  const Tensor bright = random_tensor({6, 4, 4, 2}, 3, 2.0f, 3.0f);
  CHECK(values(other(bright)) == values(net(bright)));
}

TEST_CASE("shared parameters stay shared in a copy", "[layers][copy]") {
  const auto make = [] {
    Linear first{3, 3};
    Linear second{first.weight(), first.bias()};
    return Sequential{std::move(first), std::move(second)};
  };
  manual_seed(1);
  Sequential net = make();
  Sequential other = copy(net, make);
  CHECK(other.parameters().size() == 2);
  CHECK(bits_of(other) == bits_of(net));
  CHECK_FALSE(other.parameters()[0].same_as(net.parameters()[0]));
}

TEST_CASE("a copy does not change later random numbers", "[layers][copy]") {
  const auto next = [](bool copies) {
    manual_seed(5);
    Sequential net = make_copied();
    if (copies) copy(net, make_copied);
    return values(Linear{4, 4}.weight());
  };
  CHECK(next(true) == next(false));
}

TEST_CASE("a copy of other layers, or of the same ones, is refused", "[layers][copy]") {
  manual_seed(1);
  Sequential net = make_copied();
  const std::vector<float> before = bits_of(net);
  CHECK_THROWS_AS(copy(net, [] { return Sequential{Linear{2, 3}}; }), GraphError);
  CHECK_THROWS_AS(
      copy(net,
           [] {
             return Sequential{
                 MemberBlock{2}, GlobalAvgPool2d{}, Flatten{}, Dropout{0.25f}, Linear{2, 4}};
           }),
      ShapeError);
  QUANTRAIN_CHECK_ERROR(
      copy_into(net, net), GraphError, "both networks hold the same \"0.first.weight\"");
  Linear first{3, 3};
  Sequential held{Linear{first.weight(), first.bias()}};
  QUANTRAIN_CHECK_ERROR(copy(held,
                             [&] {
                               return Sequential{Linear{first.weight(), first.bias()}};
                             }),
                        GraphError,
                        "the function must make new layers");
  QUANTRAIN_CHECK_ERROR(copy(net,
                             [] {
                               Sequential made = make_copied();
                               quant::prepare_qat(made, images(1), on_unit_range());
                               return made;
                             }),
                        GraphError,
                        "make the float network");
  CHECK(bits_of(net) == before);
}

}  // namespace quantrain
