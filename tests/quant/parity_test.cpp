#include "quant/analysis/parity.hpp"

#include <algorithm>
#include <cstring>
#include <sstream>

#include "framework/core/error.hpp"
#include "framework/data/loader.hpp"
#include "framework/integer/dead_channels.hpp"
#include "quant/lowering/convert.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"
#include "tests/quant/parity_checks.hpp"

namespace quantrain::quant {
namespace {

using test::conv_net;
using test::mlp;
using test::random_images;
using test::train_a_little;

/// The integers that each step of a model gives, by the step's position.
std::vector<std::vector<int32_t>> integers_of(const IntegerModel& model, const Tensor& images) {
  const int64_t n = images.dim(0);
  std::vector<uint8_t> bytes(static_cast<size_t>(images.elements()));
  model.quantize_input(test::span_of(images), bytes);
  const uint8_t* const inputs[] = {bytes.data()};
  std::vector<std::vector<int32_t>> all;
  model.trace(n, inputs, [&](size_t position, const void* output) {
    const integer::Value& value = test::step_output(model, position);
    const auto count = static_cast<size_t>(n * value.shape.elements());
    std::vector<int32_t>& values = all.emplace_back(count);
    if (!value.is_codes()) {
      std::memcpy(values.data(), output, count * sizeof(int32_t));
    } else {
      std::copy_n(static_cast<const uint8_t*>(output), count, values.begin());
    }
  });
  return all;
}

/// How many elements of two lists differ, and the largest difference.
LayerParity differences(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
  LayerParity result{.name = "", .codes = static_cast<int64_t>(a.size())};
  for (size_t i = 0; i < a.size(); ++i) {
    result.different += a[i] != b[i] ? 1 : 0;
    result.max_difference =
        std::max(result.max_difference, std::abs(int64_t{a[i]} - int64_t{b[i]}));
  }
  return result;
}

std::string printed(const Parity& parity) {
  std::ostringstream text;
  text << parity;
  return text.str();
}

}  // namespace

TEST_CASE("parity counts integers that differ, and names the first layer that has any",
          "[quant][parity]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  QConfig config = QConfig::int8();
  config.output_bits = GENERATE(32, 8);
  Sequential net = conv_net();
  prepare_qat(net, example, config);
  train_a_little(net, {6, 8, 8, 1}, 3);
  const IntegerModel model = convert(net, example);
  const Tensor images = random_images({90, 8, 8, 1}, 9);
  const Parity equal = verify_parity(net, model, images);
  CHECK(equal.first_difference().empty());
  CHECK(equal.codes() == 90 * (64 + 6 * 64 + 6 * 16 + 5 * 16 + 5 * 4 + 5 * 4));
  CHECK(equal.codes_different() == 0);
  CHECK(equal.logits == 90 * 4);
  CHECK(printed(equal).find("first difference") == std::string::npos);

  net.find("4").named_parameters()[0].tensor.mutable_data()[7] += 3.0f;
  const IntegerModel changed = convert(net, example);  // agrees with the changed simulation
  const auto simulated = integers_of(changed, images);
  const auto deployed = integers_of(model, images);
  const Parity parity = verify_parity(net, model, images);
  REQUIRE(parity.layers.size() == deployed.size() + 1);
  CHECK(parity.layers[0].different == 0);
  int64_t codes_different = 0;
  for (size_t i = 0; i < deployed.size(); ++i) {
    const LayerParity& layer = parity.layers[i + 1];
    INFO(layer.name);
    const LayerParity expected = differences(simulated[i], deployed[i]);
    CHECK(layer.codes == expected.codes);
    CHECK(layer.different == expected.different);
    CHECK(layer.max_difference == expected.max_difference);
    CHECK((layer.different > 0) == (i >= 2));
    if (i + 1 < deployed.size()) codes_different += expected.different;
  }
  CHECK(parity.layers[3].name == "4");
  CHECK(parity.first_difference() == "4");
  CHECK(parity.codes() == equal.codes());
  CHECK(parity.codes_different() == codes_different);
  CHECK(parity.codes_equal() < 1.0);
  CHECK(parity.max_code_difference() > 0);

  const LayerParity logits = differences(simulated.back(), deployed.back());
  CHECK(parity.logits_different == logits.different);
  CHECK(parity.max_logit_difference == logits.max_difference);
  CHECK(parity.logits_equal() < 1.0);
  int64_t changes = 0;
  for (size_t row = 0; row < simulated.back().size(); row += 4) {
    std::vector<double> scale = test::last_output(model).scale;
    if (scale.empty()) scale = {1.0};  // codes
    const auto best = [&](const std::vector<int32_t>& all) {
      std::vector<double> real;
      for (size_t c = 0; c < 4; ++c) real.push_back(scale[c % scale.size()] * all[row + c]);
      return std::max_element(real.begin(), real.end()) - real.begin();
    };
    changes += best(simulated.back()) != best(deployed.back()) ? 1 : 0;
  }
  CHECK(changes > 0);
  CHECK(parity.top1_disagreements == changes);
  CHECK_THAT(printed(parity), quantrain::test::ContainsSubstring("\n  first difference: \"4\"\n"));

  // Over several batches, counts add up and the largest difference is kept.
  Parity twice = equal;
  twice.add(parity);
  CHECK(twice.first_difference() == "4");
  CHECK(twice.images == 180);
  CHECK(twice.codes() == 2 * equal.codes());
  CHECK(twice.codes_different() == codes_different);
  CHECK(twice.max_code_difference() == parity.max_code_difference());
  Parity shorter = parity;
  shorter.layers.pop_back();
  QUANTRAIN_CHECK_ERROR(shorter.add(parity),
                        GraphError,
                        "the results of " + std::to_string(parity.layers.size()) +
                            " layers cannot be added to those of " +
                            std::to_string(shorter.layers.size()));
  CHECK(twice.logits_different == logits.different);
  CHECK(twice.max_logit_difference == logits.max_difference);
  CHECK(twice.top1_disagreements == changes);
}

TEST_CASE("parity refuses a model of another network, and an empty comparison", "[quant][parity]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential convolutions = conv_net();
  prepare_qat(convolutions, example, QConfig::int8());
  convolutions(example);
  const IntegerModel model = convert(convolutions, example);
  Sequential linear = mlp();
  prepare_qat(linear, random_images({2, 12}, 1), QConfig::int8());
  linear(random_images({2, 12}, 1));
  QUANTRAIN_CHECK_ERROR(verify_parity(linear, model, random_images({3, 12}, 1)),
                        ShapeError,
                        "the model takes samples [8, 8, 1], got a batch [3, 12]");
  QUANTRAIN_CHECK_ERROR(verify_parity(convolutions, model, Tensor::zeros({0, 8, 8, 1})),
                        DataError,
                        "nothing to compare: the batch is empty");
  QUANTRAIN_CHECK_ERROR(verify_parity(convolutions, model, std::vector<Batch>()),
                        DataError,
                        "nothing to compare: there is no batch");
  Sequential other{Flatten{}, Linear{64, 4}};
  prepare_qat(other, example, QConfig::int8());
  other(example);
  QUANTRAIN_CHECK_ERROR(
      verify_parity(other, model, example), GraphError, ": convert the network again");
  CHECK(other.training());
}

TEST_CASE("parity refuses a model of a wider or narrower network", "[quant][parity]") {
  const Tensor example = random_images({4, 12}, 1);
  const auto prepared = [&](int64_t width) {
    Sequential net{Linear{12, width}, ReLU{}, Linear{width, 3}};
    prepare_qat(net, example, QConfig::int8());
    net(example);
    return net;
  };
  Sequential wide = prepared(6);
  Sequential narrow = prepared(5);
  const std::string text = "the model was not converted from this network: convert";
  QUANTRAIN_CHECK_ERROR(verify_parity(wide, convert(narrow, example), example), GraphError, text);
  QUANTRAIN_CHECK_ERROR(verify_parity(narrow, convert(wide, example), example), GraphError, text);
}

TEST_CASE("parity skips the steps of a model that lost dead channels, and compares the others",
          "[quant][parity]") {
  const Tensor example = random_images({4, 12}, 1);
  Sequential net{Linear{12, 6}, ReLU{}, Linear{6, 3}};
  prepare_qat(net, example, QConfig::int8());
  net(example);
  // Without weights, a channel is constant.
  float* const weight = net.find("0").named_parameters()[0].tensor.mutable_data();
  std::fill_n(weight, 12, 0.0f);
  const IntegerModel model = convert(net, example);
  const IntegerModel smaller(integer::remove_dead_channels(model.program()));
  REQUIRE_FALSE(smaller.program() == model.program());
  const Parity all = verify_parity(net, model, example);
  const Parity rest = verify_parity(net, smaller, example);
  CHECK(all.layers.size() == 3);
  REQUIRE(rest.layers.size() == 2);
  CHECK(rest.layers[0].name == "input");
  CHECK(rest.layers[1].is_output);
  CHECK(all.first_difference().empty());
  CHECK(rest.first_difference().empty());
}

}  // namespace quantrain::quant
