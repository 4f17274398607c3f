#include "framework/kernels/float/gemm.hpp"

#include <limits>

#include "framework/kernels/dispatch/dispatch.hpp"
#include "tests/framework/kernels/guarded.hpp"
#include "tests/framework/kernels/kernel_testing.hpp"
#include "tests/sanitized.hpp"

namespace quantrain::kernels {
namespace {

using test::check_everywhere;
using test::Guarded;
using test::random_floats;
using test::RoundingTolerance;

struct Case {
  int64_t m, n, k;
  bool transposed_a = false;
  bool transposed_b = false;
  EpilogueF32 epilogue{};
  int64_t c_gap = 0;  // unused elements after each row of c; gemm must not write them
};

std::vector<float> obvious(const Case& p, const float* a, const float* b, std::vector<float> c) {
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      double sum = 0.0;
      for (int64_t t = 0; t < p.k; ++t) {
        sum += static_cast<double>(a[p.transposed_a ? t * p.m + i : i * p.k + t]) *
               static_cast<double>(b[p.transposed_b ? j * p.k + t : t * p.n + j]);
      }
      float& to = c[static_cast<size_t>(i * (p.n + p.c_gap) + j)];
      if (p.epilogue.accumulate) sum += static_cast<double>(to);
      if (p.epilogue.bias != nullptr) sum += static_cast<double>(p.epilogue.bias[j]);
      if (p.epilogue.activation != Activation::kNone) sum = std::max(sum, 0.0);
      if (p.epilogue.activation == Activation::kRelu6) sum = std::min(sum, 6.0);
      to = static_cast<float>(sum);
    }
  }
  return c;
}

// The terms have random signs, so partial sums grow with the square root of the number of terms:
// those of 10^5 terms are about ten times as large as those of a thousand.
constexpr RoundingTolerance kLongSums{5e-4, 5e-5};

void check_gemm(const Case& p, const RoundingTolerance& tolerance = {}) {
  INFO("m " << p.m << " n " << p.n << " k " << p.k << " transposed " << p.transposed_a
            << p.transposed_b);
  const Guarded a(random_floats(p.m * p.k, 1));
  const Guarded b(random_floats(p.k * p.n, 2));
  // There is no gap after the last row, so a write after it hits the protected page.
  const int64_t c_size = p.m == 0 ? 0 : p.m * (p.n + p.c_gap) - p.c_gap;
  const std::vector<float> c = random_floats(c_size, 3);
  MatrixF32 left{a.data(), p.k, 1};
  MatrixF32 right{b.data(), p.n, 1};
  if (p.transposed_a) left = {a.data(), 1, p.m};
  if (p.transposed_b) right = {b.data(), 1, p.k};
  const std::vector<float> expected = obvious(p, a.data(), b.data(), c);
  check_everywhere(expected, tolerance, [&] {
    Guarded result(c);
    gemm_f32(p.m, p.n, p.k, left, right, result.data(), p.n + p.c_gap, p.epilogue);
    return result.values();
  });
  check_everywhere(expected, tolerance, [&] {
    Guarded result(c);
    gemm_f32(p.m, left, PackedMatrixF32(p.k, p.n, right), result.data(), p.n + p.c_gap, p.epilogue);
    return result.values();
  });
}

TEST_CASE("gemm equals the obvious loop at every size around tiles and vectors",
          "[kernels][gemm][serial]") {
  for (const int64_t m : {1, 2, 5, 13}) {
    for (const int64_t n : {1, 7, 8, 9, 15, 16, 17, 33, 63, 64, 65, 81, 127, 129}) {
      for (const int64_t k : {1, 2, 3, 17}) check_gemm({m, n, k});
    }
  }
}

TEST_CASE("gemm equals the obvious loop whether its tiles are those for short or for long sums",
          "[kernels][gemm]") {
  for (const bool transposed_a : {false, true}) {
    for (const int64_t m : {14, 31}) {
      for (const int64_t n : {16, 40, 70}) {
        for (const int64_t k : {96, 97}) check_gemm({m, n, k, transposed_a});
      }
    }
  }
}

TEST_CASE("gemm reads either operand transposed", "[kernels][gemm]") {
  for (const bool a : {false, true}) {
    for (const bool b : {false, true}) {
      check_gemm({6, 16, 4, a, b});
      check_gemm({7, 21, 13, a, b});
      check_gemm({67, 70, 35, a, b});
    }
  }
}

TEST_CASE("gemm of few rows or few columns equals the obvious loop", "[kernels][gemm]") {
  const std::vector<float> bias = random_floats(70, 4, -2.0f, 8.0f);
  for (const int64_t k : {136, 149}) {
    for (const int64_t m : {1, 2, 3, 4, 7, 16}) {
      for (const int64_t n : {1, 5, 10, 67}) check_gemm({m, n, k, false, true});
    }
    for (const int64_t n : {1, 3, 10, 12}) check_gemm({61, n, k, false, true});
    check_gemm({3, 67, k, false, true, {bias.data(), Activation::kRelu6, true}, 3});
    check_gemm({61, 10, k, false, true, {bias.data(), Activation::kRelu, false}, 3});
    check_gemm({1, 67, k, false, false, {bias.data(), Activation::kRelu6, true}, 3});
  }
  check_gemm({700, 10, 100, false, true});
  check_gemm({1, 70, 9000});
  check_gemm({1, 70, 9000, false, true});
}

