#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>

#include "examples/common/flags.hpp"
#include "examples/common/report.hpp"
#include "examples/common/training.hpp"
#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/add.hpp"
#include "framework/autograd/ops/cross_entropy.hpp"
#include "framework/autograd/ops/distillation_loss.hpp"
#include "framework/autograd/ops/mul.hpp"
#include "framework/core/parallel.hpp"
#include "framework/data/transforms.hpp"
#include "framework/metrics/evaluate.hpp"
#include "layers/evaluate.hpp"
#include "layers/init.hpp"
#include "layers/state.hpp"
#include "quant/lowering/convert.hpp"
#include "quant/methods/adaround.hpp"
#include "quant/methods/method.hpp"
#include "quant/methods/weight_ranges.hpp"
#include "quant/prepare/prepare.hpp"
#include "quant/prepare/scopes.hpp"
#include "tests/proofs/proofs.hpp"
#include "tests/proofs/results.hpp"
#include "tests/proofs/table_networks.hpp"
#include "tests/temporary_folder.hpp"

namespace quantrain::proofs {
namespace {

using Json = Results::Json;

/// Bits of weights and activations in all layers but the input, which has 8, unless
/// TableNetwork::configure says otherwise.
struct Width {
  const char* name;
  int weights;
  int activations;
  float learning_rate;                                 ///< in QAT, at the start
  std::optional<quant::WeightFunction> function = {};  ///< in QAT
};
constexpr Width kWidths[] = {{"W8A8", 8, 8, 5e-4f},
                             {"W4A8", 4, 8, 1e-3f},
                             {"W4A4", 4, 4, 1e-3f},
                             {"W3A3", 3, 3, 2e-3f},
                             {"W2A2", 2, 2, 2e-3f},
                             {"ternary", 2, 2, 2e-3f, quant::Ternary{}},
                             {"W1A1", 1, 1, 2e-3f, quant::Binary{}}};

/// How a network gets its integers.
struct Way {
  const char* key;
  const char* title;
  bool improves = false;
  int64_t times = 0;  ///< QAT of so many times the network's epochs; 0: PTQ
  /// The loss is the mean of the task's and of the distance to the float network's outputs.
  bool distils = false;
};
constexpr Way kWays[] = {{"ptq", "PTQ"},
                         {"improved", "PTQ, improved", true},
                         {"qat", "QAT", false, 1},
                         {"distilled", "QAT, distilled", false, 3, true}};

/// A weight function is trained. AdaRound needs more than the two codes of a sign. Only classes
/// are distilled, and only where QAT leaves a gap.
bool exists(const Way& way, const TableNetwork& network, const Width& width) {
  if (way.distils) return network.classifies && width.activations <= 2;
  if (way.times > 0) return true;
  return !(width.function && width.weights > 1) && !(way.improves && width.weights == 1);
}

/// Up to 4 bits, QAT learns the scales of weights and activations. A weight function has its own
/// scales. The network may change the result.
quant::QConfig config_of(const TableNetwork& network, const Width& width, bool qat) {
  quant::QConfig config = quant::QConfig::bits(width.weights, width.activations);
  if (qat && width.function) {
    config.model.weight.function = width.function;
  } else if (qat && width.weights <= 4) {
    config.model.weight.estimator = quant::Estimator::kLearned;
  }
  if (qat && width.activations <= 4) config.model.activation.estimator = quant::Estimator::kLearned;
  if (network.configure != nullptr) network.configure(config);
  return config;
}

/// The images as a task. limit: as in Training.
examples::Task image_task(const Images& images, const TableNetwork& network, int64_t limit) {
  constexpr int64_t kCalibrationImages = 1024;
  const Dataset& all = images.train;
  examples::Task task =
      examples::make_classification(images.name, all, images.test, std::min(limit, all.size()));
  task.calibration =
      std::make_shared<const Dataset>(all.first(std::min(kCalibrationImages, all.size())));
  if (network.moved > 0) task.augment = random_shift(network.moved);
  return task;
}

DataLoader training_of(const TableNetwork& network, const examples::Task& task, uint64_t seed) {
  return DataLoader(
      task.training,
      {.batch = network.batch, .shuffle = true, .seed = seed, .augment = task.augment});
}

DataLoader evaluation_of(const std::shared_ptr<const BatchSource>& samples) {
  return DataLoader(samples, {.batch = examples::kEvaluationBatch});
}

/// The network's own epochs unless the training says others.
Training training_for(const TableNetwork& network, Training training) {
  if (training.epochs == 0) training.epochs = network.epochs;
  if (training.qat_epochs == 0) training.qat_epochs = network.qat_epochs;
  return training;
}

int64_t qat_epochs(const Way& way, const Training& training) {
  return way.times * training.qat_epochs;
}

/// At least the first epoch finds ranges.
int64_t frozen_epochs(const Way& way, const TableNetwork& network, const Training& training) {
  return std::min(way.times * network.frozen_epochs, qat_epochs(way, training) - 1);
}

/// What decides a result. Of QAT's epochs and learning rate only where there is QAT. No way: float.
Json settings_of(const std::string& data,
                 const TableNetwork& network,
                 const Training& training,
                 uint64_t seed,
                 const Way* way,
                 const Width* width) {
  Json settings{{"data", data},
                {"network", network.name},
                {"epochs", training.epochs},
                {"moved", network.moved},
                {"limit", training.limit},
                {"seed", seed},
                {"way", way == nullptr ? "float" : way->key},
                {"width", width == nullptr ? "" : width->name}};
  if (way != nullptr && way->times > 0) {
    settings["qat_epochs"] = qat_epochs(*way, training);
    if (const int64_t frozen = frozen_epochs(*way, network, training); frozen > 0)
      settings["frozen_epochs"] = frozen;
    settings["learning_rate"] = width->learning_rate;
  }
  return settings;
}

Json measured(const IntegerModel& model, const examples::Task& task) {
  const test::TemporaryFolder folder;
  model.save(folder / "model");
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(folder / "model"));
  return {{"accuracy", task.score(predict(model, evaluation_of(task.test)))},
          {"bytes", bytes},
          {"ram", model.memory(1)}};
}

/// Half of the loss says how far the outputs are from the teacher's, at temperature 2.
std::function<Tensor(Module& net, Batch& batch)> distillation_from(Sequential& teacher) {
  teacher.eval();
  return [&teacher](Module& net, Batch& batch) {
    const Tensor wanted = [&] {
      const NoGrad no_grad;
      return teacher(batch.input);
    }();
    const Tensor y = net(std::move(batch.input));
    const Tensor half = Tensor::full({}, 0.5f);
    return add(mul(half, cross_entropy(y, batch)), mul(half, distillation_loss(y, wanted, 2.0f)));
  };
}

Json measure(const TableNetwork& network,
             Sequential& trained,
             const examples::Task& task,
             const Training& training,
             uint64_t seed,
             const Way& way,
             const Width& width) {
  manual_seed(seed);  // for dropout: no result depends on what was measured before
  Sequential net = network.make();
  copy_state(trained, net);
  const bool qat = way.times > 0;
  if (qat) {
    quant::prepare_qat(net, task.example, config_of(network, width, qat));
    DataLoader loader = training_of(network, task, seed);
    const int64_t epochs = qat_epochs(way, training);
    const int64_t first_frozen = epochs - frozen_epochs(way, network, training);
    examples::train(net,
                    loader,
                    {.epochs = epochs,
                     .first_epoch = training.epochs,
                     .learning_rate = width.learning_rate,
                     .begin_epoch =
                         [&](int64_t epoch) {
                           if (epoch >= first_frozen) quant::freeze(net);
                         },
                     .loss = way.distils ? distillation_from(trained) : task.loss});
  } else {
    quant::prepare_ptq(net, task.example, config_of(network, width, qat));
    const DataLoader calibration = evaluation_of(task.calibration);
    quant::calibrate(net, calibration);
    if (way.improves) quant::improve(net, calibration, {quant::WeightRanges{}, quant::AdaRound{}});
  }
  return measured(quant::convert(net, task.example), task);
}

/// Microseconds for one sample on one core. Weights and samples do not matter.
double microseconds(const TableNetwork& network, const Width& width) {
  const IntegerModel model = random_model(network, config_of(network, width, false));
  const std::vector<uint8_t> codes(static_cast<size_t>(network.input.elements()), 128);
  std::vector<int32_t> y(static_cast<size_t>(model.output_size()));
  const SerialLoops serial;
  const examples::CallTimes times = examples::time_calls(200, [&](int64_t n) {
    if (n == 1) model.run_codes(codes, y);
  });
  return times.microseconds[0];
}

class Table {
 public:
  Table(const std::vector<Images>& data, const TableOptions& options)
      : data_(data), options_(options), results_(options.results) {
    for (const TableNetwork& network : table_networks()) {
      if (wanted(options.networks, network.name)) networks_.push_back(network);
    }
  }

