#include "framework/integer/operation.hpp"

#include <cfenv>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>

#include "framework/arithmetic/quantize.hpp"
#include "framework/core/error.hpp"
#include "tests/catch.hpp"
#include "tests/floats.hpp"
#include "tests/framework/integer/run_operation.hpp"
#include "tests/framework/integer/sample_operations.hpp"

// Compares integer operations with plain loops over the equations. products_test.cpp does this for
// linear layers and convolutions.
namespace quantrain::integer {
namespace {

using quantrain::test::for_each_isa;
using quantrain::test::for_each_thread_count;
using quantrain::test::kInfinity;
using test::Builder;
using test::expected_code;
using test::kSigned;
using test::kX;
using test::kY;
using test::pool_shape;
using test::random_bytes;
using test::random_codes;
using test::run;
using test::run_into;

}  // namespace

TEST_CASE("operations do not depend on the rounding mode of the code that makes them",
          "[integer][rounding]") {
  const QParams y{{.bits = 8}, -1, {0.07f}, {3}};
  const auto make = [&] {
    const CodeValues thirds = code_values([](double v) { return v / 3.0 + 0.1; }, kX);
    return std::vector<Operation>{
        QuantizedLookup::function(4, {thirds}, kX, y, Activation::kRelu6, "test"),
        QuantizedAdd::make(4, {kX, kSigned}, y, Activation::kRelu6),
        QuantizedSoftmax::make(1, 4, kX, y, Activation::kNone)};
  };
  const std::vector<Operation> nearest = make();
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    std::fesetround(mode);
    const std::vector<Operation> other = make();
    std::fesetround(FE_TONEAREST);
    CAPTURE(mode);
    CHECK(other == nearest);
  }
}

TEST_CASE("QuantizedAdd rounds once, at one shift, also in place", "[integer][add]") {
  const QuantizedAdd op = QuantizedAdd::make(50, {kX, kSigned}, kY, Activation::kNone);
  CHECK(runs_in_place(op));
  const AddMultipliers m = make_add_multipliers(
      {double{kX.scale[0]} / double{kY.scale[0]}, double{kSigned.scale[0]} / double{kY.scale[0]}});
  for_each_isa([&] {
    for_each_thread_count([&] {
      std::vector<uint8_t> a = random_bytes(100, 4);
      std::vector<uint8_t> b = random_codes(100, kSigned, 5);
      std::vector<uint8_t> expected;
      for (size_t i = 0; i < a.size(); ++i)
        expected.push_back(
            static_cast<uint8_t>(requantize_add({a[i] - 7, b[i] - 125}, m, 5, 0, 15)));
      CHECK(run(op, 2, {a, b}) == expected);
      const uint8_t* const inputs[] = {a.data(), b.data()};
      const std::vector<uint8_t> first = a;
      run_into(a.data(), op, 2, inputs);
      CHECK(a == expected);
      a = first;
      run_into(b.data(), op, 2, inputs);
      CHECK(b == expected);
    });
  });
  // Both operands are the same value, and the sum is written over it.
  const QuantizedAdd twice = QuantizedAdd::make(50, {kX, kX}, kY, Activation::kRelu);
  std::vector<uint8_t> a = random_bytes(50, 4);
  const std::vector<uint8_t> expected = run(twice, 1, {a, a});
  const uint8_t* const inputs[] = {a.data(), a.data()};
  run_into(a.data(), twice, 1, inputs);
  CHECK(a == expected);
  CHECK(*std::min_element(a.begin(), a.end()) >= 5);
}

TEST_CASE("QuantizedAdd of any number of operands rounds once, also in place", "[integer][add]") {
  for (const size_t count : {1u, 3u, 8u}) {
    const std::vector<QParams> kinds = {kX, kSigned, kY};
    std::vector<QParams> params;
    std::vector<double> multipliers;
    std::vector<std::vector<uint8_t>> x;
    for (size_t k = 0; k < count; ++k) {
      params.push_back(kinds[k % 3]);
      multipliers.push_back(double{params[k].scale[0]} / double{kX.scale[0]});
      x.push_back(random_codes(100, params[k], k + 1));
    }
    const Operation op = QuantizedAdd::make(50, params, kX, Activation::kNone);
    CHECK(input_sizes(op) == std::vector<int64_t>(count, 50));
    const AddMultipliers m = make_add_multipliers(multipliers);
    std::vector<uint8_t> expected;
    for (size_t i = 0; i < 100; ++i) {
      std::vector<int32_t> minus_zero;
      for (size_t k = 0; k < count; ++k)
        minus_zero.push_back(x[k][i] - stored_zero_point(params[k]));
      expected.push_back(static_cast<uint8_t>(requantize_add(minus_zero, m, 7, 0, 255)));
    }
    for_each_isa([&] {
      for_each_thread_count([&] {
        CAPTURE(count);
        CHECK(run(op, 2, x) == expected);
        for (size_t k = 0; k < count; ++k) {
          std::vector<uint8_t> over = x[k];
          std::vector<const uint8_t*> inputs;
          for (const auto& operand : x) inputs.push_back(operand.data());
          inputs[k] = over.data();
          PreparedOperation(op).run(2, inputs, over.data());
          CHECK(over == expected);
        }
      });
    });
  }
}

