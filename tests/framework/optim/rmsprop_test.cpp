#include "framework/optim/rmsprop.hpp"

#include <limits>

#include "framework/autograd/parameters.hpp"
#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "tests/framework/optim/parameters.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/threads.hpp"

namespace quantrain {
namespace {

using test::normal_tensor;
using test::parameter;
using test::take_steps;
using test::values;

// The formula of torch.optim.RMSprop in double precision.
std::vector<double> rmsprop_reference(const RmsPropOptions& o, int64_t n, int64_t steps) {
  const Tensor start = parameter({n}, 1);
  std::vector<double> w(start.data(), start.data() + n);
  std::vector<double> v(w.size()), m(w.size()), u(w.size());
  const double alpha = o.alpha;
  for (int64_t t = 0; t < steps; ++t) {
    const Tensor grad = normal_tensor({n}, static_cast<uint64_t>(100 + t));
    for (size_t i = 0; i < w.size(); ++i) {
      const double g = grad.data()[i] + o.weight_decay * w[i];
      v[i] = alpha * v[i] + (1.0 - alpha) * g * g;
      m[i] = alpha * m[i] + (1.0 - alpha) * g;
      const double d = g / (std::sqrt(o.centered ? v[i] - m[i] * m[i] : v[i]) + o.epsilon);
      u[i] = o.momentum * u[i] + d;
      w[i] -= o.learning_rate * u[i];
    }
  }
  return w;
}

}  // namespace

TEST_CASE("RMSprop follows its formula with each option, at every size", "[optim][rmsprop]") {
  const RmsPropOptions all[] = {
      {},
      {.learning_rate = 0.1f, .alpha = 0.5f, .weight_decay = 0.1f},
      {.learning_rate = 0.05f, .alpha = 0.9f, .momentum = 0.8f},
      {.learning_rate = 0.05f, .alpha = 0.9f, .epsilon = 0.5f, .centered = true},
      {.learning_rate = 0.02f, .alpha = 0.9f, .epsilon = 0.5f, .momentum = 0.5f, .centered = true}};
  for (const RmsPropOptions& options : all) {
    for (const int64_t n : {1, 37}) {
      Tensor w = parameter({n}, 1);
      RmsProp optimizer({w}, options);
      take_steps(optimizer, w, 0, 10);
      CAPTURE(n, options.alpha, options.momentum, options.centered);
      CHECK(test::distance(w, rmsprop_reference(options, n, 10)) < 4 * test::kRoundingOfTenSteps);
    }
  }
  Tensor none = parameter({0}, 1);
  RmsProp optimizer({none});
  take_steps(optimizer, none, 0, 2);
}

TEST_CASE("a constant gradient, whose variance is 0, gives no NaN", "[optim][rmsprop]") {
  Tensor w = parameter({5}, 1);
  RmsProp optimizer({w}, {.centered = true});
  for (int i = 0; i < 2000; ++i) {
    w.set_grad(Tensor::full({5}, 0.1f));
    optimizer.step();
  }
  for (const float v : values(w)) CHECK(std::isfinite(v));
}

TEST_CASE("RMSprop continues from saved state as if it had not stopped", "[optim][rmsprop]") {
  const test::TemporaryFolder folder;
  const RmsPropOptions options{.learning_rate = 0.01f, .momentum = 0.9f, .centered = true};
  Tensor whole = parameter({37}, 1);
  RmsProp one({whole}, options);
  take_steps(one, whole, 0, 10);

  Tensor first = parameter({37}, 1);
  RmsProp two({first}, options);
  take_steps(two, first, 0, 4);
  std::vector<std::string> names;
  for (const NamedState& entry : two.state()) names.push_back(entry.name);
  CHECK(names == std::vector<std::string>{"0.square", "0.mean", "0.velocity"});
  save_parameters(folder / "state", two.state());

  Tensor rest = Tensor::from({37}, values(first)).set_requires_grad(true);
  RmsProp three({rest}, options);
  load_parameters(folder / "state", three.state());
  take_steps(three, rest, 4, 10);
  CHECK(values(rest) == values(whole));
}

TEST_CASE("RMSprop refuses options and state that make no sense", "[optim][rmsprop]") {
  Tensor w = parameter({3}, 1);
  const auto make = [&](const RmsPropOptions& options) { RmsProp optimizer({w}, options); };
  QUANTRAIN_CHECK_ERROR(make({.alpha = 1.0f}),
                        DataError,
                        "[rmsprop] alpha is 1, expected at least 0 and less than 1");
  QUANTRAIN_CHECK_ERROR(make({.epsilon = 0.0f}), DataError, "epsilon is 0");
  QUANTRAIN_CHECK_ERROR(make({.weight_decay = -1.0f}), DataError, "weight decay is -1");
  QUANTRAIN_CHECK_ERROR(make({.momentum = 1.0f}), DataError, "momentum is 1");
  RmsProp optimizer({w});
  w.set_grad(Tensor::full({3}, 1.0f));
  Tensor square = optimizer.state()[0].tensor;
  square.mutable_data()[1] = -1.0f;
  QUANTRAIN_CHECK_ERROR(optimizer.step(), DataError, "state \"0.square\" holds -1 at 1");
}

TEST_CASE("RMSprop gives the same bits with any number of threads", "[optim][rmsprop]") {
  std::vector<float> expected;
  for (const int threads : test::thread_counts({1, 2, 4})) {
    set_threads(threads);
    Tensor w = parameter({70000}, 1);
    RmsProp optimizer({w}, {.momentum = 0.9f, .centered = true});
    take_steps(optimizer, w, 0, 2);
    if (expected.empty()) expected = values(w);
    CHECK(values(w) == expected);
  }
  set_threads(0);
}

}  // namespace quantrain