  void fill() {
    int job = 0;
    const auto add = [&](const std::string& data, const TableNetwork& network, auto&& task) {
      for (const uint64_t seed : options_.seeds) {
        if (job++ % options_.parts == options_.part)
          fill(data, network, seed, [&] { return task(seed); });
      }
    };
    for (const Images& images : data_) {
      for (const TableNetwork& network : networks_) {
        if (!network.task) {
          add(images.name, network, [&](uint64_t) {
            return image_task(images, network, options_.training.limit);
          });
        }
      }
    }
    for (const TableNetwork& network : networks_) {
      if (network.task) {
        add(network.data, network, [&](uint64_t seed) {
          return network.task(seed, options_.training.limit, options_.cache);
        });
      }
    }
  }

  /// Of all data that has results.
  void print() const {
    std::set<std::string> names;
    for (const Json& result : results_.all())
      names.insert(result.at("settings").at("data").get<std::string>());
    for (const std::string& data : names) {
      const bool own = std::any_of(networks_.begin(), networks_.end(), [&](const auto& network) {
        return network.data == data;
      });
      std::vector<const TableNetwork*> measured;
      std::string missing;
      for (const TableNetwork& network : networks_) {
        if (network.data != (own ? data : "")) continue;
        if (!values(data, network, nullptr, nullptr, "accuracy").empty()) {
          measured.push_back(&network);
        } else {
          missing += (missing.empty() ? "" : ", ") + network.name;
        }
      }
      if (measured.empty()) continue;  // also data whose networks are not wanted
      std::printf("\n## %s\n", data.c_str());
      for (const TableNetwork* network : measured) print(data, *network);
      if (!missing.empty()) std::printf("\nNot measured yet: %s.\n", missing.c_str());
    }
  }

