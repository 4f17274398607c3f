#include "layers/init.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "framework/core/error.hpp"
#include "layers/layers.hpp"
#include "tests/catch.hpp"

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

std::vector<float> values(const Sequential& net) {
  std::vector<float> all;
  for (const Tensor& p : net.parameters()) all.insert(all.end(), p.data(), p.data() + p.elements());
  return all;
}

// 20,000 draws: a deviation is off by more than 2.5 % with a probability below 1e-6.
constexpr double kSampling = 0.025;

}  // namespace

TEST_CASE("fans count the inputs of an output and the outputs of an input", "[layers][init]") {
  CHECK(init::fans({7, 5}).in == 5);
  CHECK(init::fans({7, 5}).out == 7);
  CHECK(init::fans({8, 3, 2, 4}).in == 24);
  CHECK(init::fans({8, 3, 2, 4}).out == 48);
  QUANTRAIN_CHECK_ERROR(
      init::fans({5}), ShapeError, "a weight is [out, in] or [O, KH, KW, I], got [5]");
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

TEST_CASE("a layer starts within one over the root of its fan in", "[layers][init]") {
  manual_seed(2);
  const Conv2d conv{16, 64, {.kernel = 3, .groups = 2}};
  const double bound = 1.0 / std::sqrt(8.0 * 9.0);
  CHECK(moments(conv.weight()).max_abs <= bound);
  CHECK(moments(conv.weight()).max_abs > 0.99 * bound);
  CHECK(moments(conv.bias()).max_abs <= bound);
  CHECK(moments(conv.bias()).max_abs > 0.8 * bound);
}

TEST_CASE("the same seed gives the same bits, another seed others", "[layers][init]") {
  const auto make = [](uint64_t seed) {
    manual_seed(seed);
    return values(Sequential{Conv2d{1, 4}, Linear{16, 3}});
  };
  const std::vector<float> first = make(5);
  CHECK(first == make(5));
  CHECK(first != make(6));
}

TEST_CASE("parameters draw from streams of their own", "[layers][init]") {
  manual_seed(0);
  const Linear a{4, 4};
  const Linear b{4, 4};
  CHECK(std::memcmp(a.weight().data(), b.weight().data(), 16 * sizeof(float)) != 0);
  CHECK(std::memcmp(a.weight().data(), a.bias().data(), 4 * sizeof(float)) != 0);
}

}  // namespace quantrain
