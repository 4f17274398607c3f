// What methods leave behind: integers equal to the simulation, state that files and copies keep,
// the same bits on any number of threads, and nothing after an error.
#include <sstream>

#include "layers/copy.hpp"
#include "layers/network/copy_network.hpp"
#include "layers/network/network_file.hpp"
#include "layers/network/trace.hpp"
#include "layers/state.hpp"
#include "quant/methods/adaround.hpp"
#include "quant/methods/bias_correction.hpp"
#include "quant/methods/equalization.hpp"
#include "quant/methods/weight_ranges.hpp"
#include "tests/quant/parity_checks.hpp"
#include "tests/quant/sick_networks.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/threads.hpp"

namespace quantrain::quant {
namespace {

using test::check_parity;
using test::random_images;

/// Batches of random images, without labels.
DataLoader image_batches(const Shape& sample, int64_t n = 24) {
  std::vector<int64_t> extents{n};
  extents.insert(extents.end(), sample.begin(), sample.end());
  const Tensor x = random_images(Shape(extents), 9);
  return DataLoader{
      TensorDataset(
          SampleArray::encoded(x.shape(), {x.data(), x.data() + x.elements()}, {0.0f, 1.0f}, {}),
          std::monostate{}),
      {.batch = 8}};
}

const std::vector<Method>& all_methods() {
  static const std::vector<Method> methods{
      Equalization{}, WeightRanges{}, AdaRound{.iterations = 12}, BiasCorrection{}};
  return methods;
}

struct Subject {
  Sequential (*make)();
  Shape sample;
};
const Subject kSubjects[] = {{test::conv_net, {8, 8, 1}},
                             {test::branched_net, {8, 8, 1}},
                             {test::signal_net, {40, 3}},
                             {test::mlp, {12}}};

/// A network with batch statistics that are not all 0 and 1, prepared and improved.
Sequential improved(const Subject& c, const QConfig& config) {
  manual_seed(5);
  Sequential net = c.make();
  std::vector<int64_t> batch{16};
  batch.insert(batch.end(), c.sample.begin(), c.sample.end());
  test::train_a_little(net, Shape(batch), 3);
  net.eval();
  const DataLoader data = image_batches(c.sample);
  prepare_ptq(net, (*data.begin()).input, config);
  improve(net, data, all_methods());
  return net;
}

std::vector<std::vector<uint8_t>> bytes_of(const Module& net) {
  std::vector<std::vector<uint8_t>> all;
  for (const NamedState& entry : state(net)) {
    const auto bytes = entry.bytes();
    all.emplace_back(bytes.begin(), bytes.end());
  }
  return all;
}

/// A method that a program adds.
struct Mine {
  static constexpr std::string_view kName = "mine";
  void apply(MethodRun& run) const {
    run.rows.push_back({.method = "mine", .layer = "0", .skipped = "only looked"});
    CHECK(run.float_means.at("0").size() == 9);
  }
};

}  // namespace

TEST_CASE("an improved network computes the integers of its simulation",
          "[quant][methods][serial]") {
  for (const Subject& c : kSubjects) {
    for (const int bits : {2, 4, 8}) {
      CAPTURE(c.sample, bits);
      Sequential net = improved(c, QConfig::bits(bits, bits));
      std::vector<int64_t> extents{32};
      extents.insert(extents.end(), c.sample.begin(), c.sample.end());
      const Tensor x = random_images(Shape(extents), 4);
      const IntegerModel model = convert(net, x);
      check_parity(net, model, x);
    }
  }
}

TEST_CASE("files, copies and networks keep what methods changed", "[quant][methods]") {
  const Subject& c = kSubjects[0];
  const Tensor x = random_images({8, 8, 8, 1}, 4);
  Sequential net = improved(c, QConfig::int4());
  const uint64_t hash = convert(net, x).hash();

  Sequential same = copy(net, c.make);
  CHECK(convert(same, x).hash() == hash);

  const quantrain::test::TemporaryFolder folder;
  save(net, folder / "state.safetensors");
  Sequential loaded = c.make();
  prepare_ptq(loaded, x, QConfig::int4());
  load(loaded, folder / "state.safetensors");
  CHECK(convert(loaded, x).hash() == hash);

  Network network = trace(net, x);
  CHECK(convert(network, x).hash() == hash);
  save_network(network, folder / "network.safetensors");
  Network again = load_network(folder / "network.safetensors");
  CHECK(convert(again, x).hash() == hash);

  // A Network can be improved itself, with the same result.
  manual_seed(5);
  Sequential plain = c.make();
  test::train_a_little(plain, {16, 8, 8, 1}, 3);
  plain.eval();
  Network traced = trace(plain, x);
  prepare_ptq(traced, x, QConfig::int4());
  improve(traced, image_batches(c.sample), all_methods());
  CHECK(convert(traced, x).hash() == hash);
}

TEST_CASE("improving gives the same bits on any number of threads", "[quant][methods]") {
  const quantrain::test::DefaultThreads restored;
  std::vector<std::vector<std::vector<uint8_t>>> results;
  for (const int threads : quantrain::test::thread_counts({1, 2, 3})) {
    set_threads(threads);
    results.push_back(bytes_of(improved(kSubjects[0], QConfig::int4())));
    CHECK(results.back() == results.front());
  }
}

TEST_CASE("training goes on after methods", "[quant][methods]") {
  Sequential net = improved(kSubjects[0], QConfig::int4());
  set_phase(net, Phase::kTraining);
  test::train_a_little(net, {16, 8, 8, 1}, 3);
  freeze(net);
  net.eval();
  const Tensor x = random_images({16, 8, 8, 1}, 4);
  check_parity(net, convert(net, x), x);
}

TEST_CASE("improve refuses what it cannot improve and leaves it as it was", "[quant][methods]") {
  const DataLoader data = image_batches({12}, 16);
  const Tensor x = (*data.begin()).input;
  Sequential net = test::mlp();
  CHECK_THROWS_AS(improve(net, data, {AdaRound{}}), GraphError);  // not prepared

  Sequential no_weights{Sigmoid{}};
  prepare_ptq(no_weights, x, QConfig::int8());
  CHECK_THROWS_WITH(improve(no_weights, data, {AdaRound{}}),
                    quantrain::test::ContainsSubstring("no layer with quantized weights"));

  prepare_ptq(net, x, QConfig::int4());
  calibrate(net, data);
  CHECK_THROWS_WITH(improve(net, data, {}),
                    quantrain::test::ContainsSubstring("there is no method"));
  const auto before = bytes_of(net);
  const std::vector<std::vector<Method>> bad{
      {AdaRound{.iterations = 0}},
      {AdaRound{.batch = 0}},
      {AdaRound{.learning_rate = -1.0f}},
      {AdaRound{.regularization = -1.0f}},
      {AdaRound{.warm_up = 1.5f}},
      {AdaRound{.last_beta = 0.0f}},
      {Equalization{.rounds = 0}},
      {WeightRanges{.steps = 0}},
      {WeightRanges{.least = 0.0f}},
  };
  for (const std::vector<Method>& methods : bad) {
    CAPTURE(methods[0].name());
    CHECK_THROWS_AS(improve(net, data, methods), DataError);
    CHECK(bytes_of(net) == before);
    // The methods before the refused one are undone.
    CHECK_THROWS_AS(
        improve(net, data, {Equalization{}, WeightRanges{}, BiasCorrection{}, methods[0]}),
        DataError);
    CHECK(bytes_of(net) == before);
  }
}

TEST_CASE("a method of the user's own runs among the others, and the report is a table",
          "[quant][methods]") {
  const DataLoader data = image_batches({12}, 16);
  Sequential net = test::mlp();
  prepare_ptq(net, (*data.begin()).input, QConfig::int4());
  std::ostringstream text;
  text << improve(net, data, {Mine{}, WeightRanges{}});
  CHECK(text.str().find("unchanged: only looked") != std::string::npos);
  CHECK(text.str().find("rmse of the weights") != std::string::npos);
}

TEST_CASE("layers that share a weight keep it", "[quant][methods]") {
  Linear first{4, 4};
  Linear second{first.weight(), first.bias()};
  Sequential net{std::move(first), ReLU{}, std::move(second), ReLU{}, Linear{4, 2}};
  net.eval();
  const DataLoader data = image_batches({4}, 16);
  prepare_ptq(net, (*data.begin()).input, QConfig::int4());
  const Improvement made = improve(net, data, {AdaRound{.iterations = 2}});
  CHECK(made.rows.at(0).skipped.find("\"2\" shares its weight") != std::string::npos);
  CHECK(made.rows.at(1).skipped.find("\"0\" shares its weight") != std::string::npos);
  CHECK(made.rows.at(2).skipped.empty());
}

}  // namespace quantrain::quant
