#include "examples/common/program.hpp"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <iostream>
#include <span>
#include "framework/core/text_stream.hpp"

#include "examples/common/report.hpp"
#include "examples/common/training.hpp"
#include "framework/autograd/node.hpp"
#include "framework/core/cpu.hpp"
#include "framework/core/file.hpp"
#include "framework/core/parallel.hpp"
#include "layers/evaluation_mode.hpp"
#include "layers/init.hpp"
#include "layers/state.hpp"
#include "layers/summary.hpp"
#include "quant/analysis/parity.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/training/prepare.hpp"
#include "quant/training/scopes.hpp"

namespace quantrain::examples {
namespace {

int64_t float_bytes(const Module& net) {
  int64_t bytes = 0;
  for (const NamedTensor& entry : state(net))
    bytes += entry.tensor.elements() * static_cast<int64_t>(sizeof(float));
  return bytes;
}

/// The first n test images, from the start again where there are not as many.
std::vector<uint8_t> first_images(const Dataset& images, int64_t n) {
  std::vector<uint8_t> bytes;
  for (int64_t i = 0; i < n; ++i) {
    const auto image = images.image(i % images.size());
    bytes.insert(bytes.end(), image.begin(), image.end());
  }
  return bytes;
}

CallTimes time_float(Module& net, const Dataset& images, int calls) {
  const EvaluationMode evaluation(net);
  const NoGrad no_grad;
  Tensor input;
  return time_calls(calls, [&](int64_t batch) {
    if (!input.defined() || input.dim(0) != batch)
      input = images.to_tensor(first_images(images, batch));
    net(input);
  });
}

CallTimes time_integer(const IntegerModel& model, const Dataset& images, int calls) {
  constexpr int64_t kLargest = CallTimes::kBatches[2];
  const std::vector<uint8_t> input = first_images(images, kLargest);
  std::vector<int32_t> classes(kLargest);
  return time_calls(calls, [&](int64_t batch) {
    const auto n = static_cast<size_t>(batch);
    const size_t bytes = n * input.size() / static_cast<size_t>(kLargest);
    model.classify(std::span(input).first(bytes), std::span(classes).first(n));
  });
}

/// Accuracy of what a prepared network becomes when it is deployed.
double deployed_accuracy(Module& net, const Dataset& images) {
  const quant::DeployedMode deployed(net);
  return accuracy(net, images);
}

/// Lets the observers of a prepared network see some training images.
void calibrate(Module& net, const Dataset& images) {
  constexpr int64_t kImages = 2048;
  const Dataset some = images.first(std::min(kImages, images.size()));
  quant::calibrate(net, DataLoader(some, {.batch = kEvaluationBatch}));
}

/// What must be as before for a run to be resumed: all that the weights depend on.
std::string configuration(const Program& program, const Flags& flags) {
  TextStream text;
  text << program.name << " --data " << flags.data << " --epochs " << flags.epochs
       << " --qat-epochs " << flags.qat_epochs << " --frozen-epochs " << flags.frozen_epochs
       << " --batch " << flags.batch << " --lr " << flags.learning_rate << " --qat-lr "
       << flags.qat_learning_rate << " --seed " << flags.seed << " --shift " << flags.shift
       << " --limit " << flags.limit << " --weight-bits " << flags.weight_bits
       << " --activation-bits " << flags.activation_bits;
  return text.str();
}

/// Where a training keeps checkpoints and log.
TrainingOptions stage(const Program& program,
                      const Flags& flags,
                      const std::string& label,
                      const Dataset& test_images) {
  TrainingOptions options{.label = label};
  if (!flags.checkpoint.empty()) {
    options.checkpoints = {.folder = flags.checkpoint + '/' + label,
                           .every = flags.checkpoint_every,
                           .resume = flags.resume,
                           .configuration = configuration(program, flags)};
  }
  if (!flags.log.empty()) {
    std::filesystem::create_directories(flags.log);
    options.evaluated = &test_images;
    options.log = flags.log + '/' + label + ".jsonl";
    options.page = flags.log + '/' + label + ".html";
  }
  return options;
}

void train_and_convert(const Program& program,
                       const Flags& flags,
                       const std::function<Sequential()>& network) {
  set_threads(flags.threads);
  manual_seed(flags.seed);
  Dataset train_images = Dataset::mnist(flags.data, Split::kTrain);
  const Dataset test_images = Dataset::mnist(flags.data, Split::kTest);
  const Shape& image = train_images.image_shape();
  if (flags.shift >= std::min(image[0], image[1])) {
    throw DataError("flags", "--shift ", flags.shift, " can move all of an image ", image, " away");
  }
  if (flags.limit > 0) train_images = train_images.first(flags.limit);
  const Tensor example = train_images.batch(0, 1).images;
  const quant::QConfig config = quant::QConfig::bits(flags.weight_bits, flags.activation_bits);
  DataLoader loader(train_images,
                    {.batch = flags.batch,
                     .shuffle = true,
                     .seed = flags.seed,
                     .augment = flags.shift > 0 ? random_shift(flags.shift) : nullptr});

  Report report;
  report.model = program.name;
  report.dataset = dataset_name(flags.data);
  report.threads = threads();
  report.seed = flags.seed;
  report.batch = flags.batch;
  report.isa = isa_name(chosen_isa());
  report.integer.weight_bits = flags.weight_bits;
  report.integer.activation_bits = flags.activation_bits;

  Sequential net = network();
  std::cout << summary(net, example) << std::flush;
  TrainingOptions training = stage(program, flags, "float", test_images);
  training.epochs = flags.epochs;
  training.learning_rate = flags.learning_rate;
  report.trained.seconds_per_epoch = train(net, loader, training);
  report.trained.accuracy = accuracy(net, test_images);
  report.trained.size_bytes = float_bytes(net);
  report.float_times = time_float(net, test_images, flags.timing_calls);

  // Quantization after training: a copy whose observers have seen some images.
  Sequential ptq_net = network();
  copy_state(net, ptq_net);
  quant::prepare_ptq(ptq_net, example, config);
  calibrate(ptq_net, train_images);
  report.ptq.accuracy = deployed_accuracy(ptq_net, test_images);

  // Quantization while training on: another copy, from the same weights.
  Sequential qat_net = network();
  copy_state(net, qat_net);
  quant::prepare_qat(qat_net, example, config);
  std::cout << quant::plan(qat_net, example);
  training = stage(program, flags, "QAT", test_images);
  training.epochs = flags.qat_epochs;
  training.first_epoch = flags.epochs;
  training.learning_rate = flags.qat_learning_rate;
  training.begin_epoch = [&](int64_t epoch) {
    if (epoch >= flags.qat_epochs - flags.frozen_epochs) quant::freeze(qat_net);
  };
  report.qat.seconds_per_epoch = train(qat_net, loader, training);
  report.qat.accuracy = deployed_accuracy(qat_net, test_images);

  const IntegerModel model = quant::convert(qat_net, example);
  report.integer.accuracy = accuracy(model, test_images);
  report.integer.size_bytes = model.size_bytes();
  report.integer.times = time_integer(model, test_images, flags.timing_calls);

  report.parity =
      quant::verify_parity(qat_net, model, DataLoader(test_images, {.batch = kEvaluationBatch}));

  std::cout << report << std::flush;
  if (!flags.save.empty()) model.save(flags.save);
  if (!flags.report.empty()) write_file(flags.report, to_json(report));
}

}  // namespace

int run(int argc,
        const char* const* argv,
        const Program& program,
        const std::function<Sequential()>& network) {
  try {
    const std::optional<Flags> flags =
        parse_flags(argc, argv, program.description, program.defaults);
    if (flags) train_and_convert(program, *flags, network);
    return 0;
  } catch (const std::exception& error) {
    std::string text = error.what();
    std::replace(text.begin(), text.end(), '\n', ' ');
    std::cout << std::flush;
    std::cerr << program.name << ": " << text << '\n';
    return 1;
  }
}

}  // namespace quantrain::examples