 private:
  /// make: makes the task, if anything is to be measured.
  void fill(const std::string& data,
            const TableNetwork& network,
            uint64_t seed,
            const std::function<examples::Task()>& make) {
    const Training training = training_for(network, options_.training);
    std::optional<examples::Task> task;
    std::optional<Sequential> trained;  // once, for all ways and widths
    const auto start = [&]() -> Sequential& {
      if (trained) return *trained;
      task = make();
      manual_seed(seed);
      trained = network.make();
      DataLoader loader = training_of(network, *task, seed);
      examples::train(
          *trained,
          loader,
          {.epochs = training.epochs, .learning_rate = network.learning_rate, .loss = task->loss});
      return *trained;
    };
    const Json of_float = settings_of(data, network, training, seed, nullptr, nullptr);
    if (results_.find(of_float) == nullptr) {
      Sequential& net = start();
      results_.add(of_float, {{"accuracy", task->score(predict(net, evaluation_of(task->test)))}});
    }
    for (const Width& width : kWidths) {
      if (!wanted(options_.widths, width.name)) continue;
      for (const Way& way : kWays) {
        if (!wanted(options_.ways, way.key) || !exists(way, network, width)) continue;
        const Json settings = settings_of(data, network, training, seed, &way, &width);
        if (results_.find(settings) != nullptr) continue;
        Sequential& net = start();
        results_.add(settings, measure(network, net, *task, training, seed, way, width));
      }
    }
  }

