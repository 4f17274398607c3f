#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/autograd/ops.hpp"
#include "framework/autograd/tensor_access.hpp"
#include "framework/core/parallel.hpp"
#include "framework/io/safetensors.hpp"
#include "framework/metrics/evaluation.hpp"
#include "framework/metrics/metrics.hpp"
#include "framework/metrics/regression.hpp"
#include "framework/optim/adam.hpp"
#include "framework/optim/averaging.hpp"
#include "framework/optim/clip.hpp"
#include "framework/optim/rmsprop.hpp"
#include "framework/optim/sgd.hpp"
#include "layers/layers.hpp"
#include "layers/network/trace.hpp"
#include "layers/normalization.hpp"
#include "layers/pytorch_weights.hpp"
#include "layers/state.hpp"
#include "layers/training/epoch_log.hpp"
#include "quant/methods/gradual_bits.hpp"
#include "quant/observers/spec.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/catch.hpp"
#include "tests/faults/allocations.hpp"
#include "tests/quant/networks.hpp"
#include "tests/state_bytes.hpp"
#include "tests/temporary_folder.hpp"

// Every call whose docstring promises that an error changes nothing keeps the promise if memory
// runs out, at whichever allocation.
namespace quantrain {

using test::bytes_of;
using test::FailingAllocation;
using test::kPointStep;
using test::TemporaryFolder;

namespace {

struct OneThread {
  OneThread() { set_threads(1); }
  ~OneThread() { set_threads(0); }
};

/// A call that either is done or changes nothing.
struct Promise {
  std::function<void()> begin;  ///< (re)makes what the call changes
  std::function<void()> call;
  std::function<std::string()> seen;  ///< everything that the call may change
};

/// Makes each allocation of the call fail, alone and with all later ones, and looks after each.
void check_promise(const std::string& name, const Promise& promise, int64_t least) {
  const auto state = [&] {
    promise.begin();
    const std::string before = promise.seen();
    promise.call();
    return std::pair(before, promise.seen());
  };
  state();  // the first call makes objects that stay alive
  const auto [before, done] = state();
  INFO(name);
  REQUIRE(before != done);
  int64_t points = 0;
  for (const bool all : {false, true}) {
    for (int64_t point = 0;; point += kPointStep) {
      promise.begin();
      bool happened = false;
      bool threw = false;
      try {
        const FailingAllocation failing(point, all);
        promise.call();
        happened = failing.happened();
      } catch (const std::bad_alloc&) {
        threw = true;
      } catch (const Error&) {
        threw = true;
      }
      if (!happened && !threw) break;
      ++points;
      const std::string now = promise.seen();
      if (now == (threw ? before : done)) continue;
      FAIL_CHECK("allocation " << point << (all ? " and later" : "")
                               << " left something half done");
      return;
    }
  }
  INFO(points << " allocations failed");
  CHECK(points >= least / kPointStep);
}

/// The state of a network, and what is plugged into it.
std::string all_of(Module& net) {
  std::string all = bytes_of(state(net));
  for (const NamedModule& entry : net.named_modules()) {
    const Slots& slots = entry.module->slots();
    all += std::to_string(slots.inputs.size());
    all += slots.weight ? 'w' : '-';
    all += slots.body ? 'b' : '-';
    all += slots.output ? 'o' : '-';
    all += slots.preparation ? 'p' : '-';
    all += entry.module->training() ? 't' : 'e';
    all += std::to_string(slots.folded_weight.size());
  }
  return all;
}

/// Copies of a network's values.
struct Kept {
  std::vector<NamedState> all;
  std::vector<NamedState> copies;