TEST_CASE("QuantizedMul rounds the exact product once, also in place", "[integer][mul]") {
  for (const auto& [rows, channels] : {std::pair{1, 50}, {10, 5}, {50, 1}}) {
    const QuantizedMul op = QuantizedMul::make(rows, channels, kX, kSigned, kY, Activation::kNone);
    CHECK(runs_in_place(op));
    const Multiplier m =
        make_multiplier(double{kX.scale[0]} * double{kSigned.scale[0]} / double{kY.scale[0]});
    std::vector<uint8_t> a = random_bytes(100, 4);
    const std::vector<uint8_t> b = random_codes(2 * channels, kSigned, 5);
    std::vector<uint8_t> expected;
    for (size_t i = 0; i < a.size(); ++i) {
      const auto c = static_cast<size_t>(channels);
      const int32_t product = (a[i] - 7) * (b[i / 50 * c + i % c] - 125);
      expected.push_back(static_cast<uint8_t>(requantize(product, m, 5, 0, 15)));
    }
    for_each_isa([&] {
      for_each_thread_count([&] {
        CHECK(run(op, 2, {a, b}) == expected);
        std::vector<uint8_t> over = a;
        const uint8_t* const inputs[] = {over.data(), b.data()};
        run_into(over.data(), op, 2, inputs);
        CHECK(over == expected);
      });
    });
  }
}

TEST_CASE("pools equal (10) computed in plain loops", "[integer][pool]") {
  kernels::Conv2dShape reaching = pool_shape(6, 8, 3, 3, 2, 0);
  reaching.end_h = reaching.end_w = 1;
  kernels::Conv2dShape before = pool_shape(6, 8, 3, 3, 2, 1);  // pads at the top and left only
  before.end_h = before.end_w = -1;
  for (const kernels::Conv2dShape& shape : {pool_shape(5, 4, 3, 2, 2, 1),
                                            pool_shape(6, 6, 17, 3, 1, 2),
                                            pool_shape(3, 5, 1, 3, 2, 0),
                                            reaching,
                                            before}) {
    const std::vector<uint8_t> x = random_bytes(2 * shape.x_elements(), 6);
    const QuantizedMaxPool2d max{shape};
    const auto avg = QuantizedAvgPool2d::make(shape, kX, kY, Activation::kRelu);
    const auto none = QuantizedAvgPool2d::make(shape, kSigned, kX, Activation::kNone);
    max.validate("max");
    avg.validate("avg");
    for_each_isa([&] {
      for_each_thread_count([&] {
        const std::vector<uint8_t> max_y = run(max, 2, {x});
        const std::vector<uint8_t> avg_y = run(avg, 2, {x});
        const std::vector<uint8_t> none_y = run(none, 2, {x});
        std::vector<int32_t> sums(avg_y.size());
        Prepared<QuantizedAvgPool2d>(avg).accumulate(2, x.data(), sums.data());
        std::vector<uint16_t> positions(max_y.size());
        std::vector<uint8_t> with_positions(max_y.size());
        const uint8_t* const inputs[] = {x.data()};
        Prepared<QuantizedMaxPool2d>(max).run(2, inputs, with_positions.data(), positions.data());
        CHECK(with_positions == max_y);
        size_t at = 0;
        for (int64_t n = 0; n < 2; ++n) {
          for (int64_t i = 0; i < shape.oh(); ++i) {
            for (int64_t j = 0; j < shape.ow(); ++j) {
              for (int64_t c = 0; c < shape.c; ++c, ++at) {
                int32_t total = 0;
                int32_t count = 0;
                uint8_t largest = 0;
                int64_t first = -1;
                for (int64_t u = 0; u < shape.kh * shape.kw; ++u) {
                  const int64_t h = i * shape.stride_h - shape.pad_h + u / shape.kw;
                  const int64_t w = j * shape.stride_w - shape.pad_w + u % shape.kw;
                  if (h < 0 || h >= shape.h || w < 0 || w >= shape.w) continue;
                  const uint8_t code =
                      x[static_cast<size_t>(((n * shape.h + h) * shape.w + w) * shape.c + c)];
                  total += code;
                  ++count;
                  if (first < 0 || code > largest) first = u;
                  largest = std::max(largest, code);
                }
                REQUIRE(max_y[at] == largest);
                REQUIRE(positions[at] == first);
                REQUIRE(sums[at] == total - 7 * count);
                REQUIRE(avg_y[at] ==
                        expected_code(
                            total - 7 * count, double{kX.scale[0]} / count, kY, Activation::kRelu));
                REQUIRE(none_y[at] == expected_code(total - 125 * count,
                                                    double{kSigned.scale[0]} / count,
                                                    kX,
                                                    Activation::kNone));
              }
            }
          }
        }
      });
    });
  }
}