  static bool wanted(const std::vector<std::string>& names, std::string_view name) {
    return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
  }

  /// What was measured, for each seed that has a result.
  std::vector<double> values(const std::string& data,
                             const TableNetwork& network,
                             const Way* way,
                             const Width* width,
                             const char* what) const {
    std::vector<double> values;
    for (const uint64_t seed : options_.seeds) {
      const Json settings =
          settings_of(data, network, training_for(network, options_.training), seed, way, width);
      if (const Json* const found = results_.find(settings))
        values.push_back(found->at(what).get<double>());
    }
    return values;
  }

  std::string accuracy(const std::string& data,
                       const TableNetwork& network,
                       const Way* way,
                       const Width* width) const {
    const std::vector<double> all = values(data, network, way, width, "accuracy");
    if (all.empty()) return "-";
    const Statistics s = statistics(all);
    char text[48];
    if (all.size() == 1) {
      std::snprintf(text, sizeof text, "%.2f", 100.0 * s.mean);
    } else {
      std::snprintf(text, sizeof text, "%.2f ± %.2f", 100.0 * s.mean, 100.0 * s.deviation);
    }
    return text;
  }

  /// Of the network that was trained longest.
  std::string number(const std::string& data,
                     const TableNetwork& network,
                     const Width* width,
                     const char* what) const {
    std::vector<double> all;
    for (const Way& way : kWays) {
      if (std::vector<double> found = values(data, network, &way, width, what); !found.empty())
        all = std::move(found);
    }
    if (all.empty()) return "-";
    char text[48];
    std::snprintf(text, sizeof text, "%.0f", statistics(all).mean);
    return text;
  }

  void print(const std::string& data, const TableNetwork& network) const {
    std::printf("\n### %s\n\nFloat: %s.\n\n",
                network.name.c_str(),
                accuracy(data, network, nullptr, nullptr).c_str());
    std::printf("| bits |");
    for (const Way& way : kWays) std::printf(" %s |", way.title);
    std::printf(" bytes | RAM | us |\n|---|");
    for (size_t i = 0; i < std::size(kWays); ++i) std::printf("---|");
    std::printf("---|---|---|\n");
    for (const Width& width : kWidths) {
      if (number(data, network, &width, "bytes") == "-") continue;
      std::printf("| %s |", width.name);
      for (const Way& way : kWays)
        std::printf(" %s |", accuracy(data, network, &way, &width).c_str());
      std::printf(" %s | %s | %.1f |\n",
                  number(data, network, &width, "bytes").c_str(),
                  number(data, network, &width, "ram").c_str(),
                  microseconds(network, width));
    }
  }

  const std::vector<Images>& data_;
  TableOptions options_;
  Results results_;
  std::vector<TableNetwork> networks_;
};

}  // namespace

std::vector<std::string> table_ways() {
  std::vector<std::string> names;
  for (const Way& way : kWays) names.emplace_back(way.key);
  return names;
}

std::vector<std::string> table_widths() {
  std::vector<std::string> names;
  for (const Width& width : kWidths) names.emplace_back(width.name);
  return names;
}

void measure_table(const std::vector<Images>& data, const TableOptions& options) {
  Table table(data, options);
  if (options.print_only) {
    table.print();
  } else {
    table.fill();
  }
}

}  // namespace quantrain::proofs
