#include "framework/autograd/ops.hpp"
#include "framework/core/cpu.hpp"
#include "framework/core/error.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"
#include "tests/quant/parity_checks.hpp"
#include "tests/tensors.hpp"

namespace quantrain::quant {
namespace {

using quantrain::test::values;
using test::check_on_every_isa;
using test::check_parity;
using test::random_images;
using test::train_a_little;

/// A batch norm after each Linear: before a ReLU, before a function, and at the end.
Sequential normed_mlp() {
  return Sequential{Linear{12, 9},
                    BatchNorm1d{9},
                    ReLU{},
                    Linear{9, 7, {.bias = false}},
                    BatchNorm1d{7},
                    SiLU{},
                    Linear{7, 4},
                    BatchNorm1d{4}};
}

}  // namespace

TEST_CASE("a batch norm of rows folds into the Linear before it", "[quant][batch_norm]") {
  const int bits = GENERATE(8, 3);
  const Tensor example = random_images({2, 12}, 1);
  Sequential net = normed_mlp();
  prepare_qat(net, example, QConfig::bits(bits, bits));
  train_a_little(net, {6, 12}, 4);
  const Plan rows = plan(net, example);
  CHECK(rows.convertible());
  REQUIRE(rows.rows.size() == 4);
  CHECK(rows.rows[0].folded == "1, 2");
  CHECK(rows.rows[1].folded == "4");
  CHECK(rows.rows[3].folded == "7");
  CHECK(rows.rows[3].output_bits == 32);  // logits stay accumulators
  const IntegerModel model = convert(net, example);
  CHECK(model.program().steps.size() == 4);
  check_on_every_isa(net, model, example, random_images({40, 12}, 9));
}

TEST_CASE("batch norms of rows use the batch's statistics in training, until they are frozen",
          "[quant][batch_norm]") {
  const Tensor example = random_images({2, 12}, 1);
  Sequential net = normed_mlp();
  prepare_qat(net, example, QConfig::int8());
  train_a_little(net, {6, 12}, 2);
  auto& norm = dynamic_cast<BatchNorm1d&>(net.find("1"));
  const std::vector<float> before = values(norm.running_mean());
  train_a_little(net, {6, 12}, 1);
  CHECK(values(norm.running_mean()) != before);
  freeze(net);
  const std::vector<float> frozen = values(norm.running_mean());
  train_a_little(net, {6, 12}, 1);
  CHECK(values(norm.running_mean()) == frozen);
  check_parity(net, convert(net, example), random_images({40, 12}, 9));
  // A frozen network computes the deployed integers in training, too.
  const Tensor images = random_images({5, 12}, 3);
  net.train();
  const std::vector<float> training = values(net(images));
  net.eval();
  CHECK(values(net(images)) == training);
}

TEST_CASE("quantization after training folds batch norms of rows", "[quant][batch_norm]") {
  const Tensor example = random_images({2, 12}, 1);
  Sequential net = normed_mlp();
  train_a_little(net, {6, 12}, 3);
  net.eval();
  const Tensor images = random_images({20, 12}, 4);
  const Tensor expected = net(images);
  prepare_ptq(net, example, QConfig::int8());
  calibrate(net, images);
  const DeployedMode deployed(net);
  // The outputs may differ only by 8-bit rounding; without the batch norm they would differ far
  // more.
  CHECK(quantrain::test::max_difference(net(images), expected) < 0.2);
  check_parity(net, convert(net, example), images);
}

TEST_CASE("the folded weights of a Linear compute Linear and batch norm", "[quant][batch_norm]") {
  Linear fc{12, 9};
  BatchNorm1d norm{9};
  for (int i = 0; i < 5; ++i)
    norm(fc(test::random_normal({16, 12}, 10 + static_cast<uint64_t>(i))));
  norm.eval();
  Folding folding("norm", norm);
  const Weights folded = fold_batch_norm({fc.weight(), fc.bias()}, folding);
  const Tensor x = test::random_normal({7, 12}, 3);
  // Both are sums of twelve products. Folding adds and removes a few float32 roundings.
  CHECK(quantrain::test::max_difference(linear(x, folded.weight, folded.bias), norm(fc(x))) < 1e-5);
}

}  // namespace quantrain::quant
