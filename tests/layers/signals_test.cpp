#include <algorithm>
#include <vector>

#include "framework/core/error.hpp"
#include "layers/layers.hpp"
#include "tests/catch.hpp"
#include "tests/tensors.hpp"

// Layers for signals, and Reshape, which turns rows into signals.
namespace quantrain {
namespace {

using test::set;
using test::values;

}  // namespace

TEST_CASE("conv1d slides its kernel over the padded signal", "[layers][conv1d]") {
  Conv1d conv{1, 1, {.kernel = 3, .padding = 2, .dilation = 2}};
  set(conv.weight(), {1.0f, 10.0f, 100.0f});
  set(conv.bias(), {0.5f});
  CHECK(values(conv(Tensor::from({1, 4, 1}, std::vector<float>{1, 2, 3, 4}))) ==
        std::vector<float>{310.5f, 420.5f, 31.5f, 42.5f});
  CHECK(Conv1d{4, 6, {.stride = 2, .padding = 1, .groups = 2}}(Tensor::zeros({2, 5, 4})).shape() ==
        Shape{2, 3, 6});
  CHECK(Conv1d{4, 6}(Tensor::zeros({0, 5, 4})).shape() == Shape{0, 3, 6});
}

TEST_CASE("pooling of signals takes the largest or the mean of each window", "[layers][pooling]") {
  const Tensor x = Tensor::from({1, 4, 1}, std::vector<float>{1, 2, 3, 6});
  CHECK(values(MaxPool1d{2}(x)) == std::vector<float>{2, 6});
  CHECK(values(AvgPool1d{2}(x)) == std::vector<float>{1.5f, 4.5f});
  CHECK(values(AvgPool1d{2, {.stride = 4, .padding = 1}}(x)) == std::vector<float>{1, 6});
  CHECK(GlobalMaxPool1d{}(x).shape() == Shape{1, 1, 1});
  CHECK(GlobalMaxPool1d{}(x).item() == 6.0f);
  CHECK(GlobalAvgPool1d{}(x).item() == 3.0f);
  CHECK(MaxPool1d{3, {.stride = 1, .padding = 1}}(Tensor::zeros({0, 5, 2})).shape() ==
        Shape{0, 5, 2});
}

TEST_CASE("reshape gives samples another shape", "[layers][reshape]") {
  const Tensor x = Tensor::from({2, 6}, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  CHECK(Reshape{{3, 2}}(x).shape() == Shape{2, 3, 2});
  CHECK(values(Reshape{{3, 2}}(x)) == values(x));
  CHECK(Reshape{{-1, 1, 2}}(x).shape() == Shape{2, 3, 1, 2});
  CHECK(Reshape{{-1}}(Tensor::zeros({3, 2, 5})).shape() == Shape{3, 10});
  CHECK(Reshape{std::vector<int64_t>{}}(Tensor::zeros({3, 1})).shape() == Shape{3});
  CHECK(Reshape{{3, -1}}(Tensor::zeros({0, 6})).shape() == Shape{0, 3, 2});
  CHECK(Reshape{{-1, 4}}(Tensor::zeros({2, 0, 4})).shape() == Shape{2, 0, 4});
  CHECK(Reshape{{3, 2}}.type() == "Reshape");
  QUANTRAIN_CHECK_ERROR((Reshape{{2, 2}}(x)),
                        ShapeError,
                        "[Reshape] a sample of 6 elements does not fill [2, 2]: x [2, 6]");
  QUANTRAIN_CHECK_ERROR((Reshape{{4, 3}}(x)), ShapeError, "a sample of 6 elements");
  QUANTRAIN_CHECK_ERROR((Reshape{{4, -1}}(x)), ShapeError, "does not fill [4, -1]");
  QUANTRAIN_CHECK_ERROR(
      Reshape{{1}}(Tensor::full({}, 1.0f)), ShapeError, "[Reshape] takes a batch [N, ...]: x []");
  const std::vector<std::vector<int64_t>> senseless{{0, 2}, {-2}, {-1, 3, -1}, {2, -7}};
  for (const std::vector<int64_t>& extents : senseless) {
    QUANTRAIN_CHECK_ERROR(Reshape{extents},
                          ShapeError,
                          "[Reshape] expected positive extents and at most one -1, got [");
  }
  QUANTRAIN_CHECK_ERROR((Reshape{{int64_t{1} << 40, int64_t{1} << 40}}),
                        ShapeError,
                        "[shape] too many elements in [1, 1099511627776, 1099511627776]");
  QUANTRAIN_CHECK_ERROR(Reshape{std::vector<int64_t>(8, 1)}, ShapeError, "[shape] rank 9 exceeds");
}

}  // namespace quantrain
