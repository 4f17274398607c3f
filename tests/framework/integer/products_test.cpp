#include <array>

#include "framework/core/error.hpp"
#include "framework/integer/operation.hpp"
#include "tests/catch.hpp"
#include "tests/framework/integer/run_operation.hpp"
#include "tests/framework/integer/sample_operations.hpp"

// Compares linear layers and convolutions with plain loops over the equations.
namespace quantrain::integer {
namespace {

using quantrain::test::for_each_isa;
using quantrain::test::for_each_thread_count;
using test::expected_code;
using test::kSigned;
using test::kX;
using test::kY;
using test::random_bytes;
using test::RandomProduct;
using test::run;
using test::run_as;
using test::run_into;

/// The sums of a convolution that is padded with the zero point.
std::vector<int32_t> convolved(const QuantizedConv2d& op,
                               int64_t n,
                               const std::vector<uint8_t>& x) {
  const kernels::Conv2dShape& s = op.shape;
  const QuantizedProduct& p = op.product;
  const SharedArray<int8_t> codes = p.weight.codes();
  std::vector<int32_t> sums;
  for (int64_t image = 0; image < n; ++image) {
    for (int64_t i = 0; i < s.oh(); ++i) {
      for (int64_t j = 0; j < s.ow(); ++j) {
        for (int64_t o = 0; o < s.o; ++o) {
          int32_t sum = p.bias.empty() ? 0 : p.bias[o];
          for (int64_t u = 0; u < s.kh; ++u) {
            for (int64_t v = 0; v < s.kw; ++v) {
              const int64_t h = i * s.stride_h - s.pad_h + u * s.dilation_h;
              const int64_t w = j * s.stride_w - s.pad_w + v * s.dilation_w;
              if (h < 0 || h >= s.h || w < 0 || w >= s.w) continue;
              for (int64_t c = 0; c < s.group_c(); ++c) {
                const int64_t channel = o / s.group_o() * s.group_c() + c;
                const int64_t from = ((image * s.h + h) * s.w + w) * s.c + channel;
                const int64_t weight = ((o * s.kh + u) * s.kw + v) * s.group_c() + c;
                sum += codes[weight] * (x[static_cast<size_t>(from)] - p.zero_x);
              }
            }
          }
          sums.push_back(sum);
        }
      }
    }
  }
  return sums;
}

/// Checks that accumulate() gives `sums`. If `output` of the product is set, run() must give the
/// codes that finish() computes from these sums; otherwise it must give the sums. Checks this on
/// every instruction set and with any number of threads.
template <class Op>
void check_halves(Op op, const RandomProduct& random, int64_t n, const std::vector<int32_t>& sums) {
  const QParams y{{.bits = 7, .is_signed = true}, -1, {0.4f}, {-9}};
  const std::vector<uint8_t> x = random_bytes(n * input_sizes(op)[0], 5);
  const uint8_t* const inputs[] = {x.data()};
  for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kRelu6}) {
    std::vector<uint8_t> expected;
    for (size_t i = 0; i < sums.size(); ++i)
      expected.push_back(
          expected_code(sums[i], random.scale[i % random.scale.size()], y, activation));
    for_each_isa([&] {
      for_each_thread_count([&] {
        op.product = random.product;
        std::vector<int32_t> acc(sums.size());
        Prepared<Op>(op).accumulate(n, x.data(), acc.data());
        CHECK(acc == sums);
        acc.assign(sums.size(), -1);
        run_into(acc.data(), op, n, inputs);
        CHECK(acc == sums);
        op.product = random.behind(y, activation);
        acc.assign(sums.size(), -1);
        Prepared<Op>(op).accumulate(n, x.data(), acc.data());
        CHECK(acc == sums);
        std::vector<uint8_t> codes(sums.size());
        std::vector<uint8_t> fused(sums.size());
        finish(*op.product.output,
               static_cast<int64_t>(sums.size()) / op.channels(),
               acc.data(),
               codes.data());
        run_into(fused.data(), op, n, inputs);
        CHECK(codes == expected);
        CHECK(fused == expected);
      });
    });
  }
}

}  // namespace

