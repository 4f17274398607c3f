#include "layers/onnx/constant.hpp"

#include <limits>

#include "tests/catch.hpp"

namespace quantrain::onnx {
namespace {

constexpr Extent kSamples{1, true};

TEST_CASE("shape arithmetic keeps the number of samples as a factor", "[layers][onnx]") {
  CHECK(kSamples * Extent{3} == Extent{3, true});
  CHECK(Extent{6, true} / Extent{2} == Extent{3, true});
  CHECK(Extent{6, true} / Extent{2, true} == Extent{3});
  CHECK(Extent{0} * kSamples == Extent{0});
  CHECK(kSamples + Extent{0} == kSamples);
  CHECK(kSamples + Extent{2, true} == Extent{3, true});
  CHECK(Extent{2, true} - Extent{2, true} == Extent{0});
  CHECK(Extent{-7} / Extent{2} == Extent{-3});
  CHECK_THROWS_AS(kSamples * kSamples, Refusal);
  CHECK_THROWS_AS(kSamples + Extent{1}, Refusal);
  CHECK_THROWS_AS(kSamples / Extent{2}, Refusal);
  CHECK_THROWS_AS(Extent{4} / kSamples, Refusal);
  CHECK_THROWS_AS(Extent{4} / Extent{0}, Refusal);
}

TEST_CASE("shape arithmetic refuses what overflows", "[layers][onnx]") {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  CHECK_THROWS_AS(Extent{kMost} + Extent{1}, Refusal);
  CHECK_THROWS_AS(Extent{kMost} * Extent{2}, Refusal);
  CHECK_THROWS_AS(Extent{0} - Extent{kLeast}, Refusal);
  CHECK_THROWS_AS(Extent{kLeast} / Extent{-1}, Refusal);
  CHECK_THROWS_AS(product({kMost, 2}), Refusal);
  CHECK_THROWS_AS(product({0, kMost, 2}), Refusal);
  CHECK_THROWS_AS(product({-1}), Refusal);
  CHECK(product({0, kMost}) == 0);
  CHECK(product({}) == 1);
}

TEST_CASE("slices follow ONNX at and beyond the ends", "[layers][onnx]") {
  constexpr int64_t kFar = std::numeric_limits<int64_t>::max();
  const auto taken = [](int64_t extent, int64_t start, int64_t end, int64_t step) {
    const SliceRange range = slice_range(extent, start, end, step);
    std::vector<int64_t> places;
    for (int64_t i = 0; i < range.count; ++i) places.push_back(range.start + i * range.step);
    return places;
  };
  using Places = std::vector<int64_t>;
  CHECK(taken(5, 1, 4, 2) == Places{1, 3});
  CHECK(taken(5, -2, kFar, 1) == Places{3, 4});
  CHECK(taken(5, -1, -kFar - 1, -1) == Places{4, 3, 2, 1, 0});
  CHECK(taken(5, kFar, -kFar - 1, -2) == Places{4, 2, 0});
  CHECK(taken(5, 0, kFar, kFar) == Places{0});
  CHECK(taken(5, 4, -kFar - 1, -kFar - 1) == Places{4});
  CHECK(taken(5, 3, 3, 1) == Places{});
  CHECK(taken(0, 0, kFar, -1) == Places{});
  CHECK_THROWS_AS(slice_range(5, 0, 5, 0), Refusal);
}

TEST_CASE("axes are checked", "[layers][onnx]") {
  CHECK(checked_axes({-1, 0}, 3) == std::vector<int>{0, 2});
  CHECK_THROWS_AS(checked_axes({0, -3}, 3), Refusal);
  CHECK_THROWS_AS(checked_axis(3, 3), Refusal);
  CHECK_THROWS_AS(checked_axis(-4, 3), Refusal);
}

}  // namespace
}  // namespace quantrain::onnx
