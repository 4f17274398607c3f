#include "framework/io/metadata.hpp"

#include <cstdint>
#include <limits>

#include "framework/integer/integer_model.hpp"
#include "layers/layers.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/floats.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain {
namespace {

template <class Number>
void check_round_trip(Number value) {
  const std::map<std::string, std::string> metadata{{"x", metadata_text(value)}};
  CAPTURE(metadata.at("x"));
  const auto read = metadata_number<Number>(metadata, "x");
  CHECK(read == value);
  if constexpr (std::floating_point<Number>) CHECK(std::signbit(read) == std::signbit(value));
}

}  // namespace

TEST_CASE("numbers in metadata keep every bit", "[io][metadata]") {
  for (const double value : {0.0,
                             -0.0,
                             0.1,
                             1.0 / 3.0,
                             -1e300,
                             std::numeric_limits<double>::denorm_min(),
                             std::numeric_limits<double>::max()})
    check_round_trip(value);
  for (const float value : {0.1f,
                            1.0f / 3.0f,
                            16777217.0f,
                            std::numeric_limits<float>::denorm_min(),
                            std::numeric_limits<float>::max()})
    check_round_trip(value);
  check_round_trip(std::numeric_limits<int64_t>::min());
  check_round_trip(std::numeric_limits<int64_t>::max());
  check_round_trip(uint8_t{200});
  CHECK(metadata_text(0.25) == "0.25");
  CHECK(metadata_text(7) == "7");
}

TEST_CASE("names in metadata keep their commas, and old lists between commas are read",
          "[io][metadata]") {
  using Names = std::vector<std::string>;
  const auto read = [](const std::string& text) {
    return metadata_names(std::map<std::string, std::string>{{"classes", text}}, "classes");
  };
  CHECK(metadata_text(Names{"cat", "dog"}) == R"(["cat","dog"])");
  for (const Names& names : {Names{"salt, pepper", " a \"b\" ", "[", ""}, Names{"one"}, Names{}})
    CHECK(read(metadata_text(names)) == names);
  CHECK(read("cat, dog") == Names{"cat", "dog"});
  CHECK(read("[odd, [names") == Names{"[odd", "[names"});
  CHECK(read("[1, 2]") == Names{"[1", "2]"});
  CHECK(read("").empty());
  CHECK(metadata_names(std::map<std::string, std::string>{}, "classes").empty());
}

TEST_CASE("numbers in metadata that are missing or none are refused", "[io][metadata]") {
  const std::map<std::string, std::string> metadata{{"word", "many"},
                                                    {"half", "0.5"},
                                                    {"large", "300"},
                                                    {"rest", "1 "},
                                                    {"nan", "nan"},
                                                    {"none", ""}};
  QUANTRAIN_CHECK_ERROR(metadata_number(metadata, "threshold"),
                        DataError,
                        "[metadata] there is no \"threshold\"; there are: half, large, nan, none, "
                        "rest, word");
  QUANTRAIN_CHECK_ERROR(metadata_number(std::map<std::string, std::string>{}, "x"),
                        DataError,
                        "there are no metadata");
  QUANTRAIN_CHECK_ERROR(
      metadata_number(metadata, "word"), DataError, "\"word\" is \"many\", expected a number");
  QUANTRAIN_CHECK_ERROR(metadata_number<int>(metadata, "half"), DataError, "a whole number");
  QUANTRAIN_CHECK_ERROR(
      metadata_number<uint8_t>(metadata, "large"), DataError, "range of its type");
  for (const char* name : {"rest", "nan", "none"})
    CHECK_THROWS_AS(metadata_number(metadata, name), DataError);
  CHECK(metadata_number(metadata, "half") == 0.5);
  CHECK_THROWS_AS(metadata_text(std::numeric_limits<float>::infinity()), DataError);
  CHECK_THROWS_AS(metadata_text(double{test::kNan}), DataError);
}

TEST_CASE("files of states and models keep numbers in their metadata", "[io][metadata]") {
  const test::TemporaryFolder folder;
  const float threshold = 0.1f + 0.2f;
  Sequential net{Linear{2, 1}};
  save(net, folder / "state", {{"threshold", metadata_text(threshold)}});
  CHECK(metadata_number<float>(load(net, folder / "state"), "threshold") == threshold);

  quant::QConfig config = quant::QConfig::int8();
  config.input_range = {0.0f, 1.0f};
  const Tensor example = Tensor::full({1, 2}, 0.5f);
  quant::prepare_ptq(net, example, config);
  quant::calibrate(net, example);
  quant::convert(net, example).save(folder / "model", {{"threshold", metadata_text(threshold)}});
  const IntegerModel model = IntegerModel::load(folder / "model");
  CHECK(metadata_number<float>(model, "threshold") == threshold);
  QUANTRAIN_CHECK_ERROR(metadata_number(model, "limit"), DataError, "there are: threshold");
}

}  // namespace quantrain
