#include "layers/adaptive_pooling.hpp"

#include "framework/core/error.hpp"
#include "layers/pooling.hpp"
#include "layers/sequential.hpp"
#include "tests/tensors.hpp"

namespace quantrain {

using test::random_tensor;
using test::values;

TEST_CASE("adaptive pools that divide evenly are ordinary pools", "[layers][pooling]") {
  const Tensor x = test::make_tensor({1, 2, 4, 1}, {1, 3, 5, 7, 1, 3, 9, 7});
  CHECK(values(AdaptiveAvgPool2d{{1, 2}}(x)) == std::vector<float>{2, 7});
  CHECK(values(AdaptiveMaxPool2d{{2, 1}}(x)) == std::vector<float>{7, 9});
  CHECK(values(AdaptiveMaxPool2d{{2, 4}}(x)) == values(x));
  const Tensor images = random_tensor({2, 6, 9, 3}, 1);
  CHECK(values(AdaptiveAvgPool2d{3}(images)) == values(AvgPool2d{{2, 3}}(images)));
  CHECK(values(AdaptiveAvgPool2d{1}(images)) == values(GlobalAvgPool2d{}(images)));
  CHECK(AdaptiveAvgPool2d{{3, 9}}(images).shape() == Shape{2, 3, 9, 3});
  const Tensor signals = random_tensor({2, 12, 3}, 1);
  CHECK(values(AdaptiveAvgPool1d{4}(signals)) == values(AvgPool1d{3}(signals)));
  CHECK(values(AdaptiveMaxPool1d{3}(signals)) == values(MaxPool1d{4}(signals)));
  CHECK(AdaptiveMaxPool1d{12}(signals).shape() == Shape{2, 12, 3});
}

TEST_CASE("adaptive pools name the nearest sizes that divide evenly", "[layers][pooling]") {
  QUANTRAIN_CHECK_ERROR(
      (AdaptiveAvgPool2d{{2, 7}}(Tensor::zeros({1, 8, 12, 3}))),
      ShapeError,
      "[AdaptiveAvgPool2d] axis 2 has 12 elements, which 7 windows of one size do "
      "not cover: the nearest size is 6 or 12; x [1, 8, 12, 3]");
  QUANTRAIN_CHECK_ERROR(AdaptiveMaxPool2d{7}(Tensor::zeros({1, 4, 14, 3})),
                        ShapeError,
                        "[AdaptiveMaxPool2d] axis 1 has 4 elements, which 7 windows of one size do "
                        "not cover: the nearest size is 4; x [1, 4, 14, 3]");
  QUANTRAIN_CHECK_ERROR(
      AdaptiveAvgPool1d{5}(Tensor::zeros({1, 12, 3})), ShapeError, "the nearest size is 4 or 6");
  QUANTRAIN_CHECK_ERROR(AdaptiveMaxPool1d{2}(Tensor::zeros({1, 0, 3})),
                        ShapeError,
                        "[AdaptiveMaxPool1d] axis 1 has no elements: x [1, 0, 3]");
  Sequential net{AdaptiveAvgPool2d{2}};
  QUANTRAIN_CHECK_ERROR(
      net(Tensor::zeros({1, 3, 2, 3})), ShapeError, "[AdaptiveAvgPool2d 0] axis 1 has 3 elements");
  QUANTRAIN_CHECK_ERROR(
      net(Tensor::zeros({1, 4, 2})), ShapeError, "x is not [N, H, W, C]: x [1, 4, 2]");
  QUANTRAIN_CHECK_ERROR(AdaptiveAvgPool1d{2}(Tensor::zeros({1, 4})),
                        ShapeError,
                        "[AdaptiveAvgPool1d] x is not [N, L, C]: x [1, 4]");
  QUANTRAIN_CHECK_ERROR(AdaptiveAvgPool2d{0},
                        ShapeError,
                        "[AdaptiveAvgPool2d] the output's size is [0, 0]: it must be at least 1");
  QUANTRAIN_CHECK_ERROR(AdaptiveMaxPool1d{-1}, ShapeError, "[AdaptiveMaxPool1d] the output's size");
}

}  // namespace quantrain