TEST_CASE("QuantizedLinear requantizes its sums", "[integer][linear]") {
  const QParams x = GENERATE(kX, kSigned);
  const int64_t n = 3;
  const int64_t rows = 2;
  const int64_t k = 37;
  const int64_t outputs = 11;
  const RandomProduct random({.outputs = outputs, .length = k, .x = x}, 1);
  QuantizedLinear op{rows, k, outputs, random.product};
  CHECK(gives_accumulators(op));
  CHECK(output_zero_point(op) == -1);
  const std::vector<uint8_t> input = random_bytes(n * rows * k, 2);
  const std::vector<int32_t> acc = run_as<int32_t>(op, n, {input});
  const SharedArray<int8_t> weight = random.product.weight.codes();
  op.product = random.behind(kY, Activation::kRelu);
  CHECK_FALSE(gives_accumulators(op));
  const std::vector<uint8_t> codes = run(op, n, {input});
  for (int64_t i = 0; i < n * rows; ++i) {
    for (int64_t o = 0; o < outputs; ++o) {
      int32_t sum = random.product.bias[o];
      for (int64_t j = 0; j < k; ++j) {
        sum += weight[o * k + j] * (input[static_cast<size_t>(i * k + j)] - stored_zero_point(x));
      }
      const auto at = static_cast<size_t>(i * outputs + o);
      REQUIRE(acc[at] == sum);
      REQUIRE(codes[at] ==
              expected_code(sum, random.scale[static_cast<size_t>(o)], kY, Activation::kRelu));
      CHECK(codes[at] >= 5);
    }
  }
}

TEST_CASE("running a linear layer equals accumulating and finishing it", "[integer][linear]") {
  const std::vector<std::array<int64_t, 3>> sizes = {
      {1, 1, 1}, {1, 7, 5}, {3, 64, 16}, {2, 65, 33}, {1, 300, 17}};
  for (const auto& [rows, inputs, outputs] : sizes) {
    for (const bool bias : {false, true}) {
      const RandomProduct random({.outputs = outputs, .length = inputs, .x = kSigned, .bias = bias},
                                 3);
      const QuantizedLinear op{rows, inputs, outputs, random.product};
      for (const int64_t n : {0, 1, 5}) {
        CAPTURE(rows, inputs, outputs, bias, n);
        const QuantizedConv2d as_conv{{.h = 1, .w = rows, .c = inputs, .o = outputs},
                                      random.product};
        check_halves(op, random, n, convolved(as_conv, n, random_bytes(n * rows * inputs, 5)));
      }
    }
  }
}

TEST_CASE("running a convolution equals accumulating and finishing it", "[integer][conv2d]") {
  const std::vector<kernels::Conv2dShape> shapes = {
      {.h = 5, .w = 4, .c = 3, .o = 4, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 1},
      {.h = 7, .w = 6, .c = 1, .o = 5, .kh = 3, .kw = 2, .stride_h = 2, .pad_w = 1},
      {.h = 4,
       .w = 4,
       .c = 4,
       .o = 6,
       .kh = 3,
       .kw = 3,
       .stride_h = 2,
       .stride_w = 2,
       .pad_h = 1,
       .pad_w = 1,
       .groups = 2},
      {.h = 5, .w = 5, .c = 3, .o = 3, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 1, .groups = 3},
      {.h = 6, .w = 5, .c = 17, .o = 34, .kh = 3, .kw = 3, .pad_h = 2, .pad_w = 2, .groups = 17},
      {.h = 1, .w = 1, .c = 17, .o = 2},
      {.h = 9, .w = 9, .c = 8, .o = 16, .kh = 5, .kw = 5, .stride_h = 3, .stride_w = 2},
      {.h = 8,
       .w = 9,
       .c = 3,
       .o = 5,
       .kh = 3,
       .kw = 2,
       .pad_h = 1,
       .dilation_h = 2,
       .dilation_w = 4},
      {.h = 9,
       .w = 9,
       .c = 6,
       .o = 6,
       .kh = 3,
       .kw = 3,
       .groups = 6,
       .dilation_h = 3,
       .dilation_w = 2},
      // Each side has its own padding: as TFLite pads an even image at stride 2, only before the
      // image, and 1x1 kernels with windows that cover only padding.
      {.h = 6,
       .w = 8,
       .c = 3,
       .o = 5,
       .kh = 3,
       .kw = 3,
       .stride_h = 2,
       .stride_w = 2,
       .end_h = 1,
       .end_w = 1},
      {.h = 6, .w = 5, .c = 17, .o = 17, .kh = 3, .kw = 2, .groups = 17, .end_h = 2, .end_w = 1},
      {.h = 5, .w = 6, .c = 4, .o = 3, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 2, .end_h = -1},
      {.h = 5, .w = 6, .c = 8, .o = 8, .kh = 3, .kw = 3, .pad_w = 2, .groups = 8, .end_w = -2},
      {.h = 3, .w = 4, .c = 4, .o = 3, .end_w = 1},
      {.h = 3, .w = 4, .c = 4, .o = 3, .pad_h = 1, .end_h = -1},
  };
  for (const kernels::Conv2dShape& shape : shapes) {
    for (const bool bias : {false, true}) {
      const RandomProduct random(
          {.outputs = shape.o, .length = shape.reduction(), .x = kX, .bias = bias}, 4);
      const QuantizedConv2d op{shape, random.product};
      op.validate("conv");
      for (const int64_t n : {0, 1, 3}) {
        CAPTURE(shape.h, shape.w, shape.c, shape.o, shape.groups, bias, n);
        CAPTURE(shape.end_h, shape.end_w);
        check_halves(op, random, n, convolved(op, n, random_bytes(n * shape.x_elements(), 5)));
      }
    }
  }
}

