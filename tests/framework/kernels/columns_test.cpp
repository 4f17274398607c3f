#include <algorithm>
#include <cstring>
#include <limits>

#include "framework/kernels/float/columns.hpp"
#include "framework/kernels/float/elementwise.hpp"
#include "framework/kernels/float/ranges.hpp"
#include "framework/kernels/float/softmax.hpp"
#include "framework/kernels/integer/integer.hpp"
#include "tests/framework/kernels/kernel_testing.hpp"

namespace quantrain::kernels {
namespace {

using test::check_against_reference;
using test::random_floats;
using test::RoundingTolerance;

// The tolerance for sums of up to 10^5 values of magnitude about 1. The kernels add in chains and a
// tree, the reference adds in double.
constexpr RoundingTolerance kSums{2e-3, 1e-5};
constexpr RoundingTolerance kMoments{1e-6, 1e-5};
constexpr RoundingTolerance kFusedColumns{1e-6, 1e-6};
// For softmax in single precision, compared with double: a few roundings of values up to 10.
constexpr RoundingTolerance kSoftmax{2e-6, 2e-6};

struct Size {
  int64_t rows, columns;
};
constexpr Size kMatrixSizes[] = {{0, 5},
                                 {1, 1},
                                 {5, 1},
                                 {3, 7},
                                 {7, 15},
                                 {9, 16},
                                 {6, 17},
                                 {5, 33},
                                 {4, 100},
                                 {1, 5000},
                                 {300, 64},
                                 {700, 83},
                                 {9001, 16},
                                 {40001, 64},
                                 {3001, 37}};

TEST_CASE("sums are close to sums in double and have the same bits with any number of threads",
          "[kernels][columns]") {
  for (const int64_t n : {0, 1, 15, 16, 17, 1000, 100001}) {
    const std::vector<float> x = random_floats(n, 1);
    check_against_reference(kSums, [&] { return std::vector<float>{sum_f32(n, x.data())}; });
  }
}

TEST_CASE("sums of any number of parts are complete", "[kernels][columns]") {
  // Up to 16 parts of 2048 elements are added in a tree. Sums of whole numbers are exact in any
  // order.
  for (int64_t parts = 0; parts <= 16; ++parts) {
    for (const int64_t more : {0, 1, 17}) {
      const int64_t n = 2048 * parts + more;
      const std::vector<float> x(static_cast<size_t>(n), 3.0f);
      check_against_reference(test::Exactly{},
                              [&] { return std::vector<float>{sum_f32(n, x.data())}; });
    }
  }
}

TEST_CASE("scaled rows and dot products of rows equal elementwise results", "[kernels][columns]") {
  // Rows of up to 2048 columns are one chain; rows of more than 32768 are several blocks.
  for (const Size size : {Size{0, 5},
                          {3, 0},
                          {1, 1},
                          {2, 15},
                          {3, 16},
                          {5, 17},
                          {700, 64},
                          {7, 2048},
                          {6, 2049},
                          {5, 5000},
                          {2, 32768},
                          {2, 32769},
                          {3, 40000}}) {
    const int64_t rows = size.rows;
    const int64_t columns = size.columns;
    INFO("rows " << rows << " columns " << columns);
    std::vector<float> a = random_floats(rows * columns, 1);
    const std::vector<float> b = random_floats(rows * columns, 2);
    std::vector<float> factors = random_floats(rows, 3);
    if (a.size() > 4) a[0] = -0.0f, a[1] = 1e-45f, a[2] = -1e-45f, a[3] = 0.0f;
    std::vector<float> repeated;
    for (const float factor : factors)
      repeated.insert(repeated.end(), static_cast<size_t>(columns), factor);
    std::vector<float> products(a.size());
    check_against_reference(test::Exactly{}, [&] {
      mul_f32(rows * columns, a.data(), repeated.data(), products.data());
      return products;
    });
    check_against_reference(test::Exactly{}, [&] {
      std::vector<float> y = a;
      scale_rows_f32(rows, columns, y.data(), factors.data(), y.data());
      CHECK(test::same_bits(y, products));
      return y;
    });
    check_against_reference(kSums, [&] {
      std::vector<float> dots(factors.size());
      row_dots_f32(rows, columns, a.data(), b.data(), dots.data());
      mul_f32(rows * columns, a.data(), b.data(), products.data());
      bool equal = true;
      for (int64_t r = 0; r < rows; ++r)
        equal &= dots[static_cast<size_t>(r)] == sum_f32(columns, products.data() + r * columns);
      CHECK(equal);
      return dots;
    });
  }
}

TEST_CASE("sums and moments of columns equal the reference", "[kernels][columns]") {
  for (const auto [rows, columns] : kMatrixSizes) {
    INFO("rows " << rows << " columns " << columns);
    const std::vector<float> x = random_floats(rows * columns, 1, 1.0f, 2.0f);
    const std::vector<float> grad = random_floats(rows * columns, 2);
    const std::vector<float> mean = random_floats(columns, 3);
    const auto width = static_cast<size_t>(columns);
    check_against_reference(kSums, [&, rows = rows, columns = columns] {
      std::vector<float> y(width);
      sum_rows_f32(rows, columns, x.data(), y.data());
      return y;
    });
    check_against_reference(kSums, [&, rows = rows, columns = columns] {
      std::vector<float> y(2 * width);
      column_grad_sums_f32(
          rows, columns, x.data(), mean.data(), grad.data(), nullptr, y.data(), y.data() + columns);
      return y;
    });
    if (rows == 0) continue;
    check_against_reference(kMoments, [&, rows = rows, columns = columns] {
      std::vector<float> y(2 * width);
      column_moments_f32(rows, columns, x.data(), y.data(), y.data() + columns);
      return y;
    });
  }
}

TEST_CASE("columnwise operations equal the reference", "[kernels][columns]") {
  for (const auto [rows, columns] : kMatrixSizes) {
    const std::vector<float> x = random_floats(rows * columns, 1);
    const std::vector<float> grad = random_floats(rows * columns, 2);
    const std::vector<float> a = random_floats(columns, 3);
    const std::vector<float> b = random_floats(columns, 4);
    const std::vector<float> d = random_floats(columns, 5);
    std::vector<float> y(x.size());
    check_against_reference(kFusedColumns, [&, rows = rows, columns = columns] {
      column_affine_f32(rows, columns, x.data(), a.data(), b.data(), 0.0f, y.data(), nullptr);
      return y;
    });
    check_against_reference(kFusedColumns, [&, rows = rows, columns = columns] {
      batch_norm_backward_f32(rows,
                              columns,
                              {.x = x.data(),
                               .grad_y = grad.data(),
                               .mask = nullptr,
                               .mean = d.data(),
                               .a = a.data(),
                               .b = b.data(),
                               .d = d.data(),
                               .grad_x = y.data()});
      return y;
    });
  }
}

TEST_CASE("ranges of columns are exact, and moments of integer sums those of their floats",
          "[kernels][columns]") {
  for (const auto [rows, columns] : kMatrixSizes) {
    if (rows == 0) continue;
    INFO("rows " << rows << " columns " << columns);
    const auto width = static_cast<size_t>(columns);
    std::vector<int32_t> sums;
    for (const float v : random_floats(rows * columns, 1, -1e6f, 1e6f))
      sums.push_back(static_cast<int32_t>(v));
    std::vector<double> scale;
    for (const float v : random_floats(columns, 2, 1e-6f, 2e-6f)) scale.push_back(double{v} / 3.0);
    std::vector<float> expected(sums.size());
    dequantize_s32_f32(rows, columns, sums.data(), scale.data(), expected.data());
    check_against_reference(test::Exactly{}, [&, rows = rows, columns = columns] {
      std::vector<float> x(sums.size());
      std::memcpy(x.data(), sums.data(), sums.size() * sizeof(float));
      std::vector<float> got(4 * width);
      std::vector<float> moments(2 * width);
      column_moments_s32_f32(rows,
                             columns,
                             scale.data(),
                             x.data(),
                             got.data(),
                             got.data() + width,
                             got.data() + 2 * width,
                             got.data() + 3 * width);
      column_moments_f32(rows, columns, expected.data(), moments.data(), moments.data() + width);
      CHECK(test::same_bits(x, expected));
      CHECK(std::equal(moments.begin(), moments.end(), got.begin()));
      bool exact = true;
      for (size_t c = 0; c < width; ++c) {
        float low = expected[c];
        float high = expected[c];
        for (size_t i = c; i < expected.size(); i += width) {
          low = std::min(low, expected[i]);
          high = std::max(high, expected[i]);
        }
        exact &= got[2 * width + c] == low && got[3 * width + c] == high;
      }
      CHECK(exact);
      return x;
    });
  }
}

TEST_CASE("fused passes over columns give the bits of separate passes", "[kernels][columns]") {
  for (const auto [rows, columns] : {Size{0, 8},
                                     {1, 1},
                                     {3, 5},
                                     {5, 8},
                                     {7, 16},
                                     {300, 24},
                                     {600, 72},
                                     {19, 33},
                                     {2, 5000},
                                     {9001, 16},
                                     {3001, 37}}) {
    INFO("rows " << rows << " columns " << columns);
    const int64_t n = rows * columns;
    const std::vector<float> x = random_floats(n, 1, -4.0f, 4.0f);
    const std::vector<float> grad = random_floats(n, 2);
    const std::vector<float> scale = random_floats(columns, 3, -3.0f, 3.0f);
    const std::vector<float> shift = random_floats(columns, 4);
    const std::vector<float> d = random_floats(columns, 5);
    const auto bytes = static_cast<size_t>((n + 7) / 8);
    check_against_reference(kFusedColumns, [&, rows = rows, columns = columns] {
      std::vector<float> affine(x.size());
      column_affine_f32(
          rows, columns, x.data(), scale.data(), shift.data(), 0.0f, affine.data(), nullptr);
      for (const float hi : {std::numeric_limits<float>::infinity(), 6.0f}) {
        std::vector<float> y(x.size());
        std::vector<float> fused = x;
        std::vector<uint8_t> mask(bytes);
        std::vector<uint8_t> fused_mask(bytes);
        relu_f32(n, affine.data(), hi, y.data(), mask.data());
        column_affine_f32(rows,
                          columns,
                          fused.data(),
                          scale.data(),
                          shift.data(),
                          hi,
                          fused.data(),
                          fused_mask.data());
        CHECK(test::same_bits(fused, y));
        CHECK(fused_mask == mask);
        for (const float bound : {0.0f, hi}) {
          const QuantizeF32 q{.scale = 0.03f, .zero_point = 100, .bound = bound};
          std::vector<uint8_t> codes(x.size());
          std::vector<uint8_t> fused_codes(x.size());
          CHECK(quantize_f32_u8(n, affine.data(), q, codes.data(), mask.data()));
          CHECK(quantize_columns_f32_u8(rows,
                                        columns,
                                        x.data(),
                                        scale.data(),
                                        shift.data(),
                                        q,
                                        fused_codes.data(),
                                        fused_mask.data()));
          CHECK(fused_codes == codes);
          CHECK(fused_mask == mask);
        }
        if (columns % 8 != 0) continue;
        std::vector<float> masked(grad.size());
        mask_f32(n, grad.data(), mask.data(), masked.data());
        const auto gradients = [&](const std::vector<float>& g, const uint8_t* bits) {
          std::vector<float> all(static_cast<size_t>(2 * columns + n));
          column_grad_sums_f32(
              rows, columns, x.data(), d.data(), g.data(), bits, all.data(), all.data() + columns);
          batch_norm_backward_f32(rows,
                                  columns,
                                  {.x = x.data(),
                                   .grad_y = g.data(),
                                   .mask = bits,
                                   .mean = d.data(),
                                   .a = scale.data(),
                                   .b = shift.data(),
                                   .d = d.data(),
                                   .grad_x = all.data() + 2 * columns});
          return all;
        };
        CHECK(test::same_bits(gradients(grad, mask.data()), gradients(masked, nullptr)));
      }
      return affine;
    });
  }
  const float x[] = {1.0f, 3e38f};
  const float scale[] = {1.0f, 10.0f};
  const float shift[] = {0.0f, 0.0f};
  uint8_t codes[2];
  CHECK_FALSE(quantize_columns_f32_u8(1, 2, x, scale, shift, {}, codes, nullptr));
}

TEST_CASE("softmax, log_softmax and their gradients equal the reference",
          "[kernels][softmax][serial]") {
  for (const auto [rows, columns] : kMatrixSizes) {
    INFO("rows " << rows << " columns " << columns);
    const std::vector<float> x = random_floats(rows * columns, 1, -10.0f, 10.0f);
    const std::vector<float> grad = random_floats(rows * columns, 2);
    std::vector<float> y(x.size());
    for (const bool log : {false, true}) {
      check_against_reference(kSoftmax, [&, rows = rows, columns = columns] {
        softmax_f32(rows, columns, log, x.data(), y.data());
        return y;
      });
      const std::vector<float> value = y;
      check_against_reference(kSoftmax, [&, rows = rows, columns = columns] {
        softmax_backward_f32(rows, columns, log, value.data(), grad.data(), y.data());
        return y;
      });
    }
  }
}

TEST_CASE("softmax accepts infinite and huge logits", "[kernels][softmax]") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> x{1e30f, 1e30f, -1e30f, -kInfinity, 1e30f - 1e29f, 3.0f};
  for (const bool log : {false, true}) {
    check_against_reference(kSoftmax, [&] {
      std::vector<float> y(x.size());
      softmax_f32(2, 3, log, x.data(), y.data());
      return y;
    });
  }
}

TEST_CASE("cross entropy and its gradient equal the reference", "[kernels][softmax]") {
  for (const auto [rows, columns] : kMatrixSizes) {
    if (rows == 0) continue;
    const std::vector<float> x = random_floats(rows * columns, 1, -10.0f, 10.0f);
    std::vector<int32_t> labels(static_cast<size_t>(rows));
    for (size_t r = 0; r < labels.size(); ++r)
      labels[r] = static_cast<int32_t>(r % static_cast<size_t>(columns));
    check_against_reference(kSoftmax, [&, rows = rows, columns = columns] {
      std::vector<float> result(x.size());
      const float loss = cross_entropy_f32(rows, columns, x.data(), labels.data(), result.data());
      result.push_back(loss);
      result.push_back(cross_entropy_f32(rows, columns, x.data(), labels.data(), nullptr));
      return result;
    });
  }
}

}  // namespace
}  // namespace quantrain::kernels
