// quantrain finetune: training with quantization (QAT), with checkpoints, a log and curves.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "framework/autograd/ops/mse_loss.hpp"
#include "framework/core/file.hpp"
#include "framework/core/text_stream.hpp"
#include "framework/optim/adam.hpp"
#include "framework/optim/schedule.hpp"
#include "layers/init.hpp"
#include "layers/network/copy_network.hpp"
#include "layers/training/fit.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/methods/gradual_bits.hpp"
#include "quant/methods/oscillation.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tools/command.hpp"
#include "tools/data.hpp"
#include "tools/flags.hpp"
#include "tools/model.hpp"
#include "tools/output.hpp"
#include "tools/results.hpp"

namespace quantrain::tools {
namespace {

constexpr int64_t kMostCount = 1'000'000'000;

struct FinetuneOptions {
  ModelFlags model;
  DataFlags data;
  TestFlags test;
  BitsFlags bits;
  int64_t epochs = 3;
  int64_t steps = 0;
  int64_t batch = 64;
  double rate = 5e-4;
  int64_t seed = 0;
  int64_t frozen = -1;  ///< as set_frozen() says
  std::string checkpoint;
  int64_t every = 0;
  bool resume = false;
  bool freezes = false;
  std::string log;
  std::string page;
  ResultFlags results;
  Budget budget;
  Common common;
};

/// What the weights depend on. To resume a run, it must be the same as before.
std::string description(const FinetuneOptions& options, const quant::QConfig& config) {
  TextStream text;
  text << "finetune " << options.model.path << " --onnx-outputs " << options.model.onnx.outputs
       << " --onnx-range " << options.model.onnx.range
       << (options.model.onnx.anew ? " --onnx-anew 1" : "") << " --data " << options.data.path
       << " --split " << options.data.split << " --target " << options.data.target << " --columns "
       << options.data.columns << " --layout " << options.data.layout << " --range "
       << options.data.range << " --mean " << options.data.mean << " --deviation "
       << options.data.deviation << " --samples " << options.data.samples << " --epochs "
       << options.epochs << " --steps " << options.steps << " --batch " << options.batch << " --lr "
       << options.rate << " --seed " << options.seed << " --frozen-epochs " << options.frozen
       << (options.freezes ? " --freeze-oscillating 1 " : " ") << config.to_json();
  return std::move(text).str();
}

void check_call(const FinetuneOptions& options) {
  options.budget.check_call();
  if (options.checkpoint.empty() && (options.resume || options.every > 0))
    throw WrongCall(options.resume ? "--resume" : "--checkpoint-every",
                    "needs --checkpoint FOLDER");
  if (options.frozen > options.epochs)
    throw WrongCall("--frozen-epochs", options.frozen, " is more than --epochs ", options.epochs);
}

/// Whether no range and no statistics of batch norms move any more in a prepared network.
bool is_frozen(Network& net) {
  const quant::Plugged plugged(net);
  return std::ranges::all_of(
             plugged.all,
             [](const auto* slot) { return slot->phase() == quant::Phase::kFrozen; }) &&
         std::ranges::all_of(plugged.batch_norms,
                             [](auto* norm) { return norm->folding().frozen.item() == 1; });
}

/// Lets all ranges and batch norms move if the call says in how many passes they do not.
void thaw(const FinetuneOptions& options, Network& net) {
  if (options.frozen < 0 || options.frozen == options.epochs) return;
  quant::set_phase(net, quant::Phase::kTraining);
  quant::freeze_batch_norms(net, false);
}

/// The network to train. One that is prepared already keeps its configuration and phase.
Network network_to_train(const FinetuneOptions& options,
                         const quant::QConfig& config,
                         Model& model,
                         const Samples& training) {
  if (model.kind == Model::Kind::kPrepared) {
    if (options.bits.given())
      throw WrongCall("--bits", kOnlyForFloats, "; ", model.path, " is prepared already");
    Network net = copy(*model.network);
    keep_target(net, training);
    return net;
  }
  if (options.frozen == options.epochs)
    throw WrongCall("--frozen-epochs",
                    options.frozen,
                    " leaves no pass in which ranges move, and a network of floats needs one: "
                    "at most ",
                    options.epochs - 1);
  describe(model, training);
  Network net = copy(*model.network);
  prepare(net, model, config, true);
  return net;
}

DataLoader training_loader(const FinetuneOptions& options, const Parts& parts) {
  return parts.training.loader(Form::kCodes,
                               parts.training_rows,
                               {.batch = options.batch,
                                .shuffle = true,
                                .seed = static_cast<uint64_t>(options.seed),
                                .merge_last = true});
}

/// What happens to the network between steps.
struct Methods {
  std::function<void(int64_t epoch)> lower{};  ///< bits that fall; empty: none do
  int64_t last_bits = 0;                       ///< the first epoch with the last bits
  std::optional<quant::OscillationFreezing> freezing{};
};

/// Passes over the data that the call asks for; the last may be a part.
int64_t passes(const FinetuneOptions& options, int64_t batches) {
  if (options.steps == 0) return options.epochs;
  return std::min(options.epochs, (options.steps - 1) / batches + 1);
}

/// Unless the call says so, ranges and batch norms stay in the last third of the passes, if those
/// before suffice for bits that fall; in all passes if they stay in the network already.
void set_frozen(FinetuneOptions& options, int64_t batches, bool came_frozen, Network& net) {
  if (options.frozen >= 0) return;
  if (came_frozen && quant::bits_to_fall(net) == 0) {
    options.frozen = options.epochs;
    return;
  }
  const int64_t all = passes(options, batches);
  const int64_t moving = quant::bits_to_fall(net) + 1;
  const int64_t last = std::clamp<int64_t>(all - moving, 0, all / 3);
  // --frozen-epochs counts from --epochs, also if --steps ends the run before.
  options.frozen = last == 0 ? 0 : options.epochs - (all - last);
}

/// First bits fall by one at a time, spread over the first half of the epochs in which ranges move.
/// At least one of these has the last bits.
void add_falling_bits(const FinetuneOptions& options,
                      int64_t batches,
                      Network& net,
                      Methods& methods) {
  const int64_t bits = quant::bits_to_fall(net);
  if (bits == 0) return;
  const int64_t needed = bits + 1;
  const int64_t moving = options.epochs - options.frozen;
  if (moving < needed)
    throw WrongCall("--epochs",
                    options.epochs,
                    " are too few: bits fall by ",
                    bits,
                    ", one after each pass, which needs at least ",
                    needed + options.frozen,
                    options.frozen > 0 ? " with these --frozen-epochs" : "");
  if (options.steps > 0 && options.steps < needed * batches)
    throw WrongCall("--steps",
                    options.steps,
                    " are too few: bits fall by ",
                    bits,
                    ", one after each pass of ",
                    batches,
                    " steps, which needs at least ",
                    needed * batches);
  Network trial = copy(net);
  quant::lower_bits(trial, kMostBits);  // throws if a slot is frozen
  const int64_t passes = options.steps > 0 ? std::min(moving, options.steps / batches) : moving;
  const int64_t apart = std::max<int64_t>(1, passes / 2 / bits);
  methods.lower = quant::gradual_bits(net, apart);
  methods.last_bits = bits * apart;
}

FitResult train(const FinetuneOptions& options,
                const quant::QConfig& config,
                const Parts& parts,
                const Methods& methods,
                Model& prepared) {
  Network& net = *prepared.network;
  DataLoader loader = training_loader(options, parts);
  const auto rate = static_cast<float>(options.rate);
  Adam optimizer(net.parameters(), {.learning_rate = rate});
  const bool has_labels = !parts.training.data->labels.empty();
  const auto loss = [&](Batch& batch) {
    const Tensor y = net(batch.input);
    return has_labels ? cross_entropy(y, batch) : mse_loss(y, batch.targets.at(0));
  };
  const int64_t all = options.epochs * loader.batches();
  const int64_t first_frozen = options.epochs - options.frozen;
  FitOptions fitting{.epochs = options.epochs, .steps = options.steps};
  fitting.schedule =
      cosine_schedule(rate, {.steps = options.steps > 0 ? std::min(options.steps, all) : all});
  fitting.begin_epoch = [&](int64_t epoch) {
    if (methods.lower) methods.lower(epoch);
    if (epoch >= first_frozen) quant::freeze(net);
  };
  fitting.evaluate = [&] {
    return evaluate_model(prepared,
                          parts.test.loader(Form::kCodes, parts.test_rows, {.batch = 256}));
  };
  fitting.checkpoints = {.folder = options.checkpoint,
                         .every = options.every,
                         .resume = options.resume,
                         .configuration = description(options, config)};
  if (methods.freezing) {
    quant::OscillationFreezing freezing = *methods.freezing;
    fitting.after_step = freezing.after_step();
    fitting.also = freezing.state();
  }
  fitting.label = options.common.json ? "" : "finetune";
  fitting.log = options.log;
  fitting.page = options.page;
  net.train();
  FitResult result = fit(net, optimizer, loader, loss, fitting);
  net.eval();
  return result;
}

void finetune_model(FinetuneOptions options) {
  options.common.apply();
  check_call(options);
  const quant::QConfig config = options.bits.read();
  check_outputs({{"--output", options.results.output},
                 {"--network", options.results.network},
                 {"--log", options.log},
                 {"--page", options.page}},
                {options.model.path,
                 options.data.path,
                 options.data.target,
                 options.test.path,
                 options.test.target,
                 options.bits.config});
  if (!options.checkpoint.empty()) {
    check_folder(options.checkpoint);
    set_interrupt_hint("; the same call with --resume goes on from the last checkpoint");
  }
  manual_seed(static_cast<uint64_t>(options.seed));
  Model model = open_model(options.model);
  if (model.kind == Model::Kind::kInteger)
    throw DataError(model.path, "holds integers, which do not train: give the network");
  const Parts parts = read_parts(options.data, options.test, model, true);
  if (!parts.training.data->has_targets())
    throw DataError(parts.training.data->path,
                    "has neither labels nor targets: name them with --target");
  if (!parts.test.data->has_targets())
    throw DataError(parts.test.data->path,
                    "has neither labels nor targets: name them with --test-target");
  Model prepared{.path = model.path, .kind = Model::Kind::kPrepared};
  prepared.network =
      std::make_unique<Network>(network_to_train(options, config, model, parts.training));
  if (options.budget.given()) {
    Network trial = prepared_copy(model, config);
    thaw(options, trial);
    if (quant::bits_to_fall(trial) > 0) quant::lower_bits(trial, kMostBits);
    const DeviceSize size = device_size(quant::convert(trial, examples_of(model)));
    options.budget.check(size.ram, size.flash);
  }

  const int64_t batches = training_loader(options, parts).batches();
  const bool came_frozen = is_frozen(*prepared.network);
  const bool stays = came_frozen && options.frozen < 0;
  thaw(options, *prepared.network);
  set_frozen(options, batches, came_frozen, *prepared.network);
  Methods methods;
  add_falling_bits(options, batches, *prepared.network, methods);
  if (options.freezes) methods.freezing.emplace(*prepared.network);

  Report report;
  report.fact("model", model.description());
  add_input(parts.training, report);
  warn_of_saturation(parts, report);
  report.fact("judged_by", parts.test_name);
  const auto judge = [&](const Model& one) {
    return parts.test.loader(form_of(one), parts.test_rows, {.batch = 256});
  };
  add_metrics(evaluate_model(model, judge(model)), "before", report);
  if (stays && options.frozen == options.epochs)
    report.warning(
        "The network's ranges and batch norms came frozen, and stay: --frozen-epochs 0 lets them "
        "move.");
  report.print_warnings();
  const FitResult result = train(options, config, parts, methods, prepared);
  report.fact("epochs", std::ssize(result.epochs));
  report.fact("steps", result.steps);
  report.fact("frozen_epochs",
              std::max<int64_t>(0, passes(options, batches) - (options.epochs - options.frozen)));
  if (!result.epochs.empty()) report.fact("loss", Rounded{result.epochs.back().loss, 4});
  if (methods.lower) report.fact("last_bits_from_epoch", methods.last_bits + 1);
  if (methods.freezing) report.fact("frozen_weights", methods.freezing->frozen());
  if (result.already_finished) report.note("This run had ended before: nothing was trained.");
  Model integers{.path = model.path, .kind = Model::Kind::kInteger};
  integers.integer = integers_of(prepared);
  add_metrics(evaluate_model(integers, judge(integers)), "integer", report);
  options.results.write(*integers.integer, *prepared.network, report);
  if (!options.results.given() && options.checkpoint.empty()) report.note(kNothingWritten);
  print(report, options.common.json, options.common.all);
}

}  // namespace

Run finetune(CLI::App& line) {
  const auto options = std::make_shared<FinetuneOptions>();
  options->model.declare(line);
  options->data.declare(line);
  options->test.declare(line);
  options->bits.declare(line);
  flag(line, "--epochs", options->epochs, 1, kMostCount, "passes over the data (default 3)");
  flag(line, "--steps", options->steps, 1, kMostCount, "stop after N steps");
  flag(line, "--batch", options->batch, 1, kMostCount, "samples in a step (default 64)");
  flag(line, "--lr", options->rate, "learning rate of Adam at the start (default 0.0005)");
  flag(line, "--seed", options->seed, 0, kMostCount, "of the samples' order (default 0)");
  flag(line,
       "--frozen-epochs",
       options->frozen,
       0,
       kMostCount,
       "ranges and batch norms stay in the last N passes (default: a third, or all if they came "
       "frozen)");
  line.add_flag("--freeze-oscillating",
                options->freezes,
                "freeze weights that jump to and fro between two codes; needs learned scales");
  flag(line, "--checkpoint", options->checkpoint, "FOLDER", "keep checkpoints there");
  flag(
      line, "--checkpoint-every", options->every, 1, kMostCount, "a checkpoint every N steps, too");
  line.add_flag("--resume", options->resume, "go on from the last checkpoint, if there is one");
  flag(line, "--log", options->log, "FILE", "a line of JSON for each pass");
  flag(line, "--page", options->page, "FILE", "curves, as an HTML page");
  options->results.declare(line, "the trained network, prepared");
  options->budget.declare(line);
  options->common.declare(line);
  example(line,
          "  quantrain finetune network.onnx --data images/ --bits 4 --epochs 5 --checkpoint run "
          "--output model.safetensors");
  return [options] { finetune_model(*options); };
}

}  // namespace quantrain::tools
