#include "quant/observers/calibrator.hpp"

#include "framework/core/error.hpp"
#include "tests/catch.hpp"
#include "tests/quant/observers/observers.hpp"

namespace quantrain::quant {
namespace {

using quantrain::test::kU8;

Range range_of(const Calibrator& calibrator, std::string_view name, size_t channel = 0) {
  return calibrator.ranges(name, kU8, QScheme::kAffine).at(channel);
}

}  // namespace

TEST_CASE("a calibrator keeps one range for each name", "[quant][calibrator]") {
  Calibrator calibrator;
  calibrator.collect("fc", Tensor::full({4, 2}, 1.0f));
  calibrator.collect("conv1", Tensor::full({4, 2}, -255.0f));
  calibrator.collect("fc", Tensor::full({3, 2}, 255.0f));
  CHECK(calibrator.names() == std::vector<std::string>{"conv1", "fc"});
  CHECK(range_of(calibrator, "fc") == Range{1, 255});
  CHECK(range_of(calibrator, "conv1") == Range{-255, -255});
  CHECK(calibrator.samples("fc") == 7);
  CHECK(calibrator.observer("fc").count() == 2);

  const auto params = calibrator.finalize(kU8, QScheme::kAffine);
  REQUIRE(params.size() == 2);
  CHECK(params.at("fc") == QParams{{8, false, false}, -1, {1.0f}, {0}});
  CHECK(params.at("conv1") == QParams{{8, false, false}, -1, {1.0f}, {255}});

  calibrator.reset();
  CHECK(calibrator.names().empty());
  calibrator.collect("fc", Tensor::full({1}, 2.0f));
  CHECK(range_of(calibrator, "fc") == Range{2, 2});
}

TEST_CASE("a calibrator makes the observers of its spec", "[quant][calibrator]") {
  Calibrator calibrator(MovingAverageOptions{.constant = 0.5f}, 1);
  calibrator.collect("fc", Tensor::from({1, 2}, std::vector<float>{1, 2}));
  calibrator.collect("fc", Tensor::from({1, 2}, std::vector<float>{3, 6}));
  CHECK(range_of(calibrator, "fc", 0) == Range{2, 2});
  CHECK(range_of(calibrator, "fc", 1) == Range{4, 4});
}

TEST_CASE("a calibrator names the layer in its errors", "[quant][calibrator]") {
  Calibrator calibrator;
  QUANTRAIN_CHECK_ERROR(range_of(calibrator, "fc"), QuantError, "known: none");
  QUANTRAIN_CHECK_ERROR(
      calibrator.finalize({}, QScheme::kAffine), QuantError, "nothing was collected");
  calibrator.collect("fc", Tensor::full({1}, 2.0f));
  calibrator.collect("conv1", Tensor::full({1}, 2.0f));
  QUANTRAIN_CHECK_ERROR(range_of(calibrator, "fc2"), QuantError, "\"fc2\"; known: conv1, fc");
  QUANTRAIN_CHECK_ERROR(calibrator.samples("fc2"), QuantError, "fc2");
  QUANTRAIN_CHECK_ERROR(calibrator.collect("fc2", Tensor::empty({0})), DataError, "[fc2]");
  Calibrator by_channel(MinMaxOptions{}, 1);
  QUANTRAIN_CHECK_ERROR(
      by_channel.collect("fc", Tensor::empty({2, 0})), DataError, "empty batch [2, 0]");
  QUANTRAIN_CHECK_ERROR(
      by_channel.collect("fc", Tensor::zeros({2})), ShapeError, "no axis 1 in [2]");
  CHECK(by_channel.names().empty());
  by_channel.collect("fc", Tensor::zeros({2, 3}));
  QUANTRAIN_CHECK_ERROR(by_channel.collect("fc", Tensor::zeros({2, 4})),
                        ShapeError,
                        "4 channels along axis 1, expected 3");
  QUANTRAIN_CHECK_ERROR(calibrator.observer("fc2"), QuantError, "fc2");
  QUANTRAIN_CHECK_ERROR(
      calibrator.finalize({0, false, false}, QScheme::kAffine), QuantError, "1 to 16");
  QUANTRAIN_CHECK_ERROR(Calibrator(MeanStdOptions{.k = 0.0f}), QuantError, "k must be positive");
}

}  // namespace quantrain::quant