TEST_CASE("an average pool has a multiplier for each number of elements in a window",
          "[integer][pool]") {
  for (const kernels::Conv2dShape& shape :
       {pool_shape(5, 4, 3, 2, 2, 1), pool_shape(9, 7, 1, 5, 3, 4), pool_shape(2, 2, 1, 2, 2, 0)}) {
    std::set<int64_t> counts;
    for (int64_t i = 0; i < shape.oh(); ++i) {
      for (int64_t j = 0; j < shape.ow(); ++j) {
        int64_t count = 0;
        for (int64_t u = 0; u < shape.kh * shape.kw; ++u) {
          const int64_t h = i * shape.stride_h - shape.pad_h + u / shape.kw;
          const int64_t w = j * shape.stride_w - shape.pad_w + u % shape.kw;
          count += h >= 0 && h < shape.h && w >= 0 && w < shape.w;
        }
        counts.insert(count);
      }
    }
    CHECK(window_counts(shape) == std::vector<int64_t>(counts.begin(), counts.end()));
    const auto op = QuantizedAvgPool2d::make(shape, kX, kY, Activation::kNone);
    REQUIRE(op.means.size() == counts.size());
    for (const kernels::MeanMultiplier& mean : op.means)
      CHECK(mean.multiplier == mean_multiplier(kX.scale[0], mean.count, kY.scale[0]));
    const auto divided = QuantizedAvgPool2d::make(shape, kX, kY, Activation::kNone, 25);
    REQUIRE(divided.means.size() == counts.size());
    for (const kernels::MeanMultiplier& mean : divided.means)
      CHECK(mean.multiplier == mean_multiplier(kX.scale[0], 25, kY.scale[0]));
  }
}

