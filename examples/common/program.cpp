#include "examples/common/program.hpp"

#include <algorithm>
#include <exception>
#include <iostream>
#include <map>
#include <span>

#include "examples/common/ranks.hpp"
#include "examples/common/report.hpp"
#include "examples/common/training.hpp"
#include "framework/autograd/node.hpp"
#include "framework/core/cpu.hpp"
#include "framework/core/file.hpp"
#include "framework/core/parallel.hpp"
#include "framework/core/path.hpp"
#include "framework/core/text_stream.hpp"
#include "layers/evaluate.hpp"
#include "layers/evaluation_mode.hpp"
#include "layers/init.hpp"
#include "layers/network/network_file.hpp"
#include "layers/network/trace.hpp"
#include "layers/state.hpp"
#include "layers/summary.hpp"
#include "quant/analysis/parity.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"

namespace quantrain::examples {
namespace {

int64_t float_bytes(const Module& net) {
  int64_t bytes = 0;
  for (const NamedState& entry : state(net)) bytes += std::ssize(entry.bytes());
  return bytes;
}

DataLoader evaluation(const std::shared_ptr<const BatchSource>& samples) {
  return DataLoader(samples, {.batch = kEvaluationBatch});
}

/// The first n test samples, as codes and as floats that carry these codes. If there are fewer than
/// n, they repeat.
struct TimedInput {
  std::vector<uint8_t> bytes;
  Tensor input;

