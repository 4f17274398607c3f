#include "framework/integer/code_ranges.hpp"
#include "framework/optim/adam.hpp"
#include "layers/layers.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/observers/calibrator.hpp"
#include "quant/prepare/qconfig.hpp"
#include "quant/prepare/scopes.hpp"
#include "quant/quantized_tensor.hpp"
#include "tests/catch.hpp"
#include "tests/compiles.hpp"

namespace quantrain::quant {
namespace {

template <class T>
constexpr bool kIsValue = !std::is_reference_v<T>;

}  // namespace

TEST_CASE("no accessor returns a reference into a temporary module", "[quant][temporaries]") {
  CHECK(kIsValue<decltype(Linear(1, 1).weight())>);
  CHECK(kIsValue<decltype(Linear(1, 1).bias())>);
  CHECK(kIsValue<decltype(Conv2d(1, 1).weight())>);
  CHECK(kIsValue<decltype(Conv2d(1, 1).bias())>);
  CHECK(kIsValue<decltype(Conv2d(1, 1).options())>);
  CHECK(kIsValue<decltype(BatchNorm2d(1).gamma())>);
  CHECK(kIsValue<decltype(BatchNorm2d(1).beta())>);
  CHECK(kIsValue<decltype(BatchNorm2d(1).running_mean())>);
  CHECK(kIsValue<decltype(BatchNorm2d(1).running_var())>);
  CHECK(kIsValue<decltype(ReLU().name())>);
  CHECK_FALSE(QUANTRAIN_COMPILES(Sequential, temporary().find("0")));
  CHECK_FALSE(QUANTRAIN_COMPILES(Sequential, temporary().named_modules()));
  CHECK_FALSE(QUANTRAIN_COMPILES(ReLU, temporary().slots()));
  CHECK(kIsValue<decltype(FakeQuantize().config())>);
  CHECK(kIsValue<decltype(std::declval<WeightQuantizer>().config())>);
  CHECK(kIsValue<decltype(std::declval<WeightQuantizer>().folding())>);
  CHECK(kIsValue<decltype(std::declval<InputQuantize>().params())>);
  CHECK(kIsValue<decltype(std::declval<InputQuantize>().features())>);
  CHECK_FALSE(QUANTRAIN_COMPILES(PreparedBatchNorm, temporary().folding()));
}

TEST_CASE("no accessor returns a reference into a temporary model, configuration or observer",
          "[quant][temporaries]") {
  CHECK(kIsValue<decltype(std::declval<IntegerModel>().program())>);
  CHECK(kIsValue<decltype(std::declval<IntegerModel>().input_shape())>);
  CHECK(kIsValue<decltype(std::declval<IntegerModel>().input_params())>);
  CHECK(kIsValue<decltype(std::declval<IntegerModel>().input_features())>);
  CHECK(kIsValue<decltype(integer::Program().value(0))>);
  CHECK(kIsValue<decltype(std::declval<integer::CodeRanges>().at(0))>);
  CHECK(kIsValue<decltype(QConfig().of("", ""))>);
  CHECK(kIsValue<decltype(std::declval<QuantizedTensor>().shape())>);
  CHECK(kIsValue<decltype(std::declval<QuantizedTensor>().params())>);
  CHECK(kIsValue<decltype(std::declval<QuantizedTensor>().codes())>);
  CHECK(kIsValue<decltype(MinMaxObserver().state())>);
  CHECK(kIsValue<decltype(MinMaxObserver().name())>);
  CHECK_FALSE(QUANTRAIN_COMPILES(Calibrator, temporary().observer("")));
  CHECK(kIsValue<decltype(std::declval<Adam>().parameters())>);
}

}  // namespace quantrain::quant
