#include "framework/autograd/ops.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/training/fake_quantize.hpp"
#include "quant/training/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"
#include "tests/quant/parity_checks.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"

namespace quantrain::quant {
namespace {

using quantrain::test::values;
using test::check_on_every_isa;
using test::check_parity;
using test::random_images;
using test::train_a_little;

/// Shares of channels at each pixel, and those of the classes.
Sequential shares_net() {
  return Sequential{Conv2d{1, 5, {.kernel = 3}},
                    Softmax{},
                    Conv2d{5, 3, {.kernel = 3}},
                    ReLU{},
                    Flatten{},
                    Linear{48, 4},
                    Softmax{}};
}

}  // namespace

TEST_CASE("a softmax within a network and at its end converts", "[quant][softmax]") {
  const int bits = GENERATE(8, 3);
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential net = shares_net();
  prepare_qat(net, example, QConfig::bits(bits, bits));
  train_a_little(net, {6, 8, 8, 1}, 4);
  const Plan rows = plan(net, example);
  CHECK(rows.convertible());
  CHECK(rows.rows[1].kernel == "softmax_u8");
  CHECK(rows.rows[1].output_bits == bits);
  CHECK(rows.rows.back().output_bits == 8);
  const IntegerModel model = convert(net, example);
  check_on_every_isa(net, model, example, random_images({40, 8, 8, 1}, 9));
  const quantrain::test::TemporaryFolder folder;
  model.save(folder / "shares");
  CHECK(IntegerModel::load(folder / "shares").program() == model.program());
}

TEST_CASE("a softmax has the range [0, 1], whatever it has seen", "[quant][softmax]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential net = shares_net();
  prepare_ptq(net, example, QConfig::int8());
  const auto& slot = dynamic_cast<FakeQuantize&>(*net.find("6").slots().output);
  CHECK(slot.is_given());
  const QParams params = slot.params();
  calibrate(net, {random_images({9, 8, 8, 1}, 2)});
  CHECK(slot.params() == params);
  CHECK(params.scale[0] == 1.0f / 255.0f);
  CHECK(params.zero_point[0] == 0);
  check_parity(net, convert(net, example), random_images({40, 8, 8, 1}, 9));
}

TEST_CASE("the gradient of a softmax of codes is that of their real values", "[quant][softmax]") {
  const QParams params{{.bits = 8}, -1, {0.05f}, {100}};
  const Tensor weights = test::random_normal({3, 4, 5, 7}, 8);
  const auto gradient = [&](bool codes) {
    Tensor leaf = test::random_normal({3, 4, 5, 7}, 3, 2.0f).set_requires_grad(true);
    const Tensor q = fake_quantize(leaf, params);
    const Tensor y = softmax(codes ? q : q * 1.0f);
    CHECK((y.kind() == ValueKind::kAccumulators) == codes);
    sum(fake_quantize(y, {{.bits = 8}, -1, {1.0f / 255.0f}, {0}}) * weights).backward();
    return values(leaf.grad());
  };
  const std::vector<float> of_codes = gradient(true);
  const std::vector<float> of_floats = gradient(false);
  for (size_t i = 0; i < of_codes.size(); ++i)
    CHECK(of_codes[i] == quantrain::test::Approx(of_floats[i]).margin(1e-6));
}

TEST_CASE("softmax takes no samples and single elements", "[quant][softmax]") {
  const QParams params{{.bits = 8}, -1, {0.05f}, {100}};
  CHECK(softmax(fake_quantize(Tensor::zeros({0, 3}), params)).shape() == Shape{0, 3});
  CHECK(values(softmax(fake_quantize(Tensor::zeros({2, 1}), params))) ==
        std::vector<float>{1.0f, 1.0f});
  CHECK(values(softmax(fake_quantize(Tensor::zeros({4}), params))) == std::vector<float>(4, 0.25f));
}

}  // namespace quantrain::quant