  TimedInput(const Task& task, int64_t n) {
    const BatchSource::Reader read = task.test->read({});
    const int64_t samples = task.test->samples().value();
    std::vector<int64_t> indices;
    for (int64_t i = 0; i < n; ++i) indices.push_back(i % samples);
    const Batch batch = read(indices);
    const auto codes = batch.bytes();
    bytes.assign(codes.begin(), codes.end());
    input = batch.input;
  }
};

CallTimes time_float(Module& net, const Task& task, int calls) {
  const EvaluationMode mode(net);
  const NoGrad no_grad;
  std::map<int64_t, TimedInput> inputs;
  return time_calls(calls, [&](int64_t batch) {
    net(inputs.try_emplace(batch, task, batch).first->second.input);
  });
}

CallTimes time_integer(const IntegerModel& model, const Task& task, int calls) {
  constexpr int64_t kLargest = CallTimes::kBatches[2];
  const TimedInput input(task, kLargest);
  std::vector<int32_t> y(static_cast<size_t>(kLargest * model.output_size()));
  return time_calls(calls, [&](int64_t batch) {
    const auto part = [&](size_t all) {
      return all * static_cast<size_t>(batch) / static_cast<size_t>(kLargest);
    };
    model.run_codes(std::span(input.bytes).first(part(input.bytes.size())),
                    std::span(y).first(part(y.size())));
  });
}

/// Score of a prepared network in deployed mode.
double deployed_score(Module& net, const Task& task) {
  const quant::DeployedMode deployed(net);
  return task.score(predict(net, evaluation(task.test)));
}

/// All settings that the weights depend on. To resume a run, they must be the same as before.
std::string configuration(const Program& program, const Flags& flags, const Task& task) {
  TextStream text;
  text << program.name << " --data " << flags.data << " --epochs " << flags.epochs
       << " --qat-epochs " << flags.qat_epochs << " --frozen-epochs " << flags.frozen_epochs
       << " --batch " << flags.batch << " --lr " << flags.learning_rate << " --qat-lr "
       << flags.qat_learning_rate << " --seed " << flags.seed << " --limit " << flags.limit
       << " --weight-bits " << flags.weight_bits << " --activation-bits " << flags.activation_bits
       << ' ' << task.settings;
  if (flags.shards > 1) text << " --shards " << flags.shards;
  return text.str();
}

/// Options of one training: ranks, loss, checkpoints and log.
TrainingOptions stage(const Program& program,
                      const Flags& flags,
                      const std::string& label,
                      Module& net,
                      const Task& task,
                      Communicator* ranks) {
  TrainingOptions options{.label = label, .shards = flags.shards, .ranks = ranks};
  options.loss = task.loss;
  if (!flags.checkpoint.empty()) {
    options.checkpoints = {.folder = flags.checkpoint + '/' + label,
                           .every = flags.checkpoint_every,
                           .resume = flags.resume,
                           .configuration = configuration(program, flags, task)};
  }
  if (!flags.log.empty()) {
    make_folders(flags.log);
    options.evaluate = [&] {
      return Metrics{{task.score_name, task.score(predict(net, evaluation(task.test)))}};
    };
    options.log = flags.log + '/' + label + ".jsonl";
    options.page = flags.log + '/' + label + ".html";
  }
  return options;
}

Report first_lines(const Program& program, const Flags& flags, const Task& task) {
  Report report;
  report.model = program.name;
  report.dataset = task.dataset;
  report.score = task.score_name;
  report.threads = threads();
  report.seed = flags.seed;
  report.batch = flags.batch;
  report.isa = isa_name(chosen_isa());
  report.integer.weight_bits = flags.weight_bits;
  report.integer.activation_bits = flags.activation_bits;
  return report;
}

/// Score of a float network that is trained in the same way, from the same initial weights, on the
/// inputs before they became codes.
double float_inputs_score(const Program& program,
                          const Flags& flags,
                          const Task& task,
                          Communicator* ranks) {
  manual_seed(flags.seed);
  Sequential net = program.network(task);
  DataLoader loader(
      task.float_inputs->training,
      {.batch = flags.batch, .shuffle = true, .seed = flags.seed, .augment = task.augment});
  TrainingOptions training = stage(program, flags, "float inputs", net, task, ranks);
  training.evaluate = nullptr;
  training.epochs = flags.epochs;
  training.learning_rate = flags.learning_rate;
  train(net, loader, training);
  return task.float_inputs->score(predict(net, evaluation(task.float_inputs->test)));
}

/// Of several ranks, all train, and the first does everything else.
void train_and_convert(const Program& program, const Flags& flags, Communicator* ranks) {
  const bool is_first = ranks == nullptr || ranks->is_first();
  set_threads(flags.threads);
  manual_seed(flags.seed);
  const Task task = program.task(flags);
  const quant::QConfig config = quant::QConfig::bits(flags.weight_bits, flags.activation_bits);
  DataLoader loader(
      task.training,
      {.batch = flags.batch, .shuffle = true, .seed = flags.seed, .augment = task.augment});
  Report report = first_lines(program, flags, task);

  Sequential net = program.network(task);
  if (is_first) std::cout << summary(net, task.example) << std::flush;
  TrainingOptions training = stage(program, flags, "float", net, task, ranks);
  training.epochs = flags.epochs;
  training.learning_rate = flags.learning_rate;
  report.trained.seconds_per_epoch = train(net, loader, training);
  if (is_first) {
    report.trained.accuracy = task.score(predict(net, evaluation(task.test)));
    report.trained.size_bytes = float_bytes(net);
    report.float_times = time_float(net, task, flags.timing_calls);
  }
  if (task.float_inputs) report.float_inputs = float_inputs_score(program, flags, task, ranks);

  // Quantization after training: calibrates a copy on some samples.
  Sequential ptq_net = program.network(task);
  if (is_first) {
    copy_state(net, ptq_net);
    quant::prepare_ptq(ptq_net, task.example, config);
    quant::calibrate(ptq_net, evaluation(task.calibration));
    report.ptq.accuracy = deployed_score(ptq_net, task);
  }

  // Quantization during further training: another copy, from the same weights.
  Sequential qat_net = program.network(task);
  copy_state(net, qat_net);
  quant::prepare_qat(qat_net, task.example, config);
  if (is_first) std::cout << quant::plan(qat_net, task.example);
  training = stage(program, flags, "QAT", qat_net, task, ranks);
  training.epochs = flags.qat_epochs;
  training.first_epoch = flags.epochs;
  training.learning_rate = flags.qat_learning_rate;
  training.begin_epoch = [&](int64_t epoch) {
    if (epoch >= flags.qat_epochs - flags.frozen_epochs) quant::freeze(qat_net);
  };
  report.qat.seconds_per_epoch = train(qat_net, loader, training);
  if (!is_first) return;
  if (ranks != nullptr)
    std::cout << "rank 0 of " << ranks->size() << " sent " << ranks->bytes_sent() << " bytes\n";
  report.qat.accuracy = deployed_score(qat_net, task);

  const IntegerModel model = quant::convert(qat_net, task.example);
  report.integer.accuracy = task.score(predict(model, evaluation(task.test)));
  report.integer.size_bytes = model.size_bytes();
  report.integer.memory_bytes = model.memory(1);
  report.integer.times = time_integer(model, task, flags.timing_calls);
  report.parity = quant::verify_parity(qat_net, model, evaluation(task.test));

  std::cout << report << std::flush;
  std::map<std::string, std::string> metadata;
  if (task.deploy) metadata = task.deploy(model);
  if (!flags.save.empty()) model.save(flags.save, metadata);
  if (!flags.network.empty()) save_network(trace(qat_net, task.example), flags.network);
  if (!flags.report.empty()) write_file(flags.report, to_json(report));
}

}  // namespace

int run(int argc, const char* const* argv, const Program& program) {
  std::unique_ptr<Communicator> ranks;
  try {
    const std::optional<Flags> flags = parse_flags(argc, argv, program.line);
    if (!flags) return 0;
    ranks = launched_ranks();
    train_and_convert(program, *flags, ranks.get());
    return 0;
  } catch (const std::exception& error) {
    if (ranks != nullptr) {
      ranks->fail(error.what());
      // Of those that only heard of it, one is enough.
      if (!ranks->is_first() && dynamic_cast<const DistributedError*>(&error) != nullptr) return 1;
    }
    std::string text = error.what();
    std::replace(text.begin(), text.end(), '\n', ' ');
    std::cout << std::flush;
    std::cerr << program.name << ": " << text << '\n';
    return 1;
  }
}

}  // namespace quantrain::examples
