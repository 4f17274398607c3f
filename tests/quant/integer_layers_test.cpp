#include <limits>
#include <numeric>
#include <vector>

#include "framework/arithmetic/fixed_point.hpp"
#include "framework/core/error.hpp"
#include "framework/core/random.hpp"
#include "quant/analysis/overflow.hpp"
#include "quant/integer/quantized_add.hpp"
#include "quant/integer/quantized_concat.hpp"
#include "quant/integer/quantized_conv2d.hpp"
#include "quant/integer/quantized_linear.hpp"
#include "quant/integer/quantized_pool2d.hpp"
#include "quant/integer/quantized_rescale.hpp"
#include "tests/catch.hpp"

// Each integer layer on its own, against the rules written out.
namespace quantrain::quant {
namespace {

const QParams kX{{.bits = 8}, -1, {0.02f}, {7}};
const QParams kSigned{{.bits = 6, .is_signed = true}, -1, {0.05f}, {-3}};
const QParams kY{{.bits = 4}, -1, {0.3f}, {5}};

std::vector<uint8_t> random_bytes(int64_t n, uint64_t seed, int32_t lo = 0, int32_t hi = 255) {
  Random random(seed);
  std::vector<uint8_t> bytes(static_cast<size_t>(n));
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(lo + random.below(hi - lo + 1));
  return bytes;
}

QuantizedWeights random_weights(int64_t outputs, int64_t length, uint64_t seed) {
  Random random(seed);
  QuantizedWeights w;
  for (int64_t i = 0; i < outputs * length; ++i)
    w.codes.push_back(static_cast<int8_t>(random.below(255) - 127));
  for (int64_t o = 0; o < outputs; ++o) {
    w.scale.push_back(random.uniform(0.001f, 0.01f));
    w.bias.push_back(static_cast<int32_t>(random.below(20001) - 10000));
  }
  return w;
}

// Rule 8 with the multiplier of channel o, in stored bytes.
uint8_t expected_code(int32_t acc, double scale, const QParams& y, Activation activation) {
  const CodeClamp clamp = stored_clamp(y, activation);
  const Multiplier m = make_multiplier(scale / static_cast<double>(y.scale[0]));
  return static_cast<uint8_t>(requantize(acc, m, stored_zero_point(y), clamp.lo, clamp.hi));
}

}  // namespace

TEST_CASE("QuantizedLinear equals its sums, requantized", "[quant][integer]") {
  const QParams x = GENERATE(kX, kSigned);
  const int64_t n = 3;
  const int64_t k = 37;
  const int64_t outputs = 11;
  const QuantizedWeights w = random_weights(outputs, k, 1);
  QuantizedLinear layer("fc", {.input = {k}, .outputs = outputs, .weights = w, .x = x});
  const std::vector<uint8_t> input = random_bytes(n * k, 2);
  const uint8_t* const inputs[] = {input.data()};
  std::vector<int32_t> acc(static_cast<size_t>(n * outputs));
  CHECK(layer.output_kind() == OutputKind::kAccumulators);
  QUANTRAIN_CHECK_ERROR(layer.output_params(), QuantError, "[fc] the output has no parameters");
  QUANTRAIN_CHECK_ERROR(layer.accumulator_scale(), QuantError, "[fc] the output has 11 scales");
  layer.run(n, inputs, acc.data());
  layer.requantize_to(kY, Activation::kRelu);
  std::vector<uint8_t> codes(acc.size());
  layer.run(n, inputs, codes.data());
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t o = 0; o < outputs; ++o) {
      int32_t sum = w.bias[static_cast<size_t>(o)];
      for (int64_t j = 0; j < k; ++j) {
        sum += w.codes[static_cast<size_t>(o * k + j)] *
               (input[static_cast<size_t>(i * k + j)] - stored_zero_point(x));
      }
      const auto at = static_cast<size_t>(i * outputs + o);
      REQUIRE(acc[at] == sum);
      const double scale =
          static_cast<double>(x.scale[0]) * static_cast<double>(w.scale[static_cast<size_t>(o)]);
      REQUIRE(codes[at] == expected_code(sum, scale, kY, Activation::kRelu));
      CHECK(codes[at] >= 5);
    }
  }
}

TEST_CASE("QuantizedConv2d pads with the zero point", "[quant][integer]") {
  // One input of the zero point everywhere: every sum is the bias, at the border too.
  const kernels::Conv2dShape shape{
      .n = 1, .h = 3, .w = 3, .c = 2, .o = 2, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 1};
  QuantizedConv2d layer("conv", {.shape = shape, .weights = random_weights(2, 18, 3), .x = kX});
  const std::vector<uint8_t> input(18, 7);
  const uint8_t* const inputs[] = {input.data()};
  std::vector<int32_t> acc(18);
  layer.run(1, inputs, acc.data());
  for (size_t i = 0; i < acc.size(); ++i) CHECK(acc[i] == layer.weights().bias[i % 2]);
}

