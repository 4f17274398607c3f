#include <limits>

#include "framework/kernels/float/columns.hpp"
#include "framework/kernels/float/elementwise.hpp"
#include "framework/kernels/float/softmax.hpp"
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
                                 {9001, 16},
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
          rows, columns, x.data(), mean.data(), grad.data(), y.data(), y.data() + columns);
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
      column_affine_f32(rows, columns, x.data(), a.data(), b.data(), y.data());
      return y;
    });
    check_against_reference(kFusedColumns, [&, rows = rows, columns = columns] {
      batch_norm_backward_f32(
          rows, columns, x.data(), d.data(), grad.data(), a.data(), b.data(), d.data(), y.data());
      return y;
    });
  }
}

TEST_CASE("softmax, log_softmax and their gradients equal the reference", "[kernels][softmax]") {
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
