#include "framework/autograd/profile.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops.hpp"
#include "framework/optim/sgd.hpp"
#include "tests/catch.hpp"

namespace quantrain {
namespace {

std::map<std::string, int64_t> calls(const Profile& profile) {
  std::map<std::string, int64_t> counts;
  for (const Profile::Entry& entry : profile.entries()) counts[entry.operation] = entry.calls;
  return counts;
}

TEST_CASE("a profile counts operations, their gradients and the optimizer", "[autograd][profile]") {
  Tensor w = Tensor::full({3}, 2.0f);
  w.set_requires_grad(true);
  Sgd optimizer({w}, {.learning_rate = 0.1f});
  const auto step = [&] {
    Tensor loss = sum(relu(relu(w)));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
  };
  step();
  const auto begin = std::chrono::steady_clock::now();
  const Profile profile;
  step();
  {
    const Profile inner;
    const Tensor y = relu(w);
    CHECK(calls(inner) == std::map<std::string, int64_t>{{"relu", 1}});
  }
  step();
  CHECK(calls(profile) ==
        std::map<std::string, int64_t>{
            {"relu", 4}, {"sum", 2}, {"sum backward", 2}, {"relu backward", 4}, {"sgd", 2}});
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  double total = 0.0;
  double before = elapsed.count();
  for (const Profile::Entry& entry : profile.entries()) {
    CHECK(entry.seconds >= 0.0);
    CHECK(entry.seconds <= before);
    before = entry.seconds;
    total += entry.seconds;
  }
  CHECK(total > 0.0);
  CHECK(total <= elapsed.count());
}

TEST_CASE("profiles may end in any order", "[autograd][profile]") {
  Tensor x = Tensor::full({3}, 2.0f);
  x.set_requires_grad(true);
  auto outer = std::make_unique<Profile>();
  auto middle = std::make_unique<Profile>();
  auto inner = std::make_unique<Profile>();
  middle.reset();
  relu(x);
  CHECK(calls(*inner) == std::map<std::string, int64_t>{{"relu", 1}});
  outer.reset();
  relu(x);
  CHECK(calls(*inner) == std::map<std::string, int64_t>{{"relu", 2}});
  inner.reset();
  relu(x);  // no Profile is left
}

TEST_CASE("NoGrad, Recording and Scope may end in any order", "[autograd][node]") {
  Tensor w = Tensor::full({3}, 2.0f);
  w.set_requires_grad(true);
  auto outer = std::make_unique<NoGrad>();
  auto inner = std::make_unique<NoGrad>();
  outer.reset();
  CHECK_FALSE(relu(w).requires_grad());
  inner.reset();
  CHECK(relu(w).requires_grad());
  auto first = std::make_unique<Recording>();
  auto second = std::make_unique<Recording>();
  first.reset();
  CHECK(keeps_values());
  second.reset();
  CHECK_FALSE(keeps_values());
  auto block = std::make_unique<Scope>("block");
  auto layer = std::make_unique<Scope>("layer");
  block.reset();
  layer.reset();
  CHECK(Scope::path() == "");
}

}  // namespace
}  // namespace quantrain