TEST_CASE("a mean of codes rounds ties away from code 0", "[integer][pool]") {
  // The right values are quotients of integers: a tie has twice the remainder of its divisor.
  const auto mean = [](int64_t total, int64_t count) {
    const int64_t half = count / 2;
    return total > 0 ? (total + half) / count : -((half - total) / count);
  };
  for (const int64_t count : {1, 2, 3, 4, 6, 7, 9, 12, 20, 48, 64, 1000}) {
    const Multiplier m = code_mean_multiplier(count);
    CHECK((int64_t{1} << m.shift) / count + 1 == m.m0);
    for (int64_t total = -255 * count; total <= 255 * count; ++total) {
      const auto sum = static_cast<int32_t>(total);
      if (requantize(sum, m, 0, -255, 255) != mean(total, count)) FAIL(total << " / " << count);
    }
  }
  // The largest windows, around each tie.
  for (const int64_t count : {kMostMeanCodes, kMostMeanCodes - 1, int64_t{1} << 20}) {
    for (int64_t code = -255; code < 255; ++code) {
      for (int64_t off = -2; off <= 2; ++off) {
        const int64_t total = code * count + count / 2 + off;
        const auto sum = static_cast<int32_t>(total);
        const int64_t expected = mean(total, count);
        if (requantize(sum, code_mean_multiplier(count), 0, -255, 255) != expected)
          FAIL(total << " / " << count);
      }
    }
  }
  const QParams params{{.bits = 8, .is_signed = true}, -1, {0.1f}, {-100}};
  kernels::Conv2dShape uneven = pool_shape(5, 6, 3, 2, 2, 0);
  uneven.end_h = 1;
  for (const kernels::Conv2dShape& shape :
       {pool_shape(6, 4, 17, 2, 2, 0), pool_shape(5, 4, 3, 3, 2, 1), uneven}) {
    Builder b;
    const int x = b.input({shape.h, shape.w, shape.c}, params);
    const auto op = QuantizedAvgPool2d::make_mean_of_codes(shape, params, Activation::kRelu);
    CHECK(op.zero_x == 128);
    CHECK(op.y == StoredOutput{128, 28, 255});
    CHECK(op.means_codes());
    b.program.outputs = {b.codes("mean", op, {x}, {shape.oh(), shape.ow(), shape.c}, params)};
    validate(b.program);
    const std::vector<uint8_t> codes = random_bytes(2 * shape.x_elements(), 6);
    for_each_isa([&] {
      const std::vector<uint8_t> y = run(op, 2, {codes});
      size_t at = 0;
      for (int64_t i = 0; i < 2 * shape.oh() * shape.ow() * shape.c; ++i, ++at) {
        const int64_t c = i % shape.c, pixel = i / shape.c;
        const int64_t n = pixel / (shape.oh() * shape.ow());
        int64_t total = 0, count = 0;
        for (int64_t u = 0; u < shape.kh * shape.kw; ++u) {
          const int64_t h =
              pixel / shape.ow() % shape.oh() * shape.stride_h - shape.pad_h + u / shape.kw;
          const int64_t w = pixel % shape.ow() * shape.stride_w - shape.pad_w + u % shape.kw;
          if (h < 0 || h >= shape.h || w < 0 || w >= shape.w) continue;
          total +=
              codes[static_cast<size_t>(((n * shape.h + h) * shape.w + w) * shape.c + c)] - 128;
          ++count;
        }
        REQUIRE(y[at] == std::max<int64_t>(mean(total, count), -100) + 128);
      }
    });
    // The zero points differ from those of the values. This is right only if input and output have
    // the same parameters, and only for a mean of codes.
    Program other = b.program;
    other.values[1].params->scale[0] = 0.2f;
    QUANTRAIN_CHECK_ERROR(
        validate(other), GraphError, "[mean] expects zero point 128, but the value has 28");
    other = b.program;
    auto& pool = std::get<QuantizedAvgPool2d>(other.steps[0].operation);
    --pool.means[0].multiplier.m0;
    CHECK_FALSE(pool.means_codes());
    QUANTRAIN_CHECK_ERROR(
        validate(other), GraphError, "[mean] expects zero point 128, but the value has 28");
    other = b.program;
    std::get<QuantizedAvgPool2d>(other.steps[0].operation).y.zero_point = 127;
    QUANTRAIN_CHECK_ERROR(
        validate(other), GraphError, "[mean] expects zero point 128, but the value has 28");
  }
  QUANTRAIN_CHECK_ERROR(
      QuantizedAvgPool2d::make_mean_of_codes(
          pool_shape(2048, 2048, 1, 2048, 1, 0), params, Activation::kNone),
      ShapeError,
      "[avg_pool2d] a mean of 4194304 codes may round ties to either side: at most 2097151");
}

TEST_CASE("QuantizedConcat rescales each operand", "[integer][concat]") {
  const QuantizedConcat op =
      QuantizedConcat::make(2, {3, 1, 4}, {kX, kSigned, kY}, kY, Activation::kNone);
  CHECK(op.row_length() == 8);
  const std::vector<uint8_t> a = random_bytes(12, 7);
  const std::vector<uint8_t> b = random_codes(4, kSigned, 8);
  const std::vector<uint8_t> c = random_codes(16, kY, 9);
  for_each_thread_count([&] {
    const std::vector<uint8_t> y = run(op, 2, {a, b, c});
    for (size_t row = 0; row < 4; ++row) {
      for (size_t column = 0; column < 8; ++column) {
        const uint8_t expected =
            column < 3
                ? expected_code(a[row * 3 + column] - 7, double{kX.scale[0]}, kY, Activation::kNone)
            : column < 4
                ? expected_code(b[row] - 125, double{kSigned.scale[0]}, kY, Activation::kNone)
                : c[row * 4 + column - 4];
        CHECK(y[row * 8 + column] == expected);
      }
    }
  });
}

TEST_CASE("a view keeps its bytes", "[integer][view]") {
  const View op{60};
  const std::vector<uint8_t> x = random_bytes(120, 6);
  CHECK(run(op, 2, {x}) == x);
  CHECK(run(op, 0, {x}).empty());
  CHECK(keeps_params(op));
}

