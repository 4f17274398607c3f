#include "quant/prepare/qconfig.hpp"

#include <functional>

#include "framework/core/error.hpp"
#include "tests/catch.hpp"
#include "tests/child.hpp"

namespace quantrain::quant {

TEST_CASE("a configuration survives a round trip through JSON, and invalid ones are refused",
          "[quant][qconfig]") {
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
  QUANTRAIN_CHECK_ERROR(QConfig::bits(9, 8), QuantError, "weights have 1 to 8 bits, got 9");
  QUANTRAIN_CHECK_ERROR(QConfig::bits(8, 0), QuantError, "activations have 1 to 16 bits, got 0");
  QUANTRAIN_CHECK_ERROR(QConfig::from_json("{"), QuantError, "not JSON");
  QUANTRAIN_CHECK_ERROR(QConfig::from_json("{}"), QuantError, "[QConfig] config: lacks \"model\"");
  std::string text = config.to_json();
  text.insert(1, "\"extra\": 1,");
  QUANTRAIN_CHECK_ERROR(
      QConfig::from_json(text), QuantError, "[QConfig] config: has an unknown member \"extra\"");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = config.to_json();
    changed.replace(changed.find(from), from.size(), to);
    return QConfig::from_json(changed);
  };
  for (const char* bits : {"4.5", "true", "4294967300", "\"4\""}) {
    QUANTRAIN_CHECK_ERROR(
        with("\"bits\": 4", std::string("\"bits\": ") + bits),
        QuantError,
        "config.model.weight: \"bits\" is " + std::string(bits) + ", expected a whole number");
  }
  QUANTRAIN_CHECK_ERROR(with("\"k\": 3.0", "\"k\": true"),
                        QuantError,
                        "config.model.activation.observer: \"k\" is true, expected a number");
  CHECK(with("\"k\": 3.0", "\"k\": 3") == config);
  QUANTRAIN_CHECK_ERROR(with("\"k\": 3.0", "\"k\": 0"), QuantError, "k must be positive");
  QUANTRAIN_CHECK_ERROR(with("\"k\": 3.0", "\"k\": 3, \"low\": 1"),
                        QuantError,
                        "config.model.activation.observer: has an unknown member \"low\"");
  QUANTRAIN_CHECK_ERROR(with("\"mean_std\"", "\"percentile\""),
                        QuantError,
                        "config.model.activation.observer: lacks \"low\"");
  QUANTRAIN_CHECK_ERROR(with("\"mean_std\"", "\"median\""), QuantError, "no kind \"median\"");
  const LayerConfig model = config.model;
  const auto refused = [&](const char* message, const std::function<void(QConfig&)>& change) {
    QConfig changed = config;
    change(changed);
    QUANTRAIN_CHECK_ERROR(validate(changed), QuantError, message);
    QUANTRAIN_CHECK_ERROR(QConfig::from_json(changed.to_json()), QuantError, message);
  };
  refused("[QConfig] model: weights have 1 to 8 bits, got 0",
          [](QConfig& c) { c.model.weight.bits = 0; });
  refused("[QConfig] block.conv: activations have 1 to 16 bits, got 17",
          [](QConfig& c) { c.layers["block.conv"].activation.bits = 17; });
  refused("[QConfig] Linear: a learned scale needs symmetric weights", [](QConfig& c) {
    c.types["Linear"].weight.scheme = QScheme::kAffine;
    c.types["Linear"].weight.estimator = Estimator::kLearned;
  });
  refused("[QConfig] output_bits is 8 or 32, got 16", [](QConfig& c) { c.output_bits = 16; });
  QUANTRAIN_CHECK_ERROR(with("\"learned\"", "\"guessed\""),
                        QuantError,
                        "config.model.weight.estimator has an unknown value: \"guessed\"");
  CHECK(config.of("Linear", "fc") == config.types["Linear"]);
  CHECK(config.of("Conv2d", "block.conv") == config.layers["block.conv"]);
  CHECK(config.of("Conv2d", "conv") == model);
  config.input_range = {3.0f, 3.0f};
  QUANTRAIN_CHECK_ERROR(validate(config), QuantError, "[QConfig.input_range] the range [3, 3]");
  config.input_range = {1000.0f, 1001.0f};
  QUANTRAIN_CHECK_ERROR(validate(config),
                        QuantError,
                        "[QConfig.input_range] the range [1000, 1001] is too far from 0");
  config.input_range.reset();
  config.layers["caf\xe9"] = config.model;
  QUANTRAIN_CHECK_ERROR(config.to_json(), QuantError, "a name cannot be written as JSON");
}

TEST_CASE("a configuration in JSON refuses repeated keys, wrong types and invalid numbers",
          "[quant][qconfig]") {
  QConfig config;
  config.input_range = {-1.0f, 0.25f};
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = config.to_json();
    std::erase_if(changed, [](char c) { return c == ' ' || c == '\n'; });
    REQUIRE(changed.find(from) != std::string::npos);
    changed.replace(changed.find(from), from.size(), to);
    return QConfig::from_json(changed);
  };
  CHECK(with("[-1.0,0.25]", "[-1,0.25]") == config);
  for (const char* range : {"[5,-5]", "[1,1]"})
    QUANTRAIN_CHECK_ERROR(with("[-1.0,0.25]", range), QuantError, "is empty or not finite");
  for (const char* range : {"[false,true]", "[true,false]"})
    QUANTRAIN_CHECK_ERROR(with("[-1.0,0.25]", range), QuantError, "e, expected a number");
  QUANTRAIN_CHECK_ERROR(
      with("[-1.0,0.25]", "[0,1e300]"), QuantError, "which is beyond the range of float32");
  QUANTRAIN_CHECK_ERROR(
      with("[-1.0,0.25]", "[1]"), QuantError, "config.input_range has 1 entries, expected 2");
  QUANTRAIN_CHECK_ERROR(
      with("[-1.0,0.25]", "[0,1,2]"), QuantError, "has 3 entries, expected at most 2");
  QUANTRAIN_CHECK_ERROR(with("\"output_bits\":32", "\"output_bits\":18446744073709551615"),
                        QuantError,
                        "config: \"output_bits\" is 18446744073709551615, expected a whole number");
  QUANTRAIN_CHECK_ERROR(with("\"output_bits\":32", "\"output_bits\":8,\"output_bits\":32"),
                        QuantError,
                        "[QConfig] the text has the key \"output_bits\" twice");
  QUANTRAIN_CHECK_ERROR(
      with("\"types\":{}", "\"types\":[]"), QuantError, "config.types is a list of 0, expected an");
}

TEST_CASE("a configuration that nests too deep is refused", "[quant][qconfig]") {
  const std::string deep(1000000, '[');
  const std::string text = "{\"model\":" + deep + std::string(1000000, ']') + "}";
  const quantrain::test::Child child = quantrain::test::in_child([&]() -> std::string {
    QConfig::from_json(text);
    return "read";
  });
  CHECK(child.signal == 0);
  CHECK(child.text == "[QConfig] the text nests deeper than 16 levels");
  CHECK(child.kilobytes < 20000);
  const std::string flat = "{\"model\":[" + std::string(1 << 20, ' ') + "1]}";
  QUANTRAIN_CHECK_ERROR(
      QConfig::from_json(flat), QuantError, "[QConfig] config.model: is a list of 1, expected");
}

TEST_CASE("every kind of observer survives a round trip through JSON", "[quant][qconfig]") {
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