TEST_CASE("QuantizedAdd rounds once, at one shift", "[quant][integer]") {
  QuantizedAdd layer("sum", {.shape = {50}, .a = kX, .b = kSigned});
  layer.requantize_to(kY, Activation::kNone);
  const std::vector<uint8_t> a = random_bytes(100, 4);
  const std::vector<uint8_t> b = random_bytes(100, 5, 96, 159);  // 6 signed bits, stored + 128
  const uint8_t* const inputs[] = {a.data(), b.data()};
  std::vector<uint8_t> y(100);
  layer.run(2, inputs, y.data());
  const AddMultipliers m = make_add_multipliers(double{kX.scale[0]} / double{kY.scale[0]},
                                                double{kSigned.scale[0]} / double{kY.scale[0]});
  for (size_t i = 0; i < y.size(); ++i)
    CHECK(y[i] == requantize_add(a[i] - 7, b[i] - 125, m, 5, 0, 15));
}

TEST_CASE("pools, concatenation and rescaling equal their rules", "[quant][integer]") {
  const kernels::Conv2dShape shape{.n = 1,
                                   .h = 5,
                                   .w = 4,
                                   .c = 3,
                                   .o = 3,
                                   .kh = 2,
                                   .kw = 2,
                                   .stride_h = 2,
                                   .stride_w = 2,
                                   .pad_h = 1,
                                   .pad_w = 1};
  const std::vector<uint8_t> x = random_bytes(2 * 60, 6);
  const uint8_t* const inputs[] = {x.data()};
  QuantizedMaxPool2d max("max", {.shape = shape, .x = kX});
  QuantizedAvgPool2d avg("avg", {.shape = shape, .x = kX});
  avg.requantize_to(kY, Activation::kNone);
  std::vector<uint8_t> max_y(static_cast<size_t>(2 * max.output_shape().elements()));
  std::vector<uint8_t> avg_y(max_y.size());
  max.run(2, inputs, max_y.data());
  avg.run(2, inputs, avg_y.data());
  size_t at = 0;
  for (int64_t n = 0; n < 2; ++n) {
    for (int64_t i = 0; i < shape.oh(); ++i) {
      for (int64_t j = 0; j < shape.ow(); ++j) {
        for (int64_t c = 0; c < 3; ++c, ++at) {
          int32_t sum = 0;
          int32_t count = 0;
          uint8_t largest = 0;
          for (int64_t h = std::max<int64_t>(2 * i - 1, 0); h < std::min<int64_t>(2 * i + 1, 5);
               ++h) {
            for (int64_t w = std::max<int64_t>(2 * j - 1, 0); w < std::min<int64_t>(2 * j + 1, 4);
                 ++w) {
              const uint8_t code = x[static_cast<size_t>(((n * 5 + h) * 4 + w) * 3 + c)];
              sum += code - 7;
              ++count;
              largest = std::max(largest, code);
            }
          }
          REQUIRE(max_y[at] == largest);
          REQUIRE(avg_y[at] ==
                  expected_code(sum, double{kX.scale[0]} / count, kY, Activation::kNone));
        }
      }
    }
  }

  QuantizedConcat concat("cat", {.inputs = {{2, 3}, {2, 1}}, .axis = 1, .x = {kX, kSigned}});
  concat.requantize_to(kY, Activation::kNone);
  const std::vector<uint8_t> a = random_bytes(12, 7);
  const std::vector<uint8_t> b = random_bytes(4, 8, 96, 159);
  const uint8_t* const pair[] = {a.data(), b.data()};
  std::vector<uint8_t> y(16);
  concat.run(2, pair, y.data());
  for (size_t row = 0; row < 4; ++row) {
    for (size_t column = 0; column < 4; ++column) {
      const uint8_t expected =
          column < 3
              ? expected_code(a[row * 3 + column] - 7, double{kX.scale[0]}, kY, Activation::kNone)
              : expected_code(b[row] - 125, double{kSigned.scale[0]}, kY, Activation::kNone);
      CHECK(y[row * 4 + column] == expected);
    }
  }

  QuantizedRescale relu("relu", {.shape = {60}, .x = kX});
  relu.requantize_to(kX, Activation::kRelu);
  std::vector<uint8_t> clamped(60);
  relu.run(1, inputs, clamped.data());
  for (size_t i = 0; i < clamped.size(); ++i) CHECK(clamped[i] == std::max<uint8_t>(x[i], 7));
}

