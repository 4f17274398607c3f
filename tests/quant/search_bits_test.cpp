// What each layer costs at each number of bits, and the bits that meet a goal.
#include <cmath>
#include <sstream>

#include "framework/integer/memory_plan.hpp"
#include "framework/metrics/evaluate.hpp"
#include "layers/evaluate.hpp"
#include "layers/network/trace.hpp"
#include "quant/analysis/search_bits.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/methods/weight_ranges.hpp"
#include "tests/quant/sick_networks.hpp"

namespace quantrain::quant {
namespace {

using quantrain::test::Approx;
using quantrain::test::ContainsSubstring;
using test::fill;
using test::normals;
using test::values_of;

constexpr int64_t kSearchedRows = 256;
constexpr int64_t kSearchedColumns = 12;

/// Linear - ReLU - Linear - ReLU - Linear.
Sequential searched_net() {
  Sequential net{Linear{kSearchedColumns, 24}, ReLU{}, Linear{24, 16}, ReLU{}, Linear{16, 4}};
  fill(net, "0.weight", 1, 0.3f);
  fill(net, "2.weight", 2, 0.2f);
  fill(net, "4.weight", 3, 0.3f);
  for (const char* bias : {"0.bias", "2.bias", "4.bias"}) fill(net, bias, 4, 0.05f);
  net.eval();
  return net;
}

Recipe searched_recipe() {
  return {.make = [] { return std::make_unique<Sequential>(searched_net()); },
          .config = QConfig::int8()};
}

/// A source of a user that has nothing.
class NoSamples : public BatchSource {
 public:
  std::optional<int64_t> samples() const override { return std::nullopt; }
  bool any_order() const override { return false; }
  Reader read(const Pass&) const override {
    return [](std::span<const int64_t>) {
      Batch none;
      none.input = Tensor::zeros({0, 6});
      return none;
    };
  }
};

/// Rows whose labels are the classes that the float network gives them: its accuracy is 1.
DataLoader labelled(Module& net) {
  const std::vector<float> x = normals(kSearchedRows * kSearchedColumns, 8);
  const SampleArray samples = SampleArray::encoded(
      {kSearchedRows, kSearchedColumns}, x, {-4.0f, 4.0f}, {}, Outside::kSaturate);
  const DataLoader plain{TensorDataset(samples, std::monostate{}), {.batch = 64}};
  return DataLoader{TensorDataset(samples, Labels{predicted_classes(predict(net, plain)), 4}),
                    {.batch = 64}};
}

DataLoader unlabelled() {
  return test::coded(kSearchedColumns, normals(kSearchedRows * kSearchedColumns, 8), {-4.0f, 4.0f});
}

}  // namespace

TEST_CASE("sensitivity measures each part alone, and is what the network with these bits computes",
          "[quant][bits]") {
  Sequential net = searched_net();
  const DataLoader data = labelled(net);
  const Sensitivity found = sensitivity(net, data, data, searched_recipe());
  CHECK(found.in_float == 1.0);
  // Weights of three layers and outputs of two at five numbers of bits; the logits have no choice.
  CHECK(found.rows.size() == 25);
  CHECK(found.find("4", LayerPart::kOutput, 8) == nullptr);
  CHECK(found.find("0", LayerPart::kWeights, 8)->loss < 0.03);
  CHECK(found.find("0", LayerPart::kWeights, 2)->loss > 0.05);
  CHECK(found.find("0", LayerPart::kOutput, 2)->value ==
        Approx(1.0 - found.find("0", LayerPart::kOutput, 2)->loss));

  // The same by hand: in float, the weights of "2" rounded to 3 bits.
  Sequential by_hand = searched_net();
  float* const w = values_of(by_hand, "2.weight");
  for (int64_t o = 0; o < 16; ++o) {
    float most = 0.0f;
    for (int64_t i = 0; i < 24; ++i) most = std::max(most, std::abs(w[o * 24 + i]));
    for (int64_t i = 0; i < 24; ++i)
      w[o * 24 + i] = std::nearbyint(w[o * 24 + i] / (most / 3.0f)) * (most / 3.0f);
  }
  CHECK(found.find("2", LayerPart::kWeights, 3)->value ==
        Approx(evaluate(by_hand, data, {"accuracy"}).at("accuracy")).margin(1.0 / kSearchedRows));
  const Sensitivity errors = sensitivity(
      net, data, unlabelled(), searched_recipe(), {.metric = std::string(kOutputError)});
  CHECK(errors.find("2", LayerPart::kWeights, 3)->value ==
        Approx(output_error({predict(net, data)}, {predict(by_hand, data)})).epsilon(1e-3));
  CHECK(errors.find("2", LayerPart::kWeights, 8)->loss <
        0.1 * errors.find("2", LayerPart::kWeights, 3)->loss);
  std::ostringstream table;
  table << errors;
  CHECK_THAT(table.str(), ContainsSubstring("output_error in float: 0"));
}

TEST_CASE("a budget of bytes is met by the integers, and the configuration reproduces them",
          "[quant][bits]") {
  Sequential net = searched_net();
  const DataLoader data = labelled(net);
  const SearchResult found =
      search_bits(net, data, data, searched_recipe(), {.goal = {.bytes = 700}});
  const SearchedBits& chosen = found.rows.at(found.chosen);
  CHECK(chosen.costs.bytes <= 700);
  CHECK(chosen.costs.bytes > 600);  // it does not save more than it has to
  CHECK(found.rows.front().costs.bytes < found.rows.back().costs.bytes);
  CHECK(found.rows.back().value > 0.9);

  Sequential again = searched_net();
  const Tensor example = (*data.begin()).input;
  prepare_ptq(again, example, QConfig::from_json(found.config.to_json()));
  calibrate(again, data);
  const IntegerModel model = convert(again, example);
  CHECK(model.size_bytes() == chosen.costs.bytes);
  CHECK(model.memory(1) == chosen.costs.ram);
  CHECK(evaluate(model, data, {"accuracy"}).at("accuracy") == chosen.value);
  // Bytes are weights; outputs keep all bits.
  CHECK(found.config.of("Linear", "0").activation.bits == 8);
}

TEST_CASE("multiply-adds count bits of weights and inputs, and both are lowered for them",
          "[quant][bits]") {
  Sequential net = searched_net();
  const DataLoader data = labelled(net);
  constexpr double kAll = kSearchedColumns * 24 + 24 * 16 + 16 * 4;
  const SearchResult found =
      search_bits(net, data, data, searched_recipe(), {.goal = {.multiply_adds = 0.4 * kAll}});
  CHECK(found.rows.back().costs.multiply_adds == Approx(kAll));  // 8 bits
  const auto bits = [&](const char* layer) { return found.config.of("Linear", layer); };
  const double by_hand = (kSearchedColumns * 24 * 8.0 * bits("0").weight.bits +
                          24 * 16 * bits("0").activation.bits * 1.0 * bits("2").weight.bits +
                          16 * 4 * bits("2").activation.bits * 1.0 * bits("4").weight.bits) /
                         64.0;
  CHECK(found.rows[found.chosen].costs.multiply_adds == Approx(by_hand));
  CHECK(by_hand <= 0.4 * kAll);
  CHECK((bits("0").activation.bits < 8 || bits("2").activation.bits < 8));
}

TEST_CASE("a tolerance gives the fewest bits whose integers are that good",
          "[quant][bits][serial]") {
  Sequential net = searched_net();
  const DataLoader data = labelled(net);
  const auto bytes = [&](double tolerance, std::vector<Method> methods = {}) {
    const SearchResult found =
        search_bits(net,
                    data,
                    data,
                    searched_recipe(),
                    {.goal = {.tolerance = tolerance}, .methods = std::move(methods)});
    const SearchedBits& chosen = found.rows.at(found.chosen);
    CHECK(chosen.value >= found.in_float - tolerance);
    return chosen.costs.bytes;
  };
  const int64_t tight = bytes(0.02);
  const int64_t loose = bytes(0.2);
  CHECK(loose < tight);
  CHECK(bytes(0.2, {WeightRanges{}}) <= tight);
}

TEST_CASE("the Pareto table has no cheaper row that is better, and a Network needs no function",
          "[quant][bits]") {
  Sequential net = searched_net();
  const DataLoader data = labelled(net);
  const Tensor example = (*data.begin()).input;
  Network network = trace(net, example);
  const SearchResult of_network = search_bits(network,
                                              data,
                                              data,
                                              recipe_of(network, QConfig::int8()),
                                              {.goal = {.bytes = 700}, .points = 9});
  double best = -1.0;
  for (const SearchedBits& row : of_network.rows) {
    CHECK(row.best == (row.value > best));
    best = std::max(best, row.value);
  }
  const SearchResult of_module =
      search_bits(net, data, data, searched_recipe(), {.goal = {.bytes = 700}, .points = 9});
  CHECK(of_module.config == of_network.config);
  std::ostringstream table;
  table << of_network;
  CHECK_THAT(table.str(), ContainsSubstring("weights/output of each layer"));
  CHECK_THAT(table.str(), ContainsSubstring(">"));

  // A prepared network is searched like its float network.
  prepare_ptq(network, example, QConfig::int4());
  calibrate(network, data);
  CHECK(search_bits(network,
                    data,
                    data,
                    recipe_of(network, QConfig::int8()),
                    {.goal = {.bytes = 700}, .points = 0})
            .config == of_network.config);
}

TEST_CASE("goals that cannot be met say what is reached and what to change", "[quant][bits]") {
  Sequential net = searched_net();
  const DataLoader data = labelled(net);
  const auto refusal = [&](const SearchOptions& options, const DataLoader& of) {
    try {
      search_bits(net, of, of, searched_recipe(), options);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  CHECK_THAT(
      refusal({.goal = {.bytes = 100}}, data),
      ContainsSubstring("a budget of 100 bytes cannot be met: with the fewest bits it takes"));
  CHECK_THAT(refusal({.goal = {.multiply_adds = 1.0}}, data),
             ContainsSubstring("allow fewer bits (SearchOptions::bits)"));
  CHECK_THAT(refusal({.goal = {.ram = 10}}, data),
             ContainsSubstring("at any bits, because values take a byte"));
  CHECK_THAT(refusal({.goal = {.tolerance = 0.001}, .bits = {{2}, {2}}}, data),
             ContainsSubstring("a tolerance of 0.001 cannot be met: with the most bits, accuracy"));
  CHECK_THAT(refusal({.goal = {.tolerance = 0.01}}, unlabelled()),
             ContainsSubstring("neither labels nor targets, which \"accuracy\" needs"));
  const DataLoader empty(std::make_shared<const NoSamples>(), {});
  try {
    search_bits(net, empty, data, searched_recipe(), {.goal = {.bytes = 700}});
    FAIL("an empty loader was accepted");
  } catch (const DataError& error) {
    CHECK_THAT(error.what(), ContainsSubstring("[search_bits] there is no batch"));
  }
  CHECK_THROWS_AS(sensitivity(net, empty, data, searched_recipe()), DataError);
  CHECK_THAT(refusal({}, data), ContainsSubstring("set one of bytes, ram, multiply_adds"));
  CHECK_THAT(refusal({.goal = {.bytes = 1, .ram = 1}}, data), ContainsSubstring("2 entries"));
  CHECK_THAT(refusal({.goal = {.bytes = -1}}, data), ContainsSubstring("must be positive"));
  CHECK_THAT(refusal({.goal = {.tolerance = -0.1}}, data), ContainsSubstring("at least 0"));
  CHECK_THAT(refusal({.goal = {.bytes = 700}, .bits = {{9}, {8}}}, data),
             ContainsSubstring("numbers from 1 to 8, got 9"));
  CHECK_THAT(refusal({.goal = {.bytes = 700}, .bits = {{4, 4}, {8}}}, data),
             ContainsSubstring("got 4 twice"));
  CHECK_THAT(refusal({.goal = {.bytes = 700}, .bits = {{}, {}}}, data),
             ContainsSubstring("there are no bits to choose from"));
  CHECK_THAT(refusal({.goal = {.bytes = 700}, .points = -1}, data),
             ContainsSubstring("points must not be negative"));

  CHECK_THROWS_WITH(sensitivity(net, unlabelled(), unlabelled(), searched_recipe()),
                    ContainsSubstring("use the metric \"output_error\""));
  Sequential flat{Flatten{}};
  const Recipe other{.make = [] { return std::make_unique<Sequential>(Sequential{Flatten{}}); },
                     .config = QConfig::int8()};
  CHECK_THROWS_AS(sensitivity(flat, data, data, other), GraphError);  // nothing to quantize
  CHECK_THROWS_AS(sensitivity(net, data, data, {}), GraphError);      // no Recipe::make
}

TEST_CASE("a RAM budget that the network meets keeps all bits, and costs are those of the program",
          "[quant][bits]") {
  Sequential net = searched_net();
  const DataLoader data = labelled(net);
  const SearchResult found =
      search_bits(net, data, data, searched_recipe(), {.goal = {.ram = 1 << 20}, .points = 2});
  CHECK(found.config.of("Linear", "2").weight.bits == 8);
  // The model of costs foretells the program with the fewest bits.
  Sequential wide = searched_net();
  const Tensor example = (*data.begin()).input;
  prepare_ptq(wide, example, QConfig::int8());
  calibrate(wide, data);
  const CostModel model(convert(wide, example).program());
  BitsOfParts least;
  for (const char* layer : {"0", "2", "4"}) least[{layer, LayerPart::kWeights}] = 2;
  for (const char* layer : {"0", "2"}) least[{layer, LayerPart::kOutput}] = 2;
  const BitCosts is = found.rows.front().costs;
  CHECK(model.with(least).bytes == is.bytes);
  // Its path lowers weights only.
  for (const char* layer : {"0", "2"}) least.erase({layer, LayerPart::kOutput});
  CHECK(model.with(least).multiply_adds == Approx(is.multiply_adds));
}

}  // namespace quantrain::quant
