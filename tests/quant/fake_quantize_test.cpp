#include "quant/prepare/fake_quantize.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "layers/dry_run.hpp"
#include "layers/state.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/quant/four_bits.hpp"
#include "tests/tensors.hpp"

namespace quantrain::quant {
namespace {

using quantrain::test::make_leaf;
using quantrain::test::values;

}  // namespace

TEST_CASE("NaN and infinity are errors, also with frozen ranges", "[quant][fake_quantize]") {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    const Tensor x = Tensor::from({3}, std::vector<float>{1.0f, bad, 2.0f});
    QUANTRAIN_CHECK_ERROR(fake_quantize(x, kFourBits), DataError, "NaN or an infinity");
    QUANTRAIN_CHECK_ERROR(
        fake_quantize(x, {{.bits = 16}, -1, {1.0f}, {0}}), DataError, "element 1");
    FakeQuantize frozen(kFourBits);
    QUANTRAIN_CHECK_ERROR(frozen(x), DataError, "NaN or an infinity");
    FakeQuantize observing;
    QUANTRAIN_CHECK_ERROR(observing(x), DataError, "");
    CHECK_FALSE(observing.is_initialized());
  }
}

TEST_CASE("a FakeQuantize follows its input in training mode only, until it is frozen",
          "[quant][fake_quantize]") {
  FakeQuantize q(FakeQuantizeConfig::q8());
  CHECK(q.phase() == Phase::kTraining);
  CHECK_FALSE(q.is_initialized());
  QUANTRAIN_CHECK_ERROR(q.params(), QuantError, "was not calibrated");
  const auto scale_after = [&](float highest) {
    q(Tensor::from({2}, std::vector<float>{0.0f, highest}));
    return quantrain::test::Approx(q.params().scale[0]);
  };
  q.eval();
  QUANTRAIN_CHECK_ERROR(scale_after(2.55f), QuantError, "was not calibrated");
  CHECK_FALSE(q.is_initialized());
  q.train();
  CHECK(scale_after(2.55f) == 0.01f);
  CHECK(scale_after(5.1f) == 0.02f);
  q.eval();
  CHECK(scale_after(51.0f) == 0.02f);
  q.train();
  q.set_phase(Phase::kFrozen);
  CHECK(scale_after(51.0f) == 0.02f);
  q.set_phase(Phase::kTraining);
  CHECK(scale_after(51.0f) == 0.2f);
  QUANTRAIN_CHECK_ERROR(q.calibrate(Tensor::zeros({0})), DataError, "empty");
}

TEST_CASE("a FakeQuantize refuses a wrong number of channels, and stays as it was",
          "[quant][fake_quantize]") {
  FakeQuantizeConfig config = FakeQuantizeConfig::int8();
  config.axis = 0;
  config.channels = 2;
  config.estimator = GENERATE(Estimator::kClamped, Estimator::kLearned);
  FakeQuantize q(config);
  for (const Shape& shape : {Shape{200, 3}, Shape{1, 3}, Shape{}}) {
    QUANTRAIN_CHECK_ERROR(
        q(Tensor::full(shape, 1.0f)), ShapeError, "expected 2 channels along axis 0");
    CHECK_FALSE(q.is_initialized());
    const DryRun dry_run;
    QUANTRAIN_CHECK_ERROR(
        q(Tensor::full(shape, 1.0f)), ShapeError, "expected 2 channels along axis 0");
  }
  q(Tensor::full({2, 3}, 1.0f));
  CHECK(q.params().scale.size() == 2);
}

TEST_CASE("a learned scale trains on a scalar, too", "[quant][fake_quantize]") {
  Tensor x = make_leaf({}, {0.3f});
  Tensor scale = make_leaf({1}, {0.5f});
  fake_quantize_learned(x, scale, {{.bits = 4, .is_signed = true}, -1, {0.5f}, {0}}).backward();
  // round(0.6) - 0.6, times 1 / sqrt(7)
  CHECK(values(scale.grad())[0] == quantrain::test::Approx(0.4 / std::sqrt(7.0)).epsilon(1e-5));
}

