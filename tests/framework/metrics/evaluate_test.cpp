#include "framework/metrics/evaluate.hpp"

#include "framework/core/error.hpp"
#include "framework/core/random.hpp"
#include "framework/data/tensor_dataset.hpp"
#include "layers/layers.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/tensors.hpp"

namespace quantrain {

using test::values;

namespace {

std::vector<float> drawn(size_t n, uint64_t seed) {
  Random random(seed);
  std::vector<float> all(n);
  for (float& value : all) value = random.uniform(0.0f, 1.0f);
  return all;
}

Dataset encoded_rows(Range range = {0.0f, 1.0f}) {
  std::vector<int32_t> labels;
  for (int32_t i = 0; i < 20; ++i) labels.push_back(i % 3);
  return Dataset::from_floats({20, 6}, drawn(120, 1), labels, 3, range);
}

/// Two inputs, two outputs.
class TwoHeads : public Module {
 public:
  std::string_view type() const override { return "TwoHeads"; }

 protected:
  std::vector<Tensor> forward(const std::vector<Tensor>& x) override {
    return {(*a_)(x.at(0)), (*b_)(x.at(1))};
  }

 private:
  std::shared_ptr<Linear> a_ = add("a", Linear{2, 3});
  std::shared_ptr<Linear> b_ = add("b", Linear{1, 2});
};

}  // namespace

TEST_CASE("an integer model is evaluated on the codes of the batches", "[training][metrics]") {
  manual_seed(1);
  Sequential net{Linear{6, 8}, ReLU{}, Linear{8, 3}};
  const Dataset data = encoded_rows();
  const Tensor example = data.batch(0, 1).input;
  quant::prepare_ptq(net, example, quant::QConfig::int8());
  quant::calibrate(net, DataLoader{data});
  const IntegerModel model = quant::convert(net, example);
  const DataLoader batches(data, {.batch = 7});

  const Batch all = data.batch(0, 20);
  std::vector<int32_t> classes(20);
  model.classify_codes(all.bytes(), classes);
  ConfusionMatrix matrix(3);
  matrix.add(classes, all.labels);
  const Metrics metrics = evaluate(model, batches, {"accuracy", "recall"});
  CHECK(metrics.at("accuracy") == matrix.accuracy());
  CHECK(metrics.at("recall_1") == matrix.recall(1));

  std::vector<float> expected(60);
  model.run_codes(all.bytes(), expected);
  const Tensor y = predict(model, batches);
  CHECK(y.shape() == Shape{20, 3});
  CHECK(values(y) == expected);
  CHECK(predicted_classes(y) == classes);
  // The network computes the same, and so does the model on raw values.
  CHECK(evaluate(net, batches, {"accuracy"}).at("accuracy") == matrix.accuracy());
  const TensorDataset floats(SampleArray::floats({20, 6}, drawn(120, 1)), Labels{data.labels(), 3});
  CHECK(values(predict(model, DataLoader(floats))) == expected);

  CHECK_THROWS_WITH(evaluate(model, DataLoader{encoded_rows({0.0f, 2.0f})}),
                    test::ContainsSubstring("[0, 2]") && test::ContainsSubstring("[0, 1]"));
  CHECK_THROWS_AS(predict(model, DataLoader{encoded_rows({0.0f, 2.0f})}), QuantError);
}

TEST_CASE("a model with several inputs and outputs is evaluated", "[training][metrics]") {
  manual_seed(1);
  TwoHeads net;
  const std::vector<float> first = drawn(20, 2), second = drawn(10, 3);
  const TensorDataset data(std::vector{SampleArray::encoded({10, 2}, first, {0.0f, 1.0f}),
                                       SampleArray::encoded({10, 1}, second, {-1.0f, 1.0f})},
                           std::vector{SampleArray::floats({10, 3}, drawn(30, 4)),
                                       SampleArray::floats({10, 2}, drawn(20, 5))});
  const std::vector<Tensor> example = data.batch(0, 1).inputs();
  quant::prepare_ptq(net, example, quant::QConfig::int8());
  quant::calibrate(net, DataLoader{data});
  const IntegerModel model = quant::convert(net, example);
  const DataLoader batches(data, {.batch = 4});
  const std::vector<Tensor> integers = predict_outputs(model, batches);
  const std::vector<Tensor> simulated = predict_outputs(net, batches);
  REQUIRE(integers.size() == 2);
  REQUIRE(simulated.size() == 2);
  for (size_t i = 0; i < 2; ++i) {
    CHECK(integers[i].shape() == simulated[i].shape());
    CHECK(values(integers[i]) == values(simulated[i]));
  }
  CHECK_THROWS_AS(predict(model, batches), ShapeError);
  CHECK_THROWS_AS(evaluate(model, batches), ShapeError);
  CHECK_THROWS_WITH(predict_outputs(model, DataLoader{encoded_rows()}),
                    test::ContainsSubstring("inputs"));
}

}  // namespace quantrain