TEST_CASE("gemm equals the obvious loop with more terms or more rows than a block has",
          "[kernels][gemm]") {
  check_gemm({3, 130, 512});
  check_gemm({3, 130, 513});
  check_gemm({9, 40, 1100});
  check_gemm({9, 40, 1100, true, true});
  check_gemm({300, 37, 45, false, true});
  check_gemm({389, 130, 513, true, false});
}

TEST_CASE("gemm adds up the chunks of a long sum before the epilogue", "[kernels][gemm][long]") {
  const std::vector<float> bias = random_floats(70, 4, -2.0f, 8.0f);
  for (const int64_t k : {32769, 70000}) {
    if (test::kSanitized && k > 32769) continue;
    check_gemm({1, 3, k}, kLongSums);
    check_gemm({1, 70, k, false, false, {bias.data(), Activation::kRelu6, true}, 3}, kLongSums);
    check_gemm({3, 5, k, false, true, {bias.data(), Activation::kRelu6, true}, 3}, kLongSums);
    check_gemm({9, 70, k, true, false, {bias.data(), Activation::kRelu, true}, 3}, kLongSums);
    check_gemm({9, 7, k, true, false, {bias.data(), Activation::kNone, false}, 3}, kLongSums);
  }
  check_gemm({260, 3, 32769, false, false, {bias.data(), Activation::kRelu, true}, 3}, kLongSums);
}

TEST_CASE("gemm equals the obvious loop if rows of B are pages apart", "[kernels][gemm][long]") {
  const std::vector<float> bias = random_floats(1024, 4, -2.0f, 8.0f);
  for (const int64_t m : {20, 48, 49, 66}) check_gemm({m, 1024, 9});
  // These products are too large for one task, so gemm works panel by panel.
  for (const int64_t k : {40, 600}) {
    if (test::kSanitized && k == 40) continue;
    check_gemm({40, 1024, k, false, false, {bias.data(), Activation::kRelu6, true}, 3});
    check_gemm({40, 1040, k, true});
    check_gemm({66, 1100, k});
  }
}

TEST_CASE("gemm applies bias, activation and accumulation once, whatever the length of the sum",
          "[kernels][gemm]") {
  const std::vector<float> bias = random_floats(70, 4, -2.0f, 8.0f);
  const int64_t many = test::kSanitized ? 40 : 260;
  for (const int64_t k : {5, 700}) {
    for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kRelu6}) {
      for (const bool accumulate : {false, true}) {
        check_gemm({10, 70, k, false, true, {bias.data(), activation, accumulate}, 3});
        check_gemm({many, 33, k, false, true, {bias.data(), activation, accumulate}, 3});
      }
    }
  }
}

TEST_CASE("gemm of contiguous rows applies the epilogue in every strip of columns",
          "[kernels][gemm][serial]") {
  const std::vector<float> bias = random_floats(129, 4, -2.0f, 8.0f);
  for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kRelu6}) {
    for (const bool accumulate : {false, true}) {
      for (const int64_t n : {10, 63, 65, 81, 129}) {
        for (const int64_t k : {1, 63, 64}) {
          check_gemm({2, n, k, false, false, {bias.data(), activation, accumulate}, 3});
          check_gemm({13, n, k, true, false, {bias.data(), activation, accumulate}, 3});
        }
      }
    }
  }
}

TEST_CASE("gemm over an empty sum applies the epilogue to 0", "[kernels][gemm]") {
  const std::vector<float> bias{-1.0f, 2.0f, 7.0f};
  check_gemm({2, 3, 0});
  check_gemm({2, 70, 0});
  check_gemm({2, 3, 0, false, false, {bias.data(), Activation::kRelu6, false}});
  check_gemm({0, 3, 4});
  check_gemm({3, 0, 4});
}

TEST_CASE("kernels for few rows write nothing if there are no columns", "[kernels][gemm]") {
  const float a[] = {1.0f, 2.0f, 3.0f};
  for (const Isa isa : usable_isas()) {
    for (const int64_t chains : {1, 4}) {
      float c = 7.0f;
      FewF32 p{};
      p.m = 1;
      p.k = 3;
      p.chains = chains;
      p.a = p.b = a;
      p.c = &c;
      float_table(isa).chains_f32(p);
      float_table(isa).dots_f32(p);
      CHECK(c == 7.0f);
    }
  }
}

TEST_CASE("gemm lets NaN through the activation", "[kernels][gemm]") {
  const test::RestoreSettings restore;
  for (const Isa isa : usable_isas()) {
    set_isa(isa);
    const float a[] = {std::numeric_limits<float>::quiet_NaN(), 1.0f};
    const float b[] = {1.0f};
    float c[2];
    gemm_f32(2, 1, 1, {a, 1, 1}, MatrixF32{b, 1, 1}, c, 1, {nullptr, Activation::kRelu6, false});
    CHECK(std::isnan(c[0]));
    CHECK(c[1] == 1.0f);
  }
}

}  // namespace
}  // namespace quantrain::kernels
