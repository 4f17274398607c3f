#include "framework/kernels/float/elementwise.hpp"
#include "framework/kernels/float/optimizer.hpp"

#include <algorithm>

#include "framework/core/random.hpp"
#include "tests/floats.hpp"
#include "tests/framework/kernels/kernel_testing.hpp"

namespace quantrain::kernels {
namespace {

using test::check_against_reference;
using test::Exactly;
using test::kInfinity;
using test::kNan;
using test::random_floats;
using test::RoundingTolerance;

// Sizes around 8 and 16 lanes, and one size of several blocks.
constexpr int64_t kLengths[] = {0, 1, 7, 8, 9, 15, 16, 17, 33, 70001};

// For our polynomials, compared with libm: a few units in the last place. Subnormal results, which
// have fewer digits, are compared by the absolute tolerance.
constexpr RoundingTolerance kPolynomial{1e-38, 5e-7};
// For sigmoid and tanh. The absolute tolerance allows for the rounding of a subtraction from 1.
constexpr RoundingTolerance kNearOne{1e-7, 5e-7};
// For values of a few units: a fused multiply-add rounds once, separate operations round twice.
constexpr RoundingTolerance kFused{1e-6, 1e-6};

TEST_CASE("binary operations give the same bits on every instruction set, also in place",
          "[kernels][elementwise]") {
  for (const auto operation : {add_f32, sub_f32, mul_f32, div_f32}) {
    for (const int64_t n : kLengths) {
      INFO("n " << n);
      const std::vector<float> a = random_floats(n, 1);
      const std::vector<float> b = random_floats(n, 2, 0.5f, 2.0f);
      check_against_reference(Exactly{}, [&] {
        std::vector<float> y = a;
        operation(n, y.data(), b.data(), y.data());
        operation(n, b.data(), y.data(), y.data());
        return y;
      });
    }
  }
}

TEST_CASE("affine, sigmoid and tanh gradients equal the reference", "[kernels][elementwise]") {
  for (const int64_t n : kLengths) {
    const std::vector<float> x = random_floats(n, 1, -3.0f, 3.0f);
    const std::vector<float> grad = random_floats(n, 2);
    std::vector<float> y(x.size());
    check_against_reference(kFused, [&] {
      affine_f32(n, x.data(), 0.3f, -1.7f, y.data());
      return y;
    });
    check_against_reference(kFused, [&] {
      sigmoid_backward_f32(n, x.data(), grad.data(), y.data());
      return y;
    });
    check_against_reference(kFused, [&] {
      tanh_backward_f32(n, x.data(), grad.data(), y.data());
      return y;
    });
  }
}

TEST_CASE("dropout keeps the same elements on every instruction set", "[kernels][elementwise]") {
  for (const int64_t n : kLengths) {
    std::vector<float> x = random_floats(n, 1);
    if (n > 8) x[8] = kInfinity;
    for (const float p : {0x1p-24f, 0.3f, 0.99999994f, 1.0f}) {
      check_against_reference(Exactly{}, [&] {
        std::vector<float> y = x;
        dropout_f32(n, p, 5, 7, y.data(), y.data());
        return y;
      });
    }
  }
}

TEST_CASE("dropout draws from Random, with one stream for every 4096 elements",
          "[kernels][elementwise]") {
  const int64_t n = 10000;
  const std::vector<float> x(static_cast<size_t>(n), 3.0f);
  for (const float p : {1e-7f, 0.2f, 0.5f, 0.75f, 1.0f}) {
    std::vector<float> y(x.size());
    dropout_f32(n, p, 5, 7, x.data(), y.data());
    bool equal = true;
    for (int64_t block = 0; block * 4096 < n; ++block) {
      Random random(5, 7, static_cast<uint64_t>(block));
      for (int64_t i = block * 4096; i < std::min(n, (block + 1) * 4096); ++i) {
        const float kept = p < 1.0f ? 3.0f * (1.0f / (1.0f - p)) : 0.0f;
        equal &= y[static_cast<size_t>(i)] == (random.uniform() >= p ? kept : 0.0f);
      }
    }
    CHECK(equal);
  }
}

TEST_CASE("relu clamps, marks where the gradient passes and lets NaN through",
          "[kernels][elementwise]") {
  for (const int64_t n : kLengths) {
    std::vector<float> x = random_floats(n, 1, -9.0f, 9.0f);
    const float special[] = {0.0f, -0.0f, 6.0f, kNan, kInfinity, -kInfinity, 1e-45f};
    for (size_t i = 0; i < x.size() && i < 14; i += 2) x[i] = special[i / 2];
    for (const float hi : {6.0f, kInfinity}) {
      check_against_reference(Exactly{}, [&] {
        std::vector<float> y = x;
        std::vector<uint8_t> mask(static_cast<size_t>((n + 7) / 8), 0xff);
        relu_f32(n, y.data(), hi, y.data(), mask.data());
        y.insert(y.end(), mask.begin(), mask.end());
        return y;
      });
      check_against_reference(Exactly{}, [&] {
        std::vector<float> y(x.size());
        relu_f32(n, x.data(), hi, y.data(), nullptr);
        return y;
      });
    }
  }
}

TEST_CASE("exp, sigmoid and tanh are close to libm's over the whole range",
          "[kernels][elementwise]") {
  for (const int64_t n : kLengths) {
    for (const float range : {1e-3f, 1.0f, 20.0f, 120.0f}) {
      std::vector<float> x = random_floats(n, 1, -range, range);
      const float special[] = {0.0f, -0.0f, kInfinity, -kInfinity, kNan, 88.8f, -87.4f, -200.0f};
      for (size_t i = 0; i < x.size() && i < 8; ++i) x[i] = special[i];
      std::vector<float> y(x.size());
      check_against_reference(kPolynomial, [&] {
        exp_f32(n, x.data(), y.data());
        return y;
      });
      check_against_reference(kNearOne, [&] {
        sigmoid_f32(n, x.data(), y.data());
        return y;
      });
      check_against_reference(kNearOne, [&] {
        tanh_f32(n, x.data(), y.data());
        return y;
      });
    }
  }
}

TEST_CASE("bytes become multiples of 1/255", "[kernels][elementwise]") {
  std::vector<uint8_t> bytes(256 * 300);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i);
  for (const int64_t n : {0, 1, 15, 256 * 300}) {
    check_against_reference(Exactly{}, [&] {
      std::vector<float> y(static_cast<size_t>(n));
      bytes_f32(n, bytes.data(), y.data());
      return y;
    });
  }
}

TEST_CASE("steps of SGD equal the reference", "[kernels][elementwise]") {
  for (const int64_t n : kLengths) {
    const std::vector<float> grad = random_floats(n, 1);
    for (const bool nesterov : {false, true}) {
      for (const bool first : {false, true}) {
        check_against_reference(kFused, [&] {
          std::vector<float> w = random_floats(n, 2);
          std::vector<float> velocity = random_floats(n, 3);
          sgd_f32(n,
                  {0.1f, 0.9f, 0.01f, 0.5f, nesterov, first},
                  grad.data(),
                  velocity.data(),
                  w.data());
          w.insert(w.end(), velocity.begin(), velocity.end());
          return w;
        });
      }
    }
    check_against_reference(kFused, [&] {
      std::vector<float> w = random_floats(n, 2);
      sgd_f32(n, {0.1f, 0.0f, 0.0f, 1.0f, false, false}, grad.data(), nullptr, w.data());
      return w;
    });
  }
}

TEST_CASE("steps of Adam and AdamW equal the reference", "[kernels][elementwise]") {
  for (const int64_t n : kLengths) {
    const std::vector<float> grad = random_floats(n, 1);
    for (const bool decoupled : {false, true}) {
      check_against_reference(kFused, [&] {
        std::vector<float> w = random_floats(n, 2);
        std::vector<float> m = random_floats(n, 3);
        std::vector<float> v = random_floats(n, 4, 0.1f, 1.0f);
        const AdamStep step{0.01f, 0.9f, 0.999f, 1e-8f, 0.01f, 0.5f, 0.3f, 0.2f, decoupled};
        adam_f32(n, step, grad.data(), m.data(), v.data(), w.data());
        w.insert(w.end(), m.begin(), m.end());
        w.insert(w.end(), v.begin(), v.end());
        return w;
      });
    }
  }
}

}  // namespace
}  // namespace quantrain::kernels