TEST_CASE("a rescaling lookup applies (8) to every code; with equal parameters, it only clamps",
          "[integer][lookup]") {
  std::vector<uint8_t> all(256);
  std::iota(all.begin(), all.end(), uint8_t{0});
  const QParams params[] = {kX, kSigned, kY, {{.bits = 2}, -1, {1.7f}, {1}}};
  for (const QParams& x : params) {
    for (const QParams& y : params) {
      for (const Activation activation :
           {Activation::kNone, Activation::kRelu, Activation::kRelu6}) {
        const auto op = QuantizedLookup::rescale(256, x, y, activation);
        op.validate("lookup");
        CHECK(runs_in_place(op));
        const std::vector<uint8_t> result = run(op, 1, {all});
        bool equal = true;
        for (size_t q = 0; q < 256; ++q) {
          equal =
              equal &&
              result[q] ==
                  expected_code(all[q] - stored_zero_point(x), double{x.scale[0]}, y, activation);
        }
        CHECK(equal);
        std::vector<uint8_t> in_place = all;
        const uint8_t* const inputs[] = {in_place.data()};
        run_into(in_place.data(), op, 1, inputs);
        CHECK(in_place == result);
      }
    }
  }
  const std::vector<uint8_t> clamped =
      run(QuantizedLookup::rescale(256, kX, kX, Activation::kRelu), 1, {all});
  for (size_t i = 0; i < clamped.size(); ++i) CHECK(clamped[i] == std::max<uint8_t>(all[i], 7));
}

TEST_CASE("the lookup of a function quantizes the function's value at each code",
          "[integer][lookup]") {
  const std::vector<std::function<double(double)>> functions = {
      [](double v) { return 1.0 / (1.0 + std::exp(-v)); },
      [](double v) { return std::tanh(v); },
      [](double v) { return v * v - 1.0; },
      [](double v) { return -3.0 * v; }};
  for (int bits = 2; bits <= 8; ++bits) {
    for (const bool is_signed : {false, true}) {
      for (const bool narrow : {false, true}) {
        if (narrow && !is_signed) continue;
        const QType type{bits, is_signed, narrow};
        const int32_t zero = is_signed ? -1 : type.qmax() / 3;
        const QParams x{type, -1, {4.0f / static_cast<float>(type.levels())}, {zero}};
        for (const QParams& y : {QParams{type, -1, {0.013f}, {zero}}, kX, kSigned}) {
          for (const Activation activation :
               {Activation::kNone, Activation::kRelu, Activation::kRelu6}) {
            for (const auto& f : functions) {
              const auto op =
                  QuantizedLookup::function(5, {code_values(f, x)}, x, y, activation, "f");
              const CodeClamp clamp = code_clamp(activation, y.type, y.scale[0], y.zero_point[0]);
              bool equal = op.size == 5;
              for (int32_t q = type.qmin(); q <= type.qmax(); ++q) {
                const double real = double{x.scale[0]} * (q - zero);
                const int32_t code = quantize(
                    static_cast<float>(f(real)), y.scale[0], y.zero_point[0], clamp.lo, clamp.hi);
                const int32_t stored = q + (is_signed ? 128 : 0);
                equal = equal && op.table[static_cast<size_t>(stored)] ==
                                     code + (y.type.is_signed ? 128 : 0);
              }
              // Entries for codes that never occur are valid output codes, too.
              for (const uint8_t code : op.table) {
                const int32_t q = code - (y.type.is_signed ? 128 : 0);
                equal = equal && q >= clamp.lo && q <= clamp.hi;
              }
              CAPTURE(bits, is_signed, narrow);
              CHECK(equal);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("a function that is not finite at a code has no lookup", "[integer][lookup]") {
  const auto make = [](double value) {
    const auto f = [=](double v) { return v > 0.05 ? value : 0.0; };
    QuantizedLookup::function(4, {code_values(f, kX)}, kX, kY, Activation::kNone, "softlog");
  };
  QUANTRAIN_CHECK_ERROR(make(kInfinity), QuantError, "[softlog] the function is inf at 0.06");
  QUANTRAIN_CHECK_ERROR(make(-kInfinity), QuantError, "the function is -inf at 0.06");
  QUANTRAIN_CHECK_ERROR(make(std::nan("")), QuantError, "the function is nan at 0.06");
}

}  // namespace quantrain::integer
