#include "framework/optim/averaging.hpp"

#include <limits>
#include <memory>
#include <string>

#include "framework/autograd/ops.hpp"
#include "framework/autograd/parameters.hpp"
#include "framework/core/error.hpp"
#include "framework/optim/adam.hpp"
#include "framework/optim/sgd.hpp"
#include "tests/framework/optim/parameters.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/vectors.hpp"

namespace quantrain {
namespace {

using test::normal_tensor;
using test::parameter;
using test::values;

void set(Tensor& w, const Tensor& to) { std::copy_n(to.data(), to.elements(), w.mutable_data()); }

}  // namespace

TEST_CASE("exponential averages equal PyTorch's", "[optim][averaging][pytorch]") {
  // Each of four updates rounds at most twice.
  constexpr test::Tolerance kFloat32{1e-6, 1e-6};
  for (const test::Json& c : test::load_vectors("averages")) {
    Tensor w = Tensor::zeros(test::to_tensor(c.at("parameter")[0]).shape());
    ExponentialAverage average({w}, {.decay = c.at("decay").get<float>()});
    for (size_t step = 0; step < c.at("parameter").size(); ++step) {
      set(w, test::to_tensor(c.at("parameter")[step]));
      average.update();
      const AveragedWeights scope(average);
      test::check_close(w, c.at("average")[step], kFloat32);
    }
  }
}

TEST_CASE("weights hold their averages within a scope and are restored afterwards",
          "[optim][averaging]") {
  Tensor a = parameter({3}, 1);
  Tensor b = parameter({0, 2}, 2);
  Tensor c = parameter({1}, 3);
  ExponentialAverage average({a, b, c}, {.decay = 0.5f});
  average.update();
  const std::vector<float> before = values(a);
  set(a, Tensor::full({3}, 7.0f));
  average.update();
  {
    const AveragedWeights scope(average);
    for (size_t i = 0; i < 3; ++i) CHECK(values(a)[i] == 0.5f * before[i] + 0.5f * 7.0f);
    {
      const AveragedWeights again(average);
      set(a, Tensor::zeros({3}));
    }
    CHECK(values(a)[0] == 0.5f * before[0] + 0.5f * 7.0f);
    QUANTRAIN_CHECK_ERROR(average.update(),
                          GraphError,
                          "the tensors hold their averages while an AveragedWeights lives");
  }
  CHECK(values(a) == std::vector<float>(3, 7.0f));
  CHECK_NOTHROW(average.update());
}

TEST_CASE("averages continue from saved state as if they had not stopped", "[optim][averaging]") {
  const test::TemporaryFolder folder;
  Tensor w = parameter({37}, 1);
  ExponentialAverage whole({w}, {.decay = 0.9f});
  ExponentialAverage first({w}, {.decay = 0.9f});
  const auto step = [&](uint64_t seed, ExponentialAverage& average) {
    set(w, normal_tensor({37}, seed));
    average.update();
  };
  for (uint64_t i = 0; i < 6; ++i) step(i, whole);
  for (uint64_t i = 0; i < 3; ++i) step(i, first);
  CHECK(first.state()[0].name == "started");
  CHECK(first.state()[1].name == "0.average");
  {
    // In this scope the parameters hold the averages. That does not change the state to save.
    const AveragedWeights scope(first);
    save_parameters(folder / "state", first.state());
  }
  ExponentialAverage second({w}, {.decay = 0.9f});
  load_parameters(folder / "state", second.state());
  for (uint64_t i = 3; i < 6; ++i) step(i, second);
  CHECK(values(second.state()[1].tensor) == values(whole.state()[1].tensor));
}

TEST_CASE("invalid tensors, options and states of averages are refused", "[optim][averaging]") {
  const Tensor w = parameter({3}, 1);
  QUANTRAIN_CHECK_ERROR(
      ExponentialAverage({}), DataError, "[exponential_average] there are no tensors");
  QUANTRAIN_CHECK_ERROR(ExponentialAverage({w, w}), DataError, "tensor 1 \"w\" is listed twice");
  QUANTRAIN_CHECK_ERROR(ExponentialAverage({Tensor()}), DataError, "tensor 0 is undefined");
  QUANTRAIN_CHECK_ERROR(ExponentialAverage({sum(w)}), DataError, "is the result of an operation");
  QUANTRAIN_CHECK_ERROR(ExponentialAverage({w}, {.decay = 1.0f}),
                        DataError,
                        "decay is 1, expected at least 0 and less than 1");
  ExponentialAverage average({w});
  QUANTRAIN_CHECK_ERROR(AveragedWeights{average}, GraphError, "there is no average yet");
  average.update();
  const std::vector<float> before = values(w);
  Tensor loaded = average.state()[1].tensor;
  loaded.mutable_data()[1] = std::numeric_limits<float>::quiet_NaN();
  QUANTRAIN_CHECK_ERROR(AveragedWeights{average}, DataError, "state \"0.average\" is not finite");
  CHECK(values(w) == before);
  IntegerBuffer started = average.state()[0].integers;
  CHECK_THROWS_AS(started.fill(2), DataError);
}

TEST_CASE("the gradients of the parts of a batch add up to the gradient of the batch",
          "[optim][accumulation]") {
  // The parts add up the gradients in another order, so the float32 roundings differ.
  constexpr double kOrder = 1e-6;
  const Tensor x = normal_tensor({8, 5}, 4);
  const std::vector<int32_t> labels{0, 1, 2, 0, 2, 1, 1, 0};
  const auto rows = [&](int64_t begin, int64_t end) {
    return Tensor::from({end - begin, 5},
                        std::vector<float>(x.data() + begin * 5, x.data() + end * 5));
  };
  Tensor whole = parameter({3, 5}, 1);
  Sgd one({whole}, {.learning_rate = 0.5f, .momentum = 0.9f});
  Tensor parts = parameter({3, 5}, 1);
  Sgd two({parts}, {.learning_rate = 0.5f, .momentum = 0.9f});
  for (int step = 0; step < 3; ++step) {
    one.zero_grad();
    cross_entropy(linear(x, whole, Tensor()), labels).backward();
    one.step();
    two.zero_grad();
    for (int64_t part = 0; part < 4; ++part) {
      const Tensor logits = linear(rows(2 * part, 2 * part + 2), parts, Tensor());
      Tensor loss =
          cross_entropy(logits, std::span(labels).subspan(static_cast<size_t>(2 * part), 2));
      mul(loss, Tensor::full({}, 0.25f)).backward();
    }
    two.step();
    CHECK(test::max_difference(whole, parts) < kOrder);
  }
}

TEST_CASE("the last of several AveragedWeights restores the weights", "[optim][averaging]") {
  Tensor w = Tensor::full({2}, 1.0f);
  ExponentialAverage average({w});
  average.update();
  w.mutable_data()[0] = 5.0f;
  for (const bool in_order : {false, true}) {
    auto first = std::make_unique<AveragedWeights>(average);
    auto second = std::make_unique<AveragedWeights>(average);
    (in_order ? second : first).reset();
    CHECK(values(w) == std::vector<float>{1.0f, 1.0f});
    (in_order ? first : second).reset();
    CHECK(values(w) == std::vector<float>{5.0f, 1.0f});
  }
}

}  // namespace quantrain
