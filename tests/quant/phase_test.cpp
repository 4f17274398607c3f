#include "quant/prepare/phase.hpp"

#include <cstring>
#include <limits>
#include <memory>

#include "framework/autograd/ops.hpp"
#include "framework/data/loader.hpp"
#include "framework/io/safetensors.hpp"
#include "framework/optim/adam.hpp"
#include "layers/state.hpp"
#include "layers/training/fit.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/observers/observer.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/quant/networks.hpp"
#include "tests/quant/parity_checks.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tensors.hpp"

namespace quantrain::quant {

using quantrain::test::values;
using test::check_parity;
using test::conv_net;
using test::mlp;
using test::random_images;
using test::train_a_little;

namespace {

std::vector<QParams> activation_params(Module& net) {
  std::vector<QParams> params;
  for (const FakeQuantize* activation : Plugged(net).activations)
    params.push_back(activation->params());
  return params;
}

std::vector<float> logits_of(const IntegerModel& model, const Tensor& images) {
  std::vector<float> logits(static_cast<size_t>(images.dim(0) * model.output_size()));
  model.run(test::span_of(images), logits);
  return logits;
}

void check_same_state(const Module& a, const Module& b) {
  const std::vector<NamedState> first = state(a);
  const std::vector<NamedState> second = state(b);
  REQUIRE(first.size() == second.size());
  for (size_t i = 0; i < first.size(); ++i) {
    CAPTURE(first[i].name);
    CHECK(values(first[i]) == values(second[i]));
  }
}

}  // namespace

TEST_CASE("a calibrated network simulates its model, and running or training it moves no range",
          "[quant][phase]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential net = conv_net();
  train_a_little(net, {8, 8, 8, 1}, 3);
  prepare_ptq(net, example, QConfig::int8());
  QUANTRAIN_CHECK_ERROR(
      net(example), QuantError, "was not calibrated: call quant::calibrate(net, batches)");
  calibrate(net, mul(random_images({20, 8, 8, 1}, 2), Tensor::full({1}, 0.5f)));
  const std::vector<QParams> calibrated = activation_params(net);
  const IntegerModel model = convert(net, example);

  // These images exceed the calibrated ranges. Neither evaluation nor training changes the
  // parameters of the activations.
  const Tensor images = random_images({6, 8, 8, 1}, 3);
  for (const bool training : {false, true}) {
    net.train(training);
    CHECK(values(net(images)) == logits_of(model, images));
  }
  CHECK(activation_params(net) == calibrated);
  train_a_little(net, {8, 8, 8, 1}, 3);
  CHECK(activation_params(net) == calibrated);
  const IntegerModel trained = convert(net, example);
  CHECK(values(net(images)) == logits_of(trained, images));
  CHECK(logits_of(trained, images) != logits_of(model, images));
  check_parity(net, trained, images);
}

TEST_CASE("a calibration begins anew unless it is told to continue", "[quant][phase]") {
  const Tensor example = random_images({2, 12}, 1);
  const Tensor first = random_images({20, 12}, 2);
  const Tensor second = mul(random_images({20, 12}, 3), Tensor::full({1}, 0.5f));
  const auto calibrated = [&](const std::vector<Tensor>& batches, CalibrationOptions options) {
    manual_seed(5);
    Sequential net = mlp();
    prepare_ptq(net, example, QConfig::int8());
    for (const Tensor& batch : batches) calibrate(net, batch, options);
    return activation_params(net);
  };
  const std::vector<QParams> alone = calibrated({second}, {});
  CHECK(calibrated({first, second}, {}) == alone);
  const std::vector<QParams> both = calibrated({first, second}, {.anew = false});
  CHECK(both == calibrated({second, first}, {.anew = false}));
  CHECK(both != alone);
  manual_seed(5);
  Sequential net = mlp();
  prepare_ptq(net, example, QConfig::int8());
  {
    const Calibration calibration(net);
    CHECK(Plugged(net).activations[0]->phase() == Phase::kCalibrating);
    for (const Tensor* batch : {&first, &second}) CHECK_FALSE(net(*batch).requires_grad());
    CHECK_FALSE(Plugged(net).activations[0]->is_initialized());  // the range is chosen at the end
  }
  CHECK(activation_params(net) == both);
  {
    const Calibration outer(net);
    for (const Tensor* batch : {&first, &second}) calibrate(net, *batch);  // parts of the outer one
  }
  CHECK(activation_params(net) == both);
}

TEST_CASE("calibrate forgets what training passes and the user's own observer saw",
          "[quant][phase]") {
  for (const ObserverSpec& spec : observer_specs()) {
    CAPTURE(kind(spec));
    // A layer with a user's observer: the constructor does not take its kind from a spec.
    Sequential net{FakeQuantize(FakeQuantizeConfig::q8(), make_observer(spec))};
    const Tensor x = random_images({4, 12}, 1);
    net(mul(x, Tensor::full({1}, 100.0f)));
    calibrate(net, x);
    CHECK(activation_params(net)[0] ==
          make_observer(spec)->params_of(x, {.bits = 8}, QScheme::kAffine));
  }
}

TEST_CASE("calibrate takes the images of a loader, and refuses an empty list", "[quant][phase]") {
  const std::vector<uint8_t> pixels(4 * 64, 200);
  const Dataset images({4, 8, 8, 1}, pixels, {0, 1, 2, 3}, 4);
  Sequential net = conv_net();
  const Tensor example = images.batch(0, 1).input;
  QUANTRAIN_CHECK_ERROR(calibrate(net, DataLoader{images}), GraphError, "is not prepared");
  prepare_qat(net, example, QConfig::int8());
  calibrate(net, DataLoader(images, {.batch = 3}));
  CHECK(Plugged(net).activations[0]->phase() == Phase::kTraining);
  CHECK(net(example).kind() == ValueKind::kWaiting);
  QUANTRAIN_CHECK_ERROR(
      calibrate(net, std::vector<Batch>{}), DataError, "there is no batch to calibrate with");
}

TEST_CASE("a range that cannot be chosen is an error of calibrate, or of the pass after a scope",
          "[quant][phase]") {
  // Refuses what reaches beyond 1.
  class Narrow : public Observer {
   public:
    Narrow() : Observer({}), max_(add_state("max", {1})) {}
    std::string_view kind() const override { return "narrow"; }

   protected:
    void accumulate(const Batch&, std::span<const Range> extremes) override {
      *max_.mutable_data() = std::max(max_.data()[0], extremes[0].max);
    }
    std::vector<Range> choose_ranges(const QType&, QScheme) const override {
      if (max_.data()[0] > 1.0f) throw QuantError("narrow", "no range is good enough");
      return {{0.0f, max_.data()[0]}};
    }
    void check_state() const override {}

   private:
    Tensor max_;
  };
  Sequential net{ReLU{},
                 FakeQuantize(FakeQuantizeConfig::q8()),
                 FakeQuantize(FakeQuantizeConfig::q8(), std::make_unique<Narrow>())};
  const Tensor x = random_images({4, 12}, 1);
  calibrate(net, x);
  std::vector<std::vector<float>> before;
  for (const NamedState& entry : state(net)) before.push_back(values(entry));
  const Tensor wide = mul(x, Tensor::full({1}, 3.0f));
  for (const bool anew : {true, false}) {
    QUANTRAIN_CHECK_ERROR(
        calibrate(net, wide, {.anew = anew}), QuantError, "[narrow] no range is good enough");
    const std::vector<NamedState> after = state(net);
    for (size_t i = 0; i < before.size(); ++i) {
      CAPTURE(after[i].name);
      CHECK(values(after[i]) == before[i]);
    }
  }
  CHECK_NOTHROW(net(x));
  {
    const Calibration calibration(net);
    net(wide);
  }
  net.eval();
  QUANTRAIN_CHECK_ERROR(net(x), QuantError, "has no parameters: [narrow] no range is good enough");
  calibrate(net, x);
  CHECK_NOTHROW(net(x));
}

TEST_CASE("a calibration that fails sets no range, and parameters set during a calibration stay",
          "[quant][phase]") {
  const Tensor example = random_images({2, 12}, 1);
  Sequential net = mlp();
  Sequential same = mlp();
  copy_state(net, same);
  prepare_ptq(net, example, QConfig::int8());
  const std::vector<Batch> batches{{example, {}}, {Tensor::full({2, 12}, 2.0f), {}}};
  QUANTRAIN_CHECK_ERROR(calibrate(net, batches), DataError, "lie outside");
  CHECK_FALSE(output_quantizer(net, "1").is_initialized());
  CHECK(output_quantizer(net, "1").phase() == Phase::kFrozen);
  calibrate(net, example);
  prepare_ptq(same, example, QConfig::int8());
  calibrate(same, example);
  QUANTRAIN_CHECK_ERROR(calibrate(net, batches), DataError, "lie outside");
  QUANTRAIN_CHECK_ERROR(calibrate(net, batches, {.anew = false}), DataError, "lie outside");
  check_same_state(net, same);
  const QParams given{{.bits = 8}, -1, {0.5f}, {3}};
  {
    const Calibration calibration(net);
    net(example);
    output_quantizer(net, "1").update_params(given);
  }
  CHECK(output_quantizer(net, "1").is_given());
  CHECK(output_quantizer(net, "1").params() == given);
}

TEST_CASE("a calibration that fails sets no learned scale", "[quant][phase]") {
  const Tensor example = random_images({2, 12}, 1);
  manual_seed(1);
  Sequential net = mlp();
  QConfig config = QConfig::int8();
  config.model.activation.estimator = Estimator::kLearned;
  prepare_ptq(net, example, config);
  const std::vector<Batch> batches{{example, {}}, {Tensor::full({2, 12}, 2.0f), {}}};
  QUANTRAIN_CHECK_ERROR(calibrate(net, batches), DataError, "lie outside");
  CHECK_FALSE(output_quantizer(net, "1").is_initialized());
  const Tensor other = random_images({2, 12}, 2);
  calibrate(net, other);
  manual_seed(1);
  Sequential once = mlp();
  prepare_ptq(once, example, config);
  calibrate(once, other);
  CHECK(output_quantizer(net, "1").params() == output_quantizer(once, "1").params());
}

TEST_CASE("a loaded scale is not replaced by that of an earlier calibration", "[quant][phase]") {
  const Tensor example = random_images({2, 12}, 1);
  QConfig config = QConfig::int8();
  config.model.activation.estimator = Estimator::kLearned;
  const quantrain::test::TemporaryFolder folder;
  const std::string path = folder / "state";
  manual_seed(1);
  Sequential net = mlp();
  prepare_qat(net, example, config);
  calibrate(net, example);
  const QParams saved = output_quantizer(net, "1").params();
  save(net, path);
  Sequential other = mlp();
  prepare_qat(other, example, config);
  {
    const Calibration calibration(other);
    other(random_images({2, 12}, 5));
    output_quantizer(other, "1").update_params({{.bits = 8}, -1, {0.5f}, {3}});
  }
  load(other, path);
  other(random_images({2, 12}, 6));
  CHECK(output_quantizer(other, "1").params() == saved);
}

TEST_CASE("an integer model's file is not taken for a float network's", "[quant][phase]") {
  const Tensor example = random_images({2, 12}, 1);
  Sequential net = mlp();
  prepare_qat(net, example, QConfig::int8());
  net(example);
  const quantrain::test::TemporaryFolder folder;
  convert(net, example).save(folder / "model");
  QUANTRAIN_CHECK_ERROR(load(net, folder / "model"),
                        DataError,
                        "format is \"quantrain-integer\", expected \"quantrain\"");
}

TEST_CASE("a range that was set to evaluation mode stays so after an evaluation",
          "[quant][phase]") {
  const Tensor example = random_images({20, 12}, 1);
  Sequential net = mlp();
  prepare_qat(net, example, QConfig::int8());
  net(example);
  FakeQuantize& own = output_quantizer(net, "1");
  own.eval();
  convert(net, example);
  CHECK(net.training());
  CHECK_FALSE(own.training());
  const QParams before = own.params();
  net(random_images({20, 12}, 2));
  CHECK(own.params() == before);
}

TEST_CASE("scopes restore a slot that two layers share", "[quant][phase]") {
  auto shared = std::make_shared<FakeQuantize>(FakeQuantizeConfig::q8());
  Sequential net{Linear{12, 9}, Linear{9, 4}};
  for (const char* layer : {"0", "1"}) net.find(layer).slots().output = shared;
  const Tensor x = random_images({4, 12}, 1);
  calibrate(net, x);
  CHECK(shared->phase() == Phase::kTraining);
  CHECK(shared->is_initialized());
  CHECK(net(x).kind() == ValueKind::kCodes);
}

TEST_CASE("a network's own FakeQuantize has phases too", "[quant][phase]") {
  Sequential net{Linear{12, 9}, FakeQuantize{FakeQuantizeConfig::q8()}};
  const Tensor x = random_images({4, 12}, 1);
  calibrate(net, x);
  const QParams calibrated = Plugged(net).activations.at(0)->params();
  freeze(net);
  net.train();
  net(mul(x, Tensor::full({1}, 2.0f)));
  CHECK(Plugged(net).activations[0]->params() == calibrated);
  const FloatMode floats(net);
  CHECK(net(x).kind() == ValueKind::kFloat);
}

TEST_CASE("FloatMode computes the float network, and scopes nest", "[quant][phase]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  Sequential plain = conv_net();
  train_a_little(plain, {8, 8, 8, 1}, 3);
  Sequential net = conv_net();
  copy_state(plain, net);
  prepare_qat(net, example, QConfig::int4());
  plain.eval();
  const std::vector<float> expected = values(plain(example));
  const auto check_float = [&] {
    const std::vector<float> y = values(net(example));
    for (size_t i = 0; i < y.size(); ++i)
      CHECK(y[i] == quantrain::test::Approx(expected[i]).margin(1e-5));
  };
  net.eval();
  {
    const FloatMode floats(net);
    check_float();
    CHECK_FALSE(Plugged(net).activations[0]->is_initialized());
  }
  calibrate(net, example);
  const std::vector<float> simulated = values(net(example));
  set_simulation(net, Simulation::kFloat);
  {
    const DeployedMode deployed(net);
    CHECK(values(net(example)) == simulated);
    {
      const FloatMode floats(net);
      check_float();
    }
    CHECK(Plugged(net).activations[0]->phase() == Phase::kFrozen);
    CHECK(Plugged(net).activations[0]->simulation() == Simulation::kInteger);
  }
  CHECK(Plugged(net).activations[0]->phase() == Phase::kTraining);
  CHECK(Plugged(net).activations[0]->simulation() == Simulation::kFloat);
}

TEST_CASE("given parameters stay in every phase, and when they are saved and loaded",
          "[quant][phase]") {
  const Tensor example = random_images({2, 12}, 1);
  Sequential net = mlp();
  prepare_qat(net, example, QConfig::int8());
  const QParams given{{.bits = 8}, -1, {0.5f}, {3}};
  output_quantizer(net, "1").update_params(given);
  const quantrain::test::TemporaryFolder folder;
  save(net, folder / "net.safetensors");
  Sequential other = mlp();
  prepare_qat(other, example, QConfig::int8());
  load(other, folder / "net.safetensors");
  for (Sequential* each : {&net, &other}) {
    set_phase(*each, Phase::kFrozen);
    set_phase(*each, Phase::kTraining);
    calibrate(*each, example);
    train_a_little(*each, {6, 12}, 2);
    CHECK(output_quantizer(*each, "1").params() == given);
    CHECK(output_quantizer(*each, "1").is_given());
  }
  QUANTRAIN_CHECK_ERROR(
      output_quantizer(net, "0"), GraphError, "[0] no FakeQuantize is plugged in here");
  Sequential plain = mlp();
  QUANTRAIN_CHECK_ERROR(output_quantizer(plain, "1"), GraphError, "the network is not prepared");
}

TEST_CASE("a state of other bits, or of learned scales, is refused", "[quant][phase]") {
  const Tensor example = random_images({2, 12}, 1);
  const auto prepared = [&](const QConfig& config) {
    Sequential net = mlp();
    prepare_qat(net, example, config);
    return net;
  };
  Sequential eight = prepared(QConfig::int8());
  train_a_little(eight, {6, 12}, 2);
  const quantrain::test::TemporaryFolder folder;
  save(eight, folder / "eight");
  Sequential four = prepared(QConfig::int4());
  const std::vector<float> before = values(four.parameters()[0]);
  QUANTRAIN_CHECK_ERROR(load(four, folder / "eight"),
                        DataError,
                        "_slot.bits\" has 8 at 0, but this network was made with 4: make the "
                        "network in the same way as the one that was saved");
  QUANTRAIN_CHECK_ERROR(copy_state(eight, four), GraphError, "_slot.bits\" differs");
  CHECK(values(four.parameters()[0]) == before);
  QConfig config = QConfig::int8();
  config.model.weight.estimator = Estimator::kLearned;
  Sequential learned = prepared(config);
  QUANTRAIN_CHECK_ERROR(load(learned, folder / "eight"), DataError, "weight_slot.learned\" has 0");
  Sequential same = prepared(QConfig::int8());
  load(same, folder / "eight");
  check_same_state(same, eight);

  DataLoader loader(Dataset({6, 12}, std::vector<uint8_t>(72, 100), {0, 1, 2, 3, 0, 1}, 4),
                    {.batch = 3});
  const auto resume = [&](Sequential& net) {
    Adam optimizer(net.parameters());
    fit(net,
        optimizer,
        loader,
        [&](Batch& batch) { return cross_entropy(net(batch.input), batch.labels); },
        {.checkpoints = {.folder = folder / "run", .resume = true}});
  };
  resume(eight);
  QUANTRAIN_CHECK_ERROR(resume(four), DataError, "_slot.bits\" has 8");
}

TEST_CASE("phases of a network that is not prepared cannot be set", "[quant][phase]") {
  Sequential net = mlp();
  constexpr const char* kMessage = "[Sequential] the network is not prepared: prepare_ptq or";
  QUANTRAIN_CHECK_ERROR(freeze(net), GraphError, kMessage);
  QUANTRAIN_CHECK_ERROR(set_phase(net, Phase::kTraining), GraphError, kMessage);
  QUANTRAIN_CHECK_ERROR(freeze_batch_norms(net), GraphError, kMessage);
  QUANTRAIN_CHECK_ERROR(set_simulation(net, Simulation::kFloat), GraphError, kMessage);
}

TEST_CASE("a message tells a frozen range without values from one that may still learn",
          "[quant][phase]") {
  const Tensor example = random_images({2, 12}, 1);
  Sequential net = mlp();
  prepare_qat(net, example, QConfig::int8());
  QUANTRAIN_CHECK_ERROR(convert(net, example), QuantError, "or train in training mode, first");
  freeze(net);
  QUANTRAIN_CHECK_ERROR(net(example), QuantError, "it is frozen and was not calibrated");
}

TEST_CASE("a dropout that is active has no integer form", "[quant][phase]") {
  class Active : public Module {
   public:
    std::string_view type() const override { return "Active"; }

   protected:
    Tensor forward(const Tensor& x) override { return dropout_(x); }

   private:
    Dropout dropout_{0.5f};  // not registered, so it stays in training mode
  };
  const Tensor example = random_images({2, 12}, 1);
  Sequential net{Linear{12, 8}, Active{}, Linear{8, 4}};
  QUANTRAIN_CHECK_ERROR(prepare_qat(net, example, QConfig::int8()),
                        GraphError,
                        "call eval(), and register the layer");
}

TEST_CASE("parts of a prepared network are frozen one by one", "[quant][phase]") {
  Sequential net = conv_net();
  prepare_qat(net, random_images({2, 8, 8, 1}, 1), QConfig::int8());
  for (const NamedModule& entry : net.named_modules()) {
    if (!entry.name.empty()) freeze(*entry.module);
  }
  const Plugged all(net);
  REQUIRE_FALSE(all.batch_norms.empty());
  for (PreparedBatchNorm* norm : all.batch_norms)
    CHECK_FALSE(norm->folding().uses_batch_statistics());
  for (const FakeQuantize* activation : all.activations)
    CHECK(activation->phase() == Phase::kFrozen);
}

TEST_CASE("phases and frozen batch norms are saved, so a loaded network trains like the saved one",
          "[quant][phase]") {
  const Tensor example = random_images({2, 8, 8, 1}, 1);
  QConfig config = QConfig::int8();
  config.layers["4"] = config.model;
  config.layers["4"].weight.estimator = Estimator::kLearned;
  config.layers["4"].activation.estimator = Estimator::kLearned;
  const auto prepared = [&] {
    Sequential net = conv_net();
    prepare_qat(net, example, config);
    return net;
  };
  Sequential net = prepared();
  train_a_little(net, {6, 8, 8, 1}, 3);
  SECTION("all of it") { freeze(net); }
  SECTION("the batch norms") { freeze_batch_norms(net); }
  SECTION("the ranges and scales") { set_phase(net, Phase::kFrozen); }
  SECTION("nothing") {}
  const quantrain::test::TemporaryFolder folder;
  save(net, folder / "net.safetensors");
  Sequential other = prepared();
  load(other, folder / "net.safetensors");
  check_same_state(net, other);
  for (Sequential* each : {&net, &other}) train_a_little(*each, {6, 8, 8, 1}, 2);
  check_same_state(net, other);
}

TEST_CASE("frozen learned scales do not change", "[quant][phase]") {
  const Tensor example = random_images({2, 12}, 1);
  QConfig config = QConfig::int4();
  config.model.weight.estimator = Estimator::kLearned;
  config.model.activation.estimator = Estimator::kLearned;
  Sequential net = mlp();
  prepare_qat(net, example, config);
  train_a_little(net, {6, 12}, 2);
  const auto scales = [&] {
    std::vector<std::vector<float>> all;
    for (const NamedState& entry : net.named_parameters()) {
      if (entry.name.ends_with("scale")) all.push_back(values(entry.tensor));
    }
    return all;
  };
  const auto before = scales();
  REQUIRE(before.size() == 3);
  set_phase(net, Phase::kFrozen);
  train_a_little(net, {6, 12}, 2);
  CHECK(scales() == before);
  set_phase(net, Phase::kTraining);
  train_a_little(net, {6, 12}, 2);
  CHECK(scales() != before);
}

TEST_CASE("an invalid phase and invalid integers of a FakeQuantize are refused", "[quant][phase]") {
  FakeQuantize q;
  QUANTRAIN_CHECK_ERROR(
      q.set_phase(Phase::kCalibrating),
      QuantError,
      "calibrating is a scope and cannot be set: use calibrate(net, batches) or Calibration");
  // The buffers refuse what a damaged file may hold; load_parameters() names the file and the
  // entry.
  FakeQuantize given(QParams{{.bits = 8}, -1, {0.5f}, {3}});
  for (const auto& [name, bad] : {std::pair{"phase", 0},
                                  std::pair{"phase", 3},
                                  std::pair{"initialized", -1},
                                  std::pair{"initialized", 3},
                                  std::pair{"zero_point", -1},
                                  std::pair{"zero_point", 256}}) {
    CAPTURE(name, bad);
    IntegerBuffer integers = quantrain::test::entry_of(given.named_buffers(), name).integers;
    CHECK_THROWS_AS(integers.fill(bad), DataError);
  }
  CHECK(given.params().zero_point[0] == 3);
  CHECK(to_string(Phase::kCalibrating) == "calibrating");
  CHECK(to_string(Phase::kTraining) == "training");
  CHECK(to_string(Phase::kFrozen) == "frozen");
}

TEST_CASE("modes of a whole network may end in any order", "[quant][phase]") {
  const Tensor x = random_images({4, 12}, 1);
  Sequential net = mlp();
  const std::vector<float> in_float = values(net(x));
  prepare_ptq(net, x, QConfig::int8());
  calibrate(net, x);
  net.train();
  const std::vector<float> quantized = values(net(x));
  REQUIRE(quantized != in_float);
  const auto check_ends = [&](auto make_first, auto make_second) {
    auto first = make_first();
    auto second = make_second();
    first.reset();
    CHECK(values(net(x)) == (second->is_float ? in_float : quantized));
    second.reset();
    CHECK(values(net(x)) == quantized);
    CHECK(net.training());
  };
  struct InFloat {
    explicit InFloat(Module& module) : mode(module) {}
    FloatMode mode;
    bool is_float = true;
  };
  struct Deployed {
    explicit Deployed(Module& module) : mode(module) {}
    DeployedMode mode;
    bool is_float = false;
  };
  struct Calibrated {
    explicit Calibrated(Module& module) : mode(module) {}
    Calibration mode;
    bool is_float = true;
  };
  const auto in_float_mode = [&] { return std::make_unique<InFloat>(net); };
  const auto deployed = [&] { return std::make_unique<Deployed>(net); };
  const auto calibrated = [&] { return std::make_unique<Calibrated>(net); };
  check_ends(in_float_mode, in_float_mode);
  check_ends(in_float_mode, deployed);
  check_ends(deployed, in_float_mode);
  check_ends(deployed, deployed);
  check_ends(in_float_mode, calibrated);

  // A Calibration that ends within a FloatMode chooses its ranges.
  const Tensor wider = random_images({64, 12}, 2);
  auto calibration = std::make_unique<Calibration>(net);
  auto mode = std::make_unique<FloatMode>(net);
  net(wider);
  calibration.reset();
  CHECK(values(net(x)) == in_float);
  mode.reset();
  CHECK(net.training());
  CHECK(values(net(x)).size() == in_float.size());
}

TEST_CASE("a state with an invalid phase is refused by name", "[quant][phase]") {
  const quantrain::test::TemporaryFolder folder;
  const Tensor x = random_images({4, 12}, 1);
  Sequential net = mlp();
  prepare_ptq(net, x, QConfig::int8());
  save(net, folder / "state");
  for (const int64_t phase : {-1, 0, 3}) {
    TensorFile file = load_safetensors(folder / "state");
    TensorFile changed;
    changed.metadata = file.metadata;
    for (TensorFile::Entry entry : file.entries()) {
      if (entry.name == "0.weight_slot.phase")
        std::memcpy(entry.bytes.data(), &phase, sizeof phase);
      changed.add(entry);
    }
    save_safetensors(folder / "changed", changed);
    QUANTRAIN_CHECK_ERROR(
        load(net, folder / "changed"), DataError, "changed: \"0.weight_slot.phase\"");
  }
}

}  // namespace quantrain::quant
