#include "quant/analysis/ranges.hpp"

#include <algorithm>
#include <sstream>

#include "framework/core/error.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"

namespace quantrain::quant {
namespace {

using test::conv_net;
using test::random_images;
using test::train_a_little;

const SlotRange& slot_of(const Ranges& all, const std::string& name) {
  for (const SlotRange& slot : all.slots) {
    if (slot.name == name) return slot;
  }
  FAIL("no slot " << name);
  return all.slots.front();
}

}  // namespace

TEST_CASE("ranges list the input, the weights and the outputs of a prepared network",
          "[quant][ranges]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential net = conv_net();
  QUANTRAIN_CHECK_ERROR(ranges(net), GraphError, "[Sequential] the network is not prepared");
  QConfig config = QConfig::bits(4, 6);
  config.layers["4"] = config.model;
  config.layers["4"].activation.estimator = Estimator::kLearned;
  prepare_qat(net, example, config);
  const Ranges early = ranges(net);
  std::vector<std::string> names;
  for (const SlotRange& slot : early.slots) names.push_back(slot.name);
  CHECK(names == std::vector<std::string>{"input_slot",
                                          "0.weight_slot",
                                          "2.output_slot",
                                          "4.weight_slot",
                                          "6.output_slot",
                                          "9.weight_slot"});
  CHECK_FALSE(slot_of(early, "2.output_slot").params);
  QUANTRAIN_CHECK_ERROR(slot_of(early, "2.output_slot").range(), QuantError, "not calibrated");

  train_a_little(net, {6, 8, 8, 1}, 3);
  freeze(net);
  const Ranges trained = ranges(net);
  CHECK(slot_of(trained, "input_slot").range() == Range{0.0f, 1.0f});
  CHECK(slot_of(trained, "input_slot").source == "data");
  const SlotRange& output = slot_of(trained, "2.output_slot");
  CHECK(output.params == output_quantizer(net, "2").params());
  CHECK(output.source == "recent_min_max");
  CHECK(output.phase == Phase::kFrozen);
  CHECK(output.type.bits == 6);
  CHECK(slot_of(trained, "6.output_slot").source == "learned");
  CHECK(slot_of(trained, "0.weight_slot").params->scale.size() == 6);
  CHECK(slot_of(trained, "0.weight_slot").source == "weights");

  std::ostringstream stream;
  stream << trained;
  const std::string text = stream.str();
  CHECK(text.starts_with("slot "));
  CHECK(std::count(text.begin(), text.end(), '\n') == 7);
  CHECK(text.find("0.weight_slot  s4 narrow  ") != std::string::npos);
}

TEST_CASE("the scales of weights are those that the deployed network has", "[quant][ranges]") {
  const Tensor example = random_images({2, 12}, 1);
  Sequential net{Linear{12, 9, {.bias = false}}, ReLU{}, Linear{9, 4}};
  prepare_ptq(net, example, QConfig::int8());
  calibrate(net, example);
  const IntegerModel model = convert(net, example);
  const QParams weights = weight_quantizer(net, "0").params();
  const QParams again = slot_of(ranges(net), "0.weight_slot").params.value();
  CHECK(again == weights);
  const auto* product = integer::product(model.program().steps[0].operation);
  const float scale_y = output_quantizer(net, "1").params().scale[0];
  for (size_t c = 0; c < 9; ++c) {
    const Multiplier m = sum_multiplier(sum_scale(1.0f / 255.0f, weights.scale[c]), scale_y);
    CHECK(product->output->m0.data()[c] == m.m0);
    CHECK(product->output->shift.data()[c] == m.shift);
  }
  QParams given = weights;
  for (float& scale : given.scale) scale *= 2.0f;
  weight_quantizer(net, "0").set_params(given);
  CHECK(slot_of(ranges(net), "0.weight_slot").source == "given");
  CHECK(slot_of(ranges(net), "0.weight_slot").params == given);
}

TEST_CASE("listing ranges leaves folded batch norms as they are", "[quant][ranges]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential net = conv_net();
  Sequential other = conv_net();
  copy_state(net, other);
  for (Sequential* each : {&net, &other}) {
    prepare_qat(*each, example, QConfig::int8());
    train_a_little(*each, {6, 8, 8, 1}, 1);
  }
  ranges(net);
  for (Sequential* each : {&net, &other}) train_a_little(*each, {6, 8, 8, 1}, 1);
  CHECK(convert(net, example).hash() == convert(other, example).hash());
}

}  // namespace quantrain::quant