TEST_CASE("the accumulator's bound is that of the worst input", "[quant][overflow]") {
  const std::vector<int8_t> w{127, -127, 3};
  CHECK(accumulator_bound(3, w.data(), 10, 0) == 10 + 255 * 130);
  CHECK(accumulator_bound(3, w.data(), -10, 255) == 10 + 255 * 3 + 255 * 130);
  CHECK(accumulator_bound(0, w.data(), std::numeric_limits<int32_t>::min(), 0) == int64_t{1} << 31);
}

TEST_CASE("integer layers refuse what makes no sense", "[quant][integer]") {
  const QuantizedWeights w = random_weights(2, 3, 9);
  const auto linear = [&](QuantizedWeights weights, QParams x) {
    return QuantizedLinear(
        "fc", {.input = {3}, .outputs = 2, .weights = std::move(weights), .x = std::move(x)});
  };
  QuantizedWeights few = w;
  few.codes.pop_back();
  QUANTRAIN_CHECK_ERROR(linear(few, kX), ShapeError, "[fc] 5 weights for 2 outputs of 3 each");
  // 2^62 * 4 wraps around to the number of weights.
  QUANTRAIN_CHECK_ERROR(QuantizedLinear("fc",
                                        {.input = {4},
                                         .outputs = int64_t{1} << 62,
                                         .weights = {.codes = {}, .scale = {1.0f}, .bias = {}},
                                         .x = kX}),
                        ShapeError,
                        "[fc] 0 weights");
  QuantizedWeights scales = w;
  scales.scale.push_back(1.0f);
  QUANTRAIN_CHECK_ERROR(linear(scales, kX), ShapeError, "3 weight scales");
  QuantizedWeights zero = w;
  zero.scale[0] = 0.0f;
  QUANTRAIN_CHECK_ERROR(linear(zero, kX), QuantError, "weight scale is 0");
  QUANTRAIN_CHECK_ERROR(linear(w, {{.bits = 16}, -1, {1.0f}, {0}}), QuantError, "2 to 8 bits");
  QUANTRAIN_CHECK_ERROR(
      linear(w, {{.bits = 8}, 0, {1.0f, 1.0f}, {0, 0}}), QuantError, "per tensor");
  QuantizedWeights huge = w;
  huge.bias[1] = std::numeric_limits<int32_t>::max();
  QUANTRAIN_CHECK_ERROR(linear(huge, kX), QuantError, "[fc] accumulator of channel 1 could reach");
  QuantizedLinear fine = linear(w, kX);
  QUANTRAIN_CHECK_ERROR(fine.requantize_to({{.bits = 8}, -1, {1e-20f}, {0}}, Activation::kNone),
                        QuantError,
                        "[fc] [requantize] multiplier");
  QUANTRAIN_CHECK_ERROR(fine.requantize_to({{.bits = 16}, -1, {1.0f}, {0}}, Activation::kNone),
                        QuantError,
                        "[fc] integer activations are per tensor and of 2 to 8 bits");
  CHECK(fine.output_kind() == OutputKind::kAccumulators);  // nothing has changed
  const kernels::Conv2dShape shape{.h = 2, .w = 2, .c = 1, .o = 1, .kh = 3, .kw = 3};
  QUANTRAIN_CHECK_ERROR(
      QuantizedConv2d("conv", {.shape = shape, .weights = random_weights(1, 9, 1), .x = kX}),
      ShapeError,
      "exceeds");
  QUANTRAIN_CHECK_ERROR(
      QuantizedMaxPool2d("max", {.shape = shape, .x = kX}), ShapeError, "exceeds");
  QuantizedFlatten flat("flat", {.input = {4}, .output = {2, 2}, .x = kX});
  QUANTRAIN_CHECK_ERROR(
      flat.requantize_to(kY, Activation::kNone), QuantError, "[flat] a flatten passes");
  const kernels::Conv2dShape window{.h = 3000, .w = 3000, .c = 1, .o = 1, .kh = 3000, .kw = 3000};
  QUANTRAIN_CHECK_ERROR(
      QuantizedAvgPool2d("avg", {.shape = window, .x = kX}), QuantError, "at most 8421504");
  QUANTRAIN_CHECK_ERROR(
      QuantizedConcat("cat", {.inputs = {{2, 3}, {3, 3}}, .axis = 1, .x = {kX, kX}}),
      ShapeError,
      "cannot concatenate");
  QUANTRAIN_CHECK_ERROR(
      QuantizedConcat("cat", {.inputs = {{0, 3}, {0, 3}}, .axis = 1, .x = {kX, kX}}),
      ShapeError,
      "an input has no elements: [0, 3]");
  QUANTRAIN_CHECK_ERROR(QuantizedFlatten("flat", {.input = {4}, .output = {5}, .x = kX}),
                        ShapeError,
                        "not as many elements");
}

}  // namespace quantrain::quant