TEST_CASE("QuantizedConv2d pads with the zero point", "[integer][conv2d]") {
  // All inputs are the zero point, so every sum is the bias, also at the border.
  const kernels::Conv2dShape shape{
      .n = 1, .h = 3, .w = 3, .c = 2, .o = 2, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 1};
  const RandomProduct random({.outputs = 2, .length = 18, .x = kX}, 3);
  const std::vector<int32_t> acc =
      run_as<int32_t>(QuantizedConv2d{shape, random.product}, 1, {std::vector<uint8_t>(18, 7)});
  for (size_t i = 0; i < acc.size(); ++i)
    CHECK(acc[i] == random.product.bias[static_cast<int64_t>(i % 2)]);
}

TEST_CASE("the bound of an accumulator follows from weights, bias and zero point",
          "[integer][overflow]") {
  const std::vector<int8_t> w{127, -127, 3};
  CHECK(accumulator_bound(3, w.data(), 10, 0) == 10 + 255 * 130);
  CHECK(accumulator_bound(3, w.data(), -10, 255) == 10 + 255 * 3 + 255 * 130);
  CHECK(accumulator_bound(0, w.data(), std::numeric_limits<int32_t>::min(), 0) == int64_t{1} << 31);
  // The bound of an operation is the largest bound of its channels.
  const QuantizedLinear op = test::linear();
  const SharedArray<int8_t> weight = op.product.weight.codes();
  int64_t largest = 0;
  for (int64_t o = 0; o < 2; ++o) {
    largest = std::max(
        largest,
        accumulator_bound(3, weight.data() + 3 * o, op.product.bias[o], op.product.zero_x));
  }
  CHECK(accumulator_bound(Operation(op)) == largest);
  CHECK(accumulator_bound(Operation(test::add())) == 0);
}

TEST_CASE("no input makes an accumulator exceed its bound", "[integer][overflow]") {
  for (const int32_t zero_x : {0, 3, 128, 255}) {
    RandomProduct random({.outputs = 5, .length = 9, .x = kX}, 11);
    random.product.zero_x = zero_x;
    const QuantizedLinear op{1, 9, 5, random.product};
    const SharedArray<int8_t> weight = op.product.weight.codes();
    for (int64_t o = 0; o < 5; ++o) {
      const int8_t* const w = weight.data() + 9 * o;
      // The largest sum is start + up, and the smallest is start + down.
      int64_t start = op.product.bias[o];
      int64_t up = 0;
      int64_t down = 0;
      for (int64_t i = 0; i < 9; ++i) {
        start -= int64_t{w[i]} * zero_x;
        (w[i] > 0 ? up : down) += 255 * int64_t{w[i]};
      }
      const int64_t bound = accumulator_bound(9, w, op.product.bias[o], zero_x);
      CHECK(std::abs(start + up) <= bound);
      CHECK(std::abs(start + down) <= bound);
      CHECK(std::abs(start) + std::max(up, -down) == bound);
    }
  }
}

}  // namespace quantrain::integer
