#include "framework/optim/adam.hpp"

#include <cmath>

#include "framework/autograd/parameters.hpp"
#include "framework/core/error.hpp"
#include "tests/catch.hpp"
#include "tests/framework/optim/parameters.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain {
namespace {

using test::normal_tensor;
using test::parameter;
using test::take_steps;
using test::values;

// The formulas of torch.optim.Adam and AdamW in double precision.
std::vector<double> adam_reference(const AdamOptions& options, bool decoupled, int64_t steps) {
  const Tensor start = parameter({37}, 1);
  std::vector<double> w(start.data(), start.data() + 37);
  std::vector<double> m(37);
  std::vector<double> v(37);
  for (int64_t t = 0; t < steps; ++t) {
    const Tensor grad = normal_tensor({37}, static_cast<uint64_t>(100 + t));
    const double correction1 = 1.0 - std::pow(double{options.beta1}, static_cast<double>(t + 1));
    const double correction2 = 1.0 - std::pow(double{options.beta2}, static_cast<double>(t + 1));
    for (size_t i = 0; i < 37; ++i) {
      double g = grad.data()[i];
      if (decoupled) {
        w[i] -= double{options.learning_rate} * options.weight_decay * w[i];
      } else {
        g += options.weight_decay * w[i];
      }
      m[i] = options.beta1 * m[i] + (1.0 - options.beta1) * g;
      v[i] = options.beta2 * v[i] + (1.0 - options.beta2) * g * g;
      w[i] -= options.learning_rate * (m[i] / correction1) /
              (std::sqrt(v[i] / correction2) + options.epsilon);
    }
  }
  return w;
}

}  // namespace

TEST_CASE("Adam follows its formula with each option", "[optim][adam]") {
  const AdamOptions all[] = {{},
                             {.learning_rate = 0.1f},
                             {.learning_rate = 0.1f, .beta1 = 0.0f, .beta2 = 0.5f},
                             {.learning_rate = 0.1f, .epsilon = 0.5f, .weight_decay = 0.1f}};
  for (const AdamOptions& options : all) {
    Tensor w = parameter({37}, 1);
    Adam optimizer({w}, options);
    take_steps(optimizer, w, 0, 10);
    CHECK(test::distance(w, adam_reference(options, false, 10)) < test::kRoundingOfTenSteps);
  }
}

TEST_CASE("the weight decay of AdamW does not enter the moments", "[optim][adam]") {
  Tensor w = parameter({37}, 1);
  AdamW optimizer({w}, {.learning_rate = 0.1f, .weight_decay = 0.2f});
  take_steps(optimizer, w, 0, 10);
  CHECK(test::distance(w, adam_reference({.learning_rate = 0.1f, .weight_decay = 0.2f}, true, 10)) <
        test::kRoundingOfTenSteps);
}

TEST_CASE("Adam's first step is -learning_rate times the sign of the gradient", "[optim][adam]") {
  Tensor w = Tensor::zeros({3}).set_requires_grad(true);
  Adam optimizer({w}, {.learning_rate = 0.125f});
  w.set_grad(Tensor::from({3}, std::vector{4.0f, -0.01f, 0.0f}));
  optimizer.step();
  // Epsilon, 1e-8, is only 1e-6 of the smaller gradient, 0.01.
  CHECK(w.data()[0] == test::Approx(-0.125).epsilon(1e-5));
  CHECK(w.data()[1] == test::Approx(0.125).epsilon(1e-5));
  CHECK(w.data()[2] == 0.0f);
}

TEST_CASE("each parameter of Adam counts its own steps", "[optim][adam]") {
  Tensor a = parameter({37}, 1);
  Tensor b = parameter({37}, 1);
  Adam optimizer({a, b}, {.learning_rate = 0.1f});
  take_steps(optimizer, a, 0, 3);  // b has no gradient yet
  a.zero_grad();
  take_steps(optimizer, b, 0, 10);
  CHECK(test::distance(b, adam_reference({.learning_rate = 0.1f}, false, 10)) <
        test::kRoundingOfTenSteps);
  const std::vector<NamedState> state = optimizer.state();
  CHECK(state[2].name == "0.steps");
  CHECK(state[2].integers.item() == 3);
  CHECK(state[5].name == "1.steps");
  CHECK(state[5].integers.item() == 10);
}

