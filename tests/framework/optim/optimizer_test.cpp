#include "framework/optim/optimizer.hpp"

#include <memory>
#include <stdexcept>

#include "framework/optim/adam.hpp"
#include "framework/optim/rmsprop.hpp"
#include "framework/optim/sgd.hpp"
#include "tests/catch.hpp"
#include "tests/framework/optim/parameters.hpp"
#include "tests/threads.hpp"

namespace quantrain {
namespace {

using test::normal_tensor;
using test::parameter;
using test::values;

using Make = std::unique_ptr<Optimizer> (*)(std::vector<Tensor>);
constexpr Make kOptimizers[] = {
    [](std::vector<Tensor> w) -> std::unique_ptr<Optimizer> {
      return std::make_unique<Sgd>(std::move(w), SgdOptions{.momentum = 0.9f});
    },
    [](std::vector<Tensor> w) -> std::unique_ptr<Optimizer> {
      return std::make_unique<Adam>(std::move(w));
    },
    [](std::vector<Tensor> w) -> std::unique_ptr<Optimizer> {
      return std::make_unique<RmsProp>(std::move(w), RmsPropOptions{.momentum = 0.9f});
    }};

/// Sizes of which some fill several blocks, and some share one.
std::vector<Tensor> parameters() {
  std::vector<Tensor> all;
  for (const int64_t n : {1, 40000, 16, 3, 8192, 0, 8191, 17, 30000, 5})
    all.push_back(parameter({n}, static_cast<uint64_t>(n)));
  return all;
}

void set_grads(std::vector<Tensor>& parameters, uint64_t seed) {
  for (Tensor& w : parameters) w.set_grad(normal_tensor(w.shape(), seed++));
}

/// Leaves the work of the first parameter to step() and throws at the second.
class Throws : public Optimizer {
 public:
  explicit Throws(std::vector<Tensor> w) : Optimizer("throws", std::move(w), 1.0f) {}
  bool throws = true;

 protected:
  void update(size_t i, Tensor& parameter, const Tensor&) override {
    if (i == 1 && throws) throw std::runtime_error("second");
    update_later(parameter.elements(), [w = parameter.mutable_data()](int64_t begin, int64_t end) {
      CHECK(begin % 16 == 0);
      for (int64_t k = begin; k < end; ++k) w[k] += 1.0f;
    });
  }
};

}  // namespace

TEST_CASE("one optimizer of many parameters gives the bits of one optimizer for each",
          "[optim][optimizer]") {
  const test::DefaultThreads restore;
  for (const Make make : kOptimizers) {
    for (const int threads : test::thread_counts({1, 2, 5})) {
      set_threads(threads);
      std::vector<Tensor> together = parameters();
      std::vector<Tensor> alone = parameters();
      const std::unique_ptr<Optimizer> all = make(together);
      std::vector<std::unique_ptr<Optimizer>> each;
      for (const Tensor& w : alone) each.push_back(make({w}));
      for (uint64_t t = 0; t < 3; ++t) {
        set_grads(together, 100 * t);
        set_grads(alone, 100 * t);
        all->step();
        for (const std::unique_ptr<Optimizer>& optimizer : each) optimizer->step();
      }
      for (size_t i = 0; i < alone.size(); ++i) CHECK(values(together[i]) == values(alone[i]));
    }
  }
}

TEST_CASE("work that was left to a step that throws is not done by the next",
          "[optim][optimizer]") {
  std::vector<Tensor> w{Tensor::zeros({3}), Tensor::zeros({2})};
  for (Tensor& tensor : w) tensor.set_requires_grad(true);
  Throws optimizer(w);
  set_grads(w, 1);
  CHECK_THROWS_AS(optimizer.step(), std::runtime_error);
  CHECK(values(w[0]) == std::vector<float>{0.0f, 0.0f, 0.0f});
  optimizer.throws = false;
  optimizer.step();
  CHECK(values(w[0]) == std::vector<float>{1.0f, 1.0f, 1.0f});
  CHECK(values(w[1]) == std::vector<float>{1.0f, 1.0f});
}

}  // namespace quantrain
