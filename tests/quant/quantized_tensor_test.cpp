#include "quant/quantized_tensor.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "framework/core/error.hpp"
#include "quant/arithmetic.hpp"
#include "tests/catch.hpp"
#include "tests/tensors.hpp"

namespace quantrain::quant {
namespace {

using quantrain::test::normal_tensor;

std::vector<QType> types(int bits) {
  return {{bits, false, false}, {bits, true, false}, {bits, true, true}};
}

int64_t channel_of(const Shape& shape, int axis, int64_t i) {
  if (axis < 0) return 0;
  int64_t inner = 1;
  for (int a = axis + 1; a < shape.rank(); ++a) inner *= shape[a];
  return i / inner % shape[axis];
}

}  // namespace

TEST_CASE("every code equals quantize()'s, for all types, schemes and axes", "[quant][tensor]") {
  const Tensor x = normal_tensor({3, 5, 7}, 5);
  for (int bits = 2; bits <= 8; ++bits) {
    for (const QType& type : types(bits)) {
      for (const QScheme scheme : {QScheme::kAffine, QScheme::kSymmetric}) {
        for (int axis = -1; axis < 3; ++axis) {
          const QuantizedTensor q(x, type, scheme, axis);
          const Tensor y = q.dequantize();
          const QParams& params = q.params();
          REQUIRE(params.axis == axis);
          bool equal = true;
          double error = 0.0;
          for (int64_t i = 0; i < x.elements(); ++i) {
            const auto c = static_cast<size_t>(channel_of(x.shape(), axis, i));
            const int32_t code = quantize(
                x.data()[i], params.scale[c], params.zero_point[c], type.qmin(), type.qmax());
            const float real = dequantize(code, params.scale[c], params.zero_point[c]);
            equal = equal && q.code(i) == code && y.data()[i] == real;
            error += std::pow(static_cast<double>(x.data()[i]) - static_cast<double>(real), 2);
          }
          CHECK(equal);
          CHECK(q.quantization_error(x) ==
                quantrain::test::Approx(error / static_cast<double>(x.elements())));
          CHECK(q.tensor().kind() == ValueKind::kCodes);
          CHECK(q.tensor().data()[0] == *y.data());
        }
      }
    }
  }
}

TEST_CASE("values inside the range are off by at most half a step", "[quant][tensor]") {
  const Tensor x = normal_tensor({64, 9}, 5);
  for (int bits = 2; bits <= 8; ++bits) {
    const QuantizedTensor q(x, {bits, true, true}, QScheme::kSymmetric, 0);
    const Tensor y = q.dequantize();
    for (int64_t i = 0; i < x.elements(); ++i) {
      // Half a step, plus the rounding of the quotient and the product to float32.
      const float bound = q.params().scale[static_cast<size_t>(i / 9)] * 0.5f * (1.0f + 1e-4f);
      CHECK(std::abs(x.data()[i] - y.data()[i]) <= bound);
    }
  }
}

TEST_CASE("more bits make the error smaller, and so do scales per channel", "[quant][tensor]") {
  Tensor x = normal_tensor({4, 100}, 5);
  for (int64_t i = 0; i < 100; ++i) x.mutable_data()[i] *= 50.0f;
  double previous = std::numeric_limits<double>::infinity();
  for (int bits = 2; bits <= 8; ++bits) {
    const QType type{bits, true, true};
    const double per_tensor = QuantizedTensor(x, type, QScheme::kSymmetric).quantization_error(x);
    const double per_channel =
        QuantizedTensor(x, type, QScheme::kSymmetric, 0).quantization_error(x);
    CHECK(per_channel < per_tensor);
    CHECK(per_tensor < previous);
    previous = per_tensor;
  }
}

TEST_CASE("real 0 is exact and dequantized codes quantize to themselves", "[quant][tensor]") {
  Tensor x = normal_tensor({50}, 5);
  x.mutable_data()[7] = 0.0f;
  for (int bits = 2; bits <= 8; ++bits) {
    for (const QType& type : types(bits)) {
      for (const QScheme scheme : {QScheme::kAffine, QScheme::kSymmetric}) {
        const QuantizedTensor q(x, type, scheme);
        const Tensor y = q.dequantize();
        CHECK(y.data()[7] == 0.0f);
        CHECK(QuantizedTensor(y, q.params()).quantization_error(y) == 0.0);
      }
    }
  }
}

TEST_CASE("1-bit codes are 0 and 1", "[quant][tensor]") {
  const Tensor x = Tensor::from({4}, std::vector<float>{-2, 0.9f, 1.1f, 2});
  const QuantizedTensor q(x, {1, false, false}, QScheme::kAffine);
  CHECK(q.params() == QParams{{1, false, false}, -1, {2.0f}, {0}});
  CHECK(std::vector{q.code(0), q.code(1), q.code(2), q.code(3)} == std::vector{0, 0, 1, 1});
  QUANTRAIN_CHECK_ERROR(QuantizedTensor(x, {1, true, true}, QScheme::kSymmetric),
                        QuantError,
                        "signed codes of 1 bit have no 0");
}

TEST_CASE("narrow 2-bit codes are ternary", "[quant][tensor]") {
  const Tensor x = Tensor::from({4}, std::vector<float>{-2, -0.9f, 1.1f, 2});
  const QuantizedTensor q(x, {2, true, true}, QScheme::kSymmetric);
  CHECK(q.params().scale[0] == 2.0f);
  CHECK(std::vector{q.code(0), q.code(1), q.code(2), q.code(3)} == std::vector{-1, 0, 1, 1});
}

TEST_CASE("sizes count packed codes and parameters", "[quant][tensor]") {
  const Tensor x = normal_tensor({3, 5}, 5);
  const QuantizedTensor q(x, {3, false, false}, QScheme::kAffine);
  CHECK(q.packed_bytes() == 6);  // 45 bits
  CHECK(q.parameter_bytes() == 5);
  CHECK(q.compression_ratio() == quantrain::test::Approx(60.0 / 11.0));
  const QuantizedTensor channels(x, {8, true, true}, QScheme::kSymmetric, 1);
  CHECK(channels.packed_bytes() == 15);
  CHECK(channels.parameter_bytes() == 25);
  CHECK(channels.compression_ratio() == quantrain::test::Approx(1.5));
}

TEST_CASE("an empty tensor has no codes and a quantization error of 0", "[quant][tensor]") {
  const Tensor x = Tensor::empty({0, 3});
  const QuantizedTensor q(x, {4, true, true}, QScheme::kSymmetric, 1);
  CHECK(q.params().scale == std::vector<float>{1, 1, 1});
  CHECK(q.dequantize().shape() == Shape{0, 3});
  CHECK(q.quantization_error(x) == 0.0);
  CHECK(q.packed_bytes() == 0);
}

TEST_CASE("quantizing a tensor refuses invalid types, axes, parameters and values",
          "[quant][tensor]") {
  const Tensor x = normal_tensor({2, 3}, 5);
  const QType type{8, true, true};
  for (const int bits : {0, 9, 16, 17}) {
    QUANTRAIN_CHECK_ERROR(QuantizedTensor(x, {bits, true, true}, QScheme::kSymmetric),
                          QuantError,
                          "got " + std::to_string(bits));
  }
  QUANTRAIN_CHECK_ERROR(
      QuantizedTensor(x, {8, false, true}, QScheme::kSymmetric), QuantError, "signed codes");
  QUANTRAIN_CHECK_ERROR(
      QuantizedTensor(x, type, QScheme::kSymmetric, 2), ShapeError, "no axis 2 in [2, 3]");
  const QParams two{type, 1, {1, 1}, {0, 0}};
  QUANTRAIN_CHECK_ERROR(
      QuantizedTensor(x, two), ShapeError, "parameters of 2 channels for axis 1 of [2, 3]");
  QUANTRAIN_CHECK_ERROR(
      QuantizedTensor(x, QParams{type, -1, {1, 1}, {0, 0}}), QuantError, "2 scales");
  QUANTRAIN_CHECK_ERROR(QuantizedTensor(x, QParams{type, -1, {0}, {0}}),
                        QuantError,
                        "not positive, finite and normal");
  QUANTRAIN_CHECK_ERROR(
      QuantizedTensor(x, QParams{type, -1, {1}, {-128}}), QuantError, "codes are [-127, 127]");
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const Tensor y = Tensor::from({2}, std::vector<float>{1, bad});
    QUANTRAIN_CHECK_ERROR(
        QuantizedTensor(y, QParams{type, -1, {1}, {0}}), DataError, "NaN or infinity");
    QUANTRAIN_CHECK_ERROR(QuantizedTensor(y, type, QScheme::kSymmetric), DataError, "finite");
  }
  const QuantizedTensor q(x, type, QScheme::kSymmetric);
  QUANTRAIN_CHECK_ERROR(q.code(6), ShapeError, "no element 6 in [2, 3]");
  QUANTRAIN_CHECK_ERROR(q.quantization_error(normal_tensor({3, 2}, 5)),
                        ShapeError,
                        "original [3, 2], quantized [2, 3]");
}

}  // namespace quantrain::quant
