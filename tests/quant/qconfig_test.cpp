#include "quant/training/qconfig.hpp"

#include "framework/core/error.hpp"
#include "tests/catch.hpp"

namespace quantrain::quant {

TEST_CASE("a configuration survives its JSON, and bad ones are refused", "[quant][qconfig]") {
  QConfig config = QConfig::bits(4, 6);
  config.types["Linear"] = QConfig::bits(3, 5).model;
  config.layers["block.conv"] = QConfig::int8().model;
  config.model.weight.estimator = Estimator::kLearned;
  config.model.activation.observer = MeanStdOptions{};
  config.simulation = Simulation::kFloat;
  config.input_range = {-1.0f, 0.3f};
  CHECK(QConfig::from_json(config.to_json()) == config);
  CHECK_FALSE(QConfig::from_json(QConfig::int8().to_json()).input_range.has_value());
  for (const std::string& name : QConfig::names()) CHECK_NOTHROW(QConfig::named(name));
  QUANTRAIN_CHECK_ERROR(QConfig::named("int9"), QuantError, "known: int8");
  QUANTRAIN_CHECK_ERROR(QConfig::bits(9, 8), QuantError, "weights have 2 to 8 bits, got 9");
  QUANTRAIN_CHECK_ERROR(QConfig::bits(8, 1), QuantError, "activations have 2 to 16 bits, got 1");
  QUANTRAIN_CHECK_ERROR(QConfig::from_json("{"), QuantError, "not JSON");
  QUANTRAIN_CHECK_ERROR(QConfig::from_json("{}"), QuantError, "config.model is missing");
  std::string text = config.to_json();
  text.insert(1, "\"extra\": 1,");
  QUANTRAIN_CHECK_ERROR(QConfig::from_json(text), QuantError, "config.extra is unknown");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = config.to_json();
    changed.replace(changed.find(from), from.size(), to);
    return QConfig::from_json(changed);
  };
  for (const char* bits : {"4.5", "true", "4294967300", "\"4\""}) {
    QUANTRAIN_CHECK_ERROR(with("\"bits\": 4", std::string("\"bits\": ") + bits),
                          QuantError,
                          "config.model.weight.bits has the wrong type");
  }
  QUANTRAIN_CHECK_ERROR(
      with("\"k\": 3.0", "\"k\": true"), QuantError, "config.model.activation.observer.k has");
  CHECK(with("\"k\": 3.0", "\"k\": 3") == config);
  QUANTRAIN_CHECK_ERROR(with("\"k\": 3.0", "\"k\": 0"), QuantError, "k must be positive");
  QUANTRAIN_CHECK_ERROR(with("\"k\": 3.0", "\"k\": 3, \"low\": 1"),
                        QuantError,
                        "config.model.activation.observer.low is unknown");
  QUANTRAIN_CHECK_ERROR(with("\"mean_std\"", "\"percentile\""),
                        QuantError,
                        "config.model.activation.observer.low is missing");
  QUANTRAIN_CHECK_ERROR(with("\"mean_std\"", "\"median\""), QuantError, "no kind \"median\"");
  QUANTRAIN_CHECK_ERROR(with("\"output_bits\": 32", "\"output_bits\": 8, \"input_range\": [1]"),
                        QuantError,
                        "config.input_range has 1 entries");
  config.input_range = {3.0f, 3.0f};
  QUANTRAIN_CHECK_ERROR(validate(config), QuantError, "[QConfig.input_range] the range [3, 3]");
  config.input_range.reset();
  config.layers["caf\xe9"] = config.model;
  QUANTRAIN_CHECK_ERROR(config.to_json(), QuantError, "a name cannot be written as JSON");
}

TEST_CASE("every kind of observer survives its JSON", "[quant][qconfig]") {
  QConfig config;
  const auto check = [&](const ObserverSpec& spec, const char* text) {
    config.model.activation.observer = spec;
    CHECK(QConfig::from_json(config.to_json()) == config);
    std::string compact = config.to_json();
    std::erase_if(compact, [](char c) { return c == ' ' || c == '\n'; });
    CAPTURE(compact);
    CHECK(compact.find(text) != std::string::npos);
  };
  for (const ObserverSpec& spec : observer_specs()) check(spec, kind(spec).data());
  check(PercentileOptions{.low = 0.5, .high = 99.5},
        R"("observer":{"kind":"percentile","low":0.5,"high":99.5})");
  check(MovingAverageOptions{.constant = 0.25f},
        R"("observer":{"kind":"moving_average","constant":0.25})");
  check(MinMaxOptions{}, R"("observer":{"kind":"min_max"})");
}

}  // namespace quantrain::quant
