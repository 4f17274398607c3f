#include "framework/optim/sgd.hpp"

#include <cmath>
#include <limits>

#include "framework/autograd/parameters.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "tests/catch.hpp"
#include "tests/framework/optim/parameters.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/threads.hpp"

namespace quantrain {
namespace {

using test::normal_tensor;
using test::parameter;
using test::take_steps;
using test::values;

// The formula of torch.optim.SGD in double precision.
std::vector<double> sgd_reference(const SgdOptions& options, int64_t steps) {
  const Tensor start = parameter({37}, 1);
  std::vector<double> w(start.data(), start.data() + 37);
  std::vector<double> v(37);
  for (int64_t t = 0; t < steps; ++t) {
    const Tensor grad = normal_tensor({37}, static_cast<uint64_t>(100 + t));
    for (size_t i = 0; i < 37; ++i) {
      const double g = grad.data()[i] + options.weight_decay * w[i];
      v[i] = options.momentum * v[i] + g;
      const double direction = options.momentum == 0.0f ? g
                               : options.nesterov       ? g + options.momentum * v[i]
                                                        : v[i];
      w[i] -= options.learning_rate * direction;
    }
  }
  return w;
}

}  // namespace

TEST_CASE("SGD follows its formula with each option", "[optim][sgd]") {
  const SgdOptions all[] = {
      {.learning_rate = 0.1f},
      {.learning_rate = 0.1f, .weight_decay = 0.05f},
      {.learning_rate = 0.1f, .momentum = 0.9f},
      {.learning_rate = 0.1f, .momentum = 0.9f, .nesterov = true},
      {.learning_rate = 0.1f, .momentum = 0.5f, .weight_decay = 0.05f, .nesterov = true}};
  for (const SgdOptions& options : all) {
    Tensor w = parameter({37}, 1);
    Sgd optimizer({w}, options);
    take_steps(optimizer, w, 0, 10);
    CHECK(test::distance(w, sgd_reference(options, 10)) < test::kRoundingOfTenSteps);
  }
}

TEST_CASE("SGD's first steps equal a calculation by hand", "[optim][sgd]") {
  // With w = 1, gradient 1, rate 1/2 and momentum 1/2, v is 1, 3/2, 7/4. Every number is exact.
  Tensor w = Tensor::full({1}, 1.0f).set_requires_grad(true);
  Sgd optimizer({w}, {.learning_rate = 0.5f, .momentum = 0.5f});
  w.set_grad(Tensor::full({1}, 1.0f));
  const uint64_t version = w.version();
  for (const float expected : {0.5f, -0.25f, -1.125f}) {
    optimizer.step();
    CHECK(w.item() == expected);
  }
  CHECK(w.version() == version + 3);
}

TEST_CASE("a parameter without a gradient does not change", "[optim][sgd]") {
  Tensor a = parameter({3}, 1);
  Tensor b = parameter({3}, 2);
  const std::vector<float> before = values(a);
  Sgd optimizer({a, b}, {.learning_rate = 0.1f, .momentum = 0.9f, .weight_decay = 0.1f});
  b.set_grad(Tensor::full({3}, 1.0f));
  optimizer.step();
  CHECK(values(a) == before);
  CHECK(a.version() == parameter({3}, 1).version());
  CHECK(values(optimizer.state()[0].tensor) == std::vector<float>(3, 0.0f));
  CHECK(values(optimizer.state()[1].tensor) != std::vector<float>(3, 0.0f));
  optimizer.zero_grad();
  CHECK_FALSE(b.grad().defined());
}

TEST_CASE("a gradient that shares its memory is only read", "[optim][sgd]") {
  Tensor a = parameter({3}, 1);
  const Tensor grad = Tensor::full({3}, 1.0f);
  a.set_grad(grad);
  Sgd optimizer({a}, {.momentum = 0.9f, .weight_decay = 0.1f});
  optimizer.step();
  CHECK(values(grad) == std::vector<float>(3, 1.0f));
}

TEST_CASE("training continues from saved state as if it had not stopped", "[optim][sgd]") {
  const test::TemporaryFolder folder;
  const SgdOptions options{.learning_rate = 0.1f, .momentum = 0.9f};
  Tensor whole = parameter({37}, 1);
  Sgd one({whole}, options);
  take_steps(one, whole, 0, 10);

  Tensor first = parameter({37}, 1);
  Sgd two({first}, options);
  take_steps(two, first, 0, 4);
  CHECK(two.state()[0].name == "0.velocity");
  save_parameters(folder / "state", two.state());

  Tensor rest = Tensor::from({37}, values(first)).set_requires_grad(true);
  Sgd three({rest}, options);
  load_parameters(folder / "state", three.state());
  take_steps(three, rest, 4, 10);
  CHECK(values(rest) == values(whole));
}

TEST_CASE("SGD refuses a velocity that is not finite", "[optim][sgd]") {
  Tensor w = parameter({3}, 1);
  Sgd optimizer({w}, {.momentum = 0.9f});
  w.set_grad(Tensor::full({3}, 1.0f));
  Tensor velocity = optimizer.state()[0].tensor;
  velocity.mutable_data()[2] = std::numeric_limits<float>::quiet_NaN();
  QUANTRAIN_CHECK_ERROR(optimizer.step(), DataError, "[sgd] state \"0.velocity\" holds nan at 2");
}

TEST_CASE("SGD gives the same bits with any number of threads", "[optim][sgd]") {
  std::vector<float> expected;
  for (const int threads : test::thread_counts({1, 2, 4})) {
    set_threads(threads);
    Tensor w = parameter({70000}, 1);
    Sgd optimizer({w}, {.momentum = 0.9f, .weight_decay = 0.01f});
    take_steps(optimizer, w, 0, 2);
    if (expected.empty()) expected = values(w);
    CHECK(values(w) == expected);
  }
  set_threads(0);
}

TEST_CASE("invalid options and parameters of optimizers are rejected", "[optim][sgd]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor w = parameter({3}, 1, "conv.weight");
  const auto make = [&](const SgdOptions& options) { Sgd optimizer({w}, options); };
  QUANTRAIN_CHECK_ERROR(Sgd({}), DataError, "[sgd] there are no parameters");
  QUANTRAIN_CHECK_ERROR(Sgd({w, Tensor()}), DataError, "parameter 1 is undefined");
  QUANTRAIN_CHECK_ERROR(Sgd({w, w}), DataError, "parameter 1 \"conv.weight\" is listed twice");
  QUANTRAIN_CHECK_ERROR(
      Sgd({Tensor::zeros({2})}), DataError, "parameter 0 does not require a gradient");
  QUANTRAIN_CHECK_ERROR(make({.learning_rate = 0.0f}),
                        DataError,
                        "learning rate is 0, expected a finite number above 0");
  QUANTRAIN_CHECK_ERROR(make({.learning_rate = -1.0f}), DataError, "learning rate is -1");
  QUANTRAIN_CHECK_ERROR(make({.learning_rate = nan}), DataError, "learning rate is nan");
  QUANTRAIN_CHECK_ERROR(make({.learning_rate = infinity}), DataError, "learning rate is inf");
  QUANTRAIN_CHECK_ERROR(
      make({.momentum = 1.0f}), DataError, "momentum is 1, expected at least 0 and less than 1");
  QUANTRAIN_CHECK_ERROR(make({.momentum = -0.1f}), DataError, "momentum is -0.1");
  QUANTRAIN_CHECK_ERROR(make({.weight_decay = -0.1f}), DataError, "weight decay is -0.1");
  QUANTRAIN_CHECK_ERROR(make({.weight_decay = nan}), DataError, "weight decay is nan");
  QUANTRAIN_CHECK_ERROR(make({.nesterov = true}), DataError, "nesterov needs a momentum");
}

TEST_CASE("a learning rate can be set to 0 but not below", "[optim][sgd]") {
  Sgd optimizer({parameter({3}, 1)});
  CHECK(optimizer.learning_rate() == 0.01f);
  optimizer.set_learning_rate(0.0f);
  CHECK(optimizer.learning_rate() == 0.0f);
  QUANTRAIN_CHECK_ERROR(optimizer.set_learning_rate(-1.0f),
                        DataError,
                        "learning rate is -1, expected 0 or a finite number");
  QUANTRAIN_CHECK_ERROR(
      optimizer.set_learning_rate(std::numeric_limits<float>::infinity()), DataError, "is inf");
}

}  // namespace quantrain
