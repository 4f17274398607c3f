#include "layers/init.hpp"

#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstring>
#include <thread>

#include "framework/core/error.hpp"
#include "layers/layers.hpp"
#include "tests/catch.hpp"
#include "tests/tensors.hpp"

namespace quantrain {
namespace {

struct Moments {
  double mean = 0.0;
  double deviation = 0.0;
  double max_abs = 0.0;
};

Moments moments(const Tensor& x) {
  Moments m;
  const auto n = static_cast<double>(x.elements());
  for (int64_t i = 0; i < x.elements(); ++i) {
    const double v = x.data()[i];
    m.mean += v / n;
    m.deviation += v * v / n;
    m.max_abs = std::max(m.max_abs, std::abs(v));
  }
  m.deviation = std::sqrt(m.deviation - m.mean * m.mean);
  return m;
}

std::vector<float> parameter_values(const Sequential& net) {
  std::vector<float> all;
  for (const Tensor& p : net.parameters()) all.insert(all.end(), p.data(), p.data() + p.elements());
  return all;
}

// The standard deviation of 20,000 draws is off by more than 2.5 % with a probability below 1e-6.
constexpr double kSampling = 0.025;

}  // namespace

TEST_CASE("fans count the inputs of an output and the outputs of an input", "[layers][init]") {
  CHECK(init::fans({7, 5}).in == 5);
  CHECK(init::fans({7, 5}).out == 7);
  CHECK(init::fans({8, 3, 2, 4}).in == 24);
  CHECK(init::fans({8, 3, 2, 4}).out == 48);
  QUANTRAIN_CHECK_ERROR(
      init::fans({5}), ShapeError, "a weight is [out, in], [O, K, I] or [O, KH, KW, I], got [5]");
}

TEST_CASE("each initialisation has the bound or deviation of its formula", "[layers][init]") {
  manual_seed(1);
  const Tensor w = Tensor::empty({200, 100});
  const double sqrt3 = std::sqrt(3.0);  // bound over deviation of a uniform distribution

  init::kaiming_uniform(w);
  CHECK(moments(w).max_abs <= std::sqrt(6.0 / 100));
  CHECK(moments(w).deviation == test::Approx(std::sqrt(6.0 / 100) / sqrt3).epsilon(kSampling));
  init::kaiming_normal(w);
  CHECK(moments(w).deviation == test::Approx(std::sqrt(2.0 / 100)).epsilon(kSampling));
  CHECK(moments(w).max_abs > 2.5 * std::sqrt(2.0 / 100));
  init::xavier_uniform(w, 2.0);
  CHECK(moments(w).max_abs <= 2.0 * std::sqrt(6.0 / 300));
  CHECK(moments(w).deviation ==
        test::Approx(2.0 * std::sqrt(6.0 / 300) / sqrt3).epsilon(kSampling));
  init::xavier_normal(w);
  CHECK(moments(w).deviation == test::Approx(std::sqrt(2.0 / 300)).epsilon(kSampling));
}

TEST_CASE("a layer's initial values are at most 1 / sqrt(fan in)", "[layers][init]") {
  manual_seed(2);
  const Conv2d conv{16, 64, {.kernel = 3, .groups = 2}};
  const double bound = 1.0 / std::sqrt(8.0 * 9.0);
  CHECK(moments(conv.weight()).max_abs <= bound);
  CHECK(moments(conv.weight()).max_abs > 0.99 * bound);
  CHECK(moments(conv.bias()).max_abs <= bound);
  CHECK(moments(conv.bias()).max_abs > 0.8 * bound);
}

TEST_CASE("the same seed gives the same bits, and another seed gives others", "[layers][init]") {
  const auto make = [](uint64_t seed) {
    manual_seed(seed);
    return parameter_values(Sequential{Conv2d{1, 4}, Linear{16, 3}});
  };
  const std::vector<float> first = make(5);
  CHECK(first == make(5));
  CHECK(first != make(6));
}

TEST_CASE("each parameter draws from its own random stream", "[layers][init]") {
  manual_seed(0);
  const Linear a{4, 4};
  const Linear b{4, 4};
  CHECK(std::memcmp(a.weight().data(), b.weight().data(), 16 * sizeof(float)) != 0);
  CHECK(std::memcmp(a.weight().data(), a.bias().data(), 4 * sizeof(float)) != 0);
}

TEST_CASE("threads that make layers do not mix their seeds", "[layers][init]") {
  const auto weights = [](const Module& net) {
    std::vector<float> all;
    for (const Tensor& parameter : net.parameters())
      all.insert(all.end(), parameter.data(), parameter.data() + parameter.elements());
    return all;
  };
  const auto make = [&](uint64_t seed, const auto& wait) {
    manual_seed(seed);
    wait();  // until the other thread has set its seed
    Sequential net;
    for (int i = 0; i < 50; ++i) net.append(Linear{3, 3});
    return weights(net);
  };
  const std::vector<float> expected[] = {make(1, [] {}), make(2, [] {})};
  std::vector<float> made[2];
  std::vector<std::thread> threads;
  std::barrier seeded(2);
  for (size_t i = 0; i < 2; ++i)
    threads.emplace_back([&, i] { made[i] = make(i + 1, [&] { seeded.arrive_and_wait(); }); });
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < 2; ++i) CHECK(made[i] == expected[i]);
}

TEST_CASE("layers draw from the generator that they are given", "[layers][init]") {
  const auto make = [](Generator& generator) {
    return Sequential{Conv2d{2, 3, {}, generator}, Linear{4, 3, {}, generator}};
  };
  manual_seed(7);
  const Sequential expected{Conv2d{2, 3}, Linear{4, 3}};
  manual_seed(1);
  const Linear first{3, 3};
  manual_seed(1);
  Generator generator(7);
  const Sequential net = make(generator);
  const Linear still_first{3, 3};
  for (size_t i = 0; i < 4; ++i)
    CHECK(test::values(net.parameters()[i]) == test::values(expected.parameters()[i]));
  CHECK(test::values(first.weight()) == test::values(still_first.weight()));
  Generator again(7);
  Dropout drops[] = {Dropout{0.5f, generator}, Dropout{0.5f, again}};
  const Tensor x = Tensor::full({64}, 1.0f);
  CHECK(test::values(drops[0](x)) != test::values(drops[1](x)));
}

}  // namespace quantrain