TEST_CASE("Adam continues from saved state as if it had not stopped", "[optim][adam]") {
  const test::TemporaryFolder folder;
  Tensor whole = parameter({37}, 1);
  Adam one({whole});
  take_steps(one, whole, 0, 10);

  Tensor first = parameter({37}, 1);
  Adam two({first});
  take_steps(two, first, 0, 4);
  save_parameters(folder / "state", two.state());

  Tensor rest = Tensor::from({37}, values(first)).set_requires_grad(true);
  Adam three({rest});
  load_parameters(folder / "state", three.state());
  take_steps(three, rest, 4, 10);
  CHECK(values(rest) == values(whole));
}

TEST_CASE("Adam counts on after 2^24 steps, and up to 2^53", "[optim][adam]") {
  Tensor w = parameter({3}, 1);
  w.set_grad(Tensor::full({3}, 1.0f));
  Adam optimizer({w});
  IntegerBuffer steps = optimizer.state()[2].integers;
  for (const int64_t before : {int64_t{1} << 24, kMostCount - 1, kMostCount}) {
    steps.fill(before);
    optimizer.step();
    CHECK(steps.item() == std::min(before + 1, kMostCount));
  }
  CHECK_THROWS_AS(steps.fill(-1), DataError);
}

TEST_CASE("Adam refuses invalid moments in its state, and changes nothing", "[optim][adam]") {
  Tensor w = parameter({3}, 1);
  Tensor other = parameter({3}, 2);
  Adam optimizer({w, other});
  take_steps(optimizer, w, 0, 1);
  other.set_grad(Tensor::full({3}, 1.0f));
  const std::vector<float> before = values(w);
  Tensor m = optimizer.state()[3].tensor;
  Tensor v = optimizer.state()[4].tensor;
  const auto refused = [&](Tensor& state, float value, const char* text) {
    const float old = state.data()[1];
    state.mutable_data()[1] = value;
    for (int twice = 0; twice < 2; ++twice) {
      QUANTRAIN_CHECK_ERROR(optimizer.step(), DataError, text);
      CHECK(values(w) == before);
    }
    state.mutable_data()[1] = old;
  };
  refused(v, -1.0f, "[adam] state \"1.v\" holds -1 at 1");
  refused(v, std::nanf(""), "state \"1.v\" holds nan at 1");
  refused(m, HUGE_VALF, "state \"1.m\" holds inf at 1");
  m.mutable_data()[1] = -1.0f;
  optimizer.step();
  CHECK(values(w) != before);
}

TEST_CASE("options of Adam that make no sense are rejected", "[optim][adam]") {
  const Tensor w = parameter({3}, 1);
  const auto make = [&](const AdamOptions& options) { Adam optimizer({w}, options); };
  QUANTRAIN_CHECK_ERROR(
      make({.beta1 = 1.0f}), DataError, "[adam] beta1 is 1, expected at least 0 and less than 1");
  QUANTRAIN_CHECK_ERROR(make({.beta1 = -0.5f}), DataError, "beta1 is -0.5");
  QUANTRAIN_CHECK_ERROR(make({.beta2 = 1.5f}), DataError, "beta2 is 1.5");
  QUANTRAIN_CHECK_ERROR(make({.beta2 = std::nanf("")}), DataError, "beta2 is nan");
  QUANTRAIN_CHECK_ERROR(make({.epsilon = 0.0f}), DataError, "epsilon is 0");
  QUANTRAIN_CHECK_ERROR(make({.weight_decay = -1.0f}), DataError, "weight decay is -1");
  QUANTRAIN_CHECK_ERROR(make({.learning_rate = -1.0f}), DataError, "learning rate is -1");
  QUANTRAIN_CHECK_ERROR(
      AdamW({w}, {.weight_decay = -1.0f}), DataError, "[adamw] weight decay is -1");
  QUANTRAIN_CHECK_ERROR(Adam({}), DataError, "[adam] there are no parameters");
}

}  // namespace quantrain
