#include <algorithm>

#include "tests/framework/kernels/guarded.hpp"
#include "tests/framework/kernels/integer_testing.hpp"
#include "tests/memory_taken.hpp"
#include "tests/sanitized.hpp"

using namespace quantrain;
using namespace quantrain::kernels;
using namespace quantrain::test;

namespace {

struct Product {
  int64_t m, k, n;
  std::vector<uint8_t> x;
  std::vector<int8_t> w;
  std::vector<int32_t> bias;
  int32_t zero_x;

  std::vector<int32_t> sums() const {
    std::vector<int32_t> acc;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t o = 0; o < n; ++o) {
        int32_t sum = bias.empty() ? 0 : bias[static_cast<size_t>(o)];
        for (int64_t j = 0; j < k; ++j) {
          sum += w[static_cast<size_t>(o * k + j)] * (x[static_cast<size_t>(i * k + j)] - zero_x);
        }
        acc.push_back(sum);
      }
    }
    return acc;
  }
};

Product random_product(int64_t m, int64_t k, int64_t n, Random& random) {
  Product p{m, k, n, random_codes(m * k, random), random_weights(n * k, random), {}, 0};
  p.zero_x = static_cast<int32_t>(random.below(256));
  if (random.below(4) != 0) {
    for (int64_t o = 0; o < n; ++o)
      p.bias.push_back(static_cast<int32_t>(random.below(2000001) - 1000000));
  }
  return p;
}

void check_product(const Product& p, const Multipliers& multipliers) {
  CAPTURE(p.m, p.k, p.n, p.zero_x);
  const int32_t* const bias = p.bias.empty() ? nullptr : p.bias.data();
  const std::vector<int32_t> sums = p.sums();
  std::vector<uint8_t> codes;
  for (size_t i = 0; i < sums.size(); ++i) {
    codes.push_back(multipliers(sums[i], static_cast<int64_t>(i) % p.n));
  }
  const PackedWeightsS8 w(p.n, p.k, p.w.data());
  std::vector<int32_t> acc(sums.size(), -1);
  const RequantizeU8 requantize = multipliers.view();
  const ProductParams params(w, p.zero_x, bias, &requantize);
  const Guarded x(p.x);
  gemm_u8s8_s32(p.m, p.k, x.data(), w, params, acc.data());
  CHECK(acc == sums);
  std::vector<uint8_t> y(sums.size(), 7);
  gemm_u8s8_u8(p.m, p.k, x.data(), w, params, y.data());
  CHECK(y == codes);
}

}  // namespace

TEST_CASE("integer products are exact at awkward sizes on every instruction set",
          "[kernels][integer]") {
  for_each_isa([] {
    Random random(1);
    for (const int64_t n : {1, 3, 4, 7, 8, 9, 15, 16, 17, 24, 31, 33, 48, 64, 65, 100}) {
      for (const int64_t k : {0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 20, 31, 33, 64}) {
        const int64_t m = 1 + random.below(20);
        check_product(random_product(m, k, n, random), Multipliers(n, k % 2 == 0, random));
      }
    }
    for (int64_t m = 0; m <= 26; ++m) {
      check_product(random_product(m, 13, 37, random), Multipliers(37, false, random));
    }
  });
}

TEST_CASE("integer products do not saturate at the extremes of their operands",
          "[kernels][integer]") {
  for_each_isa([] {
    Random random(2);
    for (const int w : {127, -127, -128}) {
      for (const int32_t zero_x : {0, 255}) {
        Product p = random_product(9, 67, 35, random);
        p.zero_x = zero_x;
        p.x.assign(p.x.size(), zero_x == 0 ? 255 : 0);
        p.w.assign(p.w.size(), static_cast<int8_t>(w));
        p.bias.assign(35, 0);
        check_product(p, Multipliers(35, false, random));
      }
    }
  });
}

TEST_CASE("integer products are the same for any number of threads", "[kernels][integer]") {
  Random random(3);
  // The threads divide the rows, the panels or both. Blocks consist of pairs of rows, so odd
  // numbers of rows are tested, too. A single row is computed several panels at a time.
  const int64_t shapes[][3] = {{150, 301, 130},
                               {151, 301, 130},
                               {1, 9216, 128},
                               {31, 2100, 200},
                               {1, 37, 452},
                               {1, 8, 500},
                               {1, 35, 446}};
  for (const auto& [m, k, n] : shapes) {
    const Product p = random_product(m, k, n, random);
    const Multipliers multipliers(n, false, random);
    for_each_thread_count([&] { check_product(p, multipliers); });
  }
}

TEST_CASE("a product takes the scratch memory that is planned", "[kernels][integer]") {
  // memory_taken() fills the memory of all earlier tests, which takes a second with checked
  // accesses.
  if (kSanitized) return;
  for_each_isa([] {
    Random random(5);
    for (const int64_t k : {2, 5, 8, 9, 12, 35, 1021}) {
      CAPTURE(k);
      const Product p = random_product(3, k, 6, random);
      const PackedWeightsS8 w(p.n, p.k, p.w.data());
      const ProductParams params(w, p.zero_x, nullptr, nullptr);
      std::vector<int32_t> acc(static_cast<size_t>(p.m * p.n));
      const int64_t taken =
          memory_taken([&] { gemm_u8s8_s32(p.m, p.k, p.x.data(), w, params, acc.data()); });
      const int64_t planned = gemm_scratch(p.m, w);
      // The pool rounds sizes up.
      const int64_t expected =
          planned == 0 ? 0 : memory_taken([&] { const Buffer<uint8_t> scratch(planned); });
      CHECK(taken == expected);
    }
  });
}

TEST_CASE("weights packed for another instruction set give the same product",
          "[kernels][integer]") {
  Random random(4);
  const Product p = random_product(5, 18, 21, random);
  const Multipliers multipliers(p.n, false, random);
  const Isa before = chosen_isa();
  for (const Isa packed : usable_isas()) {
    set_isa(packed);
    const PackedWeightsS8 w(p.n, p.k, p.w.data());
    const int32_t* const bias = p.bias.empty() ? nullptr : p.bias.data();
    const RequantizeU8 requantize = multipliers.view();
    const ProductParams params(w, p.zero_x, bias, &requantize);
    for_each_isa([&] {
      std::vector<int32_t> acc(static_cast<size_t>(p.m * p.n));
      gemm_u8s8_s32(p.m, p.k, p.x.data(), w, params, acc.data());
      CHECK(acc == p.sums());
      std::vector<uint8_t> codes(acc.size());
      gemm_u8s8_u8(p.m, p.k, p.x.data(), w, params, codes.data());
      for (size_t i = 0; i < codes.size(); ++i) {
        acc[i] = multipliers(acc[i], static_cast<int64_t>(i) % p.n);
      }
      CHECK(std::equal(codes.begin(), codes.end(), acc.begin()));
    });
  }
  set_isa(before);
}

TEST_CASE("packed weights store the sum of the weights of each output", "[kernels][integer]") {
  const std::vector<int8_t> w{1, -2, 3, 127, -128, 5};
  const PackedWeightsS8 packed(2, 3, w.data());
  CHECK(packed.outputs() == 2);
  CHECK(packed.sums()[0] == 2);
  CHECK(packed.sums()[1] == 4);
}
