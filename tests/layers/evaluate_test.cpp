#include "layers/evaluate.hpp"

#include "framework/autograd/ops/cross_entropy.hpp"
#include "framework/core/error.hpp"
#include "framework/data/tensor_dataset.hpp"
#include "layers/layers.hpp"
#include "tests/catch.hpp"
#include "tests/tensors.hpp"

namespace quantrain {

using test::values;

namespace {

TensorDataset eight_rows() {
  std::vector<float> x;
  for (int i = 0; i < 24; ++i) x.push_back(static_cast<float>(i * i % 7));
  return {SampleArray::floats({8, 3}, x), Labels{{0, 1, 0, 1, 1, 0, 0, 1}, 2}};
}

}  // namespace

TEST_CASE("a network is evaluated in evaluation mode, which ends afterwards",
          "[layers][evaluate]") {
  manual_seed(1);
  Sequential net{Linear{3, 4}, BatchNorm1d{4}, Dropout{0.5f}, Linear{4, 2}};
  net.find("1").eval();  // the mode of each module is restored
  const std::vector<float> before = values(net.named_buffers()[0]);
  const DataLoader batches(eight_rows(), {.batch = 3});
  const Metrics metrics = evaluate(net, batches, {"accuracy", "cross_entropy", "recall"});
  CHECK(net.training());
  CHECK_FALSE(net.find("1").training());
  CHECK(net.find("2").training());
  CHECK(values(net.named_buffers()[0]) == before);

  const Tensor y = predict(net, batches);
  CHECK_FALSE(y.requires_grad());
  net.eval();
  const Batch all = eight_rows().batch(0, 8);
  CHECK(values(y) == values(net(all.input)));
  CHECK(metrics.at("cross_entropy") ==
        test::Approx(double{cross_entropy(net(all.input), all.labels).item()}));
  ConfusionMatrix matrix(2);
  matrix.add(y, all.labels);
  CHECK(metrics.at("accuracy") == matrix.accuracy());
  CHECK(metrics.at("recall_1") == matrix.recall(1));
}

TEST_CASE("an evaluation that fails restores the mode, too", "[layers][evaluate]") {
  Sequential net{Linear{4, 2}};
  CHECK_THROWS_AS(evaluate(net, DataLoader{eight_rows()}), ShapeError);
  CHECK(net.training());
  Sequential other{Linear{3, 2}};
  CHECK_THROWS_AS(evaluate(other, DataLoader{eight_rows()}, {"rmse"}), DataError);
  CHECK(other.training());
}

}  // namespace quantrain
