#include "layers/network/network_file.hpp"

#include "examples/networks.hpp"
#include "examples/tiny_networks.hpp"
#include "framework/autograd/ops.hpp"
#include "framework/core/error.hpp"
#include "framework/integer/integer_model.hpp"
#include "framework/io/safetensors.hpp"
#include "framework/optim/adam.hpp"
#include "framework/optim/sgd.hpp"
#include "layers/network/copy_network.hpp"
#include "layers/network/trace.hpp"
#include "quant/analysis/parity.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/child.hpp"
#include "tests/sanitized.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"

// A namespace of its own, because names such as `batch` and `made` are those of other tests, too.
namespace quantrain::quant::network_file {
namespace {

using examples::networks;
using examples::tiny_networks;
using quantrain::test::random_tensor;
using quantrain::test::TemporaryFolder;
using quantrain::test::values;
using AnyNetwork = examples::Network;
using Network = quantrain::Network;

Tensor batch(const AnyNetwork& network, int64_t n, uint64_t seed) {
  std::vector<int64_t> extents{n};
  extents.insert(extents.end(), network.input.begin(), network.input.end());
  return random_tensor(Shape(extents), seed, 0.0f, 1.0f);
}

std::vector<float> state_of(const Module& net) {
  std::vector<float> all;
  for (const NamedState& entry : state(net)) {
    const std::vector<float> some = values(entry);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::vector<std::string> names_of(const Module& net) {
  std::vector<std::string> names;
  for (const NamedState& entry : state(net)) names.push_back(entry.name);
  return names;
}

enum class Steps { kAdam, kSgd };

/// Trains for some steps, from `first` on. Returns losses, the first step's gradients, and the
/// state.
std::vector<float> train_steps(
    Module& net, const AnyNetwork& network, Steps kind, int first = 0, int count = 20) {
  std::vector<float> all;
  net.train();
  Adam adam(net.parameters(), {.learning_rate = 0.002f});
  Sgd sgd(net.parameters(), {.learning_rate = 0.02f});
  Optimizer& optimizer =
      kind == Steps::kAdam ? static_cast<Optimizer&>(adam) : static_cast<Optimizer&>(sgd);
  for (int step = first; step < first + count; ++step) {
    optimizer.zero_grad();
    const Tensor y = net(batch(network, 3, static_cast<uint64_t>(step)));
    Tensor loss = mean(square(y));
    all.push_back(loss.item());
    loss.backward();
    if (step == first) {
      for (const Tensor& parameter : net.parameters()) {
        if (!parameter.grad().defined()) continue;
        const std::vector<float> some = values(parameter.grad());
        all.insert(all.end(), some.begin(), some.end());
      }
    }
    optimizer.step();
  }
  const std::vector<float> state = state_of(net);
  all.insert(all.end(), state.begin(), state.end());
  return all;
}

QConfig config_of_tests(bool learned) {
  QConfig config = learned ? QConfig::bits(4, 4) : QConfig::int8();
  config.input_range = {0.0f, 1.0f};
  if (learned) {
    config.model.weight.estimator = Estimator::kLearned;
    config.model.activation.estimator = Estimator::kLearned;
  }
  return config;
}

Sequential made(const AnyNetwork& network) {
  manual_seed(3);
  return network.make();
}

uint64_t deployed(Module& net, const AnyNetwork& network) {
  return convert(net, batch(network, 1, 1)).hash();
}

std::vector<AnyNetwork> all_networks() {
  std::vector<AnyNetwork> all = networks();
  all.insert(all.end(), tiny_networks().begin(), tiny_networks().end());
  all.push_back({.name = "sensors",
                 .make = [] { return examples::sensor_mlp(6, 4); },
                 .input = {6},
                 .outputs = 4});
  return all;
}

}  // namespace

TEST_CASE("every example's network is the same to the bit after trace, save and load",
          "[quant][network][serial]") {
  for (const AnyNetwork& network : all_networks()) {
    INFO(network.name);
    const TemporaryFolder folder;
    Sequential reference = made(network);
    Sequential original = made(network);
    Network traced = trace(original, batch(network, 1, 5));
    CHECK(names_of(traced) == names_of(reference));
    save_network(traced, folder / "net");
    Network loaded = load_network(folder / "net");
    const Tensor x = batch(network, 4, 9);
    for (Module* net : {static_cast<Module*>(&reference),
                        static_cast<Module*>(&traced),
                        static_cast<Module*>(&loaded)})
      net->eval();
    const std::vector<float> expected = values(reference(x));
    CHECK(values(traced(x)) == expected);
    CHECK(values(loaded(x)) == expected);
    const std::vector<float> trained = train_steps(reference, network, Steps::kAdam);
    CHECK(train_steps(traced, network, Steps::kAdam) == trained);
    CHECK(train_steps(loaded, network, Steps::kAdam) == trained);
  }
}

TEST_CASE("every example's prepared network deploys the same integers after trace, save and load",
          "[quant][network][serial]") {
  int number = 0;
  for (const AnyNetwork& network : all_networks()) {
    INFO(network.name);
    const bool learned = ++number % 2 == 0;
    const TemporaryFolder folder;
    const Tensor example = batch(network, 2, 5);
    const auto prepared = [&] {
      Sequential net = made(network);
      prepare_qat(net, example, config_of_tests(learned));
      train_steps(net, network, Steps::kSgd, 0, 3);
      return net;
    };
    Sequential reference = prepared();
    Sequential original = prepared();
    const std::vector<float> before = state_of(original);
    Network traced = trace(original, example);
    CHECK(state_of(original) == before);
    CHECK(state_of(traced) == before);
    CHECK(names_of(traced) == names_of(reference));
    CHECK(config_of(traced) == config_of_tests(learned));
    save_network(traced, folder / "net");
    Network loaded = load_network(folder / "net");
    CHECK(state_of(loaded) == before);
    CHECK(config_of(loaded) == config_of_tests(learned));
    const uint64_t integers = deployed(reference, network);
    CHECK(deployed(traced, network) == integers);
    CHECK(deployed(loaded, network) == integers);

    const std::vector<float> trained = train_steps(reference, network, Steps::kAdam, 3);
    CHECK(train_steps(traced, network, Steps::kAdam, 3) == trained);
    CHECK(train_steps(loaded, network, Steps::kAdam, 3) == trained);
    for (Module* net : {static_cast<Module*>(&reference),
                        static_cast<Module*>(&traced),
                        static_cast<Module*>(&loaded)})
      freeze(*net);
    // Of a frozen network, too, the file is the network.
    save_network(loaded, folder / "frozen");
    Network frozen = load_network(folder / "frozen");
    const uint64_t later = deployed(reference, network);
    CHECK(later != integers);
    CHECK(deployed(traced, network) == later);
    CHECK(deployed(frozen, network) == later);
    CHECK(train_steps(frozen, network, Steps::kSgd, 30, 2) ==
          train_steps(reference, network, Steps::kSgd, 30, 2));
  }
}

#if !defined(QUANTRAIN_SANITIZE_THREAD)
TEST_CASE("a killed program's network goes on in another program, to the bit", "[quant][network]") {
  const AnyNetwork network = tiny_networks()[1];  // it has dropout and batch norms
  const TemporaryFolder folder;
  const std::string path = folder / "net";
  const auto start = [&] {
    Sequential net = made(network);
    prepare_qat(net, batch(network, 1, 5), config_of_tests(true));
    return net;
  };
  Sequential reference = start();
  train_steps(reference, network, Steps::kSgd, 0, 4);
  const std::vector<float> expected = train_steps(reference, network, Steps::kSgd, 4, 4);
  const quantrain::test::Child child = quantrain::test::in_child([&]() -> std::string {
    Sequential net = start();
    train_steps(net, network, Steps::kSgd, 0, 4);
    save_network(trace(net, batch(network, 1, 5)), path);
    quantrain::test::kill_child();
  });
  CHECK(child.was_killed);
  Network resumed = load_network(path);
  CHECK(train_steps(resumed, network, Steps::kSgd, 4, 4) == expected);
}
#endif

TEST_CASE("a network calibrated without training is kept whole", "[quant][network]") {
  const AnyNetwork network = networks()[3];
  const Tensor example = batch(network, 2, 5);
  Sequential net = made(network);
  QConfig config = config_of_tests(false);
  config.model.activation.observer = HistogramOptions{.bins = 256};
  config.layers["10"] = config.model;
  config.layers["10"].weight.per_channel = false;
  prepare_ptq(net, example, config);
  calibrate(net, batch(network, 8, 6));
  set_outside(net, Outside::kSaturate);
  const TemporaryFolder folder;
  save_network(trace(net, example), folder / "net");
  Network loaded = load_network(folder / "net");
  CHECK(config_of(loaded) == config);
  CHECK(deployed(loaded, network) == deployed(net, network));
  // More calibration counts on: the observers were kept.
  calibrate(net, batch(network, 8, 7), {.anew = false});
  calibrate(loaded, batch(network, 8, 7), {.anew = false});
  CHECK(state_of(loaded) == state_of(net));
  CHECK(dynamic_cast<InputQuantize&>(*loaded.slots().inputs[0]).outside() == Outside::kSaturate);
  const IntegerModel model = convert(loaded, example);
  CHECK(verify_parity(loaded, model, batch(network, 4, 8)).codes_equal() == 1.0);
}

TEST_CASE("a program that cannot fill slots refuses a prepared network", "[quant][network]") {
  const AnyNetwork network = networks()[0];
  Sequential net = made(network);
  prepare_qat(net, batch(network, 1, 5), config_of_tests(false));
  const TemporaryFolder folder;
  save_network(trace(net, batch(network, 1, 5)), folder / "net");
  set_restore_slots(nullptr);
  QUANTRAIN_CHECK_ERROR(
      load_network(folder / "net"), DataError, "include quant/prepare/scopes.hpp");
  register_slots();
  CHECK_NOTHROW(load_network(folder / "net"));
}

TEST_CASE("a copy of a prepared Network is independent and equal", "[quant][network]") {
  const AnyNetwork network = networks()[2];
  Sequential net = made(network);
  prepare_qat(net, batch(network, 1, 5), config_of_tests(true));
  train_steps(net, network, Steps::kSgd, 0, 2);
  Network traced = trace(net, batch(network, 1, 5));
  const std::vector<float> before = state_of(traced);
  Network other = copy(traced);
  CHECK(state_of(other) == before);
  CHECK(deployed(other, network) == deployed(traced, network));
  const std::vector<float> trained = train_steps(other, network, Steps::kSgd, 2, 2);
  CHECK(state_of(traced) == before);
  CHECK(train_steps(traced, network, Steps::kSgd, 2, 2) == trained);
}

namespace {

/// Its forward() adds and clamps outside of layers, so it cannot be prepared itself.
class BareResidual : public Module {
 public:
  BareResidual()
      : conv_(add("conv", Conv2d{2, 2, {.padding = 1}})), fc_(add("fc", Linear{32, 3})) {}
  std::string_view type() const override { return "BareResidual"; }

 protected:
  Tensor forward(const Tensor& x) override {
    const Tensor y = relu(quantrain::add((*conv_)(x), x));
    return (*fc_)(flatten(y * 2.0f));
  }

 private:
  std::shared_ptr<Conv2d> conv_;
  std::shared_ptr<Linear> fc_;
};

/// A layer of its own with several operations, of which one is quantized.
class OwnPool : public Module {
 public:
  std::string_view type() const override { return "OwnPool"; }

 protected:
  Tensor forward(const Tensor& x) override {
    const Tensor y = avg_pool2d(x, {.kernel = 2});
    return reshape(y, {x.dim(0), 2, 4});
  }
};

}  // namespace

TEST_CASE("operations outside of layers can be prepared once they were traced",
          "[quant][network]") {
  const Tensor example = random_tensor({2, 4, 4, 2}, 3, 0.0f, 1.0f);
  BareResidual bare;
  CHECK_THROWS_AS(prepare_ptq(bare, example, config_of_tests(false)), GraphError);
  Network net = trace(bare, example);
  prepare_ptq(net, example, config_of_tests(false));
  calibrate(net, example);
  const IntegerModel model = convert(net, example);
  CHECK(verify_parity(net, model, example).codes_equal() == 1.0);
}

TEST_CASE("the slot of a layer with several operations goes to the last of them",
          "[quant][network]") {
  const Tensor example = random_tensor({2, 4, 4, 2}, 3, 0.0f, 1.0f);
  Sequential net{Conv2d{2, 2, {.padding = 1}}, ReLU{}, OwnPool{}, Flatten{}, Linear{8, 3}};
  prepare_qat(net, example, config_of_tests(true));
  net(example);
  mean(square(net(example))).backward();
  Network traced = trace(net, example);
  CHECK(traced.steps()[2].name == "2.avg_pool2d");
  CHECK(traced.find("2.reshape").slots().output != nullptr);
  CHECK(state_of(traced).size() == state_of(net).size());
  net.eval();
  traced.eval();
  const Tensor x = random_tensor({3, 4, 4, 2}, 4, 0.0f, 1.0f);
  CHECK(values(traced(x)) == values(net(x)));
  const TemporaryFolder folder;
  save_network(traced, folder / "net");
  Network loaded = load_network(folder / "net");
  CHECK(convert(traced, example).hash() == convert(loaded, example).hash());
}

TEST_CASE("a file whose slots do not fit its layers is refused by name", "[quant][network]") {
  const AnyNetwork network = networks()[2];
  Sequential net = made(network);
  prepare_qat(net, batch(network, 1, 5), config_of_tests(true));
  train_steps(net, network, Steps::kSgd, 0, 1);
  const TemporaryFolder folder;
  save_network(trace(net, batch(network, 1, 5)), folder / "net");
  const TensorFile file = load_safetensors(folder / "net");
  const auto refuses = [&](const char* message, const std::string& from, const std::string& to) {
    TensorFile changed = file;
    std::string& json = changed.metadata["quantization"];
    const size_t at = json.find(from);
    INFO(json);
    REQUIRE(at != std::string::npos);
    json.replace(at, from.size(), to);
    save_safetensors(folder / "changed", changed);
    QUANTRAIN_CHECK_ERROR(load_network(folder / "changed"), Error, message);
  };
  refuses("has no layer \"0.9\"", "\"layer\":\"0.0\"", "\"layer\":\"0.9\"");
  refuses("has no weights to quantize", "\"layer\":\"0.0\"", "\"layer\":\"0.3\"");
  refuses("not a batch norm", "\"layer\":\"0.1\"", "\"layer\":\"0.0\"");
  refuses("has no parameter \"wait\"", "[\"weight\",\"\"]", "[\"wait\",\"\"]");
  refuses("weight and bias", "[\"weight\",\"\"]", "[\"weight\"]");
  refuses("two batch norms", "\"product\":\"0.0\"", "\"product\":\"1.0\"");
  refuses("channels", "\"product\":\"0.0\"", "\"product\":\"4\"");
  refuses("scheme", "\"scheme\":\"symmetric\"", "\"scheme\":\"odd\"");
  refuses("bits", "\"weight\":{\"bits\":4", "\"weight\":{\"bits\":9");
  refuses("no kind", "\"kind\":\"", "\"kind\":\"x");
  refuses("\"0.1.body_slot", "{\"layer\":\"0.1\",\"product\":\"0.0\"},", "");
  const std::string& json = file.metadata.at("quantization");
  const size_t inputs = json.find("\"inputs\":[");
  const std::string input = json.substr(inputs, json.find("],", inputs) - inputs);
  refuses("there is no input", input, "\"inputs\":[");
  const std::string two = input + ',' + input.substr(std::string("\"inputs\":[").size());
  refuses("is prepared for 2", input, two);
  refuses("the text", "{\"config\"", "{\"config");
  refuses("zero_point", "\"zero_point\":0", "\"zero_point\":256");
  // A histogram of 65,536 bins that the file does not hold.
  const size_t kind = json.find("\"observer\":{\"kind\":\"");
  REQUIRE(kind != std::string::npos);
  const std::string observer = json.substr(kind, json.find('}', kind) - kind);
  refuses("takes more than", observer, "\"observer\":{\"kind\":\"histogram\",\"bins\":65536");
}

TEST_CASE("saving a loaded network gives the same bytes", "[quant][network]") {
  const AnyNetwork network = networks()[3];
  Sequential net = made(network);
  prepare_qat(net, batch(network, 1, 5), config_of_tests(true));
  train_steps(net, network, Steps::kSgd, 0, 2);
  Network traced = trace(net, batch(network, 1, 5));
  traced.metadata()["made by"] = "a test";
  traced.set_classes({"zero", "one"});
  const TemporaryFolder folder;
  save_network(traced, folder / "a");
  const Network loaded = load_network(folder / "a");
  CHECK(loaded.metadata().at("made by") == "a test");
  CHECK(loaded.classes() == std::vector<std::string>{"zero", "one"});
  save_network(loaded, folder / "b");
  CHECK(quantrain::test::read_bytes(folder / "a") == quantrain::test::read_bytes(folder / "b"));
}

TEST_CASE("an integer model keeps what its network says about itself", "[quant][network]") {
  const AnyNetwork network = networks()[0];
  Sequential net = made(network);
  Network traced = trace(net, batch(network, 1, 5));
  traced.metadata()["made by"] = "a test";
  traced.set_classes({"zero", "one"});
  std::vector<NetworkInput> inputs = traced.inputs();
  inputs[0].feature_names = {"left", "right"};
  traced.describe_inputs(inputs);
  prepare_qat(traced, batch(network, 1, 5), config_of_tests(true));
  train_steps(traced, network, Steps::kSgd, 0, 2);
  const IntegerModel model = convert(traced, batch(network, 1, 5));
  CHECK(model.metadata() ==
        std::map<std::string, std::string>{{"made by", "a test"},
                                           {"classes", R"(["zero","one"])"},
                                           {"features", R"(["left","right"])"}});
}

TEST_CASE("an optimizer made before a trace was prepared does not train without its scales",
          "[quant][network]") {
  const AnyNetwork network = networks()[0];
  Sequential net = made(network);
  Network traced = trace(net, batch(network, 1, 5));
  Sgd optimizer(traced.parameters(), {.learning_rate = 0.1f});
  prepare_qat(traced, batch(network, 1, 5), config_of_tests(true));
  mean(square(traced(batch(network, 3, 6)))).backward();
  CHECK_THROWS_AS(optimizer.step(), Error);
  CHECK_THROWS_AS(config_of(net), GraphError);
}

}  // namespace quantrain::quant::network_file