  explicit Kept(std::vector<NamedState> entries) : all(std::move(entries)) {
    for (const NamedState& entry : all) copies.push_back(entry.copy());
  }
  void restore() {
    for (size_t i = 0; i < all.size(); ++i) all[i].copy_values(copies[i]);
  }
};

}  // namespace

TEST_CASE("clipped gradients are all clipped or none", "[faults][serial]") {
  const OneThread one_thread;
  std::vector<Tensor> parameters;
  for (int i = 0; i < 8; ++i) parameters.push_back(Tensor::full({3, 5}, 1.0f));
  const auto begin = [&] {
    for (Tensor& parameter : parameters) parameter.set_grad(Tensor::full({3, 5}, 2.0f));
  };
  const auto seen = [&] {
    std::string all;
    for (const Tensor& parameter : parameters) all += bytes_of(parameter.grad());
    return all;
  };
  check_promise("clip_grad_norm", {begin, [&] { clip_grad_norm(parameters, 0.5f); }, seen}, 20);
  check_promise("clip_grad_value", {begin, [&] { clip_grad_value(parameters, 0.5f); }, seen}, 20);
}

TEST_CASE("a network is prepared whole or not at all", "[faults][serial][recorded]") {
  const OneThread one_thread;
  const Tensor x = quant::test::random_images({2, 8, 8, 1}, 1);
  std::unique_ptr<Sequential> net;
  const auto begin = [&] {
    manual_seed(1);
    net = std::make_unique<Sequential>(quant::test::conv_net());
  };
  const auto seen = [&] {
    std::string all = all_of(*net);
    for (const NamedState& entry : net->named_parameters())
      all += TensorAccess::companions(entry.tensor) == nullptr ? '-' : 'c';
    return all;
  };
  for (const bool learned : {false, true}) {
    quant::QConfig config = quant::QConfig::int8();
    if (learned) config.model.activation.estimator = quant::Estimator::kLearned;
    check_promise("prepare_qat", {begin, [&] { quant::prepare_qat(*net, x, config); }, seen}, 1000);
  }
  check_promise("prepare_ptq",
                {begin, [&] { quant::prepare_ptq(*net, x, quant::QConfig::int8()); }, seen},
                1000);
}

TEST_CASE("ranges are calibrated with a whole batch or not at all", "[faults][serial]") {
  const OneThread one_thread;
  manual_seed(1);
  Sequential net = quant::test::mlp();
  const Tensor x = quant::test::random_images({4, 12}, 1);
  quant::prepare_ptq(net, x, quant::QConfig::int8());
  quant::calibrate(net, x);
  const Tensor other = quant::test::random_images({4, 12}, 2);
  Kept kept(state(net));
  check_promise(
      "calibrate",
      {[&] { kept.restore(); }, [&] { quant::calibrate(net, other); }, [&] { return all_of(net); }},
      50);
}

TEST_CASE("an observer counts a whole batch or nothing", "[faults][serial]") {
  const OneThread one_thread;
  const Tensor x = quant::test::random_normal({6, 4}, 1);
  const Tensor y = quant::test::random_normal({6, 4}, 2, 3.0f);
  const std::vector<quant::ObserverSpec> specs{quant::MinMaxOptions{},
                                               quant::RecentMinMaxOptions{},
                                               quant::MovingAverageOptions{},
                                               quant::PercentileOptions{},
                                               quant::MeanStdOptions{},
                                               quant::HistogramOptions{},
                                               quant::EntropyOptions{}};
  for (const quant::ObserverSpec& spec : specs) {
    const auto observer = quant::make_observer(spec);
    observer->observe(x);
    Kept kept(observer->state());
    check_promise(std::string(observer->kind()),
                  {[&] { kept.restore(); },
                   [&] { observer->observe(y); },
                   [&] { return bytes_of(observer->state()); }},
                  0);
  }
  quant::FakeQuantize quantize(quant::FakeQuantizeConfig::q8());
  quantize.calibrate(x);
  Kept kept(state(quantize));
  check_promise("FakeQuantize::calibrate",
                {[&] { kept.restore(); },
                 [&] { quantize.calibrate(y); },
                 [&] { return bytes_of(state(quantize)); }},
                1);
}

TEST_CASE("bits fall in all slots or in none", "[faults][serial]") {
  const OneThread one_thread;
  const Tensor x = quant::test::random_images({4, 12}, 1);
  for (const auto estimator : {quant::Estimator::kClamped, quant::Estimator::kLearned}) {
    manual_seed(1);
    Sequential net = quant::test::mlp();
    quant::QConfig config = quant::QConfig::bits(4, 4);
    config.model.weight.estimator = estimator;
    config.model.weight.first_bits = 8;
    config.model.activation.estimator = estimator;
    config.model.activation.first_bits = 8;
    quant::prepare_qat(net, x, config);
    quant::calibrate(net, x);
    Kept kept(state(net));
    check_promise(
        "lower_bits",
        {[&] { kept.restore(); }, [&] { quant::lower_bits(net, 2); }, [&] { return all_of(net); }},
        20);

    quant::FakeQuantizeConfig activations = quant::FakeQuantizeConfig::q4();
    activations.estimator = estimator;
    activations.first_bits = 8;
    quant::FakeQuantize slot(activations);
    slot.calibrate(x);
    Kept kept_slot(state(slot));
    check_promise("FakeQuantize::lower_bits",
                  {[&] { kept_slot.restore(); },
                   [&] { slot.lower_bits(2); },
                   [&] { return bytes_of(state(slot)); }},
                  5);
  }
}

TEST_CASE("metrics count a whole batch or nothing", "[faults][serial]") {
  const OneThread one_thread;
  const Tensor scores = quant::test::random_normal({6, 3}, 1);
  const Tensor numbers = quant::test::random_normal({6, 3}, 2);
  Batch labelled;
  labelled.labels = {0, 1, 2, 0, 1, 2};
  Batch with_target;
  with_target.targets = {numbers};
  for (const Batch* batch : {&labelled, &with_target}) {
    for (const bool is_first : {true, false}) {
      std::unique_ptr<Evaluation> evaluation;
      const auto begin = [&] {
        evaluation = std::make_unique<Evaluation>();
        if (!is_first) evaluation->add(scores, *batch);
      };
      const auto seen = [&]() -> std::string {
        // One more batch, so that sums and counts show.
        Evaluation copy = *evaluation;
        copy.add(quant::test::random_normal({6, 3}, 3), *batch);
        std::string all;
        for (const auto& [name, value] : copy.metrics()) {
          all += name;
          all.append(reinterpret_cast<const char*>(&value), sizeof value);
        }
        return all;
      };
      check_promise("Evaluation", {begin, [&] { evaluation->add(scores, *batch); }, seen}, 1);
    }
  }
  std::unique_ptr<ConfusionMatrix> matrix;
  check_promise("ConfusionMatrix",
                {[&] { matrix = std::make_unique<ConfusionMatrix>(3); },
                 [&] { matrix->add(scores, labelled.labels); },
                 [&] { return std::to_string(matrix->total()); }},
                1);
  std::unique_ptr<RegressionErrors> errors;
  check_promise(
      "RegressionErrors",
      {[&] { errors = std::make_unique<RegressionErrors>(); },
       [&] { errors->add(scores, numbers); },
       [&] { return std::to_string(errors->count()) + ' ' + std::to_string(errors->outputs()); }},
      1);
}

TEST_CASE("an optimizer's first step is done fully or not at all", "[faults][serial]") {
  const OneThread one_thread;
  std::vector<Tensor> parameters;
  for (int i = 0; i < 4; ++i) {
    parameters.push_back(Tensor::full({3, 5}, 1.0f));
    parameters.back().set_requires_grad(true);
  }
  std::unique_ptr<Optimizer> optimizer;
  const auto promise = [&](auto make) -> Promise {
    return {[&, make] {
              for (Tensor& parameter : parameters) {
                std::fill_n(parameter.mutable_data(), 15, 1.0f);
                parameter.set_grad(Tensor::full({3, 5}, 0.5f));
              }
              optimizer = make();
            },
            [&] { optimizer->step(); },
            [&] {
              std::string all = bytes_of(optimizer->state());
              for (const Tensor& parameter : parameters) all += bytes_of(parameter);
              return all;
            }};
  };
  check_promise("Sgd",
                promise([&] {
                  return std::make_unique<Sgd>(parameters,
                                               SgdOptions{.learning_rate = 0.1f, .momentum = 0.9f});
                }),
                0);
  check_promise("Adam", promise([&] { return std::make_unique<Adam>(parameters); }), 0);
  check_promise("RmsProp", promise([&] { return std::make_unique<RmsProp>(parameters); }), 0);
}

TEST_CASE("weights are loaded, copied and folded whole or not at all",
          "[faults][serial][recorded]") {
  const OneThread one_thread;
  const TemporaryFolder folder;
  manual_seed(1);
  Sequential from = quant::test::conv_net();
  Sequential to = quant::test::conv_net();
  const Tensor x = quant::test::random_images({2, 8, 8, 1}, 1);
  Kept kept(state(to));
  const auto promise = [&](auto call) -> Promise {
    return {[&] {
              kept.restore();
              for (const NamedModule& entry : to.named_modules())
                entry.module->slots().folded_weight.clear();
            },
            call,
            [&] { return all_of(to); }};
  };
  check_promise("copy_state", promise([&] { copy_state(from, to); }), 5);
  save(from, folder / "state");
  check_promise("load", promise([&] { load(to, folder / "state"); }), 100);

  TensorFile pytorch;
  for (const NamedState& entry : state(from)) {
    Shape shape = entry.shape();
    if (shape.rank() == 4) shape = Shape{shape[0], shape[3], shape[1], shape[2]};
    const Floats values = entry.tensor.floats();
    pytorch.add<float>(
        entry.name, shape, std::span(values.data(), static_cast<size_t>(values.size())));
  }
  save_safetensors(folder / "pytorch", pytorch);
  check_promise("load_pytorch", promise([&] { load_pytorch(to, x, folder / "pytorch"); }), 100);

  manual_seed(2);
  Sequential with_bias{Conv2d{1, 2, {.kernel = 3}}, Flatten{}, Linear{72, 2}};
  Kept biased(state(with_bias));
  check_promise("fold_normalization",
                {[&] {
                   biased.restore();
                   for (const NamedModule& entry : with_bias.named_modules())
                     std::vector<float>().swap(entry.module->slots().folded_weight);
                 },
                 [&] { fold_normalization(with_bias, x, {.mean = {0.5f}, .deviation = {0.25f}}); },
                 [&] { return all_of(with_bias); }},
                50);
}

TEST_CASE("a module that is traced stays as it was", "[faults][serial][recorded]") {
  const OneThread one_thread;
  manual_seed(1);
  Sequential net = quant::test::conv_net();
  const Tensor x = quant::test::random_images({2, 8, 8, 1}, 1);
  const std::string before = all_of(net);
  int traced = 0;
  check_promise("trace",
                {[&] { traced = 0; },
                 [&] {
                   const Network network = trace(net, x);
                   ++traced;
                 },
                 [&] { return all_of(net) + std::to_string(traced); }},
                200);
  CHECK(all_of(net) == before);
}

TEST_CASE("averages take a network's place whole or not at all", "[faults][serial]") {
  const OneThread one_thread;
  manual_seed(1);
  Sequential net = quant::test::mlp();
  ExponentialAverage average(net.parameters());
  average.update();
  for (Tensor& parameter : net.parameters()) parameter.mutable_data()[0] += 1.0f;
  std::unique_ptr<AveragedWeights> scope;
  check_promise("AveragedWeights",
                {[&] { scope.reset(); },
                 [&] { scope = std::make_unique<AveragedWeights>(average); },
                 [&] { return all_of(net); }},
                4);
}

TEST_CASE("a log gets a whole line or none", "[faults][serial]") {
  const TemporaryFolder folder;
  std::unique_ptr<EpochLog> log;
  check_promise("EpochLog",
                {[&] {
                   log = std::make_unique<EpochLog>(folder / "log");
                   log->add({.epoch = 0});
                 },
                 [&] { log->add({.epoch = 1}); },
                 [&] {
                   const std::vector<uint8_t> bytes = test::read_bytes(folder / "log");
                   return std::string(bytes.begin(), bytes.end());
                 }},
                3);
}

}  // namespace quantrain