TEST_CASE("parameters given from outside are validated", "[quant][fake_quantize]") {
  FakeQuantize q(FakeQuantizeConfig::q4());
  q.update_params(kFourBits);
  CHECK(q.params() == kFourBits);
  CHECK(q.is_given());
  CHECK(q.levels() == 16);
  CHECK(q.quant_range() == std::pair<int32_t, int32_t>{0, 15});
  CHECK(q.float_range() == Range{-1.5f, 6.0f});
  QUANTRAIN_CHECK_ERROR(
      q.update_params({{.bits = 4}, -1, {0.0f}, {0}}), QuantError, "not positive");
  QUANTRAIN_CHECK_ERROR(q.update_params({{.bits = 4}, -1, {1.0f}, {16}}), QuantError, "not a code");
  QUANTRAIN_CHECK_ERROR(
      q.update_params({{.bits = 8}, -1, {1.0f}, {0}}), QuantError, "do not fit: expected type");
  CHECK(q.params() == kFourBits);
}

TEST_CASE("parameters given to the constructor stay", "[quant][fake_quantize]") {
  FakeQuantize q(kFourBits);
  CHECK(q.is_given());
  q(Tensor::from({2}, std::vector<float>{0.0f, 1.0f}));
  CHECK(q.params() == kFourBits);
  QUANTRAIN_CHECK_ERROR(
      q.calibrate(Tensor::zeros({1})),
      QuantError,
      "the parameters of this FakeQuantize were given, so it cannot be calibrated");
}

TEST_CASE("presets have the codes that their names say", "[quant][fake_quantize]") {
  CHECK(FakeQuantize(FakeQuantizeConfig::q8()).levels() == 256);
  CHECK(FakeQuantize(FakeQuantizeConfig::q4()).levels() == 16);
  CHECK(FakeQuantize(FakeQuantizeConfig::int8()).quant_range() ==
        std::pair<int32_t, int32_t>{-127, 127});
  CHECK(FakeQuantize(FakeQuantizeConfig::int4()).quant_range() ==
        std::pair<int32_t, int32_t>{-7, 7});
  CHECK(FakeQuantize(FakeQuantizeConfig::int2()).quant_range() ==
        std::pair<int32_t, int32_t>{-1, 1});
  FakeQuantizeConfig bad;
  bad.type.bits = 17;
  QUANTRAIN_CHECK_ERROR(FakeQuantize(bad), QuantError, "1 to 16");
  bad.type = {.bits = 8, .is_signed = false, .narrow = true};
  QUANTRAIN_CHECK_ERROR(FakeQuantize(bad), QuantError, "narrow");
}

TEST_CASE("quantization noise is the mean squared error", "[quant][fake_quantize]") {
  const FakeQuantize q(kFourBits);
  // Errors: 0.1, 0.2, 1 (7 is clamped to 6).
  const Tensor x = Tensor::from({3}, std::vector<float>{0.1f, 0.7f, 7.0f});
  CHECK(q.quantization_noise(x) ==
        quantrain::test::Approx((0.01 + 0.04 + 1.0) / 3.0).epsilon(1e-5));
}

TEST_CASE("a learned scale starts at 2 mean|x| / sqrt(qmax) and is a parameter",
          "[quant][fake_quantize]") {
  FakeQuantizeConfig config = FakeQuantizeConfig::int4();
  config.estimator = Estimator::kLearned;
  FakeQuantize q(config);
  REQUIRE(q.parameters().size() == 1);
  q(Tensor::from({1, 4}, std::vector<float>{1.0f, -1.0f, 2.0f, -2.0f}));
  CHECK(q.params().scale[0] == quantrain::test::Approx(3.0 / std::sqrt(7.0)));
  FakeQuantizeConfig plain = FakeQuantizeConfig::int4();
  CHECK(FakeQuantize(plain).parameters().empty());
}

