#include "framework/integer/quantized_softmax.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "framework/core/error.hpp"
#include "framework/core/random.hpp"
#include "tests/framework/integer/sample_operations.hpp"
#include "tests/tensors.hpp"

namespace quantrain::integer {
namespace {

QParams params(float scale, int32_t zero = 0, int bits = 8) {
  return {{.bits = bits}, -1, {scale}, {zero}};
}

std::vector<uint8_t> run_softmax(const QuantizedSoftmax& op, const std::vector<uint8_t>& x) {
  validate(Operation(op), "softmax");
  std::vector<uint8_t> y(x.size());
  const uint8_t* const inputs[] = {x.data()};
  Prepared(op).run(static_cast<int64_t>(x.size()) / op.output_size(), inputs, y.data());
  return y;
}

std::vector<uint8_t> random_row(int64_t classes, uint64_t seed) {
  Random random(seed, 3);
  std::vector<uint8_t> x(static_cast<size_t>(classes));
  for (uint8_t& code : x) code = static_cast<uint8_t>(random.below(256));
  return x;
}

}  // namespace

TEST_CASE("QuantizedSoftmax equals results worked out by hand", "[integer][softmax]") {
  const QParams share = params(1.0f / 255.0f);
  const float log2 = std::log(2.0f);
  // Each of 8 equal classes has a share of 1/8. With the output scale 1/4, this is 0.5, which
  // rounds up to 1.
  CHECK(run_softmax(QuantizedSoftmax::make(1, 8, params(0.1f, 3), params(0.25f), Activation::kNone),
                    std::vector<uint8_t>(8, 9)) == std::vector<uint8_t>(8, 1));
  CHECK(run_softmax(QuantizedSoftmax::make(1, 3, params(0.1f), share, Activation::kNone),
                    {0, 0, 0}) == std::vector<uint8_t>{85, 85, 85});
  // Shares of 1/7, 2/7 and 4/7, in two samples of two rows each.
  const std::vector<uint8_t> x{4, 5, 6, 6, 4, 5, 201, 202, 203, 5, 6, 4};
  CHECK(run_softmax(QuantizedSoftmax::make(2, 3, params(log2), share, Activation::kNone), x) ==
        std::vector<uint8_t>{36, 73, 146, 146, 36, 73, 36, 73, 146, 73, 146, 36});
  // A single class has probability 1. A class far below the largest has probability 0. The
  // zero point and the clamp are applied last.
  CHECK(run_softmax(QuantizedSoftmax::make(1, 1, params(0.1f), share, Activation::kNone), {77}) ==
        std::vector<uint8_t>{255});
  CHECK(run_softmax(
            QuantizedSoftmax::make(1, 3, params(1.0f), params(0.25f, 2, 3), Activation::kNone),
            {0, 255, 0}) == std::vector<uint8_t>{2, 6, 2});
  CHECK(
      run_softmax(QuantizedSoftmax::make(1, 2, params(1.0f), params(0.1f, 0, 3), Activation::kNone),
                  {0, 255}) == std::vector<uint8_t>{0, 7});
}

TEST_CASE("the error of QuantizedSoftmax is within its bound", "[integer][softmax]") {
  for (const int64_t classes : {1, 2, 3, 10, 17, 100, 1000}) {
    for (const float scale : {1e-4f, 0.004f, 0.05f, 0.4f, 3.0f}) {
      for (const float scale_y : {1.0f / 255.0f, 1.0f / 15.0f, 1e-4f}) {
        const std::vector<uint8_t> x = random_row(classes, static_cast<uint64_t>(classes));
        const QParams y = params(scale_y);
        const auto op = QuantizedSoftmax::make(1, classes, params(scale, 90), y, Activation::kNone);
        const SoftmaxRow row(op.powers, x.data(), classes);
        long double sum = 0.0L;
        const int32_t max = *std::max_element(x.begin(), x.end());
        for (const uint8_t code : x)
          sum += std::exp(static_cast<long double>(scale) * (code - max));
        const double bound = 0.5 + static_cast<double>(classes) / 2147483648.0 / double{scale_y};
        CAPTURE(classes, scale, scale_y);
        for (const uint8_t code : x) {
          const long double share = std::exp(static_cast<long double>(scale) * (code - max)) / sum;
          const long double error = static_cast<long double>(row.code(code, op.multiplier, 0)) -
                                    share / static_cast<long double>(scale_y);
          CHECK(std::abs(static_cast<double>(error)) <= bound);
        }
      }
    }
  }
}

TEST_CASE("QuantizedSoftmax may write over its input", "[integer][softmax]") {
  const auto op =
      QuantizedSoftmax::make(7, 13, params(0.05f, 12), params(1.0f / 255.0f), Activation::kNone);
  std::vector<uint8_t> x = random_row(5 * 7 * 13, 4);
  const std::vector<uint8_t> expected = run_softmax(op, x);
  const uint8_t* const inputs[] = {x.data()};
  Prepared(op).run(5, inputs, x.data());
  CHECK(x == expected);
}

TEST_CASE("a sum of many equal powers does not overflow", "[integer][softmax]") {
  const int64_t classes = int64_t{1} << 22;
  const auto op =
      QuantizedSoftmax::make(1, classes, params(0.1f), params(1e-7f), Activation::kNone);
  const std::vector<uint8_t> x(static_cast<size_t>(classes), 200);
  const SoftmaxRow row(op.powers, x.data(), classes);
  CHECK(row.sum() == classes << 30);
  CHECK(row.code(200, op.multiplier, 0) == 2);  // 1e7 / 2^22 = 2.38
}

TEST_CASE("QuantizedSoftmax refuses invalid members", "[integer][softmax]") {
  using Change = std::function<void(QuantizedSoftmax&)>;
  const auto refused = [](const Change& change) {
    QuantizedSoftmax op = test::softmax();
    change(op);
    validate(Operation(op), "layer");
  };
  CHECK_NOTHROW(refused([](QuantizedSoftmax&) {}));
  const auto shape = [&](const std::string& text, const Change& change) {
    QUANTRAIN_CHECK_ERROR(refused(change), ShapeError, "[layer] " + text);
  };
  const auto numbers = [&](const std::string& text, const Change& change) {
    QUANTRAIN_CHECK_ERROR(refused(change), QuantError, "[layer] " + text);
  };
  shape("extent 0 is not positive", [](QuantizedSoftmax& op) { op.rows = 0; });
  shape("extent 0 is not positive", [](QuantizedSoftmax& op) { op.classes = 0; });
  shape("a value has more than", [](QuantizedSoftmax& op) { op.rows = int64_t{1} << 30; });
  shape("a table of 255 powers, expected 256", [](QuantizedSoftmax& op) { op.powers.pop_back(); });
  numbers("powers[0] is 5, expected 1073741824", [](QuantizedSoftmax& op) { op.powers[0] = 5; });
  numbers("a power of -1, expected 0 to 1073741824",
          [](QuantizedSoftmax& op) { op.powers[9] = -1; });
  numbers("a power of 1073741825", [](QuantizedSoftmax& op) { op.powers[1] = (1 << 30) + 1; });
  numbers("docs/quantization.md (8) does not allow multiplier 5 with shift",
          [](QuantizedSoftmax& op) { op.multiplier.m0 = 5; });
  numbers("zero point 256 is not in [0, 255]", [](QuantizedSoftmax& op) { op.y.zero_point = 256; });
}

}  // namespace quantrain::integer