TEST_CASE("a checkpoint's buffers resume a FakeQuantize where it was", "[quant][fake_quantize]") {
  FakeQuantizeConfig config = FakeQuantizeConfig::q8();
  config.observer = MovingAverageOptions{.constant = 0.5f};
  FakeQuantize first(config);
  first(Tensor::from({2}, std::vector<float>{0.0f, 1.0f}));
  first(Tensor::from({2}, std::vector<float>{0.0f, 3.0f}));
  FakeQuantize second(config);
  copy_state(first, second);
  const Tensor next = Tensor::from({2}, std::vector<float>{0.0f, 6.0f});
  first(next);
  second(next);
  CHECK(first.params() == second.params());
  CHECK(second.float_range().max == quantrain::test::Approx(4.0f));  // ((1 + 3) / 2 + 6) / 2

  // `second` is reset by loading the state of a FakeQuantize that has seen no data.
  copy_state(FakeQuantize(config), second);
  second(Tensor::from({2}, std::vector<float>{0.0f, 1.0f}));
  CHECK(second.float_range().max == quantrain::test::Approx(1.0f));
}

namespace {

/// The range from 0 to twice the largest value.
class DoubleObserver : public RangeObserver {
 public:
  explicit DoubleObserver(ObserverShape shape = {}) : RangeObserver(std::move(shape)) {}
  std::string_view kind() const override { return "double"; }

 protected:
  void batch_ranges(const Batch& /*batch*/, std::span<Range> ranges) const override {
    for (Range& range : ranges) range = {0.0f, 2.0f * range.max};
  }
};

}  // namespace

TEST_CASE("a FakeQuantize takes a user-defined observer", "[quant][fake_quantize]") {
  FakeQuantize q(FakeQuantizeConfig::q8(), std::make_unique<DoubleObserver>());
  const Tensor x = Tensor::from({2}, std::vector<float>{0.0f, 1.0f});
  {
    const DryRun dry_run;
    q(x);
  }
  CHECK_FALSE(q.is_initialized());
  q(x);
  CHECK(q.float_range().max == quantrain::test::Approx(2.0f));
  q(Tensor::from({2}, std::vector<float>{0.0f, 3.0f}));
  CHECK(q.float_range().max == quantrain::test::Approx(6.0f));

  // A checkpoint stores the observer's state.
  FakeQuantize other(FakeQuantizeConfig::q8(), std::make_unique<DoubleObserver>());
  std::vector<std::string> names;
  for (const NamedState& buffer : q.named_buffers()) names.push_back(buffer.name);
  CHECK(names == std::vector<std::string>{"bits",
                                          "signed",
                                          "narrow",
                                          "learned",
                                          "scale",
                                          "zero_point",
                                          "initialized",
                                          "phase",
                                          "observer.counts",
                                          "observer.range"});
  copy_state(q, other);
  other(x);
  CHECK(other.float_range().max == quantrain::test::Approx(6.0f));

  QUANTRAIN_CHECK_ERROR(FakeQuantize(FakeQuantizeConfig::q8(), nullptr), QuantError, "null");
  QUANTRAIN_CHECK_ERROR(
      FakeQuantize(FakeQuantizeConfig::q8(), std::make_unique<DoubleObserver>(ObserverShape{1, 2})),
      QuantError,
      "1 channels along axis -1, but its observer has 2 along axis 1");
}

TEST_CASE("an invalid observer state from a checkpoint is refused, with the layer's name",
          "[quant][fake_quantize]") {
  FakeQuantize q(FakeQuantizeConfig::q8());
  const Tensor x = Tensor::from({2}, std::vector<float>{0.0f, 1.0f});
  q(x);
  const QParams before = q.params();
  quantrain::test::writable(
      quantrain::test::entry_of(q.named_buffers(), "observer.range").tensor)[0] = 9.0f;
  QUANTRAIN_CHECK_ERROR(q(x), DataError, "[FakeQuantize] min_max observer");
  CHECK(q.params() == before);
}

TEST_CASE("a frozen FakeQuantize refuses to be calibrated, except within a Calibration",
          "[quant][fake_quantize]") {
  FakeQuantize q;
  q.calibrate(Tensor::full({2}, 1.0f));
  const QParams before = q.params();
  q.set_phase(Phase::kFrozen);
  QUANTRAIN_CHECK_ERROR(q.calibrate(Tensor::full({2}, 9.0f)),
                        QuantError,
                        "[FakeQuantize] FakeQuantize is frozen, and its range stays");
  CHECK(q.params() == before);
  calibrate(q, Tensor::full({2}, 9.0f));
  CHECK(q.float_range().max == quantrain::test::Approx(9.0));
}

}  // namespace quantrain::quant
